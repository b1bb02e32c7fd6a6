"""The insert size, from unambiguous pairs only."""

import math

import numpy as np
import pytest

from bwarp.mapping.insert_size import (
    SCORE_UNITS,
    InsertSize,
    given_insert_size,
    insert_size_of,
    insert_size_scores,
    mate_lies,
    unambiguous_insert_sizes,
)
from bwarp.mapping.parameters import MappingParameters
from bwarp.options.common import ORIENTATIONS
from tests.helpers.oracles.mapping_oracle import hits_of_rows

CONTIG_STARTS = np.array([0, 5000, 5000, 30_000])
LENGTHS = np.full(2, 100)


def insert_sizes_of(first, second, most_pairs=1):
    """Return (insert size, orientation) of a pair, if it is unambiguous."""
    found = unambiguous_insert_sizes(
        hits_of_rows([first, second]), LENGTHS, CONTIG_STARTS, most_pairs
    )
    return [(size, ORIENTATIONS[number]) for size, number in zip(*found, strict=True)]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ((200, 0), (450, 1), (350, "FR")),
        ((450, 1), (200, 0), (350, "FR")),
        ((200, 0), (150, 1), (50, "FR")),
        ((200, 1), (450, 0), (150, "RF")),
        ((450, 0), (200, 1), (150, "RF")),
        ((200, 0), (450, 0), (250, "FF")),
        ((450, 1), (200, 1), (250, "FF")),
        ((450, 0), (200, 0), (250, "RR")),
        ((200, 1), (450, 1), (250, "RR")),
    ],
)
def test_a_clear_pair_in_every_orientation(first, second, expected):
    rows = [[(100, strand, start, start + 100)] for start, strand in (first, second)]
    assert insert_sizes_of(*rows) == [expected]
    assert insert_sizes_of(*rows, 0) == []
    # The search for mates and the measurement of pairs agree.
    number = ORIENTATIONS.index(expected[1])
    five_primes = [start + 100 if strand else start for start, strand in (first, second)]
    for end, strand in enumerate((first[1], second[1])):
        other, side = mate_lies(number, end, strand)
        assert other == (first, second)[1 - end][1]
        assert five_primes[end] + side * expected[0] == five_primes[1 - end]


def test_clipped_ends_count():
    hits = hits_of_rows([[(90, 0, 210, 300)], [(80, 1, 450, 530)]])
    hits.read_starts[:] = [10, 0]
    hits.read_ends[:] = [100, 80]
    assert unambiguous_insert_sizes(hits, LENGTHS, CONTIG_STARTS, 1)[0].tolist() == [350]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([], [(100, 1, 450, 550)]),
        ([(100, 0, 200, 300), (81, 0, 900, 1000)], [(100, 1, 450, 550)]),
        ([(100, 0, 4800, 4900)], [(100, 1, 5050, 5150)]),
        ([(100, 0, 6000, 6100)], [(100, 1, 15_900, 16_000)]),
    ],
    ids=["no hit", "another as good", "two contigs", "too far"],
)
def test_pairs_that_are_ignored(first, second):
    assert insert_sizes_of(first, second) == []


def test_a_far_second_hit_is_no_rival():
    assert insert_sizes_of([(100, 0, 200, 300), (80, 0, 900, 1000)], [(100, 1, 450, 550)]) == [
        (350, "FR")
    ]


def test_mean_deviation_and_limits():
    rng = np.random.default_rng(1)
    sizes = np.round(rng.normal(400, 50, 20_000)).astype(np.int64)
    outliers = np.full(600, 9000)
    insert_sizes = rng.permutation(np.concatenate([sizes, outliers]))
    # A tenth have another orientation, and half the distance.
    others = rng.random(insert_sizes.size) < 0.1
    found = insert_size_of(
        np.where(others, insert_sizes // 2, insert_sizes), np.where(others, 1, 2)
    )
    assert abs(found.mean - 400) < 2
    assert abs(found.standard_deviation - 50) < 2
    assert 140 < found.lowest < 205
    assert 595 < found.highest < 660
    assert found.orientation == 2
    given = insert_size_of(
        np.where(others, insert_sizes // 2, insert_sizes), np.where(others, 1, 2), "RF"
    )
    assert abs(given.mean - 200) < 5
    assert given.orientation == 1


def test_all_equal_and_too_few():
    same = np.zeros(25, np.int64)
    assert insert_size_of(np.full(25, 300), same) == InsertSize(300.0, 1.0, 296, 304)
    assert insert_size_of(np.full(24, 300), same[1:]) == InsertSize(0.0, 0.0, 0, 0)
    assert insert_size_of(np.full(25, 300), same, "RR") == InsertSize(0.0, 0.0, 0, 0, 3)
    nothing = np.empty(0, np.int64)
    assert insert_size_of(nothing, nothing) == InsertSize(0.0, 0.0, 0, 0)


def test_given():
    def given(*insert_size, orientation=None):
        return given_insert_size(
            MappingParameters(insert_size=insert_size, orientation=orientation)
        )

    assert given(350.0, 35.0, orientation="RF") == InsertSize(350.0, 35.0, 210, 490, 1)
    assert given(50, 35) == InsertSize(50.0, 35.0, 1, 190, 0)
    assert given_insert_size(MappingParameters(orientation="FF")) is None


def test_scores_of_distances():
    insert = InsertSize(300.5, 20.0, 250, 360)
    scores = insert_size_scores(insert, 2)
    assert scores.size == 111
    for size in (250, 290, 300, 360):
        likely = math.log(2 * math.erfc(abs(size - 300.5) / 20 / math.sqrt(2)), 4)
        assert abs(scores[size - 250] - 2 * SCORE_UNITS * likely) <= 0.5
    assert scores[50] == scores[51] == scores.max()
    assert insert_size_scores(InsertSize(300.0, 1.0, 200, 400), 1)[0] < -100 * SCORE_UNITS
