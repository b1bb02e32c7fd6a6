"""CPU threads: their number, functions called on ranges of items, and ordered parallel pipelines.

The Numba functions of the CPU engine release the GIL and process a range of items, so plain Python
threads suffice: one code path, no second compilation for `parallel=True`, and results that cannot
depend on the number of threads, because each item is computed independently. Searches are also
distributed over several GPUs here, with one thread each.
"""

import collections
import itertools
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
    """Return the number of CPU cores that this process may use, as limited by a scheduler."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def for_each_range(
    function: Callable[[int, int], object], n_items: int, threads: int, smallest: int = 1024
) -> list:
    """Call ``function(start, stop)`` on ranges that cover ``n_items``, in `threads` threads.

    There are several ranges per thread to balance uneven work, each of at least `smallest` items.
    Results are in the order of the ranges.
    """
    if n_items <= 0:
        return []
    n_ranges = max(1, min(threads * 4 if threads > 1 else 1, n_items // max(smallest, 1)))
    edges = [n_items * i // n_ranges for i in range(n_ranges + 1)]
    ranges = list(itertools.pairwise(edges))
    if threads == 1 or n_ranges == 1:
        return [function(start, stop) for start, stop in ranges]
    return run_together([partial(function, *bounds) for bounds in ranges], threads)


def run_together(functions: Sequence[Callable[[], object]], threads: int) -> list:
    """Return the results of functions without arguments, run in up to `threads` threads.

    Even a single function runs in another thread than the main one, which handles Ctrl-C at once.
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
    """Yield ``function(item)`` for every item, in order, with up to `threads` running at a time.

    Items are requested, and results yielded, in the caller's thread. In addition to the running
    items, `waiting` items wait for a thread or for an earlier item; by default half the number of
    threads, at least two, so that no thread is idle while one item takes longer. If the next item
    raises an error, results of earlier items are yielded, or fail, first.
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
            except Exception as error:  # noqa: BLE001
                failure = error
            if len(under_way) >= most:
                yield _waited_for(under_way.popleft())
        while under_way:
            yield _waited_for(under_way.popleft())
        if failure is not None:
            raise failure
    except BaseException as error:
        # Ctrl-C exits at once; other errors wait until running items have ended.
        pool.shutdown(wait=not isinstance(error, KeyboardInterrupt), cancel_futures=True)
        raise
    pool.shutdown()


@on_timeline("wait for other threads")
def _waited_for(future: Future):
    return future.result()


def read_ahead(items: Iterator, most: int = 2) -> Iterator:
    """Yield the same items, produced by a separate thread up to `most` items ahead.

    The thread starts at once, and ends soon after the iterator is no longer referenced.
    """
    return _begun(items, most, _handed_on)


def read_ahead_in_lists(items: Iterator, most: int) -> Iterator[list]:
    """Yield the same items in lists of all items that are ready when a list is requested.

    A list has up to `most` items; if none is ready, wait for one.
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
        except BaseException as error:  # noqa: BLE001
            hand_on(None, error)

    threading.Thread(target=make, daemon=True).start()
    ahead = handed_on(made, is_wanted)
    # If no item is ever requested, the generator does not start and cannot clean up.
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
        except Exception as error:  # noqa: BLE001
            end = error
        if items:
            yield items
    if not isinstance(end, StopIteration):
        raise end


# --------------------------------------------------------------------------------------------------
# Searches distributed over several GPUs, with results in the order of the items.


Index = TypeVar("Index")
Item = TypeVar("Item")
Result = TypeVar("Result")

#: Maximum number of results of an item that wait for those of earlier items.
MOST_WAITING = 4


def on_each_gpu(prepare: Callable[[], Index], backend: str, gpus: int = 1) -> list[Index]:
    """Return the results of ``prepare()``: with ``"cuda"`` one per GPU, up to `gpus`, else one."""
    if backend != "cuda":
        return [prepare()]
    from bwarp.gpu.several_gpus import on_each

    return on_each(prepare, gpus)


def in_turns(
    search: Callable[[Index, Item], Iterator[Result]],
    indexes: Sequence[Index],
    items: Iterable[Item],
) -> Iterator[tuple[Item, Iterator[Result]]]:
    """Yield each item with the results of ``search(index, item)``, in order.

    Parameters
    ----------
    search : function
        Its results must be on the host and not depend on the index.
    indexes : sequence
        Results of `on_each_gpu`. Items are assigned to the GPUs in turn; each GPU has its own
        thread, which runs a few results ahead.

    Notes
    -----
    Take all results of an item before requesting the next item.
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
            # Close it in this thread, which uses the GPU.
            with closing(on_gpu(gpu, search, indexes[gpu], item)) as results:
                for result in results:
                    hand_on(made, result, None)
                    if not is_wanted.is_set():
                        return
            hand_on(made, None, StopIteration())
        except BaseException as error:  # noqa: BLE001
            hand_on(made, None, error)

    pools = [ThreadPoolExecutor(1) for _ in indexes]
    under_way = deque()
    try:
        for number, item in enumerate(items):
            gpu, made = number % len(indexes), queue.Queue(MOST_WAITING)
            pools[gpu].submit(make, gpu, item, made)
            under_way.append((item, made))
            # Each GPU has one running and one waiting item.
            if len(under_way) == 2 * len(indexes):
                item, made = under_way.popleft()
                yield item, _taken(made)
        while under_way:
            item, made = under_way.popleft()
            yield item, _taken(made)
    except BaseException as error:
        is_wanted.clear()
        # Ctrl-C exits at once.
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
# Ranges of items with a bounded size, and offsets of the items of owners.


def bounded_ranges(offsets: np.ndarray, most: int) -> Iterator[tuple[int, int]]:
    """Yield consecutive ranges of items, each as long as possible within a total size.

    Parameters
    ----------
    offsets : ndarray, shape=(n_items + 1,)
        Start of each item when they are concatenated, and the end of the last one.
    most : int
        Maximum total size; a larger item forms its own range.

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
    """Return where the items of each of `count` owners begin, and where the last ones end.

    Parameters
    ----------
    owners : ndarray, shape=(n_items,), dtype=int32 or int64
        Owner of each item, sorted.

    Returns
    -------
    offsets : ndarray, shape=(count + 1,), dtype=int64
    """
    offsets = np.zeros(count + 1, np.int64)
    # Ten times as fast as a binary search per owner.
    np.cumsum(np.bincount(owners, minlength=count), out=offsets[1:])
    return offsets


@compiled
def joined_stretches(values, starts, offsets):
    """Concatenate stretches of bytes (uint8).

    Parameters
    ----------
    starts : ndarray, shape=(n,), dtype=int64
        Start of each stretch in `values`.
    offsets : ndarray, shape=(n + 1,), dtype=int64
        Start of each stretch in the result, and the end of the last one.
    """
    out = np.empty(offsets[-1], np.uint8)
    for i in range(starts.size):
        # LLVM vectorises the copy only for unsigned indices.
        to, begin = np.uint64(offsets[i]), np.uint64(starts[i])
        for at in range(np.uint64(offsets[i + 1] - offsets[i])):
            out[to + at] = values[begin + at]
    return out
