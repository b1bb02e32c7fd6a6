"""Outputs that appear under their final name only when they are complete.

A file is written beside its final place under a private name and renamed over it at the end; the
same for a folder. A killed run leaves at most a hidden `.NAME.PID.part`, which the next run of
the same output removes once its process is gone. Until it is complete nobody else may read it.
"""

import io
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from deflate import gzip_compress

from bwarp.errors import InputError, UsageError

__all__ = ["atomic_file", "atomic_files", "atomic_folder", "check_outputs", "private_folder"]


def check_outputs(
    outputs: Iterable[str | os.PathLike | None], inputs: Iterable[str | os.PathLike | None]
) -> None:
    """Refuse an output that is an input or another output: what is there would be lost.

    Files that were not named (None) are passed over, and devices and pipes may be named again.
    """
    taken = {os.path.realpath(file) for file in inputs if file and str(file) != "-"}
    for file in filter(None, outputs):
        place = "-" if str(file) == "-" else os.path.realpath(file)
        is_special = os.path.exists(place) and not os.path.isfile(place)
        if place in taken and not is_special:
            raise UsageError(f"{file} is given twice: every file needs a name of its own")
        taken.add(place)


@contextmanager
def atomic_file(path: str | os.PathLike, mode: str = "wb") -> Iterator[IO]:
    """Open a file for writing; a name that ends in .gz is compressed, ``-`` is standard output.

    The file takes its name when the block ends well and is removed when it does not. A pipe or a
    device is written to as it is.
    """
    with atomic_files([path], mode) as (file,):
        yield file


@contextmanager
def atomic_files(paths: Sequence[str | os.PathLike], mode: str = "wb") -> Iterator[list[IO]]:
    """Open files as `atomic_file` does; none takes its name before all have been written."""
    parts: list[tuple[Path, Path]] = []
    try:
        with ExitStack() as stack:
            yield [stack.enter_context(_private_file(path, mode, parts)) for path in paths]
        for part, path in parts:
            part.chmod(_usual_mode(0o666))
            os.replace(part, path)
    finally:
        for part, _ in parts:
            part.unlink(missing_ok=True)


@contextmanager
def _private_file(
    path: str | os.PathLike, mode: str, parts: list[tuple[Path, Path]]
) -> Iterator[IO]:
    """A file beside its place, added to `parts`; what has no place of its own as it is."""
    if str(path) == "-":
        yield sys.stdout.buffer if "b" in mode else sys.stdout
        sys.stdout.flush()
        return
    compression = "gz" if Path(path).suffix == ".gz" else None
    path = _real_path(path)
    if path.is_dir():
        raise UsageError(f"{path}: is a folder; give the name of a file to write")
    if path.exists() and not path.is_file():
        with _open(path, mode, compression) as file:
            yield file
        return
    part = _part_path(path)
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    parts.append((part, path))
    with _open(part, mode, compression) as file:
        yield file


@contextmanager
def _open(path: Path, mode: str, compression: str | None) -> Iterator[IO]:
    if compression is None:
        with open(path, mode) as file:
            yield file
        return
    with open(path, "wb") as file:
        members = _GzipMembers(file)
        writer = members if "b" in mode else io.TextIOWrapper(members)
        yield writer
        writer.flush()
        members.write_last()


class _GzipMembers(io.BufferedIOBase):
    """Compresses what it is given as gzip members, each of as many bytes, whatever sizes come in.

    So the file depends on nothing but what is written to it. igzip is twice as fast, but what it
    makes of some bytes depends on those that it compressed before, and how they were handed to it.
    """

    MEMBER_BYTES = 1 << 20
    LEVEL = 1

    def __init__(self, file: IO[bytes]):
        self._file = file
        self._waiting = bytearray()
        self._is_empty = True

    def writable(self) -> bool:
        return True

    def write(self, data) -> int:
        data = memoryview(data).cast("B")
        self._waiting.extend(data)
        whole = len(self._waiting) // self.MEMBER_BYTES * self.MEMBER_BYTES
        for start in range(0, whole, self.MEMBER_BYTES):
            self._write_member(self._waiting[start : start + self.MEMBER_BYTES])
        del self._waiting[:whole]
        return len(data)

    def write_last(self) -> None:
        """Write the rest; a file without any byte has an empty member."""
        if self._waiting or self._is_empty:
            self._write_member(self._waiting)
        self._waiting = bytearray()

    def _write_member(self, data: bytearray) -> None:
        self._file.write(gzip_compress(data, self.LEVEL))
        self._is_empty = False


@contextmanager
def atomic_folder(path: str | os.PathLike, replaces: str = "index.json") -> Iterator[Path]:
    """Yield a private folder to fill; it becomes `path` when the block ends well.

    An older folder of that name is replaced only then, and only if it is empty or holds the file
    `replaces`: a mistyped name must not cost anybody a folder of something else.
    """
    path = _real_path(path)
    if path.is_dir():
        if any(path.iterdir()) and not (path / replaces).is_file():
            raise UsageError(
                f"{path}: holds other files, and no {replaces}; "
                "give the name of a new folder, or of one to replace"
            )
    elif path.exists():
        raise UsageError(f"{path}: is a file; give the name of a folder to create")
    part = _part_path(path)
    part.mkdir(mode=0o700)
    try:
        yield part
        part.chmod(_usual_mode(0o777))
        old = part.with_suffix(".old")
        if path.exists():
            os.replace(path, old)
        os.replace(part, path)
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(part, ignore_errors=True)


@contextmanager
def private_folder(path: str | os.PathLike) -> Iterator[Path]:
    """Yield a folder beside the output `path` for work files; it goes when the block ends."""
    path = _real_path(path)
    if path.is_dir():
        raise UsageError(f"{path}: is a folder; give the name of a file to write")
    part = _part_path(path)
    part.mkdir(mode=0o700)
    try:
        yield part
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _usual_mode(most: int) -> int:
    """The permissions that the user's mask leaves of those that a new file or folder may have."""
    mask = os.umask(0o077)
    os.umask(mask)
    return most & ~mask


def _real_path(path: str | os.PathLike) -> Path:
    """The path that a link leads to, so that the link stays and what it names is written."""
    has_name = Path(path).name not in ("", "..")
    return Path(path) if has_name and not os.path.islink(path) else Path(os.path.realpath(path))


def _part_path(path: Path) -> Path:
    """The private name beside `path`, after checking that it can be written and tidying up."""
    folder = path.parent
    for above in (folder, *folder.parents):
        if above.exists() and not above.is_dir():
            raise UsageError(f"{above}: is a file, so nothing can be written below it")
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{folder}: no permission to write here: choose another output")
    _remove_leftovers(path)
    return path.with_name(f".{path.name}.{os.getpid()}.part")


def _remove_leftovers(path: Path) -> None:
    """Remove what killed runs left of this output; a part whose process lives is kept."""
    name = re.compile(rf"\.{re.escape(path.name)}\.(\d+)\.(part|old)")
    for entry in path.parent.iterdir():
        match = name.fullmatch(entry.name)
        if match and not _alive_elsewhere(int(match[1])):
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink(missing_ok=True)


def _alive_elsewhere(process: int) -> bool:
    # In a container the process that was killed may well have had our number.
    if process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
