"""Positions of rows, for every row and many sampling rates, against the sorted suffixes."""

import numpy as np
import pytest

from bwarp.index.locate_cpu import locate, look_up, step_to_sampled
from bwarp.reference import text_of
from tests.helpers.oracles.index_oracle import AROUND_A_BLOCK, HOSTILE, SortedSuffixes, index_of


@pytest.mark.parametrize("name", HOSTILE | AROUND_A_BLOCK)
def test_every_row(name):
    contigs = (HOSTILE | AROUND_A_BLOCK)[name]
    oracle = None
    for sa_rate in (1, 2, 3, 5, 8, 31, 40, 1024):
        index = index_of(contigs, sa_rate=sa_rate)
        oracle = oracle or SortedSuffixes(text_of(index.reference))
        rows = np.arange(oracle.n, dtype=np.uint32)
        positions = locate(index, rows)
        assert positions.dtype == np.uint32
        assert positions.tolist() == oracle.suffix_array
        sampled, steps = step_to_sampled(index, rows)
        assert sampled.dtype == steps.dtype == np.uint32
        assert not np.any(sampled % sa_rate)
        for row, n_steps, expected in zip(rows, steps, sampled, strict=True):
            there = int(row)
            for _ in range(n_steps):
                assert there % sa_rate
                there = oracle.lf(there)
            assert there == expected
        assert look_up(index, sampled, steps).tolist() == oracle.suffix_array


@pytest.mark.parametrize("sa_rate", range(1, 41))
def test_every_sampling_rate(sa_rate):
    index = index_of(HOSTILE["with gaps"], sa_rate=sa_rate)
    oracle = SortedSuffixes(text_of(index.reference))
    rows = np.random.default_rng(sa_rate).integers(0, oracle.n, 200).astype(np.uint32)
    assert locate(index, rows).tolist() == [oracle.suffix_array[row] for row in rows]


def test_rows_in_any_order_and_number_and_threads():
    rng = np.random.default_rng(9)
    contigs = [rng.choice(np.frombuffer(b"ACGT", np.uint8), 40_000).tobytes()]
    index = index_of(contigs, sa_rate=7)
    whole = index_of(contigs, sa_rate=1)
    rows = rng.integers(0, 40_001, 50_000).astype(np.uint32)
    expected = whole.suffix_array[rows]
    for threads in (1, 3):
        assert np.array_equal(locate(index, rows, threads), expected)
    assert locate(index, rows[:0]).size == 0
    assert np.array_equal(locate(index, rows[:1]), expected[:1])
    assert rows.dtype == np.uint32
    before = rows.copy()
    locate(index, rows)
    assert np.array_equal(rows, before)
