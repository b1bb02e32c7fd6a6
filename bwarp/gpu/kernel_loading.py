"""Kernels are loaded by one thread at a time.

numba-cuda takes no lock where it loads a compiled kernel: of two threads that first call the same
one at once, one may find its module half made, and fails.
"""

import functools
import threading

from numba.cuda.codegen import CUDACodeLibrary
from numba.cuda.dispatcher import CUDADispatcher, _Kernel

__all__ = ["load_in_turn"]

_lock = threading.RLock()

#: What loads: from the disk or the compiler, into a module, on to a GPU.
_LOADING = ((CUDADispatcher, "compile"), (_Kernel, "bind"), (CUDACodeLibrary, "get_cufunc"))


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
