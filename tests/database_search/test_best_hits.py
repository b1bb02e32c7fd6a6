"""The best targets of a query, against sorting all of them."""

import numpy as np
import pytest

from bwarp.alignment.scoring import matrix_scoring
from bwarp.database_search import best_hits
from bwarp.database_search.best_hits import Hits, hit_pairs, top_hits
from bwarp.database_search.database import sorted_database


@pytest.mark.parametrize("block", [1, 3, 64])
def test_the_best_targets_are_those_of_a_full_sort(monkeypatch, block):
    monkeypatch.setattr(best_hits, "BLOCK", block)
    rng = np.random.default_rng(81)
    for count in (0, 1, 2, 7, 64, 65, 500):
        order = rng.permutation(count)
        for most in (1, 4, 1000, 2**31 - 1):
            scores = rng.integers(0, most, count).astype(np.int32)
            for top in (1, 2, 10, 10**9):
                for least in (1, 3):
                    ranked = sorted(range(count), key=lambda i: (-scores[i], order[i]))  # noqa: B023
                    expected = [i for i in ranked if scores[i] >= least][:top]
                    assert top_hits(scores, order, top, least).tolist() == expected


def test_pairs_of_hits_have_the_residues_of_query_and_target():
    rng = np.random.default_rng(82)
    size = len(matrix_scoring("BLOSUM62", 11, 1).letters)
    queries = [rng.integers(0, size, n, dtype=np.uint8) for n in (4, 7)]
    targets = [rng.integers(0, size, n, dtype=np.uint8) for n in (9, 2, 30, 5)]
    database = sorted_database(targets, "abcd")
    hits = Hits(np.array([0, 0, 1]), np.array([3, 0, 3]), np.array([5, 4, 3], np.int32))
    pairs = hit_pairs(hits, queries, database)
    for i, (query, target) in enumerate(zip(hits.queries, hits.targets, strict=True)):
        for side, expected in (
            (pairs.queries, queries[query]),
            (pairs.references, database.sequence(target)),
        ):
            start = side.starts[i]
            np.testing.assert_array_equal(side.codes[start : start + side.lengths[i]], expected)
    assert pairs.references.codes.size == 30 + 2
    none = Hits(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32))
    assert hit_pairs(none, queries, database).count == 0
