"""Checksums of BGZF blocks on the GPU: CRC-32, all bytes of a block by many threads at once.

A CRC is what is left of a polynomial, whose coefficients are the bits of the data, after division
by another one. It is a sum, so that each thread may take some 4-byte words of a block:

    words       0   1   2 ... t   0   1   2 ... t   0   1   2        t threads
    thread 1        a               b               c

    what is left of thread 1's   (a * shift + b) * shift + c         shift: by all threads' words
    then its distance to the end of the block, and the sum over threads

so that neighbours read neighbouring words. Multiplying by `shift` is four look-ups in tables.
"""

import functools

import numba
import numpy as np

from bwarp.gpu.cuda import cuda, int32, int64, uint32
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import ALL_LANES, WARP
from bwarp.io.bam.bgzf import BLOCK_BYTES

__all__ = ["Checksums", "multiply"]

#: The divisor, as the bits of a number whose highest one is the coefficient of x^0.
_DIVISOR = 0xEDB88320
_ONE = 1 << 31
_X = 1 << 30

_ALL_ONES = 0xFFFFFFFF

#: Threads a block, and the most warps of them.
_THREADS = 256
_MOST_WARPS = 32

_BYTES_A_WORD = 4
_TABLE = 256
_TABLES = _BYTES_A_WORD * _TABLE


class Checksums:
    """The CRC-32 of blocks on the current GPU."""

    def __init__(self):
        tables, powers = _tables(_THREADS)
        self._tables, self._powers = cuda.to_device(tables), cuda.to_device(powers)

    def compute(self, words, size: int, sums, stream) -> None:
        """Checksums of blocks of `BLOCK_BYTES` each, the last of what is left.

        Parameters
        ----------
        words : device array, dtype=uint32
            The bytes of the blocks, four to a number.
        size : int
            As many bytes.
        sums : device array, dtype=uint32
            Gets the checksum of each.
        stream : CUDA stream
        """
        n_blocks = -(-size // BLOCK_BYTES)
        sum_blocks[n_blocks, _THREADS, stream](words, size, self._tables, self._powers, sums)


@numba.njit(cache=True, nogil=True, inline="always")
def multiply(a, b):
    """The product of two polynomials, and what is left of it."""
    product = np.int64(0)
    for bit in range(31, -1, -1):
        if a >> bit & 1:
            product ^= b
        b = b >> 1 ^ (_DIVISOR if b & 1 else 0)
    return product


@functools.cache
def _tables(threads: int) -> tuple[np.ndarray, np.ndarray]:
    """Four tables of what each byte of a word is `threads` words later, then the table that takes
    bytes one by one; and x to the power of 0 words to `threads`."""
    word = _ONE
    for _ in range(8 * _BYTES_A_WORD):
        word = multiply(word, _X)
    powers = [_ONE]
    for _ in range(threads):
        powers.append(multiply(powers[-1], word))
    shifted = [
        [multiply(value << 8 * byte, powers[threads]) for value in range(_TABLE)]
        for byte in range(_BYTES_A_WORD)
    ]
    by_byte = multiply(_ONE, _X)
    for _ in range(7):
        by_byte = multiply(by_byte, _X)
    # A byte stands at the end of the number: what is behind it has moved by then.
    one_byte = [multiply(value, by_byte) for value in range(_TABLE)]
    return np.array([*shifted, one_byte], np.uint32).ravel(), np.array(powers, np.uint32)


@kernel
def sum_blocks(
    words: uint32[::1], size: int, tables: uint32[::1], powers: uint32[::1], sums: uint32[::1]
):
    """The CRC-32 of every block. A thread block a block; reads it once, and looks up four numbers
    of shared memory for every four bytes."""
    shared = cuda.shared.array(_TABLES, uint32)
    of_warps = cuda.shared.array(_MOST_WARPS, uint32)
    thread = int64(cuda.threadIdx.x)
    threads = int64(cuda.blockDim.x)
    for i in range(thread, int64(_TABLES), threads):
        shared[i] = tables[i]
    cuda.syncthreads()
    block = int64(cuda.blockIdx.x)
    first = block * (BLOCK_BYTES // _BYTES_A_WORD)
    length = min(int64(BLOCK_BYTES), size - block * BLOCK_BYTES)
    n_words = length // _BYTES_A_WORD
    left = int64(0)
    last = int64(-1)
    for i in range(thread, n_words, threads):
        word = int64(words[first + i])
        if i == 0:
            word ^= _ALL_ONES
        left = (
            int64(shared[left & 255])
            ^ int64(shared[256 + (left >> 8 & 255)])
            ^ int64(shared[512 + (left >> 16 & 255)])
            ^ int64(shared[768 + (left >> 24)])
            ^ word
        )
        last = i
    if last >= 0:
        left = multiply(left, int64(powers[n_words - last]))
    for distance in (16, 8, 4, 2, 1):
        left ^= int64(uint32(cuda.shfl_xor_sync(ALL_LANES, int32(left), distance)))
    if thread % WARP == 0:
        of_warps[thread // WARP] = left
    cuda.syncthreads()
    if thread == 0:
        total = int64(0) if n_words > 0 else int64(_ALL_ONES)
        for warp in range(threads // WARP):
            total ^= int64(of_warps[warp])
        # The last block may end within a word.
        for i in range(n_words * _BYTES_A_WORD, length):
            byte = int64(words[first + i // _BYTES_A_WORD]) >> 8 * (i % _BYTES_A_WORD)
            at = _TABLES + ((total ^ byte) & 255)
            total = total >> 8 ^ int64(tables[at])
        sums[block] = total ^ _ALL_ONES
