"""Rules that combine options of mapping."""

from argparse import Namespace

import pytest

from bwarp.options.mapping import counted_distance


@pytest.mark.parametrize("distance", [None, 0, 2500])
@pytest.mark.parametrize(("metrics", "tags"), [("m.txt", False), (None, True), (None, False)])
def test_only_metrics_and_tags_need_optical_duplicates(distance, metrics, tags):
    options = Namespace(
        optical_distance=distance, duplicate_metrics=metrics, duplicate_tags=tags
    )  # fmt: skip
    assert counted_distance(options) == (distance if metrics or tags else 0)
