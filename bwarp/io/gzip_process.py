"""A gzip file, inflated by a process of its own.

A gzip stream can only be inflated from its start to its end, by one thread. Beside many busy
threads of its process that thread gets two thirds of the speed it has alone, for it waits for
Python's lock and for fresh memory as they do. In a process of its own it waits for neither.
"""

import contextlib
import fcntl
import io
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

# Standard output is not used: whatever is imported with Python may print.
_INFLATE = """
import shutil, sys
from isal import igzip
with open(0, "rb") as packed, igzip.open(packed) as text, open(int(sys.argv[1]), "wb") as out:
    shutil.copyfileobj(text, out, int(sys.argv[2]))
"""


def blocks_from_process(
    path: str | os.PathLike, block_bytes: int
) -> Generator[memoryview, None, int | None]:
    """The bytes of a gzip file in blocks.

    Returns None when that was all. If the process fails, or none can be had, it returns how many
    bytes there were before: whoever inflates the file again finds out why.
    """
    with contextlib.ExitStack() as stack:
        try:
            with not_ended():
                process, text = _started(path)
                stack.enter_context(undone_if_ended(process.kill))
        except OSError:
            return 0
        stack.enter_context(process)
        # Nothing else ends it where nobody wants the rest.
        stack.callback(process.kill)
        stack.enter_context(text)
        n_bytes = 0
        while block := _read(text, block_bytes):
            yield block
            n_bytes += len(block)
        return None if process.wait() == 0 else n_bytes


def _started(path: str | os.PathLike) -> tuple[subprocess.Popen, io.FileIO]:
    """The process, and the pipe into which it writes what it inflates."""
    if not sys.executable:
        raise OSError("it is not known where Python is")
    reader, writer = os.pipe()
    # With -P a file of the user's folder is not taken for a module, whatever its name.
    command = [sys.executable, "-P", "-c", _INFLATE, str(writer), str(_PIECE)]
    try:
        with contextlib.suppress(OSError, AttributeError):
            fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, _PIECE)
        with open(path, "rb") as packed:
            process = subprocess.Popen(
                command,
                stdin=packed,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=[writer],
            )
    except BaseException:
        os.close(reader)
        raise
    finally:
        os.close(writer)
    return process, io.FileIO(reader)


def _read(file: io.FileIO, size: int) -> memoryview:
    """So many bytes of a pipe, or all that are left."""
    block = memoryview(bytearray(size))
    n_bytes = 0
    while n_bytes < size and (more := file.readinto(block[n_bytes:])):
        n_bytes += more
    return block[:n_bytes]
