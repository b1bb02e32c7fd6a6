"""Arrays on their way to a GPU.

A copy of a large array out of ordinary memory takes one core's time. Here threads copy a piece into
pinned memory, from where the card fetches it by itself while they fill the other half:

    threads      fill A | fill B | fill A | ...
    card                  fetch A  fetch B  ...
"""

import functools

import numpy as np
from numba import cuda
from numba.cuda.cudadrv import driver

from bwarp.threads import for_each_range

__all__ = ["to_card"]

#: Bytes a piece; half of that is not worth the threads.
PIECE = 32 << 20
#: As many threads copy as fast as the memory can.
MOST_THREADS = 8
#: Bytes below which a thread is not worth its start.
LEAST_BYTES = 2 << 20


def to_card(array: np.ndarray, threads: int = 1):
    """A copy of a contiguous 1-d array on the current GPU.

    Parameters
    ----------
    array : ndarray, shape=(count,)
    threads : int
        With more than one, large arrays go by way of 64 MiB of pinned memory that stay allocated.
    """
    device = cuda.device_array(array.size, array.dtype)
    if threads > 1 and array.nbytes >= PIECE // 2:
        _send_pieces(array.view(np.uint8), device.view(np.uint8), min(threads, MOST_THREADS))
    elif array.size:
        # As cuda.to_device, which looks at everything several times, in a fifth of its time.
        driver.host_to_device(device, array, array.nbytes)
    return device


def _send_pieces(source, target, threads: int) -> None:
    halves = _pinned_halves(cuda.get_current_device().id)
    for number, first in enumerate(range(0, source.size, PIECE)):
        last = min(first + PIECE, source.size)
        pinned, stream = halves[number % 2]
        # What lies there is on the card when its stream is done.
        stream.synchronize()

        def fill(start: int, stop: int, pinned=pinned, first=first) -> None:
            pinned[start:stop] = source[first + start : first + stop]

        for_each_range(fill, last - first, threads, smallest=LEAST_BYTES)
        target[first:last].copy_to_device(pinned[: last - first], stream=stream)
    for _, stream in halves:
        stream.synchronize()


@functools.lru_cache(maxsize=1)
def _pinned_halves(_device):
    return [(cuda.pinned_array(PIECE, np.uint8), cuda.stream()) for _ in range(2)]
