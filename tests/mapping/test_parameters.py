"""Scores scale with that of a match; unusable values are errors of one sentence."""

import pytest

from bwarp.errors import UsageError
from bwarp.mapping.parameters import MappingParameters, good_scores, mapping_parameters


def test_defaults():
    assert mapping_parameters() == MappingParameters()
    assert mapping_parameters(mode=None, mismatch=None, least_score=None) == MappingParameters()


def test_missing_scores_scale_with_the_match():
    found = mapping_parameters(match=2, mismatch=-3, least_score=50)
    assert (found.match, found.mismatch, found.gap_open, found.gap_extend) == (2, -3, 12, 2)
    assert (found.clip, found.least_score, found.least_mate_score) == (10, 50, 38)
    assert (found.rescue_margin, found.poor_score) == (34, 1.4)
    assert mapping_parameters(least_score=10).least_mate_score == 10


@pytest.mark.parametrize("match", [1, 2])
def test_a_score_is_good_above_that_of_a_hit_without_seeds(match):
    good = good_scores(1000, mapping_parameters(match=match))
    for length in (60, 100, 150, 250, 1000):
        # A mismatch in each 20-mer of the second round.
        hidden = match * (length - 5 * (length // 20))
        assert good[length] == max(hidden + 1, 0.7 * match * length)
    # For short reads, hits with one mismatch fewer are also searched.
    assert good[50] == match * (50 - 5 * 2 + 5) + 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"match": 0}, "match is 0: use a whole number from 1 to 100"),
        ({"match": 101}, "match is 101: use a whole number from 1 to 100"),
        ({"mismatch": 4}, "mismatch is 4: the score of a mismatch must be from -100 to -1"),
        ({"gap_open": -1}, "gap-open is -1: use a whole number from 0 to 100"),
        ({"gap_extend": 0}, "gap-extend is 0: use a whole number from 1 to 100"),
        ({"match": 30}, "gap-open is 180: use a whole number from 0 to 100"),
        ({"clip": 101}, "clip is 101: use a whole number from 0 to 100"),
        ({"least_score": 0}, "min-score is 0: use a whole number from 1 to 1000000"),
        (
            {"insert_size": (400.0, 0.0)},
            "insert size 400,0: mean and standard deviation must be from 1 to 100,000",
        ),
    ],
)
def test_refusals(given, message):
    with pytest.raises(UsageError) as error:
        mapping_parameters(**given)
    assert str(error.value) == message
