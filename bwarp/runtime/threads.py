"""CPU threads: how many this process may use, and running a function over ranges in them.

The Numba functions of the CPU engine release the GIL and work on a range of items, so plain
Python threads are enough: one code path, no second compilation for `parallel=True`, and results
that cannot depend on the number of threads because every item is computed by itself.
"""

import collections
import os
import queue
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from bwarp.runtime.timeline import on_timeline, span

__all__ = [
    "available_threads",
    "for_each_range",
    "in_order",
    "read_ahead",
    "read_ahead_in_lists",
    "run_together",
]


def available_threads() -> int:
    """The CPU cores this process may run on (a scheduler may have given it fewer than exist)."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def for_each_range(
    function: Callable[[int, int], object], n_items: int, threads: int, smallest: int = 1024
) -> list:
    """Call ``function(start, stop)`` on ranges that cover ``n_items``, in `threads` threads.

    Ranges are several a thread, so that uneven work evens out, and never below `smallest` items.
    Results come back in the order of the ranges.
    """
    if n_items <= 0:
        return []
    n_ranges = max(1, min(threads * 4 if threads > 1 else 1, n_items // max(smallest, 1)))
    edges = [n_items * i // n_ranges for i in range(n_ranges + 1)]
    ranges = list(zip(edges, edges[1:], strict=False))
    if threads == 1 or n_ranges == 1:
        return [function(start, stop) for start, stop in ranges]
    return run_together([partial(function, *bounds) for bounds in ranges], threads)


def run_together(functions: Sequence[Callable[[], object]], threads: int) -> list:
    """The results of several functions without arguments, run in up to `threads` threads.

    Even a single one runs beside the main thread, which alone hears Ctrl-C and leaves at once.
    """
    pool = ThreadPoolExecutor(threads)
    try:
        results = [future.result() for future in [pool.submit(f) for f in functions]]
    except KeyboardInterrupt:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    except BaseException:
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()
    return results


def in_order(
    function: Callable, items: Iterator, threads: int, waiting: int | None = None
) -> Iterator:
    """``function(item)`` for every item, in order, while up to `threads` of them are worked on.

    Items are asked for, and results handed on, in the caller's thread. Besides those worked on,
    `waiting` items wait for a thread, or for one before them to be done: if it is not given half as
    many as there are threads, and two at least, so that none is idle while an item takes longer
    than those behind it. What comes before an item that cannot be had is handed on, or fails,
    first.
    """
    if threads == 1:
        yield from map(function, items)
        return
    pool = ThreadPoolExecutor(threads)
    under_way = collections.deque()
    most = threads + (max(2, threads // 2) if waiting is None else waiting)
    items, failure = iter(items), None
    try:
        while failure is None:
            try:
                under_way.append(pool.submit(function, next(items)))
            except StopIteration:
                break
            except Exception as error:
                failure = error
            if len(under_way) >= most:
                yield _waited_for(under_way.popleft())
        while under_way:
            yield _waited_for(under_way.popleft())
        if failure is not None:
            raise failure
    except BaseException as error:
        # Ctrl-C leaves at once, an error when what runs has ended, and so does a caller's own.
        pool.shutdown(wait=not isinstance(error, KeyboardInterrupt), cancel_futures=True)
        raise
    pool.shutdown()


@on_timeline("wait for other threads")
def _waited_for(future: Future):
    return future.result()


def read_ahead(items: Iterator, most: int = 2) -> Iterator:
    """The same items, made by a thread of their own, up to `most` before they are asked for.

    The thread begins at once, and ends soon after nobody holds the iterator any more.
    """
    return _begun(items, most, _handed_on)


def read_ahead_in_lists(items: Iterator, most: int) -> Iterator[list]:
    """The same items, as lists of all that have been made by the time that one is asked for.

    A list has up to `most` items; one is waited for where there is none.
    """
    return _begun(items, most, partial(_handed_on_in_lists, most=most))


def _begun(items: Iterator, most: int, handed_on: Callable) -> Iterator:
    made = queue.Queue(most)
    is_wanted = threading.Event()
    is_wanted.set()

    def hand_on(item, error: BaseException | None) -> None:
        while is_wanted.is_set():
            try:
                made.put((item, error), timeout=0.1)
                return
            except queue.Full:
                continue

    def make() -> None:
        try:
            for item in items:
                hand_on(item, None)
                if not is_wanted.is_set():
                    return
            hand_on(None, StopIteration())
        except BaseException as error:
            hand_on(None, error)

    threading.Thread(target=make, daemon=True).start()
    ahead = handed_on(made, is_wanted)
    # Where nobody ever asks for an item, the generator does not begin, and has no end to reach.
    weakref.finalize(ahead, is_wanted.clear)
    return ahead


def _handed_on(made: queue.Queue, is_wanted: threading.Event) -> Iterator:
    try:
        while True:
            with span("wait for what is read ahead"):
                item, error = made.get()
            if isinstance(error, StopIteration):
                return
            if error is not None:
                raise error
            yield item
    finally:
        is_wanted.clear()


def _handed_on_in_lists(made: queue.Queue, is_wanted: threading.Event, most: int) -> Iterator[list]:
    ahead, end = _handed_on(made, is_wanted), None
    while end is None:
        items = []
        try:
            items.append(next(ahead))
            while len(items) < most and not made.empty():
                items.append(next(ahead))
        except Exception as error:
            end = error
        if items:
            yield items
    if not isinstance(end, StopIteration):
        raise end
