"""The traceback on the CPU: from an end cell to the alignment's start, by the bits of the cells."""

from bwarp.alignment.pairs import DELETION, EQUAL, INSERTION, MISMATCH
from bwarp.alignment.traceback.cigars_cpu import push
from bwarp.runtime.compiled_code import compiled

__all__ = ["follow_directions"]


@compiled
def follow_directions(
    lane, above, columns, directions, costs, matrix, ambiguous, query, reference, state, runs
):
    """Trace one lane back through the slice of rows below row `above`, as rule 2 of pairs.py says.

    `state` is (i, j, 0 at H or 1 at D or 2 at I, the score still to be explained, runs so far);
    the traceback ends at the alignment's start, or waits where it needs a cell of the slice above.
    """
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
            # Whether the gap opens here is kept in the cell before; along a border it goes on.
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
