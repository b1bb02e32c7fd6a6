"""Pipelines of chunks: chunks of input go through stages, several at a time, and come out in order.

    map, allmap     read_ahead -> in_order (find, finish, encode) -> write
    pairs           read_ahead (parse, in several threads) -> align -> write
    map on GPUs     read_ahead_in_lists -> in_order (find) -> in_order (finish, encode) -> write
    offtargets      in_order (find) -> TableWriter (describe, format -> write)
    seeds, mems     read_ahead (parse, cut) -> in_turns (find) -> TableWriter (format -> write)
      --spread      on_all (find in the chunks of a GPU) -> join -> the same

A stage is a function; the stages of a chunk follow each other in one thread. Chunks are requested
only as others leave the pipeline, which bounds the memory. With `in_turns`, each GPU has a thread,
and searches whole batches. The other programs take one batch at a time, with all threads. Threads
format tables while the next rows are found (`bwarp.io.table_writer`).
"""

import queue
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from typing import TypeVar

from bwarp.runtime.timeline import on_timeline, span

Index = TypeVar("Index")
Item = TypeVar("Item")
Result = TypeVar("Result")

#: Maximum number of results of an item that wait for those of earlier items.
MOST_WAITING = 4


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
    under_way = deque()
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
    return _begun(items, most).taken()


def read_ahead_in_lists(items: Iterator, most: int) -> Iterator[list]:
    """Yield the same items in lists of all items that are ready when a list is requested.

    A list has up to `most` items; if none is ready, wait for one.
    """
    handover = _begun(items, most)
    return handover.in_lists(handover.taken(), most)


def _begun(items: Iterator, most: int) -> "_Handover":
    handover = _Handover(most)
    threading.Thread(target=handover.make, args=(items,), daemon=True).start()
    return handover


class _Handover:
    """Items on their way from the thread that makes them to the thread that takes them.

    Parameters
    ----------
    most : int
        Maximum number of items that wait to be taken.
    """

    def __init__(self, most: int):
        self._made, self._is_wanted = queue.Queue(most), True

    def make(self, items: Iterator) -> None:
        """Hand on all items, then their end or the error that ended them."""
        try:
            for item in items:
                self._hand_on(item, None)
                if not self._is_wanted:
                    return
            self._hand_on(None, StopIteration())
        except BaseException as error:  # noqa: BLE001
            self._hand_on(None, error)

    def _hand_on(self, item, end: BaseException | None) -> None:
        while self._is_wanted:
            try:
                self._made.put((item, end), timeout=0.1)
                return
            except queue.Full:
                continue

    def taken(self) -> Iterator:
        """Return the items; the thread that makes them ends soon after this is dropped."""
        items = self._items()
        # A generator that was never asked for an item does not start, and cannot clean up.
        weakref.finalize(items, self.stop)
        return items

    def _items(self) -> Iterator:
        try:
            while True:
                with span("wait for what is read ahead"):
                    item, end = self._made.get()
                if isinstance(end, StopIteration):
                    return
                if end is not None:
                    raise end
                yield item
        finally:
            self.stop()

    def in_lists(self, ahead: Iterator, most: int) -> Iterator[list]:
        """Yield the taken items in lists of those that are ready, at least one."""
        end = None
        while end is None:
            items = []
            try:
                items.append(next(ahead))
                while len(items) < most and not self._made.empty():
                    items.append(next(ahead))
            except Exception as error:  # noqa: BLE001
                end = error
            if items:
                yield items
        if not isinstance(end, StopIteration):
            raise end

    def stop(self) -> None:
        """Let the thread that makes items end soon."""
        self._is_wanted = False


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

    pools = [ThreadPoolExecutor(1) for _ in indexes]
    under_way = deque()
    try:
        for number, item in enumerate(items):
            gpu, handover = number % len(indexes), _Handover(MOST_WAITING)
            under_way.append((item, handover))
            pools[gpu].submit(_make_all, handover, on_gpu(gpu, search, indexes[gpu], item))
            # Each GPU has one running and one waiting item.
            if len(under_way) == 2 * len(indexes):
                yield _first_of(under_way)
                under_way.popleft()
        while under_way:
            yield _first_of(under_way)
            under_way.popleft()
    except BaseException as error:
        for _, handover in under_way:
            handover.stop()
        # Ctrl-C exits at once.
        for pool in pools:
            pool.shutdown(wait=not isinstance(error, KeyboardInterrupt), cancel_futures=True)
        raise
    for pool in pools:
        pool.shutdown()


def on_all(
    search: Callable[[Index, Item], Iterator[Result]], indexes: Sequence[Index], item: Item
) -> list[Iterator[Result]]:
    """Return the results of ``search(index, item)`` for every index, for parts of one index.

    Parameters
    ----------
    search : function
        Its results must be on the host.
    indexes : sequence
        One per GPU. Each is searched on its GPU by a thread, which runs a few results ahead; a
        single one is searched in the caller's thread as results are requested.
    """
    if len(indexes) == 1:
        return [search(indexes[0], item)]
    from bwarp.gpu.several_gpus import on_gpu

    results = []
    for gpu, index in enumerate(indexes):
        handover = _Handover(MOST_WAITING)
        results.append(handover.taken())
        made = on_gpu(gpu, search, index, item)
        threading.Thread(target=_make_all, args=(handover, made), daemon=True).start()
    return results


def _make_all(handover: _Handover, results: Iterator) -> None:
    # Close it in this thread, which uses the GPU.
    with closing(results):
        handover.make(results)


def _first_of(under_way: deque) -> tuple[object, Iterator]:
    item, handover = under_way[0]
    return item, handover.taken()
