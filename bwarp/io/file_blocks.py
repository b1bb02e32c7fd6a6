"""The bytes of plain and compressed files in blocks; nothing of a file is dropped in silence.

gzip, bzip2, xz and zstd are recognised by how a file begins, not by its name. A compressed file is
streams end to end, as bgzip and cat make them:

    BZh9...stream...|BZh9...stream...|00 00 00          all of it is read, or refused

Python's bz2 and lzma, and what is made of them, stop in silence at a second stream that is damaged
near its start. gzip's own last block, and that of BGZF, is not asked for: sequencers leave it out.

BGZF, which is gzip in streams of 64 kB that say how long they are, is inflated by several threads,
up to the first stream that is not of that kind, or not whole. From there on one thread inflates,
and has the last word on what is wrong. A large file of any other gzip is inflated by a process of
its own where there are many threads.
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
from xopen import xopen

from bwarp.bam.bgzf import END_OF_FILE, inflated_blocks, whole_blocks
from bwarp.errors import InputError
from bwarp.io.standard_streams import open_input
from bwarp.runtime.signals import not_ended, undone_if_ended
from bwarp.runtime.threads import in_order
from bwarp.runtime.timeline import on_timeline

# --------------------------------------------------------------------------------------------------
# A gzip file, inflated by a process of its own.
#
# A gzip stream can only be inflated from its start to its end, by one thread. Beside many busy
# threads of its process that thread gets two thirds of the speed it has alone, for it waits for
# Python's lock and for fresh memory as they do. In a process of its own it waits for neither, as
# long as there is room for what it inflates. That is a ring of slots in memory that both share:
#
#                .-------- 8 bytes: how much there is in the next slot; 0 at the end <-------.
#                v                                                                           |
#     program: copies  <--  | slot | slot | slot | slot | slot | slot |  <--  process: inflates
#                |                                                                           ^
#                '--------> 1 byte: one slot more is free -----------------------------------'
#
# The memory has no name, so nothing of it is left when both are gone, however they ended.


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


CHUNK_BYTES = 8 << 20

#: What is read of a compressed file at a time.
_PACKED_BYTES = 1 << 17

#: How much smaller reads are when they are compressed, about, and how large a block of BGZF may be.
_PACKED_TO, _LARGEST_BLOCK = 4, 1 << 16

#: Threads that slow down one that inflates beside them.
_MANY = 4

# How a compressed file begins.
_MAGIC = {b"\x1f\x8b": "gz", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zst"}

_DECOMPRESSORS = {
    "bz2": bz2.BZ2Decompressor,
    "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ),
}


@on_timeline("read and inflate")
def read_blocks(
    path: str | os.PathLike, block_bytes: int = CHUNK_BYTES, threads: int = 1
) -> Iterator[bytes]:
    """The text of a plain or compressed file in blocks; ``-`` is standard input.

    A byte order mark at its start is left out. Damage becomes an `InputError` that names the file.
    With more than one thread a block may be a view of bytes elsewhere.
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
    """All bytes of a file that is no text, as `read_blocks` gives those of text."""
    with open(path, "rb") as file:
        yield from _blocks_of(path, file, block_bytes, threads)


def take_blocks(blocks: Iterator[bytes], least: int) -> list[bytes]:
    """Blocks, none of them empty, of at least so many bytes, or all that are left."""
    taken = []
    while least > 0 and (block := next(blocks, b"")):
        taken.append(block)
        least -= len(block)
    return taken


def _take_bytes(blocks: Iterator[bytes], least: int) -> bytes:
    return b"".join(take_blocks(blocks, least))


def _blocks_of(path, file: BinaryIO, block_bytes: int, threads: int) -> Iterator[bytes]:
    """The blocks of an open file, and what is wrong with it as an `InputError`."""
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
        with xopen(file, "rb", threads=0, format=kind) as inflated:
            blocks = iter(lambda: inflated.read(block_bytes), b"")
            yield from _behind(n_read, blocks)


def _behind(n_bytes: int, blocks: Iterator[bytes]) -> Iterator[bytes]:
    """What follows so many bytes of blocks."""
    for block in blocks:
        if n_bytes < len(block):
            yield block[n_bytes:] if n_bytes else block
        n_bytes = max(n_bytes - len(block), 0)


def _bgzf_blocks(
    file: BinaryIO, packed_bytes: int, threads: int
) -> Generator[memoryview, None, bool]:
    """What the BGZF at a file's start holds; returns whether something is left, where it is then.

    `packed_bytes` of the file are inflated by a thread at a time.
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
    # Not before nobody reads it any more.
    file.seek(rest)
    return True


def _whole_blocks(file: BinaryIO, packed_bytes: int) -> Iterator[tuple[int, np.ndarray, int]]:
    """Where in a file whole blocks of BGZF are, these, and what they say they hold.

    What is no such block, or is cut off, is nothing that holds -1 bytes, and is the last.
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
    """Where blocks were, and what they hold; None where that is not known."""
    at, packed, size = blocks
    return at, None if size < 0 else inflated_blocks(packed, size)


class _BehindABlock(io.RawIOBase):
    """The rest of a file with a block without content before it.

    So what follows is read as what follows a stream: it may be padding, for example.
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
    """What the streams of a file hold, in pieces; `make` makes what inflates one of them."""
    packed = file.read(_PACKED_BYTES)
    while packed:
        stream = make()
        while not stream.eof:
            if stream.needs_input and not packed:
                raise EOFError
            yield stream.decompress(packed, 8 * _PACKED_BYTES)
            packed = file.read(_PACKED_BYTES) if stream.needs_input else b""
        packed = stream.unused_data or file.read(_PACKED_BYTES)
        # Zeros behind a stream are padding, as of tapes and of xz.
        while packed.startswith(b"\0"):
            packed = packed.lstrip(b"\0") or file.read(_PACKED_BYTES)


@contextmanager
def _named_damage(path) -> Iterator[None]:
    """Turn what a decompressor raises for bad data into an `InputError`."""
    try:
        yield
    except EOFError as error:
        raise InputError(
            f"{path}: the compressed file is truncated: download or write it again"
        ) from error
    except (MemoryError, ImportError):
        raise
    except Exception as error:
        # Every decompressor has errors of its own; those of the system have a number.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise InputError(
            f"{path}: the compressed file is damaged ({error}): download or write it again"
        ) from error
