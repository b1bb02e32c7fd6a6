"""The text that is indexed on a GPU, a byte a symbol: 0 is a separator, 1 to 4 are A C G T."""

import numpy as np
from numba import cuda
from numba.cuda import types

from bwarp.gpu.kernel_loading import compiled_kernel
from bwarp.gpu.launch import launch
from bwarp.gpu.transfers import to_gpu
from bwarp.index.building.packed_text_cpu import PackedText

__all__ = ["KERNEL_SIGNATURES", "symbols_at", "text_on_gpu"]

_THREADS = 256


def text_on_gpu(text: PackedText, threads: int = 1):
    """A text on the GPU, to which it goes in 2 bits a base.

    Returns
    -------
    codes : device array, shape=(text.size,), dtype=uint8
    """
    words, separators = to_gpu([text.words, text.separators], threads)
    codes = cuda.device_array(text.size, np.uint8)
    spread_bases[launch(text.size, _THREADS)](words, codes)
    put_separators[launch(text.separators.size, _THREADS)](separators, codes)
    return codes


@compiled_kernel
def spread_bases(words, codes):
    """One thread a base; neighbours read the same word."""
    i = cuda.grid(1)
    if i < codes.size:
        code = (words[i >> 5] >> np.uint64(62 - 2 * (i & 31))) & np.uint64(3)
        codes[i] = np.uint8(code + np.uint64(1))


@compiled_kernel
def put_separators(separators, codes):
    """One thread a separator."""
    i = cuda.grid(1)
    if i < separators.size:
        codes[separators[i]] = 0


@cuda.jit(device=True)
def symbols_at(codes, position, count):
    """Some symbols from a position on as a number to base 5; behind the text's end lie zeros.

    Threads of neighbouring positions read the same bytes, so they come from the cache.
    """
    number = np.uint64(0)
    for i in range(position, position + count):
        symbol = np.uint64(0)
        if i < codes.size:
            symbol = np.uint64(codes[i])
        number = number * np.uint64(5) + symbol
    return number


#: The argument types that every kernel is compiled with.
KERNEL_SIGNATURES = {
    spread_bases: (types.uint64[::1], types.uint8[::1]),
    put_separators: (types.int64[::1], types.uint8[::1]),
}
