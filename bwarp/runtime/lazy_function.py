"""Functions that Numba compiles when they are first called with arguments of new types.

If their machine code is stored, it is called without importing Numba (`bwarp.runtime.linking`).
"""

import inspect
import os
import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any, Protocol

from bwarp.runtime import compiler
from bwarp.runtime.type_text import kind_of, text_of_arguments


class Stored(Protocol):
    """The stored code of a function, and Numba's interface to it."""

    def is_kept_for(self, types: str) -> bool:
        """Return whether the code for types of arguments, as text, is stored."""

    def linked(self, types: str) -> Callable | None:
        """Return the stored machine code for types of arguments as a function, or None."""


_lock = threading.RLock()


class LazyFunction:
    """A function in Numba's nopython mode, compiled when it is first called.

    Other compiled functions may call it, on the CPU and in GPU kernels.

    Parameters
    ----------
    function : callable
        The Python function.
    options : dict
        Options of `numba.njit`.
    stored : Stored, optional
        Without it, the function exists only as part of its callers' code, unless Python calls it.

    Attributes
    ----------
    py_func : callable
    targetoptions : dict
        As those of functions that Numba compiles.
    """

    def __init__(self, function: Callable, options: dict, stored: Stored | None = None):
        self.__name__, self.__qualname__ = function.__name__, function.__qualname__
        self.__module__, self.__doc__ = function.__module__, function.__doc__
        self.__wrapped__ = self.py_func = function
        self.targetoptions = options
        self._stored = stored
        self._count = function.__code__.co_argcount
        #: Functions for the kinds of arguments seen so far, and for their types as text.
        self._known: dict[tuple, Callable] = {}
        self._linked: dict[str, Callable | None] = {}
        self._made: Any = None

    def __call__(self, *arguments, **named):
        if named or len(arguments) != self._count:
            arguments = self._in_order(arguments, named)
        kinds = tuple(map(kind_of, arguments))
        known = self._known.get(kinds)
        if known is None:
            known = self._function_for(arguments)
            self._known[kinds] = known
        return known(*arguments)

    def __repr__(self) -> str:
        return f"<compiled function {self.__module__}.{self.__qualname__}>"

    def __reduce__(self):
        # Closures of other functions are pickled to tell them apart.
        return LazyFunction, (self.py_func, self.targetoptions)

    @property
    def _numba_type_(self) -> Any:
        """The type of the function where other compiled functions name it; Numba asks for it."""
        return _type_of(self.dispatcher)

    @property
    def dispatcher(self) -> Any:
        """Numba's dispatcher of the function, which compiles it."""
        compiler.begin_compiling()
        # functools.cached_property of Python 3.11 has one lock for all functions: a thread that
        # holds it may wait for a thread that waits for it.
        with _lock:
            if self._made is None:
                made = compiler.njit(**self.targetoptions)(self.py_func)
                if self._stored is not None:
                    made._cache = self._stored
                self._made = made
            return self._made

    def is_stored(self, types: str) -> bool:
        """Return whether the code for types of arguments, as text, is stored."""
        return self._stored is not None and self._stored.is_kept_for(types)

    def linked(self, types: str) -> Callable | None:
        """Return the stored machine code for types of arguments, as text, or None; link it once."""
        # Threads may call the function at the same time.
        with _lock:
            if types not in self._linked:
                self._linked[types] = self._stored.linked(types) if self._stored else None
            return self._linked[types]

    def _function_for(self, arguments: tuple) -> Callable:
        if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
            return self.py_func
        # The name of a function does not identify it if another function makes it.
        if self._stored is not None and not self.py_func.__closure__:
            types = text_of_arguments(arguments)
            if types is not None:
                return self.linked(types) or self.dispatcher
        return self.dispatcher

    def _in_order(self, arguments: tuple, named: dict) -> tuple:
        bound = inspect.signature(self.py_func).bind(*arguments, **named)
        bound.apply_defaults()
        return bound.args


class CompilerFunction:
    """A function that exists in compiled code only, in a module that imports Numba.

    Parameters
    ----------
    home : function
        Imports the module.
    name : str
    """

    def __init__(self, home: Callable[[], ModuleType], name: str):
        self._home, self.__name__ = home, name
        compiler.when_compiling(home)

    @property
    def meant(self) -> Any:
        return getattr(self._home(), self.__name__)

    def __call__(self, *_arguments):
        raise NotImplementedError(f"{self.__name__} runs in compiled code only")

    @property
    def _numba_type_(self) -> Any:
        return _type_of(self.meant)


def _type_of(function) -> Any:
    """Return the type of a function, for compiled functions that call it."""
    compiler.begin_compiling()
    context = compiler.cpu_target.typing_context
    # It may have been registered since the caller's types began to be inferred.
    context.refresh()
    return context.resolve_value_type(function)
