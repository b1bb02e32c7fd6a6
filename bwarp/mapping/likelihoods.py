"""How likely other hits of a read are, and the mapping quality beside them.

Likelihoods are whole numbers, in parts of `ONE`, which stands for as likely as the best hit. Their
sums do not depend on the order in which they are added.
"""

import math

import numpy as np
from numba import int64

from bwarp.mapping.insert_size import SCORE_UNITS
from bwarp.runtime.compiled_code import compiled

#: As likely as the best.
ONE = 1 << 40

#: A hit is less likely by so many decibels a match that it scores less.
MATCH_QUALITY = 4.9

#: A hit that scores so many matches less counts nothing.
MOST_LESS = 20

#: Likelihoods are tabled for every sixteenth of a match.
STEPS_A_MATCH = 16
_STEP = SCORE_UNITS // STEPS_A_MATCH

HIGHEST_QUALITY = 60


def likelihood_table(match_quality: float) -> np.ndarray:
    """The likelihoods of hits that score 0, 1/16, 2/16, ... matches less than the best, int64."""
    less = np.arange(MOST_LESS * STEPS_A_MATCH) / STEPS_A_MATCH
    return np.round(ONE * 10.0 ** (-match_quality / 10 * less)).astype(np.int64)


def _most_beside(quality: int) -> int:
    """The most likely that all others may be together, beside a hit of this quality.

    10 log10 of (1 + others) / others, rounded; 0 where they are as likely as the hit, or more.
    """
    return min(int(ONE / (math.exp((quality - 0.499) / 4.343) - 1)), ONE - 1)


TABLE = likelihood_table(MATCH_QUALITY)
MOST_BESIDE = np.array([_most_beside(quality) for quality in range(HIGHEST_QUALITY, 0, -1)])


@compiled(inline="always")
def likelihood(less, match):
    """How likely a hit or pair is that scores so much less than the best, in `SCORE_UNITS`; both
    engines use it.
    """
    step = max(less, int64(0)) // (match * _STEP)
    return TABLE[step] if step < TABLE.size else int64(0)


@compiled(inline="always")
def mapping_quality(others):
    """The mapping quality of a hit beside which all others are so likely together; both engines
    use it.
    """
    if others <= MOST_BESIDE[0]:
        return int64(HIGHEST_QUALITY)
    # How many of the bounds are exceeded: bisection.
    low, high = int64(0), int64(MOST_BESIDE.size)
    while low < high:
        middle = (low + high) >> 1
        if MOST_BESIDE[middle] < others:
            low = middle + 1
        else:
            high = middle
    return HIGHEST_QUALITY - low
