"""Launch sizes, storage and loading of compiled kernels, and fast calls of the CUDA driver."""

import ctypes
import functools
import pickle
import threading
from collections.abc import Callable
from contextlib import suppress

from bwarp.gpu.cuda import CompiledKernel, CUDACodeLibrary, CUDADispatcher, cuda, dumps, version
from bwarp.gpu.device import BLOCKING_SYNC
from bwarp.runtime.compiled_code import KeptCode

#: Default number of threads per block.
BLOCK = 128

#: Threads per warp, and the mask of all of them.
WARP = 32
ALL_LANES = 0xFFFFFFFF


def launch(threads: int, block: int | None = None) -> tuple[int, int]:
    """Return blocks and threads per block for at least `threads`: ``kernel[launch(n)](...)``."""
    block = block or BLOCK
    return max(1, -(-threads // block)), block


# --------------------------------------------------------------------------------------------------
# Compiled kernels are stored like functions for the CPU, and loaded by one thread at a time.
#
# numba-cuda uses no lock to load a compiled kernel: if two threads first call the same kernel at
# once, one may find an incomplete module and fail.


_lock = threading.RLock()

#: Methods that load: from the disk or the compiler, into a module, to a GPU.
_LOADING = ((CUDADispatcher, "compile"), (CompiledKernel, "bind"), (CUDACodeLibrary, "get_cufunc"))


def compiled_kernel(function: Callable | None = None, **options):
    """Make a kernel whose code is stored.

    Parameters
    ----------
    function : callable
        The Python function.
    **options
        Options of `cuda.jit`.
    """
    if function is None:
        return functools.partial(compiled_kernel, **options)
    kernel = cuda.jit(**options)(function)
    kernel._cache = KeptCode(function, version, _reduced, _rebuilt)
    return kernel


def _reduced(kernel: CompiledKernel) -> bytes:
    return dumps(kernel._reduce_states())


def _rebuilt(_context, content: bytes) -> CompiledKernel:
    # Skip the context's refresh(), which initialises the compiler in a fifth of a second.
    return CompiledKernel._rebuild(**pickle.loads(content))


def load_in_turn() -> None:
    """Serialise the loading of kernels by numba-cuda."""
    for owner, name in _LOADING:
        method = getattr(owner, name)
        if not hasattr(method, "_in_turn"):
            setattr(owner, name, _in_turn(method))


def _in_turn(method):
    @functools.wraps(method)
    def wait_and_call(*arguments, **options):
        with _lock:
            return method(*arguments, **options)

    wait_and_call._in_turn = True
    return wait_and_call


# --------------------------------------------------------------------------------------------------
# Short calls of the driver without releasing the GIL.
#
# numba-cuda releases the GIL for every call, and gets it back when another thread releases it; with
# many threads that takes a hundred times as long as the call.


_DEFAULT_STREAM = None


def current_device() -> int | None:
    """Return the number of this thread's current device, or None if it has no context."""
    device, driver = ctypes.c_int(), _driver()
    if driver is None or driver.cuCtxGetDevice(ctypes.byref(device)):
        return None
    return device.value


def launch_kernel(function, grid, block, shared_bytes: int, extra) -> bool:
    """Launch a kernel on the default stream; return whether the driver accepted it.

    Parameters
    ----------
    function : ctypes.c_void_p
    grid, block : tuple of three int
    extra : ctypes array
        Location of the arguments, in the form of cuLaunchKernel.
    """
    return not _driver().cuLaunchKernel(
        function, *grid, *block, shared_bytes, _DEFAULT_STREAM, None, extra
    )


def take(n_bytes: int) -> int | None:
    """Allocate memory from the pool of the current device; return its address, or None."""
    address = ctypes.c_uint64()
    failed = _driver().cuMemAllocAsync(ctypes.byref(address), n_bytes, _DEFAULT_STREAM)
    return None if failed else address.value


def free(address: int) -> None:
    """Return memory to the pool after queued work."""
    _driver().cuMemFreeAsync(address, _DEFAULT_STREAM)


def clear(address: int, n_bytes: int) -> bool:
    """Fill memory with zeros; return whether the driver accepted it."""
    return not _driver().cuMemsetD8Async(address, 0, n_bytes, _DEFAULT_STREAM)


@functools.cache
def _driver():
    try:
        library = ctypes.PyDLL("libcuda.so.1")
    except OSError:
        return None
    number, size, pointer = ctypes.c_uint, ctypes.c_size_t, ctypes.c_void_p
    library.cuLaunchKernel.argtypes = [pointer, *[number] * 7, pointer, pointer, pointer]
    library.cuMemAllocAsync.argtypes = [pointer, size, pointer]
    library.cuMemFreeAsync.argtypes = [ctypes.c_uint64, pointer]
    # The suffix _v2 is that of the functions for 64-bit pointers.
    library.cuMemsetD8Async.argtypes = [ctypes.c_uint64, ctypes.c_ubyte, size, pointer]
    return library


# --------------------------------------------------------------------------------------------------
# Threads that wait for a GPU sleep.
#
# By default, if there are more processors than programs, CUDA polls the GPU without a pause: each
# waiting thread occupies a processor.


def sleep_while_waiting() -> None:
    """Make waiting threads sleep on every GPU; call this before a GPU is used."""
    from bwarp.gpu.cuda import CudaAPIError, cuda, driver_calls

    for number in range(len(cuda.gpus)):
        # Old drivers and GPUs in use refuse; this affects only speed.
        with suppress(CudaAPIError):
            driver_calls.cuDevicePrimaryCtxSetFlags(number, BLOCKING_SYNC)
