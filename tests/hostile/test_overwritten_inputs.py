"""An output named like an input is an error in every program, and the input is kept."""

import pytest

from tests.helpers.programs.programs_here import run_here

#: The arguments of each program; IN is the file that would be lost.
ARGUMENTS = {
    "map_reads": ["--index", "index", "-1", "IN", "-o", "o.sam", "--stats", "IN"],
    "extend_candidates": ["--index", "index", "--reads", "r", "--candidates", "IN", "-o", "IN"],
    "write_alignments": [
        "--index", "index", "--reads", "IN", "--loci", "p", "-o", "o.bam", "--stats", "IN",
    ],
    "estimate_allmap_insert_size": [
        "--index", "index", "--reads", "r", "IN", "--loci", "l", "m", "-o", "IN",
    ],
    "estimate_map_insert_size": ["--index", "index", "--batches", "IN", "-o", "IN"],
    "merge_alignments": ["IN.bam", "-o", "IN.bam"],
    "find_seeds": ["--index", "index", "--queries", "IN.over.tsv", "-o", "IN.tsv"],
    "seed_reads": ["--index", "index", "--reads", "IN", "-o", "IN", "--edits", "4"],
    "locate_seeds": ["--index", "index", "--seeds", "IN", "-o", "IN"],
    "merge_loci": ["IN.tsv", "-o", "IN.tsv"],
    "merge_tables": ["IN.tsv", "-o", "IN.tsv"],
    "find_mems": ["--reference", "IN", "--queries", "q.fa", "-o", "IN"],
    "scan_composition": [
        "--reference", "r.fa", "--queries", "IN.tsv", "-o", "IN.tsv", "--similarity", "1",
    ],
    "align_pairs": ["--pairs", "IN.tsv", "-o", "IN.tsv"],
    "search_database": ["--queries", "q.fa", "--database", "IN", "-o", "o", "--alignments", "IN"],
    "find_products": ["--index", "index", "--pairs", "IN.tsv", "-o", "IN.tsv"],
    "list_guides": ["--fasta", "IN", "-o", "IN"],
    "filter_candidates": ["--index", "index", "--reads", "r", "--hits", "IN", "-o", "IN"],
    "count_correct": ["IN", "-o", "IN"],
    "preview_table": ["IN", "-o", "IN"],
    "write_manifest": ["--inputs", "IN", "-o", "IN"],
    "simulate_reads": ["--reference", "IN", "-1", "IN", "--reads", "1"],
}  # fmt: skip


@pytest.mark.parametrize("name", ARGUMENTS)
def test_refused(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = [word.replace("IN", "in") for word in ARGUMENTS[name]]
    lost = next(word for word in arguments if word.split(".")[0] == "in")
    (tmp_path / lost).write_bytes(b"precious")
    done = run_here(name, *arguments, folder=tmp_path)
    assert (done.rc, done.last_line) == (
        2, f"{name}.py: error: {lost}: the name is used by another file of this run: choose "
        "another output",
    )  # fmt: skip
    assert done.left == [lost]
    assert (tmp_path / lost).read_bytes() == b"precious"


@pytest.mark.parametrize(
    ("name", "arguments", "taken"),
    [
        ("map_reads", "--index i -1 r.fq -o o.bam --stats o.bam.bai", "o.bam.bai"),
        ("map_reads", "--index i -1 r.fq -o o.cram --sort --stats o.cram.crai", "o.cram.crai"),
        ("map_reads", "--index i -1 r.fq -o o.cram --reference g.fa --stats g.fa", "g.fa"),
        ("map_reads", "--index i -1 r.fq -o o.sam --regions g.bed --stats g.bed", "g.bed"),
        ("write_alignments", "--index i --reads r --loci p -o o.bam --stats o.bam.bai",
         "o.bam.bai"),
        ("write_alignments", "--index i --reads r --loci p -o o.tsv --stats o.over.tsv",
         "o.over.tsv"),
        ("map_reads", "--index i -1 r.fq -o - --stats -", "-"),
        ("search_database", "--database p.fa --queries q.fa -o o --alignments o", "o"),
    ],
)  # fmt: skip
def test_names_that_a_run_gives_by_itself(name, arguments, taken, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run_here(name, *arguments.split(), folder=tmp_path)
    assert (done.rc, done.left) == (2, [])
    assert f"error: {taken}: the name is used by another file of this run" in done.last_line


@pytest.mark.parametrize("output", ["d.index", "d.index/", "d.index/../d.index", "link", "."])
def test_an_index_over_the_folder_of_its_reference(output, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d.fa").write_text(">d\nACGTTGCAACGTT\n")
    (tmp_path / "link").symlink_to("d.index")
    assert run_here("index_reference", "d.fa", "-o", "d.index", folder=tmp_path).rc == 0
    (tmp_path / "d.fa").rename("d.index/d.fa")
    (tmp_path / "d.index/notes").mkdir()
    before = sorted((tmp_path / "d.index").iterdir())
    done = run_here("index_reference", "d.index/d.fa", "-o", output, folder=tmp_path)
    assert (done.rc, done.last_line) == (
        2, f"index_reference.py: error: {output}: contains d.index/d.fa, which this run uses: "
        "choose another output",
    )  # fmt: skip
    assert sorted((tmp_path / "d.index").iterdir()) == before
    assert done.left == ["d.index", "link"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("find_mems", "--index i --queries q.fa -o i/index.json"),
        ("map_reads", "--index i -1 r.fq -o o.sam --stats i/index.json"),
        ("search_database", "--database i --queries q.fa -o i/index.json"),
    ],
)
def test_a_file_in_the_folder_that_is_searched(name, arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "i").mkdir()
    (tmp_path / "i/index.json").write_text("{}")
    done = run_here(name, *arguments.split(), folder=tmp_path / "i")
    assert (done.rc, done.left) == (2, ["index.json"])
    assert "lies in i, which this run uses: choose another output" in done.last_line
