"""Work is cut into ranges that cover it once, in order, for any number of threads."""

import os
import signal
import threading
import time

import pytest

from bwarp.runtime.threads import available_threads, for_each_range, run_together


@pytest.mark.parametrize("threads", [1, 2, 5, 16])
@pytest.mark.parametrize("n_items", [0, 1, 2, 7, 1000, 4097])
@pytest.mark.parametrize("smallest", [1, 3, 1024])
def test_ranges_cover_the_items_once_and_in_order(n_items, threads, smallest):
    ranges = for_each_range(lambda start, stop: (start, stop), n_items, threads, smallest)
    assert [item for start, stop in ranges for item in range(start, stop)] == list(range(n_items))
    assert all(stop - start >= min(smallest, n_items) for start, stop in ranges)


def test_work_runs_in_several_threads_at_once():
    meeting = threading.Barrier(2)  # passes only when two threads have arrived
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
def test_available_threads_respect_limits():
    given = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(given)})
        assert available_threads() == 1
    finally:
        os.sched_setaffinity(0, given)
    assert available_threads() == len(given)


def test_an_interrupt_does_not_wait_for_running_work():
    release = threading.Event()
    main = threading.main_thread().ident
    timer = threading.Timer(0.2, signal.pthread_kill, (main, signal.SIGINT))
    timer.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_together([lambda: release.wait(20)], threads=1)
    waited = time.monotonic() - started
    release.set()
    assert waited < 10


def test_a_failure_of_any_function_is_raised():
    def fail():
        raise ValueError("this one")

    with pytest.raises(ValueError, match="this one"):
        run_together([lambda: 1, fail, lambda: 2], threads=2)
