"""Several GPUs in one process, each with its copy of the index and a share of the work.

Numba stores the current GPU per thread. Work for a GPU therefore runs inside ``cuda.gpus[i]``, in
any thread: arrays, memory pools and loaded kernels belong to that GPU.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import TypeVar

from bwarp.gpu.cuda import cuda, device_pointer, driver_calls
from bwarp.runtime.threads import run_together

Result = TypeVar("Result")
Worker = TypeVar("Worker")


def visible_gpus(most: int) -> int:
    """Return the number of visible GPUs, up to `most`."""
    return min(most, len(cuda.gpus)) if most > 1 else 1


def on_each(work: Callable[[], Result], most: int = 1) -> list[Result]:
    """Return the results of ``work()`` on each visible GPU, up to `most`."""
    return on_each_of([work] * visible_gpus(most))


def on_each_of(works: Sequence[Callable[[], Result]]) -> list[Result]:
    """Return the results of ``works[i]()`` on GPU i; a single one uses the current GPU."""

    def work_on(gpu: int) -> Result:
        with cuda.gpus[gpu]:
            return works[gpu]()

    if len(works) == 1:
        return [works[0]()]
    return run_together([partial(work_on, gpu) for gpu in range(len(works))], len(works))


def on_gpu(gpu: int, work: Callable[..., Iterator[Result]], *arguments) -> Iterator[Result]:
    """Yield the results of ``work(*arguments)`` on a GPU; use it from a single thread."""
    with cuda.gpus[gpu]:
        yield from work(*arguments)


def copy_from_gpu(array, gpu: int):
    """Copy a 1-d array from another GPU to the current one; the original may be freed afterwards.

    The copy waits for work queued on both GPUs, and later work waits for the copy.
    """
    copy = cuda.device_array(array.size, array.dtype)
    if array.size:
        _copy_between_gpus(copy, cuda.get_current_device().id, array, gpu)
    return copy


def _copy_between_gpus(target, target_gpu: int, source, source_gpu: int) -> None:
    there, here = (cuda.gpus[gpu].get_primary_context().handle for gpu in (source_gpu, target_gpu))
    driver_calls.cuMemcpyPeer(
        device_pointer(target), here, device_pointer(source), there, source.nbytes
    )


class LeastBusy:
    """Lends the worker of the least busy GPU to any number of threads.

    Parameters
    ----------
    workers : sequence
        One per GPU, from the results of `on_each`.
    """

    def __init__(self, workers: Sequence[Worker]):
        self._workers, self._in_hand = workers, [0] * len(workers)
        self._lock = threading.Lock()

    @contextmanager
    def lent(self, gpu: int | None = None) -> Iterator[Worker]:
        """Yield a worker and make its GPU current in this thread; `gpu` selects the GPU."""
        with self._lock:
            if gpu is None:
                gpu = self._in_hand.index(min(self._in_hand))
            self._in_hand[gpu] += 1
        try:
            with cuda.gpus[gpu]:
                yield self._workers[gpu]
        finally:
            with self._lock:
                self._in_hand[gpu] -= 1
