"""Timelines: recorded events, and code without any."""

import threading
import time

import pytest

from bwarp.runtime.timeline import (
    Span,
    add_later,
    is_recording,
    on_timeline,
    record,
    span,
    start_of_recording,
)


@on_timeline("double")
def double(number):
    """Twice as much."""
    if number < 0:
        raise ValueError("negative")
    return 2 * number


@on_timeline("count")
def counted(n):
    for i in range(n):
        time.sleep(0.001)
        yield i


def test_functions_and_the_items_of_generators_are_spans():
    with record() as spans:
        assert double(3) == 6
        assert list(counted(2)) == [0, 1]
        with span("rest"):
            pass
    # The last call of the generator finds no more items.
    assert [one.name for one in spans] == ["double", "count", "count", "count", "rest"]
    assert all(0 <= one.start <= one.end for one in spans)
    assert [one.start for one in spans] == sorted(one.start for one in spans)
    assert spans[1].end - spans[1].start >= 1_000_000


def test_the_span_of_an_item_excludes_its_use():
    with record() as spans:
        for _ in counted(1):
            time.sleep(0.05)
    assert sum(one.end - one.start for one in spans) < 40_000_000


def test_threads_have_spans_of_their_own():
    with record() as spans:
        thread = threading.Thread(target=double, args=[1])
        thread.start()
        thread.join()
        double(2)
    assert len({one.thread for one in spans}) == 2


def test_a_function_that_fails_has_a_span_and_fails():
    with record() as spans, pytest.raises(ValueError, match="negative"):
        double(-1)
    assert [one.name for one in spans] == ["double"]


def test_nothing_is_recorded_outside():
    with record() as spans:
        pass
    assert double(1) == 2
    assert list(counted(1)) == [0]
    with span("rest"):
        pass
    assert spans == []
    assert double.__doc__ == "Twice as much."


def test_a_generator_that_is_left_is_closed():
    closed = []

    @on_timeline("items")
    def items():
        try:
            yield 1
            yield 2
        finally:
            closed.append(True)

    with record():
        made = items()
        assert next(made) == 1
        made.close()
    assert closed == [True]


def test_spans_that_are_known_later():
    add_later(pytest.fail)
    assert not is_recording()
    with record() as spans:
        assert is_recording()
        assert start_of_recording() <= time.perf_counter_ns()
        add_later(lambda: Span("kernel", -1, 5, 7))
        double(1)
    assert [one.name for one in spans] == ["double", "kernel"]


def test_spans_of_a_failed_run_are_not_asked_for():
    def fail():
        with record():
            add_later(pytest.fail)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
