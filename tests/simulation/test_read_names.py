"""Names and truth, converted in both directions, for all possible contig names."""

import doctest
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bwarp.errors import InputError
from bwarp.simulation import reads as read_names
from bwarp.simulation.reads import (
    EndTruth,
    ReadTruth,
    encode_contig_names,
    parse_read_name,
)


def test_a_pair():
    assert parse_read_name("17:chr20:1042:1192:+:1:0:1390:1540:-:0:2") == ReadTruth(
        17, "chr20", (EndTruth(1042, 1192, False, 1, 0), EndTruth(1390, 1540, True, 0, 2))
    )


def test_a_single_read():
    assert parse_read_name("0:HLA-A%2A01%3A01:0:1:-:0:0") == ReadTruth(
        0, "HLA-A*01:01", (EndTruth(0, 1, True, 0, 0),)
    )


def test_random_sequence_is_not_a_contig_called_star():
    assert parse_read_name("8:*") == ReadTruth(8, None, ())
    assert parse_read_name("8:%2A:3:4:+:0:0").contig == "*"


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)))
def test_contig_names_survive(names):
    text, offsets = encode_contig_names(tuple(names))
    assert offsets[0] == 0
    assert offsets.size == len(names) + 1
    for name, start, stop in zip(names, offsets[:-1], offsets[1:], strict=True):
        encoded = text[start:stop].tobytes().decode("ascii")
        assert re.fullmatch(r"[A-Za-z0-9_.~%-]+", encoded)
        assert parse_read_name(f"1:{encoded}:2:3:+:4:5").contig == name


def test_the_longest_contig_name_makes_a_name_that_sam_allows():
    encode_contig_names(("x" * 168,))
    number, end = 2**40, ":4294967296:4294967296:+:99999:99999"
    assert len(f"{number}:{'x' * 168}{end}{end}") <= 254


def test_a_contig_name_that_is_too_long():
    with pytest.raises(InputError) as error:
        encode_contig_names(("short", "y|" * 80))
    assert str(error.value) == (
        f"contig {'y|' * 20!r}...: the name has 320 characters when percent-encoded, but at most "
        "168 fit in a read name: shorten it"
    )


@pytest.mark.parametrize(
    "name",
    [
        "",
        "read1",
        "SRR001.17",
        "x:chr1:1:2:+:0:0",
        "1:chr1",
        "1::1:2:+:0:0",
        "1:chr1:1:2:+:0",
        "1:chr1:1:2:+:0:0:9",
        "1:chr1:1:2:*:0:0",
        "1:chr1:a:2:+:0:0",
        "1:chr%FF:1:2:+:0:0",
        "chr20_31337_31700_0_1_0_0_2:0:0_1:0:0_a",
    ],
)
def test_names_without_the_truth(name):
    with pytest.raises(InputError) as error:
        parse_read_name(name)
    assert str(error.value) == (
        f"read name {name!r} does not contain the origin of the read: use reads of bwarp "
        "simulate-reads or dwgsim"
    )


def test_the_examples_of_the_module_and_the_page_are_true(checkout):
    page = str(checkout / "docs" / "simulate.md")
    assert doctest.testfile(page, module_relative=False) == (0, 2)
    assert doctest.testmod(read_names) == (0, 1)
