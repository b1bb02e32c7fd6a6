"""Reads and their mates, in memory or in files, as the chunks that are searched."""

import os
from collections.abc import Iterator
from itertools import islice

import numpy as np

from bwarp.api.sequences import Given, Sequences, batch_of, given_sequences, is_file
from bwarp.counted import counted
from bwarp.errors import InputError, UsageError
from bwarp.mapping.reads.read_chunks import LONGEST_READ, ReadChunk, read_chunks

__all__ = ["chunks_of_reads"]


def chunks_of_reads(
    reads: Sequences, mates: Sequences | None, size: int, threads: int
) -> Iterator[ReadChunk]:
    """Reads in chunks of so many; with `mates`, pairs: mate i is the other end of read i.

    Parameters
    ----------
    reads, mates : path, or sequences in memory
        Both as files, or both in memory.
    """
    in_file = is_file(reads, "reads")
    if mates is not None and is_file(mates, "mates") != in_file:
        raise UsageError("reads and mates: give both as files, or both in memory")
    if in_file:
        mate_file = None if mates is None else os.fspath(mates)
        return read_chunks(os.fspath(reads), mate_file, False, size, threads)
    return _chunks_of(reads, mates, size)


def _chunks_of(reads: Sequences, mates: Sequences | None, size: int) -> Iterator[ReadChunk]:
    """Reads in memory in chunks of so many; of pairs both ends side by side."""
    items = list(given_sequences(reads, "reads"))
    ends = 1
    if mates is not None:
        partners = list(given_sequences(mates, "mates"))
        if len(partners) != len(items):
            raise InputError(
                f"{counted(len(items), 'read')} but {counted(len(partners), 'mate')}: give one "
                "mate for every read"
            )
        ends = 2
        items = [read for pair in zip(items, partners, strict=True) for read in pair]
    first, items = 0, iter(items)
    while part := list(islice(items, size)):
        yield _chunk_of(part, ends, first)
        first += len(part) // ends


def _chunk_of(items: list[Given], ends: int, first_template: int) -> ReadChunk:
    batch = batch_of(items)
    lengths = np.diff(batch.offsets)
    for number in np.flatnonzero(lengths > LONGEST_READ)[:1]:
        raise InputError(
            f"{items[number].where} has {counted(lengths[number], 'base')}, and the longest "
            "that are mapped "
            f"have {LONGEST_READ:,}: map longer reads with a mapper made for them, such as minimap2"
        )
    return ReadChunk(
        codes=batch.codes,
        offsets=batch.offsets,
        qualities=None,
        text=batch.text,
        names=batch.headers[::ends].copy(),
        ends=ends,
        first_template=first_template,
    )
