"""The 5' part of a split read as its primary hit, against the rule written with lists."""

import numpy as np

from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.primary_hits_cpu import five_prime_first, select_single, single_end_mapq
from tests.helpers.cases.random_scored_hits import LENGTH, overlap, random_hits, span

PARAMETERS = MappingParameters()


def test_random_hits():
    rng = np.random.default_rng(2)
    n_reads = 3000
    hits = random_hits(rng, n_reads)
    lengths = np.full(n_reads, LENGTH)
    primary = select_single(
        hits, lengths, np.zeros(n_reads, np.int32), PARAMETERS,
        rng.integers(0, 1 << 60, n_reads).astype(np.uint64),
    )  # fmt: skip
    before = [column.tolist() for column in primary]
    moved = five_prime_first(hits, lengths, primary, PARAMETERS)
    n_moved = 0
    for read in range(n_reads):
        chosen = primary.hits[read]
        if chosen < 0:
            assert moved.hits[read] == -1
            continue
        rows = range(hits.offsets[read], hits.offsets[read + 1])
        parts = [chosen]
        for i in rows:
            if hits.scores[i] >= 30 and not any(overlap(hits, i, j) for j in parts):
                parts.append(i)
        first = min(parts, key=lambda i: span(hits, i)[0])
        assert moved.hits[read] == first
        if first == chosen:
            assert moved.qualities[read] == primary.qualities[read]
            assert moved.suboptimal[read] == primary.suboptimal[read]
            continue
        n_moved += 1
        others = [int(hits.scores[j]) for j in rows if j != first and overlap(hits, first, j)]
        assert moved.suboptimal[read] == max(others, default=0)
        near = sum(score >= hits.scores[first] - 7 for score in others)
        assert moved.qualities[read] == single_end_mapq(
            hits.scores[first], max(others, default=0), near, hits.ends[first] - hits.starts[first],
            0, 1, -4,
        )  # fmt: skip
    assert n_moved > 100
    assert [column.tolist() for column in primary] == before
