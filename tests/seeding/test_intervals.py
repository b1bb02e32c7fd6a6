"""Intervals of several searches are joined, also of none."""

import numpy as np

from bwarp.seeding.intervals import concatenate


def test_joining_no_parts_gives_no_intervals():
    assert concatenate([]).count == 0
    assert concatenate([]).mismatches.dtype == np.uint8
