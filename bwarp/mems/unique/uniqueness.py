"""Which maximal matches are unique, by comparison with the other matches.

A match is unique in the reference just when its stretch of the query lies in no other match's:
wherever else its bases stand in the reference, a maximal match holds that position and the same
stretch of the query. The same is true with the two exchanged. So one function serves for both.

    query      |---- a ----|
                  |- b -|         b lies in a: its bases stand at two positions
             |-- c --|            c lies in no other: it is unique in the reference
"""

import numpy as np

from bwarp.mems.matches import Matches, take_matches
from bwarp.runtime.compiled_code import compiled

__all__ = ["least_dominated", "unique_in_query", "unique_in_reference"]


def unique_in_reference(matches: Matches) -> Matches:
    """Of all maximal matches, in order, those whose bases stand once in the reference."""
    return take_matches(matches, _alone(matches.queries, matches.query_starts, matches.lengths, 1))


def least_dominated(matches: Matches) -> Matches:
    """The matches that `unique_in_reference` needs to see to judge any set that includes these.

    Those whose stretch of the query lies in no longer one, at most two of the same.
    """
    return take_matches(matches, _alone(matches.queries, matches.query_starts, matches.lengths, 2))


def unique_in_query(matches: Matches) -> Matches:
    """Of matches unique in the reference, those unique in their query strand as well.

    They are in MUMmer's order, by where they begin in the reference within each query strand.
    """
    order = np.lexsort((matches.reference_starts, matches.queries))
    matches = take_matches(matches, order)
    return take_matches(
        matches, _alone(matches.queries, matches.reference_starts, matches.lengths, 1)
    )


@compiled
def _alone(queries, starts, lengths, most):
    """Mark intervals, sorted by query and start, that lie in no other of their query.

    Equal intervals lie in one another; they are marked up to two, as `most` allows: none of
    several equal ones if it is 1.
    """
    marked = np.zeros(queries.size, np.bool_)
    reached = np.int64(0)
    first = 0
    while first < queries.size:
        if first == 0 or queries[first] != queries[first - 1]:
            reached = 0
        last = first
        longest = np.int64(0)
        while last < queries.size and (
            queries[last] == queries[first] and starts[last] == starts[first]
        ):
            longest = max(longest, np.int64(lengths[last]))
            last += 1
        if np.int64(starts[first]) + longest > reached:
            reached = np.int64(starts[first]) + longest
            equal = 0
            for i in range(first, last):
                equal += np.int64(lengths[i]) == longest
            left = equal if equal <= most else (most if most > 1 else 0)
            for i in range(first, last):
                if np.int64(lengths[i]) == longest and left > 0:
                    marked[i] = True
                    left -= 1
        first = last
    return marked
