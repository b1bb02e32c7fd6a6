"""Ranges cover all items in order, fit, and could not be longer."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bwarp.runtime.ranges import bounded_ranges


@given(st.lists(st.integers(0, 9)), st.integers(0, 20), st.integers(1, 12))
def test_ranges_are_the_longest_that_fit(sizes, begin, most):
    offsets = begin + np.cumsum([0, *sizes])
    ranges = list(bounded_ranges(offsets, most))
    assert [item for start, stop in ranges for item in range(start, stop)] == [*range(len(sizes))]
    for start, stop in ranges:
        assert sum(sizes[start:stop]) <= most or stop == start + 1
        assert stop == len(sizes) or sum(sizes[start : stop + 1]) > most
