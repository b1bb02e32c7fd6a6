"""The cells of many matrices at once: one lane a pair, eight rows a pass in registers.

    lanes      pair 0   pair 1   ...                 one vector a cell position (i, j)
    codes      row i of all queries side by side, column j of all references side by side
    a pass     rows i+1 .. i+8 stay in registers (H and D of each) while the columns stream by;
               only the row below them (H and I) is written, for the next pass to read

               row_H, row_I   j-1      j       j+1        read: H(i, j), I(i+1, j)
               rows i+1 ..8   H  D ->  H  D    .
               row_H, row_I   written in place: H(i+8, j), I(i+9, j)

Per cell that is one compare, one blend, three saturating sums and five maxima, and an eighth of
five loads and three stores.

Scores are kept as ``origin + score`` in the narrowest type that will do. Sums stop at the ends of
8- and 16-bit types. For local alignments the origin is the lowest number of the type, so that
stopping there is the zero that H never falls below; D and I below zero cannot be told from zero,
and are never on an optimal path. For other modes see `bwarp.alignment.matrix.batches_cpu`.

Lanes whose sequences are shorter are filled up with padding, which scores as low as it can; cells
beyond a lane's own corner are computed and never looked at.
"""

import numba
import numpy as np
from numba.extending import overload

from bwarp.alignment.matrix.substitution_scores_cpu import substitution
from bwarp.runtime.simd import (
    VECTOR_BYTES,
    add,
    equal,
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

__all__ = [
    "NEVER",
    "ROWS",
    "best_along",
    "fill_directions",
    "fill_rows",
    "floored",
    "interleave",
    "next_cell",
]

#: Rows of a pass; the rows of a batch are padded to a multiple of it.
ROWS = 8

#: A row or column that is not reached.
NEVER = 1 << 40


@numba.njit(cache=True, nogil=True)
def interleave(codes, starts, lengths, table, padding, length, out, at):
    """Lay sequences side by side, one a lane: out[at + i * lanes + lane] = table[residue i].

    Parameters
    ----------
    codes : array of uint8
    starts, lengths : array, shape=(lanes,), int64 and int32
    table : array, shape=(256,), dtype=uint8
        Codes are below 128.
    padding : uint8
        What follows the sequence up to `length` residues.
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
    """The maximum of both for lanes that do not stop at the end of their type by themselves."""
    raise NotImplementedError("floored runs in compiled code only")


@overload(floored, jit_options={"forceinline": True})
def _floored(vector, floor):
    if vector.element.bitwidth > 16:
        return lambda vector, floor: maximum(vector, floor)
    return lambda vector, floor: vector


@numba.njit(forceinline=True)
def next_cell(diagonal, score, deletion, insertion, first, more, floor):
    """H of a cell, D of its right neighbour and I of the one below it; all are vectors.

    D opens after a match or a D only, not after an I: an insertion and then a deletion score as
    the same two the other way round, between the same cells, so that H and I stay what they are.
    It leaves one subtraction and one maximum in the chain that runs down a column.
    """
    before = maximum(add(diagonal, score), deletion)
    opened = subtract(before, first)
    return (
        floored(maximum(before, insertion), floor),
        maximum(subtract(deletion, more), opened),
        maximum(subtract(insertion, more), opened),
    )


@numba.njit(forceinline=True)
def _put_where(here, value, array, at):
    store(array, at, select(here, value, load(array, at)))


@numba.njit(cache=True, nogil=True)
def fill_rows(
    scheme,
    query,
    reference,
    row_begin,
    row_end,
    columns,
    left,
    first,
    more,
    floor,
    row_H,
    row_I,
    row_maxima,
    query_lengths,
    from_row,
    last_row,
    reference_lengths,
    from_column,
    last_column,
):
    """Fill the cells of rows row_begin + 1 to row_end and columns 1 to `columns` of a batch.

    Parameters
    ----------
    scheme : tuple of substitution_scores_cpu
    query, reference : array of uint8
        Interleaved codes.
    row_begin, row_end, columns : int
        row_end - row_begin is a multiple of ROWS.
    left : array, shape=((row_end + 1) * lanes,)
        H(i, 0); its type is the type of all arrays of scores.
    first, more : scalar of that type
        What the first position of a gap costs, and each further one.
    floor : scalar of that type
        What H of 32-bit lanes never falls below; narrower lanes stop at the end of their type.
    row_H, row_I : array, shape=(columns * lanes,)
        H(row_begin, j) and I(row_begin + 1, j) for j >= 1; replaced by those of row_end.
    row_maxima : bool
        Raise last_row to the maximum of each column (local alignments).
    query_lengths, reference_lengths : array, shape=(lanes,), dtype=int32
    from_row, last_row
        From this row on, keep H of the last row of each lane in ``last_row[(j - 1) * lanes]``.
    from_column, last_column
        From this column on, keep H of each lane's last column in ``last_column[(i - 1) * lanes]``.
    """
    stand_alone()
    first_cost, more_cost, lowest = fill(first), fill(more), fill(floor)
    lanes = lane_count(first_cost)
    for i in range(row_begin, row_end, ROWS):
        at = i * lanes
        diagonal = load(left, at)
        h0 = load(left, at + lanes)
        h1 = load(left, at + 2 * lanes)
        h2 = load(left, at + 3 * lanes)
        h3 = load(left, at + 4 * lanes)
        h4 = load(left, at + 5 * lanes)
        h5 = load(left, at + 6 * lanes)
        h6 = load(left, at + 7 * lanes)
        h7 = load(left, at + 8 * lanes)
        d0 = subtract(h0, first_cost)
        d1 = subtract(h1, first_cost)
        d2 = subtract(h2, first_cost)
        d3 = subtract(h3, first_cost)
        d4 = subtract(h4, first_cost)
        d5 = subtract(h5, first_cost)
        d6 = subtract(h6, first_cost)
        d7 = subtract(h7, first_cost)
        lane_rows = load_like(query_lengths, 0, diagonal)
        for j in range(columns):
            residues = load_like(reference, j * lanes, diagonal)
            above = load(row_H, j * lanes)
            down = load(row_I, j * lanes)
            h = h0
            score = substitution(scheme, query, at, residues, h)
            h0, d0, down = next_cell(diagonal, score, d0, down, first_cost, more_cost, lowest)
            diagonal, h = h, h1
            score = substitution(scheme, query, at + lanes, residues, h)
            h1, d1, down = next_cell(diagonal, score, d1, down, first_cost, more_cost, lowest)
            diagonal, h = h, h2
            score = substitution(scheme, query, at + 2 * lanes, residues, h)
            h2, d2, down = next_cell(diagonal, score, d2, down, first_cost, more_cost, lowest)
            diagonal, h = h, h3
            score = substitution(scheme, query, at + 3 * lanes, residues, h)
            h3, d3, down = next_cell(diagonal, score, d3, down, first_cost, more_cost, lowest)
            diagonal, h = h, h4
            score = substitution(scheme, query, at + 4 * lanes, residues, h)
            h4, d4, down = next_cell(diagonal, score, d4, down, first_cost, more_cost, lowest)
            diagonal, h = h, h5
            score = substitution(scheme, query, at + 5 * lanes, residues, h)
            h5, d5, down = next_cell(diagonal, score, d5, down, first_cost, more_cost, lowest)
            diagonal, h = h, h6
            score = substitution(scheme, query, at + 6 * lanes, residues, h)
            h6, d6, down = next_cell(diagonal, score, d6, down, first_cost, more_cost, lowest)
            diagonal, h = h, h7
            score = substitution(scheme, query, at + 7 * lanes, residues, h)
            h7, d7, down = next_cell(diagonal, score, d7, down, first_cost, more_cost, lowest)
            diagonal = above
            store(row_H, j * lanes, h7)
            store(row_I, j * lanes, down)
            if row_maxima:
                highest = maximum(
                    maximum(maximum(h0, h1), maximum(h2, h3)),
                    maximum(maximum(h4, h5), maximum(h6, h7)),
                )
                store(last_row, j * lanes, maximum(highest, load(last_row, j * lanes)))
            elif i + ROWS >= from_row:
                kept = load(last_row, j * lanes)
                kept = select(equal(lane_rows, fill_like(np.int32(i + 1), h)), h0, kept)
                kept = select(equal(lane_rows, fill_like(np.int32(i + 2), h)), h1, kept)
                kept = select(equal(lane_rows, fill_like(np.int32(i + 3), h)), h2, kept)
                kept = select(equal(lane_rows, fill_like(np.int32(i + 4), h)), h3, kept)
                kept = select(equal(lane_rows, fill_like(np.int32(i + 5), h)), h4, kept)
                kept = select(equal(lane_rows, fill_like(np.int32(i + 6), h)), h5, kept)
                kept = select(equal(lane_rows, fill_like(np.int32(i + 7), h)), h6, kept)
                kept = select(equal(lane_rows, fill_like(np.int32(i + 8), h)), h7, kept)
                store(last_row, j * lanes, kept)
            if j + 1 >= from_column:
                here = equal(load_like(reference_lengths, 0, h), fill_like(np.int32(j + 1), h))
                _put_where(here, h0, last_column, at)
                _put_where(here, h1, last_column, at + lanes)
                _put_where(here, h2, last_column, at + 2 * lanes)
                _put_where(here, h3, last_column, at + 3 * lanes)
                _put_where(here, h4, last_column, at + 4 * lanes)
                _put_where(here, h5, last_column, at + 5 * lanes)
                _put_where(here, h6, last_column, at + 6 * lanes)
                _put_where(here, h7, last_column, at + 7 * lanes)


@numba.njit(cache=True, nogil=True)
def best_along(values, count, least, most, best, where):
    """The first best of a last row or column, a lane at a time in vectors.

    Parameters
    ----------
    values : array, shape=(count * lanes,)
        Position p (from 1) of lane l at ``(p - 1) * lanes + l``.
    least, most : array, shape=(lanes,), dtype=int32
        Positions that count, both included.
    best : array, shape=(lanes,)
        In: what has to be beaten. Out: the best.
    where : array, shape=(lanes,), dtype=int32
        In: the answer if nothing is better. Out: the first position of the best.
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


@numba.njit(cache=True, nogil=True)
def fill_directions(
    scheme,
    query,
    reference,
    row_begin,
    row_end,
    columns,
    left,
    first,
    more,
    floor,
    extend_ties,
    row_H,
    row_I,
    directions,
):
    """Fill cells as `fill_rows` does, and keep how each came about: four bits a cell and lane.

    ``directions[4 * ((i - row_begin - 1) * columns + j - 1) + k]`` holds, one bit a lane:

        k = 0   H(i,j) came along the diagonal
        k = 1   H(i,j) = D(i,j)
        k = 2   D(i,j+1) opens here: it is H(i,j) less the cost of opening a gap
        k = 3   I(i+1,j) opens here

    Where opening and extending tie, the gap opens; with `extend_ties` it extends.
    """
    stand_alone()
    first_cost, more_cost, lowest = fill(first), fill(more), fill(floor)
    lanes = lane_count(first_cost)
    for i in range(row_begin, row_end):
        diagonal = load(left, i * lanes)
        d = subtract(load(left, (i + 1) * lanes), first_cost)
        at = (i - row_begin) * columns * 4
        for j in range(columns):
            residues = load_like(reference, j * lanes, diagonal)
            score = substitution(scheme, query, i * lanes, residues, diagonal)
            along = add(diagonal, score)
            diagonal = load(row_H, j * lanes)
            down = load(row_I, j * lanes)
            h = floored(maximum(maximum(along, d), down), lowest)
            opened = subtract(h, first_cost)
            directions[at] = mask_bits(equal(h, along))
            directions[at + 1] = mask_bits(equal(h, d))
            d = subtract(d, more_cost)
            down = subtract(down, more_cost)
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
