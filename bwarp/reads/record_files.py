"""Read unaligned BAM and CRAM: detect them, inspect their start, and convert them to FASTQ.

For standard input and named pipes only the start is inspected; the next reader still gets all of
it. Of several pipes the first is inspected, and the others are assumed to be FASTQ.
"""

import os
import sys
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np

from bwarp.bam.bgzf import END_OF_FILE
from bwarp.bam.fields import (
    AS,
    CG,
    DE,
    DT,
    FIRST,
    LAST,
    MC,
    MD,
    MQ,
    MS,
    NM,
    NN,
    PA,
    PAIRED,
    REVERSE,
    RG,
    SA,
    SECONDARY,
    SUPPLEMENTARY,
    TP,
    UNMAPPED,
    XA,
    XS,
)
from bwarp.bam.samtools import samtools
from bwarp.errors import InputError
from bwarp.io.line_scan import find_byte
from bwarp.io.names import put_bytes
from bwarp.io.standard_streams import is_stream, may_look_at, open_input, start_of_stream
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.timeline import on_timeline

#: If all of this number of first records are single reads, the file has no pairs.
FIRST_RECORDS = 10_000

#: Bytes of a file inspected to find whether it may be BAM or CRAM, and whether it is; and bytes of
#: a stream inspected for its header and records.
_FIRST_BYTES, _KIND_BYTES, _START_BYTES = 16, 1 << 16, 1 << 24

#: The first bytes of CRAM, and of files in blocks of gzip such as BAM.
_CRAM, _BLOCKED = b"CRAM", b"\x1f\x8b\x08\x04"

#: The last container of a CRAM file, which is empty: its maximum size in bytes, and a part of it.
_CRAM_END, _CRAM_END_MARK = 38, b"\xe0EOF"


def holds_records(path: str | os.PathLike) -> bool:
    """Return whether a file or pipe contains BAM or CRAM."""
    if is_stream(path):
        if not may_look_at(path):
            return False
        start = start_of_stream(path, _FIRST_BYTES)
        if start.startswith(_BLOCKED):
            start = start_of_stream(path, _KIND_BYTES)
    elif os.path.isfile(path):
        with open(path, "rb") as file:
            start = file.read(_KIND_BYTES)
    else:
        return False
    if start.startswith(_CRAM):
        return True
    if not start.startswith(_BLOCKED):
        return False
    try:
        return zlib.decompressobj(31).decompress(start, 4) == b"BAM\1"
    except zlib.error:
        return False


def read_groups(path: str | os.PathLike) -> list[str]:
    """Return the @RG lines in the header of a file of records."""
    with _opened(path) as file:
        return [line for line in str(file.header).splitlines() if line.startswith("@RG\t")]


def has_pairs(path: str | os.PathLike) -> bool:
    """Return whether one of a file's first records is an end of a pair."""
    with _opened(path) as file:
        records = islice(file.fetch(until_eof=True), FIRST_RECORDS)
        try:
            return any(record.is_paired for record in records)
        except OSError:
            # The inspected start of a stream may end anywhere.
            if not is_stream(path):
                raise
            return False


def has_end(last: bytes) -> bool:
    """Return whether the last bytes are the end marker of BAM or CRAM."""
    return last.endswith(END_OF_FILE) or _CRAM_END_MARK in last[-_CRAM_END:]


def without_end(path: str | os.PathLike) -> InputError:
    return InputError(f"{path}: the file is truncated: download or write it again")


@contextmanager
def _opened(path: str | os.PathLike) -> Iterator:
    """Open a file of records so that pysam detects truncation; open the start of a stream."""
    import pysam  # FASTQ does not need it

    # Otherwise pysam prints the error, and that a damaged file cannot be closed.
    before, hooks = pysam.set_verbosity(0), (sys.excepthook, sys.unraisablehook)
    sys.excepthook = sys.unraisablehook = lambda *_: None
    try:
        with _start(path) if is_stream(path) else _whole(path) as name:
            file = pysam.AlignmentFile(name, check_sq=False)
            try:
                yield file
            finally:
                # Closing a damaged file fails with a less specific error.
                with suppress(OSError):
                    file.close()
    except (ValueError, OSError, NotImplementedError) as error:
        raise InputError(
            f"{path}: the file is damaged ({error}): download or write it again"
        ) from None
    finally:
        pysam.set_verbosity(before)
        sys.excepthook, sys.unraisablehook = hooks


@contextmanager
def _whole(path: str | os.PathLike) -> Iterator[str]:
    """Yield the name of a file, after checking that CRAM has an end marker."""
    with open(path, "rb") as file:
        is_cram = file.read(4) == _CRAM
        file.seek(-min(_CRAM_END, os.path.getsize(path)), os.SEEK_END)
        if is_cram and not has_end(file.read()):
            raise without_end(path)
    yield os.fspath(path)


@contextmanager
def _start(path: str | os.PathLike) -> Iterator[str]:
    """Yield the name of a file in memory with the start of a stream."""
    start = start_of_stream(path, _START_BYTES)
    with open(os.memfd_create("start"), "wb") as file:
        file.write(start)
        # pysam warns about BAM without an end marker.
        if not start.startswith(_CRAM) and not has_end(start):
            file.write(END_OF_FILE)
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}"


# --------------------------------------------------------------------------------------------------
# Reads in BAM and CRAM as FASTQ: samtools writes SAM, and its lines are converted.
#
# name 77 * 0 0 * * 0 0 ACGT IIII RX:Z:TTA        @name<tab>RX:Z:TTA  ACGT  +  IIII
#
# The ends of a pair are adjacent, the first end first, as in interleaved FASTQ.


#: Tags of alignments, which mapped reads get anew, and the read group, which comes last.
_LEFT_OUT = np.array([NM, MD, MC, MQ, AS, XS, SA, XA, PA, MS, NN, TP, DE, CG, DT, RG])

#: Quality of reads without qualities, as in samtools fastq.
_NO_QUALITY = 66

_EITHER_END, _MORE_RECORDS = FIRST | LAST, SECONDARY | SUPPLEMENTARY

#: Bytes of a stream sent to samtools at a time, and last bytes that contain an end marker.
_SENT_BYTES, _END_BYTES = 1 << 20, 64

# Return codes of the converter other than success.
_ALIGNED = 1
_SAME_NAME = 2
_NOT_A_RECORD = 3
_PAIR_LATE = 4


@on_timeline("read and inflate")
def read_unaligned(
    path: str | os.PathLike, block_bytes: int, threads: int = 1, with_groups: bool = False
) -> Iterator[bytes | memoryview]:
    """Yield the reads of a BAM or CRAM file as FASTQ with tags as comments, in blocks.

    The file may be a pipe; ``-`` is standard input. The read group is among the tags if
    `with_groups`.

    Raises
    ------
    InputError
        For alignments, damaged files, two adjacent reads of the same name that are not a pair,
        and a pair after many single reads.
    """
    paired = has_pairs(path)
    left_out = _LEFT_OUT[:-1] if with_groups else _LEFT_OUT
    sent = _Sent(path) if is_stream(path) else None
    arguments = ["view", "-@", str(threads - 1), "-" if sent else os.path.abspath(path)]
    with samtools(arguments, Path.cwd(), os.fspath(path), "read") as process:
        if sent:
            sent.begin(process.stdin)
        left = np.empty(0, np.uint8)
        while True:
            block = process.stdout.read(block_bytes)
            lines = np.concatenate([left, np.frombuffer(block, np.uint8)])
            # FASTQ has one more line, and always qualities.
            made = np.empty(2 * lines.size + 8, np.uint8)
            size, at, problem = _as_fastq(lines, paired, not block, left_out, made)
            if size:
                yield made[:size].data
            if problem:
                raise _error(path, lines[at:].tobytes().partition(b"\n")[0], problem)
            left = lines[at:]
            if not block:
                break
    if sent:
        sent.end()


class _Sent:
    """A stream that a thread sends to a process."""

    def __init__(self, path: str | os.PathLike):
        self._path = path
        self._thread = self._failure = None
        self._last = b""

    def begin(self, to: BinaryIO) -> None:
        self._thread = threading.Thread(target=self._send, args=(to,), daemon=True)
        self._thread.start()

    def _send(self, to: BinaryIO) -> None:
        try:
            # A failed process stops reading and reports the reason.
            with open_input(self._path) as file, suppress(BrokenPipeError, ValueError):
                while block := file.read(_SENT_BYTES):
                    self._last = (self._last + block[-_END_BYTES:])[-_END_BYTES:]
                    to.write(block)
        except OSError as error:
            self._failure = error
        finally:
            # Otherwise the process would wait for more.
            with suppress(OSError, ValueError):
                to.close()

    def end(self) -> None:
        """Raise an error for files cut off between two blocks, which samtools accepts."""
        self._thread.join()
        if self._failure is not None:
            raise self._failure
        if not has_end(self._last):
            raise without_end(self._path)


def _error(path, line: bytes, problem: int) -> InputError:
    name = line.partition(b"\t")[0].decode("utf-8", "replace")
    if problem == _ALIGNED:
        return InputError(
            f"{path}: the read {name!r} is aligned: remove the alignments first (samtools collate "
            f"-u -O {path} | samtools reset -o unaligned.bam)"
        )
    if problem == _SAME_NAME:
        return InputError(
            f"{path}: two consecutive reads are named {name!r} but are not the two ends of a pair: "
            "rename one"
        )
    if problem == _PAIR_LATE:
        return InputError(
            f"{path}: the read {name!r} is from a pair, but the first {FIRST_RECORDS:,} are "
            "single: put pairs (samtools view -b -f 1) and single reads (-F 1) in separate files"
        )
    return InputError(f"{path}: not a valid record: {line[:40].decode('latin-1')!r}")


@compiled
def _as_fastq(lines, paired, at_end, left_out, out):
    """Convert lines of SAM to FASTQ.

    Return the number of bytes written, the position reached in the lines, and the problem of the
    next line. A line is held back until the next one, which may have its mate.
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
            if not flag & other & PAIRED or (flag ^ other) & _EITHER_END != _EITHER_END:
                return size, at, _SAME_NAME
            if flag & LAST:
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


@compiled
def _columns(lines, at, columns):
    """Find the start of each column of a line; return its end, or -1 if it is incomplete.

    The twelfth column, of tags, starts after the end of the line if there are none.
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


@compiled
def _flag(lines, columns, paired):
    """Return the flags of a line, and its problem."""
    flag = 0
    for i in range(columns[1], columns[2] - 1):
        flag = 10 * flag + lines[i] - 48
    if columns[10] == columns[11]:
        return flag, _NOT_A_RECORD
    if not flag & UNMAPPED or flag & (REVERSE | _MORE_RECORDS):
        return flag, _ALIGNED
    if flag & PAIRED and not paired:
        return flag, _PAIR_LATE
    return flag, 0


@compiled
def _same_name(lines, columns, others):
    length = columns[1] - columns[0]
    same = others[1] - others[0] == length
    for i in range(length if same else 0):
        same &= lines[columns[0] + i] == lines[others[0] + i]
    return same


@compiled
def _put(lines, columns, feed, left_out, out, size):
    """Write a read as FASTQ; return the end."""
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
    # A read without bases, or without qualities, has a * there.
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


@compiled
def _is_left_out(lines, at, left_out):
    name = np.int64(lines[at]) | np.int64(lines[at + 1]) << 8
    return name in left_out
