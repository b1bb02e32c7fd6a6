"""Chunk files: arrays passed from one program to the next, chunk by chunk, by file or pipe.

    {"format": "bwarp frames", "version": 3, "holds": "reads"}                 one line
    {"frame": "reads", "arrays": [["lengths", "<i4", [20], "|u1", 7], ...]}     one line
    the bytes of the arrays, concatenated
    ...                                                                        more such chunks
    {"end": 2}                                                                 the number of chunks

An array has a name, a type, a shape, the type of its stored numbers, and the CRC-32 of their bytes.
Numbers are stored in the narrowest type that holds them all, which saves half of a file or more.
Every line also contains its own checksum. Only one chunk is in memory at a time. Truncated or
modified files are rejected. Checksums do not prove who wrote a file: a `Column` states what an
array must be before compiled code may use it as indices.
"""

import fcntl
import io
import json
import math
import os
import stat
import zlib
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from bwarp.counted import counted
from bwarp.errors import InputError
from bwarp.io.atomic_output import atomic_file
from bwarp.io.standard_streams import standard_input
from bwarp.runtime.threads import available_threads, for_each_range
from bwarp.runtime.timeline import on_timeline

# --------------------------------------------------------------------------------------------------
# CRC-32 of files in pieces, so that many threads can check one large file.


try:
    from isal.isal_zlib import crc32
except ImportError:
    from zlib import crc32


#: Bytes of a file per checksum; the last one covers the rest.
PIECE_BYTES = 16 << 20

#: Position of the header length in an .npy file of version 1.0, after the magic string.
_LENGTH = slice(8, 10)


def text_sum(text: str) -> str:
    """Return the CRC-32 of a string as eight hexadecimal digits."""
    return f"{zlib.crc32(text.encode()):08x}"


def save_with_sums(path: Path, array: np.ndarray) -> dict:
    """Write an array as .npy; return the file's size and the sums of its pieces."""
    array = np.ascontiguousarray(array)
    with open(path, "wb") as file:
        header = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape}
        np.lib.format.write_array_header_1_0(file, header)
        file.flush()
        with open(path, "rb") as written:
            carried = written.read()
        data = memoryview(array.reshape(-1).view(np.uint8))
        sums = []
        # The header shifts the pieces by its length against the array's bytes.
        first = PIECE_BYTES - len(carried)
        file.write(data[:first])
        sums.append(crc32(data[:first], crc32(carried)))
        for start in range(first, len(data), PIECE_BYTES):
            piece = data[start : start + PIECE_BYTES]
            file.write(piece)
            sums.append(crc32(piece))
    return {"bytes": os.stat(path).st_size, "crc32": [f"{value:08x}" for value in sums]}


def map_file(path: Path, folder: int) -> np.ndarray | None:
    """Map the bytes of a file; return None if the file is missing, no bytes if it is empty.

    `folder` is a descriptor of its folder, which may have been renamed since.
    """
    try:
        with open(path.name, "rb", opener=partial(os.open, dir_fd=folder)) as file:
            return np.memmap(file, np.uint8, "r")
    except FileNotFoundError:
        return None
    except ValueError:
        return np.empty(0, np.uint8)
    except OSError as error:
        error.filename = str(path)
        raise


@on_timeline("check a file of the index")
def checked_array(
    path: Path,
    data: np.ndarray | None,
    recorded: dict,
    dtype: np.dtype,
    shape: tuple[int, ...],
    remedy: str = "build the index again",
) -> np.ndarray:
    """Return the array in a file mapped by `map_file`, after verifying all checksums.

    It must have the given type and shape. Errors end with `remedy`.
    """
    if data is None:
        raise InputError(f"{path}: the file is missing: {remedy}")
    if not data.size:
        raise InputError(f"{path}: the file is empty: {remedy}")
    if data.size != recorded["bytes"]:
        raise InputError(
            f"{path}: the file has {counted(data.size, 'byte')} instead of {recorded['bytes']:,}: "
            f"{remedy}"
        )

    def check(first: int, last: int) -> None:
        for piece in range(first, last):
            start = piece * PIECE_BYTES
            value = f"{crc32(data[start : start + PIECE_BYTES]):08x}"
            if value != recorded["crc32"][piece]:
                raise InputError(
                    f"{path}: the file is damaged between bytes {start:,} and "
                    f"{min(start + PIECE_BYTES, data.size):,}: {remedy}"
                )

    for_each_range(check, len(recorded["crc32"]), available_threads(), smallest=1)
    start = _array_start(data, dtype, shape)
    if start is None:
        raise InputError(
            f"{path}: the file does not contain an array of type {dtype.name} and shape {shape}: "
            f"{remedy}"
        )
    # Creating a view of a memmap runs Python code, a view of an array does not.
    return data[start:].view(dtype).reshape(shape).view(np.ndarray)


def _array_start(data: np.ndarray, dtype: np.dtype, shape: tuple[int, ...]) -> int | None:
    """Return the start of the numbers in an .npy file of this type and shape, or None.

    The header is a Python expression, which is compared with the expected one, never evaluated.
    """
    right = io.BytesIO()
    header = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(right, header)
    right = right.getvalue()
    start = _LENGTH.stop + int.from_bytes(data[_LENGTH].tobytes(), "little")
    found = data[:start].tobytes()
    # The padding of a header with blanks depends on the version of numpy.
    alike = found[: _LENGTH.start] == right[: _LENGTH.start]
    alike = alike and found[_LENGTH.stop :].rstrip() == right[_LENGTH.stop :].rstrip()
    fits = data.size == start + math.prod(shape) * dtype.itemsize and start % dtype.itemsize == 0
    return start if alike and fits else None


VERSION = 3
_FORMAT = "bwarp frames"
_LONGEST_LINE = 1 << 20

#: Maximum size of an array in a pipe; in files, the file size is the limit.
_MOST_BYTES = 1 << 40

#: Size of a pipe; Linux allows users this size by default.
_PIPE_BYTES = 1 << 20

#: Supported types of arrays.
_TYPES = {np.dtype(name).str for name in ("?", "u1", "i4", "u4", "i8", "u8")}

#: Types of stored numbers, if they are narrower than the type of the array.
_NARROW = tuple(np.dtype(name) for name in ("u1", "u2", "u4"))


def _narrowed(array: np.ndarray) -> np.ndarray:
    """Return the same numbers in the narrowest type that holds them all."""
    if array.dtype.itemsize == 1 or not array.size:
        return array
    # Negative numbers become large ones.
    largest = int(array.view(f"u{array.dtype.itemsize}").max())
    for dtype in _NARROW:
        if dtype.itemsize < array.dtype.itemsize and largest >> 8 * dtype.itemsize == 0:
            return array.astype(dtype)
    return array


def _can_be_stored_as(dtype: np.dtype, stored: np.dtype) -> bool:
    return stored == dtype or (stored in _NARROW and stored.itemsize < dtype.itemsize)


class Column(NamedTuple):
    """Requirements of an array of a chunk.

    Attributes
    ----------
    dtype : type
    shape : tuple of int or None
        None for any size.
    least, most : int
        Bounds of its values; without `most` they are not checked.
    are_offsets : bool
        Whether it must begin with `least`, end with `most` and never fall.
    """

    dtype: type
    shape: tuple[int | None, ...] = (None,)
    least: int = 0
    most: int | None = None
    are_offsets: bool = False

    @classmethod
    def of_offsets(cls, most: int, size: int | None = None) -> "Column":
        """Return the requirements of offsets into something with `most` members."""
        return cls(np.int64, (size,), 0, most, are_offsets=True)

    def problem(self, array: np.ndarray | None) -> str | None:
        """Return the problem of an array, or None."""
        if array is None:
            return "missing"
        if array.dtype != self.dtype:
            return f"type {array.dtype}, not {np.dtype(self.dtype)}"
        if array.ndim != len(self.shape) or any(
            wanted not in (None, size) for wanted, size in zip(self.shape, array.shape, strict=True)
        ):
            return f"shape {array.shape}"
        if self.are_offsets and not array.size:
            return "empty"
        if self.most is None or not array.size:
            return None
        if array.dtype == np.bool_:
            array = array.view(np.uint8)
        for value in (int(array.min()), int(array.max())):
            if not self.least <= value <= self.most:
                return f"{value} is not in {self.least} to {self.most}"
        if self.are_offsets and (
            array[0] != self.least or array[-1] != self.most or (array[1:] < array[:-1]).any()
        ):
            return f"not in rising order from {self.least} to {self.most}"
        return None


class PackedChunk(NamedTuple):
    """A chunk as it is written to a file: the values of its line, and the bytes of its arrays."""

    line: dict
    arrays: list[memoryview]


def packed_chunk(kind: str, **arrays: np.ndarray) -> PackedChunk:
    """Pack named arrays to a chunk of some kind."""
    described, views = [], []
    for name, array in arrays.items():
        array = np.ascontiguousarray(array)
        stored = _narrowed(array)
        view = memoryview(stored.reshape(-1).view(np.uint8))
        described.append([name, array.dtype.str, array.shape, stored.dtype.str, crc32(view)])
        views.append(view)
    return PackedChunk({"frame": kind, "arrays": described}, views)


class ChunkFileWriter:
    """Appends chunks to an open file."""

    def __init__(self, file: IO[bytes], holds: dict):
        self._file = file
        self._n_chunks = 0
        self._write_line({"format": _FORMAT, "version": VERSION} | holds)

    def write(self, chunk: PackedChunk) -> None:
        """Write a chunk; other threads can pack the next ones meanwhile."""
        self._write_line(chunk.line)
        for view in chunk.arrays:
            self._file.write(view)
        self._n_chunks += 1

    def write_end(self) -> None:
        """Write the number of chunks, which marks a complete file."""
        self._write_line({"end": self._n_chunks})

    def _write_line(self, content: dict) -> None:
        line = content | {"sum": text_sum(json.dumps(content))}
        self._file.write(json.dumps(line).encode() + b"\n")


@contextmanager
def write_chunk_file(path, **holds) -> Iterator[ChunkFileWriter]:
    """Write a chunk file or standard output (``-``); `holds` is written to the first line."""
    with atomic_file(path) as file:
        writer = ChunkFileWriter(file, holds)
        yield writer
        writer.write_end()


class ChunkFileReader:
    """The chunks of a file; can be iterated over once.

    Attributes
    ----------
    path : str
        Name of the file, for messages.
    holds : dict
        Contents of the first line.
    without : collection of str
        Names of arrays that are neither read nor checked.
    """

    def __init__(
        self,
        path,
        file: IO[bytes],
        *holds: str,
        without: Collection[str] = (),
        most_bytes: int = _MOST_BYTES,
    ):
        self.path = path
        self.without = without
        self._file, self._most_bytes = file, most_bytes
        first = self._read_line()
        if first.get("format") != _FORMAT or first.get("holds") not in holds:
            kinds = " or ".join(holds)
            raise InputError(
                f"{path}: not a file of {kinds}: make one with bwarp {_MADE_BY[holds[0]]}"
            )
        if first.get("version") != VERSION:
            raise InputError(
                f"{path}: the file has format version {first.get('version')}, but this bwarp reads "
                f"version {VERSION}: make it again"
            )
        self.holds = self._checked(first)

    def check_index(self, checksum: str, folder: Path) -> None:
        """Raise an error if the file was made with another index than the one in a folder."""
        if self.holds.get("index") != checksum:
            kind = self.holds["holds"]
            raise InputError(
                f"{self.path}: these {kind} were found with an index other than {folder}: use the "
                f"same index, or find them again with bwarp {_MADE_BY[kind]}"
            )

    def check(self, arrays: dict[str, np.ndarray], **columns: Column) -> None:
        """Raise an error if arrays of a chunk do not meet the requirements."""
        for name, column in columns.items():
            problem = column.problem(arrays.get(name))
            if problem is not None:
                raise self.unlike(f"{name}: {problem}")

    def unlike(self, problem: str) -> InputError:
        """Return the error for a file with valid checksums that no program wrote."""
        kind = self.holds["holds"]
        return InputError(
            f"{self.path}: these {kind} are not valid output of bwarp {_MADE_BY[kind]} "
            f"({problem}): make them again"
        )

    def __iter__(self) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
        n_chunks = 0
        while True:
            line = self._checked(self._read_line())
            if line.get("end") == n_chunks:
                return
            if not isinstance(line.get("frame"), str):
                raise self._damaged()
            yield line["frame"], self._read_arrays(line)
            n_chunks += 1

    def _read_line(self) -> dict:
        line = self._file.readline(_LONGEST_LINE)
        try:
            content = json.loads(line)
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict):
            raise self._damaged()
        return content

    def _checked(self, line: dict) -> dict:
        """Return a line without its checksum, which must match."""
        recorded = line.pop("sum", None)
        if recorded != text_sum(json.dumps(line)):
            raise self._damaged()
        return line

    def _read_arrays(self, line: dict) -> dict[str, np.ndarray]:
        arrays = {}
        try:
            for name, typed, shape, stored, checksum in line["arrays"]:
                if typed not in _TYPES or min(shape, default=0) < 0:
                    raise self._damaged()
                dtype, stored = np.dtype(typed), np.dtype(stored)
                n_bytes = math.prod(shape) * stored.itemsize
                if not _can_be_stored_as(dtype, stored) or n_bytes > self._most_bytes:
                    raise self._damaged()
                if name in self.without:
                    self._skip(n_bytes)
                    continue
                array = np.empty(shape, stored)
                view = memoryview(array.reshape(-1).view(np.uint8))
                if self._file.readinto(view) != n_bytes or crc32(view) != checksum:
                    raise self._damaged()
                arrays[name] = array.astype(dtype, copy=False)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise self._damaged() from None
        return arrays

    def _skip(self, n_bytes: int) -> None:
        """Pass bytes of an array that is not needed; if any are missing, so is the next line."""
        if self._file.seekable():
            self._file.seek(n_bytes, os.SEEK_CUR)
            return
        while n_bytes:
            n_read = len(self._file.read(min(n_bytes, _LONGEST_LINE)))
            if not n_read:
                raise self._damaged()
            n_bytes -= n_read

    def _damaged(self) -> InputError:
        return InputError(f"{self.path}: the file is damaged or truncated: make it again")


def _widen_pipe(file: IO[bytes]) -> None:
    """Let an open pipe hold more, so that its programs wait for each other less often.

    Do nothing for other files, and where the system has a lower limit or none.
    """
    with suppress(OSError, AttributeError):
        fcntl.fcntl(file.fileno(), fcntl.F_SETPIPE_SZ, _PIPE_BYTES)


#: Possible contents of files, and the programs that write them.
_MADE_BY = {
    "reads": "batch-reads",
    "seeds": "seed-reads",
    "hits": "locate-seeds",
    "candidates": "filter-candidates",
    "loci": "extend-candidates",
}


@contextmanager
def open_chunk_file(path, *holds: str, without: Collection[str] = ()) -> Iterator[ChunkFileReader]:
    """Open a chunk file, or standard input (``-``), with given contents such as ``"reads"``.

    Arrays whose names are in `without` are neither read nor checked.

    Raises
    ------
    InputError
        If the file has other contents, is damaged or truncated; also while chunks are read.
    """
    if str(path) == "-":
        file = standard_input()
        _widen_pipe(file)
        yield ChunkFileReader("standard input", file, *holds, without=without)
        return
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        _widen_pipe(file)
        sizes = {"most_bytes": status.st_size} if stat.S_ISREG(status.st_mode) else {}
        yield ChunkFileReader(path, file, *holds, without=without, **sizes)
