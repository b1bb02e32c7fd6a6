"""ALT contigs: lists next to references, typed names instead, and their storage in the index."""

import gzip
import json
from dataclasses import replace

import numpy as np
import pytest

from bwarp.errors import InputError, UsageError
from bwarp.index.alt_contigs import (
    alt_list_beside,
    chosen_alt_contigs,
    listed_alt_contigs,
    named_like_alt,
)
from bwarp.index.store import load_index, save_index
from bwarp.reference import make_reference
from tests.helpers.oracles.index_oracle import HOSTILE, index_of

NAMES = ("chr6", "chr6_a_alt", "HLA-A*01:01:01:01", "chrM")


@pytest.fixture
def reference():
    return make_reference(NAMES, np.array([0, 5, 9, 14, 20]), np.arange(20, dtype=np.uint8) % 4)


def test_a_list_is_found_beside_the_reference(tmp_path):
    for name, beside in (("a.fa", "a.fa.alt"), ("b.fa.gz", "b.fa.alt"), ("c.fa.gz", "c.fa.gz.alt")):
        assert alt_list_beside(tmp_path / name) is None
        (tmp_path / beside).write_text("x\n")
        assert alt_list_beside(tmp_path / name) == tmp_path / beside
    (tmp_path / "d.alt").write_text("x\n")
    assert alt_list_beside(tmp_path / "d.fa") is None


@pytest.mark.parametrize(
    "text",
    [
        "chr6_a_alt\nHLA-A*01:01:01:01\n",
        # As in bwa.kit; the last line has no line end.
        "@SQ\tSN:chr6\tLN:5\n@chrM\nchr6_a_alt\t0\tchr6\t1\t30\t4M\t*\r\nother\t16\tchr6\n\n"
        "HLA-A*01:01:01:01\t4\t*",
    ],
)
def test_the_first_column_is_read(reference, tmp_path, text):
    (tmp_path / "list").write_text(text)
    assert listed_alt_contigs(tmp_path / "list", reference) == (1, 2)
    (tmp_path / "list.gz").write_bytes(gzip.compress(text.encode()))
    assert chosen_alt_contigs(str(tmp_path / "list.gz"), reference) == (1, 2)


@pytest.mark.parametrize("text", ["", "@SQ\tSN:chr6\n", "1\n1\tchr6\n2"])
def test_a_list_that_names_no_contig_is_refused(reference, tmp_path, text):
    (tmp_path / "list").write_text(text)
    with pytest.raises(InputError) as refused:
        listed_alt_contigs(tmp_path / "list", reference)
    assert str(refused.value) == (
        f"{tmp_path}/list: no name in its first column is a contig of the reference: correct the "
        "list of ALT contigs, or remove it"
    )


def test_typed_contigs_replace_those_of_the_index(reference):
    known = replace(reference, alt=(1,))
    assert chosen_alt_contigs(None, known) == (1,)
    assert chosen_alt_contigs("none", known) == ()
    assert chosen_alt_contigs("chrM,HLA-A*01:01:01:01,chrM", known) == (2, 3)
    for typed, name in (("chr7", "chr7"), ("chrM,", ""), ("chrM,/no/file", "/no/file")):
        with pytest.raises(UsageError) as refused:
            chosen_alt_contigs(typed, known)
        assert str(refused.value) == (
            f"--alt {name}: no such contig or file: give contigs of the index separated by "
            "commas, a file with one contig per line, or none"
        )


def test_names_like_those_of_alt_contigs():
    assert named_like_alt((*NAMES, "chr1_alternative", "xHLA-1")) == list(NAMES[1:3])


def test_the_index_keeps_them(tmp_path):
    index = index_of(HOSTILE["with gaps"], 64, 3, 2)
    save_index(index, tmp_path / "without")
    with_alt = replace(index, reference=replace(index.reference, alt=(1,)))
    save_index(with_alt, tmp_path / "with")
    assert load_index(tmp_path / "without").reference.alt == ()
    assert load_index(tmp_path / "with").reference.alt == (1,)
    # An index without ALT contigs is the same as before.
    contigs = [
        json.loads((tmp_path / name / "index.json").read_text())["contigs"]
        for name in ("without", "with")
    ]
    assert set(contigs[0][1]) == {"name", "length", "md5"}
    assert contigs[1][1] == contigs[0][1] | {"alt": True}
    assert contigs[1][0] == contigs[0][0]
