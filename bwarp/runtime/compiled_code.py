"""Store compiled code between runs, one file per function and argument types.

The name of a file is a digest of everything that determines the code: the module of the function
and the modules of this package that it imports, the types, the processor, and the versions of Numba
and Python. Therefore an edit recompiles only what it may have changed, files are never modified,
and programs that compile the same function at the same time write identical files.

    bwarp/__pycache__/compiled/    next to the package, if writable
    ~/.cache/bwarp/                otherwise, as in a container ($XDG_CACHE_HOME)
    $NUMBA_CACHE_DIR/bwarp/        if this variable is set

Because stored code is executed, it is read and written only where nobody except the user and root
can write. Numba's own cache does not check that. It also reuses a function when another one
compiled into it has changed, and mixes up types when two programs save a function at the same time.
"""

import contextlib
import functools
import hashlib
import json
import os
import pickle
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from bwarp.runtime import compiler
from bwarp.runtime.lazy_function import LazyFunction
from bwarp.runtime.linking import MachineCode, linked
from bwarp.runtime.source_digest import files_digest, program_digest
from bwarp.runtime.target import cpu_name, target_words
from bwarp.runtime.type_text import field_names, text_of_types

_PACKAGE = Path(__file__).parent.parent

_BESIDE = _PACKAGE / "__pycache__" / "compiled"

#: In seconds: the time of a file is that of its last use, to a day; unused for 30 days, it is
#: removed.
_DAY, _UNUSED = 86_400, 30 * 86_400


def compiled(function: Callable | None = None, *, counted: bool = True, **options):
    """Compile a function in Numba's nopython mode, without the GIL, and store its code.

    It is compiled when it is first called with arguments of new types; a call of stored code does
    not import Numba.

    Parameters
    ----------
    function : callable
        The Python function.
    counted : bool
        Whether references to arrays are counted. A function that neither allocates nor returns
        arrays does not need it, and compiles in half the time without.
    **options
        Options of `numba.njit`.
    """
    if function is None:
        return functools.partial(compiled, counted=counted, **options)
    if not counted:
        options |= compiler.UNCOUNTED
    # The entry point for C callers, which is not used, would be a fifth of the compiled code.
    options = {"nogil": True, "no_cfunc_wrapper": True} | options
    return LazyFunction(function, options, KeptFunction(function))


def inner(function: Callable | None = None, **options):
    """Compile a function only as a part of the functions that call it and whose code is stored.

    Parameters
    ----------
    function : callable
        The Python function.
    **options
        Options of `numba.njit`, such as ``forceinline=True``.
    """
    if function is None:
        return functools.partial(inner, **options)
    return LazyFunction(function, options)


def read_only(array: np.ndarray) -> np.ndarray:
    """Return the same array as read-only, like arrays mapped from files.

    A function that gets both kinds would be compiled twice.
    """
    view = array.view()
    view.setflags(write=False)
    return view


class KeptCode:
    """The stored code of one function, with the interface of Numba's cache for its dispatchers.

    Parameters
    ----------
    function : callable
        The Python function.
    version : str
        Version of the compiler, in addition to those of Numba and LLVM.
    reduced : callable
        Convert a compile result to bytes, or return None if it cannot be stored.
    rebuilt : callable
        Convert bytes to a compile result, given the compiler's context and the bytes.
    """

    def __init__(self, function: Callable, version: str, reduced: Callable, rebuilt: Callable):
        self.function, self._version = function, version
        self._reduced, self._rebuilt = reduced, rebuilt

    @property
    def cache_path(self) -> str:
        return str(code_folder())

    def load_overload(self, signature, context):
        content = kept(*self._words(signature, context.codegen()))
        return None if content is None else self._rebuilt(context, content)

    def save_overload(self, signature, result) -> None:
        content = self._reduced(result)
        if content is not None:
            keep(content, *self._words(signature, result.codegen))

    def flush(self) -> None:
        """Do nothing; Numba calls this before it recompiles functions in memory."""

    def _words(self, signature, codegen) -> tuple[str, ...]:
        types = tuple(getattr(signature, "args", signature))
        # As JSON, because a compute capability may be a tuple of different types.
        return *self._words_of_function(), str(types), json.dumps(codegen.magic_tuple())

    def _words_of_function(self) -> tuple[str, ...]:
        code, closure = self.function.__code__, self.function.__closure__ or ()
        cells = [cell.cell_contents for cell in closure]
        return (
            f"{self.function.__name__} {self.function.__qualname__} {code.co_firstlineno}",
            self._version,
            _digest_of(code.co_filename),
            hashlib.sha256(compiler.dumps(cells) if cells else b"").hexdigest(),
        )


class KeptFunction(KeptCode):
    """The stored code of a function of the CPU, which can be called without Numba."""

    def __init__(self, function: Callable):
        super().__init__(function, "", _reduced, _rebuilt)

    def is_kept_for(self, types: str) -> bool:
        """Return whether the code for types of arguments, as text, is stored."""
        return kept(*self._words_of_types(types)) is not None

    def linked(self, types: str) -> Callable | None:
        """Return the stored code for types of arguments as a function, or None."""
        content = kept(*self._words_of_types(types))
        if content is None:
            return None
        *machine_code, _ = pickle.loads(content)
        return linked(self.function, MachineCode(*machine_code))

    def _words(self, signature, codegen) -> tuple[str, ...]:
        types = tuple(getattr(signature, "args", signature))
        try:
            return self._words_of_types(text_of_types(types))
        except ValueError:
            return self._words_of_types(str(types))

    def _words_of_types(self, types: str) -> tuple[str, ...]:
        return *self._words_of_function(), types, field_names(types), *target_words()


def _reduced(result) -> bytes | None:
    from bwarp.runtime.machine_code import reduced

    return reduced(result)


def _rebuilt(context, content: bytes):
    from bwarp.runtime.machine_code import rebuilt

    return rebuilt(context, content)


def _digest_of(source: str) -> str:
    """Return the digest of a module and all that it imports from the package."""
    return _digests().get(source) or program_digest(Path(source), _PACKAGE)


@functools.cache
def _digests() -> dict[str, str]:
    """Return the digests of all modules, stored because reading all files is slow."""
    content = kept("digests", package_state())
    if content is None:
        sources = _PACKAGE.rglob("*.py")
        content = json.dumps(
            {str(path): program_digest(path, _PACKAGE) for path in sources}
        ).encode()
        keep(content, "digests", package_state())
    return json.loads(content)


def package_state() -> str:
    """Return a digest of the times and sizes of the package's sources."""
    return files_digest(_PACKAGE)


def kept(*words: str) -> bytes | None:
    """Return what is stored under a key for these versions of Numba and Python, or None."""
    name = _name_of(words)
    contents = (_read(folder / name) for folder in _folders())
    return next((content for content in contents if content is not None), None)


def keep(content: bytes, *words: str) -> None:
    """Store bytes under a key; do nothing if that fails, for example because the disk is full."""
    if code_folder() is not None:
        with contextlib.suppress(OSError):
            _write(code_folder() / _name_of(words), content)


def remove_unused() -> None:
    """Remove files unused for 30 days, mostly code of sources that have changed since."""
    with contextlib.suppress(OSError):
        for path in code_folder().iterdir():
            if path.name[0] != "." and time.time() - path.stat().st_mtime > _UNUSED:
                path.unlink()


def _name_of(words: tuple[str, ...]) -> str:
    digest = hashlib.sha256("\0".join((*_versions(), *words)).encode()).hexdigest()
    return f"{words[0].partition(' ')[0]}-{digest[:40]}"


@functools.cache
def _versions() -> tuple[str, ...]:
    """Return the versions that code depends on, and the processor."""
    libraries = compiler.numba_version(), compiler.llvmlite_version, np.__version__
    return *libraries, sys.implementation.cache_tag, cpu_name()


def _read(path: Path) -> bytes | None:
    """Return the content of a file if it is trusted and complete."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if _distrust(status):
            return None
        if time.time() - status.st_mtime > _DAY:
            with contextlib.suppress(OSError):
                os.utime(descriptor)
        digest, content = file.read(32), file.read()
    return content if hashlib.sha256(content).digest() == digest else None


def _write(path: Path, content: bytes) -> None:
    part = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        # Only the user may write it, whatever the umask.
        with open(os.open(part, flags, 0o644), "wb") as file:
            file.write(hashlib.sha256(content).digest() + content)
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


@functools.cache
def _folders() -> tuple[Path, ...]:
    """Return the folders to search for code."""
    folders = [code_folder()]
    with contextlib.suppress(OSError):
        if not _distrust(_BESIDE.lstat()):
            folders.append(_BESIDE)
    return tuple(dict.fromkeys(filter(None, folders)))


@functools.cache
def code_folder() -> Path | None:
    """Return the folder for compiled code: the preferred one if it is safe, else one that only this
    user can write, or None if there is none.
    """
    wanted = _wanted_folder()
    problem = _problem_with(wanted, 0o755)
    if problem is None:
        return wanted
    for folder in _private_folders():
        if _problem_with(folder, 0o700) is None:
            print(f"compiled code is stored in {folder}: {wanted} {problem}", file=sys.stderr)
            return folder
    return None


def _wanted_folder() -> Path:
    if os.environ.get("NUMBA_CACHE_DIR"):
        return Path(os.environ["NUMBA_CACHE_DIR"], "bwarp").absolute()
    there = next(folder for folder in (_BESIDE, _BESIDE.parent, _PACKAGE) if folder.exists())
    return _BESIDE if os.access(there, os.W_OK) else _private_folders()[0]


def _private_folders() -> list[Path]:
    """Return the user's cache folder, and one for users without a home."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    users = [Path(cache, "bwarp")] if os.path.isabs(cache) else []
    return [*users, Path(tempfile.gettempdir(), f"bwarp-{os.geteuid()}")]


def _problem_with(folder: Path, mode: int) -> str | None:
    """Return why a folder cannot hold code, as half a sentence; create it if it is missing."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode)
        status = folder.lstat()
        problem = _distrust(status) if stat.S_ISDIR(status.st_mode) else "is not a folder"
        for parent in folder.resolve().parents:
            status = parent.stat()
            # In a folder with the sticky bit, such as /tmp, users cannot replace others' files.
            if status.st_mode & 0o002 and not status.st_mode & 0o1000:
                problem = problem or "can be replaced by others"
    except OSError as error:
        return f"cannot be used ({error.strerror})"
    if problem is None and not os.access(folder, os.W_OK):
        return "is not writable"
    return problem


def _distrust(status: os.stat_result) -> str | None:
    """Return why a file may be from another user, as half a sentence, or None."""
    if status.st_uid not in (0, os.geteuid()):
        return "belongs to another user"
    if status.st_mode & 0o022:
        return "can be written by others"
    return None
