"""CRC-32 of files in pieces, so that many threads can check one large file."""

import io
import math
import os
import zlib
from functools import partial
from pathlib import Path

import numpy as np

from bwarp.counted import counted
from bwarp.errors import InputError
from bwarp.runtime.threads import available_threads, for_each_range
from bwarp.runtime.timeline import on_timeline

try:
    from isal.isal_zlib import crc32
except ImportError:
    from zlib import crc32

__all__ = ["PIECE_BYTES", "checked_array", "crc32", "map_file", "save_with_sums", "text_sum"]

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
