"""Files of reads as BAM and CRAM: whether a file is one, and what its start tells of the rest.

Of standard input and of a named pipe only the start is looked at; whoever reads it next still gets
all of it. Of several pipes the first one is looked at, and the others are taken for FASTQ.
"""

import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import islice

from bwarp.errors import InputError
from bwarp.io.bam.bgzf import END_OF_FILE
from bwarp.io.standard_streams import is_stream, may_look_at, start_of_stream

__all__ = [
    "FIRST_RECORDS",
    "has_end",
    "has_pairs",
    "holds_records",
    "read_groups",
    "without_end",
]

#: Where there are single reads alone in so many records, there are no others.
FIRST_RECORDS = 10_000

#: What is looked at of a file to know whether it may be BAM or CRAM, and whether it is; and of a
#: stream to know its header and records.
_FIRST_BYTES, _KIND_BYTES, _START_BYTES = 16, 1 << 16, 1 << 24

#: How CRAM begins, and files in blocks of gzip, as BAM is.
_CRAM, _BLOCKED = b"CRAM", b"\x1f\x8b\x08\x04"

#: The last container of a CRAM file, which holds nothing: how many bytes it takes at most, and a
#: part of it.
_CRAM_END, _CRAM_END_MARK = 38, b"\xe0EOF"


def holds_records(path: str | os.PathLike) -> bool:
    """Whether a file, or what a pipe holds, is BAM or CRAM."""
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
    """The @RG lines in the header of a file of records."""
    with _opened(path) as file:
        return [line for line in str(file.header).splitlines() if line.startswith("@RG\t")]


def has_pairs(path: str | os.PathLike) -> bool:
    """Whether one of a file's first records is an end of a pair."""
    with _opened(path) as file:
        records = islice(file.fetch(until_eof=True), FIRST_RECORDS)
        try:
            return any(record.is_paired for record in records)
        except OSError:
            # The start of a stream ends anywhere.
            if not is_stream(path):
                raise
            return False


def has_end(last: bytes) -> bool:
    """Whether the last bytes of BAM or CRAM are those that end such a file."""
    return last.endswith(END_OF_FILE) or _CRAM_END_MARK in last[-_CRAM_END:]


def without_end(path: str | os.PathLike) -> InputError:
    return InputError(f"{path}: the file is damaged (it has no end): fetch or write it again")


@contextmanager
def _opened(path: str | os.PathLike) -> Iterator:
    """A file of records, of which pysam knows whether it ends too early; of a stream the start."""
    import pysam  # which FASTQ does not need

    # It would print what the error says, and that what is damaged cannot be closed.
    before, hooks = pysam.set_verbosity(0), (sys.excepthook, sys.unraisablehook)
    sys.excepthook = sys.unraisablehook = lambda *_: None
    try:
        with _start(path) if is_stream(path) else _whole(path) as name:
            file = pysam.AlignmentFile(name, check_sq=False)
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


@contextmanager
def _whole(path: str | os.PathLike) -> Iterator[str]:
    """The name of a file, of which nobody else asks whether CRAM has an end."""
    with open(path, "rb") as file:
        is_cram = file.read(4) == _CRAM
        file.seek(-min(_CRAM_END, os.path.getsize(path)), os.SEEK_END)
        if is_cram and not has_end(file.read()):
            raise without_end(path)
    yield os.fspath(path)


@contextmanager
def _start(path: str | os.PathLike) -> Iterator[str]:
    """A name of the start of a stream, as a file in memory."""
    start = start_of_stream(path, _START_BYTES)
    with open(os.memfd_create("start"), "wb") as file:
        file.write(start)
        # pysam warns of BAM that has no end.
        if not start.startswith(_CRAM) and not has_end(start):
            file.write(END_OF_FILE)
        file.flush()
        yield f"/proc/self/fd/{file.fileno()}"
