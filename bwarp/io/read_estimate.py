"""About how many reads a file has, by its size and its first ones: to plan before it is read."""

import os
import zlib

__all__ = ["estimated_reads"]

#: What is looked at of a file.
_HEAD_BYTES = 1 << 18

#: Bytes that a read takes in files whose first reads are not looked at: bz2, xz, zstd, BAM, CRAM.
_PACKED_READ = 100


def estimated_reads(path: str | os.PathLike) -> int:
    """The reads of a FASTQ or FASTA file, plain or compressed, if they are all like the first ones.

    Of an empty file none, of any other one at least.
    """
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        head = file.read(_HEAD_BYTES)
    text, used = _inflated(head) if head.startswith(b"\x1f\x8b") else (head, len(head))
    reads = _reads_in(text)
    bytes_a_read = used / reads if reads else _PACKED_READ
    return -int(-size // bytes_a_read)


def _inflated(head: bytes) -> tuple[bytes, int]:
    """What the first streams of a gz file hold, and how many bytes of it that took."""
    parts, left = [], head
    while left:
        stream = zlib.decompressobj(31)
        try:
            parts.append(stream.decompress(left))
        except zlib.error:
            break
        left = stream.unused_data
    return b"".join(parts), len(head) - len(left)


def _reads_in(text: bytes) -> float:
    if text.startswith(b"@"):
        return text.count(b"\n") / 4
    if text.startswith(b">"):
        return text.count(b"\n>") + 1
    return 0
