"""Rows are written in order, whatever the threads, and errors of threads are reported."""

import threading
import time
from contextlib import suppress

import pytest

from bwarp.io import table_writer
from bwarp.io.table_writer import TableWriter


def lines_of(name, first, last):
    # Later ranges are ready before earlier ones.
    time.sleep(0.002 * (first % 3 == 0))
    return [f"{name}{i}" for i in range(first, last)]


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_rows_are_written_in_order(monkeypatch, threads, size):
    monkeypatch.setattr(table_writer, "ROWS_AT_ONCE", size)
    written, expected = [], []
    with TableWriter(written.extend, threads) as writer:
        for name, count in (("a", 10), ("b", 0), ("c", 31), ("d", 1), ("e", 0)):
            writer.add(lambda first, last, name=name: lines_of(name, first, last), count)
            expected += [f"{name}{i}" for i in range(count)]
    assert written == expected


def test_nothing_is_written_without_rows():
    for threads in (1, 3):
        with TableWriter(pytest.fail, threads):
            pass


def test_rows_are_written_while_nothing_is_added():
    was_written = threading.Event()
    with TableWriter(lambda rows: was_written.set(), 2) as writer:
        writer.add(lambda first, last: [], 1)
        assert was_written.wait(10)


def test_ranges_have_the_size_asked_for():
    for threads in (1, 2):
        ranges = []
        with TableWriter(ranges.append, threads) as writer:
            writer.add(lambda first, last: (first, last), 7, at_once=3)
        assert ranges == [(0, 3), (3, 6), (6, 7)]


def fail(*_):
    raise OSError("no room")


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(("write", "rows_of"), [(fail, lines_of), (list.append, fail)])
def test_errors_of_threads_are_raised(threads, write, rows_of):
    def add():
        with TableWriter(write, threads) as writer:
            # More than can wait, so that the caller meets the error.
            for _ in range(20):
                writer.add(lambda first, last: rows_of("a", first, last), 5, at_once=1)

    with pytest.raises(OSError, match="no room"):
        add()


def test_nothing_more_is_written_after_an_error_of_the_caller():
    written, begun, go_on = [], threading.Event(), threading.Event()

    def write(rows):
        written.append(rows)
        begun.set()
        go_on.wait(10)

    def add_and_fail():
        with TableWriter(write, 2) as writer:
            writer.add(lambda first, last: first, 100, at_once=1)
            begun.wait(10)
            threading.Timer(0.1, go_on.set).start()
            raise ValueError("of the caller")

    with pytest.raises(ValueError, match="of the caller"):
        add_and_fail()
    assert written == [0]
    threads = [one.name for one in threading.enumerate() if "_write_all" in one.name]
    assert not threads


def test_an_interrupt_does_not_wait_for_a_writer_that_waits():
    stuck, go_on = threading.Event(), threading.Event()

    def write(_):
        stuck.set()
        go_on.wait(30)

    def add_and_interrupt():
        with TableWriter(write, 2) as writer:
            writer.add(lambda first, last: first, 1)
            stuck.wait(10)
            raise KeyboardInterrupt

    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        add_and_interrupt()
    go_on.set()
    assert time.monotonic() - start < 10


@pytest.mark.parametrize("waiting", range(4))
def test_empty_tables_and_an_error_of_the_caller(waiting):
    def add():
        with suppress(KeyError), TableWriter(lambda _: time.sleep(0.01), 2) as writer:
            writer.add(lambda first, last: [], 3, at_once=1)
            for _ in range(waiting):
                writer.add(lines_of, 0)
            raise KeyError

    caller = threading.Thread(target=add, daemon=True)
    caller.start()
    caller.join(20)
    assert not caller.is_alive()
