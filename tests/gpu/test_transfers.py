"""Arrays are copied to the GPU and back unchanged."""

import numpy as np
import pytest

from bwarp.gpu import transfers
from bwarp.gpu.memory_pool import device_array, work_space
from bwarp.gpu.transfers import SLOT, into_host, to_gpu, to_host
from tests.helpers.gpu.pretended_device import pretend_gpu


def check_there_and_back(sizes, threads):
    rng = np.random.default_rng(sum(sizes))
    types = (np.int64, np.uint8, np.int32)
    arrays = [rng.integers(0, 100, size).astype(types[i % 3]) for i, size in enumerate(sizes)]
    on_gpu = to_gpu(arrays, threads)
    for array, copy, back in zip(arrays, on_gpu, to_host(on_gpu, threads), strict=True):
        np.testing.assert_array_equal(copy.copy_to_host(), array)
        np.testing.assert_array_equal(back, array)
        into = np.zeros(array.size + 2, array.dtype)
        into_host(into[1:-1], copy, threads)
        np.testing.assert_array_equal(into, [0, *array, 0])
        assert copy.dtype == back.dtype == array.dtype


@pytest.mark.parametrize("threads", [1, 3, 16])
@pytest.mark.parametrize("sizes", [[], [0], [5], [3, 0, 9], [40, 1000, 64, 65], [0, 5000]])
def test_arrays_arrive(monkeypatch, sizes, threads):
    pretend_gpu(monkeypatch, [])
    for name, size in (("SLOT", 512), ("LEAST_A_THREAD", 256)):
        monkeypatch.setattr(transfers, name, size)
    check_there_and_back(sizes, threads)


def check_neighbours():
    numbers = [np.arange(size, dtype=dtype) for size, dtype in ((70, np.int32), (9, np.uint8))]
    with work_space():
        (first, second), (third,) = to_gpu(numbers), to_gpu(numbers[:1])
        fresh = [device_array(2, np.int64) for _ in range(3)]
        copied = [fresh[0], first, second, third, second, fresh[2], fresh[1], fresh[2]]
        got = to_host(copied)
        for array, back in zip(copied, got, strict=True):
            np.testing.assert_array_equal(back, array.copy_to_host())
    assert got[1].tolist() == list(range(70))
    assert got[2].tolist() == got[4].tolist() == list(range(9))


def test_arrays_side_by_side_and_others(monkeypatch):
    pretend_gpu(monkeypatch, [])
    check_neighbours()


@pytest.mark.gpu
def test_arrays_side_by_side_and_others_on_a_gpu():
    check_neighbours()


@pytest.mark.gpu
@pytest.mark.parametrize("threads", [1, 2, 16])
@pytest.mark.parametrize("sizes", [[], [0], [5], [3, 0, 9], [SLOT, 9], [9, 21 * SLOT + 7, 0]])
def test_arrays_arrive_on_a_gpu(sizes, threads):
    check_there_and_back(sizes, threads)
