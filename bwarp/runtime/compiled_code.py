"""Where compiled code is kept between runs, and telling Numba of it.

    bwarp/__pycache__/compiled/cpu.code          functions for the CPU (`kept_functions`)
                               cuda-<digest>/    kernels, as numba-cuda keeps them

The package says so to Numba as soon as Numba is imported, which it does not do itself: a list of
commands does not wait for it. Where the package cannot be written, as in a container, code is kept
in the user's cache, and what lies beside the package is used as well.
"""

import contextlib
import fcntl
import functools
import importlib.util
import os
import shutil
import sys
import time
from importlib.abc import MetaPathFinder
from pathlib import Path
from typing import TYPE_CHECKING

from bwarp.runtime.source_digest import files_digest

if TYPE_CHECKING:
    import numpy as np

    from bwarp.runtime.kept_functions import KeptFunctions

__all__ = ["keep_compiled_code", "kept_functions", "read_only", "save_one_at_a_time"]

_PACKAGE = Path(__file__).parent.parent

#: The module of Numba that asks for what is kept of a function.
_DISPATCHER = "numba.core.dispatcher"

_BESIDE = _PACKAGE / "__pycache__" / "compiled"

#: Folders of kernels that no run has used for so many seconds are removed: a week.
_UNUSED = 7 * 86400

#: A folder's time says when it was used, to so many seconds: an hour.
_USED = 3600


class _WhenNumbaIsImported(MetaPathFinder):
    """Waits for Numba to import its module of dispatchers, and tells it then."""

    def find_spec(self, name, path=None, target=None):
        if name != _DISPATCHER:
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
    if _DISPATCHER in sys.modules:
        _tell_numba(sys.modules[_DISPATCHER])
    elif not any(isinstance(finder, _WhenNumbaIsImported) for finder in sys.meta_path):
        sys.meta_path.insert(0, _WhenNumbaIsImported())


def _tell_numba(dispatcher) -> None:
    numbas_own = dispatcher.Dispatcher.enable_caching
    if hasattr(numbas_own, "__wrapped__"):
        return

    @functools.wraps(numbas_own)
    def enable_caching(self) -> None:
        if not Path(self.py_func.__code__.co_filename).is_relative_to(_PACKAGE):
            numbas_own(self)
            return
        from bwarp.runtime.kept_functions import Overloads

        self._cache = Overloads(self.py_func, kept_functions())
        # An entry for callers in C, which there are not: a fifth of what LLVM compiles.
        self.targetoptions["no_cfunc_wrapper"] = True

    dispatcher.Dispatcher.enable_caching = enable_caching
    if not dispatcher.config.CACHE_DIR:
        # Kernels are kept by numba-cuda, which asks this setting only.
        folder = _parent_folder() / f"cuda-{files_digest(_PACKAGE)[:16]}"
        # Kernels are compiled again, or another run was first.
        with contextlib.suppress(OSError):
            _copy_from_beside(folder)
            _mark_used(folder)
        dispatcher.config.CACHE_DIR = str(folder)


@functools.cache
def kept_functions() -> "KeptFunctions":
    """What is kept of this package's functions for the CPU."""
    from bwarp.runtime.kept_functions import KeptFunctions

    folders = dict.fromkeys((_parent_folder(), _BESIDE))
    return KeptFunctions(_PACKAGE, [folder / "cpu.code" for folder in folders])


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


def _parent_folder() -> Path:
    """Where the environment says, in the package's __pycache__, or in the user's cache."""
    if "NUMBA_CACHE_DIR" in os.environ:
        return Path(os.environ["NUMBA_CACHE_DIR"])
    folder = _BESIDE.parent
    if os.access(folder if folder.exists() else _PACKAGE, os.W_OK):
        return _BESIDE
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bwarp"


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
    """Note that a folder of kernels is in use, and remove those that are not."""
    now = time.time()
    if folder.exists() and now - folder.stat().st_mtime > _USED:
        os.utime(folder)
    for other in folder.parent.glob("c*-*"):
        if other != folder and now - other.stat().st_mtime > _UNUSED:
            shutil.rmtree(other, ignore_errors=True)
