"""Convert compiled CPU functions to bytes and back; only programs that compile import this.

The bytes hold a function twice: as machine code, which programs call without importing Numba
(`bwarp.runtime.linking`), and as the data that Numba needs to compile its callers. The module
also skips machine code of inner functions when compiling ahead.
"""

import pickle

from bwarp.runtime.compiler import (
    CompileResult,
    FunctionCompiler,
    JITCodeLibrary,
    cpu_target,
    dumps,
)
from bwarp.runtime.linking import MachineCode

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
    (name, kind, (code, bitcode)), *parts = result._reduce()
    machine_code = MachineCode(
        code,
        result.fndesc.llvm_cpython_wrapper_name,
        result.fndesc.env_name,
        _environments(result, parts[-1]),
        [one.name for one in library._final_module.functions if one.is_declaration],
    )
    # The machine code is not stored twice.
    return pickle.dumps((*machine_code, dumps(((name, kind, (None, bitcode)), *parts))))


def _environments(result: CompileResult, inner) -> bytes:
    """Return the constants of all environments, or no bytes if only Numba can load them."""
    found = {one.env_name: list(one.consts) for one in (*inner, result.environment)}
    try:
        return b"" if result.reload_init or result.objectmode else pickle.dumps([*found.items()])
    except (AttributeError, TypeError, pickle.PicklingError):
        return b""


def rebuilt(context, content: bytes) -> CompileResult:
    """Convert the bytes of `reduced` to a compile result."""
    *machine_code, whole = pickle.loads(content)
    context.refresh()
    (name, kind, (_, bitcode)), *parts = pickle.loads(whole)
    return CompileResult._rebuild(context, (name, kind, (machine_code[0], bitcode)), *parts)
