"""GATK's alignments on the CPU, one lane a pair: the recipe of gatk_rules.py in the kernels of
cells_cpu.

GATK's reference takes the rows here and its alternate the columns. Its insertions then run along
a row and are D of cells_cpu, its deletions I, and its order (diagonal, insertion, deletion) is the
kernels' own. The run lengths that GATK keeps beside every cell are what a traceback along the
direction bits finds, when gaps that could open or extend at the same score extend.

1. Where the strategy allows it, the right-most exact occurrence is the answer.
2. One pass over the cells keeps the last row and the last column, and GATK's rule picks the end.
3. The diagonal into the end is added up; where it explains the whole score it is the alignment.
4. The other pairs are filled again with direction bits, and traced back.
"""

from functools import partial

import numba
import numpy as np

from bwarp.alignment.gatk.gatk_rules import (
    OVERHANGS,
    GatkAlignments,
    GatkParameters,
    check_overhang,
)
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
from bwarp.alignment.matrix.cells_cpu import ROWS, fill_rows
from bwarp.alignment.matrix.substitution_scores_cpu import MatchMismatch, Tables
from bwarp.alignment.pairs import (
    DELETION,
    INSERTION,
    MATCH,
    SOFT_CLIP,
    Ends,
    PairBatch,
    Sequences,
    check_pairs,
)
from bwarp.alignment.scoring import GLOBAL, SEMIGLOBAL, Mode, Scoring, element_type
from bwarp.alignment.traceback.cigars_cpu import push
from bwarp.alignment.traceback.traceback_cpu import trace
from bwarp.runtime.simd import lanes_of
from bwarp.runtime.threads import for_each_range

__all__ = ["gatk_alignments"]

#: Bytes that fill up lanes; no base is one of them, and they differ.
_ROW_PADDING, _COLUMN_PADDING = 1, 2


def gatk_alignments(
    pairs: PairBatch, parameters: GatkParameters, overhang: str, threads: int = 1
) -> GatkAlignments:
    """Align each alternate (the query of a pair) to its reference as GATK does.

    Parameters
    ----------
    pairs : PairBatch
        Upper-case bases as bytes, not codes.
    parameters : GatkParameters
    overhang : str
        One of `OVERHANGS`.
    """
    check_pairs(pairs)
    check_overhang(overhang)
    count = pairs.count
    alternates, references = numba_side(pairs.queries), numba_side(pairs.references)
    scores, offsets = np.zeros(count, np.int32), np.full(count, -1, np.int32)
    if overhang in ("softclip", "ignore"):
        for_each_range(
            lambda begin, end: _last_occurrences(begin, end, alternates, references, offsets),
            count, threads, smallest=1024,
        )  # fmt: skip
    exact = offsets >= 0
    scores[exact] = alternates.lengths[exact] * parameters.match
    ids = np.flatnonzero(~exact)
    rows = Side(references.codes, references.starts[ids], references.lengths[ids])
    columns = Side(alternates.codes, alternates.starts[ids], alternates.lengths[ids])
    scoring = _scoring(parameters)
    mode = SEMIGLOBAL if overhang in ("softclip", "ignore") else GLOBAL
    ends = _gatk_ends(rows, columns, scoring, mode, overhang, threads)
    alignments = trace(
        PairBatch(Sequences(*rows), Sequences(*columns)), scoring, _letter_matrix(parameters),
        partial(_scheme, parameters), mode, True, ends, threads,
    )  # fmt: skip
    scores[ids] = alignments.scores
    cigars = np.empty(alignments.cigar.size + 2 * ids.size + int(exact.sum()), np.uint32)
    cigar_offsets = np.zeros(count + 1, np.int64)
    number_of = np.full(count, -1, np.int64)
    number_of[ids] = np.arange(ids.size)
    used = _gatk_cigars(
        number_of, alternates.lengths, alignments.query_starts, alignments.reference_starts,
        alignments.reference_ends, alignments.cigar_offsets, alignments.cigar,
        OVERHANGS.index(overhang), offsets, cigar_offsets, cigars,
    )  # fmt: skip
    return GatkAlignments(scores, offsets, cigar_offsets, cigars[:used])


def _scoring(parameters: GatkParameters) -> Scoring:
    """The costs as bwarp's scoring; the matrix stands for equal and different bytes."""
    matrix = np.full((2, 2), parameters.mismatch, np.int16)
    np.fill_diagonal(matrix, parameters.match)
    return Scoring(
        b"=X",
        np.full(256, 255, np.uint8),
        matrix,
        parameters.gap_extend - parameters.gap_open,
        -parameters.gap_extend,
    )


def _letter_matrix(parameters: GatkParameters) -> np.ndarray:
    matrix = np.full((256, 256), parameters.mismatch, np.int32)
    np.fill_diagonal(matrix, parameters.match)
    return matrix


def _scheme(parameters: GatkParameters, dtype) -> tuple[MatchMismatch, Tables]:
    same = np.arange(256).astype(np.uint8)
    tables = Tables(same[None], np.array([_ROW_PADDING], np.uint8), same, np.uint8(_COLUMN_PADDING))
    return MatchMismatch(dtype(parameters.match), dtype(parameters.mismatch)), tables


@numba.njit(cache=True, nogil=True)
def _last_occurrences(begin, end, alternates, references, offsets):
    """Where each alternate last occurs in its reference; -1 stays where it does not."""
    for pair in range(begin, end):
        length = alternates.lengths[pair]
        a, r = alternates.starts[pair], references.starts[pair]
        for offset in range(references.lengths[pair] - length, -1, -1):
            k = 0
            while k < length and alternates.codes[a + k] == references.codes[r + offset + k]:
                k += 1
            if k == length:
                offsets[pair] = offset
                break


def _gatk_ends(
    rows: Side, columns: Side, scoring: Scoring, mode: Mode, overhang: str, threads: int
) -> Ends:
    """Scores and ends by GATK's rule, in the narrowest type that proves them."""
    count = rows.lengths.size
    scores, row_ends, column_ends = (np.zeros(count, np.int32) for _ in range(3))
    if count == 0:
        return Ends(scores, row_ends, column_ends)
    high = highest_scores(scoring, rows.lengths, columns.lengths)
    for longest in (high.argmax(), (rows.lengths + columns.lengths).argmax()):
        element_type(scoring, mode, int(rows.lengths[longest]), int(columns.lengths[longest]))
    parameters = GatkParameters(
        int(scoring.matrix[0, 0]), int(scoring.matrix[0, 1]),
        -scoring.gap_open - scoring.gap_extend, -scoring.gap_extend,
    )  # fmt: skip
    untried, again = np.ones(count, bool), np.zeros(count, bool)
    for dtype in ELEMENT_TYPES:
        tried = untried & fits_type(scoring, mode, high, dtype)
        untried &= ~tried
        ids = np.flatnonzero(tried | again)
        if ids.size == 0:
            continue
        lanes = lanes_of(dtype)
        order = by_length(ids, rows.lengths, columns.lengths, lanes)
        costs = element_costs(scoring, mode, dtype, int(high[ids].max()))
        scheme, tables = _scheme(parameters, dtype)
        exact = np.ones(count, bool)

        def run(
            begin,
            end,
            order=order,
            costs=costs,
            scheme=scheme,
            tables=tables,
            dtype=dtype,
            exact=exact,
            lanes=lanes,
        ):
            _ends_of_batches(
                order[begin * lanes : end * lanes], rows, columns, scheme, tables, costs,
                dtype(costs.gap_open + costs.gap_extend), dtype(costs.gap_extend),
                np.empty(0, dtype), OVERHANGS.index(overhang), scores, row_ends, column_ends,
                exact, lanes,
            )  # fmt: skip

        for_each_range(run, order.size // lanes, threads, smallest=4)
        again = ~exact
    return Ends(scores, row_ends, column_ends)


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
    overhang,
    scores,
    row_ends,
    column_ends,
    exact,
    lanes,
):
    """Fill batches and pick each lane's end by GATK's rule; `queries` are GATK's references."""
    rows = -(-longest_of(queries.lengths, order) // ROWS) * ROWS
    columns = longest_of(references.lengths, order)
    query = np.empty(rows * lanes, np.uint8)
    reference = np.empty(columns * lanes, np.uint8)
    left = np.empty((rows + 1) * lanes, left.dtype)
    last_column = np.empty(rows * lanes, left.dtype)
    row_H = np.empty(columns * lanes, left.dtype)
    row_I = np.empty(columns * lanes, left.dtype)
    last_row = np.empty(columns * lanes, left.dtype)
    floor = left.dtype.type(costs.lowest)
    for begin in range(0, order.size, lanes):
        members = order[begin : begin + lanes]
        m, n = queries.lengths[members], references.lengths[members]
        rows = (np.int64(m.max()) + ROWS - 1) // ROWS * ROWS
        columns = np.int64(n.max())
        lay_out(
            members, queries, references, tables, costs, first, more, rows, columns, query,
            reference, left, row_H, row_I,
        )  # fmt: skip
        fill_rows(
            scheme, query, reference, np.int64(0), rows, columns, left, first, more, floor,
            row_H, row_I, np.bool_(False),
            m, np.int64(m.min()), last_row, n, np.int64(n.min()), last_column,
        )  # fmt: skip
        for lane in range(lanes):
            pair, i, j = members[lane], m[lane], n[lane]
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
            scores[pair] = best - costs.origin
            row_ends[pair], column_ends[pair] = i, j
            high = costs.top * np.int64(min(m[lane], n[lane]))
            exact[pair] = best > costs.lowest + high


@numba.njit(cache=True, nogil=True)
def _gatk_cigars(
    number_of,
    lengths,
    row_starts,
    column_starts,
    column_ends,
    offsets_in,
    cigar_in,
    overhang,
    offsets,
    cigar_offsets,
    cigar,
):
    """Turn rows and columns into GATK's M, I, D and S, and set offsets; returns the runs written.

    `number_of` is each pair's number among those that were aligned, -1 for exact occurrences.
    """
    used = 0
    for pair in range(number_of.size):
        runs, count = cigar[used:], np.int64(0)
        number = number_of[pair]
        if number < 0:
            count = push(runs, count, np.int64(lengths[pair]) << 4 | MATCH)
        else:
            ahead = np.int64(column_starts[number])
            behind = np.int64(lengths[pair]) - column_ends[number]
            offsets[pair] = row_starts[number]
            if overhang == 0 and ahead > 0:
                count = push(runs, count, ahead << 4 | SOFT_CLIP)
            for k in range(offsets_in[number], offsets_in[number + 1]):
                operation, length = np.int64(cigar_in[k] & 15), np.int64(cigar_in[k] >> 4)
                if operation == DELETION:
                    count = push(runs, count, length << 4 | INSERTION)
                elif operation == INSERTION:
                    count = push(runs, count, length << 4 | DELETION)
                else:
                    count = push(runs, count, length << 4 | MATCH)
            if overhang == 0 and behind > 0:
                count = push(runs, count, behind << 4 | SOFT_CLIP)
            if overhang == 3:
                if behind > 0:
                    count = push(runs, count, behind << 4 | MATCH)
                runs[0] += np.uint32(ahead << 4)
                offsets[pair] -= ahead
        used += count
        cigar_offsets[pair + 1] = used
    return used
