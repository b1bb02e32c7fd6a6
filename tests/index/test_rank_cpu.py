"""Rank, LF and extension for every row and base, compiled, against the sorted suffixes."""

import numba
import numpy as np
import pytest

from bwarp.index.rank import base_at, block_start, extend_left, lf_step, rank, ranks
from bwarp.reference import text_of
from tests.helpers.oracles.index_oracle import (
    AROUND_A_BLOCK,
    HOSTILE,
    SortedSuffixes,
    index_of,
    turned,
)

SMALL = HOSTILE | AROUND_A_BLOCK


@numba.njit
def everything(words, separator_rows, groups, first_rows, text_start, n_rows):
    """Return the results of the functions for every row: ranks by code, all ranks, base, LF."""
    single = np.empty((n_rows + 1, 4), np.int64)
    together = np.empty((n_rows + 1, 4), np.int64)
    bases = np.empty(n_rows, np.int64)
    steps = np.empty(n_rows, np.int64)
    for row in range(n_rows + 1):
        for code in range(4):
            single[row, code] = rank(words, separator_rows, groups, code, row)
        a, c, g, t = ranks(words, separator_rows, groups, row)
        together[row, 0] = a
        together[row, 1] = c
        together[row, 2] = g
        together[row, 3] = t
        if row < n_rows:
            bases[row] = base_at(words, separator_rows, groups, row)
            steps[row] = lf_step(words, separator_rows, groups, first_rows, text_start, row)
    return single, together, bases, steps


def check_every_row(bwt, oracle: SortedSuffixes) -> None:
    single, together, bases, steps = everything(
        bwt.words,
        bwt.separator_rows,
        bwt.groups,
        bwt.first_rows,
        bwt.text_start,
        bwt.n_rows,
    )
    expected = np.zeros((oracle.n + 1, 5), np.int64)
    for row, code in enumerate(oracle.bases):
        expected[row + 1] = expected[row]
        expected[row + 1, code] += 1
    assert np.array_equal(single, expected[:, :4])
    assert np.array_equal(together, expected[:, :4])
    assert bases.tolist() == oracle.bases
    assert steps.tolist() == [oracle.lf(row) for row in range(oracle.n)]


# Each rate is compiled separately: one and many groups, odd and even numbers of groups.
@pytest.mark.parametrize("occ_rate", [32, 64, 96, 192])
def test_every_row_of_both_directions(occ_rate):
    for contigs in SMALL.values():
        index = index_of(contigs, occ_rate)
        text = text_of(index.reference)
        check_every_row(index.forward, SortedSuffixes(text))
        check_every_row(index.reverse, SortedSuffixes(turned(text)))


@numba.njit
def search(words, separator_rows, groups, first_rows, pattern):
    start = np.uint64(0)
    stop = np.uint64(first_rows[4])
    for i in range(pattern.size - 1, -1, -1):
        start, stop = extend_left(
            words, separator_rows, groups, first_rows, pattern[i], start, stop
        )
    return np.int64(start), np.int64(stop)


@pytest.mark.parametrize("name", ["with gaps", "one base a contig", "tandem repeats", "all A"])
def test_backward_search(name):
    """All patterns of up to 4 bases, and longer ones from the text, in both directions."""
    index = index_of(HOSTILE[name])
    text = text_of(index.reference)
    oracle = SortedSuffixes(text)
    mirrored = SortedSuffixes(turned(text))
    patterns = [[int(c) for c in np.base_repr(i, 4).zfill(k)] for k in (1, 2, 3, 4)
                for i in range(4**k)]  # fmt: skip
    for at in range(0, text.size, 7):
        patterns.append([int(letter) - 1 for letter in text[at : at + 9] if letter])
    for pattern in filter(len, patterns):
        for bwt, suffixes, codes in (
            (index.forward, oracle, pattern),
            (index.reverse, mirrored, pattern[::-1]),
        ):
            start, stop = search(
                bwt.words,
                bwt.separator_rows,
                bwt.groups,
                bwt.first_rows,
                np.array(codes, np.uint8),
            )
            first, count = suffixes.rows_of(codes)
            assert stop - start == count
            assert count == 0 or start == first


def test_borders_of_blocks():
    for groups in (1, 2, 3, 32):
        for row in (0, 1, 32 * groups - 1, 32 * groups, 7 * 32 * groups + 5, 2**32 - 2):
            expected = row // (32 * groups) * (4 + 2 * groups)
            assert block_start(tuple(range(groups)), row) == expected
