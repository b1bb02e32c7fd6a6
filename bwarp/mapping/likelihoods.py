"""Likelihoods of the other hits of a read, and the mapping quality that follows from them.

Likelihoods are integers, in units of `ONE`, the likelihood of the best hit. Their sums therefore
do not depend on the order of addition.
"""

import math

import numpy as np
from numpy import int64

from bwarp.mapping.insert_size import SCORE_UNITS
from bwarp.runtime.compiled_code import compiled

#: The likelihood of the best hit.
ONE = 1 << 40

#: Decibels by which a hit is less likely per match that it scores less.
MATCH_QUALITY = 4.9

#: A hit that scores this number of matches less has likelihood 0.
MOST_LESS = 20

#: The table has a likelihood per sixteenth of a match.
STEPS_A_MATCH = 16
_STEP = SCORE_UNITS // STEPS_A_MATCH

HIGHEST_QUALITY = 60


def likelihood_table(match_quality: float) -> np.ndarray:
    """Return the likelihoods of hits that score 0, 1/16, 2/16, ... matches less, int64."""
    less = np.arange(MOST_LESS * STEPS_A_MATCH) / STEPS_A_MATCH
    return np.round(ONE * 10.0 ** (-match_quality / 10 * less)).astype(np.int64)


def _most_beside(quality: int) -> int:
    """Return the maximum likelihood of all other hits for a hit to have this quality.

    The quality is 10 log10 of (1 + others) / others, rounded; 0 if others are at least as likely.
    """
    return min(int(ONE / (math.exp((quality - 0.499) / 4.343) - 1)), ONE - 1)


TABLE = likelihood_table(MATCH_QUALITY)
MOST_BESIDE = np.array([_most_beside(quality) for quality in range(HIGHEST_QUALITY, 0, -1)])


@compiled(inline="always")
def likelihood(less, match):
    """Return the likelihood of a hit or pair that scores `less` below the best, in `SCORE_UNITS`;
    both engines use it.
    """
    step = max(less, int64(0)) // (match * _STEP)
    return TABLE[step] if step < TABLE.size else int64(0)


@compiled(inline="always")
def mapping_quality(others):
    """Return the mapping quality of a hit, given the likelihood of all others together; both
    engines use it.
    """
    if others <= MOST_BESIDE[0]:
        return int64(HIGHEST_QUALITY)
    # Count the exceeded bounds by bisection.
    low, high = int64(0), int64(MOST_BESIDE.size)
    while low < high:
        middle = (low + high) >> 1
        if MOST_BESIDE[middle] < others:
            low = middle + 1
        else:
            high = middle
    return HIGHEST_QUALITY - low
