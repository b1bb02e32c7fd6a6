"""Scores and end positions of a batch of pairs on the CPU.

Pairs are sorted by length and put side by side, as many as a vector has lanes; `fill_rows` fills
their cells, and the best of the last row or column is found as rule 1 of pairs.py says.

Each pair runs in the narrowest type that is likely to do, and again in the next wider one where
the answer turns out not to be proved:

    local          the score stayed below the highest number of the type: nothing was cut off
    not local      values below ``lowest - origin`` were raised to it, nothing above is ever cut.
                   A path through a raised cell, counted from there, collects at most the best
                   entry of the matrix for every letter pair, `high` in all. So a score above
                   ``lowest - origin + high`` comes from no raised cell, and is exact; and so is
                   every cell of every path that reaches it.
"""

from typing import NamedTuple

import numba
import numpy as np

from bwarp.alignment.cells_cpu import NEVER, ROWS, best_along, fill_rows, interleave
from bwarp.alignment.pairs import Ends, PairBatch, Sequences
from bwarp.alignment.scheme import Mode, Scoring, element_type
from bwarp.alignment.substitution_cpu import pair_scheme
from bwarp.simd import fill, lanes_of, store
from bwarp.threads import for_each_range

__all__ = [
    "ELEMENT_TYPES",
    "Frame",
    "Side",
    "by_length",
    "element_frame",
    "find_ends",
    "find_scores",
    "fits_type",
    "highest_scores",
    "longest_of",
    "numba_side",
    "put_everywhere",
    "set_borders",
]

ELEMENT_TYPES = (np.int8, np.int16, np.int32)

#: The highest score a pair may reach for a type to be tried: local, and not local. Of the latter
#: the rest of the range is for scores below zero.
_TRIED = {np.int8: (255, 190), np.int16: (65_535, 49_000), np.int32: (2**30, 2**30)}

#: What 32-bit values are kept above: far below any score, far above overflow.
_LOWEST_32 = -(2**30)


class Side(NamedTuple):
    """`Sequences` for compiled code."""

    codes: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray


class Frame(NamedTuple):
    """All that is the same for every batch of one run, for compiled code.

    `origin` stands for a score of 0, and nothing lies below `lowest`. `top` is the best entry of
    the matrix, or 0.
    """

    local: bool
    query_start: bool
    query_end: bool
    reference_start: bool
    reference_end: bool
    gap_open: int
    gap_extend: int
    top: int
    origin: int
    lowest: int
    highest: int


def numba_side(sequences: Sequences) -> Side:
    """The arrays of one side, contiguous."""
    return Side(
        *(np.ascontiguousarray(a) for a in (sequences.codes, sequences.starts)),
        np.ascontiguousarray(sequences.lengths, np.int32),
    )


def highest_scores(scoring: Scoring, query_lengths, reference_lengths) -> np.ndarray:
    """What the score of each pair cannot pass, int64."""
    shorter = np.minimum(query_lengths, reference_lengths).astype(np.int64)
    return shorter * max(int(scoring.matrix.max()), 0)


def fits_type(scoring: Scoring, mode: Mode, high: np.ndarray, dtype) -> np.ndarray:
    """Which pairs to try in this type."""
    info = np.iinfo(dtype)
    if scoring.gap_open + scoring.gap_extend > info.max or scoring.matrix.min() < info.min:
        return np.zeros(high.size, bool)
    return high <= _TRIED[dtype][0 if mode.local else 1]


def element_frame(scoring: Scoring, mode: Mode, dtype, high: int) -> Frame:
    """The frame for scores up to `high` in this type."""
    info = np.iinfo(dtype)
    if dtype is np.int32:
        origin, lowest = 0, _LOWEST_32
    else:
        origin, lowest = info.max - high, info.min
    if mode.local:
        origin = lowest = 0 if dtype is np.int32 else info.min
    return Frame(
        mode.local,
        mode.local or mode.query_start,
        mode.query_end and not mode.local,
        mode.local or mode.reference_start,
        mode.reference_end,
        scoring.gap_open,
        scoring.gap_extend,
        max(int(scoring.matrix.max()), 0),
        int(origin),
        int(lowest),
        int(info.max),
    )


def by_length(ids: np.ndarray, rows: np.ndarray, columns: np.ndarray, lanes: int) -> np.ndarray:
    """The ids sorted by rows, then columns, filled up to whole batches with the last one."""
    key = rows[ids].astype(np.int64) << 32 | columns[ids]
    if np.any(key[1:] < key[:-1]):
        ids = ids[np.argsort(key, kind="stable")]
    return np.pad(ids, (0, -ids.size % lanes), mode="edge")


def find_scores(pairs: PairBatch, scoring: Scoring, mode: Mode, threads: int) -> np.ndarray:
    """The scores of all pairs, int32; one pass over the cells even for local alignments."""
    return _find(pairs, scoring, mode, threads, False).scores


def find_ends(pairs: PairBatch, scoring: Scoring, mode: Mode, threads: int) -> Ends:
    """Scores and ends of all pairs; local alignments take a second pass for the query's end."""
    return _find(pairs, scoring, mode, threads, True)


def _find(pairs: PairBatch, scoring: Scoring, mode: Mode, threads: int, both_ends: bool) -> Ends:
    queries, references = numba_side(pairs.queries), numba_side(pairs.references)
    count = pairs.count
    scores, query_ends, reference_ends = (np.zeros(count, np.int32) for _ in range(3))
    high = highest_scores(scoring, queries.lengths, references.lengths)
    for longest in (high.argmax(), (queries.lengths + references.lengths).argmax()):
        element_type(scoring, mode, int(queries.lengths[longest]), int(references.lengths[longest]))
    untried, again = np.ones(count, bool), np.zeros(count, bool)
    for dtype in ELEMENT_TYPES:
        tried = untried & fits_type(scoring, mode, high, dtype)
        untried &= ~tried
        ids = np.flatnonzero(tried | again)
        if ids.size == 0:
            continue
        lanes = lanes_of(dtype)
        order = by_length(ids, queries.lengths, references.lengths, lanes)
        frame = element_frame(scoring, mode, dtype, int(high[ids].max()))
        scheme, tables = pair_scheme(scoring, dtype)
        exact = np.ones(count, bool)
        first = dtype(frame.gap_open + frame.gap_extend)
        more = dtype(frame.gap_extend)

        def run(
            begin,
            end,
            order=order,
            frame=frame,
            scheme=scheme,
            tables=tables,
            first=first,
            more=more,
            exact=exact,
            lanes=lanes,
            dtype=dtype,
        ):
            _ends_of_batches(
                order[begin * lanes : end * lanes], queries, references, scheme, tables, frame,
                first, more, np.empty(0, dtype), scores, query_ends, reference_ends, exact, lanes,
                both_ends,
            )  # fmt: skip

        for_each_range(run, order.size // lanes, threads, smallest=4)
        again = ~exact
    return Ends(scores, query_ends, reference_ends)


@numba.njit(cache=True, nogil=True)
def longest_of(lengths, members):
    """The largest of some lengths, int64."""
    longest = np.int64(0)
    for member in members:
        longest = max(longest, np.int64(lengths[member]))
    return longest


@numba.njit(cache=True, nogil=True)
def put_everywhere(array, count, value):
    """array[:count] = value, in less time to compile."""
    for k in range(count):
        array[k] = value


@numba.njit(cache=True, nogil=True)
def set_borders(frame, first, more, lanes, rows, columns, left, row_H, row_I):
    """H on the left border (from i = 0) and the upper one (from j = 1), and I below that."""
    for i in range(rows + 1):
        value = frame.origin
        if not frame.query_start and i > 0:
            value = max(frame.lowest, frame.origin - frame.gap_open - i * frame.gap_extend)
        store(left, i * lanes, fill(left.dtype.type(value)))
    for j in range(columns):
        value = frame.origin
        if not frame.reference_start:
            value = max(frame.lowest, frame.origin - frame.gap_open - (j + 1) * frame.gap_extend)
        store(row_H, j * lanes, fill(left.dtype.type(value)))
        store(row_I, j * lanes, fill(left.dtype.type(max(frame.lowest, value - first))))


@numba.njit(cache=True, nogil=True)
def _ends_of_batches(
    order,
    queries,
    references,
    scheme,
    tables,
    frame,
    first,
    more,
    left,
    scores,
    query_ends,
    reference_ends,
    exact,
    lanes,
    both_ends,
):
    """Fill the batches in `order`; each pair's answer goes to its own place.

    `left` is a scratch array of the type to compute in, of any size.
    """
    rows = -(-longest_of(queries.lengths, order) // ROWS) * ROWS
    columns = longest_of(references.lengths, order)
    planes = tables.query.shape[0]
    query = np.empty(planes * rows * lanes, np.uint8)
    reference = np.empty(columns * lanes, np.uint8)
    left = np.empty((rows + 1) * lanes, left.dtype)
    last_column = np.empty(rows * lanes, left.dtype)
    row_H = np.empty(columns * lanes, left.dtype)
    row_I = np.empty(columns * lanes, left.dtype)
    last_row = np.empty(columns * lanes, left.dtype)
    best_row = np.empty(lanes, left.dtype)
    best_column = np.empty(lanes, left.dtype)
    row_at = np.empty(lanes, np.int32)
    column_at = np.empty(lanes, np.int32)
    one = np.ones(lanes, np.int32)
    floor = left.dtype.type(frame.lowest)

    for begin in range(0, order.size, lanes):
        members = order[begin : begin + lanes]
        m, n = queries.lengths[members], references.lengths[members]
        rows = (np.int64(m.max()) + ROWS - 1) // ROWS * ROWS
        columns = np.int64(n.max())
        height = rows * lanes
        for plane in range(planes):
            interleave(
                queries.codes, queries.starts[members], m, tables.query[plane],
                tables.query_padding[plane], rows, query, plane * height,
            )  # fmt: skip
        interleave(
            references.codes, references.starts[members], n, tables.reference,
            tables.reference_padding, columns, reference, 0,
        )  # fmt: skip
        set_borders(frame, first, more, lanes, rows, columns, left, row_H, row_I)
        put_everywhere(last_row, columns * lanes, frame.lowest)
        put_everywhere(last_column, height, frame.lowest)
        fill_rows(
            scheme, query[: planes * height], reference, np.int64(0), rows, columns, left, first,
            more, floor, row_H, row_I, frame.local,
            m, np.int64(NEVER) if frame.local else np.int64(m.min()), last_row,
            n, np.int64(n.min()) if frame.query_end else np.int64(NEVER), last_column,
        )  # fmt: skip

        # An empty local alignment is an answer; other modes end at 1 or later.
        put_everywhere(best_row, lanes, frame.origin if frame.local else frame.lowest)
        put_everywhere(row_at, lanes, 0)
        least = one if frame.reference_end or frame.local else n
        best_along(last_row, columns, least, n, best_row, row_at)
        if frame.local and both_ends:
            # Once more up to the column that was found, for the first row that has the score.
            fill_from = np.int64(NEVER)
            for lane in range(lanes):
                n[lane] = row_at[lane]
                if n[lane] > 0:
                    fill_from = min(fill_from, np.int64(n[lane]))
            columns = np.int64(n.max())
            set_borders(frame, first, more, lanes, rows, columns, left, row_H, row_I)
            fill_rows(
                scheme, query[: planes * height], reference, np.int64(0), rows, columns, left,
                first, more, floor, row_H, row_I, np.bool_(False),
                m, np.int64(NEVER), last_row, n, fill_from, last_column,
            )  # fmt: skip
        put_everywhere(best_column, lanes, frame.lowest)
        put_everywhere(column_at, lanes, 0)
        if (frame.local and both_ends) or frame.query_end:
            best_along(last_column, rows, one, m, best_column, column_at)

        for lane in range(lanes):
            pair = members[lane]
            best, i, j = np.int64(best_row[lane]), m[lane], row_at[lane]
            other = np.int64(best_column[lane])
            if frame.local:
                i = column_at[lane]
            elif frame.query_end and (other > best or (other == best and j == n[lane])):
                best, i, j = other, column_at[lane], n[lane]
            scores[pair] = best - frame.origin
            query_ends[pair], reference_ends[pair] = i, j
            if frame.local:
                exact[pair] = best < frame.highest
            else:
                high = frame.top * np.int64(min(m[lane], n[lane]))
                exact[pair] = best > frame.lowest + high
