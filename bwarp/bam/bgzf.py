"""BGZF, the compression of BAM: gzip members of at most 64 kB, each with its size in its header.

A stream is cut into blocks of `BLOCK_BYTES` uncompressed bytes regardless of its content, so block
boundaries depend only on the stream. Blocks are read and written one at a time, or many in one call
of compiled code.
"""

import ctypes
import functools
import struct
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType
from typing import IO

import numpy as np
from deflate import _deflate, deflate_compress
from isal import igzip_lib, isal_zlib

from bwarp.errors import InputError
from bwarp.runtime.compiled_code import compiled, inner
from bwarp.runtime.lazy_function import CompilerFunction
from bwarp.runtime.timeline import on_timeline

#: Bytes that fit into 64 kB even if they cannot be compressed, as in htslib.
BLOCK_BYTES = 0xFF00

#: An empty block, which marks the end of a complete file.
END_OF_FILE = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")

#: The fastest level of libdeflate, by benchmarks/bam.py. igzip is twice as fast, but its output
#: occasionally differs for the same block, depending on what its work space held before.
LEVEL = 1

_HEADER = struct.Struct("<4BI2BH2B2H")
_FOOTER = struct.Struct("<2I")


def compressed_block(data, level: int = LEVEL) -> bytes:
    """Compress at most `BLOCK_BYTES` bytes to one block."""
    packed = bytes(deflate_compress(data, level))
    if len(packed) > BLOCK_BYTES:
        # Store the bytes uncompressed, in one deflate block of type "stored".
        packed = struct.pack("<BHH", 1, len(data), len(data) ^ 0xFFFF) + bytes(data)
    size = _HEADER.size + len(packed) + _FOOTER.size
    head = _HEADER.pack(31, 139, 8, 4, 0, 0, 255, 6, 66, 67, 2, size - 1)
    return b"".join([head, packed, _FOOTER.pack(isal_zlib.crc32(data), len(data))])


def read_bgzf(file: IO[bytes], path, threads: int = 1, blocks_at_once: int = 64) -> Iterator[bytes]:
    """Yield the bytes of a BGZF file, several blocks at a time, decompressed in threads.

    Raises
    ------
    InputError
        If the file is truncated, damaged, or not BGZF; the error names it `path`.
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
    """Yield lists of the blocks of a file, without their headers."""
    blocks, last = [], b""
    while header := file.read(_HEADER.size):
        if len(header) < _HEADER.size:
            raise _cut_off(path)
        fields = _HEADER.unpack(header)
        if fields[:4] != (31, 139, 8, 4) or fields[7:11] != (6, 66, 67, 2):
            raise InputError(f"{path}: not a BAM file, or damaged: write it again")
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
    return InputError(f"{path}: the file is truncated: write it again")


def _decompressed(path, blocks: list[bytes]) -> bytes:
    parts = []
    for block in blocks:
        checksum, size = _FOOTER.unpack(block[-_FOOTER.size :])
        try:
            part = igzip_lib.decompress(block[: -_FOOTER.size], bufsize=max(size, 1))
        except (igzip_lib.IsalError, EOFError):
            part = None
        if part is None or len(part) != size or isal_zlib.crc32(part) != checksum:
            raise InputError(f"{path}: not a BAM file, or damaged: write it again")
        parts.append(part)
    return b"".join(parts)


# --------------------------------------------------------------------------------------------------
# Many blocks per call: compiled code calls libdeflate.
#
# Calling it from Python for each block would take the interpreter lock three times in a third of a
# millisecond, and sixteen threads would wait for each other; here a thread takes the lock once for
# all blocks of its job. The bytes equal those of `compressed_block`. The size and checksum of each
# inflated block are checked.


#: Room for a block during compression: more than any block takes, so none is truncated.
_ROOM = 1 << 17

_WHOLE = 1 << 16
#: The first bytes of a block, before its size.
HEAD = np.array([31, 139, 8, 4, 0, 0, 0, 0, 0, 255, 6, 0, 66, 67, 2, 0], np.uint8)
HEAD_BYTES = 18
FOOT_BYTES = 8

#: Size of the header of a stored (uncompressed) deflate block.
STORED_BYTES = 5

#: Offset of the size in a block's head, and the bytes before it, except time and system.
_SIZE_AT = 16
_FIXED = np.array([31, 139, 8, 4, 6, 0, 66, 67, 2, 0], np.uint8)
_FIXED_AT = np.array([0, 1, 2, 3, 10, 11, 12, 13, 14, 15], np.int64)


@on_timeline("compress")
def compressed_blocks(data: np.ndarray, level: int = LEVEL) -> tuple[np.ndarray, np.ndarray]:
    """Compress bytes to blocks of `BLOCK_BYTES` each; the last block may be shorter.

    Parameters
    ----------
    data : ndarray, dtype=uint8
    level : int
        `LEVEL`, or 0: the blocks hold the bytes as they are.

    Returns
    -------
    blocks : ndarray, dtype=uint8
        The blocks, concatenated.
    ends : ndarray, shape=(n_blocks,), dtype=int64
        End of each block.
    """
    n_blocks = -(-data.size // BLOCK_BYTES)
    library = _library()
    if library is None:
        return _one_by_one(data, n_blocks, level)
    out = np.empty(n_blocks * _WHOLE + _ROOM, np.uint8)
    ends = np.empty(n_blocks, np.int64)
    compressor = library.libdeflate_alloc_compressor(level)
    if not compressor:
        raise MemoryError("libdeflate has no memory to work in")
    try:
        functions = _addresses(library, "libdeflate_deflate_compress", "libdeflate_crc32")
        _write_blocks(data, *functions, compressor, out, ends)
    finally:
        library.libdeflate_free_compressor(compressor)
    return out[: ends[-1] if n_blocks else 0], ends


def sums_of_blocks(data: np.ndarray) -> np.ndarray | None:
    """Return the checksum of each block of `BLOCK_BYTES`, int64; None without libdeflate."""
    library = _library()
    if library is None:
        return None
    sums = np.empty(-(-data.size // BLOCK_BYTES), np.int64)
    _sums_of_blocks(data, *_addresses(library, "libdeflate_crc32"), sums)
    return sums


def inflated_blocks(packed: np.ndarray, size: int) -> np.ndarray | None:
    """Inflate complete blocks; return None if one is damaged or libdeflate is missing.

    `packed` and `size` are as counted by `whole_blocks`.
    """
    library = _library()
    if library is None:
        return None
    out = np.empty(size, np.uint8)
    decompressor = library.libdeflate_alloc_decompressor()
    if not decompressor:
        raise MemoryError("libdeflate has no memory to work in")
    try:
        functions = _addresses(library, "libdeflate_deflate_decompress", "libdeflate_crc32")
        return out if _inflate_blocks(packed, *functions, decompressor, out) else None
    finally:
        library.libdeflate_free_decompressor(decompressor)


def _one_by_one(data: np.ndarray, n_blocks: int, level: int) -> tuple[np.ndarray, np.ndarray]:
    blocks = [
        compressed_block(data[at * BLOCK_BYTES : (at + 1) * BLOCK_BYTES], level)
        for at in range(n_blocks)
    ]
    ends = np.cumsum([len(block) for block in blocks], dtype=np.int64)
    return np.frombuffer(b"".join(blocks), np.uint8), ends


@functools.cache
def _library():
    """Return the libdeflate of the package `deflate`, or None if it hides its functions."""
    try:
        library = ctypes.CDLL(_deflate.__file__)
        library.libdeflate_alloc_compressor.restype = ctypes.c_void_p
        library.libdeflate_alloc_compressor.argtypes = [ctypes.c_int]
        library.libdeflate_free_compressor.restype = None
        library.libdeflate_free_compressor.argtypes = [ctypes.c_void_p]
        library.libdeflate_alloc_decompressor.restype = ctypes.c_void_p
        library.libdeflate_alloc_decompressor.argtypes = []
        library.libdeflate_free_decompressor.restype = None
        library.libdeflate_free_decompressor.argtypes = [ctypes.c_void_p]
        _addresses(
            library, "libdeflate_deflate_compress", "libdeflate_deflate_decompress",
            "libdeflate_crc32",
        )  # fmt: skip
    except (OSError, AttributeError):
        return None
    return library


def _addresses(library, *names: str) -> list[int]:
    """Return the addresses of functions of the library."""
    return [ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in names]


def _intrinsics() -> ModuleType:
    from bwarp.runtime import intrinsics

    return intrinsics


#: Calls of C code at an address with 3, 5 or 6 numbers or pointers.
_call_3 = CompilerFunction(_intrinsics, "call_3")
_call_5 = CompilerFunction(_intrinsics, "call_5")
_call_6 = CompilerFunction(_intrinsics, "call_6")


@compiled
def _write_blocks(data, compress, checksum, compressor, out, ends):
    source, target = np.int64(data.ctypes.data), np.int64(out.ctypes.data)
    begin = np.int64(0)
    for number in range(ends.size):
        first = number * BLOCK_BYTES
        size = min(np.int64(BLOCK_BYTES), data.size - first)
        at = begin + HEAD_BYTES
        packed = _call_5(
            np.int64(compress), np.int64(compressor), source + first, size, target + at,
            np.int64(_ROOM - HEAD_BYTES - FOOT_BYTES),
        )  # fmt: skip
        total = _call_3(np.int64(checksum), np.int64(0), source + first, size)
        begin = finish_block(out, begin, packed, data, first, size, total)
        ends[number] = begin


@compiled
def _sums_of_blocks(data, checksum, sums):
    source = np.int64(data.ctypes.data)
    for number in range(sums.size):
        first = number * BLOCK_BYTES
        size = min(np.int64(BLOCK_BYTES), data.size - first)
        sums[number] = _call_3(np.int64(checksum), np.int64(0), source + first, size)


@inner(inline="always")
def is_stored(packed):
    """Return whether a block of `packed` compressed bytes is stored; 0 means that it is too big."""
    return packed == 0 or packed > BLOCK_BYTES


@inner(inline="always")
def finish_block(out, begin, packed, data, first, size, checksum):
    """Write head and foot around the `packed` bytes of the block at `begin`; return its end.

    If compression does not save space, ``data[first : first + size]`` is stored uncompressed.
    """
    # Assigning an array to a slice takes a second to compile, for its error message.
    for i in range(HEAD.size):
        out[begin + i] = HEAD[i]
    at = begin + HEAD_BYTES
    if is_stored(packed):
        # One deflate block of type "stored".
        out[at] = 1
        _put(out, at + 1, size, 2)
        _put(out, at + 3, size ^ 0xFFFF, 2)
        for i in range(size):
            out[at + STORED_BYTES + i] = data[first + i]
        packed = STORED_BYTES + size
    at = _put(out, at + packed, checksum & 0xFFFFFFFF, 4)
    at = _put(out, at, size, 4)
    _put(out, begin + HEAD.size, at - begin - 1, 2)
    return at


@inner(forceinline=True)
def _put(out, at, number, count):
    for byte in range(count):
        out[at + byte] = number >> 8 * byte & 255
    return at + count


@compiled
def whole_blocks(packed):
    """Return the size of the complete blocks at the beginning, compressed and uncompressed.

    Parameters
    ----------
    packed : ndarray, dtype=uint8
        Bytes of a file; counting stops at anything that is not a complete block.
    """
    at = np.int64(0)
    size = np.int64(0)
    while at + HEAD_BYTES + FOOT_BYTES <= packed.size:
        for i in range(_FIXED.size):
            if packed[at + _FIXED_AT[i]] != _FIXED[i]:
                return at, size
        stop = at + _get(packed, at + _SIZE_AT, 2) + 1
        if stop > packed.size or stop < at + HEAD_BYTES + FOOT_BYTES:
            break
        of_block = _get(packed, stop - 4, 4)
        if of_block > _WHOLE:
            break
        size += of_block
        at = stop
    return at, size


@compiled
def _inflate_blocks(packed, inflate, checksum, decompressor, out):
    """Inflate all blocks and return whether all are valid."""
    source, target = np.int64(packed.ctypes.data), np.int64(out.ctypes.data)
    at = np.int64(0)
    used = np.int64(0)
    while at < packed.size:
        stop = at + _get(packed, at + _SIZE_AT, 2) + 1
        size = _get(packed, stop - 4, 4)
        if stop > packed.size or used + size > out.size:
            return False
        # The result is not 0 if the block holds fewer bytes than `size`, or more.
        failed = _call_6(
            np.int64(inflate), np.int64(decompressor), source + at + HEAD_BYTES,
            stop - at - HEAD_BYTES - FOOT_BYTES, target + used, size, np.int64(0),
        )  # fmt: skip
        if failed & 0xFFFFFFFF:
            return False
        total = _call_3(np.int64(checksum), np.int64(0), target + used, size)
        if total & 0xFFFFFFFF != _get(packed, stop - FOOT_BYTES, 4):
            return False
        used += size
        at = stop
    return used == out.size


@inner(forceinline=True)
def _get(data, at, count):
    number = np.int64(0)
    for byte in range(count):
        number |= np.int64(data[at + byte]) << 8 * byte
    return number
