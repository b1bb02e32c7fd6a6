"""The best local scores of a query in strips of sequences: one lane a strip, 8 rows in registers.

    a block     16 columns of all lanes. Their scores against each residue of the query are looked
                up once, and stay in the first-level cache while all rows of the query go by:
                a cell reads its score as the operand of its sum

                           16 columns                     scores[residue, column, lane]
    rows i .. i+7       .---------------.    left_H, left_D: read, and written for the block on
    in registers        | H D -> H D    |    the right, where they pass from block to block
                        '---------------'
    row_H, row_I          in first-level cache, from these rows to the eight below

Per cell that is four saturating sums and five maxima, a load, and an eighth of two loads and two
stores; a block adds two loads and two stores a row.

Scores are kept from the lowest number of the type on, which is the zero that H never falls below,
as in cells_cpu.py. A sequence begins in the first column of a block, where its lane starts over;
it ends anywhere in one, and the padding behind it scores as low as it can.
"""

import numba
import numpy as np

from bwarp.alignment.matrix.cells_cpu import ROWS, next_cell
from bwarp.alignment.scoring import Scoring
from bwarp.runtime.simd import (
    equal,
    extend,
    fill,
    fill_like,
    lane_count,
    load,
    load_like,
    lookup,
    maximum,
    select,
    stand_alone,
    store,
)

__all__ = ["BLOCK", "PADDING", "fill_block", "look_up_scores", "score_table"]

#: Columns of a block: 20 residues of 16 vectors of 64 bytes are two thirds of a first-level cache.
BLOCK = 16

#: The code that follows a sequence up to the end of its block, and a query up to whole `ROWS`.
PADDING = 27

_LOWEST = -128


def score_table(scoring: Scoring, codes: np.ndarray) -> np.ndarray:
    """The matrix rows of some codes, `PADDING` among them: int8[codes.size * 32]."""
    size = len(scoring.letters)
    table = np.full((codes.size, 32), _LOWEST, np.int8)
    known = codes < size
    table[known, :size] = scoring.matrix[codes[known]]
    return table.ravel()


@numba.njit(cache=True, nogil=True)
def look_up_scores(table, reference, at, scores):
    """The scores of a block: scores[residue, column, lane] = table[residue, code of the lane].

    Parameters
    ----------
    table : array, dtype=int8
        Of `score_table`.
    reference : array of uint8
        Interleaved codes; the block begins at `at`.
    scores : array, shape=(residues * BLOCK * lanes,)
        Of the type to compute in.
    """
    stand_alone()
    kind = load(scores, 0)
    lanes = lane_count(kind)
    for residue in range(table.size // 32):
        for column in range(BLOCK):
            codes = load_like(reference, at + column * lanes, kind)
            found = extend(lookup(table, residue * 32, 32, codes), kind)
            store(scores, (residue * BLOCK + column) * lanes, found)


@numba.njit(cache=True, nogil=True)
def fill_block(
    scores, row_scores, begins, at, first, more, floor, left_H, left_D, row_H, row_I, best
):
    """Fill the cells of a block, all rows of the query, and raise the best score of each lane.

    Parameters
    ----------
    scores : array
        Of `look_up_scores`; its type is the type of all arrays of scores.
    row_scores : array, shape=(rows,), dtype=int64
        Where the scores of each row's residue begin in `scores`; rows are a multiple of `ROWS`.
    begins : array of uint8
        Not 0 where a lane starts over with this block: ``begins[at + lane]``.
    first, more, floor : scalar of the type of `scores`
        As for `cells_cpu.fill_rows`.
    left_H, left_D : array, shape=(rows * lanes,)
        H of the column before the block and D of its first one; replaced by those of the next.
    row_H, row_I : array, shape=(BLOCK * lanes,)
        Scratch.
    best : array, shape=(lanes,)
    """
    stand_alone()
    first_cost, more_cost, lowest = fill(first), fill(more), fill(floor)
    lanes = lane_count(lowest)
    flags = load_like(begins, at, lowest)
    same = equal(flags, fill_like(np.uint8(0), lowest))
    for column in range(0, BLOCK * lanes, lanes):
        store(row_H, column, lowest)
        store(row_I, column, lowest)
    highest = select(same, load(best, 0), lowest)
    corner = lowest
    for i in range(0, row_scores.size, ROWS):
        at = i * lanes
        h0 = select(same, load(left_H, at), lowest)
        h1 = select(same, load(left_H, at + lanes), lowest)
        h2 = select(same, load(left_H, at + 2 * lanes), lowest)
        h3 = select(same, load(left_H, at + 3 * lanes), lowest)
        h4 = select(same, load(left_H, at + 4 * lanes), lowest)
        h5 = select(same, load(left_H, at + 5 * lanes), lowest)
        h6 = select(same, load(left_H, at + 6 * lanes), lowest)
        h7 = select(same, load(left_H, at + 7 * lanes), lowest)
        d0 = select(same, load(left_D, at), lowest)
        d1 = select(same, load(left_D, at + lanes), lowest)
        d2 = select(same, load(left_D, at + 2 * lanes), lowest)
        d3 = select(same, load(left_D, at + 3 * lanes), lowest)
        d4 = select(same, load(left_D, at + 4 * lanes), lowest)
        d5 = select(same, load(left_D, at + 5 * lanes), lowest)
        d6 = select(same, load(left_D, at + 6 * lanes), lowest)
        d7 = select(same, load(left_D, at + 7 * lanes), lowest)
        s0 = row_scores[i]
        s1 = row_scores[i + 1]
        s2 = row_scores[i + 2]
        s3 = row_scores[i + 3]
        s4 = row_scores[i + 4]
        s5 = row_scores[i + 5]
        s6 = row_scores[i + 6]
        s7 = row_scores[i + 7]
        diagonal, corner = corner, h7
        for column in range(0, BLOCK * lanes, lanes):
            above = load(row_H, column)
            down = load(row_I, column)
            h = h0
            score = load(scores, s0 + column)
            h0, d0, down = next_cell(diagonal, score, d0, down, first_cost, more_cost, lowest)
            highest = maximum(highest, h0)
            diagonal, h = h, h1
            score = load(scores, s1 + column)
            h1, d1, down = next_cell(diagonal, score, d1, down, first_cost, more_cost, lowest)
            highest = maximum(highest, h1)
            diagonal, h = h, h2
            score = load(scores, s2 + column)
            h2, d2, down = next_cell(diagonal, score, d2, down, first_cost, more_cost, lowest)
            highest = maximum(highest, h2)
            diagonal, h = h, h3
            score = load(scores, s3 + column)
            h3, d3, down = next_cell(diagonal, score, d3, down, first_cost, more_cost, lowest)
            highest = maximum(highest, h3)
            diagonal, h = h, h4
            score = load(scores, s4 + column)
            h4, d4, down = next_cell(diagonal, score, d4, down, first_cost, more_cost, lowest)
            highest = maximum(highest, h4)
            diagonal, h = h, h5
            score = load(scores, s5 + column)
            h5, d5, down = next_cell(diagonal, score, d5, down, first_cost, more_cost, lowest)
            highest = maximum(highest, h5)
            diagonal, h = h, h6
            score = load(scores, s6 + column)
            h6, d6, down = next_cell(diagonal, score, d6, down, first_cost, more_cost, lowest)
            highest = maximum(highest, h6)
            diagonal, h = h, h7
            score = load(scores, s7 + column)
            h7, d7, down = next_cell(diagonal, score, d7, down, first_cost, more_cost, lowest)
            highest = maximum(highest, h7)
            diagonal = above
            store(row_H, column, h7)
            store(row_I, column, down)
        store(left_H, at, h0)
        store(left_H, at + lanes, h1)
        store(left_H, at + 2 * lanes, h2)
        store(left_H, at + 3 * lanes, h3)
        store(left_H, at + 4 * lanes, h4)
        store(left_H, at + 5 * lanes, h5)
        store(left_H, at + 6 * lanes, h6)
        store(left_H, at + 7 * lanes, h7)
        store(left_D, at, d0)
        store(left_D, at + lanes, d1)
        store(left_D, at + 2 * lanes, d2)
        store(left_D, at + 3 * lanes, d3)
        store(left_D, at + 4 * lanes, d4)
        store(left_D, at + 5 * lanes, d5)
        store(left_D, at + 6 * lanes, d6)
        store(left_D, at + 7 * lanes, d7)
    store(best, 0, highest)
