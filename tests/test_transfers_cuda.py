"""Large arrays come to the GPU as they are."""

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.transfers_cuda import PIECE, to_card


@pytest.mark.gpu
@pytest.mark.parametrize("n_bytes", [0, 8, PIECE, 5 * PIECE + 8])
@pytest.mark.parametrize("threads", [1, 2, 16])
def test_arrays_arrive(n_bytes, threads):
    numbers = np.random.default_rng(n_bytes).integers(0, 2**62, n_bytes // 8)
    np.testing.assert_array_equal(to_card(numbers, threads).copy_to_host(), numbers)
