"""Work is cut into ranges that cover it once, in order, whatever the number of threads."""

import os
import threading

import pytest

from bwarp.threads import available_threads, for_each_range


@pytest.mark.parametrize("threads", [1, 2, 5, 16])
@pytest.mark.parametrize("n_items", [0, 1, 2, 7, 1000, 4097])
@pytest.mark.parametrize("smallest", [1, 3, 1024])
def test_ranges_cover_the_items_once_and_in_order(n_items, threads, smallest):
    ranges = for_each_range(lambda start, stop: (start, stop), n_items, threads, smallest)
    assert [item for start, stop in ranges for item in range(start, stop)] == list(range(n_items))
    assert all(stop - start >= min(smallest, n_items) for start, stop in ranges)


def test_work_runs_in_several_threads_at_once():
    meeting = threading.Barrier(2)  # passes only when two threads are there together
    for_each_range(lambda start, stop: meeting.wait(timeout=30), 2, threads=2, smallest=1)


def test_one_thread_means_this_one():
    seen = for_each_range(lambda start, stop: threading.get_ident(), 5000, threads=1)
    assert seen == [threading.get_ident()]


def test_an_error_in_a_thread_is_raised_here():
    def fail(start, stop):
        raise ValueError(f"range from {start}")

    with pytest.raises(ValueError, match="range from 0"):
        for_each_range(fail, 10, threads=2, smallest=1)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs CPU affinity (Linux)")
def test_available_threads_are_those_we_were_given():
    given = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(given)})
        assert available_threads() == 1
    finally:
        os.sched_setaffinity(0, given)
    assert available_threads() == len(given)
