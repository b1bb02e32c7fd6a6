"""Tables of columns: subsets, joined tables, and renumbered k-mers."""

import numpy as np

from bwarp.seeding.hits import Intervals, joined, taken, with_kmers


def test_rows_are_taken_joined_and_renumbered():
    items, rows = np.array([0, 1, 5], np.uint32), np.array([7, 8, 9], np.uint32)
    intervals = Intervals.of_items(items, rows, rows + np.uint32(1), np.zeros(3, np.int64))
    assert intervals.strands.tolist() == [0, 1, 1]
    both = joined([taken(intervals, slice(1, 3)), taken(intervals, rows == 7)])
    assert both.first_rows.tolist() == [8, 9, 7]
    named = with_kmers(both, np.array([10, 20, 30]))
    assert named.kmers.tolist() == [10, 30, 10]
    dtypes = [np.uint32, np.uint8, np.uint32, np.uint32, np.uint8]
    assert [column.dtype for column in vars(named).values()] == dtypes
