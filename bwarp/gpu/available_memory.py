"""What memory a GPU has free, and what to do where it is not enough."""

import gc
from collections.abc import Callable
from typing import TypeVar

from numba import cuda

from bwarp.errors import GpuMemoryError
from bwarp.gpu import workspace
from bwarp.runtime.backend import is_gpu_memory_error

__all__ = ["attempt", "free_memory", "require_memory"]

Result = TypeVar("Result")


def free_memory() -> int:
    """Bytes of GPU memory that can be had."""
    # Numba frees memory late; what it still holds must not count.
    context = cuda.current_context()
    context.memory_manager.deallocations.clear()
    return context.get_memory_info().free


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
        return work()
    except Exception as error:
        # A plan that was refused is no smaller the next time.
        if isinstance(error, GpuMemoryError) or not is_gpu_memory_error(error):
            raise
    # Not before the error is gone, whose traceback holds the arrays.
    gc.collect()
    workspace.give_back()
    free_memory()
    return None
