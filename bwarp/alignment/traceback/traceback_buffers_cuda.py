"""Where the directions of each pair's band lie on the GPU, and the traceback buffer before them.

    [ buffer 0 | directions 0 | buffer 1 | directions 1 | ...
       <----             <----

A traceback runs from the end of an alignment to its start: its runs fill the buffer before the
pair's directions from the back, until their number is known and they go where the CIGAR lies.
"""

from numba import cuda, int32, int64, uint32

from bwarp.alignment.matrix.int32_kernel_cuda import ROWS, strip_width
from bwarp.alignment.matrix.order_by_size_cuda import device_size_bin
from bwarp.gpu.kernel_loading import compiled_kernel

__all__ = ["KERNEL_SIGNATURES", "bin_by_work", "gather_runs", "size_directions", "widen"]


@cuda.jit(device=True)
def strips_and_width(rows, columns, band, threads):
    """Strips of a banded matrix, and words of directions that a thread of one may write."""
    tile = int32(threads * ROWS)
    return int32((rows + tile - 1) // tile), strip_width(tile, int32(threads), columns, band)


@compiled_kernel
def bin_by_work(query_ends, reference_ends, bands, threads, width_bins, bins):
    """The bin of each pair by the size of its band; 0 without one. One thread a pair."""
    pair = cuda.grid(1)
    if pair < bins.size:
        number = int32(0)
        if bands[pair] != 0:
            strips, width = strips_and_width(
                query_ends[pair], reference_ends[pair], bands[pair], threads
            )
            number = int32(1 + device_size_bin(strips) * width_bins + device_size_bin(width))
        bins[pair] = uint32(number)


@compiled_kernel
def size_directions(slots, query_ends, reference_ends, bands, threads, sizes):
    """The words of the directions of the slot before, and of each slot's own buffer.

    One thread a slot, and one more. The running sum of them is where directions begin, one
    entry further on.
    """
    slot = cuda.grid(1)
    if slot < sizes.size:
        words = int64(0)
        if slot > 0:
            pair = slots[slot - 1]
            strips, width = strips_and_width(
                query_ends[pair], reference_ends[pair], bands[pair], threads
            )
            words += int64(strips) * width * threads
        if slot < slots.size:
            pair = slots[slot]
            # Every run has a length, but for two clips.
            words += query_ends[pair] + reference_ends[pair] + 2
        sizes[slot] = uint32(words)


@compiled_kernel
def gather_runs(slots, buffer_ends, buffers, offsets, cigar):
    """Bring the runs of each pair from its buffer to its CIGAR. One thread a slot."""
    slot = cuda.grid(1)
    if slot < slots.size:
        first = int64(offsets[slots[slot]])
        runs = int64(offsets[slots[slot] + 1]) - first
        buffer = int64(buffer_ends[slot]) - runs
        for i in range(runs):
            cigar[first + i] = buffers[buffer + i]


@compiled_kernel
def widen(numbers, wide_numbers):
    """The same numbers in 64 bits. One thread a number."""
    i = cuda.grid(1)
    if i < numbers.size:
        wide_numbers[i] = int64(numbers[i])


_NUMBERS, _WORDS = int32[::1], uint32[::1]
KERNEL_SIGNATURES = {
    bin_by_work: (_NUMBERS, _NUMBERS, _NUMBERS, int64, int64, _WORDS),
    size_directions: (_NUMBERS, _NUMBERS, _NUMBERS, _NUMBERS, int64, _WORDS),
    gather_runs: (_NUMBERS, _WORDS, _WORDS, _WORDS, _WORDS),
    widen: (_WORDS, int64[::1]),
}
