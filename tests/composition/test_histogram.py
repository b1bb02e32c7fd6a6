"""Base counts, and queries grouped by length and counts."""

import numpy as np

from bwarp.composition.histogram import count_bases
from tests.helpers.oracles.composition_oracle import queries_of, random_texts


def test_counts_are_those_of_the_bases():
    rng = np.random.default_rng(3)
    texts = [*random_texts(rng, 50, 0, 40, ambiguous=0.2), [2] * 60000]
    codes, offsets, _ = queries_of(texts)
    counts = count_bases(codes, offsets)
    assert counts.dtype == np.uint16
    assert counts.tolist() == [[text.count(base) for base in range(4)] for text in texts]


def test_groups_hold_every_query_once_with_its_own_counts():
    rng = np.random.default_rng(4)
    texts = random_texts(rng, 400, 0, 6, ambiguous=0.1)
    _, _, groups = queries_of(texts)
    assert [group.length for group in groups] == [1, 2, 3, 4, 5, 6]
    seen = []
    for group in groups:
        assert (np.diff(group.queries) > 0).all()
        assert len(np.unique(group.counts, axis=0)) == len(group.counts)
        for query, member in zip(group.queries, group.group_of_query, strict=True):
            text = texts[query]
            assert len(text) == group.length
            assert group.counts[member].tolist() == [text.count(x) for x in range(4)]
            seen.append(query)
    assert sorted(seen) == [i for i, text in enumerate(texts) if text]


def test_groups_stand_in_the_order_in_which_they_first_appear():
    _, _, (first, second) = queries_of([[3, 3], [0, 0, 1], [0, 1], [1, 0], [3, 3]])
    assert first.counts.tolist() == [[0, 0, 0, 2], [1, 1, 0, 0]]
    assert first.queries.tolist() == [0, 2, 3, 4]
    assert first.group_of_query.tolist() == [0, 1, 1, 0]
    assert second.queries.tolist() == [1]
