"""Rules that combine options of mapping."""

from argparse import Namespace

import pytest

from bwarp.options.mapping import counted_distance


@pytest.mark.parametrize("distance", [None, 0, 2500])
def test_only_metrics_count_optical_duplicates(distance):
    with_metrics = Namespace(optical_distance=distance, duplicate_metrics="m.txt")
    assert counted_distance(with_metrics) is distance
    assert counted_distance(Namespace(optical_distance=distance, duplicate_metrics=None)) == 0
