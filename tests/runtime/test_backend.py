"""One function chooses the engine, and explains why a GPU cannot be used."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from bwarp.errors import GpuMemoryError, UsageError
from bwarp.runtime import backend
from bwarp.runtime.backend import choose_backend, gpu_problem, is_gpu_memory_error, or_on_cpu

NUMBA_CUDA = "needs numba-cuda: pip install -e '.[gpu-cu13]'"
NO_DRIVER = "no NVIDIA driver or GPU is visible (see nvidia-smi and CUDA_VISIBLE_DEVICES)"


def test_cpu_is_chosen_without_checking_for_a_gpu(monkeypatch):
    monkeypatch.setattr(backend, "gpu_problem", lambda: pytest.fail("asked for a GPU"))
    assert choose_backend("cpu") == "cpu"


def test_cpu_is_chosen_at_once_without_a_driver(monkeypatch):
    monkeypatch.setattr(backend, "may_have_gpu", lambda: False)
    monkeypatch.setattr(backend, "gpu_problem", lambda: pytest.fail("asked for a GPU"))
    assert choose_backend("auto") == "cpu"


@pytest.mark.parametrize("requested", ["auto", "cuda"])
def test_a_gpu_that_can_be_used_is_taken(monkeypatch, requested):
    monkeypatch.setattr(backend, "may_have_gpu", lambda: True)
    monkeypatch.setattr(backend, "gpu_problem", lambda: None)
    monkeypatch.setattr(backend, "_starting_problem", lambda: None)
    assert choose_backend(requested) == "cuda"


def test_a_gpu_that_cannot_be_started_is_not_used(monkeypatch):
    monkeypatch.setattr(backend, "may_have_gpu", lambda: True)
    monkeypatch.setattr(backend, "gpu_problem", lambda: None)
    monkeypatch.setattr(backend, "_starting_problem", lambda: "the GPU does not respond (busy)")
    assert choose_backend("auto") == "cpu"
    with pytest.raises(UsageError, match=r"backend cuda: the GPU does not respond \(busy\)"):
        choose_backend("cuda")


def test_checking_for_a_gpu_changes_nothing(monkeypatch):
    """The memory pool is set when a GPU is used, not when its existence is checked."""
    memory_pool_cuda = pytest.importorskip("bwarp.gpu.memory_pool")
    monkeypatch.setattr(memory_pool_cuda, "use_pool", lambda: pytest.fail("chose a pool"))
    gpu_problem()


def too_small(engine):
    if engine == "cuda":
        raise GpuMemoryError("sorting requires 9 GB of GPU memory, but only 8 GB are free")
    return "done"


def out_of_memory(engine):
    if engine == "cuda":
        raise type("CudaAPIError", (Exception,), {})("CUDA_ERROR_OUT_OF_MEMORY")
    return "done"


@pytest.mark.parametrize(
    ("work", "reason"),
    [
        (too_small, "sorting requires 9 GB of GPU memory, but only 8 GB are free"),
        (out_of_memory, "the GPU is out of memory"),
    ],
)
def test_a_gpu_that_is_too_small_leaves_the_work_to_the_cpu(work, reason):
    said = []
    assert or_on_cpu("auto", "cuda", work, said.append) == ("cpu", "done")
    assert said == [f"{reason}: continuing on the CPU"]


def test_a_required_gpu_is_not_replaced():
    with pytest.raises(GpuMemoryError, match="use --backend cpu, or a GPU with more memory"):
        or_on_cpu("cuda", "cuda", too_small, pytest.fail)


def test_other_errors_of_the_gpu_are_not_hidden():
    def broken(engine):
        raise ValueError(engine)

    with pytest.raises(ValueError, match="cuda"):
        or_on_cpu("auto", "cuda", broken, pytest.fail)
    assert or_on_cpu("auto", "cuda", str, pytest.fail) == ("cuda", "cuda")


def test_without_a_gpu(monkeypatch):
    monkeypatch.setattr(backend, "gpu_problem", lambda: "there is none")
    assert choose_backend("auto") == "cpu"
    with pytest.raises(UsageError) as caught:
        choose_backend("cuda")
    assert str(caught.value) == (
        "cannot use backend cuda: there is none; alternatively, use --backend cpu"
    )


def test_a_backend_that_does_not_exist():
    with pytest.raises(UsageError) as caught:
        choose_backend("gpu")
    assert str(caught.value) == "backend 'gpu' is not one of auto, cpu, cuda"


def test_without_numba_cuda_the_way_to_install_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba_cuda", None)  # import fails
    monkeypatch.setattr(backend, "may_have_gpu", lambda: True)
    assert gpu_problem() == (
        "numba-cuda is not installed: type pip install 'bwarp[gpu-cu13]', "
        "or gpu-cu12 for an older driver"
    )


def test_where_there_is_no_gpu_nothing_is_to_be_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "numba_cuda", None)
    monkeypatch.setattr(backend, "may_have_gpu", lambda: False)
    assert gpu_problem() == NO_DRIVER


def test_hidden_gpus_are_not_used():
    pytest.importorskip("numba_cuda", reason=NUMBA_CUDA)
    process = subprocess.run(
        [
            sys.executable,
            "-c",
            "from bwarp.runtime.backend import gpu_problem; print(gpu_problem())",
        ],
        env=os.environ | {"CUDA_VISIBLE_DEVICES": "", "NUMBA_ENABLE_CUDASIM": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout == f"{NO_DRIVER}\n"


def test_numba_cuda_without_a_compiler(monkeypatch):
    pathfinder = pytest.importorskip("cuda.pathfinder", reason=NUMBA_CUDA)
    asked = []

    def load(library):
        asked.append(library)
        if library == "nvrtc":
            raise pathfinder.DynamicLibNotFoundError("libnvrtc.so is not here")

    driver = SimpleNamespace(is_available=False)
    monkeypatch.setattr("bwarp.gpu.cuda.driver_calls", driver)
    monkeypatch.setattr(pathfinder, "load_nvidia_dynamic_lib", load)
    assert gpu_problem() == NO_DRIVER
    assert asked == []
    driver.is_available = True
    assert gpu_problem() == (
        "the CUDA compiler is not installed: type pip install 'bwarp[gpu-cu13]', "
        "or gpu-cu12 for an older driver"
    )
    assert asked == ["nvvm", "nvrtc"]


def test_a_driver_that_does_not_start(monkeypatch):
    pytest.importorskip("numba_cuda", reason=NUMBA_CUDA)
    from bwarp.gpu.cuda import CudaSupportError

    class Driver:
        @property
        def is_available(self):
            raise CudaSupportError("Error at driver init: system not yet initialized (802)")

    monkeypatch.setattr("bwarp.gpu.cuda.driver_calls", Driver())
    assert gpu_problem() == NO_DRIVER


@pytest.mark.gpu
def test_the_gpu_of_this_machine_is_taken():
    assert gpu_problem() is None
    assert choose_backend("auto") == "cuda"


def test_errors_that_are_about_the_memory_of_the_gpu():
    driver_error = type("CudaAPIError", (Exception,), {})
    assert is_gpu_memory_error(driver_error("[2] Call to cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY"))
    assert is_gpu_memory_error(GpuMemoryError("sorting takes 9 GB of GPU memory"))
    assert not is_gpu_memory_error(driver_error("[1] CUDA_ERROR_INVALID_VALUE"))
    assert not is_gpu_memory_error(UsageError("CUDA_ERROR_OUT_OF_MEMORY"))


def test_whether_a_driver_is_loaded(monkeypatch):
    there = set()
    monkeypatch.setattr(backend.os.path, "exists", there.__contains__)
    assert not backend.may_have_gpu()
    for device in ("/dev/nvidiactl", "/dev/dxg", "/dev/nvhost-gpu", "/dev/nvgpu"):
        there.add(device)
        assert backend.may_have_gpu()
        there.clear()
