"""Large arrays on their way to a GPU.

A copy out of ordinary memory goes through a small buffer of the driver's and takes one core's time.
Here threads copy pieces into pinned memory, and the card fetches those it has by itself:

    threads       fill 0   fill 1   fill 2   fill 3 | fill 4 ...
    card                   fetch 0  fetch 1  fetch 2  fetch 3 ...
"""

import functools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import cuda

__all__ = ["to_card"]

#: Bytes a piece; arrays of fewer than two pieces are not worth the threads.
PIECE = 4 << 20
#: Pieces in pinned memory; as many threads are busy at once.
PIECES = 6


def to_card(array: np.ndarray, threads: int):
    """A copy of a contiguous 1-d array on the current GPU.

    Parameters
    ----------
    array : ndarray, shape=(count,)
    threads : int
        With more than one, large arrays go by way of pinned memory, 24 MiB that stay allocated.
    """
    if threads == 1 or array.nbytes < 2 * PIECE:
        return cuda.to_device(array)
    device = cuda.device_array(array.size, array.dtype)
    source, target = array.view(np.uint8), device.view(np.uint8)
    edges = [*range(0, source.size, PIECE), source.size]
    pieces = list(zip(edges, edges[1:], strict=False))
    pinned, stream = _pinned(cuda.get_current_device().id), cuda.stream()

    def fill(number: int) -> np.ndarray:
        first, last = pieces[number]
        piece = pinned[number % PIECES][: last - first]
        piece[:] = source[first:last]
        return piece

    with ThreadPoolExecutor(min(threads, PIECES)) as pool:
        filled = [pool.submit(fill, number) for number in range(min(PIECES, len(pieces)))]
        for number, (first, last) in enumerate(pieces):
            target[first:last].copy_to_device(filled[number].result(), stream=stream)
            if number + PIECES < len(pieces):
                # Its piece of pinned memory is filled again when the card has it.
                stream.synchronize()
                filled.append(pool.submit(fill, number + PIECES))
    stream.synchronize()
    return device


@functools.lru_cache(maxsize=1)
def _pinned(device) -> list[np.ndarray]:
    return [cuda.pinned_array(PIECE, np.uint8) for _ in range(PIECES)]
