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
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from typing import TypeVar

import numpy as np

from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.timeline import on_timeline, span


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


# --------------------------------------------------------------------------------------------------
# Searches of item after item, shared among several GPUs, with their results in order.


Index = TypeVar("Index")
Item = TypeVar("Item")
Result = TypeVar("Result")

#: Results of an item that wait on the host for those of the items before it.
MOST_WAITING = 4


def on_each_gpu(prepare: Callable[[], Index], backend: str, gpus: int = 1) -> list[Index]:
    """What ``prepare()`` returns: with ``"cuda"`` on each of up to so many GPUs, else once."""
    if backend != "cuda":
        return [prepare()]
    from bwarp.gpu.several_gpus import on_each

    return on_each(prepare, gpus)


def in_turns(
    search: Callable[[Index, Item], Iterator[Result]],
    indexes: Sequence[Index],
    items: Iterable[Item],
) -> Iterator[tuple[Item, Iterator[Result]]]:
    """Every item with what ``search(index, item)`` yields, in order.

    Parameters
    ----------
    search : function
        Its results are on the host, and do not depend on the index.
    indexes : sequence
        What `on_each_gpu` has prepared. Items go to several GPUs in turn, each of which works in a
        thread of its own, a few results ahead of those that are asked for.

    Notes
    -----
    All results of an item are to be taken before the next item is asked for.
    """
    if len(indexes) == 1:
        for item in items:
            yield item, search(indexes[0], item)
        return
    from bwarp.gpu.several_gpus import on_gpu

    is_wanted = threading.Event()
    is_wanted.set()

    def hand_on(made: queue.Queue, result: Result | None, error: BaseException | None) -> None:
        while is_wanted.is_set():
            try:
                made.put((result, error), timeout=0.1)
                return
            except queue.Full:
                continue

    def make(gpu: int, item: Item, made: queue.Queue) -> None:
        try:
            # Closed in this thread, which has the GPU.
            with closing(on_gpu(gpu, search, indexes[gpu], item)) as results:
                for result in results:
                    hand_on(made, result, None)
                    if not is_wanted.is_set():
                        return
            hand_on(made, None, StopIteration())
        except BaseException as error:
            hand_on(made, None, error)

    pools = [ThreadPoolExecutor(1) for _ in indexes]
    under_way = deque()
    try:
        for number, item in enumerate(items):
            gpu, made = number % len(indexes), queue.Queue(MOST_WAITING)
            pools[gpu].submit(make, gpu, item, made)
            under_way.append((item, made))
            # Each GPU works on one item, and has one to go on with.
            if len(under_way) == 2 * len(indexes):
                item, made = under_way.popleft()
                yield item, _taken(made)
        while under_way:
            item, made = under_way.popleft()
            yield item, _taken(made)
    except BaseException as error:
        is_wanted.clear()
        # Ctrl-C leaves at once.
        for pool in pools:
            pool.shutdown(wait=not isinstance(error, KeyboardInterrupt), cancel_futures=True)
        raise
    for pool in pools:
        pool.shutdown()


def _taken(made: queue.Queue) -> Iterator:
    while True:
        result, error = made.get()
        if isinstance(error, StopIteration):
            return
        if error is not None:
            raise error
        yield result


# --------------------------------------------------------------------------------------------------
# Ranges of items: those of owners in order, and of a bounded size, as memory allows.


def bounded_ranges(offsets: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """Consecutive ranges of items, each as long as its items have at most a size together.

    Parameters
    ----------
    offsets : ndarray, shape=(n_items + 1,)
        Where each item begins when they lie end to end, and where the last one ends.
    most : int
        A larger item is a range of its own.

    Yields
    ------
    start, stop : int
    """
    start = 0
    while start < len(offsets) - 1:
        stop = int(np.searchsorted(offsets, offsets[start] + most, side="right")) - 1
        stop = max(stop, start + 1)
        yield start, stop
        start = stop


def offsets_of(owners: np.ndarray, count: int) -> np.ndarray:
    """Where the items of each of `count` owners begin, and the last one's end.

    Parameters
    ----------
    owners : ndarray, shape=(n_items,), dtype=int32 or int64
        The owner of every item, in order.

    Returns
    -------
    offsets : ndarray, shape=(count + 1,), dtype=int64
    """
    offsets = np.zeros(count + 1, np.int64)
    # Counted in a tenth of the time that searching every owner takes.
    np.cumsum(np.bincount(owners, minlength=count), out=offsets[1:])
    return offsets


@compiled
def joined_stretches(values, starts, offsets):
    """Stretches of bytes (uint8), one after another.

    Parameters
    ----------
    starts : ndarray, shape=(n,), dtype=int64
        Where each begins in `values`.
    offsets : ndarray, shape=(n + 1,), dtype=int64
        Where each is to begin, and the last one ends.
    """
    out = np.empty(offsets[-1], np.uint8)
    for i in range(starts.size):
        # Only unsigned indexes let LLVM copy in vectors.
        to, begin = np.uint64(offsets[i]), np.uint64(starts[i])
        for at in range(np.uint64(offsets[i + 1] - offsets[i])):
            out[to + at] = values[begin + at]
    return out
