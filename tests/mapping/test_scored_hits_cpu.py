"""Hits of reads in columns: extracted, and put back."""

import numpy as np
import pytest

from bwarp.mapping.scored_hits_cpu import ScoredHits, hits_at, replaced


def random_hits(rng, counts):
    n, n_reads = int(counts.sum()), len(counts)
    types = (np.uint8, np.int32, np.int64, np.int64, np.int32, np.int32, bool, np.int64, np.int64)
    columns = [rng.integers(0, 100, n).astype(kind) for kind in types]
    reads = np.repeat(np.arange(n_reads), counts).astype(np.int32)
    return ScoredHits(reads, *columns, np.concatenate([[0], np.cumsum(counts)]))


def by_read(hits):
    """Return the hits of each read, as tuples of their columns."""
    rows = list(zip(*(column.tolist() for column in hits[:-1]), strict=True))
    return [rows[a:b] for a, b in zip(hits.offsets, hits.offsets[1:], strict=False)]


@pytest.mark.parametrize("share", [0.0, 0.1, 0.9, 1.0])
@pytest.mark.parametrize("n_reads", [0, 1, 50])
def test_hits_of_a_few_reads_are_replaced(n_reads, share):
    rng = np.random.default_rng(n_reads)
    hits = random_hits(rng, rng.integers(0, 5, n_reads))
    few = random_hits(rng, rng.integers(1, 4, n_reads) * (rng.random(n_reads) < share))
    found = replaced(hits, few)
    pairs = zip(by_read(hits), by_read(few), strict=True)
    assert by_read(found) == [new or old for old, new in pairs]
    assert [column.dtype for column in found] == [column.dtype for column in hits]


def test_hits_that_are_taken_out_and_put_back_are_the_same():
    rng = np.random.default_rng(3)
    hits = random_hits(rng, rng.integers(0, 5, 40))
    rows = np.flatnonzero(hits.reads % 3 == 1)
    few = hits_at(hits, rows)
    assert by_read(few) == [own if i % 3 == 1 else [] for i, own in enumerate(by_read(hits))]
    assert by_read(replaced(hits, few)) == by_read(hits)
