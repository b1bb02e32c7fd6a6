"""Programs with an index that lacks the reverse BWT needed for their search."""

import os

import pytest

from bwarp.index.store import save_index
from tests.helpers.oracles.index_oracle import HOSTILE, index_of
from tests.helpers.programs.programs_here import run_here

MISMATCHES, UNIQUE = "a search with mismatches", "a search for unique matches"

NEED_IT = [
    ("find_seeds", MISMATCHES, ("--queries", "q.fa", "-o", "o.tsv", "--mismatches", 1)),
    ("find_seeds", MISMATCHES, ("--queries", "q.fa", "-o", "o.tsv", "--mismatches", 2,
     "--count-only", "--algorithm", "backtracking")),
    ("find_mems", UNIQUE, ("--queries", "q.fa", "-o", "o.mums")),
    ("find_mems", UNIQUE, ("--queries", "q.fa", "-o", "o.paf", "--kind", "mum")),
]  # fmt: skip

NEED_IT_NOT = [
    ("find_seeds", ("--queries", "q.fa", "-o", "o.tsv")),
    ("find_seeds", ("--queries", "q.fa", "-o", "o.tsv", "--count-only")),
    ("find_mems", ("--queries", "q.fa", "-o", "o.mums", "--kind", "maxmatch")),
    ("find_mems", ("--queries", "q.fa", "-o", "o.mums", "--chunk-bases", 1000)),
    ("map_reads", ("-1", "q.fa", "-o", "o.sam")),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("without reverse")
    save_index(index_of(HOSTILE["random"], with_reverse=False), folder / "genome.index")
    (folder / "q.fa").write_bytes(b">q\n%b\n" % HOSTILE["random"][0][100:160])
    return folder


@pytest.mark.parametrize(("program", "search", "arguments"), NEED_IT)
def test_the_one_command_to_type_is_named(folder, monkeypatch, program, search, arguments):
    monkeypatch.chdir(folder)
    before = sorted(os.listdir(folder))
    done = run_here(program, "--index", "genome.index", *arguments, folder=folder)
    assert done.rc == 2
    assert done.last_line == (
        f"{program}.py: error: genome.index: no reverse BWT, which {search} requires: add it with "
        "bwarp index -o genome.index --with-reverse"
    )
    assert sorted(os.listdir(folder)) == before


@pytest.mark.parametrize(("program", "arguments"), NEED_IT_NOT)
def test_programs_that_need_one_bwt_run_with_one(folder, monkeypatch, program, arguments):
    monkeypatch.chdir(folder)
    reference = [] if "--chunk-bases" in arguments else ["--index", "genome.index"]
    if not reference:
        (folder / "g.fa").write_bytes(b">g\n%b\n" % HOSTILE["random"][0])
        reference = ["--reference", "g.fa"]
    done = run_here(program, *reference, *arguments, folder=folder)
    assert done.rc == 0, done.said


def test_the_named_command_is_sufficient(folder, monkeypatch):
    monkeypatch.chdir(folder)
    assert run_here(
        "index_reference", "-o", "genome.index", "--with-reverse", folder=folder
    ).rc == 0  # fmt: skip
    (folder / "q.fa").write_bytes((folder / "q.fa").read_bytes())
    for program, _, arguments in NEED_IT:
        done = run_here(program, "--index", "genome.index", *arguments, folder=folder)
        assert done.rc == 0, done.said
