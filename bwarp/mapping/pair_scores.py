"""Scores, likelihoods and mapping qualities of pairs of hits; both engines use these functions."""

from numba import int64

from bwarp.mapping.insert_size import SCORE_UNITS
from bwarp.mapping.likelihoods import likelihood, mapping_quality
from bwarp.mapping.parameters import SHORT_READ
from bwarp.mapping.primary_hits_cpu import (
    HIDDEN_ONCE_IN,
    NEAR_RIVALS,
    UNLOCATED_LOSS,
    hidden_score,
)
from bwarp.runtime.compiled_code import compiled

#: What two reads that are not a proper pair lose, in scores of a match; as in bwa.
UNPAIRED_PENALTY = 17


@compiled(inline="always")
def unpaired_score(single_a, single_b, match):
    """Return the score of a pair by the best hits of both reads anywhere."""
    return SCORE_UNITS * (single_a + single_b - UNPAIRED_PENALTY * match)


@compiled(inline="always")
def unlocated_rival(unlocated, suboptimal, match):
    """Return the score of unlocated hits of a read in another pair, or 0 if there are none."""
    if not unlocated:
        return int64(0)
    return max(min(unlocated, suboptimal), unlocated - UNLOCATED_LOSS * match)


@compiled(inline="always")
def pairs_beside(best, rivals, length_a, length_b, match, mismatch):
    """Return the likelihood of pairs with hits that were not located, or that no seed shows.

    `rivals` is the sum of `unlocated_rival` of both reads.
    """
    besides = likelihood(best - SCORE_UNITS * rivals, match)
    if length_a < SHORT_READ and length_b < SHORT_READ:
        loss = match - mismatch
        hidden = hidden_score(length_a, match, loss) + hidden_score(length_b, match, loss)
        besides += likelihood(best - SCORE_UNITS * hidden, match) // HIDDEN_ONCE_IN
    return besides


@compiled(inline="always")
def pair_quality(others, near, is_short, unlocated_a, unlocated_b, alone):
    """Return the mapping quality of a read in a pair, given `alone`, the quality without it.

    Parameters
    ----------
    others, near : int64
        Sums of the likelihoods of all pairs with another hit of the read, and of near ones.
    unlocated_a, unlocated_b : bool
        Whether the reads have hits that were not located.
    """
    if is_short and (unlocated_a or unlocated_b):
        others += others >> 1
    elif unlocated_a and unlocated_b:
        others += (NEAR_RIVALS - 1) * near
    return min(mapping_quality(others), alone + 40)
