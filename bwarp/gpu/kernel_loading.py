"""Kernels are loaded by one thread at a time, and without the compiler.

numba-cuda takes no lock where it loads a compiled kernel: of two threads that first call the same
one at once, one may find its module half made, and fails. And before it loads the first one it sets
its compiler up, for a fifth of a second in which no other thread of Python works: here only if a
kernel has to be compiled.
"""

import functools
import threading

from bwarp.gpu.cuda import Cache, CompiledKernel, CUDACodeLibrary, CUDADispatcher

__all__ = ["load_in_turn", "load_without_compiler"]

_lock = threading.RLock()

#: What loads: from the disk or the compiler, into a module, on to a GPU.
_LOADING = ((CUDADispatcher, "compile"), (CompiledKernel, "bind"), (CUDACodeLibrary, "get_cufunc"))


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


def load_without_compiler() -> None:
    """Let numba-cuda set its compiler up for those kernels alone that are not kept."""
    with_compiler = Cache.load_overload
    if hasattr(with_compiler, "_looks_first"):
        return

    @functools.wraps(with_compiler)
    def load_overload(self, types, context):
        # Another version of it may be made otherwise.
        look = getattr(self, "_load_overload", None)
        found = None if look is None else look(types, context)
        return with_compiler(self, types, context) if found is None else found

    load_overload._looks_first = True
    Cache.load_overload = load_overload
