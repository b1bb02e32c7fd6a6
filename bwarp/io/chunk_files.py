"""Chunk files: arrays that one program hands to the next, chunk by chunk, by file or pipe.

    {"format": "bwarp frames", "version": 2, "holds": "reads"}                 one line
    {"frame": "reads", "arrays": [["packed", "<u8", [20]], ...], "crc32": 7}     one line
    the bytes of the arrays, one after another
    ...                                                                        more such chunks
    {"end": 2}                                                                 the number of chunks

Every line holds its own checksum, too; the crc32 is that of the arrays. Only one chunk is in memory
at a time. A file that was cut off or changed is refused. Checksums do not tell who wrote a file: a
`Column` says what an array must be before compiled code may index with it.
"""

import io
import json
import math
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
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


#: A sum covers this many bytes of a file; the last one what is left.
PIECE_BYTES = 16 << 20

#: Where an .npy file of version 1.0 has the length of its header, after a magic string.
_LENGTH = slice(8, 10)


def text_sum(text: str) -> str:
    """The CRC-32 of a text, as eight hexadecimal digits."""
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
    """The bytes of a file, mapped and not read: none where the file is missing or empty.

    `folder` is a descriptor of the folder that it is in, whatever has its name by now.
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
) -> np.ndarray:
    """An array in what `map_file` gave, after checking every byte against the recorded sums.

    It must be of the type and the shape that are asked for.
    """
    remedy = "build the index again"
    if data is None:
        raise InputError(f"{path}: the file is missing from the index: {remedy}")
    if not data.size:
        raise InputError(f"{path}: the file is empty, so it was cut off: {remedy}")
    if data.size != recorded["bytes"]:
        raise InputError(
            f"{path}: the file has {counted(data.size, 'byte')} where {recorded['bytes']:,} "
            "were written: "
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
            f"{path}: it does not hold the array of this index, of type {dtype.name} and shape "
            f"{shape}: {remedy}"
        )
    # A view of a memmap runs Python code each time it is made, a view of an array does not.
    return data[start:].view(dtype).reshape(shape).view(np.ndarray)


def _array_start(data: np.ndarray, dtype: np.dtype, shape: tuple[int, ...]) -> int | None:
    """Where the numbers begin in an .npy file of this type and shape; None of any other file.

    The header is a Python expression. It is compared with the right one, and never evaluated.
    """
    right = io.BytesIO()
    header = {"descr": dtype.str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(right, header)
    right = right.getvalue()
    start = _LENGTH.stop + int.from_bytes(data[_LENGTH].tobytes(), "little")
    found = data[:start].tobytes()
    # How far a header is filled up with blanks depends on the version of numpy.
    alike = found[: _LENGTH.start] == right[: _LENGTH.start]
    alike = alike and found[_LENGTH.stop :].rstrip() == right[_LENGTH.stop :].rstrip()
    fits = data.size == start + math.prod(shape) * dtype.itemsize and start % dtype.itemsize == 0
    return start if alike and fits else None


VERSION = 2
_FORMAT = "bwarp frames"
_LONGEST_LINE = 1 << 20

#: No array of a pipe is larger: of a file none is larger than the file.
_MOST_BYTES = 1 << 40

#: Types of arrays that are read.
_TYPES = {np.dtype(name).str for name in ("?", "u1", "i4", "u4", "i8", "u8")}


class Column(NamedTuple):
    """What an array of a chunk must be.

    Attributes
    ----------
    dtype : type
    shape : tuple of int or None
        None for any size.
    least, most : int
        Bounds of its values; without `most` they are not looked at.
    are_offsets : bool
        Whether it goes from `least` to `most` and never falls.
    """

    dtype: type
    shape: tuple[int | None, ...] = (None,)
    least: int = 0
    most: int | None = None
    are_offsets: bool = False

    @classmethod
    def of_offsets(cls, most: int, size: int | None = None) -> "Column":
        """Where parts of something that has `most` members begin, and the last one ends."""
        return cls(np.int64, (size,), 0, most, are_offsets=True)

    def problem(self, array: np.ndarray | None) -> str | None:
        """What is wrong with an array; None for one that is as it must be."""
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


class ChunkFileWriter:
    """Appends chunks to an open file."""

    def __init__(self, file: IO[bytes], holds: dict):
        self._file = file
        self._n_chunks = 0
        self._write_line({"format": _FORMAT, "version": VERSION} | holds)

    def write(self, kind: str, **arrays: np.ndarray) -> None:
        """Add a chunk of some kind with named arrays."""
        arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        shapes = [[name, array.dtype.str, array.shape] for name, array in arrays.items()]
        views = [memoryview(array.reshape(-1).view(np.uint8)) for array in arrays.values()]
        crc32 = 0
        for view in views:
            crc32 = zlib.crc32(view, crc32)
        self._write_line({"frame": kind, "arrays": shapes, "crc32": crc32})
        for view in views:
            self._file.write(view)
        self._n_chunks += 1

    def write_end(self) -> None:
        """Write the number of chunks, by which a whole file is known."""
        self._write_line({"end": self._n_chunks})

    def _write_line(self, content: dict) -> None:
        line = content | {"sum": text_sum(json.dumps(content))}
        self._file.write(json.dumps(line).encode() + b"\n")


@contextmanager
def write_chunk_file(path, **holds) -> Iterator[ChunkFileWriter]:
    """Write a chunk file, or to standard output (``-``); `holds` goes into its first line."""
    with atomic_file(path) as file:
        writer = ChunkFileWriter(file, holds)
        yield writer
        writer.write_end()


class ChunkFileReader:
    """The chunks of a file, to be iterated over once.

    Attributes
    ----------
    path : str
        The file, for messages.
    holds : dict
        What its first line says.
    """

    def __init__(self, path, file: IO[bytes], *holds: str, most_bytes: int = _MOST_BYTES):
        self.path = path
        self._file, self._most_bytes = file, most_bytes
        first = self._read_line()
        if first.get("format") != _FORMAT or first.get("holds") not in holds:
            kinds = " or ".join(holds)
            raise InputError(
                f"{path}: not a file of {kinds}: make one with scripts/{_MADE_BY[holds[0]]}"
            )
        if first.get("version") != VERSION:
            raise InputError(
                f"{path}: the file has format version {first.get('version')}, this bwarp "
                f"reads version {VERSION}: make it again"
            )
        self.holds = self._checked(first)

    def check_index(self, checksum: str, folder: Path) -> None:
        """Refuse a file that was made with another index than the one in a folder."""
        if self.holds.get("index") != checksum:
            kind = self.holds["holds"]
            raise InputError(
                f"{self.path}: these {kind} were found in another index than {folder}: "
                f"give that one, or find them again with scripts/{_MADE_BY[kind]}"
            )

    def check(self, arrays: dict[str, np.ndarray], **columns: Column) -> None:
        """Refuse arrays of a chunk that are not as these columns must be."""
        for name, column in columns.items():
            problem = column.problem(arrays.get(name))
            if problem is not None:
                raise self.unlike(f"{name}: {problem}")

    def unlike(self, problem: str) -> InputError:
        """The error for a file that no program wrote, though its checksums fit."""
        kind = self.holds["holds"]
        return InputError(
            f"{self.path}: these {kind} are not what scripts/{_MADE_BY[kind]} writes ({problem}): "
            "make them again"
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
        """A line without its checksum, which must match."""
        recorded = line.pop("sum", None)
        if recorded != text_sum(json.dumps(line)):
            raise self._damaged()
        return line

    def _read_arrays(self, line: dict) -> dict[str, np.ndarray]:
        arrays = {}
        crc32 = 0
        try:
            for name, typed, shape in line["arrays"]:
                if typed not in _TYPES or min(shape, default=0) < 0:
                    raise self._damaged()
                dtype = np.dtype(typed)
                if math.prod(shape) * dtype.itemsize > self._most_bytes:
                    raise self._damaged()
                array = np.empty(shape, dtype)
                view = array.reshape(-1).view(np.uint8)
                if self._file.readinto(memoryview(view)) != view.size:
                    raise self._damaged()
                crc32 = zlib.crc32(view, crc32)
                arrays[name] = array
        except (KeyError, TypeError, ValueError, OverflowError):
            raise self._damaged() from None
        if line.get("crc32") != crc32:
            raise self._damaged()
        return arrays

    def _damaged(self) -> InputError:
        return InputError(f"{self.path}: the file is damaged or cut off: make it again")


#: What files may hold, and which program makes such a one.
_MADE_BY = {
    "reads": "batch_reads.py",
    "seeds": "seed_reads.py",
    "hits": "locate_seeds.py",
    "candidates": "filter_candidates.py",
    "loci": "extend_candidates.py",
}


@contextmanager
def open_chunk_file(path, *holds: str) -> Iterator[ChunkFileReader]:
    """Open a chunk file, or standard input (``-``), that must hold ``"reads"``, say.

    Raises
    ------
    InputError
        Here or while chunks are read, for a file that is of something else, damaged or cut off.
    """
    if str(path) == "-":
        yield ChunkFileReader("standard input", standard_input(), *holds)
        return
    with open(path, "rb") as file:
        status = os.fstat(file.fileno())
        sizes = {"most_bytes": status.st_size} if stat.S_ISREG(status.st_mode) else {}
        yield ChunkFileReader(path, file, *holds, **sizes)
