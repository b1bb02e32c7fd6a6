"""Chunk files: the data read equal the data written, and damage is an error."""

import io
import json
import sys

import numpy as np
import pytest

from bwarp.errors import InputError
from bwarp.io.chunk_files import open_chunk_file, packed_chunk, write_chunk_file

CHUNKS = [
    ("kmers", {"words": np.arange(12, dtype=np.uint64).reshape(6, 2), "none": np.zeros(0, "u4")}),
    ("over", {"letters": np.frombuffer(b"\n{}\n", np.uint8)}),
    ("empty", {}),
]


def write(path, n_chunks=3, **holds):
    with write_chunk_file(path, **({"holds": "reads"} | holds)) as writer:
        for kind, arrays in CHUNKS[:n_chunks]:
            writer.write(packed_chunk(kind, **arrays))


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
        f"{path}: the file has format version 0, but this bwarp reads version 3: make it again"
    )


def test_nothing_appears_when_writing_stops(tmp_path):
    def stop_in_the_middle():
        with write_chunk_file(tmp_path / "a", holds="seeds") as writer:
            writer.write(packed_chunk("empty"))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stop_in_the_middle()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["?", "u1", "i4", "u4", "i8", "u8"])
def test_numbers_are_stored_in_few_bytes(tmp_path, kind):
    dtype = np.dtype(kind)
    bounds = [0, 1, 255, 256, 65_535, 65_536, (1 << 31) - 1, (1 << 32) - 1, 1 << 32, -1, -(1 << 31)]

    limits = (0, 1) if kind == "?" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
    fitting = [bound for bound in bounds if limits[0] <= bound <= limits[1]]
    for bound in fitting:
        array = np.array([[0, bound], [1, 0]], dtype)
        path = tmp_path / f"{bound}"
        with write_chunk_file(path, holds="reads") as writer:
            writer.write(packed_chunk("some", numbers=array))
        with open_chunk_file(path, "reads") as reader:
            ((_, arrays),) = list(reader)
        assert arrays["numbers"].dtype == dtype
        assert arrays["numbers"].tolist() == array.tolist()
        needed = next(size for size in (1, 2, 4, 8) if size == 8 or 0 <= bound < 1 << 8 * size)
        stored = json.loads(path.read_bytes().split(b"\n")[1])["arrays"][0][3]
        assert np.dtype(stored).itemsize == min(needed, dtype.itemsize)


@pytest.mark.parametrize("through_pipe", [False, True])
def test_arrays_that_are_left_out(tmp_path, monkeypatch, capsysbinary, through_pipe):
    path = "-" if through_pipe else tmp_path / "a"
    write(path)
    if through_pipe:
        written = capsysbinary.readouterr().out
        pipe = io.BufferedReader(Pipe(written))
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(pipe))
    with open_chunk_file(path, "reads", without=["words"]) as reader:
        chunks = list(reader)
    assert [list(arrays) for _, arrays in chunks] == [["none"], ["letters"], []]
    assert chunks[1][1]["letters"].tobytes() == b"\n{}\n"


class Pipe(io.RawIOBase):
    """Bytes that are read once, a few at a time."""

    def __init__(self, content: bytes):
        self._left = io.BytesIO(content)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        return self._left.readinto(memoryview(buffer)[:7])


def test_a_cut_off_array_that_is_left_out(tmp_path):
    path = tmp_path / "a"
    write(path)
    whole = path.read_bytes()
    for length in range(whole.index(b"\n") + 1, len(whole) - 1):
        path.write_bytes(whole[:length])
        with (
            pytest.raises(InputError, match="damaged or truncated"),
            open_chunk_file(path, "reads", without=["words", "letters"]) as reader,
        ):
            list(reader)
