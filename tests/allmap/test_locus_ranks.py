"""Ranks of loci against a plain loop."""

import math

import numpy as np
import pytest

from bwarp.allmap.locus_ranks import rank_loci
from bwarp.allmap.options import FoundLoci

EDITS = 3
MASK = (1 << 64) - 1


def some_loci(seed: int) -> FoundLoci:
    """Make loci of reads with none, one or many of them, ordered by read, strand and start."""
    rng = np.random.default_rng(seed)
    counts = rng.choice([0, 0, 1, 1, 2, 5, 40], 60)
    reads = np.repeat(np.arange(counts.size), counts)
    strands = rng.integers(0, 2, reads.size).astype(np.uint8)
    starts = rng.permutation(4 * reads.size)[: reads.size]
    order = np.lexsort((starts, strands, reads))
    distances = rng.integers(0, EDITS + 1, reads.size).astype(np.int32)
    searched = rng.choice([-1, 1, EDITS], counts.size).astype(np.int32)
    searched[counts > 0] = EDITS
    return FoundLoci(reads, strands[order], starts[order], starts[order] + 9, distances, searched)


def drawn(number: int) -> int:
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & MASK
    return number ^ (number >> 31)


@pytest.mark.parametrize("seed", range(5))
def test_single_reads(seed):
    first_read = 1000 * seed
    loci = some_loci(seed)
    ranks = rank_loci(loci, first_read)
    for read in range(len(loci.searched)):
        here = [i for i in range(len(loci.reads)) if loci.reads[i] == read]
        here.sort(key=lambda i: (loci.distances[i], loci.starts[i], loci.strands[i]))
        assert ranks.order[ranks.first_loci[read] : ranks.first_loci[read + 1]].tolist() == here
        if not here:
            assert ranks.primary[read] == -1
            assert ranks.mapping_qualities[read] == ranks.best[read] == ranks.others[read] == 0
            continue
        least = loci.distances[here[0]]
        n_best = int(sum(loci.distances[i] == least for i in here))
        assert (ranks.best[read], ranks.others[read]) == (n_best, len(here) - n_best)
        assert ranks.order[ranks.primary[read]] == here[drawn(first_read + read) % n_best]
        weights = [10.0 ** (-3 * (int(loci.distances[i]) - int(least))) for i in here]
        wrong = 1 - 1 / (sum(weights) + 10.0 ** (-3 * (EDITS + 1 - int(least))))
        wanted = 60 if wrong <= 1e-6 else min(60, round(-10 * math.log10(wrong)))
        assert ranks.mapping_qualities[read] == wanted


def test_no_loci():
    empty = np.empty(0, np.int64)
    loci = FoundLoci(
        empty,
        empty.astype(np.uint8),
        empty,
        empty,
        empty.astype(np.int32),
        np.full(3, -1, np.int32),
    )
    ranks = rank_loci(loci, 0)
    assert ranks.primary.tolist() == [-1, -1, -1]
    assert ranks.mapping_qualities.tolist() == [0, 0, 0]
    assert not ranks.order.size
