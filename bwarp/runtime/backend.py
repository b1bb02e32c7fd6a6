"""Choose the engine that runs a step; the only module that checks for a GPU."""

import os
from collections.abc import Callable
from typing import TypeVar

from bwarp.errors import GpuMemoryError, UsageError
from bwarp.options.common import BACKEND

#: Device files of the driver: on Linux, in the Windows Subsystem for Linux, on Jetson boards.
_CONTROLS = ("nvidiactl", "dxg", "nvhost-gpu", "nvgpu")

Result = TypeVar("Result")

#: Libraries that numba-cuda needs to compile; it can be installed without them.
_COMPILER = ("nvvm", "nvrtc")

_NO_GPU = "no NVIDIA driver or GPU is visible (see nvidia-smi and CUDA_VISIBLE_DEVICES)"
_INSTALL = "type pip install 'bwarp[gpu-cu13]', or gpu-cu12 for an older driver"


def choose_backend(requested: str) -> str:
    """Return the engine to use, ``"cpu"`` or ``"cuda"``, for a requested backend.

    Parameters
    ----------
    requested : str
        ``"auto"`` uses a GPU if possible, ``"cuda"`` requires one.
    """
    BACKEND.check(requested)
    # Importing CUDA takes a quarter of a second.
    if requested == "cpu" or (requested == "auto" and not may_have_gpu()):
        return "cpu"
    problem = gpu_problem() or _starting_problem()
    if problem is None:
        return "cuda"
    if requested == "cuda":
        raise UsageError(f"cannot use backend cuda: {problem}; alternatively, use --backend cpu")
    return "cpu"


def may_have_gpu() -> bool:
    """Return whether a driver is loaded: a quick check, which does not prove that it works."""
    simulated = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
    return simulated or any(os.path.exists(f"/dev/{name}") for name in _CONTROLS)


def gpu_problem() -> str | None:
    """Return the reason why no GPU can be used, as half a sentence, or None."""
    if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1":
        return None
    try:
        import numba_cuda  # noqa: F401

        from bwarp.gpu.cuda import cuda
    except ImportError:
        # Installing it would not help without a GPU.
        return f"numba-cuda is not installed: {_INSTALL}" if may_have_gpu() else _NO_GPU
    if not _has_driver():
        return _NO_GPU
    if not _has_compiler():
        return f"the CUDA compiler is not installed: {_INSTALL}"
    try:
        # The first visible GPU is the one in use; this query needs no context.
        capability = cuda.gpus[0].compute_capability
    except Exception as error:  # noqa: BLE001
        return f"the GPU does not respond ({error})"
    if capability < (7, 5):
        return (
            f"the GPU has compute capability {capability[0]}.{capability[1]}, but 7.5 is required"
        )
    return None


def gpu_capability() -> tuple[int, int] | None:
    """Return the compute capability of the GPU in use, or None if it is simulated."""
    if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1":
        return None
    from bwarp.gpu.cuda import cuda

    return tuple(cuda.get_current_device().compute_capability)


def _starting_problem() -> str | None:
    """Initialise the GPU; return the reason for a failure, or None."""
    if os.environ.get("NUMBA_ENABLE_CUDASIM") == "1":
        return None
    from bwarp.gpu.cuda import config, cuda
    from bwarp.gpu.device import sleep_while_waiting
    from bwarp.gpu.launch import load_in_turn
    from bwarp.gpu.memory_pool import use_pool

    use_pool()
    load_in_turn()
    # Small inputs launch small grids; users need no warning about that.
    config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
    try:
        sleep_while_waiting()
        cuda.current_context()
    except Exception as error:  # noqa: BLE001
        return f"the GPU does not respond ({error})"
    return None


def or_on_cpu(
    requested: str, backend: str, work: Callable[[str], Result], say: Callable[[str], None]
) -> tuple[str, Result]:
    """Return the engine that did some work, and the result of ``work(backend)``.

    If the GPU's memory is too small and `requested` is ``"auto"``, print a message and use the CPU.
    """
    try:
        return backend, work(backend)
    except Exception as error:
        if requested != "auto" or not is_gpu_memory_error(error):
            raise
        reason = error.reason if isinstance(error, GpuMemoryError) else "the GPU is out of memory"
    say(f"{reason}: continuing on the CPU")
    return "cpu", work("cpu")


def _has_driver() -> bool:
    """Return whether CUDA can be initialised; cuda.is_available() also requires a compiler."""
    from bwarp.gpu.cuda import CudaSupportError, driver_calls

    try:
        return driver_calls.is_available
    except CudaSupportError:
        return False


def _has_compiler() -> bool:
    """Return whether the compiler libraries exist, from wheels or a toolkit."""
    from cuda.pathfinder import DynamicLibNotFoundError, load_nvidia_dynamic_lib

    try:
        for library in _COMPILER:
            load_nvidia_dynamic_lib(library)
    except DynamicLibNotFoundError:
        return False
    return True


def is_gpu_memory_error(error: Exception) -> bool:
    """Return whether an error means that the GPU is out of memory."""
    if isinstance(error, GpuMemoryError):
        return True
    # The error class of numba-cuda can be imported only if numba-cuda is installed.
    return type(error).__name__ == "CudaAPIError" and "OUT_OF_MEMORY" in str(error)
