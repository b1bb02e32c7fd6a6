"""Work is cut into ranges that cover it once, in order, for any number of threads."""

import os
import signal
import threading
import time

import pytest

from bwarp.runtime.threads import (
    available_threads,
    for_each_range,
    in_order,
    read_ahead,
    read_ahead_in_lists,
    run_together,
)


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


@pytest.mark.parametrize(
    ("threads", "waiting", "most"),
    [(1, None, 1), (2, None, 4), (5, None, 7), (8, None, 12), (1, 0, 1), (2, 0, 2), (5, 3, 8)],
)
def test_items_in_order_with_few_under_way(threads, waiting, most):
    asked = []
    items = (asked.append(i) or i for i in range(50))

    def work(i):
        time.sleep(0.002 * (i % 3))
        return 10 * i

    for number, result in enumerate(in_order(work, items, threads, waiting)):
        assert result == 10 * number
        assert len(asked) <= number + most
    assert len(asked) == 50
    assert list(in_order(work, iter([]), threads)) == []


@pytest.mark.parametrize("threads", [1, 2])
def test_an_error_is_raised_in_order(threads):
    def fail(i):
        if i == 3:
            raise ValueError("item 3")
        return i

    seen = []
    with pytest.raises(ValueError, match="item 3"):
        seen.extend(i for i in in_order(fail, iter(range(10)), threads) if seen.append(i))
    assert seen == [0, 1, 2]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_items_before_a_failure_are_yielded_first(threads):
    def items():
        yield from range(4)
        raise OSError("the fifth")

    seen = []
    with pytest.raises(OSError, match="the fifth"):
        seen.extend(i for i in in_order(lambda i: 2 * i, items(), threads) if seen.append(i))
    assert seen == [0, 2, 4, 6]

    def fail(i):
        raise ValueError(f"item {i}")

    with pytest.raises(ValueError, match="item 0"):
        list(in_order(fail, items(), threads))


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


def test_items_are_made_ahead_in_order_and_no_more_than_asked_for():
    made = []

    def items():
        for item in range(7):
            made.append(item)
            yield item

    ahead = read_ahead(items(), most=2)
    assert next(ahead) == 0
    deadline = time.monotonic() + 30
    while len(made) < 4 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.05)
    assert made == [0, 1, 2, 3]  # two wait, and a third for room
    assert list(ahead) == [1, 2, 3, 4, 5, 6]


def test_lists_contain_all_items_made_so_far():
    may_go_on = threading.Event()
    made = []

    def items():
        for item in range(6):
            if item == 1:
                may_go_on.wait(30)
            made.append(item)
            yield item
        raise ValueError("no more")

    lists = read_ahead_in_lists(items(), most=4)
    assert next(lists) == [0]
    may_go_on.set()
    deadline = time.monotonic() + 30
    while len(made) < 6 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert next(lists) == [1, 2, 3, 4]
    assert next(lists) == [5]
    with pytest.raises(ValueError, match="no more"):
        next(lists)


def test_a_list_before_an_error_is_handed_on():
    def items():
        yield from range(2)
        raise ValueError("no more")

    lists = read_ahead_in_lists(items(), most=4)
    time.sleep(0.2)
    assert next(lists) == [0, 1]
    with pytest.raises(ValueError, match="no more"):
        next(lists)
    assert list(read_ahead_in_lists(iter(()), most=4)) == []


def test_an_error_in_making_is_raised_after_earlier_items():
    def items():
        yield 1
        raise ValueError("no more")

    ahead = read_ahead(items())
    assert next(ahead) == 1
    with pytest.raises(ValueError, match="no more"):
        next(ahead)


def test_making_stops_when_the_consumer_stops():
    made = []
    ended = threading.Event()

    def items():
        try:
            for item in range(1000):
                made.append(item)
                yield item
        finally:
            ended.set()

    ahead = read_ahead(items(), most=1)
    next(ahead)
    ahead.close()
    assert ended.wait(30)
    assert len(made) < 5
    ended.clear()
    never_asked = read_ahead(items(), most=1)
    del never_asked
    assert ended.wait(30)
