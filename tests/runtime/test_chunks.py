"""Chunks come in their order, and no more of them are under way than are allowed."""

import threading
import time

import pytest

from bwarp.runtime.chunks import in_order, read_ahead, read_ahead_in_lists


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
def test_an_error_in_order_comes_in_its_turn(threads):
    def fail(i):
        if i == 3:
            raise ValueError("item 3")
        return i

    seen = []
    with pytest.raises(ValueError, match="item 3"):
        seen.extend(i for i in in_order(fail, iter(range(10)), threads) if seen.append(i))
    assert seen == [0, 1, 2]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_what_comes_before_items_that_fail_is_handed_on_first(threads):
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


def test_lists_hold_what_was_made_by_the_time_they_are_asked_for():
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


def test_an_error_of_the_maker_is_raised_after_the_items_before_it():
    def items():
        yield 1
        raise ValueError("no more")

    ahead = read_ahead(items())
    assert next(ahead) == 1
    with pytest.raises(ValueError, match="no more"):
        next(ahead)


def test_a_maker_stops_when_no_one_asks_any_more():
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
