"""The head of a BAM file: the header's text, and the contigs once more in binary."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bwarp.errors import InputError

__all__ = ["BamHeader", "header_bytes", "split_header"]


@dataclass(frozen=True)
class BamHeader:
    """What stands before the records.

    Attributes
    ----------
    text : bytes
        Lines of SAM.
    names : tuple of bytes
    lengths : tuple of int
    """

    text: bytes
    names: tuple[bytes, ...]
    lengths: tuple[int, ...]

    @property
    def contig_starts(self) -> np.ndarray:
        """Where the contigs begin when they lie end to end, and where the last one ends."""
        return np.concatenate([[0], np.cumsum(np.array(self.lengths, np.int64))])


def header_bytes(header: BamHeader) -> bytes:
    """The header as it stands at the start of a BAM file."""
    parts = [struct.pack("<4si", b"BAM\1", len(header.text)), header.text]
    parts.append(struct.pack("<i", len(header.names)))
    for name, length in zip(header.names, header.lengths, strict=True):
        parts.append(struct.pack("<i", len(name) + 1) + name + struct.pack("<Bi", 0, length))
    return b"".join(parts)


def split_header(path, blocks: Iterator[bytes]) -> tuple[BamHeader, Iterator[bytes]]:
    """The header at the start of a stream of bytes, and the stream after it."""
    stream = _Stream(path, blocks)
    if stream.take(4) != b"BAM\1":
        raise InputError(f"{path}: not a BAM file: give one that map_reads.py --sort has written")
    text = stream.take(stream.take_number())
    names, lengths = [], []
    for _ in range(stream.take_number()):
        names.append(stream.take(stream.take_number())[:-1])
        lengths.append(stream.take_number())
    return BamHeader(text, tuple(names), tuple(lengths)), stream.rest()


class _Stream:
    """Takes bytes from the start of a stream that comes in blocks."""

    def __init__(self, path, blocks: Iterator[bytes]):
        self._path = path
        self._blocks = blocks
        self._data = b""
        self._at = 0

    def take(self, count: int) -> bytes:
        while len(self._data) - self._at < count:
            block = next(self._blocks, None)
            if block is None:
                raise InputError(f"{self._path}: the file ends within its header: write it again")
            self._data, self._at = self._data[self._at :] + block, 0
        self._at += count
        return self._data[self._at - count : self._at]

    def take_number(self) -> int:
        return struct.unpack("<i", self.take(4))[0]

    def rest(self) -> Iterator[bytes]:
        yield self._data[self._at :]
        yield from self._blocks
