"""Write outputs that appear under their final name only when they are complete.

A file is written next to its final path under a private name and renamed at the end. A killed run
leaves at most a hidden `.NAME.PID.part`, which the next run with the same output removes once its
process is gone. Until a file is complete, no other user can read it. Folders are written likewise,
and names of outputs are checked here.

If a run has several outputs, it writes them in a block of `named_together`, at whose end all get
their names:

    with named_together():
        with atomic_file(one): ...          complete as .one.PID.made
        with atomic_file(other): ...        complete as .other.PID.made
"""

import ctypes
import fcntl
import io
import os
import re
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from deflate import gzip_compress

from bwarp.errors import NO_ROOM, InputError, UsageError
from bwarp.io.standard_streams import flush_standard_output, standard_output
from bwarp.runtime.signals import naming_outputs, not_ended, undone_if_ended
from bwarp.runtime.timeline import on_timeline

#: Endings of the index of a file, which gets its name together with the file.
INDEX_ENDINGS = (".bai", ".csi", ".crai")


@contextmanager
def atomic_file(path: str | os.PathLike, mode: str = "wb", threads: int = 1) -> Iterator[IO]:
    """Open a file for writing; names that end in .gz are compressed, ``-`` is standard output.

    The file gets its name when the block ends without an error and is removed otherwise. Pipes and
    devices are written to directly. With several `threads`, they compress while the caller goes on;
    the bytes do not depend on their number.
    """
    with atomic_files([path], mode, threads) as (file,):
        yield file


def write_text(path: str | os.PathLike, text: str) -> None:
    """Write a file as `atomic_file` does."""
    with atomic_file(path, "w") as file:
        file.write(text)


@contextmanager
def atomic_files(
    paths: Sequence[str | os.PathLike], mode: str = "wb", threads: int = 1
) -> Iterator[list[IO]]:
    """Open files as `atomic_file` does; none gets its name before all are written."""
    parts: list[tuple[Path, Path]] = []

    def remove_parts() -> None:
        for part, _ in parts:
            part.unlink(missing_ok=True)

    with undone_if_ended(remove_parts), _full_disk_named(paths[0] if paths else ""):
        try:
            with ExitStack() as stack:
                opened = [_private_file(path, mode, threads, parts) for path in paths]
                yield [stack.enter_context(file) for file in opened]
            for part, _ in parts:
                part.chmod(usual_mode(0o666))
            name_outputs(parts)
        finally:
            remove_parts()


@dataclass
class _WaitingOutputs:
    """Complete outputs that do not have their final names yet.

    Attributes
    ----------
    files : list of (Path, Path)
        Each file, and its final name.
    gone : list of Path
        Old files to remove.
    folders : list of Path
        New folders for outputs.
    """

    files: list[tuple[Path, Path]] = field(default_factory=list)
    gone: list[Path] = field(default_factory=list)
    folders: list[Path] = field(default_factory=list)

    def name(self) -> None:
        """Give the files their names; if that fails, older files keep theirs."""
        named: list[Path] = []
        older: list[tuple[Path, Path]] = []
        with naming_outputs():
            try:
                for part, path in self.files:
                    if len(self.files) > 1 and path.is_file():
                        older.append((_second_name(path), path))
                    os.replace(part, path)
                    named.append(path)
                for path in self.gone:
                    path.unlink(missing_ok=True)
                self.folders.clear()
            except OSError:
                for path in named:
                    path.unlink(missing_ok=True)
                for second, path in older:
                    os.replace(second, path)
                raise
            finally:
                for second, _ in older:
                    second.unlink(missing_ok=True)

    def remove(self) -> None:
        """Remove the files without a name, and new folders that are empty."""
        for part, _ in self.files:
            part.unlink(missing_ok=True)
        for folder in self.folders:
            with suppress(OSError):
                folder.rmdir()


def _second_name(path: Path) -> Path:
    """Give a file a second, private name; rename it where disks have no hard links."""
    second = _private_name(path, "old")
    try:
        os.link(path, second)
    except OSError:
        os.replace(path, second)
    return second


#: The outputs of the current block of `named_together`.
_waiting: _WaitingOutputs | None = None


@contextmanager
def named_together() -> Iterator[None]:
    """Name all outputs of the block at its end, or none if an error or a signal ends it.

    Folders (`atomic_folder`), pipes and standard output are not delayed.
    """
    global _waiting
    outputs = _waiting = _WaitingOutputs()
    with undone_if_ended(outputs.remove):
        try:
            yield
            outputs.name()
        finally:
            _waiting = None
            outputs.remove()


def name_outputs(files: Sequence[tuple[Path, Path]], gone: Sequence[Path] = ()) -> None:
    """Give complete files their names, and remove old files: now, or as `named_together` ends."""
    if _waiting is None:
        _WaitingOutputs(list(files), list(gone)).name()
        return
    with not_ended():
        for part, path in files:
            # The private folder of the file is removed before the block ends.
            made = _private_name(path, "made")
            os.replace(part, made)
            _waiting.files.append((made, path))
        _waiting.gone += gone


def make_folder(path: str | os.PathLike) -> None:
    """Create a folder for outputs if it does not exist; it is removed if `named_together` fails."""
    with not_ended():
        if not Path(path).exists():
            Path(path).mkdir()
            if _waiting is not None:
                _waiting.folders.append(Path(path))


@contextmanager
def _full_disk_named(path: str | os.PathLike, part: Path | None = None) -> Iterator[None]:
    """Name the output if there is no room for it, not a file in its private folder `part`.

    The error of a write does not name a file.
    """
    try:
        yield
    except OSError as error:
        inside = part and isinstance(error.filename, str)
        inside = inside and Path(error.filename).absolute().is_relative_to(part.absolute())
        if (error.filename is None or inside) and error.errno in NO_ROOM:
            error.filename = "standard output" if is_standard_output(path) else str(path)
        raise


@contextmanager
def _private_file(
    path: str | os.PathLike, mode: str, threads: int, parts: list[tuple[Path, Path]]
) -> Iterator[IO]:
    """Open a file next to its final path, added to `parts`, or a pipe or device directly."""
    if is_standard_output(path):
        yield standard_output(mode)
        flush_standard_output()
        return
    compression = "gz" if Path(path).suffix == ".gz" else None
    refuse_folder(path)
    path = real_path(path)
    if path.exists() and not path.is_file():
        with _open(path, mode, compression, threads) as file:
            yield file
        return
    part = _part_path(path)
    with not_ended():
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        parts.append((part, path))
    with _open(part, mode, compression, threads) as file:
        yield file


@contextmanager
def _open(path: Path, mode: str, compression: str | None, threads: int) -> Iterator[IO]:
    if compression is None:
        with open(path, mode) as file:
            yield file
        return
    with open(path, "wb") as file, _GzipMembers(file, threads) as members:
        writer = members if "b" in mode else io.TextIOWrapper(members)
        yield writer
        writer.flush()
        members.write_last()


class _GzipMembers(io.BufferedIOBase):
    """Compresses data as gzip members of equal size, independent of the sizes of writes.

    The file therefore depends only on its content. igzip is twice as fast, but its output for the
    same bytes depends on earlier data and on the sizes of writes.
    """

    MEMBER_BYTES = 1 << 20
    LEVEL = 1

    def __init__(self, file: IO[bytes], threads: int):
        self._file = file
        self._waiting = bytearray()
        self._is_empty = True
        self._threads = threads
        self._pool = ThreadPoolExecutor(threads) if threads > 1 else None
        self._under_way: deque[Future] = deque()

    def __exit__(self, *_) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

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
        """Write the rest; an empty file has one empty member."""
        if self._waiting or self._is_empty:
            self._write_member(self._waiting)
        self._waiting = bytearray()
        while self._under_way:
            self._file.write(self._under_way.popleft().result())

    def _write_member(self, data: bytearray) -> None:
        self._is_empty = False
        if self._pool is None:
            self._file.write(_compressed(data, self.LEVEL))
            return
        self._under_way.append(self._pool.submit(_compressed, data, self.LEVEL))
        if len(self._under_way) > 2 * self._threads:
            self._file.write(self._under_way.popleft().result())


@on_timeline("compress")
def _compressed(data: bytearray, level: int) -> bytes:
    return gzip_compress(data, level)


@contextmanager
def private_folder(path: str | os.PathLike) -> Iterator[Path]:
    """Yield a folder next to the output `path` for work files; remove it when the block ends."""
    refuse_folder(path)
    path = real_path(path)
    if path.exists() and not path.is_file():
        raise UsageError(f"{path}: is a pipe or a device: give the name of a file to write")
    with part_folder(path) as part:
        yield part


@contextmanager
def part_folder(path: Path) -> Iterator[Path]:
    """Yield a private folder next to a real path; remove it when the block ends."""
    part = _part_path(path)

    def remove() -> None:
        # Running threads then find no folder in which to create files.
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
    """Return whether a path is ``-`` or one of the system's names for standard output.

    Opening by name would truncate a file to which a shell appends.
    """
    return str(path) in ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


def refuse_folder(path: str | os.PathLike) -> None:
    """Raise an error if the path of a file is a folder, or is written like one."""
    if os.path.isdir(path) or str(path).endswith("/"):
        raise UsageError(f"{path}: is a folder: give the name of a file to write")


def usual_mode(most: int) -> int:
    """Return the permissions of a new file or folder after applying the user's mask."""
    mask = os.umask(0o077)
    os.umask(mask)
    return most & ~mask


def real_path(path: str | os.PathLike) -> Path:
    """Return the target of a link, so that the link stays and its target is written."""
    has_name = Path(path).name not in ("", "..")
    return Path(path) if has_name and not os.path.islink(path) else Path(os.path.realpath(path))


def check_writable(path: str | os.PathLike) -> None:
    """Raise an error if an output's folder is missing or this process may not write there."""
    folder = Path(path).parent
    for above in (folder, *folder.parents):
        if above.exists():
            break
    if not above.is_dir():
        raise UsageError(f"{above}: is a file, not a folder: choose another output")
    if above != folder:
        raise UsageError(f"{path}: no such folder {folder}: create it, or choose another output")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise InputError(f"{folder}: no permission to write here: choose another output")


def _part_path(path: Path) -> Path:
    """Return the private name next to `path`, after checks and removing leftovers."""
    check_writable(path)
    _remove_leftovers(path)
    return _private_name(path, "part")


def _private_name(path: Path, kind: str) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.{kind}")


def _remove_leftovers(path: Path) -> None:
    """Remove what killed runs left of this output and its index; keep parts of running processes.

    A folder that was moved away to be replaced is restored unless something replaced it.
    """
    index = "|".join(map(re.escape, INDEX_ENDINGS))
    name = re.compile(rf"\.({re.escape(path.name)}(?:{index})?)\.(\d+)\.(part|made|old|gone)")
    for entry in path.parent.iterdir():
        match = name.fullmatch(entry.name)
        if not match or _alive_elsewhere(int(match[2])):
            continue
        output = path.with_name(match[1])
        if match[3] == "old" and not output.exists():
            os.replace(entry, output)
        elif entry.is_dir():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)


def _alive_elsewhere(process: int) -> bool:
    # In a container, the killed process may have had the number of this process.
    if process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    # A killed process keeps its number until its parent waits for it, which may be never.
    try:
        state = Path(f"/proc/{process}/stat").read_bytes().rpartition(b") ")[2][:1]
    except OSError:  # it has ended, or there is no such file system
        return True
    return state not in (b"Z", b"X")


# --------------------------------------------------------------------------------------------------
# Folders of output that appear when they are complete, and replace only folders of the same kind.
#
# Replacing a folder removes its contents, so it is allowed only if the program creates every file
# in it: a mistyped name must not delete anything else. Files added later are moved one by one, and
# last the one that lists them. A lock keeps other writers of a folder of that name out. If the disk
# supports it, a folder and its replacement exchange names atomically, so that readers find one of
# them.


#: Snakemake leaves this file in the folders that rules create.
_SNAKEMAKE = ".snakemake_timestamp"

#: Constants of renameat2(2): AT_FDCWD and RENAME_EXCHANGE.
_HERE, _EXCHANGE = -100, 2


@contextmanager
def atomic_folder(path: str | os.PathLike, own: Sequence[str]) -> Iterator[Path]:
    """Yield a private folder to fill; it becomes `path` when the block ends without an error.

    Parameters
    ----------
    path : path
        An older folder of that name is replaced when the block ends without an error.
    own : sequence of str
        Names of all files that such a folder may contain, such as ``"a"`` or ``"inner/a"``. The
        first identifies it: a folder with files but without this one is of another kind.

    Raises
    ------
    UsageError
        If `path` cannot be replaced or is not of this kind.
    """
    path = real_path(path)
    _check(path, own)
    with part_folder(path) as part:
        yield part
        part.chmod(usual_mode(0o777))
        old = part.with_suffix(".old")
        with _locked(path), naming_outputs():
            # Building an index takes hours, during which someone may have put a file there.
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
    """Yield a private folder to fill; its files are moved to `path` when the block ends.

    Parameters
    ----------
    path : path
        An existing folder. Files of the same names are replaced, others are unchanged.
    last : str
        The file that is moved last; it determines which of the others are valid.
    check : function
        Called before the files are moved, while the folder is locked. It raises an error if the
        folder has changed since the files were made; the folder is then unchanged.
    """
    path = real_path(path)
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise InputError(
            f"{path}: no permission to write in this folder: ask its owner, or use a folder of "
            "your own"
        )
    with part_folder(path) as part:
        yield part
        with _locked(path), naming_outputs():
            check()
            for name in sorted(os.listdir(part), key=lambda name: (name == last, name)):
                os.replace(part / name, path / name)


def exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two folders atomically; return whether the disk supports that."""
    swap = getattr(ctypes.CDLL(None), "renameat2", None)
    return swap is not None and not swap(
        _HERE, os.fsencode(one), _HERE, os.fsencode(other), _EXCHANGE
    )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Lock a folder against other writers until the block ends.

    The lock is a file next to the folder, because the folder itself may be replaced. Disks without
    locks are not locked.
    """
    name = path.with_name(f".{path.name}.lock")
    while True:
        lock = os.open(name, os.O_RDWR | os.O_CREAT, 0o666)
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX)
        # The previous holder has removed its file, and others may have created a new one.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), os.stat(name)):
                break
        os.close(lock)
    with undone_if_ended(lambda: name.unlink(missing_ok=True)):
        try:
            yield
        finally:
            name.unlink(missing_ok=True)
            with suppress(OSError):
                # Closing does not unlock if this process has forked in the meantime.
                fcntl.flock(lock, fcntl.LOCK_UN)
            os.close(lock)


def _check(path: Path, own: Sequence[str]) -> None:
    """Raise an error if the path is not a folder that may be replaced."""
    if not path.exists():
        return
    if not path.is_dir():
        raise UsageError(f"{path}: is a file: give the name of a folder to create")
    if os.path.samefile(path, "."):
        raise UsageError(f"{path}: is the current folder: give the name of a folder in it")
    if os.path.ismount(path):
        raise UsageError(f"{path}: is a mount point: give the name of a folder in it")
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        raise InputError(f"{path}: no permission to replace this folder: choose another output")
    inner = _folders_of(own)
    found = sorted(set(os.listdir(path)) - {_SNAKEMAKE})
    if found and not (path / own[0]).is_file():
        raise UsageError(
            f"{path}: contains other files and no {own[0]}: give the name of a new folder, or of "
            "one to replace"
        )
    for folder in inner.intersection(found):
        if (path / folder).is_dir():
            found.remove(folder)
            found += [f"{folder}/{name}" for name in os.listdir(path / folder)]
    for name in found:
        if name not in own or (path / name).is_dir():
            raise UsageError(
                f"{path}: contains {name}, which was not written with the rest and would be lost: "
                "move it, or give the name of a new folder"
            )


def _folders_of(own: Sequence[str]) -> set[str]:
    """Return the names of the folders in a folder with these files."""
    return {name.split("/")[0] for name in own if "/" in name}


def _remove_own(folder: Path, own: Sequence[str]) -> None:
    """Remove a folder and its own files; keep it if it contains any other file."""
    for name in (*own, _SNAKEMAKE):
        with suppress(OSError):
            (folder / name).unlink()
    for inner in (*(folder / name for name in _folders_of(own)), folder):
        with suppress(OSError):
            inner.rmdir()


# --------------------------------------------------------------------------------------------------
# Names of outputs, checked before any work: none may overwrite an input or another output.


TABLE_FORMATS = ("tsv", "bed", "parquet")


def table_format(path: str | os.PathLike) -> str:
    """Return ``"tsv"``, ``"bed"`` or ``"parquet"`` by a file's ending; ``-`` (stdout) is TSV.

    Raises
    ------
    UsageError
        If the ending is none of these.
    """
    if str(path) == "-":
        return "tsv"
    name = Path(path).name
    ending = Path(name.removesuffix(".gz")).suffix[1:]
    if ending not in TABLE_FORMATS or name.endswith(".parquet.gz"):
        raise UsageError(f"{path}: the output must end in .tsv, .bed, .tsv.gz, .bed.gz or .parquet")
    return ending


def check_outputs(
    outputs: Iterable[str | os.PathLike | None],
    inputs: Iterable[str | os.PathLike | None],
    folder: str | os.PathLike | None = None,
) -> None:
    """Raise an error if an output cannot be written, or overwrites an input or another output.

    Outputs with the same name, or inside one another, are rejected. New files may be written to a
    folder that is an input, but existing files in it may not be overwritten.

    Parameters
    ----------
    outputs : iterable of path or None
        All files that are written, including implicit ones such as the index of a BAM file; None
        for files that are not written. Devices and pipes may be repeated.
    inputs : iterable of path or None
    folder : path, optional
        An output folder.
    """
    inputs = {_resolved(file): file for file in inputs if file and str(file) != "-"}
    taken = dict(inputs)
    for file in filter(None, [*outputs, folder]):
        path = _resolved(file)
        if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
            continue
        if path in taken:
            raise UsageError(
                f"{file}: the name is used by another file of this run: choose another output"
            )
        for other_path, other in taken.items():
            if _holds(other_path, path) and (other_path not in inputs or os.path.exists(path)):
                raise UsageError(
                    f"{file}: lies in {other}, which this run uses: choose another output"
                )
            if _holds(path, other_path):
                raise UsageError(
                    f"{file}: contains {other}, which this run uses: choose another output"
                )
        taken[path] = file
        if path != "-":
            if file != folder:
                refuse_folder(file)
            check_writable(real_path(file))


def _resolved(file: str | os.PathLike) -> str:
    return "-" if is_standard_output(file) else os.path.realpath(file)


def _holds(folder: str, path: str) -> bool:
    return Path(folder) in Path(path).parents
