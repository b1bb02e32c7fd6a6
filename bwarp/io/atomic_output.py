"""Outputs that appear under their final name only when they are complete.

A file is written beside its final path under a private name and renamed over it at the end.
A killed run leaves at most a hidden `.NAME.PID.part`, which the next run of
the same output removes once its process is gone. Until it is complete nobody else may read it.
"""

import errno
import io
import os
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO

from deflate import gzip_compress

from bwarp.errors import InputError, UsageError
from bwarp.io.standard_streams import flush_standard_output, standard_output
from bwarp.runtime.signals import naming_outputs, not_ended, undone_if_ended

__all__ = [
    "atomic_file",
    "atomic_files",
    "check_writable",
    "is_standard_output",
    "part_folder",
    "private_folder",
    "real_path",
    "refuse_folder",
    "usual_mode",
]


_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


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

    def remove_parts() -> None:
        for part, _ in parts:
            part.unlink(missing_ok=True)

    with undone_if_ended(remove_parts), _full_disk_named(paths[0] if paths else ""):
        try:
            with ExitStack() as stack:
                yield [stack.enter_context(_private_file(path, mode, parts)) for path in paths]
            with naming_outputs():
                for part, path in parts:
                    part.chmod(usual_mode(0o666))
                    os.replace(part, path)
        finally:
            remove_parts()


@contextmanager
def _full_disk_named(path: str | os.PathLike, part: Path | None = None) -> Iterator[None]:
    """Name the output if there is no room for it, not a file in its private folder `part`.

    The error of a write names no file.
    """
    try:
        yield
    except OSError as error:
        inside = part and isinstance(error.filename, str)
        inside = inside and Path(error.filename).absolute().is_relative_to(part.absolute())
        if (error.filename is None or inside) and error.errno in _NO_ROOM:
            error.filename = "standard output" if is_standard_output(path) else str(path)
        raise


@contextmanager
def _private_file(
    path: str | os.PathLike, mode: str, parts: list[tuple[Path, Path]]
) -> Iterator[IO]:
    """A file beside its final path, added to `parts`; a pipe or a device as it is."""
    if is_standard_output(path):
        yield standard_output(mode)
        flush_standard_output()
        return
    compression = "gz" if Path(path).suffix == ".gz" else None
    refuse_folder(path)
    path = real_path(path)
    if path.exists() and not path.is_file():
        with _open(path, mode, compression) as file:
            yield file
        return
    part = _part_path(path)
    with not_ended():
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
def private_folder(path: str | os.PathLike) -> Iterator[Path]:
    """Yield a folder beside the output `path` for work files; it goes when the block ends."""
    refuse_folder(path)
    path = real_path(path)
    if path.exists() and not path.is_file():
        raise UsageError(f"{path}: is a pipe or a device; give the name of a file to write")
    with part_folder(path) as part:
        yield part


@contextmanager
def part_folder(path: Path) -> Iterator[Path]:
    """Yield a folder beside a real path that nobody else can read; it goes when the block ends."""
    part = _part_path(path)

    def remove() -> None:
        # Where threads still run, they find no folder any more to make a file in.
        gone = part.with_suffix(".gone")
        with suppress(FileNotFoundError):
            os.replace(part, gone)
        shutil.rmtree(gone, ignore_errors=True)

    with undone_if_ended(remove), _full_disk_named(path, part):
        with not_ended():
            part.mkdir(mode=0o700)
        try:
            yield part
        finally:
            remove()


def is_standard_output(path: str | os.PathLike) -> bool:
    """Whether a path is ``-``, or what the system calls standard output.

    To open that by its name would begin the file anew to which a shell appends it.
    """
    return str(path) in ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


def refuse_folder(path: str | os.PathLike) -> None:
    """Refuse a folder, or what is written like one, where a file is to be."""
    if os.path.isdir(path) or str(path).endswith("/"):
        raise UsageError(f"{path}: is a folder; give the name of a file to write")


def usual_mode(most: int) -> int:
    """The permissions that the user's mask leaves of those that a new file or folder may have."""
    mask = os.umask(0o077)
    os.umask(mask)
    return most & ~mask


def real_path(path: str | os.PathLike) -> Path:
    """The path that a link leads to, so that the link stays and what it names is written."""
    has_name = Path(path).name not in ("", "..")
    return Path(path) if has_name and not os.path.islink(path) else Path(os.path.realpath(path))


def check_writable(path: str | os.PathLike) -> None:
    """Refuse the path of an output in a missing folder, or where this process may not write."""
    folder = Path(path).parent
    for above in (folder, *folder.parents):
        if above.exists():
            break
    if not above.is_dir():
        raise UsageError(f"{above}: is a file, so nothing can be written below it")
    if above != folder:
        raise UsageError(
            f"{path}: the folder {folder} does not exist: create it, or choose another output"
        )
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{folder}: no permission to write here: choose another output")


def _part_path(path: Path) -> Path:
    """The private name beside `path`, after checking that it can be written and tidying up."""
    check_writable(path)
    _remove_leftovers(path)
    return path.with_name(f".{path.name}.{os.getpid()}.part")


def _remove_leftovers(path: Path) -> None:
    """Remove what killed runs left of this output; a part whose process lives is kept.

    A folder that was moved away to be replaced comes back unless something replaced it.
    """
    name = re.compile(rf"\.{re.escape(path.name)}\.(\d+)\.(part|old|gone)")
    for entry in path.parent.iterdir():
        match = name.fullmatch(entry.name)
        if not match or _alive_elsewhere(int(match[1])):
            continue
        if match[2] == "old" and not path.exists():
            os.replace(entry, path)
        elif entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)


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
    # A killed process has its number until its parent asks how it ended, which may be never.
    try:
        state = Path(f"/proc/{process}/stat").read_bytes().rpartition(b") ")[2][:1]
    except OSError:  # it has gone meanwhile, or there is no such file system
        return True
    return state not in (b"Z", b"X")
