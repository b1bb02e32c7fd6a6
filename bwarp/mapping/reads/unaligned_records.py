"""Reads in BAM and CRAM, as FASTQ: samtools makes lines of SAM, and these become other lines.

name 77 * 0 0 * * 0 0 ACGT IIII RX:Z:TTA        @name<tab>RX:Z:TTA  ACGT  +  IIII

The ends of a pair come one after the other, the first end first, as `interleaved` FASTQ has them.
"""

import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path

import numba
import numpy as np

from bwarp.errors import InputError
from bwarp.io.bam.samtools_process import samtools
from bwarp.io.line_scan import find_byte
from bwarp.io.put_text import put_bytes
from bwarp.runtime.timeline import on_timeline

__all__ = ["has_pairs", "holds_records", "read_groups", "read_unaligned"]

#: Tags of alignments, which mapped reads get anew, and the read group, which the header names.
_LEFT_OUT = np.frombuffer(b"NMMDMCMQASXSSAXApamsnntpdecgRG", np.uint8)

#: What a read without qualities gets, as from samtools fastq.
_NO_QUALITY = 66

# Flags of SAM.
_PAIRED, _UNMAPPED, _REVERSE, _SECOND = 1, 4, 16, 128
_EITHER_END, _MORE_RECORDS = 64 | 128, 256 | 2048

#: The last container of a CRAM file, which holds nothing: how many bytes it takes at most, and a
#: part of it.
_CRAM_END, _CRAM_END_MARK = 38, b"\xe0EOF"

# What the converter reports besides success.
_ALIGNED = 1
_SAME_NAME = 2
_NOT_A_RECORD = 3
_PAIR_LATE = 4

#: Where there are single reads alone in so many records, there are no others.
_FIRST_RECORDS = 10_000


def holds_records(path: str | os.PathLike) -> bool:
    """Whether a file is BAM or CRAM; of a stream that is not known before it is read."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        start = file.read(1 << 16)
    if start.startswith(b"CRAM"):
        return True
    if not start.startswith(b"\x1f\x8b\x08\x04"):
        return False
    try:
        return zlib.decompressobj(31).decompress(start, 4) == b"BAM\1"
    except zlib.error:
        return False


def read_groups(path: str | os.PathLike) -> list[str]:
    """The @RG lines in the header of a file of records."""
    with _opened(path) as file:
        return [line for line in str(file.header).splitlines() if line.startswith("@RG\t")]


def has_pairs(path: str | os.PathLike) -> bool:
    """Whether one of a file's first records is an end of a pair."""
    with _opened(path) as file:
        return any(
            record.is_paired for record in islice(file.fetch(until_eof=True), _FIRST_RECORDS)
        )


@contextmanager
def _opened(path: str | os.PathLike) -> Iterator:
    """A file of records, of which pysam knows whether it ends too early."""
    import pysam  # which FASTQ does not need

    with open(path, "rb") as file:
        is_cram = file.read(4) == b"CRAM"
        file.seek(-min(_CRAM_END, os.path.getsize(path)), os.SEEK_END)
        if is_cram and _CRAM_END_MARK not in file.read():
            # Which nobody else asks for.
            raise InputError(
                f"{path}: the file is damaged (it has no end): fetch or write it again"
            )
    # It would print what the error says, and that what is damaged cannot be closed.
    before, hooks = pysam.set_verbosity(0), (sys.excepthook, sys.unraisablehook)
    sys.excepthook = sys.unraisablehook = lambda *_: None
    try:
        file = pysam.AlignmentFile(os.fspath(path), check_sq=False)
        try:
            yield file
        finally:
            # Closing what is damaged fails, and says less.
            with suppress(OSError):
                file.close()
    except (ValueError, OSError, NotImplementedError) as error:
        raise InputError(
            f"{path}: the file is damaged ({error}): fetch or write it again"
        ) from None
    finally:
        pysam.set_verbosity(before)
        sys.excepthook, sys.unraisablehook = hooks


@on_timeline("read and inflate")
def read_unaligned(
    path: str | os.PathLike, block_bytes: int, threads: int = 1
) -> Iterator[bytes | memoryview]:
    """The reads of a BAM or CRAM file as FASTQ with tags for comments, in blocks.

    Raises
    ------
    InputError
        For alignments, a file that is damaged, two reads in a row with one name that are not the
        ends of a pair, and a pair behind many single reads.
    """
    paired = has_pairs(path)
    arguments = ["view", "-@", str(threads - 1), os.path.abspath(path)]
    with samtools(arguments, Path.cwd(), os.fspath(path), "read") as process:
        left = np.empty(0, np.uint8)
        while True:
            block = process.stdout.read(block_bytes)
            lines = np.concatenate([left, np.frombuffer(block, np.uint8)])
            # A line of FASTQ more, and qualities that are not given.
            made = np.empty(2 * lines.size + 8, np.uint8)
            size, at, problem = _as_fastq(lines, paired, not block, _LEFT_OUT, made)
            if size:
                yield made[:size].data
            if problem:
                raise _error(path, lines[at:].tobytes().partition(b"\n")[0], problem)
            left = lines[at:]
            if not block:
                return


def _error(path, line: bytes, problem: int) -> InputError:
    name = line.partition(b"\t")[0].decode("utf-8", "replace")
    if problem == _ALIGNED:
        return InputError(
            f"{path}: the read {name!r} is aligned: take the alignments away first (samtools "
            f"collate -u -O {path} | samtools reset -o unaligned.bam)"
        )
    if problem == _SAME_NAME:
        return InputError(
            f"{path}: two reads in a row are called {name!r}, and are not the two ends of a pair: "
            "give every read or pair a name of its own"
        )
    if problem == _PAIR_LATE:
        return InputError(
            f"{path}: the read {name!r} is of a pair, and the first {_FIRST_RECORDS:,} are single: "
            "map pairs (samtools view -b -f 1) and single reads (-F 1) from files of their own"
        )
    return InputError(f"{path}: not a record of a read: {line[:40].decode('latin-1')!r}")


@numba.njit(cache=True, nogil=True)
def _as_fastq(lines, paired, at_end, left_out, out):
    """Make FASTQ of lines of SAM.

    Returns how much was written, how far lines were read, and what is wrong with the next one. A
    line waits for the next one, which may have its mate.
    """
    size = np.int64(0)
    at = np.int64(0)
    columns, others = np.empty(12, np.int64), np.empty(12, np.int64)
    feed = _columns(lines, at, columns)
    while feed >= 0:
        flag, problem = _flag(lines, columns, paired)
        if problem:
            return size, at, problem
        other_feed = _columns(lines, feed + 1, others)
        if other_feed < 0 and not at_end:
            return size, at, 0
        if other_feed >= 0 and _same_name(lines, columns, others):
            other, problem = _flag(lines, others, paired)
            if problem:
                return size, feed + 1, problem
            if not flag & other & _PAIRED or (flag ^ other) & _EITHER_END != _EITHER_END:
                return size, at, _SAME_NAME
            if flag & _SECOND:
                size = _put(lines, others, other_feed, left_out, out, size)
                size = _put(lines, columns, feed, left_out, out, size)
            else:
                size = _put(lines, columns, feed, left_out, out, size)
                size = _put(lines, others, other_feed, left_out, out, size)
            at = other_feed + 1
            feed = _columns(lines, at, columns)
        else:
            size = _put(lines, columns, feed, left_out, out, size)
            at = feed + 1
            columns, others = others, columns
            feed = other_feed
    if at_end and at < lines.size:
        return size, at, _NOT_A_RECORD
    return size, at, 0


@numba.njit(cache=True, nogil=True)
def _columns(lines, at, columns):
    """Find where the columns of a line begin; returns where it ends, -1 if it is not whole.

    The twelfth, of tags, begins behind the line's end where there are none.
    """
    feed = find_byte(lines, at, lines.size, 10)
    if feed >= lines.size:
        return np.int64(-1)
    columns[0] = at
    found = 1
    while found < 12:
        at = find_byte(lines, at, feed, 9) + 1
        if at > feed:
            break
        columns[found] = at
        found += 1
    for i in range(found, 12):
        columns[i] = feed + 1
    return feed


@numba.njit(cache=True, nogil=True)
def _flag(lines, columns, paired):
    """The flags of a line, and what is wrong with it."""
    flag = 0
    for i in range(columns[1], columns[2] - 1):
        flag = 10 * flag + lines[i] - 48
    if columns[10] == columns[11]:
        return flag, _NOT_A_RECORD
    if not flag & _UNMAPPED or flag & (_REVERSE | _MORE_RECORDS):
        return flag, _ALIGNED
    if flag & _PAIRED and not paired:
        return flag, _PAIR_LATE
    return flag, 0


@numba.njit(cache=True, nogil=True)
def _same_name(lines, columns, others):
    length = columns[1] - columns[0]
    same = others[1] - others[0] == length
    for i in range(length if same else 0):
        same &= lines[columns[0] + i] == lines[others[0] + i]
    return same


@numba.njit(cache=True, nogil=True)
def _put(lines, columns, feed, left_out, out, size):
    """Write a read as FASTQ; returns where it ends."""
    out[size] = 64
    size = put_bytes(out, size + 1, lines, columns[0], columns[1] - 1)
    at = columns[11]
    while at < feed:
        stop = at
        while stop < feed and lines[stop] != 9:
            stop += 1
        if not _is_left_out(lines, at, left_out):
            out[size] = 9
            size = put_bytes(out, size + 1, lines, at, stop)
        at = stop + 1
    out[size] = 10
    first, stop = columns[9], columns[10] - 1
    # A read without bases, and one without qualities, has a * there.
    if stop - first == 1 and lines[first] == 42:
        stop = first
    size = put_bytes(out, size + 1, lines, first, stop)
    out[size] = 10
    out[size + 1] = 43
    out[size + 2] = 10
    size += 3
    if lines[columns[10]] != 42 or columns[11] - columns[10] > 2:
        size = put_bytes(out, size, lines, columns[10], columns[11] - 1)
    else:
        for _ in range(stop - first):
            out[size] = _NO_QUALITY
            size += 1
    out[size] = 10
    return size + 1


@numba.njit(cache=True, nogil=True)
def _is_left_out(lines, at, left_out):
    for i in range(0, left_out.size, 2):
        if lines[at] == left_out[i] and lines[at + 1] == left_out[i + 1]:
            return True
    return False
