"""Several GPUs in one process: each has what it searches, and takes some of the work.

Numba keeps for every thread which GPU it works with. So work for a GPU runs inside of
``cuda.gpus[i]``, in whichever thread: arrays, pools of memory and loaded kernels are that GPU's.
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


def on_each(work: Callable[[], Result], most: int = 1) -> list[Result]:
    """What ``work()`` returns on each of the GPUs that CUDA shows, at most so many."""
    gpus = min(most, len(cuda.gpus)) if most > 1 else 1

    def work_on(gpu: int) -> Result:
        with cuda.gpus[gpu]:
            return work()

    return run_together([partial(work_on, gpu) for gpu in range(gpus)], gpus)


def on_gpu(gpu: int, work: Callable[..., Iterator[Result]], *arguments) -> Iterator[Result]:
    """What ``work(*arguments)`` yields on a GPU; to be asked for by one thread alone."""
    with cuda.gpus[gpu]:
        yield from work(*arguments)


def copy_from_gpu(array, gpu: int):
    """A copy on the current GPU of a 1-d array on another one, which may be forgotten afterwards.

    It waits for what both GPUs have to do, and what they are given later waits for it.
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
    """Lends the worker of the GPU that has the least to do, to any number of threads.

    Parameters
    ----------
    workers : sequence
        One a GPU, made of what `on_each` returned.
    """

    def __init__(self, workers: Sequence[Worker]):
        self._workers, self._in_hand = workers, [0] * len(workers)
        self._lock = threading.Lock()

    @contextmanager
    def lent(self, gpu: int | None = None) -> Iterator[Worker]:
        """A worker, and its GPU for this thread; with a number that GPU's."""
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
