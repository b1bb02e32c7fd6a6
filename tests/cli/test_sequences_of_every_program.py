"""One rule for the input sequences of programs: which accept FASTQ, and records without a name.

Reads may have no name, as in samtools: SAM has a * for it. Records whose names appear in a table or
an index must have one. A reference must be FASTA.
"""

import pysam
import pytest

from tests.helpers.programs.programs_here import run_here

BASES = "ACGTTGCAACGGTATCGGATATCGCCTTAGGCATCGATTAG"

#: The arguments of each program before and after a file of sequences.
TABLES = {
    "seeds": ("find_seeds", "--index", "i", "-k", "10", "-o", "out.tsv", "--queries", "FILE"),
    "mems": ("find_mems", "--index", "i", "-l", "10", "-o", "out.mums", "--queries", "FILE"),
    "search": ("search_database", "--database", "g.fa", "--match", "1", "--mismatch", "-2",
               "-o", "out.tsv", "--queries", "FILE"),
    "database": ("search_database", "--queries", "g.fa", "--match", "1", "--mismatch", "-2",
                 "-o", "out.tsv", "--database", "FILE"),
    "prepared database": ("index_database", "--match", "1", "-o", "out", "FILE"),
    "scan": ("scan_composition", "--reference", "g.fa", "--similarity", "0.9", "-o", "out.tsv",
             "--queries", "FILE"),
    "pairs": ("align_pairs", "--references", "two.fa", "-o", "out.tsv", "--queries", "FILE"),
    "pairs' references": ("align_pairs", "--queries", "two.fa", "-o", "out.tsv", "--references",
                          "FILE"),
    "parts for seeds": ("cut_queries", "--parts", "1", "--for", "seeds", "-o", "out", "--queries",
                        "FILE"),
    "parts for mems": ("cut_queries", "--parts", "1", "--for", "mems", "-o", "out", "--queries",
                       "FILE"),
    "parts for scan": ("cut_queries", "--parts", "1", "--for", "scan", "-o", "out", "--queries",
                       "FILE"),
    "parts for search": ("cut_queries", "--parts", "1", "--for", "search", "-o", "out",
                         "--queries", "FILE"),
}  # fmt: skip

REFERENCES = {
    "index": ("index_reference", "-o", "out", "FILE"),
    "mems": ("find_mems", "--queries", "g.fa", "-l", "10", "-o", "out.mums", "--reference", "FILE"),
    "scan": ("scan_composition", "--queries", "g.fa", "--similarity", "0.9", "-o", "out.tsv",
             "--reference", "FILE"),
    "guides": ("list_guides", "-o", "out.tsv", "--fasta", "FILE"),
    "simulate": ("simulate_reads", "-1", "out.fq", "--reads", "9", "--reference", "FILE"),
}  # fmt: skip

READS = {
    "map": ("map_reads", "--index", "i", "-o", "out.sam", "-1", "FILE"),
    "allmap": ("find_alignments", "--index", "i", "--edits", "2", "-o", "out.bam", "-1", "FILE"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sequences")
    (folder / "g.fa").write_text(f">g\n{BASES}\n")
    (folder / "two.fa").write_text(f">x\n{BASES}\n>y\n{BASES}\n")
    (folder / "nameless.fa").write_text(f">a\n{BASES}\n>\n{BASES}\n")
    (folder / "blank.fa").write_text(f">a\n{BASES}\n>  \t\n{BASES}\n")
    (folder / "reads.fq").write_text(f"@a\n{BASES}\n+\n{'I' * len(BASES)}\n")
    index = ("index_reference", folder / "g.fa", "-o", folder / "i", "--with-reverse")
    done = run_here(*index, folder=folder)
    assert done.rc == 0, done.said
    return folder


def run(folder, tmp_path, monkeypatch, words, file):
    for path in folder.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)
    name, *arguments = words
    return run_here(name, *(word.replace("FILE", file) for word in arguments), folder=tmp_path)


@pytest.mark.parametrize("file", ["nameless.fa", "blank.fa"])
@pytest.mark.parametrize("words", TABLES.values(), ids=TABLES)
def test_sequences_in_tables_must_have_names(folder, tmp_path, monkeypatch, words, file):
    done = run(folder, tmp_path, monkeypatch, words, file)
    assert done.rc == 1
    assert done.last_line == (
        f"{words[0]}.py: error: {file}, record 2 has no name: write one after > or @"
    )


@pytest.mark.parametrize("file", ["nameless.fa", "blank.fa"])
@pytest.mark.parametrize("words", REFERENCES.values(), ids=REFERENCES)
def test_contigs_must_have_names(folder, tmp_path, monkeypatch, words, file):
    done = run(folder, tmp_path, monkeypatch, words, file)
    assert done.rc == 1
    assert file in done.last_line
    assert "name: write" in done.last_line


@pytest.mark.parametrize("words", REFERENCES.values(), ids=REFERENCES)
def test_a_reference_is_fasta(folder, tmp_path, monkeypatch, words):
    done = run(folder, tmp_path, monkeypatch, words, "reads.fq")
    assert done.rc == 1
    assert "reads.fq" in done.last_line
    assert "this looks like FASTQ, but the reference must be FASTA (>name)" in done.last_line


@pytest.mark.parametrize("words", TABLES.values(), ids=TABLES)
def test_other_sequences_may_be_fastq(folder, tmp_path, monkeypatch, words):
    (tmp_path / "two.fq").write_text(f"@a\n{BASES}\n+\n{'I' * 41}\n@b\n{BASES}\n+\n{'I' * 41}\n")
    assert run(folder, tmp_path, monkeypatch, words, "two.fq").rc == 0


@pytest.mark.parametrize("file", ["nameless.fa", "blank.fa"])
@pytest.mark.parametrize("words", READS.values(), ids=READS)
def test_reads_may_have_no_name(folder, tmp_path, monkeypatch, words, file):
    done = run(folder, tmp_path, monkeypatch, words, file)
    assert done.rc == 0, done.said
    with pysam.AlignmentFile(tmp_path / words[words.index("-o") + 1]) as records:
        assert [record.query_name or "*" for record in records] == ["a", "*"]
