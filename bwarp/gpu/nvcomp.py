"""nvCOMP, NVIDIA's library that compresses on a GPU: deflate, called through its C interface.

The package nvidia-libnvcomp-cu12 or -cu13 brings it. It is optional.
"""

import ctypes
import functools

import numpy as np
from numba import cuda

__all__ = ["deflate", "is_installed", "room_of"]

#: Of nvCOMP's levels the one that packs as tightly as libdeflate's first, at 8 GB/s on an H200.
_ALGORITHM = 2

_DEFAULT_STREAM = 0
_SUCCESS = 0


class _Options(ctypes.Structure):
    """nvcompBatchedDeflateCompressOpts_t."""

    _fields_ = (("algorithm", ctypes.c_int), ("reserved", ctypes.c_char * 60))


def is_installed() -> bool:
    return _library() is not None


def room_of(size: int) -> int:
    """Bytes that a block of `size` may take when it is compressed."""
    room = ctypes.c_size_t()
    _check(
        _library().nvcompBatchedDeflateCompressGetMaxOutputChunkSize(
            size, _Options(_ALGORITHM), ctypes.byref(room)
        )
    )
    # Blocks lie at multiples of that.
    return -(-room.value // 8) * 8


def deflate(raw, sizes: np.ndarray, step: int, out, room: int):
    """Compress blocks on the current GPU.

    Parameters
    ----------
    raw : device array, dtype=uint8
        A block every `step` bytes, a multiple of 8.
    sizes : ndarray, shape=(n,), dtype=uint64
        Bytes of each.
    out : device array, shape=(n * room,), dtype=uint8
        For what becomes of them: one every `room` bytes.

    Returns
    -------
    packed : device array, shape=(n,), dtype=uint64
        Bytes that each takes in `out`.
    """
    library, count, options = _library(), sizes.size, _Options(_ALGORITHM)
    numbers = np.arange(count, dtype=np.uint64)
    addresses, out_addresses, sizes_there = map(
        cuda.to_device,
        (
            np.uint64(_address(raw)) + np.uint64(step) * numbers,
            np.uint64(_address(out)) + np.uint64(room) * numbers,
            sizes.astype(np.uint64),
        ),
    )
    packed = cuda.device_array(count, np.uint64)
    n_bytes = ctypes.c_size_t()
    _check(
        library.nvcompBatchedDeflateCompressGetTempSize(
            count, step, options, ctypes.byref(n_bytes), count * step, _DEFAULT_STREAM
        )
    )
    scratch = cuda.device_array(max(8, n_bytes.value), np.uint8)
    _check(
        library.nvcompBatchedDeflateCompressAsync(
            _address(addresses),
            _address(sizes_there),
            step,
            count,
            _address(scratch),
            n_bytes.value,
            _address(out_addresses),
            _address(packed),
            options,
            None,
            _DEFAULT_STREAM,
        )  # fmt: skip
    )
    return packed


def _address(array) -> int:
    return int(array.device_ctypes_pointer.value)


def _check(status: int) -> None:
    if status != _SUCCESS:
        raise RuntimeError(f"nvCOMP failed with status {status}")


@functools.cache
def _library():
    try:
        from nvidia.libnvcomp import load_library
    except ImportError:
        return None
    library = load_library()
    if library is None:
        return None
    number, pointer, result = ctypes.c_size_t, ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t)
    library.nvcompBatchedDeflateCompressGetMaxOutputChunkSize.argtypes = [number, _Options, result]
    library.nvcompBatchedDeflateCompressGetTempSize.argtypes = [
        number, number, _Options, result, number, pointer,
    ]  # fmt: skip
    library.nvcompBatchedDeflateCompressAsync.argtypes = [
        pointer, pointer, number, number, pointer, number, pointer, pointer, _Options, pointer,
        pointer,
    ]  # fmt: skip
    return library
