"""Where the directions of each pair's band lie on the GPU, and the traceback buffer before them.

    [ buffer 0 | directions 0 | buffer 1 | directions 1 | ...
       <----             <----

A traceback runs from the end of an alignment to its start: its runs fill the buffer before the
pair's directions from the back, until their number is known and they go where the CIGAR lies.
"""

from bwarp.alignment.matrix.int32_kernel_cuda import ROWS, strip_width
from bwarp.alignment.matrix.order_by_size_cuda import device_size_bin
from bwarp.gpu.cuda import cuda, int32, int64, uint32
from bwarp.gpu.kernel import kernel

__all__ = ["bin_by_work", "gather_runs", "size_directions", "widen"]


@cuda.jit(device=True)
def strips_and_width(rows, columns, band, threads):
    """Strips of a banded matrix, and words of directions that a thread of one may write."""
    tile = int32(threads * ROWS)
    return int32((rows + tile - 1) // tile), strip_width(tile, int32(threads), columns, band)


@kernel
def bin_by_work(
    query_ends: int32[::1], reference_ends: int32[::1], bands: int32[::1], threads: int,
    width_bins: int, bins: uint32[::1],
):  # fmt: skip
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


@kernel
def size_directions(
    slots: int32[::1], query_ends: int32[::1], reference_ends: int32[::1], bands: int32[::1],
    threads: int, sizes: uint32[::1],
):  # fmt: skip
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


@kernel
def gather_runs(
    slots: int32[::1], buffer_ends: uint32[::1], buffers: uint32[::1], offsets: uint32[::1],
    cigar: uint32[::1],
):  # fmt: skip
    """Bring the runs of each pair from its buffer to its CIGAR. One thread a slot."""
    slot = cuda.grid(1)
    if slot < slots.size:
        first = int64(offsets[slots[slot]])
        runs = int64(offsets[slots[slot] + 1]) - first
        buffer = int64(buffer_ends[slot]) - runs
        for i in range(runs):
            cigar[first + i] = buffers[buffer + i]


@kernel
def widen(numbers: uint32[::1], wide_numbers: int64[::1]):
    """The same numbers in 64 bits. One thread a number."""
    i = cuda.grid(1)
    if i < numbers.size:
        wide_numbers[i] = int64(numbers[i])
