"""Query the free memory of a GPU, and attempt work that may need more."""

import functools
import gc
from collections.abc import Callable
from typing import TypeVar

from bwarp.errors import GpuMemoryError
from bwarp.gpu import memory_pool as workspace
from bwarp.gpu.cuda import cuda, require_context
from bwarp.gpu.driver import current_device
from bwarp.runtime.backend import is_gpu_memory_error

Result = TypeVar("Result")

#: Work that takes at most this fraction of a GPU's memory does not query the free memory: the query
#: waits for queued work, and for other Python threads.
_SMALL_SHARE = 1 / 64


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
