"""Cutting queries into parts, and merging the results of the parts: errors."""

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


def test_tables_without_a_header(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "1.tsv").write_text("chr1\t1\t2\n")
    (tmp_path / "2.tsv").write_text("chr2\t3\t4\n")
    run = ("merge_tables", "1.tsv", "2.tsv", "-o", "o.tsv", "--no-header")
    assert run_here(*run, folder=tmp_path).rc == 0
    assert (tmp_path / "o.tsv").read_text() == "chr1\t1\t2\nchr2\t3\t4\n"


def test_proteins_are_cut_for_a_matrix(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "q.fa").write_text(">a\nMLKV\n>b\nLLEQ\n")
    for number, matrix in enumerate(((), ("--matrix", "PAM30"))):
        done = run_here(
            "cut_queries", "--queries", "q.fa", "-o", f"parts{number}", "--parts", "2", "--for",
            "search", *matrix, folder=tmp_path,
        )  # fmt: skip
        assert (done.rc, done.last_line) == (0, "2 queries: 2 parts")
        assert (tmp_path / f"parts{number}" / "1.fa").read_text() == ">a\nMLKV\n"


@pytest.mark.parametrize(
    ("name", "arguments", "rc", "message"),
    [
        ("merge_tables", "1.tsv 2.tsv -o o.bed", 2,
         "o.bed: the output must end in .tsv or .mums"),
        ("merge_tables", "1.tsv 2.mums -o o.tsv", 2,
         "2.mums: all tables must end in .tsv, like the output"),
        ("merge_tables", "1.tsv 2.tsv -o o.tsv", 1, "2.tsv: the header differs from that of "
         "1.tsv: make it again"),
        ("merge_tables", "1.tsv cut.tsv -o o.tsv", 1, "cut.tsv: the header differs from that of "
         "1.tsv: make it again"),
        ("cut_queries", "--queries q.fa -o parts --parts 2 --for seeds --match 2", 2,
         "--matrix and --match require --for search"),
        ("cut_queries", "--queries - -o parts --parts 2 --for seeds", 2,
         "-: the queries are read twice: use a file, not standard input"),
        ("cut_queries", "--queries pipe -o parts --parts 2 --for seeds", 2,
         "pipe: the queries are read twice: use a file, not standard input"),
        ("cut_queries", "--queries q.fa -o parts --parts 3 --for mems", 1,
         "q.fa: 2 sequences cannot be cut into 3 parts: use fewer parts"),
        ("cut_queries", "--queries q.fa -o parts --parts 3 --for scan", 1,
         "q.fa: 2 sequences cannot be cut into 3 parts: use fewer parts"),
        ("cut_queries", "--queries nameless.fa -o parts --parts 2 --for seeds", 1,
         "nameless.fa, record 2 has no name: write one after > or @"),
        ("cut_queries", "--queries nameless.fa -o parts --parts 2 --for mems", 1,
         "nameless.fa, record 2 has no name: write one after > or @"),
        ("cut_queries", "--queries nameless.fa -o parts --parts 2 --for scan", 1,
         "nameless.fa, record 2 has no name: write one after > or @"),
        ("cut_queries", "--queries empty.fa -o parts --parts 2 --for search", 1,
         "empty.fa, record 2 (b) has no sequence: remove it"),
        ("cut_queries", "--queries long.fa -o parts --parts 2 --for scan", 1,
         "long.fa: query 'b' has 70,000 bases, but the maximum is 65,534"),
        ("cut_queries", "--queries protein.fa -o parts --parts 2 --for search --match 1", 1,
         "protein.fa, line 4: 'L' is not a valid sequence letter"),
    ],
)  # fmt: skip
def test_refused(tmp_path, monkeypatch, name, arguments, rc, message):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    (tmp_path / "1.tsv").write_text("a\tb\n1\t2\n")
    (tmp_path / "2.tsv").write_text("a\tc\n1\t2\n")
    (tmp_path / "cut.tsv").write_text("a\tb")
    (tmp_path / "q.fa").write_text(">1\nACGT\n>2\nACGT\n")
    (tmp_path / "nameless.fa").write_text(">1\nACGT\n>\nACGT\n")
    (tmp_path / "empty.fa").write_text(">a\nACGT\n>b\n>c\nACGT\n")
    (tmp_path / "long.fa").write_text(f">a\nACGT\n>b\n{'A' * 70_000}\n")
    (tmp_path / "protein.fa").write_text(">a\nACGT\n>b\nLLLL\n")
    before = sorted(path.name for path in tmp_path.iterdir())
    done = run_here(name, *arguments.split(), folder=tmp_path)
    assert (done.rc, done.last_line) == (rc, f"{name}.py: error: {message}")
    assert sorted(path.name for path in tmp_path.iterdir()) == before
