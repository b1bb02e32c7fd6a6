"""Read plain and compressed files in blocks; no part of a file is dropped silently.

gzip, bzip2, xz and zstd are recognised by the first bytes of a file, not by its name. A compressed
file consists of one or more streams, as written by bgzip or cat:

    BZh9...stream...|BZh9...stream...|00 00 00          all of it is read, or rejected

Python's bz2 and lzma stop silently at a second stream that is damaged near its start. The final
empty block of BGZF is not required, because sequencers omit it.

BGZF consists of gzip streams of 64 kB that record their own length. Several threads inflate it, up
to the first stream that is incomplete or not BGZF. One thread inflates the rest, and reports any
error. If there are many threads, a large gzip file of any other kind is inflated by a separate
process.
"""

import bz2
import codecs
import contextlib
import io
import lzma
import mmap
import os
import subprocess
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from typing import BinaryIO

import numpy as np

from bwarp.bam.bgzf import END_OF_FILE, inflated_blocks, whole_blocks
from bwarp.errors import InputError
from bwarp.io.standard_streams import open_input
from bwarp.runtime.chunks import in_order
from bwarp.runtime.signals import not_ended, undone_if_ended
from bwarp.runtime.timeline import on_timeline

# --------------------------------------------------------------------------------------------------
# Inflating a gzip file in a separate process.
#
# A gzip stream can only be inflated by one thread, from start to end. If its process has many other
# busy threads, this thread reaches two thirds of its speed, because all of them wait for Python's
# lock and for fresh memory. In a separate process it waits for neither, as long as there is room
# for its output: a ring of slots in shared memory.
#
#                .-------- 8 bytes: the size of the next slot's content; 0 at the end <------.
#                v                                                                           |
#     program: copies  <--  | slot | slot | slot | slot | slot | slot |  <--  process: inflates
#                |                                                                           ^
#                '--------> 1 byte: one more slot is free -----------------------------------'
#
# The memory has no name, so the system frees it when both processes have ended, in whatever way.


#: Minimum size of a file that takes much longer to inflate than a process takes to start.
WORTH_A_PROCESS = 32 << 20

#: Number of slots, which is how far the process may be ahead, and the bytes of each.
_SLOTS, _LARGEST_SLOT = 6, 8 << 20

# Standard output is not used, because imported modules may print. Reading from the buffer behind an
# IGzipFile saves a copy. The bytes inflated before an error are handed over.
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
    """Yield the bytes of a gzip file in blocks, none larger than `block_bytes` or 8 MB.

    Returns None at the end of the file. If the process fails or cannot be started, returns the
    number of bytes yielded: the caller inflates the file again and finds the error.
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
        # If the caller stops early, nothing else ends the process.
        stack.callback(process.kill)
        stack.enter_context(filled)
        stack.enter_context(free)
        n_bytes = n = 0
        while size := int.from_bytes(word := filled.read(8), "little"):
            start = n % _SLOTS * slot_bytes
            block = np.empty(size, np.uint8)
            # This releases Python's lock.
            np.copyto(block, ring[start : start + size])
            # The process may have ended; its output is still there.
            with contextlib.suppress(BrokenPipeError):
                free.write(b"\0")
            yield block.data
            n, n_bytes = n + 1, n_bytes + size
        # Without the final 0 it has failed, whatever its exit code.
        return None if word and process.wait() == 0 else n_bytes


def _started(
    path: str | os.PathLike, slot_bytes: int
) -> tuple[subprocess.Popen, np.ndarray, io.BufferedReader, io.FileIO]:
    """Start a process; return it, the ring, and the pipes of filled and of freed slots."""
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
        # With -P, Python imports no modules from the user's folder.
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


CHUNK_BYTES = 8 << 20

#: Bytes of a compressed file that are read at a time.
_PACKED_BYTES = 1 << 17

#: The approximate compression ratio of reads, and the maximum size of a BGZF block.
_PACKED_TO, _LARGEST_BLOCK = 4, 1 << 16

#: Minimum number of threads that slow down another one that inflates.
_MANY = 4

# The first bytes of compressed files.
_MAGIC = {b"\x1f\x8b": "gz", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zst"}

_DECOMPRESSORS = {"bz2": bz2.BZ2Decompressor, "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ)}


@on_timeline("read and inflate")
def read_blocks(
    path: str | os.PathLike, block_bytes: int = CHUNK_BYTES, threads: int = 1
) -> Iterator[bytes]:
    """Yield the text of a plain or compressed file in blocks; ``-`` is standard input.

    A byte order mark at its start is skipped. Damage raises an `InputError` that names the file.
    With more than one thread, a block may be a view of other memory.
    """
    with open_input(path) as file:
        blocks = _blocks_of(path, file, block_bytes, threads)
        start = _take_bytes(blocks, len(codecs.BOM_UTF8))
        if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise InputError(
                f"{path}: the text is UTF-16: convert it to plain text (iconv -f UTF-16 -t UTF-8)"
            )
        start = start.removeprefix(codecs.BOM_UTF8)
        if start:
            yield start
        yield from blocks


@on_timeline("read and inflate")
def read_binary_blocks(
    path: str | os.PathLike, block_bytes: int = CHUNK_BYTES, threads: int = 1
) -> Iterator[bytes]:
    """Yield all bytes of a binary file in blocks, like `read_blocks`."""
    with open(path, "rb") as file:
        yield from _blocks_of(path, file, block_bytes, threads)


def take_blocks(blocks: Iterator[bytes], least: int) -> list[bytes]:
    """Take non-empty blocks until they have at least `least` bytes, or none are left."""
    taken = []
    while least > 0 and (block := next(blocks, b"")):
        taken.append(block)
        least -= len(block)
    return taken


def _take_bytes(blocks: Iterator[bytes], least: int) -> bytes:
    return b"".join(take_blocks(blocks, least))


def _blocks_of(path, file: BinaryIO, block_bytes: int, threads: int) -> Iterator[bytes]:
    """Yield the blocks of an open file; damage raises an `InputError`."""
    start = file.peek(max(map(len, _MAGIC)))
    kind = next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), None)
    if kind is None:
        yield from iter(lambda: file.read(block_bytes), b"")
        return
    n_read = 0
    with _named_damage(path):
        if kind in _DECOMPRESSORS:
            pieces = filter(None, _streams(file, _DECOMPRESSORS[kind]))
            yield from iter(lambda: _take_bytes(pieces, block_bytes), b"")
            return
        if kind == "gz" and threads > 1 and file.seekable():
            if not (yield from _bgzf_blocks(file, block_bytes // _PACKED_TO, threads)):
                return
            is_whole = file.tell() == 0 and str(path) != "-"
            if is_whole and threads >= _MANY and os.stat(path).st_size >= WORTH_A_PROCESS:
                n_read = yield from blocks_from_process(path, block_bytes)
                if n_read is None:
                    return
            file = io.BufferedReader(_BehindABlock(file))
        from xopen import xopen  # imported here because it is slow, and plain text does not need it

        with xopen(file, "rb", threads=0, format=kind) as inflated:
            blocks = iter(lambda: inflated.read(block_bytes), b"")
            yield from _behind(n_read, blocks)


def _behind(n_bytes: int, blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the blocks without their first `n_bytes` bytes."""
    for block in blocks:
        if n_bytes < len(block):
            yield block[n_bytes:] if n_bytes else block
        n_bytes = max(n_bytes - len(block), 0)


def _bgzf_blocks(
    file: BinaryIO, packed_bytes: int, threads: int
) -> Generator[memoryview, None, bool]:
    """Yield the inflated BGZF at a file's start; return whether anything follows it.

    Each thread inflates `packed_bytes` of the file at a time. If anything follows, the file is left
    at that position.
    """
    with closing(in_order(_inflated, _whole_blocks(file, packed_bytes), threads)) as pieces:
        for at, piece in pieces:
            if piece is None:
                rest = at
                break
            if piece.size:
                yield piece.data
        else:
            return False
    # Only after the threads have stopped reading.
    file.seek(rest)
    return True


def _whole_blocks(file: BinaryIO, packed_bytes: int) -> Iterator[tuple[int, np.ndarray, int]]:
    """Yield positions in a file, the whole BGZF blocks there, and their stated inflated size.

    If the file continues with anything else, or a truncated block, the last item is empty with size
    -1.
    """
    packed, at = np.empty(0, np.uint8), 0
    while more := file.read(max(packed_bytes, _LARGEST_BLOCK)):
        packed = np.concatenate([packed, np.frombuffer(more, np.uint8)])
        end, size = whole_blocks(packed)
        if not end:
            break
        yield at, packed[:end], size
        packed, at = packed[end:], at + end
    if packed.size:
        yield at, packed[:0], -1


def _inflated(blocks: tuple[int, np.ndarray, int]) -> tuple[int, np.ndarray | None]:
    """Return the position of blocks and their inflated content, or None for size -1."""
    at, packed, size = blocks
    return at, None if size < 0 else inflated_blocks(packed, size)


class _BehindABlock(io.RawIOBase):
    """The rest of a file, preceded by an empty block.

    The rest is then read as data that follows a stream: it may be padding, for example.
    """

    def __init__(self, file: BinaryIO):
        self._file, self._block = file, END_OF_FILE

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        if self._block:
            count = min(len(buffer), len(self._block))
            buffer[:count], self._block = self._block[:count], self._block[count:]
            return count
        return self._file.readinto(buffer)


def _streams(file: BinaryIO, make: Callable) -> Iterator[bytes]:
    """Yield the inflated streams of a file in pieces; `make` creates a decompressor."""
    packed = file.read(_PACKED_BYTES)
    while packed:
        stream = make()
        while not stream.eof:
            if stream.needs_input and not packed:
                raise EOFError
            yield stream.decompress(packed, 8 * _PACKED_BYTES)
            packed = file.read(_PACKED_BYTES) if stream.needs_input else b""
        packed = stream.unused_data or file.read(_PACKED_BYTES)
        # Zeros after a stream are padding, as written to tapes and by xz.
        while packed.startswith(b"\0"):
            packed = packed.lstrip(b"\0") or file.read(_PACKED_BYTES)


@contextmanager
def _named_damage(path) -> Iterator[None]:
    """Turn the errors of a decompressor into an `InputError`."""
    try:
        yield
    except EOFError as error:
        raise InputError(
            f"{path}: the compressed file is truncated: download or write it again"
        ) from error
    except (MemoryError, ImportError):
        raise
    except Exception as error:
        # Each decompressor has its own errors; those of the system have a number.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise InputError(
            f"{path}: the compressed file is damaged ({error}): download or write it again"
        ) from error
