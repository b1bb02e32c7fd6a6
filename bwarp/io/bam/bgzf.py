"""BGZF, the compression of BAM: gzip members of at most 64 kB, each with its size in its header.

The blocks of a stream are cut every `BLOCK_BYTES` of what is compressed, whatever lies there, so
that where they lie depends on nothing but the stream.
"""

import struct
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import IO

from deflate import deflate_compress
from isal import igzip_lib, isal_zlib

from bwarp.errors import InputError

__all__ = ["BLOCK_BYTES", "END_OF_FILE", "LEVEL", "compressed_block", "read_bgzf"]

#: What fits into 64 kB even where it cannot be compressed, as in htslib.
BLOCK_BYTES = 0xFF00

#: An empty block, which says that the file was not cut off.
END_OF_FILE = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")

#: The fastest of libdeflate, by benchmarks/bam.py. igzip is twice as fast, but now and then, as its
#: work space held other bytes before, it makes other ones of the same block.
LEVEL = 1

_HEADER = struct.Struct("<4BI2BH2B2H")
_FOOTER = struct.Struct("<2I")


def compressed_block(data) -> bytes:
    """One block of at most `BLOCK_BYTES` bytes."""
    packed = bytes(deflate_compress(data, LEVEL))
    if len(packed) > BLOCK_BYTES:
        # Stored as it is: one deflate block of its own kind.
        packed = struct.pack("<BHH", 1, len(data), len(data) ^ 0xFFFF) + bytes(data)
    size = _HEADER.size + len(packed) + _FOOTER.size
    head = _HEADER.pack(31, 139, 8, 4, 0, 0, 255, 6, 66, 67, 2, size - 1)
    return b"".join([head, packed, _FOOTER.pack(isal_zlib.crc32(data), len(data))])


def read_bgzf(file: IO[bytes], path, threads: int = 1, blocks_at_once: int = 64) -> Iterator[bytes]:
    """The bytes of a BGZF file, some blocks at a time, decompressed in threads.

    Raises
    ------
    InputError
        If the file is cut off, damaged, or not of this kind; it is named `path`.
    """
    pool = ThreadPoolExecutor(threads)
    waiting = deque()
    try:
        for blocks in _groups(path, file, blocks_at_once):
            waiting.append(pool.submit(_decompressed, path, blocks))
            if len(waiting) > 2 * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def _groups(path, file, blocks_at_once: int) -> Iterator[list[bytes]]:
    """The blocks of a file in lists, without their headers."""
    blocks, last = [], b""
    while header := file.read(_HEADER.size):
        if len(header) < _HEADER.size:
            raise _cut_off(path)
        fields = _HEADER.unpack(header)
        if fields[:4] != (31, 139, 8, 4) or fields[7:11] != (6, 66, 67, 2):
            raise InputError(f"{path}: not a BAM file, or a damaged one: write it again")
        size = fields[11] + 1 - _HEADER.size
        last = file.read(size)
        if len(last) < size:
            raise _cut_off(path)
        blocks.append(last)
        if len(blocks) == blocks_at_once:
            yield blocks
            blocks = []
    if last != END_OF_FILE[_HEADER.size :]:
        raise _cut_off(path)
    yield blocks


def _cut_off(path) -> InputError:
    return InputError(f"{path}: the file ends too early: it was cut off; write it again")


def _decompressed(path, blocks: list[bytes]) -> bytes:
    parts = []
    for block in blocks:
        checksum, size = _FOOTER.unpack(block[-_FOOTER.size :])
        try:
            part = igzip_lib.decompress(block[: -_FOOTER.size], bufsize=max(size, 1))
        except (igzip_lib.IsalError, EOFError):
            part = None
        if part is None or len(part) != size or isal_zlib.crc32(part) != checksum:
            raise InputError(f"{path}: not a BAM file, or a damaged one: write it again")
        parts.append(part)
    return b"".join(parts)
