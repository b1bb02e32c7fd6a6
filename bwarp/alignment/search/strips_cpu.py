"""The best local scores of a query in strips of sequences: one lane a strip, 4 rows in registers.

    a block     16 columns of all lanes. Their scores against each residue of the query are looked
                up once, and stay in the first-level cache while all rows of the query go by:
                a cell reads its score as the operand of its sum

                           16 columns                     scores[residue, column, lane]
    rows i .. i+3       .---------------.    left_H, left_D: read, and written for the block on
    in registers        | H D -> H D    |    the right, where they pass from block to block
                        '---------------'
    row_H, row_I          in first-level cache, from these rows to the four below

Per cell that is four saturating sums and five maxima, a load, and a quarter of two loads and two
stores; a block adds two loads and two stores a row.

Scores are kept from the lowest number of the type on, which is the zero that H never falls below,
as in cells_cpu.py. A sequence begins in the first column of a block, where its lane starts over;
it ends anywhere in one, and the padding behind it scores as low as it can.
"""

import numpy as np

from bwarp.alignment.matrix.cells_cpu import (
    ROWS,
    load_rows,
    next_rows,
    select_rows,
    store_rows,
)
from bwarp.alignment.scoring import Scoring
from bwarp.runtime.compiled_code import compiled
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


@compiled
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


@compiled
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
        floor_rows = (lowest, lowest, lowest, lowest)
        h = select_rows(same, load_rows(left_H, at, lanes), floor_rows)
        d = select_rows(same, load_rows(left_D, at, lanes), floor_rows)
        s0, s1, s2, s3 = row_scores[i], row_scores[i + 1], row_scores[i + 2], row_scores[i + 3]
        diagonal, corner = corner, h[3]
        for column in range(0, BLOCK * lanes, lanes):
            found = (
                load(scores, s0 + column), load(scores, s1 + column), load(scores, s2 + column),
                load(scores, s3 + column),
            )  # fmt: skip
            above, below = load(row_H, column), load(row_I, column)
            h, d, below = next_rows(diagonal, found, h, d, below, first_cost, more_cost, lowest)
            highest = maximum(maximum(maximum(maximum(highest, h[0]), h[1]), h[2]), h[3])
            diagonal = above
            store(row_H, column, h[3])
            store(row_I, column, below)
        store_rows(left_H, at, lanes, h)
        store_rows(left_D, at, lanes, d)
    store(best, 0, highest)
