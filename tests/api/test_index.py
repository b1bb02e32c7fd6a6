"""bwarp.Index writes the same files as the program, for contigs from any source."""

import hashlib

import numpy as np
import pytest

import bwarp
from bwarp.errors import InputError, UsageError
from bwarp.sequence import encode
from tests.helpers.programs.programs_here import run_here

OPTIONS = {"backend": "cpu", "threads": 1}


def digests(folder):
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir()}


def test_the_files_of_the_program(genome, tmp_path):
    done = run_here("index_reference", genome, "-o", tmp_path / "index", folder=tmp_path)
    assert done.rc == 0, done.said
    lines = genome.read_text().split()
    contigs = {"one": lines[1], "two": lines[3].encode()}
    for given in (genome, str(genome), contigs):
        bwarp.Index.build(given, **OPTIONS).save(tmp_path / "mine", threads=1)
        assert digests(tmp_path / "mine") == digests(tmp_path / "index")
    opened = bwarp.Index.open(tmp_path / "index")
    opened.save(tmp_path / "again", threads=1)
    assert digests(tmp_path / "again") == digests(tmp_path / "index")


def test_the_reverse_made_at_once_and_added(genome, tmp_path):
    command = ("index_reference", genome, "-o", tmp_path / "index", "--with-reverse")
    assert run_here(*command, folder=tmp_path).rc == 0
    bwarp.Index.build(genome, with_reverse=True, **OPTIONS).save(tmp_path / "at once")
    one = bwarp.Index.build(genome, **OPTIONS)
    one.save(tmp_path / "forward")
    opened = bwarp.Index.open(tmp_path / "forward")
    needed = "no reverse BWT, which a search with mismatches requires: "
    for index, message in (
        (one, f"the index has {needed}build it with with_reverse=True, or add it with "
         "add_reverse()"),
        (opened, f"{tmp_path}/forward: {needed}add it with bwarp index -o "
         f"'{tmp_path}/forward' --with-reverse".replace("'", "")),
    ):  # fmt: skip
        with pytest.raises(UsageError) as error:
            bwarp.find_seeds(index, ["ACGTACGTAC"], mismatches=1, **OPTIONS)
        assert str(error.value) == message
        with pytest.raises(UsageError) as error:
            bwarp.find_mems(index, ["ACGTACGTAC"], **OPTIONS)
        unique = "a search for unique matches"
        assert str(error.value) == message.replace("a search with mismatches", unique)
        assert bwarp.find_seeds(index, ["ACGTACGTAC"], **OPTIONS).columns.size == 6
        bwarp.find_mems(index, ["ACGTACGTAC"], kind="maxmatch", **OPTIONS)
        index.add_reverse(**OPTIONS)
        reverse = index.fm_index.reverse
        index.add_reverse(**OPTIONS)
        assert index.fm_index.reverse is reverse
        bwarp.find_seeds(index, ["ACGTACGTAC"], mismatches=1, **OPTIONS)
        index.save(tmp_path / "added")
        for name in ("added", "at once"):
            assert digests(tmp_path / name) == digests(tmp_path / "index")


def test_checksums_are_of_the_letters(tmp_path):
    (tmp_path / "r.fa").write_text(">a\nacgtRYu\n>b\nNNACGT\n")
    of_file = bwarp.Index.build(tmp_path / "r.fa", **OPTIONS).fm_index.reference
    in_memory = bwarp.Index.build({"a": "acgtRYu", "b": encode(b"NNACGT")}, **OPTIONS)
    assert in_memory.fm_index.reference.md5 == of_file.md5
    assert np.array_equal(in_memory.fm_index.reference.packed, of_file.packed)


def test_representation(index, tmp_path):
    index.save(tmp_path / "index")
    opened = bwarp.Index.open(tmp_path / "index")
    for one in (index, opened):
        assert one.names == ["one", "two"]
        assert one.lengths.tolist() == [2000, 2000]
        assert len(one) == 2
        assert repr(one) == "<bwarp.Index of 2 contigs, 4,000 bases>"
    # This did not read the arrays.
    assert "reference" not in vars(opened.fm_index)
    assert repr(bwarp.Index.build(["ACGT"], **OPTIONS)) == "<bwarp.Index of 1 contig, 4 bases>"


@pytest.mark.parametrize(
    ("given", "options", "message"),
    [
        ([], {}, "reference: no sequences: give at least one"),
        (["NNN", ""], {}, "reference: no contig has an A, C, G or T: there is nothing to index"),
        ({1: "ACGT", "1": "ACG"}, {}, "reference: two contigs are named '1': rename one"),
        (["ACGT"], {"occ_rate": 7}, "occ_rate 7 is not a multiple of 32 from 32 to 1024"),
        ("ACGT", {}, "reference 'ACGT' is not an existing file: use ['ACGT'] for a list"),
    ],
)
def test_refusals(given, options, message):
    with pytest.raises((InputError, UsageError)) as error:
        bwarp.Index.build(given, **OPTIONS, **options)
    assert str(error.value).startswith(message)


def test_not_an_index():
    with pytest.raises(UsageError) as error:
        bwarp.find_seeds(7, ["ACGTACGT"])
    assert str(error.value) == (
        "the index is of type int: give a bwarp.Index or the folder of an index"
    )
    with pytest.raises(InputError, match="no such index"):
        bwarp.find_seeds("nowhere.index", ["ACGTACGT"])


def test_an_index_in_chunks(index, chunks, tmp_path):
    """It says what it has; only mems and seeds search it (test_mems.py, test_seeds.py)."""
    opened = bwarp.Index.open(chunks)
    assert (opened.names, opened.lengths.tolist()) == (index.names, index.lengths.tolist())
    assert repr(opened) == repr(index)
    for use in (
        lambda: opened.save(tmp_path / "copy"),
        opened.add_reverse,
        lambda: bwarp.Mapper(chunks),
        lambda: bwarp.find_loci(opened, ["ACGTACGTACGTACGTACGT"], edits=1),
        lambda: bwarp.find_offtargets(opened, ["ACGTACGTACGTACGTACGT"]),
    ):
        with pytest.raises(InputError, match="is an index in chunks, which only bwarp mems"):
            use()
