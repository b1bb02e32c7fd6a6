"""Functions that are compiled only to become part of others, in a process that calls none.

Numba optimises every function that another one calls by itself, and makes machine code of it and
of an entry from Python, before it does all that again with the caller, where its code is put in.
A process that compiles ahead for programs needs the last of these only: the callers' code. There
an inner function is left as Numba wrote it, and the caller is optimised as a whole.
"""

from numba.core.codegen import JITCodeLibrary
from numba.core.dispatcher import _FunctionCompiler
from numba.core.registry import cpu_target

__all__ = ["leave_inner_functions_to_callers", "is_inner"]


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
