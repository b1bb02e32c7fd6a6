"""Compute the cells of many matrices at once: one pair per lane, four rows per pass in registers.

    lanes      pair 0   pair 1   ...                 one vector per cell position (i, j)
    codes      row i of all queries interleaved, column j of all references likewise
    a pass     rows i+1 .. i+4 stay in registers (H and D of each) while the columns stream by;
               only the row below them (H and I) is written, for the next pass to read

               row_H, row_I   j-1      j       j+1        read: H(i, j), I(i+1, j)
               rows i+1 ..4   H  D ->  H  D    .
               row_H, row_I   written in place: H(i+4, j), I(i+5, j)

Each cell takes one compare, one blend, three saturating sums and five maxima, and a quarter of five
loads and three stores. Four rows fill the 16 registers of AVX2, where eight were a fifth slower;
AVX-512 has 32 registers and was equally fast with either.

Scores are stored as ``origin + score`` in the narrowest suitable type. Sums saturate at the limits
of 8- and 16-bit types. For local alignments the origin is the minimum of the type, so that
saturation is the floor of H at zero; negative D and I become zero, but are never on an optimal
path. For other modes see `bwarp.alignment.batches_cpu`.

Shorter sequences are padded to the length of their lanes with codes of the lowest score; cells
beyond the end of a pair are computed but not used.
"""

from typing import NamedTuple

import numpy as np

from bwarp.alignment.scoring import Scoring
from bwarp.runtime import compiler
from bwarp.runtime.compiled_code import compiled, inner
from bwarp.runtime.simd import (
    VECTOR_BYTES,
    add,
    equal,
    extend,
    fill,
    fill_like,
    greater,
    lane_count,
    load,
    load_like,
    lookup,
    mask_bits,
    maximum,
    select,
    stand_alone,
    store,
    subtract,
    transpose,
)

# Substitution scores of one residue against another, in vectors of one pair per lane.
#
# There are three implementations, each a small tuple that the kernels take as `scheme`; Numba
# compiles a kernel for each type of tuple. Codes are vectors of bytes, one pair per lane, laid out
# by `interleave` and translated by the tables that `pair_scheme` returns with the tuple.
#
#     MatchMismatch   two scores; equal codes match. Ambiguous and padding codes differ
#                     between the two sides, so that they match nothing.
#     SmallMatrix     at most 7 codes: one 64-byte table, query code * 8 + reference code
#     LargeMatrix     at most 27 codes: seven tables of 128 bytes, each for four query codes


_SMALL = 7
_PADDING = 27
_LOWEST = -128


class MatchMismatch(NamedTuple):
    """Two scores, of the element type of the kernel."""

    match: int
    mismatch: int


class SmallMatrix(NamedTuple):
    """int8[64]: entry query code * 8 + reference code."""

    small: np.ndarray


class LargeMatrix(NamedTuple):
    """int8[896]: entry query code * 32 + reference code."""

    large: np.ndarray


class Tables(NamedTuple):
    """Translation of codes for the interleaved arrays, and the padding of shorter sequences.

    `query` is uint8[planes, 256]: LargeMatrix takes a query code in two parts.
    """

    query: np.ndarray
    query_padding: np.ndarray
    reference: np.ndarray
    reference_padding: int


def pair_scheme(scoring: Scoring, dtype) -> tuple[NamedTuple, Tables]:
    """Return the scheme for pairs, with scores of `dtype`, and the tables for their codes."""
    codes = np.arange(256).astype(np.uint8)
    query, reference = codes.copy(), codes.copy()
    if scoring.match_mismatch is not None:
        if scoring.ambiguous >= 0:
            query[scoring.ambiguous], reference[scoring.ambiguous] = 255, 254
        match, mismatch = (dtype(score) for score in scoring.match_mismatch)
        tables = Tables(query[None], np.array([253], np.uint8), reference, np.uint8(252))
        return MatchMismatch(match, mismatch), tables
    size = len(scoring.letters)
    if size <= _SMALL:
        table = np.full((8, 8), _LOWEST, np.int8)
        table[:size, :size] = scoring.matrix
        tables = Tables(
            query[None] * np.uint8(8), np.array([8 * _SMALL], np.uint8), reference, np.uint8(_SMALL)
        )
        return SmallMatrix(table.ravel()), tables
    table = np.full((_PADDING + 1, 32), _LOWEST, np.int8)
    table[:size, :size] = scoring.matrix
    planes = np.array([(query & 3) << 5, query >> 2])
    tables = Tables(
        planes,
        np.array([(_PADDING & 3) << 5, _PADDING >> 2], np.uint8),
        reference,
        np.uint8(_PADDING),
    )
    return LargeMatrix(table.ravel()), tables


def substitution(scheme, codes, at, residues, like):
    """Return the scores of a row of the query side against `residues`, in compiled code.

    Parameters
    ----------
    scheme : MatchMismatch, SmallMatrix or LargeMatrix
    codes : array of uint8
        Interleaved query codes, one plane after another.
    at : int
        Query row times the number of lanes.
    residues : vector of uint8
        The reference codes, one per lane.
    like : vector
        A vector of the kernel's element type and lanes.
    """
    raise NotImplementedError("substitution runs in compiled code only")


def _substitution(scheme, codes, at, residues, like):
    kind = scheme.instance_class if isinstance(scheme, compiler.types.BaseNamedTuple) else None
    return _WAYS.get(kind)


def _match_mismatch(scheme, codes, at, residues, like):
    return select(
        equal(load_like(codes, at, residues), residues),
        fill_like(scheme.match, like),
        fill_like(scheme.mismatch, like),
    )


def _small_matrix(scheme, codes, at, residues, like):
    return extend(lookup(scheme.small, 0, 64, add(load_like(codes, at, residues), residues)), like)


def _large_matrix(scheme, codes, at, residues, like):
    low = add(load_like(codes, at, residues), residues)
    four = load_like(codes, codes.size // 2 + at, residues)
    return extend(_one_of_seven(scheme.large, four, low), like)


@inner(forceinline=True)
def _one_of_seven(table, piece, low):
    """Return table[128 * piece + low] by looking up `low` in all seven pieces."""
    scores = lookup(table, 0, 128, low)
    for number in range(1, 7):
        here = equal(piece, fill_like(np.uint8(number), low))
        scores = select(here, lookup(table, 128 * number, 128, low), scores)
    return scores


_WAYS = {
    MatchMismatch: _match_mismatch,
    SmallMatrix: _small_matrix,
    LargeMatrix: _large_matrix,
}


#: Rows per pass; the rows of a batch are padded to a multiple of it.
ROWS = 4

#: A row or column that is not reached.
NEVER = 1 << 40


class Cells(NamedTuple):
    """Inputs of a batch of cells: interleaved codes (uint8) and borders.

    `query` has one plane after another, `left` is H(i, 0) from i = 0 on, `row_h` and `row_i` are H
    of the row above and I of the row below it, from j = 1 on; these three have the element type.
    """

    query: np.ndarray
    reference: np.ndarray
    left: np.ndarray
    row_h: np.ndarray
    row_i: np.ndarray


@compiled
def interleave(codes, starts, lengths, table, padding, length, out, at):
    """Interleave sequences, one per lane: out[at + i * lanes + lane] = table[residue i].

    Parameters
    ----------
    codes : array of uint8
    starts, lengths : array, shape=(lanes,), int64 and int32
    table : array, shape=(256,), dtype=uint8
        Codes are below 128.
    padding : uint8
        Follows the sequence, up to `length` residues.
    """
    stand_alone()
    lanes = starts.size
    longest = lengths.max()
    for begin in range(0, lanes, 16):
        end = min(begin + 16, lanes)
        turned = 0
        if end - begin == 16:
            turned = lengths[begin:end].min() // 16 * 16
            for i in range(0, turned, 16):
                transpose(codes, starts[begin:end], i, out, at + i * lanes + begin, lanes)
        for lane in range(begin, end):
            for i in range(turned, lengths[lane]):
                out[at + i * lanes + lane] = codes[starts[lane] + i]
    area = out[at : at + longest * lanes]
    whole = area.size // VECTOR_BYTES * VECTOR_BYTES
    for k in range(0, whole, VECTOR_BYTES):
        store(area, k, lookup(table, 0, 128, load(area, k)))
    for k in range(whole, area.size):
        area[k] = table[area[k]]
    for lane in range(lanes):
        for i in range(lengths[lane], length):
            out[at + i * lanes + lane] = padding


def floored(vector, floor):
    """Return the maximum of both for types that do not saturate."""
    raise NotImplementedError("floored runs in compiled code only")


def _floored(vector, floor):
    if vector.element.bitwidth > 16:
        return lambda vector, floor: maximum(vector, floor)
    return lambda vector, floor: vector


@compiler.when_compiling
def _compile_by_type() -> None:
    """Select code by the types of the arguments."""
    for function, choose in ((substitution, _substitution), (floored, _floored)):
        compiler.overload(function, jit_options={"forceinline": True})(choose)


@inner(forceinline=True)
def next_cell(diagonal, score, deletion, insertion, first, more, floor):
    """Return H of a cell, D of its right neighbour and I of the one below it; all are vectors.

    D opens after a match or D only, not after I: an insertion followed by a deletion scores the
    same in the opposite order, between the same cells, so H and I are unaffected. This leaves one
    subtraction and one maximum in the dependency chain down a column.
    """
    before = maximum(add(diagonal, score), deletion)
    opened = subtract(before, first)
    return (
        floored(maximum(before, insertion), floor),
        maximum(subtract(deletion, more), opened),
        maximum(subtract(insertion, more), opened),
    )


@inner(forceinline=True)
def next_rows(diagonal, scores, h, d, insertion, first, more, floor):
    """Return H and D of ROWS cells of a column, a vector per row, and I of the cell below them."""
    h0, d0, insertion = next_cell(diagonal, scores[0], d[0], insertion, first, more, floor)
    h1, d1, insertion = next_cell(h[0], scores[1], d[1], insertion, first, more, floor)
    h2, d2, insertion = next_cell(h[1], scores[2], d[2], insertion, first, more, floor)
    h3, d3, insertion = next_cell(h[2], scores[3], d[3], insertion, first, more, floor)
    return (h0, h1, h2, h3), (d0, d1, d2, d3), insertion


@inner(forceinline=True)
def load_rows(array, at, lanes):
    """Load the vectors of ROWS rows."""
    return (
        load(array, at), load(array, at + lanes), load(array, at + 2 * lanes),
        load(array, at + 3 * lanes),
    )  # fmt: skip


@inner(forceinline=True)
def store_rows(array, at, lanes, rows):
    """Store the vectors of ROWS rows."""
    store(array, at, rows[0])
    store(array, at + lanes, rows[1])
    store(array, at + 2 * lanes, rows[2])
    store(array, at + 3 * lanes, rows[3])


@inner(forceinline=True)
def select_rows(mask, rows, others):
    """Apply `select` to the vectors of ROWS rows."""
    return (
        select(mask, rows[0], others[0]), select(mask, rows[1], others[1]),
        select(mask, rows[2], others[2]), select(mask, rows[3], others[3]),
    )  # fmt: skip


class Last(NamedTuple):
    """Storage for H of the last row (or column) of each lane: the vectors of columns (rows) in
    turn.

    `lengths` is int32[lanes]; nothing is stored before row (column) `begin`.
    """

    lengths: np.ndarray
    begin: int
    scores: np.ndarray


@compiled
def fill_rows(scheme, cells, costs, rows, columns, row_maxima, last_row, last_column):
    """Compute rows begin + 1 to `end` and columns 1 to `columns` of a batch.

    Parameters
    ----------
    scheme : MatchMismatch, SmallMatrix or LargeMatrix
        From `pair_scheme`.
    cells : Cells
        Interleaved codes and borders: row_h and row_i are H(begin, j) and I(begin + 1, j) for
        j >= 1, and are replaced by those of row `end`.
    costs : Costs
    rows : tuple of int
        `begin` and `end`; their difference is a multiple of ROWS.
    columns : int
    row_maxima : bool
        Whether to raise the scores of `last_row` to the maximum of each column (local alignments).
    last_row, last_column : Last
    """
    stand_alone()
    first, more, floor = fill(costs.first), fill(costs.more), fill(costs.floor)
    # Taking arrays out of a tuple inside the loops would count references there.
    query, reference, left, row_H, row_I = cells
    row_lengths, first_row, last_rows = last_row
    column_lengths, first_column, last_columns = last_column
    lanes = lane_count(first)
    for i in range(rows[0], rows[1], ROWS):
        at = i * lanes
        diagonal = load(left, at)
        h = load_rows(left, at + lanes, lanes)
        d = (
            subtract(h[0], first), subtract(h[1], first), subtract(h[2], first),
            subtract(h[3], first),
        )  # fmt: skip
        lane_rows = load_like(row_lengths, 0, diagonal)
        for j in range(columns):
            residues = load_like(reference, j * lanes, diagonal)
            scores = (
                substitution(scheme, query, at, residues, diagonal),
                substitution(scheme, query, at + lanes, residues, diagonal),
                substitution(scheme, query, at + 2 * lanes, residues, diagonal),
                substitution(scheme, query, at + 3 * lanes, residues, diagonal),
            )
            above, below = load(row_H, j * lanes), load(row_I, j * lanes)
            h, d, below = next_rows(diagonal, scores, h, d, below, first, more, floor)
            diagonal = above
            store(row_H, j * lanes, h[3])
            store(row_I, j * lanes, below)
            if row_maxima:
                highest = maximum(maximum(h[0], h[1]), maximum(h[2], h[3]))
                kept = load(last_rows, j * lanes)
                store(last_rows, j * lanes, maximum(highest, kept))
            elif i + ROWS >= first_row:
                kept = load(last_rows, j * lanes)
                kept = select(equal(lane_rows, fill_like(np.int32(i + 1), above)), h[0], kept)
                kept = select(equal(lane_rows, fill_like(np.int32(i + 2), above)), h[1], kept)
                kept = select(equal(lane_rows, fill_like(np.int32(i + 3), above)), h[2], kept)
                kept = select(equal(lane_rows, fill_like(np.int32(i + 4), above)), h[3], kept)
                store(last_rows, j * lanes, kept)
            if j + 1 >= first_column:
                here = equal(load_like(column_lengths, 0, above), fill_like(np.int32(j + 1), above))
                kept = load_rows(last_columns, at, lanes)
                store_rows(last_columns, at, lanes, select_rows(here, h, kept))


@compiled
def best_along(values, count, least, most, best, where):
    """Find the first best value of a last row or column, lane by lane.

    Parameters
    ----------
    values : array, shape=(count * lanes,)
        Position p (from 1) of lane l is at ``(p - 1) * lanes + l``.
    least, most : array, shape=(lanes,), dtype=int32
        The range of valid positions, both ends included.
    best : array, shape=(lanes,)
        In: the value to exceed. Out: the best value.
    where : array, shape=(lanes,), dtype=int32
        In: the result if no value is better. Out: the first position of the best value.
    """
    stand_alone()
    lanes = least.size
    highest = load(best, 0)
    position = load_like(where, 0, highest)
    before = load_like(least, 0, highest)
    after = load_like(most, 0, highest)
    for p in range(count):
        here = fill_like(np.int32(p + 1), highest)
        value = load(values, p * lanes)
        value = select(greater(before, here), highest, value)
        value = select(greater(here, after), highest, value)
        position = select(greater(value, highest), here, position)
        highest = maximum(value, highest)
    store(best, 0, highest)
    store(where, 0, position)


@compiled
def fill_directions(scheme, cells, costs, rows, columns, extend_ties, directions):
    """Compute cells like `fill_rows`, and store their directions: four bits per cell and lane.

    ``directions[4 * ((i - begin - 1) * columns + j - 1) + k]`` has one bit per lane:

        k = 0   H(i,j) came along the diagonal
        k = 1   H(i,j) = D(i,j)
        k = 2   D(i,j+1) opens here: it is H(i,j) less the cost of opening a gap
        k = 3   I(i+1,j) opens here

    Where opening and extending tie, the gap opens; with `extend_ties` it extends.
    """
    stand_alone()
    first, more, floor = fill(costs.first), fill(costs.more), fill(costs.floor)
    query, reference, left, row_H, row_I = cells
    lanes = lane_count(first)
    for i in range(rows[0], rows[1]):
        diagonal = load(left, i * lanes)
        d = subtract(load(left, (i + 1) * lanes), first)
        at = (i - rows[0]) * columns * 4
        for j in range(columns):
            residues = load_like(reference, j * lanes, diagonal)
            score = substitution(scheme, query, i * lanes, residues, diagonal)
            along = add(diagonal, score)
            diagonal = load(row_H, j * lanes)
            down = load(row_I, j * lanes)
            h = floored(maximum(maximum(along, d), down), floor)
            opened = subtract(h, first)
            directions[at] = mask_bits(equal(h, along))
            directions[at + 1] = mask_bits(equal(h, d))
            d = subtract(d, more)
            down = subtract(down, more)
            if extend_ties:
                directions[at + 2] = mask_bits(greater(opened, d))
                directions[at + 3] = mask_bits(greater(opened, down))
            d = maximum(d, opened)
            down = maximum(down, opened)
            if not extend_ties:
                directions[at + 2] = mask_bits(equal(d, opened))
                directions[at + 3] = mask_bits(equal(down, opened))
            at += 4
            store(row_H, j * lanes, h)
            store(row_I, j * lanes, down)
