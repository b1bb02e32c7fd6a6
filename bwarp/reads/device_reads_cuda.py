"""Both strands of reads on the GPU, and lists of the reads that a round searches."""

from typing import NamedTuple

import numpy as np

from bwarp.gpu.cuda import cuda, int32, int64, uint8, uint32
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import WARP
from bwarp.gpu.sums_and_sorts import add_up
from bwarp.reads.base_bits_cuda import base_blocks


class DeviceReads(NamedTuple):
    """The reads of a chunk.

    Attributes
    ----------
    both : shape=(2 * n_bases,)
        All reads, then all their reverse complements at the same offsets.
    blocks
        `both` in the blocks of `bwarp.reads.base_bits_cuda`.
    offsets : shape=(n_reads + 1,)
    numbers : shape=(n_reads,)
        Numbers of all reads in order, in the form of `marked_reads`.
    n_bases, longest
        Number of bases of all reads, and of the longest.
    """

    both: uint8[::1]
    blocks: uint32[::1]
    offsets: int64[::1]
    numbers: int32[::1]
    n_bases: int
    longest: int

    @property
    def n_reads(self) -> int:
        return self.offsets.size - 1


def both_strands(codes: np.ndarray, offsets: np.ndarray) -> DeviceReads:
    """Copy reads to the GPU, and reverse-complement them there."""
    n_reads = len(offsets) - 1
    both = cuda.device_array(max(1, 2 * codes.size), np.uint8)
    offsets_there = cuda.to_device(np.ascontiguousarray(offsets, np.int64))
    if codes.size:
        both[: codes.size].copy_to_device(codes)
        turn_reads(offsets_there, both)
    numbers = cuda.device_array(n_reads, np.int32)
    number_reads(numbers)
    longest = int(np.diff(offsets).max(initial=0))
    return DeviceReads(both, base_blocks(both), offsets_there, numbers, codes.size, longest)


def marked_reads(marks):
    """Return the numbers of marked reads in order.

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
    count_marks(marks, sums)
    n_marked = add_up(sums)
    reads = cuda.device_array(max(1, n_marked), np.int32)
    if n_marked:
        list_marked(marks, sums, reads)
    return reads, n_marked


@kernel(over="offsets", per=WARP)
def turn_reads(offsets: int64[::1], both: uint8[::1]):
    """Write every read's reverse complement. One warp per read, 32 bases per step."""
    read, n_bases = cuda.grid(1) // WARP, both.size // 2
    if read < offsets.size - 1:
        first, last = offsets[read], offsets[read + 1]
        for i in range(cuda.laneid, last - first, WARP):
            code = both[last - 1 - i]
            both[n_bases + first + i] = uint8(3 - code) if code < 4 else uint8(code)


@kernel(over="numbers")
def number_reads(numbers: int32[::1]):
    """Write 0, 1, 2, ... One thread per read."""
    read = cuda.grid(1)
    if read < numbers.size:
        numbers[read] = read


@kernel(over="counts")
def count_marks(marks: uint8[::1], counts: uint32[::1]):
    """Copy marks as counts to sum, followed by a 0. One thread per read."""
    read = cuda.grid(1)
    if read <= marks.size:
        counts[read] = 1 if read < marks.size and marks[read] else 0


@kernel(over="marks")
def list_marked(marks: uint8[::1], sums: uint32[::1], reads: int32[::1]):
    """List the numbers of marked reads. One thread per read."""
    read = cuda.grid(1)
    if read < marks.size and marks[read]:
        reads[sums[read]] = read
