"""Reads on the GPU, both strands of each, and lists of those that a round searches."""

from dataclasses import dataclass

import numpy as np
from numba import cuda, uint8
from numba.cuda import types

from bwarp.gpu.launch import WARP, launch
from bwarp.gpu.prefix_sum import add_up
from bwarp.mapping.reads.base_bits_cuda import base_blocks

__all__ = ["KERNEL_SIGNATURES", "DeviceReads", "both_strands", "marked_reads"]


@dataclass(frozen=True)
class DeviceReads:
    """The reads of a chunk.

    Attributes
    ----------
    both : device array, shape=(2 * n_bases,), dtype=uint8
        All reads, then all their reverse complements at the same offsets.
    blocks : device array, dtype=uint32
        `both` as `bwarp.mapping.reads.base_bits_cuda` has it.
    offsets : device array, shape=(n_reads + 1,), dtype=int64
    n_reads : int
    longest : int
        The bases of the longest read.
    """

    both: object
    blocks: object
    offsets: object
    n_reads: int
    longest: int


def both_strands(codes: np.ndarray, offsets: np.ndarray) -> DeviceReads:
    """Copy reads to the GPU, and reverse-complement them there."""
    n_reads = len(offsets) - 1
    both = cuda.device_array(max(1, 2 * codes.size), np.uint8)
    offsets_there = cuda.to_device(np.ascontiguousarray(offsets, np.int64))
    if codes.size:
        both[: codes.size].copy_to_device(codes)
        turn_reads[launch(n_reads * WARP)](offsets_there, n_reads, codes.size, both)
    longest = int(np.diff(offsets).max(initial=0))
    return DeviceReads(both, base_blocks(both), offsets_there, n_reads, longest)


def marked_reads(marks):
    """The numbers of marked reads in order.

    Parameters
    ----------
    marks : device array, shape=(n_reads,), dtype=uint8
        1 for a marked read, else 0.

    Returns
    -------
    reads : device array, shape=(n_marked,), dtype=int32
    n_marked : int
    """
    n_reads = marks.size
    sums = cuda.device_array(n_reads + 1, np.uint32)
    count_marks[launch(n_reads + 1)](marks, sums)
    n_marked = add_up(sums)
    reads = cuda.device_array(max(1, n_marked), np.int32)
    if n_marked:
        list_marked[launch(n_reads)](marks, sums, reads)
    return reads, n_marked


@cuda.jit(cache=True)
def turn_reads(offsets, n_reads, n_bases, both):
    """Write every read's reverse complement. One warp a read, 32 bases a step."""
    read = cuda.grid(1) // WARP
    if read < n_reads:
        first, last = offsets[read], offsets[read + 1]
        for i in range(cuda.laneid, last - first, WARP):
            code = both[last - 1 - i]
            both[n_bases + first + i] = uint8(3 - code) if code < 4 else uint8(code)


@cuda.jit(cache=True)
def count_marks(marks, counts):
    """Marks as numbers to add up, and a 0 after them. One thread a read."""
    read = cuda.grid(1)
    if read <= marks.size:
        counts[read] = 1 if read < marks.size and marks[read] else 0


@cuda.jit(cache=True)
def list_marked(marks, sums, reads):
    """One thread a read; those with a mark write their number."""
    read = cuda.grid(1)
    if read < marks.size and marks[read]:
        reads[sums[read]] = read


_NUMBERS, _CODES = types.uint32[::1], types.uint8[::1]

#: The argument types that every kernel is compiled with.
KERNEL_SIGNATURES = {
    turn_reads: (types.int64[::1], types.int64, types.int64, _CODES),
    count_marks: (_CODES, _NUMBERS),
    list_marked: (_CODES, _NUMBERS, types.int32[::1]),
}
