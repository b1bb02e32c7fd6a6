"""Functions are compiled once: their code is kept between runs, a file per function and types.

A file is named by a digest of all that decides about the code: the module of the function and what
that imports of this package, the types, the processor, the versions of Numba and Python. So an edit
compiles again what it can have changed and nothing else, no file is ever changed, and programs that
compile the same function at the same time write the same file.

    bwarp/__pycache__/compiled/    beside the package, where that can be written
    ~/.cache/bwarp/                where it cannot, as in a container ($XDG_CACHE_HOME)
    $NUMBA_CACHE_DIR/bwarp/        where this is set

The code is run, so it is read and written only where nobody but the user and root can write.
Numba's own cache does not look at that. It also goes on using a function when another one that was
compiled into it has changed, and mixes up types when two programs save one function at a time.
"""

import contextlib
import functools
import hashlib
import json
import os
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import llvmlite.binding
import numba
import numpy as np
from numba.core.serialize import dumps

from bwarp.runtime.machine_code import rebuilt, reduced
from bwarp.runtime.source_digest import files_digest, program_digest

_PACKAGE = Path(__file__).parent.parent

_BESIDE = _PACKAGE / "__pycache__" / "compiled"

#: Seconds: the time of a file says when it was last used, to a day; after 30 days it is removed.
_DAY, _UNUSED = 86_400, 30 * 86_400


def compiled(function: Callable | None = None, **options):
    """A function in Numba's nopython mode, without Python's lock, whose code is kept.

    Parameters
    ----------
    function : callable
        The Python function.
    **options
        Those of `numba.njit`.
    """
    if function is None:
        return functools.partial(compiled, **options)
    # The entry for callers in C, which there are not, would be a fifth of what LLVM compiles.
    dispatcher = numba.njit(nogil=True, no_cfunc_wrapper=True, **options)(function)
    dispatcher._cache = KeptCode(function, "", reduced, rebuilt)
    return dispatcher


def read_only(array: np.ndarray) -> np.ndarray:
    """The same array as one that may not be written, as those of files are not.

    For a function that is given both kinds Numba would compile two.
    """
    view = array.view()
    view.setflags(write=False)
    return view


class KeptCode:
    """The compiled forms of one function: the part of Numba's cache that its dispatchers call.

    Parameters
    ----------
    function : callable
        The Python function.
    version : str
        That of the compiler, beyond those of Numba and LLVM.
    reduced : callable
        Makes bytes of what was compiled, or None if it cannot be kept.
    rebuilt : callable
        Makes that of bytes again, given the compiler's context and the bytes.
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

    def is_kept(self, types, context) -> bool:
        return kept(*self._words(types, context.codegen())) is not None

    def flush(self) -> None:
        """Nothing: Numba calls this before it compiles again what is in memory."""

    def _words(self, signature, codegen) -> tuple[str, ...]:
        code, closure = self.function.__code__, self.function.__closure__ or ()
        cells = hashlib.sha256(dumps([cell.cell_contents for cell in closure]) if closure else b"")
        return (
            f"{self.function.__name__} {self.function.__qualname__} {code.co_firstlineno}",
            self._version,
            _digest_of(code.co_filename),
            cells.hexdigest(),
            str(tuple(getattr(signature, "args", signature))),
            # As JSON: a GPU's compute capability is a tuple of this kind or that.
            json.dumps(codegen.magic_tuple()),
        )


def _digest_of(source: str) -> str:
    """The digest of a module and all that it imports of the package."""
    return _digests().get(source) or program_digest(Path(source), _PACKAGE)


@functools.cache
def _digests() -> dict[str, str]:
    """Those of all modules. They are kept: reading all files takes as long as a small run."""
    content = kept("digests", package_state())
    if content is None:
        sources = _PACKAGE.rglob("*.py")
        content = json.dumps(
            {str(path): program_digest(path, _PACKAGE) for path in sources}
        ).encode()
        keep(content, "digests", package_state())
    return json.loads(content)


def package_state() -> str:
    """A digest of the times and sizes of the package's sources."""
    return files_digest(_PACKAGE)


def kept(*words: str) -> bytes | None:
    """What was kept under some words, for these versions of Numba and Python; None if nothing."""
    name = _name_of(words)
    contents = (_read(folder / name) for folder in _folders())
    return next((content for content in contents if content is not None), None)


def keep(content: bytes, *words: str) -> None:
    """Keep something under some words; if the disk is full, for example, it is not kept."""
    if code_folder() is not None:
        with contextlib.suppress(OSError):
            _write(code_folder() / _name_of(words), content)


def code_folder() -> Path | None:
    """The folder in which code is kept; None where there is no safe one that can be written."""
    return _own_folder()


def remove_unused() -> None:
    """Remove what no run has used for 30 days: mostly code of sources that have changed since."""
    with contextlib.suppress(OSError):
        for path in code_folder().iterdir():
            if path.name[0] != "." and time.time() - path.stat().st_mtime > _UNUSED:
                path.unlink()


def _name_of(words: tuple[str, ...]) -> str:
    processor = numba.config.CPU_NAME or llvmlite.binding.get_host_cpu_name()
    versions = (numba.__version__, llvmlite.__version__, sys.implementation.cache_tag)
    of_all = (*versions, processor)
    digest = hashlib.sha256("\0".join((*of_all, *words)).encode()).hexdigest()
    return f"{words[0].partition(' ')[0]}-{digest[:40]}"


def _read(path: Path) -> bytes | None:
    """The content of a file that can be trusted and is whole."""
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
        # Nobody else may write it, whatever the umask.
        with open(os.open(part, flags, 0o644), "wb") as file:
            file.write(hashlib.sha256(content).digest() + content)
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


@functools.cache
def _folders() -> tuple[Path, ...]:
    """Where code is looked for."""
    folders = [code_folder()]
    with contextlib.suppress(OSError):
        if not _distrust(_BESIDE.lstat()):
            folders.append(_BESIDE)
    return tuple(dict.fromkeys(filter(None, folders)))


@functools.cache
def _own_folder() -> Path | None:
    """The folder that is wanted, if it is safe, or one that this user alone can write."""
    wanted = _wanted_folder()
    problem = _problem_with(wanted, 0o755)
    if problem is None:
        return wanted
    for folder in _private_folders():
        if _problem_with(folder, 0o700) is None:
            print(f"compiled code is kept in {folder}: {wanted} {problem}", file=sys.stderr)
            return folder
    return None


def _wanted_folder() -> Path:
    if os.environ.get("NUMBA_CACHE_DIR"):
        return Path(os.environ["NUMBA_CACHE_DIR"], "bwarp").absolute()
    there = next(folder for folder in (_BESIDE, _BESIDE.parent, _PACKAGE) if folder.exists())
    return _BESIDE if os.access(there, os.W_OK) else _private_folders()[0]


def _private_folders() -> list[Path]:
    """The user's cache, and what is left to a user without a home."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    users = [Path(cache, "bwarp")] if os.path.isabs(cache) else []
    return [*users, Path(tempfile.gettempdir(), f"bwarp-{os.geteuid()}")]


def _problem_with(folder: Path, mode: int) -> str | None:
    """Why no code can be kept in a folder, as half a sentence. One that is not there is made."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            folder.mkdir(mode)
        status = folder.lstat()
        problem = _distrust(status) if stat.S_ISDIR(status.st_mode) else "is not a folder"
        for parent in folder.resolve().parents:
            status = parent.stat()
            # In a folder with the sticky bit, as /tmp, nobody can exchange what belongs to others.
            if status.st_mode & 0o002 and not status.st_mode & 0o1000:
                problem = problem or "could be exchanged by others, who may write where it is"
    except OSError as error:
        return f"cannot be used ({error.strerror})"
    if problem is None and not os.access(folder, os.W_OK):
        return "may not be written"
    return problem


def _distrust(status: os.stat_result) -> str | None:
    """Why something may be of others, as half a sentence; None if the user or root wrote it."""
    if status.st_uid not in (0, os.geteuid()):
        return "belongs to another user"
    if status.st_mode & 0o022:
        return "may be written by others"
    return None
