"""Cutting a FASTA or FASTQ file into parts of about equal size: whole records, in order.

    bytes    0                  1/3                 2/3                 all
    records  |------|---|-------|--|-------------------------|-----|----|
    parts    1                  2                               3

A part begins with the first record after the shares of the parts before it, and has at least one
record. The records are checked before they are cut, so errors name lines of the whole file.
"""

import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import numpy as np

from bwarp.counted import counted
from bwarp.errors import InputError
from bwarp.io.compressed_files import read_blocks
from bwarp.io.fastx import RecordText, SequenceBatch, cut_records, parse_records
from bwarp.runtime.timeline import on_timeline
from bwarp.sequence import CODE_OF_BYTE

#: A function that reads all sequences of a file and raises errors for unsuitable ones.
Check = Callable[[Iterator[SequenceBatch]], object]


@on_timeline("cut sequences")
def write_parts(
    path: str | os.PathLike,
    folder: str | os.PathLike,
    parts: int,
    check: Check,
    code_of_byte: np.ndarray = CODE_OF_BYTE,
    threads: int = 1,
) -> int:
    """Write the records of a file unchanged to files ``1.fa``, ``2.fa`` and so on.

    The file is read twice, because the cuts depend on its number of records.

    Parameters
    ----------
    path : path-like
        Plain or compressed; not standard input.
    parts : int
        Number of files to write.
    check : callable
        Takes an iterator of the batches of sequences, and consumes all of them.
    code_of_byte : ndarray, shape=(256,), dtype=uint8
        As for `bwarp.io.fastx.read_sequences`.

    Returns
    -------
    count : int
        Number of records in the file.

    Raises
    ------
    InputError
        If the file is not FASTA or FASTQ, or `check` rejects it; if it has fewer records than
        parts; or if its records differ the second time, as those of a pipe do.
    """
    n_records = n_bytes = 0

    def batches():
        nonlocal n_records, n_bytes
        for records in _records(path, threads):
            n_records += records.count
            n_bytes += _size(records)
            yield parse_records(path, records, code_of_byte)

    check(batches())
    n_written, bytes_written = _write(
        path, _records(path, threads), folder, parts, n_records, n_bytes
    )
    if (n_written, bytes_written) != (n_records, n_bytes):
        raise InputError(
            f"{path}: the sequences changed between two readings: use a file, not a pipe, and do "
            "not change it meanwhile"
        )
    return n_records


@on_timeline("cut sequences")
def write_parts_by_length(
    path: str | os.PathLike,
    folder: str | os.PathLike,
    parts: int,
    check: Check,
    code_of_byte: np.ndarray = CODE_OF_BYTE,
    threads: int = 1,
) -> int:
    """Write parts like `write_parts`, but sort the sequences by length, the shortest first.

    The sort is stable. The file is read once, and kept in memory.
    """
    texts, sizes, lengths = [], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]

    def batches():
        for records in _records(path, threads):
            texts.append(_text(records, 0, records.count))
            sizes.append(np.diff(records.starts))
            batch = parse_records(path, records, code_of_byte)
            lengths.append(np.diff(batch.offsets))
            yield batch

    check(batches())
    ends = np.cumsum(np.concatenate(sizes))
    starts = ends - np.concatenate(sizes)
    order = np.argsort(np.concatenate(lengths), kind="stable")
    text = b"".join(texts)
    in_order = zip(starts[order].tolist(), ends[order].tolist(), strict=True)
    ordered = RecordText(
        np.frombuffer(b"".join(text[start:end] for start, end in in_order), np.uint8),
        np.append(0, np.cumsum((ends - starts)[order])),
        feeds=None,  # lines have been checked already
        lines_before=0,
        first_record=0,
    )
    _write(path, iter([ordered]), folder, parts, ordered.count, len(text))
    return ordered.count


def _write(
    path, blocks: Iterator[RecordText], folder, parts: int, n_records: int, n_bytes: int
) -> tuple[int, int]:
    """Write `n_records` records to the parts; return the number written, and their bytes."""
    if n_records < parts:
        raise InputError(
            f"{path}: {counted(n_records, 'sequence')} cannot be cut into "
            f"{counted(parts, 'part')}: use fewer parts"
        )
    part, bytes_before, file, n_written = 0, 0, None, 0
    with ExitStack() as opened:
        for records in blocks:
            cuts = _cuts(records, part, parts, n_records, bytes_before, n_bytes)
            if file:
                file.write(_text(records, 0, cuts[0] if cuts else records.count))
            for first, stop in pairwise([*cuts, records.count]):
                part += 1
                opened.close()
                file = opened.enter_context(open(Path(folder, f"{part}.fa"), "wb"))
                file.write(_text(records, first, stop))
            bytes_before += _size(records)
            n_written += records.count
    return n_written, bytes_before


def _records(path, threads: int) -> Iterator[RecordText]:
    return cut_records(path, read_blocks(path, threads=threads))


def _text(records: RecordText, first: int, stop: int) -> memoryview:
    return records.text[records.starts[first] : records.starts[stop]].data


def _size(records: RecordText) -> int:
    return int(records.starts[-1] - records.starts[0])


def _cuts(
    records: RecordText, part: int, parts: int, n_records: int, bytes_before: int, n_bytes: int
) -> list[int]:
    """Return the records with which parts begin, if `part` parts began before them."""
    cuts, least = [], 0
    behind = records.starts[:-1] - records.starts[0] + bytes_before
    while part < parts:
        at = int(np.searchsorted(behind, -(-part * n_bytes // parts)))
        # Leave at least one record for each of the remaining parts.
        at = max(least, min(at, n_records - (parts - part) - records.first_record))
        if at >= records.count:
            break
        cuts.append(at)
        part, least = part + 1, at + 1
    return cuts


# --------------------------------------------------------------------------------------------------
# Estimating the number of reads in a file from its size and its first reads.


#: Bytes at the start of a file that are read for the estimate.
_HEAD_BYTES = 1 << 18

#: Assumed bytes per read in files that are not inflated for this: bz2, xz, zstd, BAM, CRAM.
_PACKED_READ = 100


def estimated_reads(path: str | os.PathLike) -> int:
    """Estimate the number of reads in a plain or compressed FASTQ or FASTA file from the first
    ones.

    Returns 0 for an empty file, and at least 1 for any other.
    """
    size = os.path.getsize(path)
    with open(path, "rb") as file:
        head = file.read(_HEAD_BYTES)
    text, used = _inflated(head) if head.startswith(b"\x1f\x8b") else (head, len(head))
    reads = _reads_in(text)
    bytes_a_read = used / reads if reads else _PACKED_READ
    return -int(-size // bytes_a_read)


def _inflated(head: bytes) -> tuple[bytes, int]:
    """Inflate the first streams of a gz file; return their text, and the bytes they took."""
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
