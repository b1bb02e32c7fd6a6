"""Ranges cover all items in order, fit, and could not be longer."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bwarp.runtime.ranges import bounded_ranges, offsets_of


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
