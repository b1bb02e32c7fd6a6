"""Kernels are launched in a few microseconds, and without waiting for other threads of Python.

numba-cuda looks at every argument of every launch, which takes longer than to queue it, and lets go
of Python's lock while it calls the driver: a thread that launches hundreds of kernels while others
work gets it back hundreds of times, each time when one of these lets go of it. Here

    arguments    array, array, number                what they are is the key to a plan
    plan         the kernel compiled for them, and how their words are packed
    words        0 0 size itemsize pointer shape stride | ... | number

are packed and handed to the driver with the lock held. What is not known yet, or not simple, is
launched by numba-cuda.
"""

import ctypes
import struct
import threading

import numpy as np

from bwarp.gpu.cuda import CUDADispatcher, DeviceNDArray, types
from bwarp.gpu.queued_calls import current_device, launch_kernel

__all__ = ["Launch", "launch_quickly"]

#: Of cuLaunchKernel's `extra`: what follows is a buffer of all arguments, its size, the end.
_BUFFER, _SIZE, _END = 1, 2, 0

#: Bytes of arguments that a kernel may have.
_MOST_BYTES = 4096

#: How the numbers that kernels take are packed.
_FORMATS = {
    types.int64: "q", types.uint64: "Q", types.int32: "i", types.uint32: "I", types.int16: "h",
    types.uint16: "H", types.int8: "b", types.uint8: "B", types.float64: "d", types.float32: "f",
    types.boolean: "?",
}  # fmt: skip

_numba_getitem = CUDADispatcher.__getitem__


def launch_quickly() -> None:
    """Let every kernel be launched this way from now on."""
    CUDADispatcher.__getitem__ = lambda kernel, configuration: Launch(kernel, configuration)


class Launch:
    """``kernel[blocks, threads]``, to be called with the kernel's arguments."""

    __slots__ = ("configuration", "kernel")

    def __init__(self, kernel: CUDADispatcher, configuration: tuple):
        self.kernel, self.configuration = kernel, configuration

    def __call__(self, *arguments) -> None:
        words, kinds = [], []
        for argument in arguments:
            kind = _add_words(argument, words)
            if kind is None:
                self._by_numba(arguments)
                return
            kinds.append(kind)
        plans = self.kernel.__dict__.setdefault("_plans", {})
        # A thread that has no context yet gets one from numba-cuda.
        plan = plans.get((current_device(), *kinds))
        if plan is None or not plan.launch(self.configuration, words):
            self._by_numba(arguments)
        if plan is None:
            plans[current_device(), *kinds] = _plan_of(self.kernel, arguments)

    def _by_numba(self, arguments: tuple) -> None:
        _numba_getitem(self.kernel, self.configuration)(*arguments)


class _Plan:
    """How a kernel is launched with arguments of some types."""

    def __init__(self, function: int, words: struct.Struct):
        self._function, self._words = ctypes.c_void_p(function), words

    def launch(self, configuration: tuple, words: list) -> bool:
        """Whether the driver has taken it; numba-cuda says why not."""
        grid, block, stream, shared_bytes = (*configuration, 0, 0)[:4]
        memory = _memory
        try:
            self._words.pack_into(memory.buffer, 0, *words)
        except struct.error:
            return False
        memory.size.value = self._words.size
        return stream == 0 and launch_kernel(
            self._function, _dimensions(grid), _dimensions(block), shared_bytes, memory.extra
        )


class _NoPlan:
    """For arguments that numba-cuda has to pack itself."""

    @staticmethod
    def launch(_configuration, _words) -> bool:
        return False


class _Memory(threading.local):
    """Where a thread packs arguments, and how the driver finds them."""

    def __init__(self):
        self.buffer = ctypes.create_string_buffer(_MOST_BYTES)
        self.size = ctypes.c_size_t()
        self.extra = (ctypes.c_void_p * 5)(
            _BUFFER, ctypes.addressof(self.buffer), _SIZE, ctypes.addressof(self.size), _END
        )


_memory = _Memory()


def _dimensions(shape) -> tuple[int, int, int]:
    if type(shape) is int:
        return shape, 1, 1
    shape = (shape,) if not isinstance(shape, tuple) else shape
    return (*map(int, shape), *[1] * (3 - len(shape)))


def _add_words(argument, words: list):
    """Add what a kernel gets of an argument; returns what tells its type, or None."""
    if type(argument) is int:
        words.append(argument)
        return int
    if isinstance(argument, DeviceNDArray):
        known = argument.__dict__.get("_words")
        if known is None:
            known = argument._words = _words_of(argument)
        words += known[1]
        return known[0]
    if type(argument) in (float, bool):
        words.append(argument)
        return type(argument)
    if isinstance(argument, tuple):
        kinds = tuple([_add_words(part, words) for part in argument])
        return None if None in kinds else kinds
    if isinstance(argument, np.number):
        words.append(argument.item())
        return argument.dtype
    return None


def _words_of(array: DeviceNDArray) -> tuple:
    """What tells the type of an array, and its words."""
    pointer = array.device_ctypes_pointer.value or 0
    words = 0, 0, array.size, array.dtype.itemsize, pointer, *array.shape, *array.strides
    return (array.dtype, array.ndim, array.flags["C_CONTIGUOUS"]), words


def _plan_of(kernel: CUDADispatcher, arguments: tuple):
    """The plan for arguments that the kernel has been launched with."""
    compiled = kernel.overloads.get(tuple(map(kernel.typeof_pyval, arguments)))
    if compiled is None or compiled.debug or compiled.cooperative or compiled.extensions:
        return _NoPlan
    formats = [_format_of(kind) for kind in compiled.argument_types]
    if None in formats:
        return _NoPlan
    function = compiled._codelibrary.get_cufunc().kernel.handle
    return _Plan(int(function), struct.Struct("@" + "".join(formats)))


def _format_of(kind) -> str | None:
    """How the words of an argument are packed."""
    if isinstance(kind, types.Array):
        return "q" * (5 + 2 * kind.ndim)
    if isinstance(kind, types.BaseTuple):
        formats = [_format_of(part) for part in kind]
        return None if None in formats else "".join(formats)
    return _FORMATS.get(kind)
