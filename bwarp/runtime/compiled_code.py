"""Where compiled functions are kept between runs: a folder for every state of their sources.

Numba keeps a compiled function until its own file changes. It does not see that one which was
compiled into it, from another file, has changed, and would go on running the old one. So the
folder's name holds a digest of the module and of all that it imports of this package:

    bwarp/__pycache__/compiled/cpu-<digest of a module and its imports>/    functions for the CPU
                               cuda-<digest of the whole package>/          kernels

                               complete-<digest of all>/               says that nothing is missing

An edit compiles again what could have changed and nothing else. The package says so to Numba as
soon as Numba is imported, which it does not do itself: a list of commands does not wait for it.
Where the package cannot be written, as in a container, the folders are in the user's cache, and
begin as copies of those beside the package.
"""

import contextlib
import fcntl
import functools
import hashlib
import importlib.util
import os
import shutil
import sys
import time
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import TYPE_CHECKING

from bwarp.runtime.source_digest import program_digest

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "is_complete",
    "keep_compiled_code",
    "mark_complete",
    "read_only",
    "save_one_at_a_time",
]

_PACKAGE = Path(__file__).parent.parent

#: The module of Numba that looks for a folder to keep functions in.
_CACHING = "numba.core.caching"

_BESIDE = _PACKAGE / "__pycache__" / "compiled"

#: Folders that no run has used for so many seconds are removed: a week.
_UNUSED = 7 * 86400

#: A folder's time says when it was used, to so many seconds: an hour.
_USED = 3600


class _SourcesLocator:
    """Tells Numba where to keep the functions of a file, and when they are out of date."""

    def __init__(self, line: int, digest: str, path: Path):
        self._line, self._digest, self._path = line, digest, path

    @classmethod
    def from_function(cls, function, file: str) -> "_SourcesLocator | None":
        """The locator of a function; None for one that is not of this package."""
        source = Path(file)
        if not source.is_relative_to(_PACKAGE):
            return None
        try:
            digest, path = _folder_of(source)
        except OSError:
            # Nowhere to keep anything: Numba falls back on its own folders.
            return None
        return cls(function.__code__.co_firstlineno, digest, path)

    def ensure_cache_path(self) -> None:
        self._path.mkdir(parents=True, exist_ok=True)

    def get_cache_path(self) -> str:
        return str(self._path)

    def get_source_stamp(self) -> str:
        return self._digest

    def get_disambiguator(self) -> str:
        return str(self._line)


class _WhenNumbaIsImported(MetaPathFinder):
    """Waits for Numba to import its module of caches, and tells it then."""

    def find_spec(self, name, path=None, target=None):
        if name != _CACHING:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        run = spec.loader.exec_module

        def run_and_tell(module) -> None:
            run(module)
            _tell_numba(module)

        spec.loader.exec_module = run_and_tell
        return spec


def keep_compiled_code() -> None:
    """Make Numba keep the functions of this package where this module says."""
    if _CACHING in sys.modules:
        _tell_numba(sys.modules[_CACHING])
    elif not any(isinstance(finder, _WhenNumbaIsImported) for finder in sys.meta_path):
        sys.meta_path.insert(0, _WhenNumbaIsImported())


def _tell_numba(caching) -> None:
    locators = caching.CacheImpl._locator_classes
    if _SourcesLocator in locators:
        return
    locators.insert(0, _SourcesLocator)
    save_one_at_a_time(caching.IndexDataCacheFile)
    if not caching.config.CACHE_DIR:
        # Kernels are located by numba-cuda, which asks this setting only.
        folder = _parent_folder() / f"cuda-{_digest_of_package()}"
        with contextlib.suppress(OSError):  # kernels are compiled again, then
            _copy_from_beside(folder)
        caching.config.CACHE_DIR = str(folder)


def save_one_at_a_time(cache_file: type) -> None:
    """Let a process wait with saving a compiled function while another one does.

    Numba gives the function of other types the next free number. Two processes that compile at the
    same time would take the same one, and later runs be given one's code for the other's types.

    Parameters
    ----------
    cache_file : type
        Numba's ``IndexDataCacheFile``, of `numba.core.caching` or `numba.cuda.core.caching`.
    """
    save = cache_file.save
    if hasattr(save, "__wrapped__"):
        return

    @functools.wraps(save)
    def save_alone(self, key, data):
        with open(f"{self._index_path}.lock", "a") as lock:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(lock, fcntl.LOCK_EX)
            save(self, key, data)

    cache_file.save = save_alone


def read_only(array: "np.ndarray") -> "np.ndarray":
    """The same array as one that may not be written, as those of files are not.

    For a function that is given both kinds Numba would compile two.
    """
    view = array.view()
    view.setflags(write=False)
    return view


def is_complete(kind: str) -> bool:
    """Whether `mark_complete` was called with this word, and all is still there."""
    for parent in (_parent_folder(), _BESIDE):
        mark = parent / _name_of_mark(kind) / "folders"
        if mark.is_file() and all((parent / n).is_dir() for n in mark.read_text().split()):
            with contextlib.suppress(OSError):  # of what is beside the package
                _mark_used(mark.parent)
            return True
    return False


def mark_complete(kind: str) -> None:
    """Note that functions of all modules have been compiled, for this package and machine."""
    parent = _parent_folder()
    names = {f"cpu-{program_digest(source, _PACKAGE)}" for source in _PACKAGE.rglob("*.py")}
    folder = parent / _name_of_mark(kind)
    _mark_used(folder)
    there = sorted(name for name in names if (parent / name).is_dir())
    (folder / "folders").write_text("\n".join(there))


def _name_of_mark(kind: str) -> str:
    import llvmlite.binding
    import numba

    cpu = numba.config.CPU_NAME or llvmlite.binding.get_host_cpu_name()
    parts = (_digest_of_package(), numba.__version__, sys.implementation.cache_tag, cpu, kind)
    return f"complete-{hashlib.sha256(' '.join(parts).encode()).hexdigest()[:16]}"


@functools.cache
def _folder_of(source: Path) -> tuple[str, Path]:
    """The digest of a module and the folder of its functions; asked for every one of them."""
    digest = program_digest(source, _PACKAGE)
    path = _parent_folder() / f"cpu-{digest}"
    _copy_from_beside(path)
    _mark_used(path)
    return digest, path


def _parent_folder() -> Path:
    """Where the environment says, in the package's __pycache__, or in the user's cache."""
    if "NUMBA_CACHE_DIR" in os.environ:
        return Path(os.environ["NUMBA_CACHE_DIR"])
    folder = _BESIDE.parent
    if os.access(folder if folder.exists() else _PACKAGE, os.W_OK):
        return _BESIDE
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bwarp"


def _digest_of_package() -> str:
    digest = hashlib.sha256()
    for source in sorted(_PACKAGE.rglob("*.py")):
        digest.update(f"{source.relative_to(_PACKAGE)}\0".encode() + source.read_bytes())
    return digest.hexdigest()[:16]


def _copy_from_beside(folder: Path) -> None:
    """Begin a folder with what is beside the package, where that is another folder."""
    compiled = _BESIDE / folder.name
    if folder.exists() or folder.parent == _BESIDE or not compiled.is_dir():
        return
    part = folder.with_name(f".{folder.name}.{os.getpid()}")
    shutil.copytree(compiled, part)
    try:
        part.rename(folder)
    except OSError:  # another run was first
        shutil.rmtree(part)


def _mark_used(folder: Path) -> None:
    """Make the folder, or note that it is in use; a new one is a time to remove old ones."""
    now = time.time()
    if folder.exists():
        if now - folder.stat().st_mtime > _USED:
            os.utime(folder)
        return
    folder.mkdir(parents=True, exist_ok=True)
    for other in folder.parent.glob("c*-*"):
        try:
            if now - other.stat().st_mtime > _UNUSED:
                shutil.rmtree(other, ignore_errors=True)
        except OSError:
            # Another run removed it first: nothing depends on it.
            continue
