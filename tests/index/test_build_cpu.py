"""Building an index on the CPU, against the sorted suffixes of small texts."""

from dataclasses import fields
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bwarp.index.build import build_index, build_reverse
from bwarp.index.bwt_cpu import prefix_table
from bwarp.index.fm_index import BWT, block_words, first_rows_of
from bwarp.index.packed_text_cpu import pack_text
from bwarp.index.parameters import IndexParameters
from bwarp.reference import text_of
from tests.helpers.oracles.index_oracle import (
    AROUND_A_BLOCK,
    HOSTILE,
    SortedSuffixes,
    index_of,
    reference_of,
    turned,
)

SMALL = HOSTILE | AROUND_A_BLOCK


def check_bwt(bwt: BWT, oracle: SortedSuffixes, occ_rate: int) -> None:
    assert bwt.blocks.dtype == np.uint32
    assert bwt.occ_rate == occ_rate
    assert bwt.blocks.shape[1] == block_words(occ_rate)
    assert len(bwt.groups) == occ_rate // 32
    assert np.array_equal(bwt.blocks, oracle.blocks(occ_rate))
    assert np.array_equal(bwt.words, bwt.blocks.ravel())
    separators = [row for row, code in enumerate(oracle.bases) if code == 4]
    assert bwt.separator_rows.tolist() == separators
    assert bwt.separator_rows[bwt.text_start] == oracle.row_of[0]
    firsts = [sum(letter <= code for letter in oracle.text) for code in range(5)]
    assert bwt.first_rows.tolist() == firsts
    assert bwt.n_rows == oracle.n


def check_index(index, contigs, sa_rate: int, prefix_length: int, occ_rate: int) -> None:
    text = text_of(reference_of(contigs))
    oracle = SortedSuffixes(text)
    check_bwt(index.forward, oracle, occ_rate)
    check_bwt(index.reverse, SortedSuffixes(turned(text)), occ_rate)
    assert index.sa_rate == sa_rate
    assert index.occ_rate == occ_rate
    assert index.suffix_array.dtype == np.uint32
    assert index.suffix_array.tolist() == oracle.suffix_array[::sa_rate]
    assert index.prefix_length == prefix_length
    kmers = product(range(4), repeat=prefix_length)
    table = [oracle.rows_of(kmer) for kmer in kmers] if prefix_length else []
    assert index.prefix_table.dtype == np.uint32
    assert index.prefix_table.tolist() == [list(entry) for entry in table]


@pytest.mark.parametrize("name", SMALL)
def test_hostile_contigs(name):
    for occ_rate, sa_rate, prefix_length in ((32, 1, 0), (64, 4, 1), (96, 7, 3), (192, 40, 4)):
        index = index_of(SMALL[name], occ_rate, sa_rate, prefix_length)
        check_index(index, SMALL[name], sa_rate, prefix_length, occ_rate)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.text("AACCGTN", max_size=60).map(str.encode), min_size=1, max_size=8).filter(
        lambda contigs: any(contig.strip(b"N") for contig in contigs)
    ),
    st.integers(1, 33).map(lambda groups: 32 * groups),
    st.integers(1, 40),
    st.integers(0, 4),
    st.integers(1, 4),
)
def test_any_contigs(contigs, occ_rate, sa_rate, prefix_length, threads):
    index = index_of(contigs, occ_rate, sa_rate, prefix_length, threads)
    check_index(index, contigs, sa_rate, prefix_length, occ_rate)


@pytest.mark.parametrize("occ_rate", [*range(32, 257, 32), 1024])
def test_every_occ_rate(occ_rate):
    for name in ("with gaps", "one base a contig", "random"):
        index = index_of(HOSTILE[name], occ_rate, 3, 2)
        check_index(index, HOSTILE[name], 3, 2, occ_rate)


@pytest.mark.parametrize("name", ["with gaps", "one base a contig", "all A", "one base"])
def test_long_prefixes(name):
    """The table has all k-mers that occur, and the others are empty."""
    reference = reference_of(HOSTILE[name])
    text = text_of(reference)
    oracle = SortedSuffixes(text)
    for k in range(5, 9):
        table = prefix_table(pack_text(reference), k)
        assert table.shape == (4**k, 2)
        occurring = {
            text[at : at + k].tobytes() for at in range(text.size - k) if text[at : at + k].all()
        }
        for kmer in occurring:
            codes = [letter - 1 for letter in kmer]
            number = sum(code * 4 ** (k - 1 - i) for i, code in enumerate(codes))
            assert tuple(table[number]) == oracle.rows_of(codes)
            table[number] = 0
        assert not table.any()


def test_first_rows():
    assert first_rows_of(np.array([2, 5, 0, 7, 1])).tolist() == [2, 7, 7, 14, 15]


def arrays_of(index) -> dict[str, np.ndarray]:
    arrays = {"prefix_table": index.prefix_table, "suffix_array": index.suffix_array}
    for direction in ("forward", "reverse"):
        bwt = getattr(index, direction)
        for field in fields(bwt):
            arrays[f"{direction} {field.name}"] = np.asarray(getattr(bwt, field.name))
    return arrays


@pytest.mark.parametrize("separators", [1, 20_000])
def test_the_same_with_any_number_of_threads_and_memory(separators):
    # Long enough for the blocks to be filled in several ranges.
    rng = np.random.default_rng(8)
    letters = np.frombuffer(b"ACGT", np.uint8)
    contigs = [part.tobytes() for part in np.array_split(rng.choice(letters, 400_000), separators)]
    reference = reference_of(contigs)
    parameters = IndexParameters(32, 5, 6)
    alone = arrays_of(build_index(reference, parameters, "cpu", with_reverse=True))
    for threads, memory in ((2, 1 << 40), (4, 1), (13, 1 << 40)):
        together = build_index(reference, parameters, "cpu", threads, memory, with_reverse=True)
        for name, array in arrays_of(together).items():
            assert np.array_equal(array, alone[name]), name
        assert build_index(reference, parameters, "cpu", threads, memory).reverse is None
        added = build_reverse(reference, parameters.occ_rate, "cpu", threads, memory)
        for field in fields(added):
            assert np.array_equal(getattr(added, field.name), alone[f"reverse {field.name}"])
