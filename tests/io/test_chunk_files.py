"""Chunk files: the data read equal the data written, and damage is an error."""

import io
import sys

import numpy as np
import pytest

from bwarp.errors import InputError
from bwarp.io.chunk_files import open_chunk_file, write_chunk_file

CHUNKS = [
    ("kmers", {"words": np.arange(12, dtype=np.uint64).reshape(6, 2), "none": np.zeros(0, "u4")}),
    ("over", {"letters": np.frombuffer(b"\n{}\n", np.uint8)}),
    ("empty", {}),
]


def write(path, n_chunks=3, **holds):
    with write_chunk_file(path, **({"holds": "reads"} | holds)) as writer:
        for kind, arrays in CHUNKS[:n_chunks]:
            writer.write(kind, **arrays)


def check(chunks):
    assert [kind for kind, _ in chunks] == [kind for kind, _ in CHUNKS]
    for (_, arrays), (_, expected) in zip(chunks, CHUNKS, strict=True):
        assert list(arrays) == list(expected)
        for name, array in expected.items():
            assert arrays[name].dtype == array.dtype
            assert arrays[name].shape == array.shape
            assert np.array_equal(arrays[name], array)


def test_frames_come_back(tmp_path):
    write(tmp_path / "a", index="abc")
    with open_chunk_file(tmp_path / "a", "reads") as reader:
        assert reader.holds["index"] == "abc"
        check(list(reader))


def test_through_a_pipe(monkeypatch, capsysbinary):
    write("-")
    written = capsysbinary.readouterr().out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(written)))
    with open_chunk_file("-", "reads") as reader:
        check(list(reader))


def read(path):
    with open_chunk_file(path, "reads") as reader:
        return list(reader)


def test_a_file_that_was_cut_off_or_changed_anywhere(tmp_path):
    path = tmp_path / "a"
    write(path)
    whole = path.read_bytes()
    message = f"{path}: the file is damaged or truncated: make it again"
    # The final line feed may be missing.
    for length in range(len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError) as caught:
            read(path)
        assert str(caught.value) == message, length
    expected = [array.tolist() for _, arrays in CHUNKS for array in arrays.values()]
    for at in range(whole.index(b"\n") + 1, len(whole) - 1):
        changed = bytearray(whole)
        changed[at] ^= 8
        path.write_bytes(changed)
        # A changed letter in the name of a chunk or array may go unnoticed here; changed data may
        # not.
        assert said_or_read(path) in (message, expected), at


def said_or_read(path) -> str | list:
    try:
        return [array.tolist() for _, arrays in read(path) for array in arrays.values()]
    except InputError as error:
        return str(error)


def test_other_files(tmp_path):
    path = tmp_path / "a"
    for holds, made_by in (("seeds", "batch-reads"), ("reads", "seed-reads")):
        write(path, holds=holds)
        other = {"seeds": "reads", "reads": "seeds"}[holds]
        with pytest.raises(InputError) as caught, open_chunk_file(path, other):
            pass
        assert str(caught.value) == (
            f"{path}: not a file of {other}: make one with bwarp {made_by}"
        )
    for text in (b"", b"@r1\nACGT\n", b"\x93NUMPY", b"[1]\n"):
        path.write_bytes(text)
        with pytest.raises(InputError) as caught, open_chunk_file(path, "seeds"):
            pass
        assert str(caught.value) == f"{path}: the file is damaged or truncated: make it again"
    path.write_bytes(b'{"format": "bwarp frames", "version": 0, "holds": "seeds"}\n')
    with pytest.raises(InputError) as caught, open_chunk_file(path, "seeds"):
        pass
    assert str(caught.value) == (
        f"{path}: the file has format version 0, but this bwarp reads version 2: make it again"
    )


def test_nothing_appears_when_writing_stops(tmp_path):
    def stop_in_the_middle():
        with write_chunk_file(tmp_path / "a", holds="seeds") as writer:
            writer.write("empty")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop_in_the_middle()
    assert list(tmp_path.iterdir()) == []
