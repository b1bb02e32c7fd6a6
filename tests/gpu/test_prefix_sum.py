"""Running sums on the GPU against NumPy's."""

import numpy as np
import pytest

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("count", [0, 1, 31, 2048, 2049, 10_000_000])
@pytest.mark.parametrize(("first", "stride"), [(0, 1), (3, 8)])
def test_exclusive_sum(count, first, stride):
    from bwarp.gpu.cuda import cuda
    from bwarp.gpu.sums_and_sorts import exclusive_sum

    values = np.random.default_rng(count).integers(0, 50, first + count * stride, np.uint32)
    summed = cuda.to_device(values)
    exclusive_sum(summed, first, stride)
    column = values[first::stride]
    expected = values.copy()
    expected[first::stride] = np.cumsum(column, dtype=np.uint32) - column
    assert np.array_equal(summed.copy_to_host(), expected)


def test_sums_up_to_the_highest_bit():
    from bwarp.gpu.cuda import cuda
    from bwarp.gpu.sums_and_sorts import exclusive_sum

    values = np.full(4097, 2**20 - 3, np.uint32)
    summed = cuda.to_device(values)
    exclusive_sum(summed)
    expected = np.arange(4097, dtype=np.uint64) * np.uint64(2**20 - 3)
    assert expected[-1] > 2**31
    assert np.array_equal(summed.copy_to_host(), expected)
