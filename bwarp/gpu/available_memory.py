"""Query the free memory of a GPU, and divide work if it is not enough."""

import functools
import gc
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from bwarp.errors import GpuMemoryError
from bwarp.gpu import memory_pool as workspace
from bwarp.gpu.cuda import cuda, require_context
from bwarp.gpu.launch import current_device
from bwarp.runtime.backend import is_gpu_memory_error

Result = TypeVar("Result")

#: Work that takes at most this fraction of a GPU's memory does not query the free memory: the query
#: waits for queued work, and for other Python threads.
_SMALL_SHARE = 1 / 64

#: Successful pieces in a row before a larger size is tried for the first time.
BEFORE_A_LARGER = 8


def free_memory() -> int:
    """Return the number of bytes of GPU memory that can be allocated."""
    # Numba frees memory late; first free what it still holds.
    context = cuda.current_context()
    context.memory_manager.deallocations.clear()
    return context.get_memory_info().free


def total_memory() -> int:
    """Return the total memory of the current GPU in bytes."""
    return _total_of(cuda.get_current_device().id)


@functools.cache
def _total_of(_gpu: int) -> int:
    return cuda.current_context().get_memory_info().total


def affordable(wanted: int, share: float) -> int:
    """Return how many of the wanted bytes to allocate: at most a fraction of the free memory.

    Small requests are granted without asking.
    """
    if wanted <= _SMALL_SHARE * total_memory():
        return wanted
    return min(wanted, int(share * cuda.current_context().get_memory_info().free))


def require_memory(needed: int, purpose: str) -> None:
    """Raise an error if work needs more bytes than are free on the GPU."""
    gc.collect()  # free memory held by reference cycles
    free = free_memory()
    if needed > free:
        raise GpuMemoryError(
            f"{purpose} requires {needed / 1e9:.1f} GB of GPU memory, but only {free / 1e9:.1f} GB "
            "are free"
        )


def attempt(work: Callable[[], Result]) -> Result | None:
    """Return the result of ``work()``, or None if the GPU's memory was not enough.

    Memory allocated by the work is free again afterwards, so that a smaller piece can be tried.
    """
    try:
        return _in_one_context(work)()
    except Exception as error:
        # A rejected plan would be rejected again.
        if isinstance(error, GpuMemoryError) or not is_gpu_memory_error(error):
            raise
    # Collect only after the error is gone, because its traceback references the arrays.
    gc.collect()
    workspace.give_back()
    free_memory()
    return None


def _in_one_context(work: Callable[[], Result]) -> Callable[[], Result]:
    """Return the same work, which queries the driver once for the context instead of in every call.

    Each query releases the GIL, and then waits for other threads that take it.
    """
    return work if current_device() is None else require_context(work)


class Pieces:
    """Divides work into pieces that fit into the GPU's memory.

    If a piece is too large, it and all later ones are halved. After several successful pieces the
    previous size is tried again, because other users of the memory may be gone; each failure
    doubles the number of pieces before the next try. Several threads may process pieces.

    Parameters
    ----------
    at_once : int
        Initial number of items per piece.
    refusal : GpuMemoryError
        Raised if the memory is not enough for the smallest piece.

    Attributes
    ----------
    at_once : int
        Number of items of the next piece.
    """

    def __init__(self, at_once: int, refusal: GpuMemoryError):
        self.at_once = at_once
        self._refusal, self._lock = refusal, threading.Lock()
        #: Value of `at_once` before each halving.
        self._larger: list[int] = []
        self._in_a_row, self._enough, self._tries_again = 0, BEFORE_A_LARGER, False

    @property
    def halvings(self) -> int:
        """Number of halvings in effect."""
        return len(self._larger)

    def each(self, work: Callable[[int, int], Result], count: int, step: int = 1) -> list[Result]:
        """Return the results of ``work(first, last)`` for all pieces, at least one, if empty.

        Parameters
        ----------
        count : int
            Total number of items.
        step : int
            Pieces start at multiples of this: 2 for pairs.
        """
        found, first = [], 0
        while not found or first < count:
            last = first + self._size_of_next(count - first, step)
            piece = attempt(partial(work, first, last))
            if piece is not None:
                found.append(piece)
                first = last
                self._count_success()
                continue
            if last - first <= step:
                raise self._refusal
            self._halve(last - first)
        return found

    def _size_of_next(self, left: int, step: int) -> int:
        """Return the next size; the rest is divided into as few equal pieces as possible."""
        pieces = max(1, -(-left // max(self.at_once // step * step, step)))
        return min(-(-left // (pieces * step)) * step, left)

    def _halve(self, size: int) -> None:
        """Make pieces smaller than this size, which was too large."""
        with self._lock:
            if self._tries_again:
                self._enough *= 2
            self._in_a_row, self._tries_again = 0, False
            # Another thread may have halved this size already.
            if size // 2 < self.at_once:
                self._larger.append(self.at_once)
                self.at_once = size // 2

    def _count_success(self) -> None:
        """Undo the last halving after enough successful pieces in a row."""
        with self._lock:
            self._in_a_row += 1
            if self._in_a_row < self._enough:
                return
            self._in_a_row, self._tries_again = 0, bool(self._larger)
            if self._larger:
                self.at_once = self._larger.pop()
