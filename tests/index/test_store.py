"""The index folder: the loaded index equals the written one; damage is an error."""

import json
import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from bwarp.counted import counted
from bwarp.errors import InputError, UsageError
from bwarp.index import store
from bwarp.index.store import load_index, new_index_folder, save_index
from bwarp.io import chunk_files as checksum
from bwarp.io.chunk_files import checked_array, map_file, save_with_sums, text_sum
from tests.helpers.cases.index_parts import assert_equal_indexes, parts_of
from tests.helpers.oracles.index_oracle import HOSTILE, index_of

FILES = [
    "genome.npy",
    "segments.npy",
    "forward_blocks.npy",
    "forward_separator_rows.npy",
    "reverse_blocks.npy",
    "reverse_separator_rows.npy",
    "prefix_table.npy",
    "suffix_array.npy",
]


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("store") / "index"
    save_index(index_of(HOSTILE["with gaps"], 64, 3, 2), folder)
    return folder


@pytest.fixture
def copy(saved, tmp_path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "copy"))


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize(("occ_rate", "sa_rate", "prefix_length"), [(32, 1, 0), (96, 40, 5)])
def test_round_trip(tmp_path, name, occ_rate, sa_rate, prefix_length):
    index = index_of(HOSTILE[name], occ_rate, sa_rate, prefix_length)
    save_index(index, tmp_path / "index")
    loaded = load_index(tmp_path / "index")
    assert_equal_indexes(index, loaded)
    assert repr(loaded) == f"StoredIndex({str(tmp_path / 'index')!r})"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_the_same_bytes_every_time(tmp_path):
    contigs = [HOSTILE["random"][0] * 500, *HOSTILE["with gaps"]]
    save_index(index_of(contigs, threads=1), tmp_path / "one", threads=1)
    for threads in (2, 4):
        save_index(index_of(contigs, threads=threads), tmp_path / "more", threads=threads)
        assert contents(tmp_path / "more") == contents(tmp_path / "one")
    assert sorted(contents(tmp_path / "one")) == sorted([*FILES, "index.json"])
    assert list(tmp_path.iterdir()) != []
    assert {path.name for path in tmp_path.iterdir()} == {"one", "more"}


def test_only_plain_arrays_that_numpy_reads_by_itself(saved):
    for name in FILES:
        array = np.load(saved / name, allow_pickle=False)
        assert array.dtype in (np.uint32, np.uint64, np.int64)


def test_arrays_are_mapped_when_they_are_asked_for(saved, monkeypatch):
    opened = []

    def spy(path, *others):
        opened.append(path.name)
        return checked_array(path, *others)

    monkeypatch.setattr(store, "checked_array", spy)
    index = load_index(saved)
    assert (index.occ_rate, index.sa_rate, index.prefix_length) == (64, 3, 2)
    assert opened == []
    assert isinstance(index.suffix_array.base, np.memmap)
    assert not index.suffix_array.flags.writeable
    _ = index.suffix_array, index.prefix_table, index.forward
    assert sorted(opened) == [
        "forward_blocks.npy",
        "forward_separator_rows.npy",
        "prefix_table.npy",
        "suffix_array.npy",
    ]


@pytest.mark.parametrize("name", ["prefix_table", "suffix_array", "forward", "reference"])
def test_threads_that_ask_for_an_array_at_the_same_time_share_it(saved, monkeypatch, name):
    opened = []
    together = threading.Barrier(4)

    def slow(path, *others):
        opened.append(path.name)
        time.sleep(0.05)
        return checked_array(path, *others)

    def ask(_):
        together.wait()
        return index._array(name) if name == "suffix_array" else getattr(index, name)

    monkeypatch.setattr(store, "checked_array", slow)
    index = load_index(saved)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(ask, range(4)))
    assert sorted(opened) == sorted(set(opened))


def load_all(folder) -> None:
    parts_of(load_index(folder))


@pytest.mark.parametrize("name", FILES)
def test_every_flipped_byte_of_an_array_is_refused(copy, name):
    whole = (copy / name).read_bytes()
    n = len(whole)
    for at in sorted({*range(0, n, 1 + n // 60), *range(min(n, 130)), n - 1}):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << at % 8
        (copy / name).write_bytes(damaged)
        with pytest.raises(InputError) as error:
            load_all(copy)
        assert str(error.value) == (
            f"{copy / name}: the file is damaged between bytes 0 and {n:,}: build the index again"
        )


@pytest.mark.parametrize("name", FILES)
def test_truncated_longer_empty_and_missing_arrays(copy, name):
    path = copy / name
    whole = path.read_bytes()
    for wrong in (whole[:-1], whole[: len(whole) // 2], whole[:1], whole + b"\0"):
        path.write_bytes(wrong)
        with pytest.raises(InputError) as error:
            load_all(copy)
        assert str(error.value) == (
            f"{path}: the file has {counted(len(wrong), 'byte')} instead of {len(whole):,}: "
            "build the index again"
        )
    path.write_bytes(b"")
    with pytest.raises(InputError) as error:
        load_all(copy)
    assert str(error.value) == (f"{path}: the file is empty: build the index again")
    path.unlink()
    with pytest.raises(InputError) as error:
        load_all(copy)
    assert str(error.value) == (f"{path}: the file is missing: build the index again")


def test_every_flipped_byte_of_the_description_is_refused(copy):
    path = copy / "index.json"
    whole = path.read_bytes()
    for at in range(len(whole)):
        damaged = bytearray(whole)
        damaged[at] ^= 0x80 if at % 2 else 0x01
        path.write_bytes(damaged)
        with pytest.raises(InputError) as error:
            load_index(copy)
        assert str(error.value).startswith(f"{path}: "), at
        assert "\n" not in str(error.value)


def test_a_truncated_description_is_refused(copy):
    path = copy / "index.json"
    whole = path.read_bytes().rstrip()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError) as error:
            load_index(copy)
        assert str(error.value) == f"{path}: the file is damaged: build the index again"


def test_a_changed_value_is_refused(copy):
    path = copy / "index.json"
    description = json.loads(path.read_bytes())
    for key in description.keys() - {"format", "version", "sum"}:
        path.write_text(json.dumps(description | {key: 7}))
        with pytest.raises(InputError) as error:
            load_index(copy)
        assert str(error.value) == f"{path}: the file is damaged: build the index again"
    del description["sum"]
    path.write_text(json.dumps(description))
    with pytest.raises(InputError, match="the file is damaged: build the index again"):
        load_index(copy)


@pytest.mark.parametrize("version", [0, 3, "1", None])
def test_another_version_is_refused(copy, version):
    path = copy / "index.json"
    description = json.loads(path.read_bytes()) | {"version": version}
    path.write_text(json.dumps(description))
    with pytest.raises(InputError) as error:
        load_index(copy)
    assert str(error.value) == (
        f"{path}: the index has format version {json.dumps(version)}, but this bwarp reads "
        "version 1 or 2: build the index again"
    )


@pytest.mark.parametrize("text", ["[]", "3", '"bwarp index"', "{}", '{"format": "package"}'])
def test_a_foreign_description(tmp_path, text):
    folder = tmp_path / "web"
    folder.mkdir()
    (folder / "index.json").write_text(text)
    with pytest.raises(InputError) as error:
        load_index(folder)
    assert str(error.value) == (
        f"{folder / 'index.json'}: not a bwarp index, or damaged: make one with bwarp index "
        f"REF.fa -o {folder}"
    )


def test_not_an_index(tmp_path):
    folder = tmp_path / "folder"
    with pytest.raises(InputError) as error:
        load_index(folder)
    assert str(error.value) == (
        f"{folder}: no such index: make it with bwarp index REF.fa -o {folder}"
    )
    folder.mkdir()
    with pytest.raises(InputError) as error:
        load_index(folder)
    assert str(error.value) == (
        f"{folder}: not a bwarp index (no index.json): make one with bwarp index REF.fa -o {folder}"
    )
    (folder / "file").write_text("text")
    with pytest.raises(InputError) as error:
        load_index(folder / "file")
    assert str(error.value) == (
        f"{folder / 'file'}: is a file: give the folder that bwarp index wrote"
    )


def test_an_older_index_is_replaced_and_a_damaged_one_too(tmp_path):
    folder = tmp_path / "index"
    save_index(index_of(HOSTILE["all A"]), folder)
    (folder / "index.json").write_bytes((folder / "index.json").read_bytes()[:200])
    index = index_of(HOSTILE["random"], 32, 2, 1)
    save_index(index, folder)
    assert_equal_indexes(index, load_index(folder))
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


def test_the_folder_of_another_program_is_kept(tmp_path):
    folder = tmp_path / "web"
    folder.mkdir()
    (folder / "index.json").write_text('{"pages": 3}')
    with pytest.raises(UsageError) as error:
        save_index(index_of(HOSTILE["one base"]), folder)
    assert str(error.value) == (
        f"{folder}: contains an index.json that bwarp did not write: give the name of a new folder"
    )
    assert contents(folder) == {"index.json": b'{"pages": 3}'}
    assert [path.name for path in tmp_path.iterdir()] == ["web"]


def test_a_failed_build_leaves_the_older_index(saved, copy):
    with pytest.raises(MemoryError), new_index_folder(copy):
        raise MemoryError
    assert contents(copy) == contents(saved)
    assert [path.name for path in copy.parent.iterdir()] == ["copy"]


def test_strange_names_survive(tmp_path):
    from dataclasses import replace

    index = index_of(HOSTILE["one base"])
    names = ('"quoted"\\', "ünï\u2028code", "\ufffd", "<escape\x1b>")
    reference = replace(
        index.reference,
        names=names,
        md5=("0" * 32,) * 4,
        contig_starts=np.array([0, 1, 1, 1, 1]),
    )
    save_index(replace(index, reference=reference), tmp_path / "index")
    assert load_index(tmp_path / "index").reference.names == names


def array_of(path, recorded, like) -> np.ndarray:
    """Load and check the array in a file, which should have the form of another one."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        return checked_array(path, map_file(path, folder), recorded, like.dtype, like.shape)
    finally:
        os.close(folder)


@pytest.mark.parametrize("piece", [129, 200, 1000, 4096])
def test_sums_of_many_pieces(tmp_path, monkeypatch, piece):
    """Each checksum covers its piece of the file, so errors name the damaged piece."""
    monkeypatch.setattr(checksum, "PIECE_BYTES", piece)
    for n in (0, 1, 100, 1000, 1001):
        path = tmp_path / f"{n}.npy"
        array = np.arange(n, dtype=np.uint32)
        recorded = save_with_sums(path, array)
        whole = path.read_bytes()
        assert recorded["bytes"] == len(whole)
        assert recorded["crc32"] == [
            f"{checksum.crc32(whole[i : i + piece]):08x}" for i in range(0, len(whole), piece)
        ]
        assert np.array_equal(array_of(path, recorded, array), array)
        damaged = bytearray(whole)
        damaged[-1] ^= 4
        path.write_bytes(damaged)
        start = (len(whole) - 1) // piece * piece
        with pytest.raises(InputError) as error:
            array_of(path, recorded, array)
        assert str(error.value) == (
            f"{path}: the file is damaged between bytes {start:,} and {len(whole):,}: "
            "build the index again"
        )


def test_arrays_of_any_layout_are_stored_as_they_are(tmp_path):
    array = np.arange(24, dtype=np.uint64).reshape(4, 6).T[::2]
    recorded = save_with_sums(tmp_path / "a.npy", array)
    assert np.array_equal(array_of(tmp_path / "a.npy", recorded, array), array)


def test_the_sum_of_a_text():
    assert text_sum("123456789") == "cbf43926"
