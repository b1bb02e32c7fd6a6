"""What memory a GPU has free, and what to do where it is not enough."""

import functools
import gc
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from bwarp.errors import GpuMemoryError
from bwarp.gpu import memory as workspace
from bwarp.gpu.cuda import cuda, require_context
from bwarp.gpu.launch import current_device
from bwarp.runtime.backend import is_gpu_memory_error

Result = TypeVar("Result")

#: Work that takes no more than this share of a GPU's memory does not ask how much is free: the
#: answer waits for what is queued there, and for other threads of Python.
_SMALL_SHARE = 1 / 64

#: Pieces in a row that memory was enough for, before a larger one is tried for the first time.
BEFORE_A_LARGER = 8


def free_memory() -> int:
    """Bytes of GPU memory that can be had."""
    # Numba frees memory late; what it still holds must not count.
    context = cuda.current_context()
    context.memory_manager.deallocations.clear()
    return context.get_memory_info().free


def total_memory() -> int:
    """Bytes of memory that the current GPU has, free or not."""
    return _total_of(cuda.get_current_device().id)


@functools.cache
def _total_of(_gpu: int) -> int:
    return cuda.current_context().get_memory_info().total


def affordable(wanted: int, share: float) -> int:
    """How many of so many bytes may be taken: no more than a share of those that are free.

    Where they are few all of them, whatever is free.
    """
    if wanted <= _SMALL_SHARE * total_memory():
        return wanted
    return min(wanted, int(share * cuda.current_context().get_memory_info().free))


def require_memory(needed: int, purpose: str) -> None:
    """Refuse work that takes more bytes than the GPU has free."""
    gc.collect()  # what only a cycle of Python objects holds
    free = free_memory()
    if needed > free:
        raise GpuMemoryError(
            f"{purpose} takes {needed / 1e9:.1f} GB of GPU memory and {free / 1e9:.1f} GB are free"
        )


def attempt(work: Callable[[], Result]) -> Result | None:
    """What ``work()`` returns, or None where the GPU's memory was not enough for it.

    What the work held there is free again then, and it can be tried on less.
    """
    try:
        return _in_one_context(work)()
    except Exception as error:
        # A plan that was refused is no smaller the next time.
        if isinstance(error, GpuMemoryError) or not is_gpu_memory_error(error):
            raise
    # Not before the error is gone, whose traceback holds the arrays.
    gc.collect()
    workspace.give_back()
    free_memory()
    return None


def _in_one_context(work: Callable[[], Result]) -> Callable[[], Result]:
    """The same work, in which numba-cuda asks the driver once for the context, not in every call.

    It would let go of Python's lock for that, and wait for other threads that take it.
    """
    return work if current_device() is None else require_context(work)


class Pieces:
    """Divides work into pieces for which the GPU's memory is enough.

    A piece that was too large is halved, and those that follow are no larger. Where memory was
    enough for some in a row, the size before is tried again, for what else took memory may be gone;
    each time that this fails, twice as many come before the next try. Several threads may have
    pieces in work.

    Parameters
    ----------
    at_once : int
        Items of a piece at first.
    refusal : GpuMemoryError
        Raised where the memory is not enough for the smallest piece.

    Attributes
    ----------
    at_once : int
        Items of the next piece.
    """

    def __init__(self, at_once: int, refusal: GpuMemoryError):
        self.at_once = at_once
        self._refusal, self._lock = refusal, threading.Lock()
        #: What `at_once` was before each halving.
        self._larger: list[int] = []
        self._in_a_row, self._enough, self._tries_again = 0, BEFORE_A_LARGER, False

    @property
    def halvings(self) -> int:
        """How often pieces have been halved and are still."""
        return len(self._larger)

    def each(self, work: Callable[[int, int], Result], count: int, step: int = 1) -> list[Result]:
        """What ``work(first, last)`` returns of every piece; of no items there is an empty one.

        Parameters
        ----------
        count : int
            Items in all.
        step : int
            Pieces begin at multiples of it: those of pairs at even numbers.
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
        """Items of the next piece: what is left is divided into as few as may be, of equal size."""
        pieces = max(1, -(-left // max(self.at_once // step * step, step)))
        return min(-(-left // (pieces * step)) * step, left)

    def _halve(self, size: int) -> None:
        """Make pieces smaller than one of this size, which was too large."""
        with self._lock:
            if self._tries_again:
                self._enough *= 2
            self._in_a_row, self._tries_again = 0, False
            # Another thread may have halved one of this size, or a smaller one.
            if size // 2 < self.at_once:
                self._larger.append(self.at_once)
                self.at_once = size // 2

    def _count_success(self) -> None:
        """Undo the last halving where there was memory for enough pieces in a row."""
        with self._lock:
            self._in_a_row += 1
            if self._in_a_row < self._enough:
                return
            self._in_a_row, self._tries_again = 0, bool(self._larger)
            if self._larger:
                self.at_once = self._larger.pop()
