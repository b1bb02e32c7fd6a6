"""The seeding rounds, and which reads take part in each; both engines use these rules.

1. All reads are searched with few seeds. A read is resolved if its best hit scores clearly more
   than any locus without these seeds could.
2. The other reads are searched again, with as many non-overlapping seeds as fit; their hits of the
   first round are dropped.
3. Unresolved reads with hits that are not located are searched with longer seeds, which are rarer.
4. Reads with an unlocated hit that is likely to be better than the best one get many more hits; for
   a short read, an unlocated hit that is as good, or worse by one mismatch, also counts.
5. Reads with no hit that scores well, or with hits that may be hidden from the seeds, are searched
   with shorter ones that overlap.
"""

import numpy as np

from bwarp.mapping.parameters import SHORT_READ, MappingParameters, SeedRound
from bwarp.mapping.seeds_cpu import likely_score
from bwarp.runtime.compiled_code import compiled

#: The rounds after the first.
SECOND, LONG, MORE_HITS, SHORT = range(4)


def rounds_of(parameters: MappingParameters) -> list[tuple[int, SeedRound]]:
    """Return the rounds after the first, in order."""
    p = parameters
    return list(enumerate((p.second, p.long, p.more_hits, p.short)))


@compiled
def needs_round(number, length, best, bound, unlocated, good, margin, loss):
    """Return whether a read is searched in a round; takes arrays of all reads or values of one.

    Parameters
    ----------
    length : int64
        Bases of the read.
    best : int32
        The best score so far.
    bound : int32
        The score bound of loci that the first two rounds have not located.
    unlocated : int32
        The likely score of an unlocated hit, 0 if there is none.
    good : int64
        The minimum score that is good enough for a read of this length.
    margin : int
        A best score at least this far above the bound resolves a read.
    loss : int
        Score lost by a mismatch.
    """
    if number == SECOND:
        return best < bound + margin
    if number == LONG:
        return (best < bound + margin) & (unlocated > 0)
    if number == MORE_HITS:
        return (unlocated > 0) & (best < unlocated + (length < SHORT_READ) * (loss + 1))
    return best < good


@compiled(inline="always")
def bounds_after(number, length, match, found_bound, found_unlocated, bound, unlocated):
    """Return a read's score bound and likely score of an unlocated hit after another round.

    The round alone gave `found_bound` and `found_unlocated`. A hit that neither of two rounds
    located scores at most the lower of both bounds, even if the later round located all hits of
    its seeds: a locus may have none of these seeds.
    """
    if number == SECOND:
        return found_bound, found_unlocated
    lower = min(bound, found_bound)
    if unlocated > 0 or (number == SHORT and length < SHORT_READ and found_unlocated > 0):
        unlocated = likely_score(lower, length, match)
    return bound, unlocated


@compiled
def take_bounds(number, reads, lengths, found_bounds, found_unlocated, match, bounds, unlocated):
    """Write the bounds of the reads that took part in a round."""
    for i in range(reads.size):
        read = reads[i]
        bounds[read], unlocated[read] = bounds_after(
            number, np.int64(lengths[read]), match, np.int64(found_bounds[read]),
            np.int64(found_unlocated[read]), np.int64(bounds[read]), np.int64(unlocated[read]),
        )  # fmt: skip
