"""A gzip file, inflated by a process of its own.

A gzip stream can only be inflated from its start to its end, by one thread. Beside many busy
threads of its process that thread gets two thirds of the speed it has alone, for it waits for
Python's lock and for fresh memory as they do. In a process of its own it waits for neither.
"""

import contextlib
import fcntl
import os
import subprocess
import sys
from collections.abc import Generator

from bwarp.runtime.signals import not_ended, undone_if_ended

__all__ = ["WORTH_A_PROCESS", "blocks_from_process"]

#: Bytes of a file that take much longer to inflate than a process takes to start.
WORTH_A_PROCESS = 32 << 20

#: What the process hands over at a time, and what the pipe holds: as much as Linux lets it.
_PIECE = 1 << 20


def blocks_from_process(
    path: str | os.PathLike, block_bytes: int
) -> Generator[memoryview, None, int | None]:
    """The bytes of a gzip file in blocks.

    Returns None when that was all. If the process fails, it returns how many bytes there were
    before: whoever inflates the file again finds out why.
    """
    command = [sys.executable, "-m", "isal.igzip", "-dc", "-b", str(_PIECE), os.path.abspath(path)]
    with contextlib.ExitStack() as stack:
        with not_ended():
            process = subprocess.Popen(
                command,
                bufsize=0,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            stack.enter_context(undone_if_ended(process.kill))
        stack.enter_context(process)
        # Nothing else ends it where nobody wants the rest.
        stack.callback(process.kill)
        with contextlib.suppress(OSError):
            fcntl.fcntl(process.stdout, fcntl.F_SETPIPE_SZ, _PIECE)
        n_bytes = 0
        while block := _read(process.stdout, block_bytes):
            yield block
            n_bytes += len(block)
        return None if process.wait() == 0 else n_bytes


def _read(file, size: int) -> memoryview:
    """So many bytes of a pipe, or all that are left."""
    block = memoryview(bytearray(size))
    n_bytes = 0
    while n_bytes < size and (more := file.readinto(block[n_bytes:])):
        n_bytes += more
    return block[:n_bytes]
