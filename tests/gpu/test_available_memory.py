"""Work that runs out of a GPU's memory can be tried again on less."""

import types

import pytest

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

import numpy as np
from numba import cuda

from bwarp.errors import GpuMemoryError
from bwarp.gpu import available_memory
from bwarp.gpu.available_memory import attempt, free_memory, require_memory

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


@pytest.mark.gpu
def test_a_gpu_that_was_full_is_free_again():
    total = cuda.current_context().get_memory_info().total

    def work():
        # No more than an eighth of it is ever held: others may be at work on this GPU.
        return [cuda.device_array(size, np.uint8) for size in (total // 8, 2 * total)]

    before = free_memory()
    assert attempt(work) is None
    assert free_memory() > 0.95 * before
