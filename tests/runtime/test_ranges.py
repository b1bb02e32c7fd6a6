"""Ranges cover all items in order, and are as long as allowed; parts are joined in order."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from bwarp.runtime.threads import bounded_ranges, joined_stretches, offsets_of


@given(st.lists(st.integers(0, 9)), st.integers(0, 20), st.integers(1, 12))
def test_ranges_are_the_longest_that_fit(sizes, begin, most):
    offsets = begin + np.cumsum([0, *sizes])
    ranges = list(bounded_ranges(offsets, most))
    assert [item for start, stop in ranges for item in range(start, stop)] == [*range(len(sizes))]
    for start, stop in ranges:
        assert sum(sizes[start:stop]) <= most or stop == start + 1
        assert stop == len(sizes) or sum(sizes[start : stop + 1]) > most


@given(st.lists(st.integers(0, 9)), st.integers(0, 3))
def test_offsets_are_where_searching_finds_them(owners, more):
    owners = np.sort(np.array(owners, np.int32))
    count = int(owners.max(initial=0)) + 1 + more
    assert offsets_of(owners, count).tolist() == [*np.searchsorted(owners, np.arange(count + 1))]


@settings(deadline=None)  # the first call compiles
@given(st.binary(), st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99))))
def test_stretches_are_copied_one_after_another(text, bounds):
    spans = np.array([sorted(pair) for pair in bounds], np.int64).reshape(-1, 2)
    spans = np.minimum(spans, len(text))
    offsets = np.cumsum([0, *(spans[:, 1] - spans[:, 0])])
    got = joined_stretches(np.frombuffer(text, np.uint8), spans[:, 0], offsets)
    assert got.tobytes() == b"".join(text[start:stop] for start, stop in spans)
