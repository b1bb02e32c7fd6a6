"""Integer likelihoods, and mapping qualities, against decibels."""

import math

import numpy as np
import pytest

from bwarp.mapping.insert_size import SCORE_UNITS
from bwarp.mapping.likelihoods import (
    MATCH_QUALITY,
    MOST_LESS,
    ONE,
    likelihood,
    mapping_quality,
)


@pytest.mark.parametrize("match", [1, 3])
def test_one_match_less_costs_its_decibels(match):
    for less in np.arange(-1, MOST_LESS + 2, 0.25):
        found = likelihood.py_func(int(less * match * SCORE_UNITS), match) / ONE
        expected = 10 ** (-MATCH_QUALITY * max(less, 0) / 10) if less < MOST_LESS else 0
        assert found == pytest.approx(expected, abs=1e-12)


def test_quality_is_the_share_of_the_others():
    qualities = [int(mapping_quality.py_func(int(ONE * x))) for x in np.logspace(-8, 1, 1000)]
    assert qualities == sorted(qualities, reverse=True)
    for x, quality in zip(np.logspace(-8, 1, 1000), qualities, strict=True):
        exact = min(10 * math.log10((1 + x) / x), 60) if x < 1 else 0
        assert abs(quality - exact) <= 0.51
    assert mapping_quality.py_func(0) == 60
    assert mapping_quality.py_func(ONE - 1) == 3
    assert mapping_quality.py_func(ONE) == 0
    # Any number of other hits.
    assert mapping_quality.py_func(ONE << 20) == 0
