"""Kernels: what each is given is written once, beside its arguments.

    class Hits(NamedTuple):
        score: int32[::1]
        strand: uint8[::1]

    @kernel(over="hits.score")
    def mark_hits(hits: Hits, least: int, marks: uint8[::1]):
        hit = cuda.grid(1)
        if hit < hits.score.size:
            marks[hit] = hits.score[hit] >= least

    mark_hits(hits, 30, marks)                  a thread a number of hits.score
    mark_hits[launch(n)](hits, 30, marks)       as many as are named here

An annotation is a Numba type, `int`, `float` or `bool`, or a named tuple with such annotations: a
table of columns is one argument. A tuple of types means any of them. From the annotations follow
the types to compile a kernel with, before any GPU is used, and a check of what it is launched with.

A launch takes a few microseconds, and does not wait for other threads of Python. numba-cuda looks
at every argument of every launch, which takes longer than to queue it, and lets go of Python's lock
while it calls the driver: a thread that launches hundreds of kernels while others work gets it back
hundreds of times, each time when one of these lets go of it. Here

    arguments    array, array, number                what they are is the key to a plan
    plan         the kernel compiled for them, and how their words are packed
    words        0 0 size itemsize pointer shape stride | ... | number

are packed and handed to the driver with the lock held. What is not known yet, or not simple, is
launched by numba-cuda.
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
from bwarp.gpu.launch import compiled_kernel, current_device, launch, launch_kernel

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

_NUMBERS = {int: types.int64, float: types.float64, bool: types.boolean}


def kernel(
    function: Callable | None = None, *, over: str | None = None, per: int = 1, **options
) -> Callable:
    """Make a kernel of a function whose arguments are annotated.

    Parameters
    ----------
    over : str, optional
        The argument, or ``argument.field``, that has as many numbers as there are threads, where a
        launch does not say how many.
    per : int
        Threads a number of that array: 32 for a warp.
    **options
        Those of ``cuda.jit``.
    """
    if function is None:
        return lambda function: Kernel(function, over, per, options)
    return Kernel(function, over, per, options)


def kernels_in(module: ModuleType) -> list["Kernel"]:
    """The kernels of a module: those it defines, and `MADE_KERNELS` that its functions make."""
    own = [
        value
        for value in vars(module).values()
        if isinstance(value, Kernel) and value.__module__ == module.__name__
    ]
    return [*own, *getattr(module, "MADE_KERNELS", ())]


class Kernel:
    """A function that runs on the current GPU, as `kernel` makes it.

    Attributes
    ----------
    dispatcher : CUDADispatcher
        The kernel as numba-cuda has it.
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
        """The types of the arguments: one tuple, or one for each that may be."""
        hints = inspect.get_annotations(self.py_func)
        return _variants([hints[name] for name in inspect.signature(self.py_func).parameters])

    def __call__(self, *arguments) -> None:
        array = arguments[self._over]
        for field in self._fields:
            array = getattr(array, field)
        if array.size:
            self[launch(array.size * self._per)](*arguments)

    def __getitem__(self, configuration: tuple) -> Callable[..., None]:
        """The kernel to be called on so many blocks of so many threads."""
        return functools.partial(self._launch, configuration)

    def _launch(self, configuration: tuple, *arguments) -> None:
        # A thread that has no context yet gets one from numba-cuda.
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
        """Refuse arguments of other types than those stated."""
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
    """Whether types are the same but for the widths of numbers, gaps between those of an array, and
    the lengths of tuples of whole numbers: for these numba-cuda compiles the kernel anew."""
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
    """The types that annotations stand for; several where one of them has several."""
    kinds = [_types_of(hint) for hint in hints]
    most = max(map(len, kinds), default=1)
    return [tuple(kind[min(i, len(kind) - 1)] for kind in kinds) for i in range(most)]


def _types_of(hint) -> list:
    if isinstance(hint, types.Type):
        return [hint]
    if isinstance(hint, tuple):
        return list(hint)
    if hasattr(hint, "_fields"):
        fields = inspect.get_annotations(hint)
        parts = _variants([fields[name] for name in hint._fields])
        return [types.BaseTuple.from_types(part, hint) for part in parts]
    return [_NUMBERS[hint]]


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


def _add_words(arguments: tuple, kinds: list, words: list) -> None:
    """Add what a kernel gets of arguments, and what tells their types."""
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
    """A number for the type of an array, and its words."""
    kind = array.dtype, array.ndim, array.flags["C_CONTIGUOUS"]
    pointer = array.device_ctypes_pointer.value or 0
    words = 0, 0, array.size, array.dtype.itemsize, pointer, *array.shape, *array.strides
    return _kinds.setdefault(kind, len(_kinds)), struct.pack(f"{len(words)}q", *words)


#: Numbers are quicker to look up than types of arrays.
_kinds: dict[tuple, int] = {}


def _plan_of(dispatcher, arguments: tuple):
    """The plan for arguments that the kernel has been launched with."""
    compiled = dispatcher.overloads.get(tuple(map(dispatcher.typeof_pyval, arguments)))
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
        return f"0q{8 * (5 + 2 * kind.ndim)}s"
    if isinstance(kind, types.BaseTuple):
        formats = [_format_of(part) for part in kind]
        return None if None in formats else "".join(formats)
    return _FORMATS.get(kind)
