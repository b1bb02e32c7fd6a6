"""The indexed text on a GPU, one byte per symbol: 0 is a separator, 1 to 4 are A C G T."""

import numpy as np

from bwarp.gpu.cuda import cuda, int64, uint8, uint64
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import launch
from bwarp.gpu.transfers import to_gpu
from bwarp.index.packed_text_cpu import PackedText

_THREADS = 256


def text_on_gpu(text: PackedText, threads: int = 1):
    """Copy a text to the GPU in 2 bits per base and unpack it there.

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
    """Unpack bases. One thread per base; neighbours read the same word."""
    i = cuda.grid(1)
    if i < codes.size:
        code = (words[i >> 5] >> np.uint64(62 - 2 * (i & 31))) & np.uint64(3)
        codes[i] = np.uint8(code + np.uint64(1))


@kernel
def put_separators(separators: int64[::1], codes: uint8[::1]):
    """Write separators. One thread each."""
    i = cuda.grid(1)
    if i < separators.size:
        codes[separators[i]] = 0


@cuda.jit(device=True)
def symbols_at(codes, position, count):
    """Return `count` symbols from a position on as a number in base 5; zeros follow the text.

    Threads of neighbouring positions read the same bytes, so they come from the cache.
    """
    number = np.uint64(0)
    for i in range(position, position + count):
        symbol = np.uint64(0)
        if i < codes.size:
            symbol = np.uint64(codes[i])
        number = number * np.uint64(5) + symbol
    return number
