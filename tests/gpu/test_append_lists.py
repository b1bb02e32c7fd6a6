"""Elements that many threads append to a list get distinct, consecutive places."""

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.gpu.cuda import cuda
from bwarp.gpu.launch import WARP
from bwarp.gpu.sums_and_sorts import slot_in_list
from tests.helpers.gpu.emulated_cuda import launch


@cuda.jit
def take_slots(is_wanted, counter, slots):
    i = cuda.grid(1)
    slot = slot_in_list(counter, is_wanted[i])
    if is_wanted[i]:
        slots[i] = slot


@pytest.mark.parametrize("share", [0, 0.05, 0.5, 1])
@pytest.mark.parametrize(
    ("dtype", "taken"), [(np.int32, 0), (np.int32, 7), (np.uint32, 7), (np.uint32, 2**31 - 20)]
)
def test_lanes_with_an_element_get_the_next_slots(dtype, taken, share):
    is_wanted = np.random.default_rng(4).random(256) < share
    counter = np.array([taken], dtype)
    slots = np.full(256, -1, np.int64)
    launch(take_slots, 2, 128, is_wanted, counter, slots)
    n = np.count_nonzero(is_wanted)
    assert counter[0] == taken + n
    assert (slots[~is_wanted] == -1).all()
    assert sorted(slots[is_wanted].tolist()) == list(range(taken, taken + n))
    # Warps come in any order; the lanes within a warp are in order.
    for of_warp, here in zip(slots.reshape(-1, WARP), is_wanted.reshape(-1, WARP), strict=True):
        assert (np.diff(of_warp[here]) == 1).all()
