"""How many threads a kernel is launched with."""

import ctypes
import functools
import pickle
import threading
from collections.abc import Callable
from contextlib import suppress

from bwarp.gpu.cuda import CompiledKernel, CUDACodeLibrary, CUDADispatcher, cuda, dumps, version
from bwarp.gpu.device import BLOCKING_SYNC
from bwarp.runtime.compiled_code import KeptCode

#: Threads a block where nothing else is given.
BLOCK = 128

#: Threads a warp, and the mask of all of them.
WARP = 32
ALL_LANES = 0xFFFFFFFF


def launch(threads: int, block: int | None = None) -> tuple[int, int]:
    """Blocks and threads a block, for at least so many threads: ``kernel[launch(n)](...)``."""
    block = block or BLOCK
    return max(1, -(-threads // block)), block


# --------------------------------------------------------------------------------------------------
# Kernels are kept and loaded as the functions for the CPU are, by one thread at a time.
#
# numba-cuda takes no lock where it loads a compiled kernel: of two threads that first call the
# same
# one at once, one may find its module half made, and fails.


_lock = threading.RLock()

#: What loads: from the disk or the compiler, into a module, on to a GPU.
_LOADING = ((CUDADispatcher, "compile"), (CompiledKernel, "bind"), (CUDACodeLibrary, "get_cufunc"))


def compiled_kernel(function: Callable | None = None, **options):
    """A kernel whose code is kept.

    Parameters
    ----------
    function : callable
        The Python function.
    **options
        Those of `cuda.jit`.
    """
    if function is None:
        return functools.partial(compiled_kernel, **options)
    kernel = cuda.jit(**options)(function)
    kernel._cache = KeptCode(function, version, _reduced, _rebuilt)
    return kernel


def _reduced(kernel: CompiledKernel) -> bytes:
    return dumps(kernel._reduce_states())


def _rebuilt(_context, content: bytes) -> CompiledKernel:
    # Without the context's refresh(), which sets the compiler up for a fifth of a second.
    return CompiledKernel._rebuild(**pickle.loads(content))


def load_in_turn() -> None:
    """Let threads wait for one another where numba-cuda loads kernels."""
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
# Calls of the driver that take no time, made without letting go of Python's lock.
#
# numba-cuda lets go of it for every call, and gets it back when another thread lets go of it:
# where
# many threads work, that takes a hundred times as long as the call.


_DEFAULT_STREAM = None


def current_device() -> int | None:
    """The number of the device whose context this thread uses; None where it has none yet."""
    device, driver = ctypes.c_int(), _driver()
    if driver is None or driver.cuCtxGetDevice(ctypes.byref(device)):
        return None
    return device.value


def launch_kernel(function, grid, block, shared_bytes: int, extra) -> bool:
    """Launch a kernel on the default stream; whether the driver has taken it.

    Parameters
    ----------
    function : ctypes.c_void_p
    grid, block : tuple of three int
    extra : ctypes array
        Where the arguments are, as cuLaunchKernel has it.
    """
    return not _driver().cuLaunchKernel(
        function, *grid, *block, shared_bytes, _DEFAULT_STREAM, None, extra
    )


def take(n_bytes: int) -> int | None:
    """The address of memory from the pool of the current device; None where there is none."""
    address = ctypes.c_uint64()
    failed = _driver().cuMemAllocAsync(ctypes.byref(address), n_bytes, _DEFAULT_STREAM)
    return None if failed else address.value


def free(address: int) -> None:
    """Give memory back to the pool, after what is queued."""
    _driver().cuMemFreeAsync(address, _DEFAULT_STREAM)


def clear(address: int, n_bytes: int) -> bool:
    """Fill memory with zeros; whether the driver has taken it."""
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
    # Its name ends as that of all functions that were made for pointers of 64 bits.
    library.cuMemsetD8Async.argtypes = [ctypes.c_uint64, ctypes.c_ubyte, size, pointer]
    return library


# --------------------------------------------------------------------------------------------------
# Threads that wait for a GPU sleep.
#
# CUDA's own way, where there are more processors than programs, is to ask the GPU without a
# pause:
# each thread that waits takes a processor from those that have work.


def sleep_while_waiting() -> None:
    """Say so to the driver, for every GPU; before a GPU is used."""
    from bwarp.gpu.cuda import CudaAPIError, cuda, driver_calls

    for number in range(len(cuda.gpus)):
        # An older driver, and a GPU in use: it is a matter of speed alone.
        with suppress(CudaAPIError):
            driver_calls.cuDevicePrimaryCtxSetFlags(number, BLOCKING_SYNC)
