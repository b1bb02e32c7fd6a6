"""Minimal BAM records, made with struct."""

import struct

import numpy as np

from bwarp.bam.header import BamHeader
from bwarp.bam.records import Records, first_bin
from bwarp.bam.sort_keys import sort_keys


def header_of(contigs: dict[str, int], order: str = "unsorted") -> BamHeader:
    lines = [f"@HD\tVN:1.6\tSO:{order}\n"]
    lines += [f"@SQ\tSN:{name}\tLN:{length}\n" for name, length in contigs.items()]
    names = tuple(name.encode() for name in contigs)
    return BamHeader("".join(lines).encode(), names, tuple(contigs.values()))


def record(name: str, contig: int, at: int, flag: int, cigar, filling: bytes = b"") -> bytes:
    """Return a record without bases; `cigar` is pairs of length and operation number."""
    span = sum(n for n, operation in cigar if operation in (0, 2, 3, 7, 8))
    number = int(first_bin(at, at + max(span, 1)))
    body = struct.pack(
        "<iiBBHHHiiii", contig, at, len(name) + 1, 30, number & 0xFFFF, len(cigar), flag,
        0, -1, -1, 0,
    )  # fmt: skip
    body += name.encode() + b"\0" + b"".join(struct.pack("<I", n << 4 | o) for n, o in cigar)
    if filling:
        body += b"XFZ" + filling + b"\0"
    return struct.pack("<i", len(body)) + body


def random_record(rng, number: int, header: BamHeader) -> tuple[bytes, int]:
    """Return a random mapped or unmapped record, and its sort key."""
    kind = rng.random()
    contig = int(rng.integers(len(header.lengths)))
    at, flag, cigar = int(rng.integers(header.lengths[contig] - 50)), 0, [(50, 0)]
    if kind < 0.1:
        contig, at, flag, cigar = -1, -1, 4, []
    elif kind < 0.2:
        flag, cigar = 4, []
    elif kind < 0.5:
        flag = 16
        room = header.lengths[contig] - at
        cigar = [(5, 4), (20, 0), (int(min(room - 30, rng.choice([2, 3000, 200_000]))), 3), (10, 7)]
    elif kind < 0.7:
        at = 100 * int(rng.integers(3))
    filling = rng.integers(33, 127, int(rng.choice([0, 5, 300]))).astype(np.uint8).tobytes()
    data = record(f"r{number}", contig, at, flag, cigar, filling)
    starts = header.contig_starts
    position = np.array([starts[contig] + at if contig >= 0 else -1])
    return data, int(sort_keys(position, np.array([flag & 16 != 0]))[0])


def joined(records: list[tuple[bytes, int]]) -> Records:
    sizes = [len(data) for data, _ in records]
    return Records(
        np.frombuffer(b"".join(data for data, _ in records), np.uint8),
        np.concatenate([[0], np.cumsum(np.array(sizes, np.int64))]),
        np.array([key for _, key in records], np.uint64),
    )
