"""Scores and end positions of a batch of pairs on the CPU.

Pairs are sorted by length and put side by side, as many as a vector has lanes; `fill_rows` fills
their cells, and the best of the last row or column is found as rule 1 of pairs.py says.
"""

import numba
import numpy as np

from bwarp.alignment.matrix.batches_cpu import (
    ELEMENT_TYPES,
    by_length,
    element_costs,
    fits_type,
    highest_scores,
    lay_out,
    longest_of,
    numba_side,
    put_everywhere,
    set_borders,
)
from bwarp.alignment.matrix.cells_cpu import NEVER, ROWS, best_along, fill_rows
from bwarp.alignment.matrix.substitution_scores_cpu import pair_scheme
from bwarp.alignment.pairs import Ends, PairBatch
from bwarp.alignment.scoring import Mode, Scoring, element_type
from bwarp.runtime.simd import lanes_of, stand_alone
from bwarp.runtime.threads import for_each_range

__all__ = ["find_ends", "find_scores"]


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
    if count == 0:
        return Ends(scores, query_ends, reference_ends)
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
        costs = element_costs(scoring, mode, dtype, int(high[ids].max()))
        scheme, tables = pair_scheme(scoring, dtype)
        exact = np.ones(count, bool)
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
            exact=exact,
            lanes=lanes,
            dtype=dtype,
        ):
            _ends_of_batches(
                order[begin * lanes : end * lanes], queries, references, scheme, tables, costs,
                first, more, np.empty(0, dtype), scores, query_ends, reference_ends, exact, lanes,
                both_ends,
            )  # fmt: skip

        for_each_range(run, order.size // lanes, threads, smallest=4)
        again = ~exact
    return Ends(scores, query_ends, reference_ends)


@numba.njit(cache=True, nogil=True)
def _ends_of_batches(
    order,
    queries,
    references,
    scheme,
    tables,
    costs,
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
        put_everywhere(last_row, columns * lanes, costs.lowest)
        put_everywhere(last_column, height, costs.lowest)
        fill_rows(
            scheme, query[: planes * height], reference, np.int64(0), rows, columns, left, first,
            more, floor, row_H, row_I, costs.local,
            m, np.int64(NEVER) if costs.local else np.int64(m.min()), last_row,
            n, np.int64(n.min()) if costs.query_end else np.int64(NEVER), last_column,
        )  # fmt: skip

        # An empty local alignment is an answer; other modes end at 1 or later.
        put_everywhere(best_row, lanes, costs.origin if costs.local else costs.lowest)
        put_everywhere(row_at, lanes, 0)
        least = one if costs.reference_end or costs.local else n
        best_along(last_row, columns, least, n, best_row, row_at)
        if costs.local and both_ends:
            # Once more up to the column that was found, for the first row that has the score.
            fill_from = np.int64(NEVER)
            for lane in range(lanes):
                n[lane] = row_at[lane]
                if n[lane] > 0:
                    fill_from = min(fill_from, np.int64(n[lane]))
            columns = np.int64(n.max())
            set_borders(costs, first, more, lanes, rows, columns, left, row_H, row_I)
            fill_rows(
                scheme, query[: planes * height], reference, np.int64(0), rows, columns, left,
                first, more, floor, row_H, row_I, np.bool_(False),
                m, np.int64(NEVER), last_row, n, fill_from, last_column,
            )  # fmt: skip
        put_everywhere(best_column, lanes, costs.lowest)
        put_everywhere(column_at, lanes, 0)
        if (costs.local and both_ends) or costs.query_end:
            best_along(last_column, rows, one, m, best_column, column_at)

        _put_ends(
            members, m, n, costs, best_row, row_at, best_column, column_at, scores, query_ends,
            reference_ends, exact,
        )  # fmt: skip


@numba.njit(cache=True, nogil=True)
def _put_ends(
    members,
    m,
    n,
    costs,
    best_row,
    row_at,
    best_column,
    column_at,
    scores,
    query_ends,
    reference_ends,
    exact,
):
    """Pick each lane's end by rule 1 of pairs.py, and say whether its score is proved."""
    stand_alone()
    for lane in range(members.size):
        pair = members[lane]
        best, i, j = np.int64(best_row[lane]), m[lane], row_at[lane]
        other = np.int64(best_column[lane])
        if costs.local:
            i = column_at[lane]
        elif costs.query_end and (other > best or (other == best and j == n[lane])):
            best, i, j = other, column_at[lane], n[lane]
        scores[pair] = best - costs.origin
        query_ends[pair], reference_ends[pair] = i, j
        if costs.local:
            exact[pair] = best < costs.highest
        else:
            high = costs.top * np.int64(min(m[lane], n[lane]))
            exact[pair] = best > costs.lowest + high
