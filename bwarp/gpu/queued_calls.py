"""Calls of the driver that take no time, made without letting go of Python's lock.

numba-cuda lets go of it for every call, and gets it back when another thread lets go of it: where
many threads work, that takes a hundred times as long as the call.
"""

import ctypes
import functools

__all__ = ["clear", "current_device", "free", "launch_kernel", "take"]

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
