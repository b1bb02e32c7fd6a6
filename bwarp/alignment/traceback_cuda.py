"""Find whole alignments on a GPU, for every mode and for GATK's rules, given their ends.

Alignments of a single diagonal are recognised. For other pairs, the directions of all cells in a
band around the diagonal of the end are stored and traced back. Only numbers are copied to the host
in between: of pairs by amount of work, and of runs in all CIGARs. Few pairs go through
few_pairs_cuda.

The comments below describe the layout of directions and runs in memory.
"""

from collections.abc import Iterator
from functools import lru_cache, partial

import numpy as np

from bwarp.alignment.device_batch_cuda import (
    BLOCK,
    MEMORY_SHARE,
    Costs,
    DeviceBatch,
    Order,
    blocks,
    clear,
    device_size_bin,
    largest_in_bin,
    order_by_bins,
    size_bin,
)
from bwarp.alignment.follow_directions_cuda import (
    COUNT,
    WRITE,
    check_diagonals,
    trace_diagonals,
    traceback_kernel,
)
from bwarp.alignment.int32_kernel_cuda import MATRIX_STRIDE, ROWS, full_matrix_kernel, strip_width
from bwarp.alignment.pair_tables_cuda import (
    Cells,
    Cigars,
    Directions,
    EndArrays,
    PairArrays,
    Traced,
)
from bwarp.alignment.pairs import Alignments
from bwarp.gpu.available_memory import affordable
from bwarp.gpu.cuda import cuda, int32, int64, uint32
from bwarp.gpu.kernel import kernel
from bwarp.gpu.memory_pool import cut, device_array, work_space
from bwarp.gpu.sums_and_sorts import exclusive_sum
from bwarp.gpu.transfers import to_host
from bwarp.runtime.timeline import on_timeline

# The directions of the band of each pair on the GPU, preceded by its traceback buffer.
#
#     [ buffer 0 | directions 0 | buffer 1 | directions 1 | ...
#        <----             <----
#
# A traceback runs from the end of an alignment to its start: its runs fill the buffer before the
# directions of the pair from the back, until their number is known and they are copied to the
# CIGAR.


@cuda.jit(device=True)
def strips_and_width(cells, pair, threads):
    """Return the strips of a banded matrix, and the words of directions per thread of a strip."""
    tile = int32(threads * ROWS)
    strips = int32((cells.query_ends[pair] + tile - 1) // tile)
    columns, band = cells.reference_ends[pair], cells.bands[pair]
    return strips, strip_width(tile, int32(threads), columns, band)


@kernel
def bin_by_work(cells: Cells, threads: int, width_bins: int, bins: uint32[::1]):
    """Compute the bin of each pair by the size of its band; 0 without one. One thread per pair."""
    pair = cuda.grid(1)
    if pair < bins.size:
        number = int32(0)
        if cells.bands[pair] != 0:
            strips, width = strips_and_width(cells, pair, threads)
            number = int32(1 + device_size_bin(strips) * width_bins + device_size_bin(width))
        bins[pair] = uint32(number)


@kernel
def size_directions(slots: int32[::1], cells: Cells, threads: int, sizes: uint32[::1]):
    """Compute the words of directions of the previous slot and of the buffer of each slot.

    One thread per slot, and one more. The prefix sum gives the start of directions, shifted by one
    entry.
    """
    slot = cuda.grid(1)
    if slot < sizes.size:
        words = int64(0)
        if slot > 0:
            pair = slots[slot - 1]
            strips, width = strips_and_width(cells, pair, threads)
            words += int64(strips) * width * threads
        if slot < slots.size:
            pair = slots[slot]
            # Every run has a length, except for two clips.
            words += cells.query_ends[pair] + cells.reference_ends[pair] + 2
        sizes[slot] = uint32(words)


@kernel
def gather_runs(
    slots: int32[::1], buffer_ends: uint32[::1], buffers: uint32[::1], offsets: uint32[::1],
    cigar: uint32[::1],
):  # fmt: skip
    """Copy the runs of each pair from its buffer to its CIGAR. One thread per slot."""
    slot = cuda.grid(1)
    if slot < slots.size:
        first = int64(offsets[slots[slot]])
        runs = int64(offsets[slots[slot] + 1]) - first
        buffer = int64(buffer_ends[slot]) - runs
        for i in range(runs):
            cigar[first + i] = buffers[buffer + i]


@kernel
def widen(numbers: uint32[::1], wide_numbers: int64[::1]):
    """Convert numbers to 64 bits. One thread per number."""
    i = cuda.grid(1)
    if i < numbers.size:
        wide_numbers[i] = int64(numbers[i])


#: Threads per group of the traceback kernel: low strips keep a band narrow.
BAND_THREADS = 4
#: Directions of one launch are counted in 32 bits.
MOST_WORDS = 2**32 - 1


@on_timeline("find CIGARs on the GPU")
def trace_alignments(
    batch: DeviceBatch, costs: Costs, ends: EndArrays, threads: int = 1
) -> Alignments:
    """Find the alignments with given end cells and scores.

    With GATK's costs, without edit distances. `threads` copy the results to the host.
    """
    count = batch.count
    if count == 0:
        nothing = np.zeros(0, np.int32)
        return Alignments(*[nothing] * 6, np.zeros(1, np.int64), np.zeros(0, np.uint32))
    buffer = batch.queries.longest + batch.references.longest + 2
    with work_space():
        # Edit distances, first rows and first columns.
        results = [device_array(count, np.int32) for _ in range(3)]
        distances, first_rows, first_columns = results
        fields = [
            ends.scores, first_rows, ends.query_ends, first_columns, ends.reference_ends, distances,
        ]  # fmt: skip
        # Ends, bands, and lengths of single-diagonal alignments, which are in bin 0.
        cells = Cells(*ends[1:], *_check_diagonals(batch, costs, ends))
        order, item_words = _order_by_work(batch, cells)
        edge_words = 2 * batch.references.longest
        portions = [
            (begin, end, words - (end - begin) * edge_words)
            for begin, end, words in _portions(order.starts, item_words + buffer + edge_words)
        ]
        portions = portions or [(int(order.starts[1]), int(order.starts[1]), 0)]
        if len(portions) == 1:
            cigars = _trace_portion(batch, costs, cells, order, *portions[0], results)
            return Alignments(*to_host([*fields, *cigars], threads))
        pieces = []
        for portion in portions:
            with work_space():
                cigars = _trace_portion(batch, costs, cells, order, *portion, results)
                pieces.append(to_host(cigars, threads))
        return Alignments(*to_host(fields, threads), *_merged(pieces))


def _trace_portion(batch, costs, cells, order, begin, end, words, results):
    """Return offsets and CIGARs (device arrays) of some slots; the first portion includes
    diagonals.
    """
    without_band = int(order.starts[1])
    has_diagonals = begin == without_band > 0
    # First count the runs of each pair, then compute where they begin.
    offsets, nothing = (device_array(size, np.uint32) for size in (batch.count + 1, 1))
    traced = Traced(offsets, *results)
    clear(offsets)
    if begin < end:
        slots = order.part(begin, end)
        sizes = device_array(slots.size + 1, np.uint32)
        size_directions[blocks(sizes.size), BLOCK](slots, cells, BAND_THREADS, sizes)
        exclusive_sum(sizes)
        starts = cut(sizes, 4, slots.size, np.uint32)
        directions = Directions(device_array(words, np.uint32), starts)
        _store_directions(batch, costs, slots, directions, cells)
        trace = _traceback(batch, costs, slots, directions, cells)
        trace(COUNT | WRITE, traced, Cigars(starts, directions.words))
    if has_diagonals:
        trace = _diagonal_traceback(batch, costs, order.part(0, without_band), cells)
        trace(COUNT, traced, Cigars(nothing, nothing))
    exclusive_sum(offsets)
    [[runs]] = to_host([cut(offsets, 4 * batch.count, 1, np.uint32)])
    cigar = device_array(int(runs), np.uint32)
    if has_diagonals:
        trace(WRITE, traced, Cigars(offsets, cigar))
    if begin < end:
        gather_runs[blocks(slots.size), BLOCK](slots, starts, directions.words, offsets, cigar)
    wide_offsets = device_array(offsets.size, np.int64)
    widen[blocks(offsets.size), BLOCK](offsets, wide_offsets)
    return wide_offsets, cigar


def _check_diagonals(batch, costs, ends):
    bands, diagonals = (device_array(batch.count, np.int32) for _ in range(2))
    best_entry = max(int(costs.matrix.max()), 0)
    gap_open, gap_extend = costs.extend - costs.first, -costs.extend
    check_diagonals[blocks(batch.count, 32), BLOCK](
        batch.arrays,
        costs.device_matrix,
        MATRIX_STRIDE,
        (
            *map(int, (costs.local, costs.free[0], costs.free[2])),
            *(gap_open, gap_extend, best_entry),
        ),
        ends,
        bands,
        diagonals,
    )
    return bands, diagonals


def _order_by_work(batch, cells) -> tuple[Order, np.ndarray]:
    """Sort pairs by strips and width, those without a band first; also return the words per pair
    and bin.
    """
    most_columns = batch.references.longest
    most_strips = -(-batch.queries.longest // (BAND_THREADS * ROWS))
    strip_bins = size_bin(most_strips) + 1
    width_bins = size_bin(most_columns + BAND_THREADS) + 1
    bins = device_array(batch.count, np.uint32)
    bin_by_work[blocks(batch.count), BLOCK](cells, BAND_THREADS, width_bins, bins)
    order = order_by_bins(bins, batch.count, 1, 1 + strip_bins * width_bins, False)
    return order, _most_words_of_bins(strip_bins, width_bins)


@lru_cache(maxsize=8)
def _most_words_of_bins(strip_bins: int, width_bins: int) -> np.ndarray:
    strips, widths = (
        np.array([largest_in_bin(i) for i in range(number)]) for number in (strip_bins, width_bins)
    )
    return np.append(0, np.outer(strips, widths).ravel() * BAND_THREADS)


def _portions(starts: np.ndarray, item_words: np.ndarray) -> Iterator[tuple[int, int, int]]:
    """Split the pairs with a band into ranges of slots whose directions fit in memory.

    Parameters
    ----------
    starts : ndarray, dtype=int64
        The start of each bin of an `Order`; bin 0 has no directions.
    item_words : ndarray, dtype=int64
        The maximum words of a pair of each bin.

    Yields
    ------
    begin, end, words : int
        A range of slots and its maximum memory.
    """
    begin, words = int(starts[1]), int(np.diff(starts[1:]) @ item_words[1:])
    most = min(affordable(4 * words, MEMORY_SHARE) // 4, MOST_WORDS)
    if words <= most:
        if begin < starts[-1]:
            yield begin, int(starts[-1]), words
        return
    words = 0
    for number in np.flatnonzero(np.diff(starts[1:])) + 1:
        item, at, stop = int(item_words[number]), int(starts[number]), int(starts[number + 1])
        while at < stop:
            fits = (most - words) // item
            if fits < 1 and at > begin:
                yield begin, at, words
                begin, words = at, 0
                continue
            taken = min(stop - at, max(fits, 1))
            at, words = at + taken, words + taken * item
    if begin < starts[-1]:
        yield begin, int(starts[-1]), words


def _diagonal_traceback(batch, costs, slots, cells):
    """Return the kernel for single-diagonal alignments with its first arguments."""
    if costs.is_gatk:
        # The traceback of GATK adds clips on diagonals too.
        nothing = Directions(*[device_array(1, np.uint32)] * 2)
        return _traceback(batch, costs, slots, nothing, cells)
    kernel = trace_diagonals[blocks(slots.size, 32), BLOCK]
    return partial(kernel, batch.arrays, slots, cells, np.int32(costs.ambiguous))


def _store_directions(batch, costs, slots, directions, cells):
    edge_stride = 2 * batch.references.longest
    # The end is the corner of the remaining matrix.
    queries = batch.queries.arrays._replace(lengths=cells.query_ends)
    references = batch.references.arrays._replace(lengths=cells.reference_ends)
    free = costs.free[0], False, costs.free[2], False
    kernel = full_matrix_kernel(BAND_THREADS, costs.local, False, True)
    with work_space():
        edge = device_array(slots.size * edge_stride, np.int32)
        kernel[blocks(slots.size, BAND_THREADS), BLOCK](
            PairArrays(queries, references),
            slots,
            cells.bands,
            costs.of_kernel(free),
            edge,
            edge_stride,
            directions,
            EndArrays(*[cells.bands] * 3),
        )


def _traceback(batch, costs, slots, directions, cells):
    kernel = traceback_kernel(costs.is_gatk)[blocks(slots.size, 32), BLOCK]
    rules = costs.trace_rules(BAND_THREADS)
    return partial(kernel, batch.arrays, slots, cells, directions, rules)


def _merged(pieces):
    """Merge pieces of offsets and CIGARs, each of some pairs, for all pairs."""
    counts = sum(np.diff(offsets) for offsets, _ in pieces)
    all_offsets = np.zeros(counts.size + 1, np.int64)
    np.cumsum(counts, out=all_offsets[1:])
    cigar = np.empty(int(all_offsets[-1]), np.uint32)
    for offsets, part in pieces:
        shift = np.repeat(all_offsets[:-1] - offsets[:-1], np.diff(offsets))
        cigar[np.arange(part.size) + shift] = part
    return all_offsets, cigar
