"""Sizes of launches, and storage and loading of compiled kernels."""

import functools
import pickle
import threading
from collections.abc import Callable

from bwarp.gpu.cuda import CompiledKernel, CUDACodeLibrary, CUDADispatcher, cuda, dumps, version
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
