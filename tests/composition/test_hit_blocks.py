"""The best hits of a query, and hits joined into regions."""

import numpy as np

from bwarp.composition.references import HitBlock, best_hits, join_regions


def block_of(length, *groups):
    """Return a block with one query per group; a group is a list of (position, distance)."""
    rows = [row for group in groups for row in group]
    return HitBlock(
        length,
        np.arange(len(groups)),
        np.arange(len(groups)),
        np.cumsum([0, *(len(group) for group in groups)]),
        np.array([position for position, _ in rows], np.uint32),
        np.array([distance for _, distance in rows], np.uint16),
    )


def regions(block):
    return [
        list(
            zip(
                block.positions[first:last].tolist(),
                block.windows[first:last].tolist(),
                block.distances[first:last].tolist(),
                strict=True,
            )
        )
        for first, last in zip(block.edges, block.edges[1:], strict=False)
    ]


def test_best_hits_are_the_nearest_and_then_the_first():
    rng = np.random.default_rng(6)
    hits = np.array([0, 7, 1, 0, 40])
    positions = np.concatenate([np.sort(rng.choice(99, n, False)) for n in hits]).astype(np.uint32)
    distances = rng.integers(0, 4, hits.sum()).astype(np.uint16)
    rows = np.split(np.arange(hits.sum()), np.cumsum(hits)[:-1])
    for wanted in (1, 3, 50):
        n, found, near = best_hits(hits, positions, distances, wanted)
        assert n.tolist() == np.minimum(hits, wanted).tolist()
        expected = [
            row
            for group in rows
            for row in sorted((distances[i], positions[i]) for i in group)[:wanted]
        ]
        assert list(zip(near, found, strict=True)) == expected


def test_neighbouring_windows_become_regions_with_their_nearest_distance():
    block = block_of(4, [(3, 2), (4, 0), (5, 2), (9, 1)], [], [(5, 3), (6, 4), (10, 0), (11, 0)])
    joined = join_regions(block, np.array([0, 100]))
    assert regions(joined) == [[(3, 3, 0), (9, 1, 1)], [], [(5, 2, 3), (10, 2, 0)]]


def test_regions_end_with_their_reference():
    # Windows of one base are adjacent across two references.
    block = block_of(1, [(4, 0), (5, 0), (6, 0)])
    assert regions(join_regions(block, np.array([0, 5, 9]))) == [[(4, 1, 0), (5, 2, 0)]]


def test_regions_of_different_queries_stay_apart():
    block = block_of(2, [(1, 0)], [(2, 0)])
    assert regions(join_regions(block, np.array([0, 9]))) == [[(1, 1, 0)], [(2, 1, 0)]]


def test_no_hits_are_no_regions():
    joined = join_regions(block_of(2, [], []), np.array([0, 9]))
    assert joined.edges.tolist() == [0, 0, 0]
    assert joined.windows.size == 0
