"""Where compiled functions are kept between runs: a folder for every state of the code.

Numba keeps a compiled function until its own file changes. It does not see that one which was
compiled into it, from another file, has changed, and would go on running the old one. So the
folder's name holds a digest of the whole package: after an update or an edit everything is
compiled once more.
"""

import hashlib
import os
import shutil
import sys
import time
from pathlib import Path

__all__ = ["keep_compiled_code"]

_DAY = 86400


def keep_compiled_code(package: Path) -> None:
    """Choose the folder for compiled functions, unless the environment names one.

    It lies in the package's __pycache__, or where that cannot be written in the user's cache.
    """
    if "NUMBA_CACHE_DIR" in os.environ:
        return
    folder = package / "__pycache__"
    if not os.access(folder if folder.exists() else package, os.W_OK):
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bwarp"
    folder /= f"numba-{_state_of(package)}"
    if not folder.exists():
        _remove_unused(folder.parent)
    os.environ["NUMBA_CACHE_DIR"] = str(folder)
    if "numba" in sys.modules:
        sys.modules["numba"].config.CACHE_DIR = str(folder)


def _state_of(package: Path) -> str:
    """A digest of the names, sizes and times of the package's sources."""
    digest = hashlib.sha256()
    for source in sorted(package.rglob("*.py")):
        status = source.stat()
        digest.update(f"{source}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:16]


def _remove_unused(parent: Path) -> None:
    """Remove folders of other states of the code that no run has written to for a day."""
    for folder in parent.glob("numba-*"):
        try:
            if time.time() - folder.stat().st_mtime > _DAY:
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            # Another run removed it first, or it is not ours: nothing depends on it.
            continue
