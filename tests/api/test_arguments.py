"""Paths are str or PathLike, and every wrong argument raises bwarp.InputError."""

import os
from pathlib import Path

import pytest

import bwarp

READS = ["ACGTACGTAACACGTACGTA"]

#: Calls whose argument is a file or a folder.
OF_PATH = {
    "Index.open": lambda index, path: bwarp.Index.open(path),
    "Index.build": lambda index, path: bwarp.Index.build(path),
    "Mapper": lambda index, path: bwarp.Mapper(path),
    "map": lambda index, path: bwarp.Mapper(index).map(path),
    "alt": lambda index, path: bwarp.Mapper(index, alt=path),
    "find_loci": lambda index, path: bwarp.find_loci(index, READS, path, edits=1),
    "find_seeds": lambda index, path: bwarp.find_seeds(index, path),
    "find_mems": lambda index, path: bwarp.find_mems(index, path),
    "find_offtargets": lambda index, path: bwarp.find_offtargets(index, path),
    "find_products": lambda index, path: bwarp.find_products(index, path),
    "list_guides": lambda index, path: bwarp.list_guides(path),
    "list_guides bed": lambda index, path: bwarp.list_guides(index, bed=path),
    "scan": lambda index, path: bwarp.scan(path, READS, similarity=0.9),
    "scan reference": lambda index, path: bwarp.scan(READS, path, similarity=0.9),
    "align_pairs": lambda index, path: bwarp.align_pairs(path, READS),
    "search": lambda index, path: bwarp.search(READS, path),
    "read_table": lambda index, path: bwarp.read_table(path),
}


@pytest.mark.parametrize("name", OF_PATH)
@pytest.mark.parametrize("kind", [Path, str])
def test_a_missing_file_is_named(index, tmp_path, monkeypatch, name, kind):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(bwarp.InputError, match="nothing"):
        OF_PATH[name](index, kind("nothing.tsv"))


@pytest.mark.parametrize("name", OF_PATH)
def test_a_folder_is_not_a_file(index, tmp_path, name):
    (tmp_path / "folder.tsv").mkdir()
    with pytest.raises(bwarp.InputError, match=r"folder\.tsv"):
        OF_PATH[name](index, tmp_path / "folder.tsv")


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
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_argument_is_a_sentence(index, name):
    with pytest.raises(bwarp.InputError, match="[a-z]+ "):
        WRONG[name](index)


def test_the_folder_of_a_saved_index_is_a_path(index, tmp_path):
    saved = index.save(os.fspath(tmp_path / "saved"), threads=1)
    assert saved == tmp_path / "saved"
    assert bwarp.Index.open(saved).names == index.names
