"""Convert compiled CPU functions to bytes and back without initialising Numba's compiler.

Numba's `CompileResult._rebuild` parses the LLVM code of each function and initialises the compiler,
which takes more than half a second of the start of `bwarp map`. Here LLVM code is parsed only when
another function is compiled with a loaded one, and Numba is initialised only to compile. The module
also skips machine code of inner functions when compiling ahead, and provides `uncounted` arrays.
"""

import io
import pickle
import sys
from collections.abc import Sequence

from bwarp.runtime.compiler import (
    CompileResult,
    Environment,
    FunctionCompiler,
    JITCodeLibrary,
    binding,
    cpu_target,
    dumps,
    nrt,
)

# --------------------------------------------------------------------------------------------------
# Inner functions in a process that only compiles.
#
# Numba optimises each function called by another one on its own, and generates machine code and a
# Python entry point for it, before it does this again for the caller with the function inlined. A
# process that compiles ahead needs only the callers' code. It leaves inner functions unoptimised,
# and optimises each caller as a whole.


def leave_inner_functions_to_callers() -> None:
    """Generate no code for functions called by others, which then cannot be called from Python.

    Only for a process that calls no such functions.
    """
    codegen = cpu_target.target_context.codegen()
    codegen._library_class = _Library
    set_environment = codegen.set_env

    def set_env(name: str, environment) -> None:
        # The variable of an inner function is in the code of its caller.
        if codegen._engine.get_global_value_address(name):
            set_environment(name, environment)

    codegen.set_env = set_env

    def flags_of(self, flags):
        # Entry points from Python and C.
        flags.no_cpython_wrapper = flags.no_cpython_wrapper or _within_another()
        flags.no_cfunc_wrapper = True
        return flags

    FunctionCompiler._customize_flags = flags_of


def is_inner(library) -> bool:
    """Return whether this is the code of a function that exists only as part of others."""
    return isinstance(library, _Library) and library.inner


def _within_another() -> bool:
    """Return whether the function now compiled is called by one whose types are being inferred."""
    return len(cpu_target.typing_context.callstack) > 0


class _Library(JITCodeLibrary):
    """The code of a function; inner functions get no machine code."""

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
    """Convert a compile result to bytes, or return None if it cannot be stored."""
    library = result.library
    if result.lifted or library.has_dynamic_globals or is_inner(library):
        return None
    called = [one.name for one in library._final_module.functions if one.is_declaration]
    return dumps((called, result._reduce()))


def rebuilt(context, content: bytes) -> CompileResult:
    """Convert the bytes of `reduced` to a compile result."""
    try:
        called, parts = _Unpickler(io.BytesIO(content)).load()
        _make_available(called, context)
        return _loaded(context, parts)
    except (AttributeError, TypeError, ValueError):
        # Unknown Numba internals: fall back to Numba's loader, which is slower.
        context.refresh()
        _, parts = pickle.loads(content)
        return CompileResult._rebuild(context, *parts)


class _Unpickler(pickle.Unpickler):
    """An unpickler that does not import modules of Numba for functions compiled in."""

    def find_class(self, module: str, name: str):
        if (module, name) == (Environment.__module__, "_rebuild_env"):
            return _environment
        return super().find_class(module, name)


def _environment(module: str, constants: list, name: str) -> Environment:
    """Return what Numba's `_rebuild_env` returns, without importing the module.

    Machine code uses only constants from it. The modules of functions of Numba and NumPy, for
    example, take a tenth of a second to import, and are needed only to compile.
    """
    made = Environment._memo.get(name)
    if made is None:
        imported = sys.modules.get(module)
        # Functions compiled with this one later are stored under the module's name.
        made = Environment(vars(imported) if imported else {"__name__": module})
        made.consts[:] = constants
        made.env_name = name
        Environment._memo[name] = made
    return made


#: Names of C functions that are known to be available.
_available: set[str] = set()


def _make_available(called: Sequence[str], context) -> None:
    """Make the C functions available that a compiled function calls; initialise Numba if necessary.

    Numba always initialises, because it may have to compile, which takes a sixth of a second.
    """
    missing = {name for name in called if not name.startswith("llvm.")} - _available
    if not all(map(binding.address_of_symbol, missing)):
        _show_runtime()
    if not all(map(binding.address_of_symbol, missing)):
        context.refresh()
    _available.update(missing)


def _show_runtime() -> None:
    """Register the C functions of Numba's runtime, which count references to arrays, with LLVM.

    Numba's `rtsys.initialize` begins like this, then compiles more functions, which takes 40 ms.
    Machine code from files contains those, and Numba calls it itself before it compiles.
    """
    for name, address in nrt._nrt.c_helpers.items():
        binding.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


class _LoadedLibrary(JITCodeLibrary):
    """Machine code from a file; its LLVM code is parsed when a function is compiled with it."""

    def _get_module_for_linking(self):
        if self._shared_module is None:
            self._shared_module = binding.parse_bitcode(self.bitcode)
            self._codegen._engine._load_defined_symbols(self._shared_module)
        return self._shared_module


def _loaded(context, reduced: tuple) -> CompileResult:
    """Return what `CompileResult._rebuild` returns, without parsing the function's LLVM code."""
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
    # Numba would find these functions in the LLVM code.
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
