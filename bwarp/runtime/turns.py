"""Searches of item after item, shared among several GPUs, with their results in order."""

import queue
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TypeVar

__all__ = ["in_turns", "on_each_gpu"]

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
