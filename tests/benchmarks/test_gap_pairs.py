"""Haplotypes with an insertion and a deletion of one length near each other, and their reads."""

import sys
from pathlib import Path

import numpy as np
import pytest

import bwarp
from bwarp.sequence import decode
from tests.helpers.oracles.mapping_oracle import index_and_genome

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from parts.gap_pairs import APART, BETWEEN, LONGEST, with_gap_pairs


@pytest.fixture(scope="module")
def both() -> tuple[np.ndarray, np.ndarray]:
    """Return a genome and its haplotype."""
    codes = np.random.default_rng(1).integers(0, 4, 100_000).astype(np.uint8)
    return codes, with_gap_pairs(np.random.default_rng(2), codes)


def test_bases_outside_pairs_stay_and_those_between_gaps_move(both):
    codes, changed = both
    differs = np.flatnonzero(codes != changed)
    assert changed.size == codes.size
    pairs = np.split(
        differs, np.flatnonzero(np.diff(differs) > APART[0] - BETWEEN[1] - LONGEST) + 1
    )
    assert 0.8 < len(pairs) * sum(APART) / 2 / codes.size < 1.2
    moved = 0
    for pair in pairs:
        first, last = pair[0], pair[-1] + 1
        assert last - first <= BETWEEN[1] + LONGEST
        middle = decode(changed[first + LONGEST : last - LONGEST])
        moved += middle in decode(codes[first - LONGEST : last + LONGEST])
    assert moved == len(pairs)


def test_reads_across_pairs_are_aligned_with_both_gaps(both):
    codes, changed = both
    starts = np.random.default_rng(3).integers(0, codes.size - 150, 2000)
    reads = [decode(changed[start : start + 150]).decode() for start in starts]
    found = bwarp.Mapper(index_and_genome([decode(codes)])[0], threads=2).map(reads)
    primary = (found.flags & 2048) == 0
    near = np.abs(found.positions - starts[found.reads])[primary] <= 20
    both_gaps = [("I" in cigar) and ("D" in cigar) for cigar in found.cigars[primary]]
    assert near.mean() > 0.99
    assert np.mean(both_gaps) > 0.45
