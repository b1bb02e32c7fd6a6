"""Compiled functions for the CPU as bytes, and from bytes, without setting Numba up.

Numba's own `CompileResult._rebuild` parses LLVM's code of each function and sets the compiler up,
which takes more than half a second of the start of `bwarp map`. Here LLVM's code is parsed when a
function is compiled with the loaded one, and Numba is set up where something has to be compiled.
"""

import io
import pickle
import sys
from collections.abc import Sequence

import llvmlite.binding
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompileResult
from numba.core.dispatcher import _FunctionCompiler
from numba.core.environment import Environment
from numba.core.registry import cpu_target
from numba.core.runtime import nrt
from numba.core.serialize import dumps

# --------------------------------------------------------------------------------------------------
# Functions that are compiled only to become part of others, in a process that calls none.
#
# Numba optimises every function that another one calls by itself, and makes machine code of it
# and
# of an entry from Python, before it does all that again with the caller, where its code is put
# in.
# A process that compiles ahead for programs needs the last of these only: the callers' code.
# There
# an inner function is left as Numba wrote it, and the caller is optimised as a whole.


def leave_inner_functions_to_callers() -> None:
    """From now on no function that another one calls can be called from Python.

    For a process that calls none: its calls would go astray.
    """
    codegen = cpu_target.target_context.codegen()
    codegen._library_class = _Library
    set_environment = codegen.set_env

    def set_env(name: str, environment) -> None:
        # That of an inner function is in the code of its caller.
        if codegen._engine.get_global_value_address(name):
            set_environment(name, environment)

    codegen.set_env = set_env

    def flags_of(self, flags):
        # Entries from Python and C.
        flags.no_cpython_wrapper = flags.no_cpython_wrapper or _within_another()
        flags.no_cfunc_wrapper = True
        return flags

    _FunctionCompiler._customize_flags = flags_of


def is_inner(library) -> bool:
    """Whether this is the code of a function that became part of another only."""
    return isinstance(library, _Library) and library.inner


def _within_another() -> bool:
    """Whether the types of a function are being found, which the one now compiled is called by."""
    return len(cpu_target.typing_context.callstack) > 0


class _Library(JITCodeLibrary):
    """The code of a function; of an inner one not for the processor."""

    def __init__(self, codegen, name: str):
        super().__init__(codegen, name)
        self.inner = _within_another()

    def get_pointer_to_function(self, name: str) -> int:
        return 0 if self.inner else super().get_pointer_to_function(name)

    def _optimize_final_module(self) -> None:
        if not self.inner:
            super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        if self.inner:
            self._finalize_dynamic_globals()
            self._verify_declare_only_symbols()
            self._finalized = True
        else:
            super()._finalize_final_module()


def reduced(result: CompileResult) -> bytes | None:
    """What was compiled, or None if it cannot be kept."""
    library = result.library
    if result.lifted or library.has_dynamic_globals or is_inner(library):
        return None
    called = [one.name for one in library._final_module.functions if one.is_declaration]
    return dumps((called, result._reduce()))


def rebuilt(context, content: bytes) -> CompileResult:
    """What `reduced` made bytes of."""
    try:
        called, parts = _Unpickler(io.BytesIO(content)).load()
        _make_available(called, context)
        return _loaded(context, parts)
    except (AttributeError, TypeError, ValueError):
        # Another version of Numba may differ inside: take its own loader, which is slower.
        context.refresh()
        _, parts = pickle.loads(content)
        return CompileResult._rebuild(context, *parts)


class _Unpickler(pickle.Unpickler):
    """Reads what was kept, and imports nothing of Numba for what is compiled in."""

    def find_class(self, module: str, name: str):
        if (module, name) == ("numba.core.environment", "_rebuild_env"):
            return _environment
        return super().find_class(module, name)


def _environment(module: str, constants: list, name: str) -> Environment:
    """What Numba's `_rebuild_env` makes, without importing the module.

    Machine code takes nothing but constants from there. The modules of Numba's own functions, of
    NumPy's say, take a tenth of a second, and are imported where one is compiled.
    """
    made = Environment._memo.get(name)
    if made is None:
        imported = sys.modules.get(module)
        # What is compiled with this one later is kept under the module's name.
        made = Environment(vars(imported) if imported else {"__name__": module})
        made.consts[:] = constants
        made.env_name = name
        Environment._memo[name] = made
    return made


#: Names of functions in C that are known to be there.
_available: set[str] = set()


def _make_available(called: Sequence[str], context) -> None:
    """See that the functions in C which a compiled one calls are there: where not, set Numba up.

    Numba always does, for it may have to compile, and takes a sixth of a second.
    """
    missing = {name for name in called if not name.startswith("llvm.")} - _available
    if not all(map(llvmlite.binding.address_of_symbol, missing)):
        _show_runtime()
    if not all(map(llvmlite.binding.address_of_symbol, missing)):
        context.refresh()
    _available.update(missing)


def _show_runtime() -> None:
    """Show LLVM the functions in C of Numba's runtime, which count references to arrays.

    Numba's `rtsys.initialize` begins so, and compiles more of them, which takes 40 ms: machine code
    from the file has those in it. Numba calls that before it compiles.
    """
    for name, address in nrt._nrt.c_helpers.items():
        llvmlite.binding.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


class _LoadedLibrary(JITCodeLibrary):
    """Machine code from the file. LLVM's code is read where a function is compiled with it."""

    def _get_module_for_linking(self):
        if self._shared_module is None:
            self._shared_module = llvmlite.binding.parse_bitcode(self.bitcode)
            self._codegen._engine._load_defined_symbols(self._shared_module)
        return self._shared_module


def _loaded(context, reduced: tuple) -> CompileResult:
    """What `CompileResult._rebuild` makes, without reading LLVM's code of the function."""
    library_data, description, environment, signature, *rest = reduced
    object_mode, lifted, annotation, to_begin_with, environments = rest
    for begin in to_begin_with:
        begin()
    name, _, (machine_code, bitcode) = library_data
    library = _LoadedLibrary(context.codegen(), name)
    library.bitcode = bitcode
    library.enable_object_caching()
    library._set_compiled_object(machine_code)
    library._finalize_final_module()
    # The functions that Numba would have found in LLVM's code.
    library.codegen._engine._defined_symbols |= {
        description.llvm_func_name,
        description.llvm_cpython_wrapper_name,
        description.llvm_cfunc_wrapper_name,
    }
    for one in environments:
        library.codegen.set_env(one.env_name, one)
    return CompileResult(
        target_context=context,
        typing_context=context.typing_context,
        library=library,
        environment=environment,
        entry_point=context.get_executable(library, description, environment),
        fndesc=description,
        type_annotation=annotation,
        signature=signature,
        objectmode=object_mode,
        lifted=lifted,
        typing_error=None,
        call_helper=None,
        metadata=None,
        reload_init=to_begin_with,
        referenced_envs=environments,
    )
