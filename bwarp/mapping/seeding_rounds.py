"""The seeding rounds, and which reads take part in each; both engines use these rules.

1. All reads are searched with few seeds. A read whose best hit scores clearly more than any locus
   without these seeds could is resolved.
2. The others are searched again, with as many seeds as fit one after another; what the first round
   found of them is dropped.
3. Unresolved reads with hits that are not located are searched with longer seeds, which are rarer.
4. Reads of which an unlocated hit is likely to be as good, or as good but for one mismatch, as the
   best one get many more hits.
5. Reads with no hit that scores well, and short reads with hits that may be hidden from the seeds,
   are searched with shorter ones that overlap.
"""

import numba

from bwarp.mapping.parameters import MappingParameters, SeedRound

__all__ = ["SECOND", "needs_round", "rounds_of"]

#: The rounds after the first.
SECOND, LONG, MORE_HITS, SHORT = range(4)


def rounds_of(parameters: MappingParameters) -> list[tuple[int, SeedRound]]:
    """The rounds after the first, in their order."""
    p = parameters
    return list(enumerate((p.second, p.long, p.more_hits, p.short)))


@numba.njit(cache=True, nogil=True)
def needs_round(number, best, bound, unlocated, good, margin, loss):
    """Whether a read is searched in a round; arrays of all reads, or numbers of one.

    Parameters
    ----------
    best : int32
        The best score so far.
    bound : int32
        The score bound of loci that the first two rounds have not located.
    unlocated : int32
        The likely score of an unlocated hit, 0 where there is none.
    good : int64
        The least score that is good enough for a read of this length.
    margin : int
        A best score so much above the bound resolves a read.
    loss : int
        What a mismatch costs.
    """
    if number == SECOND:
        return best < bound + margin
    if number == LONG:
        return (best < bound + margin) & (unlocated > 0)
    if number == MORE_HITS:
        return (unlocated > 0) & (best <= unlocated + loss)
    return best < good
