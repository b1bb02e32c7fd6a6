"""Whole paths on a GPU, for every mode and for GATK's, given where alignments end.

The pairs whose alignment is one diagonal are recognised; for the others the choices of all cells in
a band around the diagonal of the end are stored, and walked back. Only sizes come to the host in
between: how many pairs there are of what work, and how many runs all CIGARs have. Of few pairs,
where the card waits for the host, every step is left out that costs no time but its launch.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numba import cuda, int32, int64, uint32

from bwarp.alignment.batch_cuda import BLOCK, DeviceBatch, blocks, free_bytes
from bwarp.alignment.ends_cuda import MEMORY_SHARE, Costs
from bwarp.alignment.full_matrix_cuda import MATRIX_STRIDE, ROWS, full_matrix_kernel, strip_width
from bwarp.alignment.order_cuda import (
    FEW_PAIRS,
    Order,
    clear,
    device_size_bin,
    largest_in_bin,
    order_by_bins,
    size_bin,
)
from bwarp.alignment.scratch_cuda import scratch
from bwarp.alignment.walk_cuda import (
    COUNT,
    WRITE,
    check_diagonals,
    walk_diagonals,
    walk_kernel,
)
from bwarp.index.prefix_sum_cuda import exclusive_sum
from bwarp.transfers_cuda import to_card

__all__ = ["KERNEL_SIGNATURES", "Paths", "trace_paths"]

#: Threads a group of the traceback's kernel: low strips keep a band narrow.
BAND_THREADS = 4
#: Choices of one launch are counted in 32 bits.
MOST_WORDS = 2**32 - 1
#: Words of choices, or of room for CIGARs, up to which a batch is one of few pairs.
FEW_WORDS = 1 << 24


@dataclass(frozen=True)
class Paths:
    """Where alignments start, and what lies between: fields as in `Alignments`."""

    query_starts: np.ndarray
    reference_starts: np.ndarray
    edit_distances: np.ndarray
    cigar_offsets: np.ndarray
    cigar: np.ndarray


def trace_paths(batch: DeviceBatch, costs: Costs, scores, query_ends, reference_ends) -> Paths:
    """The paths of alignments that end in given cells with given scores (device arrays)."""
    count = batch.count
    if count == 0:
        nothing = np.zeros(0, np.int32)
        return Paths(nothing, nothing, nothing, np.zeros(1, np.int64), np.zeros(0, np.uint32))
    ends = query_ends, reference_ends
    words, room = _most_words(batch), batch.queries.longest + batch.references.longest + 2
    if count < FEW_PAIRS and count * max(words, room) <= FEW_WORDS:
        return _trace_few(batch, costs, scores, ends, words, room)
    bands, diagonals = _check_diagonals(batch, costs, scores, ends, 0)
    order, item_words = _order_by_work(batch, bands, ends)
    results = [cuda.device_array(count, np.int32) for _ in range(3)]
    walks, pieces = [], []
    if order.starts[1]:
        without_band = order.slots[: int(order.starts[1])]
        walks.append(_diagonal_walk(batch, costs, without_band, ends, bands, diagonals))
    edge_words = 2 * batch.references.longest
    for begin, end, words in _portions(order.starts, item_words + edge_words):
        slots = order.slots[begin:end]
        starts = cuda.device_array(slots.size, np.uint32)
        size_choices[blocks(slots.size), BLOCK](slots, *ends, bands, BAND_THREADS, starts)
        exclusive_sum(starts)
        with scratch(words - slots.size * edge_words, np.uint32) as choices:
            walks.append(_banded_walk(batch, costs, slots, starts, choices, ends, bands, diagonals))
            pieces.append(_count_and_write(walks, count, results))
        # The choices of this portion make room for the next.
        walks = []
    if walks:
        pieces.append(_count_and_write(walks, count, results))
    distances, first_rows, first_columns = (a.copy_to_host() for a in results)
    return Paths(first_rows, first_columns, distances, *_merged(pieces))


def _most_words(batch) -> int:
    """Words of choices that a pair takes at most."""
    strips = -(-batch.queries.longest // (BAND_THREADS * ROWS))
    return strips * (batch.references.longest + BAND_THREADS - 1) * BAND_THREADS


def _trace_few(batch, costs, scores, ends, words, room) -> Paths:
    """`trace_paths` where every pair gets as much memory as any may need, and walks once."""
    count = batch.count
    bands, diagonals = _check_diagonals(batch, costs, scores, ends, 0 if costs.is_gatk else 1)
    slots = to_card(np.arange(count, dtype=np.int32))
    starts = to_card(np.arange(count, dtype=np.uint32) * np.uint32(words))
    choices = cuda.device_array(count * words, np.uint32)
    walk, arguments = _banded_walk(batch, costs, slots, starts, choices, ends, bands, diagonals)
    cigar_ends = np.arange(count + 1, dtype=np.uint32) * np.uint32(room)
    counts, cigar = (cuda.device_array(size, np.uint32) for size in (count, count * room))
    results = [cuda.device_array(count, np.int32) for _ in range(3)]
    walk(*arguments, COUNT | WRITE, counts, *results, to_card(cigar_ends), cigar)
    distances, first_rows, first_columns = (a.copy_to_host() for a in results)
    counts, cigar = counts.copy_to_host(), cigar.copy_to_host()
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    shift = np.repeat(cigar_ends[1:].astype(np.int64) - offsets[1:], counts)
    cigar = cigar[np.arange(offsets[-1]) + shift]
    return Paths(first_rows, first_columns, distances, offsets, cigar)


def _check_diagonals(batch, costs, scores, ends, diagonal_band):
    bands, diagonals = (cuda.device_array(batch.count, np.int32) for _ in range(2))
    best_entry = max(int(costs.matrix.max()), 0)
    gap_open, gap_extend = costs.extend - costs.first, -costs.extend
    check_diagonals[blocks(batch.count, 32), BLOCK](
        batch.queries.codes,
        batch.queries.starts,
        batch.references.codes,
        batch.references.starts,
        costs.device_matrix(),
        MATRIX_STRIDE,
        (
            *map(int, (costs.local, costs.free[0], costs.free[2])),
            *(gap_open, gap_extend, best_entry, diagonal_band),
        ),
        scores,
        *ends,
        bands,
        diagonals,
    )
    return bands, diagonals


def _order_by_work(batch, bands, ends) -> tuple[Order, np.ndarray]:
    """Pairs by strips and their width, those without a band first; and words a pair of each bin."""
    most_columns = batch.references.longest
    most_strips = -(-batch.queries.longest // (BAND_THREADS * ROWS))
    strip_bins = size_bin(most_strips) + 1
    width_bins = size_bin(most_columns + BAND_THREADS) + 1
    bins = cuda.device_array(batch.count, np.uint32)
    bin_by_work[blocks(batch.count), BLOCK](*ends, bands, BAND_THREADS, width_bins, bins)
    order = order_by_bins(bins, batch.count, 1, 1 + strip_bins * width_bins, False)
    strips, widths = (
        np.array([largest_in_bin(i) for i in range(number)]) for number in (strip_bins, width_bins)
    )
    return order, np.append(0, np.outer(strips, widths).ravel() * BAND_THREADS)


def _portions(starts: np.ndarray, item_words: np.ndarray) -> Iterator[tuple[int, int, int]]:
    """Split the pairs with a band into ranges of slots whose choices fit the memory.

    Parameters
    ----------
    starts : ndarray, dtype=int64
        Where each bin of an `Order` starts; bin 0 has no choices.
    item_words : ndarray, dtype=int64
        Words that a pair of each bin takes at most.

    Yields
    ------
    begin, end, words : int
        A range of slots and what it takes at most.
    """
    most = min(int(MEMORY_SHARE * free_bytes()) // 4, MOST_WORDS)
    begin, words = int(starts[1]), 0
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


def _diagonal_walk(batch, costs, slots, ends, bands, diagonals):
    """Pairs that align along one diagonal: the kernel and its first arguments."""
    if costs.is_gatk:
        # GATK's walk puts the clips on diagonals too.
        nothing = cuda.device_array(1, np.uint32)
        return _walk(batch, costs, slots, ends, bands, diagonals, nothing, nothing)
    arguments = (
        batch.queries.codes,
        batch.queries.starts,
        batch.references.codes,
        batch.references.starts,
        slots,
        *ends,
        diagonals,
        np.int32(costs.ambiguous),
    )
    return walk_diagonals[blocks(slots.size, 32), BLOCK], arguments


def _banded_walk(batch, costs, slots, starts, choices, ends, bands, diagonals):
    """The same of pairs whose choices it stores first."""
    edge_stride = 2 * batch.references.longest
    # The end is the corner of what is left of the matrix.
    tie, free = int(costs.opens_on_tie), costs.free
    parameters = (costs.first, costs.extend, tie, int(free[0]), 0, int(free[2]), 0, 0)
    kernel = full_matrix_kernel(BAND_THREADS, costs.local, False, True)
    with scratch(slots.size * edge_stride, np.int32) as edge:
        kernel[blocks(slots.size, BAND_THREADS), BLOCK](
            batch.queries.codes,
            batch.queries.starts,
            ends[0],
            batch.references.codes,
            batch.references.starts,
            ends[1],
            slots,
            bands,
            costs.device_matrix(),
            parameters,
            edge,
            edge_stride,
            choices,
            starts,
            *(bands, bands, bands),
        )
    return _walk(batch, costs, slots, ends, bands, diagonals, choices, starts)


def _walk(batch, costs, slots, ends, bands, diagonals, choices, starts):
    arguments = (
        batch.queries.codes,
        batch.queries.starts,
        batch.references.codes,
        batch.references.starts,
        batch.references.lengths,
        slots,
        *ends,
        bands,
        diagonals,
        choices,
        starts,
        (int(costs.free[0]), int(costs.free[2]), max(costs.overhang, 0)),
        np.int32(costs.ambiguous),
    )
    return walk_kernel(BAND_THREADS, costs.is_gatk)[blocks(slots.size), BLOCK], arguments


def _count_and_write(walks, count, results):
    """Walk once to count runs and once to write them: offsets by pair, and CIGARs."""
    offsets, nothing = cuda.device_array(count + 1, np.uint32), cuda.device_array(1, np.uint32)
    clear(offsets)
    for walk, arguments in walks:
        walk(*arguments, COUNT, offsets, *results, nothing, nothing)
    exclusive_sum(offsets)
    host_offsets = offsets.copy_to_host()
    runs = int(host_offsets[-1])
    cigar = cuda.device_array(max(1, runs), np.uint32)
    for walk, arguments in walks:
        walk(*arguments, WRITE, nothing, *results, offsets, cigar)
    return host_offsets.astype(np.int64), cigar.copy_to_host()[:runs]


def _merged(pieces):
    """Offsets and CIGARs of all pairs, out of pieces that have those of some pairs each."""
    if len(pieces) == 1:
        return pieces[0]
    counts = sum(np.diff(offsets) for offsets, _ in pieces)
    all_offsets = np.zeros(counts.size + 1, np.int64)
    np.cumsum(counts, out=all_offsets[1:])
    cigar = np.empty(int(all_offsets[-1]), np.uint32)
    for offsets, part in pieces:
        shift = np.repeat(all_offsets[:-1] - offsets[:-1], np.diff(offsets))
        cigar[np.arange(part.size) + shift] = part
    return all_offsets, cigar


@cuda.jit(device=True)
def strips_and_width(rows, columns, band, threads):
    """Strips of a banded matrix, and words of choices that a thread of one may write."""
    tile = int32(threads * ROWS)
    return int32((rows + tile - 1) // tile), strip_width(tile, int32(threads), columns, band)


@cuda.jit(cache=True)
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


@cuda.jit(cache=True)
def size_choices(slots, query_ends, reference_ends, bands, threads, words):
    """Words of choices of the pair in each slot. One thread a slot."""
    slot = cuda.grid(1)
    if slot < slots.size:
        pair = slots[slot]
        strips, width = strips_and_width(
            query_ends[pair], reference_ends[pair], bands[pair], threads
        )
        words[slot] = uint32(int64(strips) * width * threads)


_NUMBERS, _WORDS = int32[::1], uint32[::1]
KERNEL_SIGNATURES = {
    bin_by_work: (_NUMBERS, _NUMBERS, _NUMBERS, int64, int64, _WORDS),
    size_choices: (_NUMBERS, _NUMBERS, _NUMBERS, _NUMBERS, int64, _WORDS),
}
