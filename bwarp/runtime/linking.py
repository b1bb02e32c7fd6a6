"""Call stored machine code without importing Numba.

Numba's C modules convert arguments and results, and LLVM links the code. If a function is unusual,
or a symbol is missing, `linked` returns None, and Numba loads or compiles the function.
"""

import ctypes
import io
import pickle
import sys
import threading
from collections.abc import Callable
from typing import NamedTuple

from bwarp.runtime.compiler import binding, c_functions, new_engine

_lock = threading.Lock()

#: The engines, environments and functions of linked code, which must not be freed.
_alive: list[object] = []


class MachineCode(NamedTuple):
    """The machine code of a function.

    Attributes
    ----------
    code : bytes
        An object file.
    entry, environment : str
        Names of the function for callers in Python, and of its environment.
    environments : bytes
        Pickled names and constants of all environments, of inner functions too.
    called : list of str
        Names of the C functions it calls.
    """

    code: bytes
    entry: str
    environment: str
    environments: bytes
    called: list[str]


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str):
        if module.partition(".")[0] in ("numba", "llvmlite"):
            raise pickle.UnpicklingError(f"{module}.{name} belongs to the compiler")
        return super().find_class(module, name)


def linked(function: Callable, machine_code: MachineCode) -> Callable | None:
    """Return a function that runs the machine code of a Python function, or None."""
    try:
        environments = _Unpickler(io.BytesIO(machine_code.environments)).load()
    except (AttributeError, EOFError, ImportError, pickle.UnpicklingError):
        return None
    with _lock:
        functions = c_functions()
        # Each function has its own engine, because names of inner functions may occur twice.
        engine = new_engine()
        called = (name for name in machine_code.called if not name.startswith("llvm."))
        if functions is None or not all(map(binding.address_of_symbol, called)):
            return None
        engine.add_object_file(binding.ObjectFileRef.from_data(machine_code.code))
        engine.finalize_object()
        address = engine.get_function_address(machine_code.entry)
        made = {}
        for name, constants in environments:
            made[name] = functions.Environment(function.__globals__)
            made[name].consts[:] = constants
            variable = engine.get_global_value_address(name)
            if variable:
                ctypes.c_void_p.from_address(variable).value = id(made[name])
        if not address or machine_code.environment not in made:
            return None
        found = functions.make_function(
            sys.modules[function.__module__],
            function.__name__,
            function.__doc__ or "",
            address,
            made[machine_code.environment],
            (engine,),
        )
        _alive.append((engine, made, found))
    return found
