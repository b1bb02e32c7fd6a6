"""The text that is indexed on a GPU, a byte a symbol: 0 is a separator, 1 to 4 are A C G T."""

import numpy as np

from bwarp.gpu.cuda import cuda, int64, uint8, uint64
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import launch
from bwarp.gpu.transfers import to_gpu
from bwarp.index.packed_text_cpu import PackedText

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


@kernel
def spread_bases(words: uint64[::1], codes: uint8[::1]):
    """One thread a base; neighbours read the same word."""
    i = cuda.grid(1)
    if i < codes.size:
        code = (words[i >> 5] >> np.uint64(62 - 2 * (i & 31))) & np.uint64(3)
        codes[i] = np.uint8(code + np.uint64(1))


@kernel
def put_separators(separators: int64[::1], codes: uint8[::1]):
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
