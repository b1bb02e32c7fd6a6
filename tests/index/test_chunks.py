"""An index in chunks: cut, stored, opened, verified, replaced; damaged folders are refused."""

import json
import shutil

import numpy as np
import pytest

from bwarp.errors import InputError
from bwarp.index.chunk_store import open_index
from bwarp.index.chunks import ChunkedIndex, chunks_of, prepare_chunks, stretch
from bwarp.index.description import canonical
from bwarp.index.parameters import parse_size_table, size_table
from bwarp.index.store import StoredIndex, load_index, save_index
from bwarp.index.verify import verify_index, verify_stored
from bwarp.io.chunk_files import text_sum
from bwarp.reference import codes_of
from tests.helpers.cases.chunked_indexes import save_chunks
from tests.helpers.oracles.index_oracle import index_of, reference_of

CONTIGS = [b"ACGTTGCA" * 20, b"", b"N" * 150, b"GATTACA" * 31 + b"NNRN" + b"CCGT" * 9]


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_chunks_contain_their_bases():
    contigs = [b"ACNG", b"", b"NNNNN", b"TTNA"]
    reference = reference_of(contigs)
    codes = codes_of(reference)
    for size in (1, 2, 3, 5, 100):
        positions = []
        for chunk in chunks_of(reference, size, 2):
            assert chunk.end == min(chunk.stop + 2, codes.size)
            bases = stretch(reference, chunk.start, chunk.end)
            assert np.array_equal(codes_of(bases), codes[chunk.start : chunk.end])
            assert chunk.stop - chunk.start <= size
            positions += range(chunk.start, chunk.stop)
        # Only stretches without any base to match are skipped.
        assert len(set(positions)) == len(positions)
        assert np.all(codes[sorted(set(range(codes.size)) - set(positions))] == 4)


def test_what_is_stored(tmp_path):
    reference = reference_of(CONTIGS)
    index = save_chunks(reference, 70, tmp_path / "index")
    assert isinstance(index, ChunkedIndex)
    assert index.has_reverse
    assert index.chunks == list(chunks_of(reference, 70, 63))
    for name in ("names", "md5", "alt"):
        assert getattr(index.reference, name) == getattr(reference, name)
    for name in ("contig_starts", "segment_genome", "segment_text", "packed"):
        assert np.array_equal(getattr(index.reference, name), getattr(reference, name))
    for number, stored in enumerate(index.indexes):
        assert index.checked(number) is stored
        verify_index(stored)
    verify_stored(index, 2)


def test_sizes(tmp_path):
    index = save_chunks(reference_of(CONTIGS), 70, tmp_path / "index")
    table = size_table(index)
    assert f"chunks {len(index.chunks)}" in table
    sizes = {part.name: part.size for part in parse_size_table(table)}
    assert list(sizes) == [
        "forward BWT", "reverse BWT", "suffix array", "prefix table", "packed genome",
    ]  # fmt: skip
    assert sizes["suffix array"] == sum(part.suffix_array.nbytes for part in index.indexes)


def test_ordinary_indexes_and_those_in_chunks_replace_each_other(tmp_path):
    folder, ordinary = tmp_path / "index", index_of(CONTIGS)
    save_chunks(reference_of(CONTIGS), 70, folder)
    many = sorted(contents(folder))
    save_index(ordinary, folder)
    assert isinstance(open_index(folder), StoredIndex)
    assert not list(folder.glob("chunk-*"))
    save_chunks(reference_of(CONTIGS), 200, folder)
    assert len(contents(folder)) < len(many)
    save_chunks(reference_of(CONTIGS), 70, folder)
    assert sorted(contents(folder)) == many
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


@pytest.mark.parametrize("name", ["notes.txt", "chunk-1/notes.txt", "chunk-one/notes.txt"])
def test_other_files_are_not_lost(tmp_path, name):
    folder = tmp_path / "index"
    save_chunks(reference_of(CONTIGS), 200, folder)
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).write_text("mine")
    before = contents(folder)
    with pytest.raises(Exception, match=r"which was not written with the rest and would be lost"):
        save_index(index_of(CONTIGS), folder)
    assert contents(folder) == before


def test_other_programs_refuse_it(tmp_path):
    save_chunks(reference_of(CONTIGS), 200, tmp_path / "index")
    with pytest.raises(InputError) as error:
        load_index(tmp_path / "index")
    assert str(error.value) == (
        f"{tmp_path / 'index'}: is an index in chunks, which only bwarp mems and bwarp seeds "
        "search: build one without --chunk-bases"
    )


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chunks") / "index"
    save_chunks(reference_of(CONTIGS), 150, folder)
    return folder


@pytest.fixture
def copy(saved, tmp_path):
    return shutil.copytree(saved, tmp_path / "copy")


def use(folder):
    """Open an index in chunks and read all of it."""
    index = open_index(folder)
    prepare_chunks(index, lambda stored, chunk, share: stored, "cpu")
    verify_stored(index)


def test_a_missing_chunk(copy):
    shutil.rmtree(copy / "chunk-2")
    with pytest.raises(
        InputError, match=r"chunk-2: chunk 2 of 4 is missing: build the index again"
    ):
        use(copy)


def test_chunks_of_other_indexes(copy, tmp_path):
    other = [contig.replace(b"G", b"C") for contig in CONTIGS]
    save_chunks(reference_of(other), 150, tmp_path / "other")
    shutil.rmtree(copy / "chunk-2")
    shutil.copytree(tmp_path / "other" / "chunk-2", copy / "chunk-2")
    with pytest.raises(
        InputError, match=r"chunk-2: is not chunk 2 of 4 of this index, but of another one: build"
    ):
        use(copy)


def test_exchanged_chunks(copy):
    (copy / "chunk-1").rename(copy / "chunk")
    (copy / "chunk-3").rename(copy / "chunk-1")
    (copy / "chunk").rename(copy / "chunk-3")
    with pytest.raises(InputError, match=r"chunk-1: is not chunk 1 of 4 of this index"):
        use(copy)


def test_damaged_files(copy):
    for path in sorted(copy.rglob("*.*")):
        whole = path.read_bytes()
        for damaged in (whole[: len(whole) // 2], whole[:-2] + bytes([whole[-2] ^ 3]), b""):
            path.write_bytes(damaged)
            with pytest.raises(InputError) as error:
                use(copy)
            assert str(copy) in str(error.value)
        path.unlink()
        with pytest.raises(InputError, match=path.name.replace(".", r"\.")):
            use(copy)
        path.write_bytes(whole)
    use(copy)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("version", 2), ("version", True), ("overlap", 62), ("overlap", None), ("chunks", []),
        ("chunks", [{"start": 0, "stop": 10**9, "sum": "00000000"}]), ("chunks", 3),
        ("chunks", [{"start": 5, "stop": 5, "sum": "00000000"}]), ("chunks", [7]),
        ("chunks", [{"start": 0, "stop": 50}]), ("chunk_bases", 1), ("chunk_bases", 10**12),
        ("segments", 0), ("segments", 10**6), ("text_length", "1"), ("contigs", []), ("files", {}),
    ],
)  # fmt: skip
def test_impossible_descriptions(copy, key, value):
    path = copy / "index.json"
    description = json.loads(path.read_text()) | {key: value}
    del description["sum"]
    path.write_text(json.dumps(description | {"sum": text_sum(canonical(description))}))
    with pytest.raises(InputError) as error:
        use(copy)
    said = "this bwarp reads version 1" if key == "version" else f"invalid {key}"
    assert str(error.value).startswith(f"{path}: ")
    assert said in str(error.value) or key == "segments"


def with_sums(folder, description):
    """Write a description with the checksums of the chunks as they are."""
    for number, chunk in enumerate(description["chunks"], 1):
        chunk["sum"] = load_index(folder / f"chunk-{number}").checksum
    description.pop("sum", None)
    description["sum"] = text_sum(canonical(description))
    (folder / "index.json").write_text(json.dumps(description))


def test_chunks_with_other_contigs_or_bases(copy, tmp_path):
    """The checksums of these are right; only the data show that they are of another reference."""
    description = json.loads((copy / "index.json").read_text())
    for contigs, message in (
        ([contig.replace(b"GATT", b"GNTT") for contig in CONTIGS], "its contigs are not those"),
        ([contig.replace(b"GATT", b"GCTT") for contig in CONTIGS], "does not have the bases of"),
    ):
        save_chunks(reference_of(contigs), 150, tmp_path / "other")
        for chunk in copy.glob("chunk-*"):
            shutil.rmtree(chunk)
        for chunk in (tmp_path / "other").glob("chunk-*"):
            shutil.copytree(chunk, copy / chunk.name)
        with_sums(copy, description)
        with pytest.raises(InputError, match=message):
            use(copy)


def test_left_out_chunks_are_found_by_verifying(copy):
    description = json.loads((copy / "index.json").read_text())
    del description["chunks"][-1]
    with_sums(copy, description)
    with pytest.raises(InputError, match="its chunks do not cover its text"):
        use(copy)
