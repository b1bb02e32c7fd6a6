"""The internals of Numba and LLVM that the CPU code uses; no other module imports them.

Importing Numba takes longer than most short runs compute. A program whose functions are all stored
needs only Numba's C modules, so everything else is imported when it is first used:

    from bwarp.runtime import compiler      then compiler.types imports Numba
    from bwarp.runtime.compiler import types      imports it at once: for modules that only compile
"""

import builtins
import functools
import importlib
import pickle
import sys
import threading
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from llvmlite import __version__ as llvmlite_version
from llvmlite import binding

#: Options of `numba.njit` for functions that do not count references to arrays. The functions that
#: they call do not count them either.
UNCOUNTED = {"_nrt": False}

#: Where each name is, and its name there if it has another one.
_HOMES = {
    "CompileResult": "numba.core.compiler",
    "Environment": "numba.core.environment",
    "FunctionCompiler": "numba.core.dispatcher:_FunctionCompiler",
    "JITCodeLibrary": "numba.core.codegen",
    "RequireLiteralValue": "numba.core.errors",
    "as_dtype": "numba.np.numpy_support",
    "cgutils": "numba.core",
    "cpu_target": "numba.core.registry",
    "dumps": "numba.core.serialize",
    "event": "numba.core",
    "from_dtype": "numba.np.numpy_support",
    "intrinsic": "numba.core.extending",
    "ir": "llvmlite",
    "models": "numba.core.datamodel",
    "njit": "numba",
    "nrt": "numba.core.runtime",
    "overload": "numba.core.extending",
    "register_model": "numba.core.extending",
    "types": "numba.core",
}

__all__ = [
    "UNCOUNTED", "begin_compiling", "binding", "c_functions", "llvmlite_version", "new_engine",
    "numba_version", "when_compiling", *_HOMES,
]  # fmt: skip  # noqa: PLE0604

#: One thread at a time imports Numba or its C modules.
_lock = threading.RLock()

#: Functions to call before the first function is compiled, and whether they were called.
_to_begin_with: list[Callable[[], object]] = []
_has_begun = False

#: One thread calls them; others wait until all are called.
_beginning = threading.RLock()


def __getattr__(name: str) -> Any:
    """Import a name on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, there = _HOMES[name].partition(":")
    with _lock:
        value = getattr(importlib.import_module(module), there or name)
        globals()[name] = value
    return value


def when_compiling(begin: Callable[[], object]) -> Callable[[], object]:
    """Decorate a function that is called before the first function is compiled."""
    with _lock:
        is_late = _has_begun
        if not is_late and begin not in _to_begin_with:
            _to_begin_with.append(begin)
    if is_late:
        begin()
    return begin


def begin_compiling() -> None:
    """Call all functions that `when_compiling` decorates, unless that has been done.

    They import modules. `_lock` is free meanwhile, because another thread that imports one of these
    modules takes it in `when_compiling`.
    """
    global _has_begun
    with _beginning:
        while not _has_begun:
            with _lock:
                if not _to_begin_with:
                    _has_begun = True
                    return
                begin = _to_begin_with.pop(0)
            try:
                begin()
            except BaseException:
                # It may have been interrupted. The next function to be compiled needs it.
                with _lock:
                    _to_begin_with.insert(0, begin)
                    _has_begun = False
                raise


# --------------------------------------------------------------------------------------------------
# Without importing Numba.


def numba_version() -> str:
    """Return the file that states Numba's version, or the version if there is no such file."""
    try:
        return (_folder() / "_version.py").read_text()
    except OSError:
        return importlib.import_module("numba").__version__


def _folder() -> Path:
    spec = find_spec("numba")
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError("No module named 'numba'", name="numba")
    return Path(spec.submodule_search_locations[0])


#: C modules: functions of addresses; conversions of arguments; allocation of arrays.
_C_MODULES = "numba._dynfunc", "numba._helperlib", "numba.core.runtime._nrt_python"

#: Compiled code calls this to unpickle constants, such as types of arrays that it returns. The
#: function of Numba's C module that has this name would import Numba.
_UNPICKLE = """
declare ptr @PyBytes_FromStringAndSize(ptr, i64)
declare ptr @PyObject_CallFunctionObjArgs(ptr, ...)
declare void @Py_DecRef(ptr)
define ptr @numba_unpickle(ptr %data, i32 %size, ptr %digest) {{
    %long = sext i32 %size to i64
    %content = call ptr @PyBytes_FromStringAndSize(ptr %data, i64 %long)
    %object = call ptr (ptr, ...) @PyObject_CallFunctionObjArgs(
        ptr inttoptr (i64 {} to ptr), ptr %content, ptr null)
    call void @Py_DecRef(ptr %content)
    ret ptr %object
}}
"""

#: Compiled code borrows the objects, which are therefore kept.
_unpickled = functools.cache(pickle.loads)


@functools.cache
def c_functions() -> ModuleType | None:
    """Register the C functions that compiled code calls, as Numba does when it starts.

    Returns
    -------
    functions : module or None
        The C module that makes Python functions of addresses, and the environments of their
        constants; None if Numba has other C modules than expected.
    """
    try:
        with _lock:
            functions, helpers, arrays = map(_c_module, _C_MODULES)
        of_helpers = {**helpers.c_helpers, **functions.c_helpers}
        symbols = {f"numba_{name}": address for name, address in of_helpers.items()}
        for name, address in arrays.c_helpers.items():
            symbols[name if name.startswith("_") else f"NRT_{name}"] = address
    except (AttributeError, ImportError, TypeError):
        return None
    symbols["_Py_NoneStruct"] = id(None)
    for kind in vars(builtins).values():
        if isinstance(kind, type) and issubclass(kind, BaseException):
            symbols[f"PyExc_{kind.__name__}"] = id(kind)
    symbols["numba_unpickle"] = _unpickling_engine().get_function_address("numba_unpickle")
    for name, address in symbols.items():
        binding.add_symbol(name, address)
    return functions


@functools.cache
def _unpickling_engine() -> binding.ExecutionEngine:
    return new_engine(_UNPICKLE.format(id(_unpickled)))


def new_engine(assembly: str = "") -> binding.ExecutionEngine:
    """Return an engine of LLVM for code of this process."""
    return binding.create_mcjit_compiler(binding.parse_assembly(assembly), _machine())


@functools.cache
def _machine() -> binding.TargetMachine:
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    # As Numba creates its own.
    target = binding.Target.from_default_triple()
    reloc = "static" if target.name.startswith("x86") else "default"
    return target.create_target_machine(reloc=reloc, codemodel="jitdefault")


def _c_module(name: str) -> ModuleType:
    if name in sys.modules:
        return sys.modules[name]
    if "numba" in sys.modules:
        return importlib.import_module(name)
    folder = _folder().joinpath(*name.split(".")[1:-1])
    spec = PathFinder.find_spec(name, [str(folder)])
    if not isinstance(spec, ModuleSpec) or spec.loader is None:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    sys.modules[name] = module
    return module
