"""Kernels are kept and loaded as the functions for the CPU are, by one thread at a time.

numba-cuda takes no lock where it loads a compiled kernel: of two threads that first call the same
one at once, one may find its module half made, and fails.
"""

import functools
import pickle
import threading
from collections.abc import Callable

from bwarp.gpu.cuda import CompiledKernel, CUDACodeLibrary, CUDADispatcher, cuda, dumps, version
from bwarp.runtime.compiled_code import KeptCode

__all__ = ["compiled_kernel", "load_in_turn"]

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
