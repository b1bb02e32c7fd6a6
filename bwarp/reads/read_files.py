"""The input files of a run: those of pairs, and those of single reads, in order.

-1 a_1.fq b_1.fq -2 a_2.fq b_2.fq -U c.fq       the pairs of a, those of b, the single reads of c
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from bwarp.counted import counted
from bwarp.errors import UsageError
from bwarp.reads.read_chunks import READS_A_CHUNK, ReadChunk, read_chunks
from bwarp.reads.record_files import has_pairs, holds_records


@dataclass(frozen=True)
class ReadFiles:
    """The files with the reads of a run.

    Attributes
    ----------
    first : tuple of str
        Single reads, first ends of pairs, or both ends; also BAM and CRAM.
    second : tuple of str
        The second ends of the pairs of each of those files, or none.
    interleaved : bool
        Both ends are in `first`, alternating.
    single : tuple of str
        Files of additional single reads.
    with_groups : bool
        Add the read group to the comments of reads in BAM and CRAM.
    groups : tuple of bytes
        The read group of each file in `first` and in `single`, which replaces the comments of its
        reads, or none.
    """

    first: tuple[str, ...]
    second: tuple[str, ...] = ()
    interleaved: bool = False
    single: tuple[str, ...] = ()
    with_groups: bool = False
    groups: tuple[bytes, ...] = ()

    @property
    def names(self) -> list[str]:
        return [*self.first, *self.second, *self.single]


def holds_pairs(files: ReadFiles) -> bool:
    """Return whether there are pairs among the reads; for BAM and CRAM, check the first reads."""
    if files.second or files.interleaved:
        return True
    return any(holds_records(path) and has_pairs(path) for path in files.first)


def chunks_of_files(
    files: ReadFiles, reads: int = READS_A_CHUNK, threads: int = 1
) -> Iterator[ReadChunk]:
    """Yield the reads of all files in chunks of up to `reads`, in the order of the files.

    If there are pairs, single reads are orphans.

    Raises
    ------
    UsageError
        If files do not match, or a file is given twice.
    """
    if files.second and len(files.first) != len(files.second):
        raise UsageError(
            f"-1 has {counted(len(files.first), 'file')} but -2 has {len(files.second):,}: give "
            "the same number, in the same order"
        )
    mates = files.second or (None,) * len(files.first)
    parts = [
        read_chunks(path, mate, files.interleaved, reads, threads, files.with_groups)
        for path, mate in zip(files.first, mates, strict=True)
    ]
    for path in files.single:
        if holds_records(path):
            raise UsageError(f"{path}: BAM and CRAM may contain pairs: give the file with -1")
        parts.append(read_chunks(path, None, False, reads, threads))
    seen = set()
    for path in files.names:
        file = path if path == "-" else os.path.realpath(path)
        if file in seen:
            raise UsageError(f"{path}: given twice: give each file of reads once")
        seen.add(file)
    if files.groups:
        parts = [of_group(*one) for one in zip(parts, files.groups, strict=True)]
    return _in_a_row(parts, holds_pairs(files))


def _in_a_row(parts: list[Iterator[ReadChunk]], paired: bool) -> Iterator[ReadChunk]:
    first = 0
    for part in parts:
        for chunk in part:
            chunk = as_orphans(chunk) if paired and chunk.ends == 1 else chunk
            yield replace(chunk, first_template=first)
            first += chunk.n_templates


def of_group(chunks: Iterator[ReadChunk], group: bytes) -> Iterator[ReadChunk]:
    """Yield chunks in which the comment of every read is the tag of a read group."""
    tag = np.frombuffer(b"RG:Z:" + group, np.uint8)
    for chunk in chunks:
        text = np.concatenate([chunk.text, tag])
        comments = np.full((chunk.n_reads, 2), (chunk.text.size, text.size), np.int64)
        yield replace(chunk, text=text, comments=comments, mate_text=None)


def as_orphans(chunk: ReadChunk) -> ReadChunk:
    """Convert single reads to first ends of pairs without second ends."""
    comments = chunk.comments
    if comments is not None:
        comments = np.zeros((2 * chunk.n_reads, 2), np.int64)
        comments[::2] = chunk.comments
    return replace(
        chunk,
        offsets=np.repeat(chunk.offsets, 2)[1:],
        ends=2,
        comments=comments,
        orphans=np.ones(chunk.n_reads, bool),
    )
