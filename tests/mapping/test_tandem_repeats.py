"""The shortest period of a read, by its bits and base by base."""

import numpy as np
import pytest

from bwarp.mapping.tandem_repeats import (
    LONGEST_PERIOD,
    MOST_DIFFERENCES,
    _period_of,
)


def period_of(read) -> int:
    for period in range(1, min(LONGEST_PERIOD, len(read) // 2) + 1):
        if np.count_nonzero(read[:-period] != read[period:]) <= MOST_DIFFERENCES:
            return period
    return 0


@pytest.mark.parametrize("length", [0, 1, 2, 5, 30, 63, 64, 65, 80, 151])
def test_periods(length):
    generator = np.random.default_rng(length)
    found = set()
    for behind in [0, 3, 100] * 60:
        period = generator.integers(1, LONGEST_PERIOD + 3)
        read = np.resize(generator.integers(0, 5, period), length).astype(np.uint8)
        differing = generator.random(length) < generator.choice([0, 0.02, 0.1])
        read[differing] = generator.integers(0, 5, np.count_nonzero(differing))
        codes = np.concatenate(
            [generator.integers(0, 5, 7), read, generator.integers(0, 5, behind)]
        )
        found.add(_period_of(codes.astype(np.uint8), 7, length))
        assert _period_of(codes.astype(np.uint8), 7, length) == period_of(read)
    assert len(found) > min(length // 6, LONGEST_PERIOD // 2)
