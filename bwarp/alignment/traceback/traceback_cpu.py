"""CIGARs on the CPU: from the known score and end of each pair, by the rules of pairs.py.

1. The diagonal that ends in the end cell is added up. Where it collects the
   whole score it is the answer (pairs.py says why), and most reads end here.
2. The others are laid side by side again, only up to their ends and within the band that their
   score allows, and filled with four bits a cell that say how each came about. Queries too long
   for the bits of the whole matrix are filled twice: once keeping H and I of a row here and there,
   then from the last such row upwards, with bits, a slice of rows at a time.

       kept rows      0 ------------- c ------------- 2c ---------- end
       traced back    third           second          first
                                                                 <- end cell
"""

from collections.abc import Callable
from functools import partial

import numba
import numpy as np

from bwarp.alignment.matrix.batches_cpu import (
    ELEMENT_TYPES,
    Side,
    by_length,
    element_costs,
    fits_type,
    highest_scores,
    lay_out,
    longest_of,
    numba_side,
)
from bwarp.alignment.matrix.cells_cpu import NEVER, ROWS, fill_directions, fill_rows
from bwarp.alignment.matrix.substitution_scores_cpu import pair_scheme
from bwarp.alignment.pairs import EQUAL, Alignments, Ends, PairBatch
from bwarp.alignment.scoring import Mode, Scoring
from bwarp.alignment.traceback.cigars_cpu import gather_cigars, grown
from bwarp.alignment.traceback.follow_directions_cpu import follow_directions
from bwarp.alignment.traceback.ungapped_cpu import resolve_ungapped
from bwarp.runtime.simd import lanes_of, stand_alone
from bwarp.runtime.threads import for_each_range

__all__ = ["DIRECTION_BYTES", "trace", "trace_alignments"]

#: Bytes of direction bits a batch may take before it is filled in slices.
DIRECTION_BYTES = 1 << 24


def trace_alignments(
    pairs: PairBatch, scoring: Scoring, mode: Mode, ends: Ends, threads: int
) -> Alignments:
    """The alignments that end where `ends` says, with its scores."""
    return trace(
        pairs, scoring, scoring.matrix.astype(np.int32), partial(pair_scheme, scoring), mode,
        False, ends, threads,
    )  # fmt: skip


def trace(
    pairs: PairBatch,
    scoring: Scoring,
    matrix: np.ndarray,
    scheme_of: Callable[[type], tuple],
    mode: Mode,
    extend_ties: bool,
    ends: Ends,
    threads: int,
) -> Alignments:
    """`trace_alignments` for a given way to score residues.

    Parameters
    ----------
    matrix : ndarray, dtype=int32
        ``matrix[query code, reference code]``.
    scheme_of : callable
        The vector scheme and tables of an element type, as `pair_scheme`.
    extend_ties : bool
        Gaps that could open or extend at the same score extend (GATK's way).
    """
    queries, references = numba_side(pairs.queries), numba_side(pairs.references)
    count = pairs.count
    starts = np.zeros((2, count), np.int32)
    distances, operations = np.zeros(count, np.int32), np.zeros(count, np.int32)
    cigar_starts = np.zeros(count, np.int64)
    parts: list[np.ndarray] = []
    high = highest_scores(scoring, ends.query_ends, ends.reference_ends)
    ungapped = np.zeros(count, bool)
    any_costs = element_costs(scoring, mode, np.int32, 0)

    def run_diagonals(begin, end):
        return begin, end, resolve_ungapped(
            begin, end, queries, references, matrix, scoring.ambiguous, any_costs,
            ends.scores, ends.query_ends, ends.reference_ends,
            starts, distances, operations, cigar_starts, ungapped,
        )  # fmt: skip

    base = 0
    for begin, end, part in for_each_range(run_diagonals, count, threads, smallest=4096):
        cigar_starts[begin:end] += base
        base += part.size
        parts.append(part)

    waiting = ~ungapped
    for dtype in ELEMENT_TYPES:
        lanes = lanes_of(dtype)
        tried = waiting & fits_type(scoring, mode, high, dtype)
        if not tried.any():
            continue
        costs = element_costs(scoring, mode, dtype, int(high[tried].max()))
        if mode.local:
            tried &= ends.scores < costs.highest - costs.origin
        else:
            tried &= ends.scores > costs.lowest - costs.origin + high
        waiting &= ~tried
        ids = np.flatnonzero(tried)
        if ids.size == 0:
            continue
        windows = _windows(ends, scoring, high, references)
        order = by_length(ids, ends.query_ends, windows.lengths, lanes)
        scheme, tables = scheme_of(dtype)
        first = dtype(costs.gap_open + costs.gap_extend)
        more = dtype(costs.gap_extend)

        def run(
            begin,
            end,
            order=order,
            costs=costs,
            scheme=scheme,
            tables=tables,
            first=first,
            more=more,
            dtype=dtype,
            lanes=lanes,
            windows=windows,
        ):
            members = order[begin * lanes : end * lanes]
            return members, _trace_batches(
                members, Side(queries.codes, queries.starts, ends.query_ends), windows,
                ends.reference_ends, scheme, tables, costs, matrix, scoring.ambiguous, first, more,
                np.empty(0, dtype), np.empty(0, f"u{max(lanes // 8, 1)}"), ends.scores,
                starts, distances, operations, cigar_starts, lanes, DIRECTION_BYTES, extend_ties,
            )  # fmt: skip

        for members, part in for_each_range(run, order.size // lanes, threads, smallest=4):
            cigar_starts[np.unique(members)] += base
            base += part.size
            parts.append(part)
    cigar_offsets, cigar = gather_cigars(parts, cigar_starts, operations)
    return Alignments(
        ends.scores, starts[0], ends.query_ends, starts[1], ends.reference_ends, distances,
        cigar_offsets, cigar,
    )  # fmt: skip


def _windows(ends: Ends, scoring: Scoring, high: np.ndarray, references: Side) -> Side:
    """The stretch of each reference that optimal paths can reach: the band's bounding box."""
    starts = np.zeros(ends.scores.size, np.int64)
    if scoring.gap_extend > 0:
        gap_residues = (high - scoring.gap_open - ends.scores) // scoring.gap_extend
        band_start = ends.reference_ends.astype(np.int64) - ends.query_ends - gap_residues
        starts = np.maximum(band_start, 0)
    lengths = (ends.reference_ends - starts).astype(np.int32)
    return Side(references.codes, references.starts + starts, lengths)


@numba.njit(cache=True, nogil=True)
def _trace_batches(
    order,
    queries,
    references,
    reference_ends,
    scheme,
    tables,
    costs,
    matrix,
    ambiguous,
    first,
    more,
    left,
    directions,
    scores,
    starts,
    distances,
    operations,
    cigar_starts,
    lanes,
    most_bytes,
    extend_ties,
):
    """Fill and trace back the batches in `order`; returns their CIGARs.

    `queries` go up to each end, `references` are windows up to each end. `left` and `directions`
    give the types of scores and of one bit for every lane.
    """
    rows = -(-longest_of(queries.lengths, order) // ROWS) * ROWS
    columns = longest_of(references.lengths, order)
    planes = tables.query.shape[0]
    query = np.empty(planes * rows * lanes, np.uint8)
    reference = np.empty(columns * lanes, np.uint8)
    left = np.empty((rows + 1) * lanes, left.dtype)
    row_H = np.empty(columns * lanes, left.dtype)
    row_I = np.empty(columns * lanes, left.dtype)
    slice_rows = rows
    if rows * columns * 4 * directions.itemsize > most_bytes:
        # as many bytes for the bits of a slice as for the kept rows of all slices
        kept_bytes = 2 * lanes * left.itemsize
        slice_rows = int(np.sqrt(rows * kept_bytes / (4 * directions.itemsize))) // ROWS * ROWS
        slice_rows = min(rows, max(ROWS, slice_rows))
    directions = np.empty(slice_rows * columns * 4, directions.dtype)
    slices = (rows + slice_rows - 1) // slice_rows
    kept = np.empty((slices, 2, columns * lanes), left.dtype)
    nothing = np.empty(0, left.dtype)
    runs = np.empty((lanes, rows + columns + 1), np.uint32)
    state = np.empty((lanes, 5), np.int64)
    part = np.empty(16 * order.size + 16, np.uint32)
    used = np.int64(0)
    floor = left.dtype.type(costs.lowest)

    for begin in range(0, order.size, lanes):
        members = order[begin : begin + lanes]
        m, n = queries.lengths[members], references.lengths[members]
        rows = (np.int64(m.max()) + ROWS - 1) // ROWS * ROWS
        columns = np.int64(n.max())
        height = rows * lanes
        lay_out(
            members, queries, references, tables, costs, first, more, rows, columns, query,
            reference, left, row_H, row_I,
        )  # fmt: skip
        _start_tracebacks(members, m, n, reference_ends, scores, costs, rows, left, state)
        slices = (rows + slice_rows - 1) // slice_rows
        for number in range(slices - 1):
            for k in range(columns * lanes):
                kept[number, 0, k], kept[number, 1, k] = row_H[k], row_I[k]
            fill_rows(
                scheme, query[: planes * height], reference, number * slice_rows,
                (number + 1) * slice_rows, columns, left, first, more, floor, row_H, row_I,
                np.bool_(False), m, np.int64(NEVER), nothing, n, np.int64(NEVER), nothing,
            )  # fmt: skip
        for number in range(slices - 1, -1, -1):
            above = number * slice_rows
            if number < slices - 1:
                for k in range(columns * lanes):
                    row_H[k], row_I[k] = kept[number, 0, k], kept[number, 1, k]
            fill_directions(
                scheme, query[: planes * height], reference, above,
                min(rows, above + slice_rows), columns, left, first, more, floor, extend_ties,
                row_H, row_I, directions,
            )  # fmt: skip
            for lane in range(lanes):
                pair = members[lane]
                follow_directions(
                    lane, above, columns, directions, costs, matrix, ambiguous,
                    queries.codes[queries.starts[pair] :],
                    references.codes[references.starts[pair] :],
                    state[lane], runs[lane],
                )  # fmt: skip

        part, used = _put_cigars(
            members, n, reference_ends, state, runs, part, used, starts, distances, operations,
            cigar_starts,
        )  # fmt: skip
    return part[:used]


@numba.njit(cache=True, nogil=True)
def _start_tracebacks(members, m, n, reference_ends, scores, costs, rows, left, state):
    """Start every lane's traceback at its end cell, and bar the left edge of windows to it."""
    stand_alone()
    lanes = members.size
    for lane in range(lanes):
        if n[lane] < reference_ends[members[lane]]:
            # The window's left edge is no border, but the edge of the band.
            for i in range(1, rows + 1):
                left[i * lanes + lane] = costs.lowest
        state[lane, 0], state[lane, 1] = m[lane], n[lane]
        state[lane, 2] = 0
        state[lane, 3] = scores[members[lane]]
        state[lane, 4] = 0


@numba.njit(cache=True, nogil=True)
def _put_cigars(
    members, n, reference_ends, state, runs, part, used, starts, distances, operations, cigar_starts
):
    """Turn the runs of every lane round into `part`; returns it, larger if need be, and its use."""
    stand_alone()
    for lane in range(members.size):
        pair = members[lane]
        if lane > 0 and members[lane - 1] == pair:
            continue  # a copy that fills up the last batch
        count = state[lane, 4]
        starts[0, pair] = state[lane, 0]
        starts[1, pair] = state[lane, 1] + reference_ends[pair] - n[lane]
        operations[pair], cigar_starts[pair] = count, used
        part = grown(part, used + count)
        distance = 0
        for k in range(count):
            run = runs[lane, count - 1 - k]
            part[used + k] = run
            if run & 15 != EQUAL:
                distance += run >> 4
        distances[pair] = distance
        used += count
    return part, used
