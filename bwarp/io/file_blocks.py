"""The bytes of plain and compressed files in blocks; nothing of a file is dropped in silence.

gzip, bzip2, xz and zstd are recognised by how a file begins, not by its name. A compressed file is
streams end to end, as bgzip and cat make them:

    BZh9...stream...|BZh9...stream...|00 00 00          all of it is read, or refused

Python's bz2 and lzma, and what is made of them, stop in silence at a second stream that is damaged
near its start. gzip's own last block, and that of BGZF, is not asked for: sequencers leave it out.
"""

import bz2
import codecs
import lzma
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

from xopen import xopen

from bwarp.errors import InputError

__all__ = ["CHUNK_BYTES", "read_blocks", "take_bytes"]

CHUNK_BYTES = 8 << 20

_STDIN = 0

#: What is read of a compressed file at a time.
_PACKED_BYTES = 1 << 17

# How a compressed file begins.
_MAGIC = {b"\x1f\x8b": "gz", b"BZh": "bz2", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zst"}

_DECOMPRESSORS = {
    "bz2": bz2.BZ2Decompressor,
    "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ),
}


def read_blocks(path: str | os.PathLike, block_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
    """The bytes of a plain or compressed file in blocks; ``-`` is standard input.

    A byte order mark at its start is left out. Damage becomes an `InputError` that names the file.
    """
    from_stdin = str(path) == "-"
    with open(_STDIN if from_stdin else path, "rb", closefd=not from_stdin) as file:
        blocks = _blocks_of(path, file, block_bytes)
        start = take_bytes(blocks, len(codecs.BOM_UTF8))
        if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            raise InputError(
                f"{path}: the text is UTF-16, which no program of the field reads: turn it into "
                "plain text (iconv -f UTF-16 -t UTF-8)"
            )
        start = start.removeprefix(codecs.BOM_UTF8)
        if start:
            yield start
        yield from blocks


def take_bytes(blocks: Iterator[bytes], least: int) -> bytes:
    """At least so many bytes of blocks, none of them empty, or all that is left."""
    taken = []
    while least > 0 and (block := next(blocks, b"")):
        taken.append(block)
        least -= len(block)
    return b"".join(taken)


def _blocks_of(path, file: BinaryIO, block_bytes: int) -> Iterator[bytes]:
    """The blocks of an open file, and what is wrong with it as an `InputError`."""
    start = file.peek(max(map(len, _MAGIC)))
    kind = next((kind for magic, kind in _MAGIC.items() if start.startswith(magic)), None)
    if kind is None:
        yield from iter(lambda: file.read(block_bytes), b"")
        return
    with _named_damage(path):
        if kind in _DECOMPRESSORS:
            pieces = filter(None, _streams(file, _DECOMPRESSORS[kind]))
            yield from iter(lambda: take_bytes(pieces, block_bytes), b"")
        else:
            with xopen(file, "rb", threads=0, format=kind) as inflated:
                yield from iter(lambda: inflated.read(block_bytes), b"")


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
            f"{path}: the compressed file ends too early: it was cut off; fetch or write it again"
        ) from error
    except (MemoryError, ImportError):
        raise
    except Exception as error:
        # Every decompressor has errors of its own; those of the system have a number.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise InputError(f"{path}: the compressed file is damaged ({error})") from error
