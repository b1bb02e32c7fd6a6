"""Scores and end positions of a batch of pairs on the CPU.

Pairs are sorted by length and put side by side, as many as a vector has lanes; `fill_rows` fills
their cells, and the best of the last row or column is found as rule 1 of pairs.py says, or GATK's.
"""

from functools import partial

import numpy as np

from bwarp.alignment.matrix.batches_cpu import (
    ELEMENT_TYPES,
    Rules,
    batches_of,
    cells_for,
    fits_type,
    for_each_batch,
    highest_scores,
    lay_out,
    numba_side,
    put_everywhere,
    set_borders,
)
from bwarp.alignment.matrix.cells_cpu import NEVER, Last, best_along, fill_rows
from bwarp.alignment.pairs import Ends, PairBatch
from bwarp.alignment.scoring import element_type
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import stand_alone

__all__ = ["find_ends"]


def find_ends(pairs: PairBatch, rules: Rules, threads: int, both_ends: bool = True) -> Ends:
    """Scores and ends of all pairs.

    Local alignments take a second pass for the query's end, unless `both_ends` is False.
    """
    queries, references = numba_side(pairs.queries), numba_side(pairs.references)
    count = pairs.count
    ends = Ends(*(np.zeros(count, np.int32) for _ in range(3)))
    if count == 0:
        return ends
    high = highest_scores(rules, queries, queries.lengths, references.lengths)
    shorter = np.minimum(queries.lengths, references.lengths)
    for longest in (shorter.argmax(), (queries.lengths + references.lengths).argmax()):
        lengths = int(queries.lengths[longest]), int(references.lengths[longest])
        element_type(rules.scoring, rules.mode, *lengths)
    untried, exact = np.ones(count, bool), np.ones(count, bool)
    answers = ends.scores, ends.query_ends, ends.reference_ends, exact
    for dtype in ELEMENT_TYPES:
        tried = untried & fits_type(rules, high, dtype)
        untried &= ~tried
        ids = np.flatnonzero(tried | ~exact)
        if ids.size:
            batches = batches_of(queries, references, rules, dtype, int(high[ids].max()))
            fill = partial(_ends_of_batches, batches, rules.overhang, both_ends, answers)
            for_each_batch(fill, batches, ids, threads)
    return ends


@compiled
def _ends_of_batches(batches, overhang, both_ends, answers, order):
    """Fill the batches in `order`, and put each pair's answer where it belongs."""
    costs, lanes, kind = batches.costs, batches.lanes, batches.kind.dtype
    cells = cells_for(batches, order)
    last_row = np.empty(cells.row_h.size, kind)
    last_column = np.empty(cells.left.size, kind)
    best_row, best_column = np.empty(lanes, kind), np.empty(lanes, kind)
    row_at, column_at = np.empty(lanes, np.int32), np.empty(lanes, np.int32)
    one, never = np.ones(lanes, np.int32), np.int64(NEVER)

    for begin in range(0, order.size, lanes):
        members = order[begin : begin + lanes]
        m, n, rows, columns = lay_out(batches, members, cells)
        put_everywhere(last_row, columns * lanes, costs.lowest)
        put_everywhere(last_column, rows * lanes, costs.lowest)
        any_row = costs.query_end or overhang >= 0
        fill_rows(
            batches.scheme, cells, costs, np.int64(0), rows, columns, costs.local,
            Last(m, never if costs.local else np.int64(m.min()), last_row),
            Last(n, np.int64(n.min()) if any_row else never, last_column),
        )  # fmt: skip
        if overhang >= 0:
            _put_gatk_ends(members, m, n, costs, last_row, last_column, overhang, answers)
            continue

        # An empty local alignment is an answer; other modes end at 1 or later.
        put_everywhere(best_row, lanes, costs.origin if costs.local else costs.lowest)
        put_everywhere(row_at, lanes, 0)
        least = one if costs.reference_end or costs.local else n
        best_along(last_row, columns, least, n, best_row, row_at)
        if costs.local and both_ends:
            # Once more up to the column that was found, for the first row that has the score.
            fill_from = never
            for lane in range(lanes):
                n[lane] = row_at[lane]
                if n[lane] > 0:
                    fill_from = min(fill_from, np.int64(n[lane]))
            columns = np.int64(n.max())
            set_borders(costs, cells, lanes, rows, columns)
            fill_rows(
                batches.scheme, cells, costs, np.int64(0), rows, columns, np.bool_(False),
                Last(m, never, last_row), Last(n, fill_from, last_column),
            )  # fmt: skip
        put_everywhere(best_column, lanes, costs.lowest)
        put_everywhere(column_at, lanes, 0)
        if (costs.local and both_ends) or costs.query_end:
            best_along(last_column, rows, one, m, best_column, column_at)
        _put_ends(members, m, n, costs, best_row, row_at, best_column, column_at, answers)


@compiled
def _put_ends(members, m, n, costs, best_row, row_at, best_column, column_at, answers):
    """Pick each lane's end by rule 1 of pairs.py."""
    stand_alone()
    for lane in range(members.size):
        best, i, j = np.int64(best_row[lane]), m[lane], row_at[lane]
        other = np.int64(best_column[lane])
        if costs.local:
            i = column_at[lane]
        elif costs.query_end and (other > best or (other == best and j == n[lane])):
            best, i, j = other, column_at[lane], n[lane]
        _put_end(members[lane], min(m[lane], n[lane]), costs, best, i, j, answers)


@compiled
def _put_gatk_ends(members, m, n, costs, last_row, last_column, overhang, answers):
    """Pick each lane's end by GATK's rule (gatk_rules.py)."""
    stand_alone()
    lanes = members.size
    for lane in range(lanes):
        i, j = m[lane], n[lane]
        best = np.int64(last_column[(i - 1) * lanes + lane])
        if overhang != 1:  # not indel
            for k in range(m[lane] - 1, 0, -1):
                value = np.int64(last_column[(k - 1) * lanes + lane])
                if value > best:
                    i, best = k, value
        if overhang == 0 or overhang == 3:  # softclip, ignore
            for k in range(1, n[lane] + 1):
                value = np.int64(last_row[(k - 1) * lanes + lane])
                if value > best or (value == best and abs(m[lane] - k) < abs(i - j)):
                    i, j, best = m[lane], k, value
        _put_end(members[lane], min(m[lane], n[lane]), costs, best, i, j, answers)


@compiled
def _put_end(pair, shorter, costs, best, i, j, answers):
    """Put the end of a pair, and whether its score is proved, where they belong."""
    scores, query_ends, reference_ends, exact = answers
    scores[pair] = best - costs.origin
    query_ends[pair], reference_ends[pair] = i, j
    if costs.local:
        exact[pair] = best < costs.highest
    else:
        exact[pair] = best > costs.lowest + costs.top * np.int64(shorter)
