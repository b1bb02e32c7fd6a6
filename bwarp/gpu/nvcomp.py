"""Deflate on a GPU with nvCOMP, NVIDIA's compression library, through its C interface.

The optional package nvidia-libnvcomp-cu12 or -cu13 provides it.
"""

import ctypes
import functools

import numpy as np

from bwarp.errors import UsageError
from bwarp.gpu.cuda import cuda

#: The level of nvCOMP that compresses as well as libdeflate's first, at 8 GB/s on an H200.
_ALGORITHM = 2

_SUCCESS = 0


class _Options(ctypes.Structure):
    """nvcompBatchedDeflateCompressOpts_t."""

    _fields_ = (("algorithm", ctypes.c_int), ("reserved", ctypes.c_char * 60))


def is_installed() -> bool:
    return _library() is not None


def room_of(size: int) -> int:
    """Return the maximum compressed size of a block of `size` bytes."""
    room = ctypes.c_size_t()
    _check(
        _library().nvcompBatchedDeflateCompressGetMaxOutputChunkSize(
            size, _Options(_ALGORITHM), ctypes.byref(room)
        )
    )
    # Blocks are aligned to 8 bytes.
    return -(-room.value // 8) * 8


def scratch_bytes(count: int, size: int) -> int:
    """Return the scratch size that `deflate` needs for `count` blocks of up to `size` bytes."""
    n_bytes = ctypes.c_size_t()
    _check(
        _library().nvcompBatchedDeflateCompressGetTempSize(
            count, size, _Options(_ALGORITHM), ctypes.byref(n_bytes), count * size, None
        )
    )
    return max(8, n_bytes.value)


def addresses(memory, step: int, count: int):
    """Return a device array of the addresses of blocks every `step` bytes, a multiple of 8."""
    steps = np.uint64(step) * np.arange(count, dtype=np.uint64)
    return cuda.to_device(np.uint64(_address(memory)) + steps)


def deflate(blocks, sizes, largest, count, scratch, outs, packed, stream) -> None:
    """Compress blocks on the current GPU without waiting for the stream.

    Parameters
    ----------
    blocks : device array, shape=(>= count,), dtype=uint64
        Addresses of the blocks.
    sizes : device array, shape=(>= count,), dtype=uint64
        Size of each block in bytes, up to `largest`.
    scratch : device array, dtype=uint8
        Scratch space of `scratch_bytes`.
    outs : device array, shape=(>= count,), dtype=uint64
        Addresses of the outputs, with `room_of` bytes each.
    packed : device array, shape=(>= count,), dtype=uint64
        Output: the compressed size of each block.
    stream : CUDA stream
    """
    _check(
        _library().nvcompBatchedDeflateCompressAsync(
            _address(blocks),
            _address(sizes),
            largest,
            count,
            _address(scratch),
            scratch.size,
            _address(outs),
            _address(packed),
            _Options(_ALGORITHM),
            None,
            int(stream.handle),
        )  # fmt: skip
    )


def _address(array) -> int:
    return int(array.device_ctypes_pointer.value)


def _check(status: int) -> None:
    if status != _SUCCESS:
        raise UsageError(f"nvCOMP failed with status {status}: use --compress host")


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
