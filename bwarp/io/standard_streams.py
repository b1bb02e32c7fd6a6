"""Standard input, output and error, any of which may be closed when a program starts."""

import errno
import io
import os
import sys
from typing import IO, BinaryIO

from bwarp.errors import UsageError

__all__ = [
    "drop_standard_output",
    "fill_closed_streams",
    "flush_standard_output",
    "open_standard_input",
    "standard_input",
    "standard_output",
    "start_of_standard_input",
]

_STDIN, _STDOUT = 0, 1

#: What has been taken from a pipe to look at it, and who reads the pipe gets first.
_looked_at = bytearray()


def fill_closed_streams() -> None:
    """Open the null device for closed streams, so that no file that is opened takes their numbers.

    What is written to standard output by its number would go into that file. As before, standard
    input cannot be read, and the others cannot be written.
    """
    for number, mode in enumerate((os.O_WRONLY, os.O_RDONLY, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            # The lowest number that is free is this one.
            os.open(os.devnull, mode)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def flush_standard_output() -> None:
    if sys.stdout is not None:
        sys.stdout.flush()


def drop_standard_output() -> None:
    """Send what was not written to the null device: Python would try again when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), _STDOUT)


def standard_input() -> IO[bytes]:
    """What is sent to the program."""
    if sys.stdin is None:
        raise UsageError("standard input is closed: give the name of a file")
    return sys.stdin.buffer


def start_of_standard_input(size: int) -> bytes:
    """The first bytes sent to the program, up to so many; they are there to be read as before."""
    try:
        return os.pread(_STDIN, size, os.lseek(_STDIN, 0, os.SEEK_CUR))
    except OSError as error:
        if error.errno != errno.ESPIPE:
            raise
    while len(_looked_at) < size and (more := os.read(_STDIN, size - len(_looked_at))):
        _looked_at.extend(more)
    return bytes(_looked_at[:size])


def open_standard_input() -> BinaryIO:
    """A file of all that is sent to the program, whatever of it has been looked at."""
    if not _looked_at:
        return open(_STDIN, "rb", closefd=False)
    start = bytes(_looked_at)
    _looked_at.clear()
    return io.BufferedReader(_Behind(start))


class _Behind(io.RawIOBase):
    """Some bytes, and standard input behind them."""

    def __init__(self, start: bytes):
        self._start = start

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        if not self._start:
            return os.readv(_STDIN, [buffer])
        count = min(len(buffer), len(self._start))
        buffer[:count], self._start = self._start[:count], self._start[count:]
        return count


def standard_output(mode: str) -> IO:
    """Where the program writes what has no file, for text or bytes."""
    if sys.stdout is None:
        raise UsageError("standard output is closed: give the name of a file to write")
    return sys.stdout.buffer if "b" in mode else sys.stdout
