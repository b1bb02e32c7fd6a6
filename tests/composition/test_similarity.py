"""Thresholds are exact."""

from fractions import Fraction

import pytest

from bwarp.composition.histogram import format_similarity, largest_distance, parse_similarity
from bwarp.errors import UsageError


@pytest.mark.parametrize("text", ["0.95", "0.9", "0.7", "1", "1/3", "2/3", "0.05", "1e-3", "0.999"])
def test_largest_distance_is_the_largest_that_is_a_hit(text):
    similarity = parse_similarity(text)
    for length in range(1, 300):
        distance = largest_distance(similarity, length)
        assert 1 - Fraction(distance, length) >= similarity
        assert 1 - Fraction(distance + 1, length) < similarity


def test_the_boundary_is_a_hit_despite_rounding():
    # 1 - 6 / 20 is 0.7 exactly, but not in binary: 1 - 0.7 is a little more than 6 / 20.
    assert largest_distance(Fraction("0.7"), 20) == 6
    assert largest_distance(Fraction("0.95"), 40) == 2
    assert largest_distance(Fraction("0.9"), 10) == 1
    assert int((1 - 0.9) * 10) == 0, "floats lose this hit"


@pytest.mark.parametrize("text", ["0", "-0.5", "1.01", "nan", "inf", "", "0,95", "95%", "1/0"])
def test_wrong_thresholds_are_refused(text):
    with pytest.raises(UsageError) as error:
        parse_similarity(text)
    assert str(error.value) == (
        f"similarity {text!r} is not a number above 0 and at most 1, such as 0.95 or 19/20"
    )


def test_similarities_are_truncated_not_rounded():
    assert format_similarity(0, 7) == "1.000000"
    assert format_similarity(1, 3) == "0.666666"
    assert format_similarity(2, 40) == "0.950000"
    assert format_similarity(5, 5) == "0.000000"
