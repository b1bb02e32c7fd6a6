"""Cutting queries into parts, and merging what is found of each: what is refused."""

import os

import pytest

from tests.helpers.programs.programs_here import run_here


def test_tables_of_parts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "1.tsv").write_text("a\tb\n1\t2\n")
    (tmp_path / "2.tsv").write_text("a\tb\n")
    (tmp_path / "3.tsv").write_text("a\tb\n3\t4\n")
    done = run_here("merge_tables", "1.tsv", "2.tsv", "3.tsv", "-o", "o.tsv", folder=tmp_path)
    assert (done.rc, done.last_line) == (0, "o.tsv: 3 tables merged")
    assert (tmp_path / "o.tsv").read_text() == "a\tb\n1\t2\n3\t4\n"


def test_matches_of_parts_have_no_header(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "1.mums").write_text("> a\n 1 2 3\n")
    (tmp_path / "2.mums").write_text("> b\n")
    assert run_here("merge_tables", "1.mums", "2.mums", "-o", "o.mums", folder=tmp_path).rc == 0
    assert (tmp_path / "o.mums").read_text() == "> a\n 1 2 3\n> b\n"


@pytest.mark.parametrize(
    ("name", "arguments", "rc", "message"),
    [
        ("merge_tables", "1.tsv 2.tsv -o o.bed", 2,
         "o.bed: tables are merged as .tsv or .mums: end the name so"),
        ("merge_tables", "1.tsv 2.mums -o o.tsv", 2,
         "2.mums: all tables must end in .tsv, as the output does"),
        ("merge_tables", "1.tsv 2.tsv -o o.tsv", 1, "2.tsv: begins otherwise than 1.tsv: make it "
         "again"),
        ("merge_tables", "1.tsv cut.tsv -o o.tsv", 1, "cut.tsv: begins otherwise than 1.tsv: make "
         "it again"),
        ("cut_queries", "--queries - -o parts --parts 2", 2,
         "-: queries are read twice to be cut: give a file"),
        ("cut_queries", "--queries pipe -o parts --parts 2", 2,
         "pipe: queries are read twice to be cut: give a file"),
        ("cut_queries", "--queries q.fa -o parts --parts 3", 1,
         "q.fa: has 2 sequences, which cannot be cut into 3 parts: ask for fewer parts"),
    ],
)  # fmt: skip
def test_refused(tmp_path, monkeypatch, name, arguments, rc, message):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    (tmp_path / "1.tsv").write_text("a\tb\n1\t2\n")
    (tmp_path / "2.tsv").write_text("a\tc\n1\t2\n")
    (tmp_path / "cut.tsv").write_text("a\tb")
    (tmp_path / "q.fa").write_text(">1\nACGT\n>2\nACGT\n")
    before = sorted(path.name for path in tmp_path.iterdir())
    done = run_here(name, *arguments.split(), folder=tmp_path)
    assert (done.rc, done.last_line) == (rc, f"{name}.py: error: {message}")
    assert sorted(path.name for path in tmp_path.iterdir()) == before
