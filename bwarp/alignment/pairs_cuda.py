"""Batches of pairs on a GPU: scores, ends or whole alignments, by the rules of pairs.py.

Nucleotides with a match and a mismatch score go two pairs a register through packed_cuda where
their scores fit 16 bits; the rest, and pairs whose reference has ambiguous letters, through
full_matrix_cuda. An alignment is found in two passes: its end; then, unless it is one diagonal,
the choices of the cells in a band around the diagonal of its end, and a walk back.
"""

import functools

import numpy as np
from numba import cuda

from bwarp.alignment import packed_cuda
from bwarp.alignment.device_pairs import (
    BLOCK,
    DeviceBatch,
    blocks,
    device_batch,
    free_bytes,
    paired_order,
)
from bwarp.alignment.full_matrix_cuda import (
    MATRIX_STRIDE,
    MATRIX_WORDS,
    PADDING_ROW,
    ROWS,
    full_matrix_kernel,
)
from bwarp.alignment.pairs import Alignments, Ends, PairBatch, check_pairs
from bwarp.alignment.scheme import Mode, Scoring, element_type, highest_score, lowest_score
from bwarp.alignment.walk_cuda import check_diagonals, walk_kernel

__all__ = ["pair_alignments", "pair_ends", "pair_scores"]

packed_kernel = functools.cache(packed_cuda.packed_kernel)
full_kernel = functools.cache(full_matrix_kernel)
walker = functools.cache(walk_kernel)

#: (threads, rows) of the packed kernel's tiles, smallest first, where there are many pairs.
MANY_TILES = ((8, 8), (8, 13), (8, 16), (8, 19), (16, 13), (16, 16))
#: The same where there are few: more threads a pair, because the card has them idle.
FEW_TILES = ((32, 2), (32, 4), (32, 5), (32, 8))
#: Groups of 8 threads that fill a large card once.
FEW_GROUPS = 8192
#: The share of the free memory that one launch's work space may take.
MEMORY_SHARE = 0.4
#: Threads a group of the traceback's kernel: low strips keep a band narrow.
BAND_THREADS = 8


def pair_scores(pairs: PairBatch, scoring: Scoring, mode: Mode, threads: int = 1) -> np.ndarray:
    """The best score of each pair.

    Returns
    -------
    scores : ndarray, shape=(count,), dtype=int32
    """
    check_pairs(pairs)
    return find_ends(device_batch(pairs), scoring, mode, with_ends=False)[0].copy_to_host()


def pair_ends(pairs: PairBatch, scoring: Scoring, mode: Mode, threads: int = 1) -> Ends:
    """The best score of each pair and where its alignment ends."""
    check_pairs(pairs)
    return Ends(*(a.copy_to_host() for a in find_ends(device_batch(pairs), scoring, mode)))


def pair_alignments(pairs: PairBatch, scoring: Scoring, mode: Mode, threads: int = 1) -> Alignments:
    """The best alignment of each pair, with its CIGAR."""
    check_pairs(pairs)
    batch = device_batch(pairs)
    ends = find_ends(batch, scoring, mode)
    return trace_paths(batch, scoring, mode, *ends)


def find_ends(batch: DeviceBatch, scoring: Scoring, mode: Mode, with_ends: bool = True):
    """Device arrays of scores, query ends and reference ends (the last two unset without ends)."""
    outputs = tuple(cuda.to_device(np.zeros(batch.count, np.int32)) for _ in range(3))
    if batch.count == 0:
        return outputs
    rows, columns = batch.queries.host_lengths, batch.references.host_lengths
    element_type(scoring, mode, int(rows.max()), int(columns.max()))
    ids = np.arange(batch.count, dtype=np.int32)
    if _has_packed_lanes() and _looks_up_bytes(scoring):
        left = [
            _find_packed(batch, scoring, mode, with_ends, part, outputs)
            for part in _by_tile(ids, rows)
        ]
        ids = np.concatenate(left)
    if ids.size:
        _find_full(batch, scoring, mode, ids, outputs)
    return outputs


# --- 16 bits: two pairs a register --------------------------------------------------------------


def _has_packed_lanes() -> bool:
    return cuda.get_current_device().compute_capability >= (9, 0)


def _looks_up_bytes(scoring: Scoring) -> bool:
    """Whether all scores are a match or a mismatch of four letters, and fit signed bytes."""
    if scoring.match_mismatch is None or scoring.ambiguous != 4 or len(scoring.letters) != 5:
        return False
    match, mismatch = scoring.match_mismatch
    return mismatch <= 0 and match + _shift(scoring) <= 127


def _shift(scoring: Scoring) -> int:
    return max(scoring.gap_open + scoring.gap_extend, -scoring.match_mismatch[1])


def _by_tile(ids, rows):
    """Split pairs by the tile that holds their query: (threads, rows, many tiles, ids) each."""
    tiles = FEW_TILES if ids.size < 2 * FEW_GROUPS else MANY_TILES
    sizes = np.array([threads * height for threads, height in tiles])
    fits = np.searchsorted(sizes, rows[ids])
    for tile in np.unique(fits):
        threads, height = tiles[min(tile, len(tiles) - 1)]
        yield threads, height, bool(tile == len(tiles)), ids[fits == tile]


def _find_packed(batch, scoring, mode, with_ends, part, outputs):
    """Run the packed kernel over the pairs of one tile; returns those it must leave."""
    threads, height, many_tiles, ids = part
    all_rows, all_columns = batch.queries.host_lengths, batch.references.host_lengths
    rows, columns = int(all_rows[ids].max()), int(all_columns[ids].max())
    match, mismatch = scoring.match_mismatch
    shift = _shift(scoring)
    bias = shift + 1 - lowest_score(scoring, mode, rows, columns)
    if bias + highest_score(scoring, rows, columns) + match + shift > 32767 or columns > 65535:
        return ids
    extend = -scoring.gap_extend
    padding = mismatch if mode.local else 0 if mode.reference_start else extend
    parameters = np.array(
        [
            match + shift,
            mismatch + shift,
            padding + shift,
            shift,
            extend - scoring.gap_open,
            extend,
            bias,
            *_free_ends(mode),
        ],
        np.int32,
    )
    kernel = packed_kernel(
        threads,
        height,
        mode.local,
        with_ends,
        many_tiles,
        shift == scoring.gap_open + scoring.gap_extend,
    )
    order = paired_order(ids, all_rows, all_columns)
    stride = columns + 2 * threads
    edge_stride = 2 * columns if many_tiles else 0
    groups = max(1, int(MEMORY_SHARE * free_bytes()) // (4 * (stride + edge_stride)))
    groups = min(groups, order.size // 2)
    selectors = cuda.device_array(groups * stride, np.int32)
    edge = cuda.device_array(max(1, groups * edge_stride), np.int32)
    device_order, device_parameters = cuda.to_device(order), cuda.to_device(parameters)
    queries, references = batch.queries, batch.references
    for first in range(0, order.size // 2, groups):
        slots = device_order[2 * first : 2 * (first + groups)]
        packed_cuda.select_letters[blocks(slots.size // 2 * columns), BLOCK](
            references.codes,
            references.starts,
            references.lengths,
            slots,
            selectors,
            stride,
            threads,
            outputs[0],
        )
        kernel[blocks(slots.size // 2, threads), BLOCK](
            queries.codes,
            queries.starts,
            queries.lengths,
            selectors,
            stride,
            references.lengths,
            slots,
            device_parameters,
            np.int32(1),
            edge,
            edge_stride,
            *outputs,
        )
    scores = outputs[0].copy_to_host()[ids]
    return ids[scores == packed_cuda.REFUSED]


def _free_ends(mode: Mode):
    if mode.local:
        return True, True, True, True
    return mode.query_start, mode.query_end, mode.reference_start, mode.reference_end


# --- 32 bits ------------------------------------------------------------------------------------


def device_matrix(matrix: np.ndarray, padding_score: int):
    """A matrix as full_matrix_cuda keeps it in shared memory, with its row for padding."""
    table = np.zeros((PADDING_ROW + 1, MATRIX_STRIDE), np.int32)
    table[: len(matrix), : len(matrix)] = matrix
    table[PADDING_ROW] = padding_score
    assert table.size == MATRIX_WORDS
    return cuda.to_device(table.ravel())


def _padding_score(scoring: Scoring, mode: Mode) -> int:
    """What a step along the diagonal costs above the first row: it keeps the upper border."""
    if mode.local:
        return -(2**20)
    return 0 if mode.reference_start else -scoring.gap_extend


def _find_full(batch, scoring, mode, ids, outputs):
    rows, columns = batch.queries.host_lengths, batch.references.host_lengths
    # Like sizes side by side: the groups of a warp take the same steps.
    ids = ids[np.lexsort((columns[ids], rows[ids]))]
    matrix = device_matrix(scoring.matrix, _padding_score(scoring, mode))
    extend = -scoring.gap_extend
    parameters = np.array([extend - scoring.gap_open, extend, 1, *_free_ends(mode)], np.int32)
    parameters = cuda.to_device(parameters)
    bands = cuda.to_device(np.full(batch.count, -1, np.int32))
    nothing, no_starts = cuda.device_array(1, np.uint32), cuda.device_array(1, np.int64)
    longest = rows[ids]
    edges = [0, *np.searchsorted(longest, [8 * ROWS, 16 * ROWS], side="right"), ids.size]
    for threads, begin, end in zip((8, 16, 32), edges, edges[1:], strict=False):
        if begin == end:
            continue
        edge_stride = 2 * int(columns[ids[begin:end]].max())
        groups = max(1, int(MEMORY_SHARE * free_bytes()) // (4 * edge_stride))
        edge = cuda.device_array(min(groups, end - begin) * edge_stride, np.int32)
        for first in range(begin, end, groups):
            slots = cuda.to_device(ids[first : min(first + groups, end)])
            full_kernel(threads, mode.local, False, False)[blocks(slots.size, threads), BLOCK](
                batch.queries.codes,
                batch.queries.starts,
                batch.queries.lengths,
                batch.references.codes,
                batch.references.starts,
                batch.references.lengths,
                slots,
                bands,
                matrix,
                parameters,
                edge,
                edge_stride,
                nothing,
                no_starts,
                *outputs,
            )


# --- Paths --------------------------------------------------------------------------------------


def trace_paths(
    batch: DeviceBatch, scoring: Scoring, mode: Mode, scores, query_ends, reference_ends
) -> Alignments:
    """The alignments that end in given cells: device arrays, as `find_ends` gives them."""
    count = batch.count
    ends = query_ends, reference_ends
    rows, columns = (a.copy_to_host() for a in ends)
    bands, diagonals = _check_diagonals(batch, scoring, mode, scores, ends)
    host_bands = bands.copy_to_host()
    walked = [cuda.device_array(count, np.int32) for _ in range(4)]
    run_counts = walked[0]
    free = _free_ends(mode)
    walk_parameters = cuda.to_device(np.array([free[0], free[2], 0], np.int32))
    nothing = cuda.device_array(1, np.uint32)
    queries, references = batch.queries, batch.references
    parts = []
    for ids, n_banded, starts in _portions(host_bands, rows, columns):
        slots, choices_starts = cuda.to_device(ids), cuda.to_device(starts)
        choices = nothing
        if n_banded:
            choices = _store_choices(
                batch, scoring, mode, slots[:n_banded], starts, ends, bands, columns[ids[:n_banded]]
            )
        arguments = (
            queries.codes,
            queries.starts,
            references.codes,
            references.starts,
            references.lengths,
            slots,
            *ends,
            bands,
            diagonals,
            choices,
            choices_starts,
            walk_parameters,
            np.int32(scoring.ambiguous),
        )
        walk = walker(BAND_THREADS, False)[blocks(ids.size), BLOCK]
        walk(*arguments, True, *walked, choices_starts, nothing)
        counts = np.zeros(count, np.int64)
        counts[ids] = run_counts.copy_to_host()[ids]
        offsets = np.zeros(count + 1, np.int64)
        np.cumsum(counts, out=offsets[1:])
        cigar = cuda.device_array(max(1, int(offsets[-1])), np.uint32)
        walk(*arguments, False, *walked, cuda.to_device(offsets), cigar)
        parts.append((offsets, cigar.copy_to_host()[: offsets[-1]]))
    _, distances, first_rows, first_columns = (a.copy_to_host() for a in walked)
    return Alignments(
        scores.copy_to_host(), first_rows, rows, first_columns, columns, distances, *_merged(parts)
    )


def _check_diagonals(batch, scoring, mode, scores, ends):
    bands, diagonals = (cuda.device_array(batch.count, np.int32) for _ in range(2))
    free = _free_ends(mode)
    best_entry = max(int(scoring.matrix.max()), 0)
    parameters = np.array(
        [mode.local, free[0], free[2], scoring.gap_open, scoring.gap_extend, best_entry], np.int32
    )
    if batch.count:
        check_diagonals[blocks(batch.count), BLOCK](
            batch.queries.codes,
            batch.queries.starts,
            batch.references.codes,
            batch.references.starts,
            device_matrix(scoring.matrix, 0),
            MATRIX_STRIDE,
            cuda.to_device(parameters),
            scores,
            *ends,
            bands,
            diagonals,
        )
    return bands, diagonals


def _portions(bands, rows, columns):
    """Split pairs into portions whose choices fit the memory.

    Yields
    ------
    ids : ndarray, dtype=int32
        First the pairs with a band, alike side by side; in the first portion then all others.
    n_banded : int
    starts : ndarray, dtype=int64
        Where the choices of each begin; one more for the end of the banded ones.
    """
    single = np.flatnonzero(bands == 0).astype(np.int32)
    banded = np.flatnonzero(bands != 0).astype(np.int32)
    banded = banded[np.lexsort((rows[banded], bands[banded]))]
    tile = BAND_THREADS * ROWS
    strips = -(-rows[banded].astype(np.int64) // tile)
    width = np.minimum(columns[banded], tile + 2 * bands[banded].astype(np.int64))
    ends = np.cumsum(strips * (width + BAND_THREADS - 1) * BAND_THREADS)
    words = int(MEMORY_SHARE * free_bytes()) // 4
    begin, before = 0, 0
    while begin < banded.size or single.size:
        stop = max(begin + 1, int(np.searchsorted(ends, before + words, side="right")))
        stop = min(stop, banded.size)
        starts = np.concatenate([[0], ends[begin:stop] - before, np.zeros(single.size, np.int64)])
        yield np.concatenate([banded[begin:stop], single]), stop - begin, starts
        single = single[:0]
        begin, before = stop, int(ends[stop - 1]) if stop else 0


def _store_choices(batch, scoring, mode, slots, starts, ends, bands, columns):
    """The choices of all cells in the bands of some pairs whose alignments end in given cells."""
    edge_stride = 2 * int(columns.max())
    choices = cuda.device_array(int(starts[slots.size]) + 1, np.uint32)
    edge = cuda.device_array(slots.size * edge_stride, np.int32)
    free = _free_ends(mode)
    extend = -scoring.gap_extend
    parameters = [extend - scoring.gap_open, extend, 1, free[0], False, free[2], False]
    kernel = full_kernel(BAND_THREADS, mode.local, False, True)
    kernel[blocks(slots.size, BAND_THREADS), BLOCK](
        batch.queries.codes,
        batch.queries.starts,
        ends[0],
        batch.references.codes,
        batch.references.starts,
        ends[1],
        slots,
        bands,
        device_matrix(scoring.matrix, _padding_score(scoring, mode)),
        cuda.to_device(np.array(parameters, np.int32)),
        edge,
        edge_stride,
        choices,
        cuda.to_device(starts),
        *(bands, bands, bands),
    )
    return choices


def _merged(parts):
    """One array of CIGARs in the order of the pairs, out of portions that hold some pairs each."""
    if len(parts) == 1:
        return parts[0]
    offsets = sum((part for part, _ in parts), np.zeros_like(parts[0][0]))
    cigar = np.empty(int(offsets[-1]), np.uint32)
    for part_offsets, part in parts:
        counts = np.diff(part_offsets)
        shift = np.repeat(offsets[:-1] - part_offsets[:-1], counts)
        cigar[np.arange(part.size) + shift] = part
    return offsets, cigar
