"""How many parts of a read must be searched, and with how many mismatches, to miss no alignment.

**The rule.** An alignment with at most e edits, of which at most G are gap letters (bases inserted
or deleted), is found if the read is cut, anywhere, into

    p = G + (e - G) // (m + 1) + 1

parts, and each is searched without gaps and with at most m mismatches.

Proof. A gap letter touches one part at most: an inserted base belongs to one, a deleted base lies
in one or between two. With g <= G gap letters at least p - g parts have none. Had each of these
m + 1 mismatches or more, they would be (p - g) (m + 1) > e - g. So one has m at most, and no gap.

With gaps in every edit (G = e) that is e + 1 parts, whatever m is: then parts without mismatches
are best. Without gaps (G = 0) it is e // (m + 1) + 1.
"""

from math import comb

from bwarp.options.finding import MOST_MISMATCHES

__all__ = ["best_mismatches", "parts_needed"]

# What a step takes, in units of a part searched without mismatches; measured on human reads.
_HIT_COST = 0.15
_SEARCH_COST = (1.0, 15.0, 60.0, 250.0, 1000.0)


def parts_needed(edits, gaps, mismatches):
    """Parts into which a read is cut: of numbers, or of arrays of them."""
    return gaps + (edits - gaps) // (mismatches + 1) + 1


def best_mismatches(length: int, edits: int, gaps: int, text_length: int) -> int:
    """Mismatches of a part with which a read of this length is searched soonest, on random text."""
    if gaps == edits:
        return 0
    costs = []
    for mismatches in range(min(MOST_MISMATCHES, edits) + 1):
        parts = parts_needed(edits, gaps, mismatches)
        k = min(length // parts, 64)
        variants = sum(comb(k, i) * 3**i for i in range(mismatches + 1))
        hits = text_length * variants / 4.0**k
        costs.append(parts * (_SEARCH_COST[mismatches] + hits * _HIT_COST))
    return costs.index(min(costs))
