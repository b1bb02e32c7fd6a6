"""Work that runs out of a GPU's memory can be tried again on less."""

import types

import pytest

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

import numpy as np
from numba import cuda

from bwarp.errors import GpuMemoryError
from bwarp.gpu import available_memory
from bwarp.gpu.available_memory import Pieces, attempt, free_memory, require_memory

CudaAPIError = type("CudaAPIError", (Exception,), {})


@pytest.fixture
def gpu(monkeypatch):
    """A GPU with 5 GB free, which notes what is given back."""
    given_back = []
    context = types.SimpleNamespace(
        memory_manager=types.SimpleNamespace(
            deallocations=types.SimpleNamespace(clear=lambda: given_back.append("late"))
        ),
        get_memory_info=lambda: types.SimpleNamespace(free=5_000_000_000),
    )
    monkeypatch.setattr(cuda, "current_context", lambda: context)
    monkeypatch.setattr(
        available_memory.workspace, "give_back", lambda: given_back.append("work space")
    )
    return given_back


def test_what_work_returns_is_handed_on(gpu):
    assert attempt(lambda: 7) == 7
    assert gpu == []


def test_memory_comes_back_where_it_was_not_enough(gpu):
    def work():
        raise CudaAPIError("Call to cuMemAllocAsync results in CUDA_ERROR_OUT_OF_MEMORY")

    assert attempt(work) is None
    assert gpu == ["work space", "late"]


@pytest.mark.parametrize(
    "error", [GpuMemoryError("a plan takes 9 GB"), CudaAPIError("CUDA_ERROR_LAUNCH_FAILED")]
)
def test_other_errors_are_not_for_trying_again(gpu, error):
    def work():
        raise error

    with pytest.raises(type(error), match=str(error)):
        attempt(work)


def test_too_little_memory_is_refused_with_both_numbers(gpu):
    assert free_memory() == 5_000_000_000
    require_memory(5_000_000_000, "sorting")
    message = "sorting takes 5.1 GB of GPU memory and 5.0 GB are free: use --backend cpu"
    with pytest.raises(GpuMemoryError, match=message):
        require_memory(5_100_000_000, "sorting")


NO_ROOM = GpuMemoryError("no room for one")


def work_of_at_most(room):
    """Work that takes more memory than there is for more than so many items."""

    def work(first, last):
        tried.append((first, last))
        if last - first > room:
            raise CudaAPIError("Call to cuMemAllocAsync results in CUDA_ERROR_OUT_OF_MEMORY")
        return first, last

    tried = []
    return work, tried


def test_what_fits_is_done_at_once(gpu):
    work, _ = work_of_at_most(10)
    pieces = Pieces(100, NO_ROOM)
    assert pieces.each(work, 10) == [(0, 10)]
    assert pieces.each(work, 0) == [(0, 0)]
    assert (pieces.at_once, pieces.halvings) == (100, 0)
    assert Pieces(4, NO_ROOM).each(work, 9) == [(0, 4), (4, 8), (8, 9)]


def test_pieces_are_halved_and_stay_small(gpu):
    work, tried = work_of_at_most(3)
    pieces = Pieces(100, NO_ROOM)
    assert pieces.each(work, 8) == [(0, 2), (2, 4), (4, 6), (6, 8)]
    assert tried[:3] == [(0, 8), (0, 4), (0, 2)]
    assert (pieces.at_once, pieces.halvings) == (2, 2)
    tried.clear()
    assert pieces.each(work, 3) == tried == [(0, 2), (2, 3)]


@pytest.mark.parametrize("room", [2, 3, 4, 5])
@pytest.mark.parametrize("at_once", [1, 2, 5, 100])
def test_pairs_are_not_torn(gpu, room, at_once):
    work, _ = work_of_at_most(room)
    found = Pieces(at_once, NO_ROOM).each(work, 14, step=2)
    assert all(first % 2 == 0 and 0 < last - first <= room for first, last in found)
    assert [first for first, _ in found[1:]] + [14] == [last for _, last in found]


@pytest.mark.parametrize("step", [1, 2])
def test_no_room_for_the_smallest_piece(gpu, step):
    work, tried = work_of_at_most(step - 1)
    with pytest.raises(GpuMemoryError, match="no room for one: use --backend cpu"):
        Pieces(100, NO_ROOM).each(work, 8, step)
    assert tried[-1] == (0, step)


@pytest.mark.gpu
def test_a_gpu_that_was_full_is_free_again():
    total = cuda.current_context().get_memory_info().total

    def work():
        # No more than an eighth of it is ever held: others may be at work on this GPU.
        return [cuda.device_array(size, np.uint8) for size in (total // 8, 2 * total)]

    before = free_memory()
    assert attempt(work) is None
    assert free_memory() > 0.95 * before
