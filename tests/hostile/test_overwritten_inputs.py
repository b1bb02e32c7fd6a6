"""An output named like an input: every program refuses, and the input stays."""

import pytest
from programs_here import run_here

#: Of each program, its arguments; IN is the file that would be lost.
ARGUMENTS = {
    "map_reads": ["--index", "index", "-1", "IN", "-o", "o.sam", "--stats", "IN"],
    "chunk_reads": ["-1", "r.fq", "-2", "IN", "-o", "IN"],
    "seed_chunks": ["--index", "index", "--reads", "IN", "-o", "IN"],
    "locate_chunks": ["--index", "index", "--rows", "IN", "-o", "IN"],
    "extend_candidates": ["--index", "index", "--reads", "r", "--candidates", "IN", "-o", "IN"],
    "write_alignments": [
        "--index", "index", "--reads", "IN", "--places", "p", "-o", "o.sam", "--stats", "IN",
    ],
    "merge_alignments": ["IN.bam", "-o", "IN.bam"],
    "find_seeds": ["--index", "index", "--queries", "IN.over.tsv", "-o", "IN.tsv"],
    "batch_reads": ["--queries", "IN", "-o", "IN"],
    "seed_reads": ["--index", "index", "--kmers", "IN", "-o", "IN"],
    "locate_seeds": ["--index", "index", "--seeds", "IN.tsv", "-o", "IN.tsv"],
    "find_mems": ["--reference", "IN", "--queries", "q.fa", "-o", "IN"],
    "scan_composition": [
        "--reference", "r.fa", "--queries", "IN.tsv", "-o", "IN.tsv", "--similarity", "1",
    ],
    "align_pairs": ["--pairs", "IN.tsv", "-o", "IN.tsv"],
    "search_database": ["--queries", "q.fa", "--database", "IN", "-o", "o", "--alignments", "IN"],
    "expand_primers": ["IN", "-o", "IN"],
    "filter_candidates": [
        "--index", "index", "--reads", "r.npz", "--candidates", "IN.npz", "-o", "IN.npz",
    ],
    "count_right": ["IN", "-o", "IN"],
    "preview_table": ["IN", "-o", "IN"],
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
        2, f"{name}.py: error: {lost} is given twice: every file needs a name of its own",
    )  # fmt: skip
    assert done.left == [lost]
    assert (tmp_path / lost).read_bytes() == b"precious"
