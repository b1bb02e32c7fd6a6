"""Standard input, output and error, any of which may be closed when a program starts; and pipes.

The start of standard input and of a named pipe can be inspected; the next reader still gets all of
it:

    start_of_stream("-", 4)    CRAM            stored
    open_input("-")            CRAM....        the stored bytes, and what follows
"""

import errno
import io
import os
import stat
import sys
from typing import IO, BinaryIO

from bwarp.errors import UsageError

_STDIN, _STDOUT = 0, 1

#: Inspected pipes by name: the open file, and the bytes read from it.
_looked_at: dict[str, tuple[int, bytearray]] = {}


def fill_closed_streams() -> None:
    """Open the null device for closed streams, so that no other file gets their numbers.

    Otherwise data written to standard output by its number would go to that file. As before,
    standard input cannot be read, and the others cannot be written.
    """
    for number, mode in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            # This is the lowest free number.
            os.open(os.devnull, mode)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def flush_standard_output() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def drop_standard_output() -> None:
    """Redirect unwritten output to the null device: Python would retry writing it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), _STDOUT)


def standard_input() -> IO[bytes]:
    """Return standard input in binary."""
    if sys.stdin is None:
        raise UsageError("standard input is closed: give the name of a file")
    return sys.stdin.buffer


def is_stream(path: str | os.PathLike) -> bool:
    """Return whether a path is standard input or a pipe, which can be read only once."""
    if str(path) == "-":
        return True
    try:
        return stat.S_ISFIFO(os.stat(path).st_mode)
    except OSError:
        return False


def may_look_at(path: str | os.PathLike) -> bool:
    """Return whether no other inspected stream still waits to be read.

    A program may write to several pipes in turn: the second gets data after the first has been
    read.
    """
    return not _looked_at or str(path) in _looked_at


def start_of_stream(path: str | os.PathLike, size: int) -> bytes:
    """Return at most `size` first bytes of a stream, without consuming them."""
    path = str(path)
    if path == "-":
        try:
            return os.pread(_STDIN, size, os.lseek(_STDIN, 0, os.SEEK_CUR))
        except OSError as error:
            if error.errno != errno.ESPIPE:
                raise
    if path not in _looked_at:
        _looked_at[path] = (_STDIN if path == "-" else os.open(path, os.O_RDONLY)), bytearray()
    number, start = _looked_at[path]
    while len(start) < size and (more := os.read(number, size - len(start))):
        start.extend(more)
    return bytes(start[:size])


def open_input(path: str | os.PathLike) -> BinaryIO:
    """Open a file for reading; a stream includes the bytes that were inspected."""
    path = str(path)
    if path in _looked_at:
        number, start = _looked_at.pop(path)
        return io.BufferedReader(_Behind(bytes(start), number))
    return open(_STDIN, "rb", closefd=False) if path == "-" else open(path, "rb")


class _Behind(io.RawIOBase):
    """Bytes followed by the contents of an open file."""

    def __init__(self, start: bytes, number: int):
        self._start, self._number = start, number

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        if not self._start:
            return os.readv(self._number, [buffer])
        count = min(len(buffer), len(self._start))
        buffer[:count], self._start = self._start[:count], self._start[count:]
        return count

    def close(self) -> None:
        if not self.closed and self._number != _STDIN:
            os.close(self._number)
        super().close()


def standard_output(mode: str) -> IO:
    """Return standard output of the program, for text or bytes."""
    if sys.stdout is None:
        raise UsageError("standard output is closed: give the name of a file to write")
    return sys.stdout.buffer if "b" in mode else sys.stdout
