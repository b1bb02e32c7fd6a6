"""Degenerate primers written out, against Biopython's table of letters."""

import itertools

from Bio.Data.IUPACData import ambiguous_dna_values

from bwarp.seeding.degenerate_primers import LETTER_OF_BYTE, count_forms, forms
from tests.helpers.programs.programs_here import run_here


def test_forms_of_every_letter():
    for letter, meant in ambiguous_dna_values.items():
        if letter != "X":
            assert [bases for _, bases in forms(letter)] == sorted(meant)
            assert LETTER_OF_BYTE[ord(letter.lower())] == ord(letter)


def test_forms_of_a_primer():
    primer = "GARYTNA"
    found = list(forms(primer))
    expected = itertools.product("AG", "CT", "ACGT")
    assert found == [(f"{r}{y}{n}", f"GA{r}{y}T{n}A") for r, y, n in expected]
    assert count_forms(primer) == len(found) == 16
    assert list(forms("ACGT")) == [("", "ACGT")]


def test_the_program(tmp_path):
    primers, output = tmp_path / "p.fa", tmp_path / "o.fa"
    primers.write_text(">a one\nACGU\n>b\nrACgt\n>c\nANN\n")
    done = run_here("expand_primers", primers, "-o", output, folder=tmp_path)
    assert (done.rc, done.said) == (0, "3 primers written out as 19 sequences\n")
    text = output.read_text()
    assert text.startswith(">a\nACGT\n>b_A\nAACGT\n>b_G\nGACGT\n>c_AA\nAAA\n")
    output.unlink()
    done = run_here("expand_primers", primers, "-o", output, "--most", 15, folder=tmp_path)
    assert (done.rc, done.left) == (1, ["p.fa"])
    assert done.said == (
        f"expand_primers.py: error: {primers}: record 3 (c) stands for 16 sequences, and 15 are "
        "the most: raise --most, or take fewer of N\n"
    )
    primers.write_text(">\nACGT\n")
    done = run_here("expand_primers", primers, "-o", output, folder=tmp_path)
    assert done.last_line == (
        f"expand_primers.py: error: {primers}: record 1 has no name: write one after its > or @"
    )
