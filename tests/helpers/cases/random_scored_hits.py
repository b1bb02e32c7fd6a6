"""Random scored hits of reads of 100 bases on 2,900 bases, and which of them share bases."""

import numpy as np

from bwarp.mapping.scored_hits_cpu import ScoredHits

LENGTH = 100


def random_hits(rng, n_reads):
    """Return hits of reads on three contigs, with few distinct scores, so that many are equal."""
    rows = []
    for read in range(n_reads):
        found = []
        for _ in range(rng.integers(0, 9)):
            begin, end = sorted(rng.choice(11, 2, replace=False) * 10)
            start = int(rng.integers(0, 2900))
            found.append((read, int(rng.integers(2)), int(rng.choice([20, 30, 60, 70, 80])),
                          start, start + int(end - begin), int(begin), int(end)))  # fmt: skip
        rows += sorted(found, key=lambda row: -row[2])
    reads, strands, scores, starts, ends, begins, stops = np.array(rows, np.int64).T
    counts = np.bincount(reads, minlength=n_reads)
    return ScoredHits(
        reads.astype(np.int32), strands.astype(np.uint8), scores.astype(np.int32), starts, ends,
        begins.astype(np.int32), stops.astype(np.int32), np.ones(reads.size, bool), starts, ends,
        np.concatenate([[0], np.cumsum(counts)]),
    )  # fmt: skip


def span(hits, i):
    """Return the bases of the read, in sequencing order, that a hit aligns."""
    begin, end = int(hits.read_starts[i]), int(hits.read_ends[i])
    return (LENGTH - end, LENGTH - begin) if hits.strands[i] else (begin, end)


def overlap(hits, i, j):
    """Return whether two hits share at least half of the read bases of the shorter one."""
    one, two = span(hits, i), span(hits, j)
    shared = min(one[1], two[1]) - max(one[0], two[0])
    return 2 * shared >= min(one[1] - one[0], two[1] - two[0])
