"""Scores, likelihoods and mapping qualities of pairs of hits; both engines use these functions."""

from numpy import int64

from bwarp.mapping.insert_size import SCORE_UNITS
from bwarp.mapping.likelihoods import likelihood, mapping_quality
from bwarp.mapping.parameters import SHORT_READ
from bwarp.mapping.primary_hits_cpu import (
    HIDDEN_ONCE_IN,
    NEAR_RIVALS,
    UNLOCATED_LOSS,
    has_few_copies,
    hidden_score,
    same_bases,
)
from bwarp.runtime.compiled_code import compiled

#: The same as `FEW_COPIES`, for pairs.
FEW_PAIRS = 6

#: What two reads that are not a proper pair lose, in scores of a match; as in bwa.
UNPAIRED_PENALTY = 17


@compiled(inline="always")
def unpaired_score(single_a, single_b, match):
    """Return the score of a pair by the best hits of both reads anywhere."""
    return SCORE_UNITS * (single_a + single_b - UNPAIRED_PENALTY * match)


@compiled(inline="always")
def exclude_each_other(span, span_2, length):
    """Return whether at most one of two hits of a read can be correct, because they align the same
    bases. Parts of a split read align different bases; short reads are not split.
    """
    return length < SHORT_READ or same_bases(span, span_2)


@compiled(inline="always")
def better_apart(best, penalised, rival, single, mate, length, match):
    """Return the likelihood that a read of a pair lies apart from its mate, at another hit that
    scores more than `penalised`, the score of its hit in the pair. The pair scores `best`.

    Parameters
    ----------
    rival, single : int64
        The best score of other hits of the same bases of the read, and of all its hits.
    mate : int64
        The best score of its mate anywhere.
    """
    rival = single if length < SHORT_READ else rival
    if penalised >= rival:
        return int64(0)
    return likelihood(best - unpaired_score(rival, mate, match), match)


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
def others_in_repeat(others, near, is_short, unlocated_a, unlocated_b, above, match, mismatch):
    """Return the likelihood of all pairs with another hit of a read, which is higher if the reads
    have hits that were not located.

    Parameters
    ----------
    others, near : int64
        Sums of the likelihoods of all pairs with another hit of the same bases of the read, and of
        near ones.
    is_short, unlocated_a, unlocated_b : bool
        Whether both reads are short, and whether each has hits that were not located.
    above : int64
        The lower one of `above_unlocated` of both reads.
    """
    if is_short and (unlocated_a or unlocated_b):
        others += others >> 1
    elif unlocated_a and unlocated_b:
        # An unlocated hit may even score more by one mismatch: both reads must have one nearby.
        above += 2 * (match - mismatch)
        is_few = has_few_copies(near, FEW_PAIRS, above, match, mismatch)
        others += 0 if is_few else (NEAR_RIVALS - 1) * near
    return others


@compiled(inline="always")
def pair_quality(others, alone):
    """Return the mapping quality of a read in a pair, given `alone`, the quality without it."""
    return min(mapping_quality(others), alone + 40)
