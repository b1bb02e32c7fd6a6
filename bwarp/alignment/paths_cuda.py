"""Ends in 32 bits and whole paths on a GPU, for every mode and for GATK's.

Paths take two passes: given where each alignment ends, the pairs whose alignment is one diagonal
are recognised; for the others the choices of all cells in a band around the diagonal of the end are
stored, and walked back.
"""

from dataclasses import dataclass

import numpy as np
from numba import cuda

from bwarp.alignment.batch_cuda import BLOCK, DeviceBatch, blocks, by_size, free_bytes
from bwarp.alignment.full_matrix_cuda import (
    MATRIX_STRIDE,
    PADDING_ROW,
    ROWS,
    full_matrix_kernel,
)
from bwarp.alignment.scheme import Mode, Scoring
from bwarp.alignment.walk_cuda import check_diagonals, walk_diagonals, walk_kernel

__all__ = ["MEMORY_SHARE", "Costs", "Paths", "find_full", "free_ends", "pair_costs", "trace_paths"]

#: The share of the free memory that one launch's work space may take.
MEMORY_SHARE = 0.4
#: Threads a group of the traceback's kernel: low strips keep a band narrow.
BAND_THREADS = 8


@dataclass(frozen=True)
class Costs:
    """What the 32-bit kernels need to know of a scheme and a mode.

    Attributes
    ----------
    matrix : ndarray, shape=(k, k)
    first, extend : int
        Scores of a gap's first letter and of a further one, negative or 0.
    opens_on_tie : bool
        Of two gaps of equal score the one that opens here counts.
    free : tuple of bool
        query_start, query_end, reference_start, reference_end.
    local : bool
    ambiguous : int
    overhang : int
        -1, or for GATK's rules its strategy: 0 INDEL or LEADING_INDEL, 1 SOFTCLIP, 2 IGNORE.
    """

    matrix: np.ndarray
    first: int
    extend: int
    opens_on_tie: bool
    free: tuple[bool, bool, bool, bool]
    local: bool = False
    ambiguous: int = -1
    overhang: int = -1

    @property
    def is_gatk(self) -> bool:
        return self.overhang >= 0

    def device_matrix(self):
        """The matrix as full_matrix_cuda keeps it in shared memory, with its row for padding."""
        table = np.zeros((PADDING_ROW + 1, MATRIX_STRIDE), np.int32)
        table[: len(self.matrix), : len(self.matrix)] = self.matrix
        # A step along the diagonal above the first row keeps the upper border.
        table[PADDING_ROW] = -(2**20) if self.local else 0 if self.free[2] else self.extend
        return cuda.to_device(table.ravel())


@dataclass(frozen=True)
class Paths:
    """Where alignments start, and what lies between: fields as in `Alignments`."""

    query_starts: np.ndarray
    reference_starts: np.ndarray
    edit_distances: np.ndarray
    cigar_offsets: np.ndarray
    cigar: np.ndarray


def free_ends(mode: Mode) -> tuple[bool, bool, bool, bool]:
    """query_start, query_end, reference_start and reference_end; all free where local."""
    if mode.local:
        return True, True, True, True
    return mode.query_start, mode.query_end, mode.reference_start, mode.reference_end


def pair_costs(scoring: Scoring, mode: Mode) -> Costs:
    """The costs of a scheme by the rules of pairs.py."""
    extend = -scoring.gap_extend
    first = extend - scoring.gap_open
    return Costs(
        scoring.matrix, first, extend, True, free_ends(mode), mode.local, scoring.ambiguous
    )


def find_full(batch: DeviceBatch, costs: Costs, ids: np.ndarray, outputs) -> None:
    """Scores and ends of some pairs into `outputs`: device arrays scores, query and other ends."""
    rows, columns = batch.queries.host_lengths, batch.references.host_lengths
    # Like sizes side by side: the groups of a warp take the same steps.
    ids = by_size(ids, columns, rows)
    parameters = [costs.first, costs.extend, costs.opens_on_tie, *costs.free, 0]
    parameters = cuda.to_device(np.array(parameters, np.int32))
    matrix = costs.device_matrix()
    bands = cuda.to_device(np.full(batch.count, -1, np.int32))
    nothing, no_starts = cuda.device_array(1, np.uint32), cuda.device_array(1, np.int64)
    edges = [0, *np.searchsorted(rows[ids], [8 * ROWS, 16 * ROWS], side="right"), ids.size]
    for threads, begin, end in zip((8, 16, 32), edges, edges[1:], strict=False):
        if begin == end:
            continue
        edge_stride = 2 * int(columns[ids[begin:end]].max())
        groups = max(1, int(MEMORY_SHARE * free_bytes()) // (4 * edge_stride))
        edge = cuda.device_array(int(min(groups, end - begin) * edge_stride), np.int32)
        kernel = full_matrix_kernel(threads, costs.local, costs.is_gatk, False)
        for first in range(begin, end, groups):
            slots = cuda.to_device(ids[first : min(first + groups, end)])
            kernel[blocks(slots.size, threads), BLOCK](
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


def trace_paths(batch: DeviceBatch, costs: Costs, scores, query_ends, reference_ends) -> Paths:
    """The paths of alignments that end in given cells with given scores (device arrays)."""
    count = batch.count
    ends = query_ends, reference_ends
    rows, columns = (a.copy_to_host() for a in ends)
    bands, diagonals = _check_diagonals(batch, costs, scores, ends)
    walked = [cuda.device_array(count, np.int32) for _ in range(4)]
    host_bands = bands.copy_to_host()
    # GATK's walk puts the clips on diagonals too.
    single = np.flatnonzero((host_bands == 0) & (not costs.is_gatk)).astype(np.int32)
    others = np.flatnonzero((host_bands != 0) | costs.is_gatk).astype(np.int32)
    walks = [_single_walk(batch, costs, single, ends, diagonals)] if single.size else []
    pieces = []
    for ids, starts in _portions(others, host_bands, rows, columns):
        walks.append(_banded_walk(batch, costs, ids, starts, ends, bands, diagonals))
        pieces.append(_count_and_write(walks, walked))
        # The choices of this portion make room for the next.
        walks = []
    if walks:
        pieces.append(_count_and_write(walks, walked))
    counts, distances, first_rows, first_columns = (a.copy_to_host() for a in walked)
    offsets = np.zeros(count + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return Paths(first_rows, first_columns, distances, offsets, _merged(pieces, counts, offsets))


def _single_walk(batch, costs, ids, ends, diagonals):
    """Pairs that align along one diagonal: their ids, the kernel, its first arguments."""
    arguments = (
        batch.queries.codes,
        batch.queries.starts,
        batch.references.codes,
        batch.references.starts,
        cuda.to_device(ids),
        *ends,
        diagonals,
        np.int32(costs.ambiguous),
    )
    return ids, walk_diagonals[blocks(ids.size, 32), BLOCK], arguments


def _banded_walk(batch, costs, ids, starts, ends, bands, diagonals):
    """The same of pairs whose choices it stores first; GATK's without a band have none."""
    slots, choices_starts = cuda.to_device(ids), cuda.to_device(starts)
    choices = cuda.device_array(int(starts[-1]) + 1, np.uint32)
    if starts[-1]:
        without = int(np.searchsorted(starts, 0, side="right")) - 1
        banded, begins = slots[without:], choices_starts[without:]
        _store_choices(batch, costs, banded, ends, bands, choices, begins)
    parameters = [costs.free[0], costs.free[2], max(costs.overhang, 0)]
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
        choices_starts,
        cuda.to_device(np.array(parameters, np.int32)),
        np.int32(costs.ambiguous),
    )
    return ids, walk_kernel(BAND_THREADS, costs.is_gatk)[blocks(ids.size), BLOCK], arguments


def _count_and_write(walks, walked):
    """Walk once to count runs and once to write them: ids, and their CIGARs by ascending id."""
    nothing = cuda.device_array(1, np.int64), cuda.device_array(1, np.uint32)
    for _, walk, arguments in walks:
        walk(*arguments, True, *walked, *nothing)
    ids = np.concatenate([ids for ids, _, _ in walks])
    counts = walked[0].copy_to_host()
    offsets = np.zeros(counts.size + 1, np.int64)
    if ids.size < counts.size:
        of_these = np.zeros(counts.size, np.int32)
        of_these[ids] = counts[ids]
        counts = of_these
    np.cumsum(counts, out=offsets[1:])
    cigar = cuda.device_array(max(1, int(offsets[-1])), np.uint32)
    device_offsets = cuda.to_device(offsets)
    for _, walk, arguments in walks:
        walk(*arguments, False, *walked, device_offsets, cigar)
    return ids, cigar.copy_to_host()[: offsets[-1]]


def _check_diagonals(batch, costs, scores, ends):
    bands, diagonals = (cuda.device_array(batch.count, np.int32) for _ in range(2))
    best_entry = max(int(costs.matrix.max()), 0)
    gap_open, gap_extend = costs.extend - costs.first, -costs.extend
    parameters = [costs.local, costs.free[0], costs.free[2], gap_open, gap_extend, best_entry]
    if batch.count:
        check_diagonals[blocks(batch.count, 32), BLOCK](
            batch.queries.codes,
            batch.queries.starts,
            batch.references.codes,
            batch.references.starts,
            costs.device_matrix(),
            MATRIX_STRIDE,
            cuda.to_device(np.array(parameters, np.int32)),
            scores,
            *ends,
            bands,
            diagonals,
        )
    return bands, diagonals


def _portions(ids, bands, rows, columns):
    """Split pairs into portions whose choices fit the memory.

    Yields
    ------
    ids : ndarray, dtype=int32
        Pairs of like bands and sizes side by side, those without a band first.
    starts : ndarray, dtype=int64
        Where the choices of each begin, and where the last of them end.
    """
    ids = by_size(ids, rows, bands)
    tile = BAND_THREADS * ROWS
    strips = -(-rows[ids].astype(np.int64) // tile)
    width = np.minimum(columns[ids], tile + 2 * bands[ids].astype(np.int64))
    words = strips * (width + BAND_THREADS - 1) * BAND_THREADS
    words[bands[ids] == 0] = 0
    ends = np.cumsum(words)
    most = int(MEMORY_SHARE * free_bytes()) // 4
    begin, before = 0, 0
    while begin < ids.size:
        stop = max(begin + 1, int(np.searchsorted(ends, before + most, side="right")))
        starts = np.concatenate([[0], ends[begin:stop] - before])
        yield ids[begin:stop], starts
        begin, before = stop, int(ends[stop - 1])


def _store_choices(batch, costs, slots, ends, bands, choices, choices_starts):
    """The choices of all cells in the bands of pairs whose alignments end in given cells."""
    edge_stride = 2 * int(batch.references.host_lengths.max())
    edge = cuda.device_array(slots.size * edge_stride, np.int32)
    tie, free = costs.opens_on_tie, costs.free
    # The end is the corner of what is left of the matrix.
    parameters = [costs.first, costs.extend, tie, free[0], False, free[2], False, 0]
    kernel = full_matrix_kernel(BAND_THREADS, costs.local, False, True)
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
        cuda.to_device(np.array(parameters, np.int32)),
        edge,
        edge_stride,
        choices,
        choices_starts,
        *(bands, bands, bands),
    )


def _merged(pieces, counts, offsets):
    """One array of CIGARs in the order of the pairs, out of pieces that hold some pairs each."""
    if len(pieces) == 1:
        return pieces[0][1]
    cigar = np.empty(int(offsets[-1]), np.uint32)
    for ids, part in pieces:
        ids = np.sort(ids)
        lengths = counts[ids]
        shift = np.repeat(offsets[ids] - (np.cumsum(lengths) - lengths), lengths)
        cigar[np.arange(part.size) + shift] = part
    return cigar
