"""The head of a BAM file: the header's text, and the contigs once more in binary."""

import re
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bwarp.errors import InputError

__all__ = ["BamHeader", "header_bytes", "merged_header", "split_header"]


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


def merged_header(paths: list, headers: list[BamHeader]) -> BamHeader:
    """The header of merged sorted files: their contigs, and every record of each once.

    Raises
    ------
    InputError
        If they are of different references, not sorted, or mean different things by a read group.
    """
    first, groups = headers[0], {}
    lines = dict.fromkeys(first.text.splitlines())
    for path, header in zip(paths, headers, strict=True):
        if (header.names, header.lengths) != (first.names, first.lengths):
            raise InputError(
                f"{path}: its contigs are not those of {paths[0]}: "
                "map all units to the same reference"
            )
        if b"\tSO:coordinate" not in header.text.partition(b"\n")[0]:
            raise InputError(f"{path}: is not sorted: write it with map_reads.py --sort")
        for line in header.text.splitlines():
            if line.startswith(b"@RG\t"):
                name = next((part for part in line.split(b"\t") if part.startswith(b"ID:")), b"")
                if groups.setdefault(name, line) != line:
                    raise InputError(
                        f"{path}: its read group {name[3:].decode()!r} has another header line in "
                        "an earlier unit: give every unit a read group of its own"
                    )
        lines |= dict.fromkeys(header.text.splitlines())
    # As in a file of its own: contigs, groups, programs, the rest.
    kinds = (b"@HD", b"@SQ", b"@RG", b"@PG")
    rank = {kind: number for number, kind in enumerate(kinds)}
    ordered = sorted(lines, key=lambda line: rank.get(line[:3], len(kinds)))
    text = b"".join(line + b"\n" for line in _numbered_programs(ordered))
    return BamHeader(text, first.names, first.lengths)


def _numbered_programs(lines: list[bytes]) -> Iterator[bytes]:
    """The lines, with @PG records of one ID numbered: units may have been mapped differently."""
    seen = Counter()
    for line in lines:
        name = re.match(rb"@PG\tID:([^\t]*)", line)
        if name and seen[name[1]]:
            line = b"%b.%d%b" % (name[0], seen[name[1]], line[name.end() :])
        seen[name and name[1]] += 1
        yield line


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
