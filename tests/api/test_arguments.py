"""Paths are str or PathLike, and every wrong argument raises bwarp.InputError."""

import os
from pathlib import Path

import numpy as np
import pytest

import bwarp

READS = ["ACGTACGTAACACGTACGTA"]
PRIMERS = [("ACGTACGTAACACGTACGTA", "TTGACCATGACTTGACCATG")]

#: Calls whose argument is a file or a folder: all public functions, with all their files.
OF_PATH = {
    "Index.open": lambda index, path: bwarp.Index.open(path),
    "Index.build": lambda index, path: bwarp.Index.build(path),
    "Mapper": lambda index, path: bwarp.Mapper(path),
    "Mapper alt": lambda index, path: bwarp.Mapper(index, alt=path),
    "Mapper.map": lambda index, path: bwarp.Mapper(index).map(path),
    "find_loci": lambda index, path: bwarp.find_loci(path, READS, edits=1),
    "find_loci reads": lambda index, path: bwarp.find_loci(index, path, edits=1),
    "find_loci mates": lambda index, path: bwarp.find_loci(index, "reads.fa", path, edits=1),
    "find_seeds": lambda index, path: bwarp.find_seeds(path, READS),
    "find_seeds queries": lambda index, path: bwarp.find_seeds(index, path),
    "find_mems": lambda index, path: bwarp.find_mems(path, READS),
    "find_mems queries": lambda index, path: bwarp.find_mems(index, path),
    "find_offtargets": lambda index, path: bwarp.find_offtargets(path, READS),
    "find_offtargets guides": lambda index, path: bwarp.find_offtargets(index, path),
    "find_offtargets variants": lambda index, path: bwarp.find_offtargets(
        index, READS, variants=path
    ),
    "find_offtargets genomes": lambda index, path: bwarp.find_offtargets(
        index, READS, genomes=path
    ),
    "find_offtargets alignments": lambda index, path: bwarp.find_offtargets(
        index, READS, genomes="reads.fa", alignments=path
    ),
    "find_products": lambda index, path: bwarp.find_products(path, PRIMERS),
    "find_products pairs": lambda index, path: bwarp.find_products(index, path),
    "list_guides": lambda index, path: bwarp.list_guides(path),
    "list_guides bed": lambda index, path: bwarp.list_guides(index, bed=path),
    "design_guides": lambda index, path: bwarp.design_guides(path),
    "design_guides bed": lambda index, path: bwarp.design_guides(index, bed=path),
    "design_guides exclude": lambda index, path: bwarp.design_guides(index, exclude=path),
    "design_guides annotation": lambda index, path: bwarp.design_guides(
        index, region="one:1-200", annotation=path
    ),
    "design_guides variants": lambda index, path: bwarp.design_guides(
        index, region="one:1-200", variants=path
    ),
    "pair_nickases": lambda index, path: bwarp.pair_nickases(bwarp.read_table(path)),
    "scan": lambda index, path: bwarp.scan(path, READS, similarity=0.9),
    "scan reference": lambda index, path: bwarp.scan(READS, path, similarity=0.9),
    "align_pairs": lambda index, path: bwarp.align_pairs(path, READS),
    "align_pairs references": lambda index, path: bwarp.align_pairs(READS, path),
    "search": lambda index, path: bwarp.search(path, READS),
    "search database": lambda index, path: bwarp.search(READS, path),
    "read_table": lambda index, path: bwarp.read_table(path),
}

#: Calls in which a file without sequences or features is one without rows.
MAY_BE_EMPTY = {
    *("Mapper.map", "find_loci reads", "find_seeds queries", "find_mems queries"),
    *("design_guides annotation", "scan", "search"),
}

FILES = {
    "empty": b"",
    "zeros": bytes(3000),
    "binary": np.random.default_rng(1).bytes(3000),
    "damaged gzip": b"\x1f\x8b\x08\0" + np.random.default_rng(2).bytes(3000),
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "reads.fa").write_text(f">0\n{READS[0]}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_function_is_tried():
    tried = {name.partition(" ")[0].partition(".")[0] for name in OF_PATH}
    assert tried == set(bwarp.__all__) - {"__version__", "InputError", "UsageError"}


@pytest.mark.parametrize("name", OF_PATH)
@pytest.mark.parametrize("kind", [Path, str])
def test_a_missing_file_is_named(index, folder, name, kind):
    with pytest.raises(bwarp.InputError, match="nothing"):
        OF_PATH[name](index, kind("nothing.tsv"))


@pytest.mark.parametrize("name", OF_PATH)
def test_a_folder_is_not_a_file(index, folder, name):
    (folder / "folder.tsv").mkdir()
    with pytest.raises(bwarp.InputError, match=r"folder\.tsv"):
        OF_PATH[name](index, folder / "folder.tsv")


@pytest.mark.parametrize("name", OF_PATH)
@pytest.mark.parametrize("content", FILES)
def test_a_file_of_something_else_is_named(index, folder, name, content):
    (folder / "other.tsv").write_bytes(FILES[content])
    if content == "empty" and name in MAY_BE_EMPTY:
        OF_PATH[name](index, folder / "other.tsv")
        return
    with pytest.raises(bwarp.InputError, match=r"other\.tsv"):
        OF_PATH[name](index, folder / "other.tsv")


WRONG = {
    "orientation": lambda index: bwarp.find_loci(index, READS, READS, edits=1, orientation="x"),
    "insert_size": lambda index: bwarp.find_loci(index, READS, READS, edits=1, insert_size=3),
    "insert_size text": lambda index: bwarp.Mapper(index, insert_size=("a", "b")),
    "match": lambda index: bwarp.Mapper(index, match="x"),
    "mismatch": lambda index: bwarp.Mapper(index, mismatch=1.5),
    "clip": lambda index: bwarp.Mapper(index, clip="5,5"),
    "min_score": lambda index: bwarp.Mapper(index, min_score="x"),
    "report": lambda index: bwarp.find_loci(index, READS, edits=1, report=None),
    "pam": lambda index: bwarp.find_offtargets(index, READS, pam=3),
    "edits": lambda index: bwarp.find_loci(index, READS, edits=None),
    "similarity": lambda index: bwarp.scan(READS, READS, similarity=None),
    "index": lambda index: bwarp.find_seeds(3, READS),
    "occ_rate": lambda index: bwarp.Index.build(READS, occ_rate="x"),
    "matrix": lambda index: bwarp.search(READS, READS, matrix=3),
    "mode": lambda index: bwarp.align_pairs(READS, READS, mode=3),
    "matrix of pairs": lambda index: bwarp.align_pairs(READS, READS, matrix=3),
    "backend": lambda index: bwarp.find_mems(index, READS, backend=3),
    "guides": lambda index: bwarp.pair_nickases("guides.tsv"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_argument_is_a_sentence(index, name):
    with pytest.raises(bwarp.InputError, match="[a-z]+ "):
        WRONG[name](index)


def test_the_folder_of_a_saved_index_is_a_path(index, tmp_path):
    saved = index.save(os.fspath(tmp_path / "saved"), threads=1)
    assert saved == tmp_path / "saved"
    assert bwarp.Index.open(saved).names == index.names
