"""Standard input, output and error, any of which may be closed when a program starts."""

import os
import sys
from typing import IO

from bwarp.errors import UsageError

__all__ = ["fill_closed_streams", "flush_standard_output", "standard_input", "standard_output"]


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


def standard_input() -> IO[bytes]:
    """What is sent to the program."""
    if sys.stdin is None:
        raise UsageError("standard input is closed: give the name of a file")
    return sys.stdin.buffer


def standard_output(mode: str) -> IO:
    """Where the program writes what has no file, for text or bytes."""
    if sys.stdout is None:
        raise UsageError("standard output is closed: give the name of a file to write")
    return sys.stdout.buffer if "b" in mode else sys.stdout
