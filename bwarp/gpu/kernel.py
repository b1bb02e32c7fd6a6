"""Kernels whose argument types are annotated once, with fast launches.

    class Hits(NamedTuple):
        score: int32[::1]
        strand: uint8[::1]

    @kernel(over="hits.score")
    def mark_hits(hits: Hits, least: int, marks: uint8[::1]):
        hit = cuda.grid(1)
        if hit < hits.score.size:
            marks[hit] = hits.score[hit] >= least

    mark_hits(hits, 30, marks)                  one thread per number of hits.score
    mark_hits[launch(n)](hits, 30, marks)       the number of threads is given

An annotation is a Numba type, `int`, `float`, `bool`, or a named tuple with such annotations: a
table of columns is a single argument. `Annotated[tuple, ...]` names several types, and means any of
them. The annotations give the types to compile a kernel for before any GPU is used, and are checked
at launches.

A launch takes a few microseconds and does not release the GIL. numba-cuda inspects every argument
at every launch, which takes longer than queueing it, and releases the GIL while it calls the
driver: a thread that launches hundreds of kernels while others work would wait for the GIL hundreds
of times. Here

    arguments    array, array, number                their types are the key to a plan
    plan         the kernel compiled for them, and how to pack their words
    words        0 0 size itemsize pointer shape stride | ... | number

are packed and passed to the driver with the GIL held. New or unusual types are launched by
numba-cuda.
"""

import ctypes
import functools
import inspect
import struct
import threading
from collections.abc import Callable, Sequence
from types import ModuleType

import numpy as np

from bwarp.gpu.cuda import DeviceNDArray, types
from bwarp.gpu.device_arrays import field_types
from bwarp.gpu.driver import current_device, launch_kernel
from bwarp.gpu.kernel_times import on_gpu_timeline
from bwarp.gpu.launch import compiled_kernel, launch
from bwarp.runtime.timeline import is_recording

#: Markers in `extra` of cuLaunchKernel: a buffer of all arguments, its size, the end.
_BUFFER, _SIZE, _END = 1, 2, 0

#: Maximum size of a kernel's arguments in bytes.
_MOST_BYTES = 4096

#: Formats to pack numbers passed to kernels.
_FORMATS = {
    types.int64: "q", types.uint64: "Q", types.int32: "i", types.uint32: "I", types.int16: "h",
    types.uint16: "H", types.int8: "b", types.uint8: "B", types.float64: "d", types.float32: "f",
    types.boolean: "?",
}  # fmt: skip

_NUMBERS = {int: types.int64, float: types.float64, bool: types.boolean}


def kernel(
    function: Callable | None = None, *, over: str | None = None, per: int = 1, **options
) -> Callable:
    """Make a kernel from a function with annotated arguments.

    Parameters
    ----------
    over : str, optional
        The argument, or ``argument.field``, whose size is the number of threads if a launch
        does not specify it.
    per : int
        Threads per number of that array: 32 for a warp.
    **options
        Options of ``cuda.jit``.
    """
    if function is None:
        return lambda function: Kernel(function, over, per, options)
    return Kernel(function, over, per, options)


def kernels_in(module: ModuleType) -> list["Kernel"]:
    """Return the kernels that a module defines, and its `MADE_KERNELS` from factories."""
    own = [
        value
        for value in vars(module).values()
        if isinstance(value, Kernel) and value.__module__ == module.__name__
    ]
    return [*own, *getattr(module, "MADE_KERNELS", ())]


class Kernel:
    """A function that runs on the current GPU, made by `kernel`.

    Attributes
    ----------
    dispatcher : CUDADispatcher
        The kernel of numba-cuda.
    py_func : function
    """

    def __init__(self, function: Callable, over: str | None, per: int, options: dict):
        functools.update_wrapper(self, function)
        self.py_func = function
        self.dispatcher = compiled_kernel(function, **options)
        self._per, self._plans = per, {}
        if over is not None:
            name, *self._fields = over.split(".")
            self._over = list(inspect.signature(function).parameters).index(name)

    @functools.cached_property
    def signatures(self) -> list[tuple]:
        """Return the types of the arguments: one tuple per variant."""
        hints = inspect.get_annotations(self.py_func)
        return _variants([hints[name] for name in inspect.signature(self.py_func).parameters])

    def __call__(self, *arguments) -> None:
        array = arguments[self._over]
        for field in self._fields:
            array = getattr(array, field)
        if array.size:
            self[launch(array.size * self._per)](*arguments)

    def __getitem__(self, configuration: tuple) -> Callable[..., None]:
        """Return the kernel for launches with this number of blocks and threads."""
        return functools.partial(self._launch, configuration)

    def _launch(self, configuration: tuple, *arguments) -> None:
        if not is_recording():
            self._launch_now(configuration, *arguments)
            return
        stream = configuration[2] if len(configuration) > 2 else 0
        with on_gpu_timeline(self.__name__, stream):
            self._launch_now(configuration, *arguments)

    def _launch_now(self, configuration: tuple, *arguments) -> None:
        # numba-cuda creates the context of a thread that has none.
        kinds, words = [current_device()], []
        _add_words(arguments, kinds, words)
        plan = self._plans.get(tuple(kinds))
        if plan is None:
            self.require(arguments)
        if plan is None or not plan.launch(configuration, words):
            self.dispatcher[configuration](*arguments)
        if plan is None:
            kinds[0] = current_device()
            self._plans[tuple(kinds)] = _plan_of(self.dispatcher, arguments)

    def require(self, arguments: Sequence) -> None:
        """Raise an error if the types of arguments differ from the annotations."""
        found = tuple(map(self.dispatcher.typeof_pyval, arguments))
        if found in self.signatures:
            return
        stated, names = self.signatures[0], list(inspect.signature(self.py_func).parameters)
        if len(found) != len(stated):
            raise TypeError(f"{self.__name__} takes {len(stated)} arguments, not {len(found)}")
        for name, one, other in zip(names, found, stated, strict=True):
            if not _is_like(one, other):
                raise TypeError(f"{self.__name__}: {name} is of type {one}, not {other}")


def _is_like(found, stated) -> bool:
    """Return whether types are equal except for widths of numbers, strides of arrays, and lengths
    of tuples of integers, for which numba-cuda compiles the kernel again."""
    if isinstance(found, types.UniTuple) and isinstance(stated, types.UniTuple):
        return found.dtype == stated.dtype
    if isinstance(found, types.BaseTuple) and isinstance(stated, types.BaseTuple):
        is_same = getattr(found, "instance_class", None) is getattr(stated, "instance_class", None)
        return is_same and len(found) == len(stated) and all(map(_is_like, found, stated))
    if isinstance(found, types.Array) and isinstance(stated, types.Array):
        return (found.dtype, found.ndim) == (stated.dtype, stated.ndim)
    numbers = types.Number, types.Boolean
    return isinstance(found, numbers) and isinstance(stated, numbers)


def _variants(hints: Sequence) -> list[tuple]:
    """Return the tuples of types that annotations allow."""
    kinds = [_types_of(hint) for hint in hints]
    most = max(map(len, kinds), default=1)
    return [tuple(kind[min(i, len(kind) - 1)] for kind in kinds) for i in range(most)]


def _types_of(hint) -> list:
    if isinstance(hint, types.Type):
        return [hint]
    if hasattr(hint, "__metadata__"):
        return list(hint.__metadata__)
    if hasattr(hint, "_fields"):
        fields = field_types(hint)
        parts = _variants([fields[name] for name in hint._fields])
        return [types.BaseTuple.from_types(part, hint) for part in parts]
    return [_NUMBERS[hint]]


class _Plan:
    """A way to launch a kernel with arguments of certain types."""

    def __init__(self, function: int, words: struct.Struct):
        self._function, self._words = ctypes.c_void_p(function), words

    def launch(self, configuration: tuple, words: list) -> bool:
        """Launch; return whether the driver accepted it. numba-cuda reports errors."""
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
    """A plan for arguments that numba-cuda must pack."""

    @staticmethod
    def launch(_configuration, _words) -> bool:
        return False


class _Memory(threading.local):
    """The buffer of a thread for packed arguments, in the form that the driver needs."""

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


def _add_words(arguments: tuple, kinds: list, words: list) -> None:
    """Append the words of arguments, and the keys of their types."""
    for argument in arguments:
        if isinstance(argument, tuple):
            kinds.append(type(argument))
            _add_words(argument, kinds, words)
        elif isinstance(argument, DeviceNDArray):
            try:
                kind, packed = argument._packed
            except AttributeError:
                kind, packed = argument._packed = _packed(argument)
            kinds.append(kind)
            words.append(packed)
        elif isinstance(argument, np.number):
            kinds.append(argument.dtype)
            words.append(argument.item())
        else:
            kinds.append(type(argument))
            words.append(argument)


def _packed(array: DeviceNDArray) -> tuple[int, bytes]:
    """Return a number for the type of an array, and its words."""
    kind = array.dtype, array.ndim, array.flags["C_CONTIGUOUS"]
    pointer = array.device_ctypes_pointer.value or 0
    words = 0, 0, array.size, array.dtype.itemsize, pointer, *array.shape, *array.strides
    return _kinds.setdefault(kind, len(_kinds)), struct.pack(f"{len(words)}q", *words)


#: Numbers for types of arrays; numbers are faster to look up.
_kinds: dict[tuple, int] = {}


def _plan_of(dispatcher, arguments: tuple):
    """Return the plan for arguments with which the kernel has been launched."""
    compiled = dispatcher.overloads.get(tuple(map(dispatcher.typeof_pyval, arguments)))
    if compiled is None or compiled.debug or compiled.cooperative or compiled.extensions:
        return _NoPlan
    formats = [_format_of(kind) for kind in compiled.argument_types]
    if None in formats:
        return _NoPlan
    function = compiled._codelibrary.get_cufunc().kernel.handle
    return _Plan(int(function), struct.Struct("@" + "".join(formats)))


def _format_of(kind) -> str | None:
    """Return the format to pack an argument."""
    if isinstance(kind, types.Array):
        return f"0q{8 * (5 + 2 * kind.ndim)}s"
    if isinstance(kind, types.BaseTuple):
        formats = [_format_of(part) for part in kind]
        return None if None in formats else "".join(formats)
    return _FORMATS.get(kind)
