"""Composition scans by counting bases in each window, and random and difficult inputs."""

import functools
from fractions import Fraction

import numpy as np

from bwarp.composition.histogram import count_bases, group_queries
from bwarp.composition.references import References


def hits_by_counting(references: References, codes, offsets, similarity: Fraction) -> dict:
    """Return {query: [(position, distance), ...]} for queries with hits, sorted by position."""
    hits = {}
    texts = [
        (int(start), references.codes[start:stop].tobytes())
        for start, stop in zip(references.starts, references.starts[1:], strict=False)
    ]
    for query in range(len(offsets) - 1):
        bases = codes[offsets[query] : offsets[query + 1]].tobytes()
        length = len(bases)
        if length == 0:
            continue
        near = [1 - Fraction(distance, length) >= similarity for distance in range(2 * length + 1)]
        found = [
            (start + at, distance)
            for start, text in texts
            for at, distance in enumerate(_distances(text, bases))
            if near[distance]
        ]
        if found:
            hits[query] = found
    return hits


@functools.cache
def _distances(text: bytes, bases: bytes) -> list[int]:
    """Return the distance of each window; cached for all algorithms and similarities."""
    length = len(bases)
    wanted = [bases.count(base) for base in range(4)]
    windows = (text[at : at + length] for at in range(len(text) - length + 1))
    return [sum(abs(window.count(x) - wanted[x]) for x in range(4)) for window in windows]


def hits_of_blocks(blocks) -> dict:
    """Return blocks of hits as in `hits_by_counting`; check the order of the queries."""
    hits = {}
    for block in blocks:
        for query, group in zip(block.queries.tolist(), block.group_of_query, strict=True):
            rows = slice(block.edges[group], block.edges[group + 1])
            assert query not in hits
            found = zip(block.positions[rows].tolist(), block.distances[rows].tolist(), strict=True)
            hits[query] = list(found)
    return {query: rows for query, rows in hits.items() if rows}


def references_of(texts) -> References:
    """Return references from lists of codes."""
    lengths = [len(text) for text in texts]
    return References(
        [f"r{i}" for i in range(len(texts))],
        np.array([code for text in texts for code in text], np.uint8),
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
    )


def queries_of(texts):
    """Return codes, offsets and groups of queries given as lists of codes."""
    codes = np.array([code for text in texts for code in text], np.uint8)
    lengths = np.array([len(text) for text in texts], np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return codes, offsets, group_queries(count_bases(codes, offsets), lengths)


def random_texts(rng, n, shortest, longest, ambiguous=0.0, weights=(0.25, 0.25, 0.25, 0.25)):
    """Return lists of random codes, some of them ambiguous."""
    texts = []
    for length in rng.integers(shortest, longest + 1, n):
        text = rng.choice(4, length, p=weights)
        text[rng.random(length) < ambiguous] = 4
        texts.append(text.tolist())
    return texts


#: Name -> (references, queries), with all difficult cases for windows.
def hostile_inputs() -> dict:
    rng = np.random.default_rng(20)
    return {
        "one base": (references_of([[0]]), [[0], [1], [4], []]),
        "no reference long enough": (references_of([[0, 1], [2]]), [[0, 1, 2]]),
        "empty references between": (references_of([[], [0, 1, 2, 3], [], [3, 2], []]), [[0, 1]]),
        "homopolymers": (references_of([[0] * 300, [1] * 300]), [[0] * 255, [1] * 20, [2] * 7]),
        "ambiguous only": (references_of([[4] * 90]), [[4] * 5, [0] * 5, [4, 4, 0, 0]]),
        "runs of N": (
            references_of([[0, 1, 2, 3] * 10 + [4] * 30 + [3, 2, 1, 0] * 10, [4, 0] * 40]),
            [[0, 1, 2, 3] * 3, [0, 4] * 6, [4, 1, 2, 3, 0, 1]],
        ),
        "many short references": (
            references_of(random_texts(rng, 300, 0, 25)),
            random_texts(rng, 40, 1, 24),
        ),
        "skewed": (
            references_of(random_texts(rng, 3, 200, 900, 0.01, (0.7, 0.1, 0.1, 0.1))),
            random_texts(rng, 40, 10, 12, 0.02, (0.6, 0.2, 0.1, 0.1)),
        ),
    }
