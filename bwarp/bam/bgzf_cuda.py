"""BGZF blocks compressed on a GPU by nvCOMP, and their checksums.

    lane 0    fill pinned memory, sum up | upload | deflate, close up | download | heads and feet |
    lane 1        fill pinned memory, sum up | upload | deflate, close up | download | heads ...

A thread creates the lanes as soon as many blocks are expected, because allocating pinned memory is
slow.

The GPU compresses a block with few threads, in 20 milliseconds, so only thousands of blocks fill
it. Each lane has its own memory and stream, and the GPU serves all lanes at the same time. The
blocks inflate to the same bytes as those of `compressed_blocks`, but their own bytes differ.
"""

import functools
import queue
import threading
from collections.abc import Callable

import numpy as np

from bwarp.bam.bgzf import (
    BLOCK_BYTES,
    FOOT_BYTES,
    HEAD_BYTES,
    STORED_BYTES,
    compressed_blocks,
    finish_block,
    is_stored,
    sums_of_blocks,
)
from bwarp.bam.compression_engine import WHILE_MAPPING, filled
from bwarp.gpu import nvcomp
from bwarp.gpu.available_memory import attempt, free_memory
from bwarp.gpu.cuda import cuda, int32, int64, uint8, uint32, uint64
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import ALL_LANES, WARP
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.timeline import on_timeline, span

#: Threads that copy the bytes of a block.
_THREADS = 128


class BlocksOnGpu:
    """`compression_engine.Compression.blocks` on the current GPU, or on the host if the GPU has
    no memory left.

    Parameters
    ----------
    most_blocks : int
        Maximum number of blocks per call.
    lanes : int
        Calls served at a time; fewer if the GPU has little memory.
    """

    def __init__(self, most_blocks: int, lanes: int):
        self._most_blocks, self._wanted = most_blocks, lanes
        self._free, self._is_begun = queue.Queue(), False
        self._lock = threading.Lock()

    def begin(self, share: float) -> None:
        """Start creating the missing lanes that fit into a share of the free memory.

        At least one is tried; if that fails, the host compresses.
        """
        with self._lock:
            room = int(share * free_memory()) // lane_bytes(self._most_blocks)
            count = min(self._wanted, room if self._is_begun else max(room, 1))
            self._wanted -= count
            is_first, self._is_begun = not self._is_begun, True
        if count:
            # Python waits for this thread, and does not exit while it is inside CUDA.
            threading.Thread(target=self._make_lanes, args=(count, is_first)).start()

    def _make_lanes(self, count: int, is_first: bool) -> None:
        """Create lanes until memory runs out; put None, for the host, if even the first fails."""
        try:
            for number in range(count):
                lane = attempt(lambda: _Lane(self._most_blocks))
                if lane or (is_first and not number):
                    self._free.put(lane)
                if not lane:
                    with self._lock:
                        self._wanted += count - number
                    return
        except Exception as error:  # noqa: BLE001
            # Whoever waits for a lane raises it.
            self._free.put(error)

    @on_timeline("compress")
    def __call__(
        self, size: int, fill: Callable[[np.ndarray], None]
    ) -> tuple[np.ndarray, np.ndarray]:
        if not 0 < size <= self._most_blocks * BLOCK_BYTES:
            return compressed_blocks(filled(size, fill))
        if not self._is_begun:
            self.begin(WHILE_MAPPING)
        lane = self._free.get()
        try:
            if isinstance(lane, Exception):
                raise lane
            return lane.compress(size, fill) if lane else compressed_blocks(filled(size, fill))
        finally:
            self._free.put(lane)


def lane_bytes(most_blocks: int) -> int:
    """Estimate the GPU memory of a lane: nvCOMP's scratch memory is ten times the blocks."""
    a_block = 2 * BLOCK_BYTES + nvcomp.room_of(BLOCK_BYTES)
    return most_blocks * a_block + nvcomp.scratch_bytes(most_blocks, BLOCK_BYTES)


class _Lane:
    """Resources of one call: a stream, and memory for its blocks on the host and on the GPU."""

    def __init__(self, most_blocks: int):
        self._stream = cuda.stream()
        self._room = nvcomp.room_of(BLOCK_BYTES)
        n_bytes = most_blocks * BLOCK_BYTES
        self._raw = cuda.device_array(n_bytes, np.uint8)
        self._out = cuda.device_array(most_blocks * self._room, np.uint8)
        self._sizes = cuda.device_array(most_blocks, np.uint64)
        self._packed = cuda.device_array(most_blocks, np.uint64)
        self._starts = cuda.device_array(most_blocks + 1, np.int64)
        self._addresses = nvcomp.addresses(self._raw, BLOCK_BYTES, most_blocks)
        self._out_addresses = nvcomp.addresses(self._out, self._room, most_blocks)
        self._scratch = cuda.device_array(nvcomp.scratch_bytes(most_blocks, BLOCK_BYTES), np.uint8)
        # A stored block takes slightly more than its bytes.
        self._file = cuda.device_array(n_bytes + 32 * most_blocks, np.uint8)
        self._pinned = cuda.pinned_array(self._file.size, np.uint8)
        self._numbers = cuda.pinned_array(most_blocks + 1, np.int64)
        cuda.synchronize()

    def compress(
        self, size: int, fill: Callable[[np.ndarray], None]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Compress bytes to blocks; return the blocks and the end of each."""
        data, stream = self._pinned[:size], self._stream
        fill(data)
        sums = sums_of_blocks(data)
        if sums is None:
            return compressed_blocks(data)
        n, numbers = sums.size, self._numbers
        sizes = np.full(n, BLOCK_BYTES)
        sizes[-1] = size - BLOCK_BYTES * (n - 1)
        with span("compress on the GPU"):
            self._raw[:size].copy_to_device(data, stream=stream)
            self._send(self._sizes, sizes)
            nvcomp.deflate(
                self._addresses, self._sizes, BLOCK_BYTES, n, self._scratch, self._out_addresses,
                self._packed, stream,
            )  # fmt: skip
            self._packed[:n].copy_to_host(numbers[:n].view(np.uint64), stream=stream)
            stream.synchronize()
            packed = numbers[:n].copy()
            starts = file_starts(packed, sizes)
            self._send(self._starts, starts)
            close_up[n, _THREADS, stream](
                self._out, self._room, self._packed, self._starts, self._file
            )
            if _count_stored(packed):
                # The downloaded blocks overwrite it.
                data = data.copy()
            there = self._pinned[: starts[-1]]
            self._file[: there.size].copy_to_host(there, stream=stream)
            stream.synchronize()
        blocks = np.empty(there.size, np.uint8)
        _finish_blocks(there, starts, packed, data, sizes, sums, blocks)
        return blocks, starts[1:]

    def _send(self, numbers_there, numbers: np.ndarray) -> None:
        """Upload through pinned memory; nothing else uses it until the stream is synchronised."""
        pinned = self._numbers[: numbers.size]
        pinned[:] = numbers
        numbers_there[: numbers.size].copy_to_device(
            pinned.view(numbers_there.dtype), stream=self._stream
        )


@compiled
def _count_stored(packed):
    """Return the number of blocks that are stored uncompressed."""
    count = 0
    for size in packed:
        count += is_stored(size)
    return count


@compiled
def file_starts(packed, sizes):
    """Return the start of each block in the file, and the end of the last."""
    starts = np.zeros(packed.size + 1, np.int64)
    for i in range(packed.size):
        contents = STORED_BYTES + sizes[i] if is_stored(packed[i]) else packed[i]
        starts[i + 1] = starts[i] + HEAD_BYTES + contents + FOOT_BYTES
    return starts


@compiled
def _finish_blocks(there, starts, packed, data, sizes, sums, blocks):
    """Copy the blocks out of pinned memory, and write their heads and feet."""
    for i in range(packed.size):
        first, stop = np.uint64(starts[i]), np.uint64(starts[i + 1])
        for at in range(first, stop):
            blocks[at] = there[at]
        finish_block(blocks, starts[i], packed[i], data, BLOCK_BYTES * i, sizes[i], sums[i])


@kernel
def close_up(out: uint8[::1], room: int, packed: uint64[::1], starts: int64[::1], file: uint8[::1]):
    """Copy compressed blocks to their positions in the file. One thread block per block.

    Contents that do not fit between head and foot are not used, and not copied.
    """
    block = cuda.blockIdx.x
    first = int64(starts[block]) + HEAD_BYTES
    count = int64(packed[block])
    if first + count + FOOT_BYTES > int64(starts[block + 1]):
        return
    for i in range(int64(cuda.threadIdx.x), count, int64(cuda.blockDim.x)):
        file[first + i] = out[room * block + i]


# --------------------------------------------------------------------------------------------------
# CRC-32 checksums of blocks: many threads process one block.
#
# The bits of the data are the coefficients of a polynomial, and its CRC is the remainder after
# division by a fixed polynomial. Remainders add up, so each thread takes some 4-byte words of a
# block:
#
#     words       0   1   2 ... t   0   1   2 ... t   0   1   2        t threads
#     thread 1        a               b               c
#
#     remainder of thread 1        (a * shift + b) * shift + c         shift: by all threads' words
#     then multiply by its distance to the end of the block, and sum over threads
#
# Neighbouring threads read neighbouring words. Multiplying by `shift` takes four table look-ups.


#: The divisor, as the bits of a number whose highest bit is the coefficient of x^0.
_DIVISOR = 0xEDB88320
_ONE = 1 << 31
_X = 1 << 30

_ALL_ONES = 0xFFFFFFFF

#: Threads per block, and the maximum number of warps.
_CHECKSUMS_THREADS = 256
_MOST_WARPS = 32

_BYTES_A_WORD = 4
_TABLE = 256
_TABLES = _BYTES_A_WORD * _TABLE


class Checksums:
    """Computes the CRC-32 of blocks on the current GPU."""

    def __init__(self):
        tables, powers = _tables(_CHECKSUMS_THREADS)
        self._tables, self._powers = cuda.to_device(tables), cuda.to_device(powers)

    def compute(self, words, size: int, sums, stream) -> None:
        """Compute the checksum of each block of `BLOCK_BYTES`; the last block may be shorter.

        Parameters
        ----------
        words : device array, dtype=uint32
            The bytes of the blocks, four per word.
        size : int
            Number of bytes.
        sums : device array, dtype=uint32
            Output: the checksum of each block.
        stream : CUDA stream
        """
        n_blocks = -(-size // BLOCK_BYTES)
        sum_blocks[n_blocks, _CHECKSUMS_THREADS, stream](
            words, size, self._tables, self._powers, sums
        )


@compiled(inline="always")
def multiply(a, b):
    """Return the product of two polynomials modulo the divisor."""
    product = np.int64(0)
    for bit in range(31, -1, -1):
        if a >> bit & 1:
            product ^= b
        b = b >> 1 ^ (_DIVISOR if b & 1 else 0)
    return product


@functools.cache
def _tables(threads: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the look-up tables and the powers of x.

    Four tables give the value of each byte of a word shifted by `threads` words; the fifth shifts
    by one byte. The powers of x are those of 0 to `threads` words.
    """
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
    # The byte is at the low end of the number: the bits above it have been shifted by then.
    one_byte = [multiply(value, by_byte) for value in range(_TABLE)]
    return np.array([*shifted, one_byte], np.uint32).ravel(), np.array(powers, np.uint32)


@kernel
def sum_blocks(
    words: uint32[::1], size: int, tables: uint32[::1], powers: uint32[::1], sums: uint32[::1]
):
    """Compute the CRC-32 of each block. One thread block per block; reads each byte once, and looks
    up four numbers in shared memory per four bytes."""
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
        # The last block may end inside a word.
        for i in range(n_words * _BYTES_A_WORD, length):
            byte = int64(words[first + i // _BYTES_A_WORD]) >> 8 * (i % _BYTES_A_WORD)
            at = _TABLES + ((total ^ byte) & 255)
            total = total >> 8 ^ int64(tables[at])
        sums[block] = total ^ _ALL_ONES
