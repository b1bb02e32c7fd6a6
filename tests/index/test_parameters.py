"""Ranges and defaults of the parameters of an index."""

import pytest

from bwarp.errors import UsageError
from bwarp.index.parameters import IndexParameters, choose_parameters


def test_defaults():
    assert choose_parameters(10**6) == IndexParameters(64, 4, 9)


@pytest.mark.parametrize("occ_rate", [*range(32, 1025, 32)])
def test_right_occ_rates(occ_rate):
    assert choose_parameters(100, occ_rate).occ_rate == occ_rate


@pytest.mark.parametrize("occ_rate", [-64, 0, 1, 16, 31, 33, 48, 1025, 1056, 2**40])
def test_wrong_occ_rates(occ_rate):
    with pytest.raises(UsageError) as error:
        choose_parameters(100, occ_rate)
    assert str(error.value) == f"occ_rate {occ_rate} is not a multiple of 32 from 32 to 1024"


@pytest.mark.parametrize("sa_rate", [-1, 0, 1025, 2**40])
def test_wrong_sa_rates(sa_rate):
    with pytest.raises(UsageError) as error:
        choose_parameters(100, sa_rate=sa_rate)
    assert str(error.value) == f"sa_rate {sa_rate} is not a whole number from 1 to 1024"


@pytest.mark.parametrize("prefix_length", [-1, 15, 100])
def test_wrong_prefix_lengths(prefix_length):
    with pytest.raises(UsageError) as error:
        choose_parameters(100, prefix_length=prefix_length)
    assert str(error.value) == (
        f"prefix_length {prefix_length} is not a whole number from 0 to 14, or auto"
    )


def test_given_values_are_kept():
    for sa_rate in (1, 1024):
        for prefix_length in range(15):
            chosen = choose_parameters(100, 96, sa_rate, prefix_length)
            assert chosen == IndexParameters(96, sa_rate, prefix_length)


def test_the_default_prefix_table_takes_about_two_bytes_a_base():
    lengths = [choose_parameters(int(n)).prefix_length for n in (1, 1e4, 1e6, 1e8, 1e9, 4e9)]
    assert lengths == [4, 5, 9, 12, 13, 13]
    for n in (10**4, 5 * 10**6, 3 * 10**8, 4 * 10**9):
        k = choose_parameters(n).prefix_length
        assert 8 * 4**k <= 2.2 * n
        assert k == 13 or 8 * 4 ** (k + 1) > 2.2 * n
