"""Short calls of the CUDA driver without releasing the GIL.

numba-cuda releases the GIL for every call, and gets it back when another thread releases it; with
many threads that takes a hundred times as long as the call.
"""

import ctypes
import functools

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
