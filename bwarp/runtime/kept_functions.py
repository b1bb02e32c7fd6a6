"""Compiled functions for the CPU, kept between runs in one file (`bwarp.runtime.code_file`).

Numba's own cache keeps a function until its own file changes: it does not see that one which was
compiled into it, from another file, has changed, and would go on running the old one. It also
takes a folder with two files for each function, reads LLVM's code of it beside the machine's, and
loads Numba's compiler first. So this is used instead for the functions of this package: the
key of a function holds a digest of its module and of all that the module imports of this package.
An edit compiles again what could have changed and nothing else.
"""

import functools
import hashlib
import io
import json
import pickle
import sys
from collections.abc import Sequence
from pathlib import Path

import llvmlite.binding
import numba
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompileResult
from numba.core.environment import Environment
from numba.core.runtime import nrt
from numba.core.serialize import dumps

from bwarp.runtime.code_file import CodeFile
from bwarp.runtime.inner_functions import is_inner
from bwarp.runtime.source_digest import files_digest, program_digest

__all__ = ["KeptFunctions", "Overloads"]


class KeptFunctions:
    """What has been compiled of the package in a folder, in the first of some files.

    Parameters
    ----------
    package : Path
        The folder of the sources.
    files : sequence of Path
        Where to look; what is compiled is appended to the first.
    """

    def __init__(self, package: Path, files: Sequence[Path]):
        self.package = package
        self._files = [CodeFile(path) for path in files]
        self._digests: dict[str, str] | None = None

    @property
    def path(self) -> Path:
        """The file that is appended to."""
        return self._files[0].path

    @functools.cached_property
    def state(self) -> str:
        """What changes when a source of the package does."""
        return files_digest(self.package)

    def can_be_written(self) -> bool:
        """Whether anything can be kept."""
        self.put(b"yes", "can be written")
        return self._files[0].get(self._key(["can be written"])) is not None

    def get(self, *words: str) -> bytes | None:
        """What was kept under this name, for this version of Numba, Python and processor."""
        key = self._key(words)
        return next(filter(None, (file.get(key) for file in self._files)), None)

    def put(self, value: bytes, *words: str) -> None:
        self._files[0].put(self._key(words), value)

    def digest_of(self, source: str) -> str:
        """The digest of a module and all that it imports of the package.

        Those of all modules are kept, under one of the files' times and sizes: to read so many
        files would be felt at each start of a program.
        """
        if self._digests is None:
            kept = self.get("digests", self.state)
            if kept is None:
                sources = self.package.rglob("*.py")
                found = {str(path): program_digest(path, self.package) for path in sources}
                kept = json.dumps(found).encode()
                self.put(kept, "digests", self.state)
            self._digests = json.loads(kept)
        return self._digests[source]

    @staticmethod
    def _key(words: Sequence[str]) -> bytes:
        processor = numba.config.CPU_NAME or llvmlite.binding.get_host_cpu_name()
        of_all = (numba.__version__, sys.implementation.cache_tag, processor)
        return hashlib.sha256("\0".join((*of_all, *words)).encode()).digest()


class Overloads:
    """The compiled forms of one function, as Numba's dispatcher asks for them (`FunctionCache`)."""

    def __init__(self, function, kept: KeptFunctions):
        self.function, self._kept = function, kept

    @property
    def cache_path(self) -> str:
        return str(self._kept.path)

    def load_overload(self, signature, target_context) -> CompileResult | None:
        value = self._kept.get(*self._words(signature, target_context.codegen()))
        if value is None:
            return None
        try:
            called, reduced = _Unpickler(io.BytesIO(value)).load()
            _make_available(called, target_context)
            return _loaded(target_context, reduced)
        except (AttributeError, TypeError, ValueError):
            # A Numba that is otherwise inside: its own way, which takes longer.
            target_context.refresh()
            _, reduced = pickle.loads(value)
            return CompileResult._rebuild(target_context, *reduced)

    def save_overload(self, signature, compiled: CompileResult) -> None:
        if compiled.lifted or compiled.library.has_dynamic_globals or is_inner(compiled.library):
            return
        functions = compiled.library._final_module.functions
        called = [one.name for one in functions if one.is_declaration]
        value = dumps((called, compiled._reduce()))
        self._kept.put(value, *self._words(signature, compiled.codegen))

    def is_kept(self, signature, codegen) -> bool:
        return self._kept.get(*self._words(signature, codegen)) is not None

    def flush(self) -> None:
        """Forget what was compiled: nothing is, which Numba calls where it compiles again."""

    def _words(self, signature, codegen) -> tuple[str, ...]:
        code, closure = self.function.__code__, self.function.__closure__ or ()
        cells = hashlib.sha256(dumps([cell.cell_contents for cell in closure]) if closure else b"")
        return (
            self._kept.digest_of(code.co_filename),
            f"{self.function.__qualname__} {code.co_firstlineno} {cells.hexdigest()}",
            str(tuple(getattr(signature, "args", signature))),
            str(codegen.magic_tuple()),
        )


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
