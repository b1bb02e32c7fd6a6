"""Cutting a FASTA or FASTQ file into parts: whole records, in order, about as many bytes in each.

    bytes    0                  1/3                 2/3                 all
    records  |------|---|-------|--|-------------------------|-----|----|
    parts    1                  2                               3

A part begins with the first record behind its share of the bytes, and has one record at least.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import numpy as np

from bwarp.errors import InputError
from bwarp.io.fastx_text import RecordText, cut_records
from bwarp.io.file_blocks import read_blocks
from bwarp.runtime.timeline import on_timeline

__all__ = ["write_parts"]


@on_timeline("cut sequences")
def write_parts(
    path: str | os.PathLike, folder: str | os.PathLike, parts: int, threads: int = 1
) -> int:
    """Write the records of a file to files ``1.fa`` and so on, as they stand there.

    The file is read twice: how many records it has decides where it is cut.

    Parameters
    ----------
    path : path-like
        Plain or compressed; not standard input.
    parts : int
        As many files are written.

    Returns
    -------
    count : int
        The records of the file.

    Raises
    ------
    InputError
        For what is neither FASTA nor FASTQ, where there are fewer records than parts, and for a
        file that gives other records the second time, such as a pipe.
    """
    n_records = n_bytes = 0
    for records in _records(path, threads):
        n_records += records.count
        n_bytes += _size(records)
    if n_records < parts:
        raise InputError(
            f"{path}: has {n_records:,} sequences, which cannot be cut into {parts:,} parts: ask "
            "for fewer parts"
        )
    part, bytes_before, file, n_left = 0, 0, None, n_records
    with ExitStack() as opened:
        for records in _records(path, threads):
            cuts = _cuts(records, part, parts, n_records, bytes_before, n_bytes)
            if file:
                file.write(_text(records, 0, cuts[0] if cuts else records.count))
            for first, stop in pairwise([*cuts, records.count]):
                part += 1
                opened.close()
                file = opened.enter_context(open(Path(folder, f"{part}.fa"), "wb"))
                file.write(_text(records, first, stop))
            bytes_before += _size(records)
            n_left -= records.count
    if n_left or bytes_before != n_bytes:
        raise InputError(
            f"{path}: held other sequences when it was read once more: give a file, not a pipe, "
            "that nothing writes meanwhile"
        )
    return n_records


def _records(path, threads: int) -> Iterator[RecordText]:
    return cut_records(path, read_blocks(path, threads=threads))


def _text(records: RecordText, first: int, stop: int) -> memoryview:
    return records.text[records.starts[first] : records.starts[stop]].data


def _size(records: RecordText) -> int:
    return int(records.starts[-1] - records.starts[0])


def _cuts(
    records: RecordText, part: int, parts: int, n_records: int, bytes_before: int, n_bytes: int
) -> list[int]:
    """Those of some records that parts begin with, when `part` have begun before them."""
    cuts, least = [], 0
    behind = records.starts[:-1] - records.starts[0] + bytes_before
    while part < parts:
        at = int(np.searchsorted(behind, -(-part * n_bytes // parts)))
        # Of those behind it, one for each of the parts that are left.
        at = max(least, min(at, n_records - (parts - part) - records.first_record))
        if at >= records.count:
            break
        cuts.append(at)
        part, least = part + 1, at + 1
    return cuts
