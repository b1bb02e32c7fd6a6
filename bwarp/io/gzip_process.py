"""A gzip file, inflated by a process of its own.

A gzip stream can only be inflated from its start to its end, by one thread. Beside many busy
threads of its process that thread gets two thirds of the speed it has alone, for it waits for
Python's lock and for fresh memory as they do. In a process of its own it waits for neither, as
long as there is room for what it inflates. That is a ring of slots in memory that both share:

               .-------- 8 bytes: how much there is in the next slot; 0 at the end <-------.
               v                                                                           |
    program: copies  <--  | slot | slot | slot | slot | slot | slot |  <--  process: inflates
               |                                                                           ^
               '--------> 1 byte: one slot more is free -----------------------------------'

The memory has no name, so nothing of it is left when both are gone, however they ended.
"""

import contextlib
import io
import mmap
import os
import subprocess
import sys
from collections.abc import Generator

import numpy as np

from bwarp.runtime.signals import not_ended, undone_if_ended

__all__ = ["WORTH_A_PROCESS", "blocks_from_process"]

#: Bytes of a file that take much longer to inflate than a process takes to start.
WORTH_A_PROCESS = 32 << 20

#: How far the process may be ahead, in slots, and the bytes of a slot, whatever a block may have.
_SLOTS, _LARGEST_SLOT = 6, 8 << 20

# Standard output is not used: whatever is imported with Python may print. To read from the buffer
# behind an IGzipFile saves a copy. What was inflated before an error is handed over.
_INFLATE = """
import mmap, os, sys
from isal import igzip
memory, filled, free, slots, slot_bytes = map(int, sys.argv[1:])
ring = memoryview(mmap.mmap(memory, slots * slot_bytes))
with open(0, "rb") as packed, igzip.open(packed) as text:
    readinto = getattr(text, "_buffer", text).readinto
    n, size = 0, 1
    while size and (n < slots or os.read(free, 1)):
        slot = ring[n % slots * slot_bytes :][:slot_bytes]
        n, size = n + 1, 0
        try:
            while size < slot_bytes and (more := readinto(slot[size : size + (1 << 20)])):
                size += more
        finally:
            os.write(filled, size.to_bytes(8, "little"))
"""


def blocks_from_process(
    path: str | os.PathLike, block_bytes: int
) -> Generator[memoryview, None, int | None]:
    """The bytes of a gzip file in blocks, none larger than `block_bytes` or 8 MB.

    Returns None when that was all. If the process fails, or none can be had, it returns how many
    bytes there were before: whoever inflates the file again finds out why.
    """
    slot_bytes = min(block_bytes, _LARGEST_SLOT)
    with contextlib.ExitStack() as stack:
        try:
            with not_ended():
                process, ring, filled, free = _started(path, slot_bytes)
                stack.enter_context(undone_if_ended(process.kill))
        except OSError:
            return 0
        stack.enter_context(process)
        # Nothing else ends it where nobody wants the rest.
        stack.callback(process.kill)
        stack.enter_context(filled)
        stack.enter_context(free)
        n_bytes = n = 0
        while size := int.from_bytes(word := filled.read(8), "little"):
            start = n % _SLOTS * slot_bytes
            block = np.empty(size, np.uint8)
            # This lets go of Python's lock.
            np.copyto(block, ring[start : start + size])
            # The process may be gone, and what it inflated is there all the same.
            with contextlib.suppress(BrokenPipeError):
                free.write(b"\0")
            yield block.data
            n, n_bytes = n + 1, n_bytes + size
        # Without a last word it has failed, whatever else it says.
        return None if word and process.wait() == 0 else n_bytes


def _started(
    path: str | os.PathLike, slot_bytes: int
) -> tuple[subprocess.Popen, np.ndarray, io.BufferedReader, io.FileIO]:
    """The process, the ring, where the process says what it filled, and where to free it."""
    if not sys.executable or not hasattr(os, "memfd_create"):
        raise OSError("it is not known where Python is, or there is no memory without a name")
    with contextlib.ExitStack() as ours, contextlib.ExitStack() as its:
        memory = its.enter_context(open(os.memfd_create("inflated"), "wb", 0))
        memory.truncate(_SLOTS * slot_bytes)
        ring = mmap.mmap(memory.fileno(), _SLOTS * slot_bytes, prot=mmap.PROT_READ)
        reader, writer = os.pipe()
        filled = ours.enter_context(open(reader, "rb"))
        its_filled = its.enter_context(open(writer, "wb", 0))
        reader, writer = os.pipe()
        its_free = its.enter_context(open(reader, "rb", 0))
        free = ours.enter_context(open(writer, "wb", 0))
        passed = [file.fileno() for file in (memory, its_filled, its_free)]
        # With -P a file of the user's folder is not taken for a module, whatever its name.
        command = [sys.executable, "-P", "-c", _INFLATE, *map(str, passed)]
        process = subprocess.Popen(
            [*command, str(_SLOTS), str(slot_bytes)],
            stdin=its.enter_context(open(path, "rb")),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=passed,
        )
        ours.pop_all()
    return process, np.frombuffer(ring, np.uint8), filled, free
