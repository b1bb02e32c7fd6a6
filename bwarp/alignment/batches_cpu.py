"""Align batches of pairs on the CPU: one pair per vector lane, in the narrowest suitable type.

Each pair is computed in the narrowest type that is likely to suffice, and again in the next wider
one if the result is not proved exact:

    local          the score stayed below the maximum of the type, so nothing was cut off
    not local      values below ``lowest - origin`` were raised to it; none above is ever cut.
                   From a raised cell on, a path collects at most the best entry of the matrix
                   for each pair of residues, `high` in total. A score above
                   ``lowest - origin + high`` therefore comes from no raised cell and is exact,
                   and so is every cell of every path that reaches it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from bwarp.alignment.cells_cpu import (
    NEVER,
    ROWS,
    Cells,
    Last,
    Tables,
    best_along,
    fill_rows,
    interleave,
    pair_scheme,
)
from bwarp.alignment.pairs import Ends, PairBatch, Sequences
from bwarp.alignment.scoring import Mode, Scoring, element_type
from bwarp.runtime.compiled_code import compiled, read_only
from bwarp.runtime.simd import fill, lanes_of, stand_alone, store
from bwarp.runtime.threads import for_each_range

ELEMENT_TYPES = (np.int8, np.int16, np.int32)

#: The maximum score for which a type is tried: local, and not local. In the second case, the rest
#: of the range is for negative scores.
_TRIED = {np.int8: (255, 190), np.int16: (65_535, 49_000), np.int32: (2**30, 2**30)}

#: The lower bound of 32-bit values: far below any score, far above overflow.
_LOWEST_32 = -(2**30)


@dataclass(frozen=True)
class Rules:
    """How alignments are scored, and where they may start and end.

    Attributes
    ----------
    scoring : Scoring
    mode : Mode
    matrix : ndarray, dtype=int32
        ``matrix[query code, reference code]``.
    scheme_of : callable
        Returns the vector scheme and tables of an element type, as `pair_scheme` does.
    overhang : int
        -1; with GATK's rules, the index of the strategy in `OVERHANGS`.
    """

    scoring: Scoring
    mode: Mode
    matrix: np.ndarray
    scheme_of: Callable[[type], tuple[NamedTuple, Tables]]
    overhang: int = -1


class Side(NamedTuple):
    """`Sequences` for compiled code."""

    codes: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray


class Costs(NamedTuple):
    """Free ends, gap costs and the range of scores of an element type, for compiled code.

    `first`, `more` and `floor` are of that type: the costs of the first and of further positions of
    a gap, and `lowest`. `origin` represents a score of 0, and no value is below `lowest`. `top` is
    the best entry of the matrix, or 0.
    """

    local: bool
    query_start: bool
    query_end: bool
    reference_start: bool
    reference_end: bool
    gap_open: int
    gap_extend: int
    first: int
    more: int
    floor: int
    top: int
    origin: int
    lowest: int
    highest: int


class Batches(NamedTuple):
    """Data common to all batches of an element type, for compiled code; `kind` has this type."""

    queries: Side
    references: Side
    scheme: NamedTuple
    tables: Tables
    costs: Costs
    kind: np.ndarray
    lanes: int


def pair_rules(scoring: Scoring, mode: Mode) -> Rules:
    """Return the rules of pairs.py."""
    return Rules(scoring, mode, scoring.matrix.astype(np.int32), partial(pair_scheme, scoring))


def numba_side(sequences: Sequences) -> Side:
    """Return the arrays of one side, contiguous."""
    return Side(
        read_only(np.ascontiguousarray(sequences.codes)),
        np.ascontiguousarray(sequences.starts),
        np.ascontiguousarray(sequences.lengths, np.int32),
    )


def highest_scores(rules: Rules, queries: Side, query_lengths, reference_lengths) -> np.ndarray:
    """Return an upper bound of the score of each pair, int64.

    It is the best entry of the matrix for each residue of the shorter sequence; if 8 bits cannot
    hold it, at most the sum of the best scores of the query's residues.
    """
    best_of_code = np.maximum(rules.matrix.max(axis=1), 0).astype(np.int64)
    shorter = np.minimum(query_lengths, reference_lengths).astype(np.int64)
    high = shorter * best_of_code.max()
    wide = np.flatnonzero(high > _TRIED[np.int8][1])
    if wide.size:
        _lower_to_sums(queries, query_lengths, best_of_code, wide, high)
    return high


@compiled
def _lower_to_sums(queries, lengths, best_of_code, pairs, high):
    codes, starts = queries.codes, queries.starts
    for pair in pairs:
        total = np.int64(0)
        for at in range(starts[pair], starts[pair] + lengths[pair]):
            total += best_of_code[codes[at]]
        high[pair] = min(high[pair], total)


def fits_type(rules: Rules, high: np.ndarray, dtype) -> np.ndarray:
    """Return which pairs to try in this type."""
    info, scoring = np.iinfo(dtype), rules.scoring
    if scoring.gap_open + scoring.gap_extend > info.max or scoring.matrix.min() < info.min:
        return np.zeros(high.size, bool)
    return high <= _TRIED[dtype][0 if rules.mode.local else 1]


def element_costs(scoring: Scoring, mode: Mode, dtype, high: int) -> Costs:
    """Return the costs for scores up to `high` in this type."""
    info = np.iinfo(dtype)
    if dtype is np.int32:
        origin, lowest = 0, 0 if mode.local else _LOWEST_32
    else:
        lowest = int(info.min)
        origin = lowest if mode.local else int(info.max) - high
    return Costs(
        mode.local,
        mode.local or mode.query_start,
        mode.query_end and not mode.local,
        mode.local or mode.reference_start,
        mode.reference_end,
        scoring.gap_open,
        scoring.gap_extend,
        dtype(scoring.gap_open + scoring.gap_extend),
        dtype(scoring.gap_extend),
        dtype(lowest),
        max(int(scoring.matrix.max()), 0),
        origin,
        lowest,
        int(info.max),
    )


def batches_of(queries: Side, references: Side, rules: Rules, dtype, high: int) -> Batches:
    """Return the data of batches of an element type, for scores up to `high`."""
    scheme, tables = rules.scheme_of(dtype)
    costs = element_costs(rules.scoring, rules.mode, dtype, high)
    kind = np.empty(0, dtype)
    return Batches(queries, references, scheme, tables, costs, kind, lanes_of(dtype))


def for_each_batch(function, batches: Batches, ids: np.ndarray, threads: int) -> list:
    """Return the results of ``function(order)`` on ranges of whole batches of some pairs.

    Pairs are sorted by rows, then columns; the last batch is padded with its last pair.
    """
    lanes = batches.lanes
    rows, columns = batches.queries.lengths[ids], batches.references.lengths[ids]
    key = rows.astype(np.int64) << 32 | columns
    if np.any(key[1:] < key[:-1]):
        ids = ids[np.argsort(key, kind="stable")]
    order = np.pad(ids, (0, -ids.size % lanes), mode="edge")
    return for_each_range(
        lambda begin, end: function(order[begin * lanes : end * lanes]),
        order.size // lanes, threads, smallest=4,
    )  # fmt: skip


@compiled
def longest_of(lengths, members):
    """Return the maximum of some lengths, int64."""
    longest = np.int64(0)
    for member in members:
        longest = max(longest, np.int64(lengths[member]))
    return longest


@compiled
def put_everywhere(array, count, value):
    """Assign array[:count] = value; a slice takes longer to compile."""
    for k in range(count):
        array[k] = value


@compiled
def cells_for(batches, order):
    """Allocate arrays that are large enough for every batch in `order`."""
    lanes, kind = batches.lanes, batches.kind.dtype
    rows = -(-longest_of(batches.queries.lengths, order) // ROWS) * ROWS
    columns = longest_of(batches.references.lengths, order)
    return Cells(
        np.empty(batches.tables.query.shape[0] * rows * lanes, np.uint8),
        np.empty(columns * lanes, np.uint8),
        np.empty((rows + 1) * lanes, kind),
        np.empty(columns * lanes, kind),
        np.empty(columns * lanes, kind),
    )


@compiled
def lay_out(batches, members, cells):
    """Interleave the residues of a batch, and set the borders of its cells.

    Returns the lengths of its queries and references, and its rows and columns.
    """
    stand_alone()
    queries, references, tables = batches.queries, batches.references, batches.tables
    m, n = queries.lengths[members], references.lengths[members]
    rows, columns = (np.int64(m.max()) + ROWS - 1) // ROWS * ROWS, np.int64(n.max())
    planes = tables.query.shape[0]
    for plane in range(planes):
        interleave(
            queries.codes, queries.starts[members], m, tables.query[plane],
            tables.query_padding[plane], rows, cells.query, plane * (cells.query.size // planes),
        )  # fmt: skip
    interleave(
        references.codes, references.starts[members], n, tables.reference,
        tables.reference_padding, columns, cells.reference, np.int64(0),
    )  # fmt: skip
    set_borders(batches.costs, cells, members.size, rows, columns)
    return m, n, rows, columns


@compiled
def set_borders(costs, cells, lanes, rows, columns):
    """Set H on the left border (from i = 0) and the upper one (from j = 1), and I below it."""
    _, _, left, row_H, row_I = cells
    kind = left.dtype.type
    for i in range(rows + 1):
        value = costs.origin
        if not costs.query_start and i > 0:
            value = max(costs.lowest, costs.origin - costs.gap_open - i * costs.gap_extend)
        store(left, i * lanes, fill(kind(value)))
    for j in range(columns):
        value = costs.origin
        if not costs.reference_start:
            value = max(costs.lowest, costs.origin - costs.gap_open - (j + 1) * costs.gap_extend)
        store(row_H, j * lanes, fill(kind(value)))
        below = max(costs.lowest, value - costs.gap_open - costs.gap_extend)
        store(row_I, j * lanes, fill(kind(below)))


# Scores and ends.
#
# Pairs are sorted by length and interleaved, one per vector lane; `fill_rows` computes their cells,
# and the best cell of the last row or column is found by rule 1 of pairs.py, or GATK's.


def find_ends(pairs: PairBatch, rules: Rules, threads: int, both_ends: bool = True) -> Ends:
    """Find the scores and ends of all pairs.

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
    """Compute the batches in `order`, and store the results of each pair."""
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
            batches.scheme, cells, costs, (np.int64(0), rows), columns, costs.local,
            Last(m, never if costs.local else np.int64(m.min()), last_row),
            Last(n, np.int64(n.min()) if any_row else never, last_column),
        )  # fmt: skip
        if overhang >= 0:
            _put_gatk_ends(members, m, n, costs, last_row, last_column, overhang, answers)
            continue

        # An empty local alignment is a valid result; other modes end at 1 or later.
        put_everywhere(best_row, lanes, costs.origin if costs.local else costs.lowest)
        put_everywhere(row_at, lanes, 0)
        least = one if costs.reference_end or costs.local else n
        best_along(last_row, columns, least, n, best_row, row_at)
        if costs.local and both_ends:
            # Repeat up to the column found, for the first row that has the score.
            fill_from = never
            for lane in range(lanes):
                n[lane] = row_at[lane]
                if n[lane] > 0:
                    fill_from = min(fill_from, np.int64(n[lane]))
            columns = np.int64(n.max())
            set_borders(costs, cells, lanes, rows, columns)
            fill_rows(
                batches.scheme, cells, costs, (np.int64(0), rows), columns, np.bool_(False),
                Last(m, never, last_row), Last(n, fill_from, last_column),
            )  # fmt: skip
        put_everywhere(best_column, lanes, costs.lowest)
        put_everywhere(column_at, lanes, 0)
        if (costs.local and both_ends) or costs.query_end:
            best_along(last_column, rows, one, m, best_column, column_at)
        in_row, in_column = (best_row, row_at), (best_column, column_at)
        _put_ends(members, m, n, costs, in_row, in_column, answers)


@compiled
def _put_ends(members, m, n, costs, in_row, in_column, answers):
    """Choose the end of each lane by rule 1 of pairs.py, given the best scores and where they are
    in the last row and column."""
    stand_alone()
    (best_row, row_at), (best_column, column_at) = in_row, in_column
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
    """Choose the end of each lane by GATK's rule (gatk_cpu.py)."""
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
    """Store the end of a pair, and whether its score is proved."""
    scores, query_ends, reference_ends, exact = answers
    scores[pair] = best - costs.origin
    query_ends[pair], reference_ends[pair] = i, j
    if costs.local:
        exact[pair] = best < costs.highest
    else:
        exact[pair] = best > costs.lowest + costs.top * np.int64(shorter)
