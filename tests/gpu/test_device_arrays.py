"""Zeros and single numbers on a GPU."""

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.bam.templates import Templates, empty_templates
from bwarp.gpu.cuda import cuda
from bwarp.gpu.device_arrays import dtypes_of, number_at, zeros

TYPES = (np.uint8, np.int32, np.uint32, np.int64, np.uint64)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("size", [0, 1, 3, 1000, 1 << 20])
def test_zeros_in_reused_memory(size, dtype):
    # Freed memory is used again.
    cuda.to_device(np.full(size + 1, 113, dtype))
    array = zeros(np.int64(size), dtype)
    assert (array.size, array.dtype) == (size, dtype)
    assert not array.copy_to_host().any()


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", TYPES)
def test_a_number_of_an_array_and_of_a_part(dtype):
    numbers = np.arange(200, dtype=dtype)
    array = cuda.to_device(numbers)
    assert [number_at(array, index) for index in (0, 7, 199)] == [0, 7, 199]
    assert number_at(array[50:100], 3) == 53


@pytest.mark.gpu
def test_the_largest_numbers():
    assert number_at(cuda.to_device(np.array([1, 2**64 - 1], np.uint64)), 1) == 2**64 - 1
    assert number_at(cuda.to_device(np.array([-(2**63)])), 0) == -(2**63)


def test_types_of_columns_that_are_written_as_text():
    expected = [(name, column.dtype) for name, column in empty_templates(0)._asdict().items()]
    assert dtypes_of(Templates) == expected
