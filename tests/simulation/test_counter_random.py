"""The random stream is SplitMix64, and all ways of drawing from it agree."""

import numpy as np
import pytest

from bwarp.simulation.counter_random import (
    bits_at,
    draws,
    index_draws,
    stream_key,
    threshold,
    unit_draws,
)

#: The first outputs of the generator's published reference code for the seed 1234567.
SPLITMIX64 = [
    6457827717110365317,
    3203168211198807973,
    9817491932198370423,
    4593380528125082431,
    16408922859458223821,
]


def test_draws_are_splitmix64():
    assert draws(np.uint64(1234567), 5).tolist() == SPLITMIX64
    assert [bits_at(np.uint64(1234567), np.uint64(n)) for n in range(5)] == SPLITMIX64


def test_unit_and_index_draws_follow_from_the_bits():
    key = np.uint64(1234567)
    assert unit_draws(key, 5).tolist() == [(x >> 11) / 2**53 for x in SPLITMIX64]
    assert index_draws(key, 5, 10).tolist() == [x * 10 >> 64 for x in SPLITMIX64]
    assert draws(key, 0).size == 0


def test_stream_keys_differ_by_seed_and_by_every_step_of_the_path():
    keys = {int(stream_key(seed, *path)) for seed in (0, 1, 2**63) for path in [(), (0,), (1, 0)]}
    assert len(keys) == 9
    assert stream_key(5, 1, 2) == stream_key(stream_key(5, 1), 2)


@pytest.mark.parametrize(
    ("rate", "bound"), [(0, 0), (1, 2**32), (0.5, 2**31), (2.0**-32, 1), (1e-12, 0)]
)
def test_threshold_is_the_rate_of_32_bits(rate, bound):
    assert int(threshold(rate)) == bound
    assert threshold(rate).dtype == np.uint64
