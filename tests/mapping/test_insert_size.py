"""The distance of pairs from clear pairs alone."""

import numpy as np
import pytest
from mapping_oracle import places_of

from bwarp.mapping.insert_size import InsertSize, clear_distances, insert_size_of

CONTIG_STARTS = np.array([0, 5000, 5000, 30_000])
LENGTHS = np.full(2, 100)


def distance(first, second, most_pairs=1):
    return clear_distances(places_of([first, second]), LENGTHS, CONTIG_STARTS, most_pairs).tolist()


def test_a_clear_pair_whichever_end_is_first():
    left, right = [(100, 0, 200, 300)], [(100, 1, 450, 550)]
    assert distance(left, right) == distance(right, left) == [350]
    assert distance(left, right, 0) == []


def test_clipped_ends_count():
    places = places_of([[(90, 0, 210, 300)], [(80, 1, 450, 530)]])
    places.read_starts[:] = [10, 0]
    places.read_ends[:] = [100, 80]
    assert clear_distances(places, LENGTHS, CONTIG_STARTS, 1).tolist() == [350]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ([], [(100, 1, 450, 550)]),
        ([(100, 0, 200, 300), (81, 0, 900, 1000)], [(100, 1, 450, 550)]),
        ([(100, 0, 200, 300)], [(100, 0, 450, 550)]),
        ([(100, 1, 200, 300)], [(100, 0, 450, 550)]),
        ([(100, 0, 4800, 4900)], [(100, 1, 5050, 5150)]),
        ([(100, 0, 6000, 6100)], [(100, 1, 15_900, 16_000)]),
    ],
    ids=["no place", "another as good", "one strand", "backs", "two contigs", "too far"],
)
def test_pairs_that_say_nothing(first, second):
    assert distance(first, second) == []


def test_a_far_second_place_is_no_rival():
    assert distance([(100, 0, 200, 300), (80, 0, 900, 1000)], [(100, 1, 450, 550)]) == [350]


def test_mean_deviation_and_limits():
    rng = np.random.default_rng(1)
    sizes = np.round(rng.normal(400, 50, 20_000)).astype(np.int64)
    outliers = np.full(600, 9000)
    found = insert_size_of(rng.permutation(np.concatenate([sizes, outliers])))
    assert abs(found.mean - 400) < 2
    assert abs(found.deviation - 50) < 2
    assert 140 < found.lowest < 205
    assert 595 < found.highest < 660


def test_all_equal_and_too_few():
    assert insert_size_of(np.full(25, 300)) == InsertSize(300.0, 1.0, 296, 304)
    assert insert_size_of(np.full(24, 300)) == InsertSize(0.0, 0.0, 0, 0)
