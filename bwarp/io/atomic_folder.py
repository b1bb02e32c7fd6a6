"""A folder of output that appears when it is complete, and replaces nothing but its own kind.

Replacing a folder removes what is in it, so it is done only where every file in it is one that the
program itself makes: a mistyped name must not delete anything else. Files that are added later come
one by one, and last the one that speaks of them. Nobody else who writes a folder of that name does
so meanwhile. Where the disk can, a folder and the one that
replaces it change names at one moment: who opens it by its name finds one of them.
"""

import ctypes
import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from bwarp.errors import InputError, UsageError
from bwarp.io.atomic_output import part_folder, real_path, usual_mode
from bwarp.runtime.signals import naming_outputs

__all__ = ["added_to_folder", "atomic_folder", "exchange"]

#: Snakemake leaves this file in the folders that rules make.
_SNAKEMAKE = ".snakemake_timestamp"

#: Of renameat2(2): AT_FDCWD and RENAME_EXCHANGE.
_HERE, _EXCHANGE = -100, 2


@contextmanager
def atomic_folder(path: str | os.PathLike, own: Sequence[str]) -> Iterator[Path]:
    """Yield a private folder to fill; it becomes `path` when the block ends well.

    Parameters
    ----------
    path : path
        An older folder of that name is replaced, and only when the block has ended well.
    own : sequence of str
        The names of all files that such a folder may hold. By the first one it is known: a folder
        that has files and not this one is of another kind.

    Raises
    ------
    UsageError
        Where `path` cannot be replaced or is not of this kind.
    """
    path = real_path(path)
    _check(path, own)
    with part_folder(path) as part:
        yield part
        part.chmod(usual_mode(0o777))
        old = part.with_suffix(".old")
        with _locked(path), naming_outputs():
            # Making an index takes hours, in which somebody may have put a file there.
            _check(path, own)
            if path.exists() and exchange(part, path):
                os.replace(part, old)
            else:
                if path.exists():
                    os.replace(path, old)
                os.replace(part, path)
            _remove_own(old, own)


@contextmanager
def added_to_folder(
    path: str | os.PathLike, last: str, check: Callable[[], None]
) -> Iterator[Path]:
    """Yield a private folder to fill; its files go into the folder `path` when the block ends well.

    Parameters
    ----------
    path : path
        A folder that is there. Files of the same names are replaced, and no other is touched.
    last : str
        The file that goes there last: it tells which of the others count.
    check : function
        Called before the files are moved, while nobody else changes the folder. It raises where
        the folder is no more what the files were made for, and the folder stays as it is.
    """
    path = real_path(path)
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise InputError(f"{path}: no permission to write in this folder")
    with part_folder(path) as part:
        yield part
        with _locked(path), naming_outputs():
            check()
            for name in sorted(os.listdir(part), key=lambda name: (name == last, name)):
                os.replace(part / name, path / name)


def exchange(one: Path, other: Path) -> bool:
    """Give each of two folders the other's name, at one moment; whether the disk can do that."""
    swap = getattr(ctypes.CDLL(None), "renameat2", None)
    return swap is not None and not swap(
        _HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE
    )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Wait until nobody else changes a folder, and let nobody do so until the block ends.

    The lock is a file beside the folder, for the folder itself may be replaced. A disk without
    locks has none.
    """
    name = path.with_name(f".{path.name}.lock")
    while True:
        lock = os.open(name, os.O_RDWR | os.O_CREAT, 0o666)
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        # Whoever had the lock before has removed its file, and others may have made a new one.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), os.stat(name)):
                break
        os.close(lock)
    try:
        yield
    finally:
        name.unlink(missing_ok=True)
        with suppress(OSError):
            # To close it is not enough where this process was forked meanwhile.
            fcntl.flock(lock, fcntl.LOCK_UN)
        os.close(lock)


def _check(path: Path, own: Sequence[str]) -> None:
    """Refuse a path that is no folder to replace."""
    if not path.exists():
        return
    if not path.is_dir():
        raise UsageError(f"{path}: is a file; give the name of a folder to create")
    if os.path.samefile(path, "."):
        raise UsageError(f"{path}: is the folder you are in: give the name of a folder in it")
    if os.path.ismount(path):
        raise UsageError(f"{path}: is where a disk is mounted: give the name of a folder in it")
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise InputError(f"{path}: no permission to replace this folder: choose another output")
    found = sorted(set(os.listdir(path)) - {_SNAKEMAKE})
    if found and not (path / own[0]).is_file():
        raise UsageError(
            f"{path}: holds other files, and no {own[0]}; "
            "give the name of a new folder, or of one to replace"
        )
    for name in found:
        if name not in own or (path / name).is_dir():
            raise UsageError(
                f"{path}: holds {name}, which was not made with the rest and would be lost: "
                "move it away, or give the name of a new folder"
            )


def _remove_own(folder: Path, own: Sequence[str]) -> None:
    """Remove a folder and the files in it that are ours; with any other file it stays."""
    for name in (*own, _SNAKEMAKE):
        with suppress(OSError):
            (folder / name).unlink()
    with suppress(OSError):
        folder.rmdir()
