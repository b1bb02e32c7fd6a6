"""Outputs that appear under their final name only when they are complete.

A file is written beside its final place under a private name and renamed over it at the end; the
same for a folder. A killed run leaves at most a hidden `.NAME.PID.part`, which the next run of
the same output removes once its process is gone.
"""

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from xopen import xopen

from bwarp.errors import InputError, UsageError

__all__ = ["atomic_file", "atomic_folder"]


@contextmanager
def atomic_file(path: str | os.PathLike, mode: str = "wb") -> Iterator[IO]:
    """Open a file for writing; a name that ends in .gz is compressed, ``-`` is standard output.

    The file takes its name when the block ends well and is removed when it does not.
    """
    if str(path) == "-":
        import sys

        yield sys.stdout.buffer if "b" in mode else sys.stdout
        sys.stdout.flush()
        return
    path = Path(path)
    part = _part_path(path)
    try:
        with xopen(part, mode, threads=0, format="gz" if path.suffix == ".gz" else "raw") as file:
            yield file
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: str | os.PathLike) -> Iterator[Path]:
    """Yield a private folder to fill; it becomes `path` when the block ends well.

    An older folder of that name is replaced only then.
    """
    path = Path(path)
    if path.is_file():
        raise UsageError(f"{path}: is a file; give the name of a folder to create")
    part = _part_path(path)
    part.mkdir(mode=0o777)
    try:
        yield part
        old = _part_path(path, "old")
        if path.exists():
            os.replace(path, old)
        os.replace(part, path)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _part_path(path: Path, suffix: str = "part") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise InputError(f"{path.parent}: no permission to write here: choose another output")
    _remove_leftovers(path)
    return path.with_name(f".{path.name}.{os.getpid()}.{suffix}")


def _remove_leftovers(path: Path) -> None:
    """Remove what killed runs left of this output; a part whose process lives is kept."""
    name = re.compile(rf"\.{re.escape(path.name)}\.(\d+)\.(part|old)")
    for entry in path.parent.iterdir():
        match = name.fullmatch(entry.name)
        if match and not _alive(int(match[1])):
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink(missing_ok=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
