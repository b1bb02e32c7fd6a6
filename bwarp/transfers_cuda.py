"""Arrays on their way to a GPU.

A copy of a large array out of ordinary memory takes one core's time. Here threads copy a piece into
pinned memory, from where the card fetches it by itself while they fill the other half:

    threads      fill A | fill B | fill A | ...
    card                  fetch A  fetch B  ...
"""

import functools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import cuda
from numba.cuda.cudadrv import driver

__all__ = ["to_card"]

#: Bytes a piece; less than that is not worth the threads.
PIECE = 16 << 20
#: As many threads copy as fast as the memory can.
MOST_THREADS = 8


def to_card(array: np.ndarray, threads: int = 1):
    """A copy of a contiguous 1-d array on the current GPU.

    Parameters
    ----------
    array : ndarray, shape=(count,)
    threads : int
        With more than one, large arrays go by way of 32 MiB of pinned memory, which stay allocated
        for the next, as do the threads.
    """
    device = cuda.device_array(array.size, array.dtype)
    if threads > 1 and array.nbytes >= PIECE:
        _send_pieces(array.view(np.uint8), device.view(np.uint8), min(threads, MOST_THREADS))
    elif array.size:
        # As cuda.to_device, which looks at every array several times, in a third of its time.
        driver.host_to_device(device, array, array.nbytes)
    return device


def _send_pieces(source, target, threads: int) -> None:
    halves, pool = _pinned_halves(cuda.get_current_device().id), _pool(threads)
    for number, first in enumerate(range(0, source.size, PIECE)):
        piece = source[first : first + PIECE]
        pinned, stream = halves[number % 2]
        # What lies there is on the card when its stream is done.
        stream.synchronize()
        edges = [piece.size * i // threads for i in range(threads + 1)]
        copies = [
            pool.submit(np.copyto, pinned[begin:end], piece[begin:end])
            for begin, end in zip(edges, edges[1:], strict=False)
        ]
        for copy in copies:
            copy.result()
        part = target[first : first + piece.size]
        driver.host_to_device(part, pinned, piece.size, stream=stream)
    for _, stream in halves:
        stream.synchronize()


@functools.lru_cache(maxsize=1)
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads)


@functools.lru_cache(maxsize=1)
def _pinned_halves(_device):
    return [(cuda.pinned_array(PIECE, np.uint8), cuda.stream()) for _ in range(2)]
