"""Arrays come to the GPU and back as they are."""

import numpy as np
import pytest
from emulated_cuda import pretend_gpu

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp import transfers_cuda
from bwarp.transfers_cuda import SLOT, to_card, to_host


def check_there_and_back(sizes, threads):
    rng = np.random.default_rng(sum(sizes))
    types = (np.int64, np.uint8, np.int32)
    arrays = [rng.integers(0, 100, size).astype(types[i % 3]) for i, size in enumerate(sizes)]
    on_card = to_card(arrays, threads)
    for array, copy, back in zip(arrays, on_card, to_host(on_card, threads), strict=True):
        np.testing.assert_array_equal(copy.copy_to_host(), array)
        np.testing.assert_array_equal(back, array)
        assert copy.dtype == back.dtype == array.dtype


@pytest.mark.parametrize("threads", [1, 3, 16])
@pytest.mark.parametrize("sizes", [[], [0], [5], [3, 0, 9], [40, 1000, 64, 65], [0, 5000]])
def test_arrays_arrive(monkeypatch, sizes, threads):
    pretend_gpu(monkeypatch, [])
    for name, size in (("SLOT", 512), ("LEAST_TO_HOST", 256)):
        monkeypatch.setattr(transfers_cuda, name, size)
    check_there_and_back(sizes, threads)


@pytest.mark.gpu
@pytest.mark.parametrize("threads", [1, 2, 16])
@pytest.mark.parametrize("sizes", [[], [0], [5], [3, 0, 9], [SLOT, 9], [9, 21 * SLOT + 7, 0]])
def test_arrays_arrive_on_a_gpu(sizes, threads):
    check_there_and_back(sizes, threads)
