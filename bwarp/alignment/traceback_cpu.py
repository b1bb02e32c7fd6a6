"""Find CIGARs on the CPU from the known score and end of each pair, by the rules of pairs.py.

1. The diagonal that ends in the end cell is added up. If it gives the whole score, it is the
   alignment (see pairs.py), as for most reads.
2. The other pairs are interleaved again, only up to their ends and within the band that their
   score allows, and computed with four direction bits per cell. Queries too long for the bits of
   the whole matrix are computed twice: first keeping H and I of some rows, then, from the last
   of these rows upwards, with direction bits, one slice of rows at a time.

       kept rows      0 ------------- c ------------- 2c ---------- end
       traced back    third           second          first
                                                                 <- end cell
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from bwarp.alignment.batches_cpu import (
    ELEMENT_TYPES,
    Rules,
    Side,
    batches_of,
    cells_for,
    element_costs,
    fits_type,
    for_each_batch,
    highest_scores,
    lay_out,
    numba_side,
)
from bwarp.alignment.cells_cpu import NEVER, ROWS, Last, fill_directions, fill_rows
from bwarp.alignment.pairs import DELETION, EQUAL, INSERTION, MISMATCH, Alignments, Ends, PairBatch
from bwarp.runtime import compiler
from bwarp.runtime.compiled_code import compiled, inner
from bwarp.runtime.simd import VECTOR_BYTES, stand_alone
from bwarp.runtime.threads import for_each_range
from bwarp.runtime.uncounted import uncounted

# Writing CIGARs: run by run into arrays, finally in the order of the pairs.


@inner(forceinline=True)
def push(runs, count, run):
    """Append a run, ``length << 4 | operation``, to a CIGAR of `count` runs; return the count."""
    if count > 0 and runs[count - 1] & 15 == run & 15:
        runs[count - 1] += np.uint32(run & ~15)
        return count
    runs[count] = np.uint32(run)
    return count + 1


@compiled
def grown(array, size):
    """Return the array, or a copy with space for `size` numbers and as many again."""
    if size <= array.size:
        return array
    larger = np.empty(2 * size, array.dtype)
    for k in range(array.size):
        larger[k] = array[k]
    return larger


def gather_cigars(
    parts: list[np.ndarray], starts: np.ndarray, operations: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Arrange CIGARs from several arrays in the order of the pairs.

    Parameters
    ----------
    parts : list of ndarray, dtype=uint32
    starts : ndarray, shape=(count,), dtype=int64
        Where each CIGAR starts in the concatenated parts.
    operations : ndarray, shape=(count,), dtype=int32
        The number of operations of each.

    Returns
    -------
    cigar_offsets : ndarray, shape=(count + 1,), dtype=int64
    cigar : ndarray, dtype=uint32
    """
    offsets = np.zeros(starts.size + 1, np.int64)
    np.cumsum(operations, out=offsets[1:])
    cigar = np.empty(offsets[-1], np.uint32)
    _gather(np.concatenate([*parts, np.empty(0, np.uint32)]), starts, offsets, cigar)
    return offsets, cigar


@compiled
def _gather(parts, starts, offsets, cigar):
    for i in range(starts.size):
        for k in range(offsets[i + 1] - offsets[i]):
            cigar[offsets[i] + k] = parts[starts[i] + k]


# The traceback: from an end cell to the start of the alignment, along the direction bits.


class _Slice(NamedTuple):
    """The direction bits of the rows below row `above`, as `fill_directions` stores them."""

    directions: np.ndarray
    above: int
    columns: int


@compiled
def follow_directions(lane, of_slice, costs, pairs, query, reference, state, runs):
    """Trace one lane back through a slice of rows, by rule 2 of pairs.py.

    `state` is (i, j, 0 at H or 1 at D or 2 at I, the remaining score, runs so far); the traceback
    ends at the start of the alignment, or waits for a cell of the slice above.
    """
    directions, above, columns = of_slice
    matrix, ambiguous = pairs.matrix, pairs.ambiguous
    i, j, at, score, count = state[0], state[1], state[2], state[3], state[4]
    word, bit = directions.dtype.type, lane
    while True:
        if at == 0:
            if (
                (costs.local and score == 0)
                or (i == 0 and (costs.reference_start or j == 0))
                or (j == 0 and (costs.query_start or i == 0))
            ):
                break
            if i == 0:
                at = 1
            elif j == 0:
                at = 2
            elif i <= above:
                break
            else:
                cell = 4 * ((i - above - 1) * columns + j - 1)
                if directions[cell] >> word(bit) & 1:
                    i, j = i - 1, j - 1
                    code = query[i]
                    score -= matrix[code, reference[j]]
                    same = code == reference[j] and code != ambiguous
                    count = push(runs, count, 1 << 4 | (EQUAL if same else MISMATCH))
                    continue
                at = 1 if directions[cell + 1] >> word(bit) & 1 else 2
            score += costs.gap_open
        else:
            # The previous cell stores whether the gap opens here; along a border it continues.
            row, column = i - (at == 2), j - (at == 1)
            if row > 0 and column > 0:
                if row <= above:
                    break
                cell = 4 * ((row - above - 1) * columns + column - 1)
                opens = directions[cell + at + 1] >> word(bit) & 1 == 1
            else:
                opens = (row if at == 1 else column) > 0
            count = push(runs, count, 1 << 4 | (DELETION if at == 1 else INSERTION))
            score += costs.gap_extend
            i, j = row, column
            if opens or (i == 0 and j == 0):
                at = 0
    state[0], state[1], state[2], state[3], state[4] = i, j, at, score, count


# Alignments without gaps: the sum of the diagonal that ends in the end cell.


@compiled
def resolve_ungapped(pairs, costs, traced, waiting, begin, end):
    """Resolve the pairs from `begin` to `end` whose alignments have no gap.

    They are no longer waiting. Returns these pairs and their CIGARs.
    """
    pairs, traced = uncounted((pairs, traced))
    queries, references, matrix, ambiguous, scores, query_ends, reference_ends = pairs
    query_codes, reference_codes = queries.codes, references.codes
    part = np.empty(16 * (end - begin) + 16, np.uint32)
    used = 0
    for pair in range(begin, end):
        i, j = np.int64(query_ends[pair]), np.int64(reference_ends[pair])
        q, r = queries.starts[pair], references.starts[pair]
        wanted = np.int64(scores[pair])
        collected = np.int64(0)
        while i > 0 and j > 0 and not (costs.local and collected == wanted):
            if collected + costs.top * np.int64(min(i, j)) < wanted:
                break
            i, j = i - 1, j - 1
            collected += matrix[query_codes[q + i], reference_codes[r + j]]
        at_border = (i == 0 and (costs.reference_start or j == 0)) or (
            j == 0 and (costs.query_start or i == 0)
        )
        if collected != wanted or not (at_border or costs.local):
            continue
        waiting[pair] = False
        traced.starts[0, pair], traced.starts[1, pair] = i, j
        traced.cigar_starts[pair] = used
        length = np.int64(query_ends[pair]) - i
        part = grown(part, used + length)
        runs = part[used:]
        count, distance = np.int64(0), 0
        for k in range(length):
            code = query_codes[q + i + k]
            if code == reference_codes[r + j + k] and code != ambiguous:
                count = push(runs, count, 1 << 4 | EQUAL)
            else:
                count = push(runs, count, 1 << 4 | MISMATCH)
                distance += 1
        traced.operations[pair], traced.edit_distances[pair] = count, distance
        used += count
    return begin + np.flatnonzero(~waiting[begin:end]), part[:used]


#: Maximum bytes of direction bits of a batch before it is computed in slices.
DIRECTION_BYTES = 1 << 24


class _Pairs(NamedTuple):
    """Data of all pairs, for compiled code."""

    queries: Side
    references: Side
    matrix: np.ndarray
    ambiguous: int
    scores: np.ndarray
    query_ends: np.ndarray
    reference_ends: np.ndarray


class _Traced(NamedTuple):
    """Results of all pairs; each CIGAR is a number of operations from `cigar_starts` on."""

    starts: np.ndarray
    edit_distances: np.ndarray
    operations: np.ndarray
    cigar_starts: np.ndarray


def trace_alignments(pairs: PairBatch, rules: Rules, ends: Ends, threads: int) -> Alignments:
    """Return the alignments that end at `ends`, with its scores."""
    count, mode = pairs.count, rules.mode
    known = _Pairs(
        numba_side(pairs.queries), numba_side(pairs.references), rules.matrix,
        rules.scoring.ambiguous, ends.scores, ends.query_ends, ends.reference_ends,
    )  # fmt: skip
    traced = _Traced(
        np.zeros((2, count), np.int32), np.zeros(count, np.int32), np.zeros(count, np.int32),
        np.zeros(count, np.int64),
    )  # fmt: skip
    high = highest_scores(rules, known.queries, ends.query_ends, ends.reference_ends)
    waiting = np.ones(count, bool)
    costs = element_costs(rules.scoring, mode, np.int32, 0)
    parts = for_each_range(
        partial(resolve_ungapped, known, costs, traced, waiting), count, threads, smallest=4096
    )
    for dtype in ELEMENT_TYPES:
        tried = waiting & fits_type(rules, high, dtype)
        if not tried.any():
            continue
        windows = _windows(ends, rules, high, known.references)
        to_ends = Side(known.queries.codes, known.queries.starts, ends.query_ends)
        batches = batches_of(to_ends, windows, rules, dtype, int(high[tried].max()))
        costs = batches.costs
        if mode.local:
            tried &= ends.scores < costs.highest - costs.origin
        else:
            tried &= ends.scores > costs.lowest - costs.origin + high
        waiting &= ~tried
        trace = partial(
            _trace_batches, batches, known, traced, DIRECTION_BYTES, rules.overhang >= 0
        )
        parts += for_each_batch(trace, batches, np.flatnonzero(tried), threads)
    base = 0
    for members, part in parts:
        traced.cigar_starts[members] += base
        base += part.size
    cigar_offsets, cigar = gather_cigars(
        [part for _, part in parts], traced.cigar_starts, traced.operations
    )
    return Alignments(
        ends.scores, traced.starts[0], ends.query_ends, traced.starts[1], ends.reference_ends,
        traced.edit_distances, cigar_offsets, cigar,
    )  # fmt: skip


def _windows(ends: Ends, rules: Rules, high: np.ndarray, references: Side) -> Side:
    """Return the stretch of each reference that optimal alignments can reach: the band's bounding
    box.
    """
    starts, scoring = np.zeros(ends.scores.size, np.int64), rules.scoring
    if scoring.gap_extend > 0:
        gap_columns = (high - scoring.gap_open - ends.scores) // scoring.gap_extend
        band_start = ends.reference_ends.astype(np.int64) - ends.query_ends - gap_columns
        starts = np.maximum(band_start, 0)
    lengths = (ends.reference_ends - starts).astype(np.int32)
    return Side(references.codes, references.starts + starts, lengths)


def _no_lane_bits(kind):
    """Return an empty array of the type with one bit per lane of a vector of `kind`.

    Compiled code derives it; as an argument, it would make functions depend on the processor.
    """
    return np.empty(0, _type_of_lane_bits(8 * kind.itemsize))


@compiler.when_compiling
def _compile_no_lane_bits() -> None:
    @compiler.overload(_no_lane_bits, inline="always")
    def no_lane_bits(kind):
        lane_bits = _type_of_lane_bits(kind.dtype.bitwidth)
        return lambda kind: np.empty(0, lane_bits)


def _type_of_lane_bits(bits_a_lane: int) -> np.dtype:
    return np.dtype(f"u{max(VECTOR_BYTES // bits_a_lane, 1)}")


@compiled
def _trace_batches(batches, pairs, traced, most_bytes, extend_ties, order):
    """Compute and trace back the batches in `order`; return it and their CIGARs.

    Queries extend to each end; references are windows up to each end.
    """
    lane_bits = _no_lane_bits(batches.kind)
    scheme, costs, lanes, kind = batches.scheme, batches.costs, batches.lanes, batches.kind.dtype
    queries, references = pairs.queries, pairs.references
    cells = cells_for(batches, order)
    _, _, left, row_H, row_I = cells
    rows, columns = left.size // lanes - 1, row_H.size // lanes
    slice_rows = rows
    if rows * columns * 4 * lane_bits.itemsize > most_bytes:
        # equal memory for the bits of a slice and for the kept rows of all slices
        kept_bytes = 2 * lanes * batches.kind.itemsize
        slice_rows = int(np.sqrt(rows * kept_bytes / (4 * lane_bits.itemsize))) // ROWS * ROWS
        slice_rows = min(rows, max(ROWS, slice_rows))
    directions = np.empty(slice_rows * columns * 4, lane_bits.dtype)
    slices = (rows + slice_rows - 1) // slice_rows
    kept = np.empty((slices, 2, columns * lanes), kind)
    nothing = np.empty(0, kind)
    runs = np.empty((lanes, rows + columns + 1), np.uint32)
    state = np.empty((lanes, 5), np.int64)
    part = np.empty(16 * order.size + 16, np.uint32)
    used, never = np.int64(0), np.int64(NEVER)

    for begin in range(0, order.size, lanes):
        members = order[begin : begin + lanes]
        m, n, rows, columns = lay_out(batches, members, cells)
        _start_tracebacks(members, m, n, pairs, costs, left, state)
        slices = (rows + slice_rows - 1) // slice_rows
        for number in range(slices - 1):
            for k in range(columns * lanes):
                kept[number, 0, k], kept[number, 1, k] = row_H[k], row_I[k]
            fill_rows(
                scheme, cells, costs, (number * slice_rows, (number + 1) * slice_rows), columns,
                np.bool_(False), Last(m, never, nothing), Last(n, never, nothing),
            )  # fmt: skip
        for number in range(slices - 1, -1, -1):
            above = number * slice_rows
            if number < slices - 1:
                for k in range(columns * lanes):
                    row_H[k], row_I[k] = kept[number, 0, k], kept[number, 1, k]
            fill_directions(
                scheme, cells, costs, (above, min(rows, above + slice_rows)), columns, extend_ties,
                directions,
            )  # fmt: skip
            for lane in range(lanes):
                pair = members[lane]
                follow_directions(
                    lane, _Slice(directions, above, columns), costs, pairs,
                    queries.codes[queries.starts[pair] :],
                    references.codes[batches.references.starts[pair] :], state[lane], runs[lane],
                )  # fmt: skip
        part, used = _put_cigars(members, n, pairs.reference_ends, state, runs, part, used, traced)
    return order, part[:used]


@compiled
def _start_tracebacks(members, m, n, pairs, costs, left, state):
    """Start the traceback of each lane at its end cell, and block the left edge of windows."""
    stand_alone()
    lanes = members.size
    for lane in range(lanes):
        pair = members[lane]
        if n[lane] < pairs.reference_ends[pair]:
            # The left edge of the window is not a border, but the edge of the band.
            for i in range(1, left.size // lanes):
                left[i * lanes + lane] = costs.lowest
        state[lane, 0], state[lane, 1], state[lane, 2] = m[lane], n[lane], 0
        state[lane, 3], state[lane, 4] = pairs.scores[pair], 0


@compiled
def _put_cigars(members, n, reference_ends, state, runs, part, used, traced):
    """Reverse the runs of each lane into `part`; return it, possibly enlarged, and its length."""
    stand_alone()
    for lane in range(members.size):
        pair = members[lane]
        if lane > 0 and members[lane - 1] == pair:
            continue  # a copy that pads the last batch
        count = state[lane, 4]
        traced.starts[0, pair] = state[lane, 0]
        traced.starts[1, pair] = state[lane, 1] + reference_ends[pair] - n[lane]
        traced.operations[pair], traced.cigar_starts[pair] = count, used
        part = grown(part, used + count)
        distance = 0
        for k in range(count):
            run = runs[lane, count - 1 - k]
            part[used + k] = run
            if run & 15 != EQUAL:
                distance += run >> 4
        traced.edit_distances[pair] = distance
        used += count
    return part, used
