"""Loci of reads as they stream by, chunk after chunk, in their order."""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TypeVar

import numpy as np

from bwarp.errors import InputError
from bwarp.index.fm_index import FMIndex
from bwarp.loci.alignments_cpu import LocusAlignments, align_loci
from bwarp.loci.engine import loci_finder
from bwarp.loci.find_cpu import TextAndGenome
from bwarp.loci.loci_cpu import COUNTS
from bwarp.loci.options import FoundLoci, LocusOptions
from bwarp.loci.read_blocks import blocks_of
from bwarp.mapping.extension.extension_cpu import both_strands
from bwarp.mapping.reads.read_chunks import ReadChunk
from bwarp.runtime.threads import in_order

__all__ = ["Certificate", "FoundChunk", "find_chunks", "finish_chunk"]

Result = TypeVar("Result")


@dataclass
class Certificate:
    """What was searched and what became of it: the proof that nothing was left out.

    Attributes
    ----------
    reads, aligned, over, without, skipped : int
        Every read is aligned, over the limit of loci, without a locus, or was not searched.
    parts, located, dropped, verified, confirmed : int
        Parts of reads searched; their SA rows, all located; of these, dropped by the
        bound, verified (others agree with one that is), and confirmed.
    loci : int
        Those written.
    loci_over : int
        Those of reads over the limit.
    """

    reads: int = 0
    aligned: int = 0
    over: int = 0
    without: int = 0
    skipped: int = 0
    parts: int = 0
    located: int = 0
    dropped: int = 0
    verified: int = 0
    confirmed: int = 0
    loci: int = 0
    loci_over: int = 0

    def add(self, other: "Certificate") -> None:
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))

    @classmethod
    def read(cls, path: str | os.PathLike) -> "Certificate":
        """What a run has written.

        Raises
        ------
        InputError
            For a file of anything else.
        """
        try:
            counts = json.loads(Path(path).read_bytes())
            certificate = cls(**counts)
            whole = all(type(count) is int and count >= 0 for count in counts.values())
        except (ValueError, TypeError):
            whole = False
        if not whole or len(counts) != len(fields(cls)):
            raise InputError(f"{path}: not the counts of a search for loci: make them again")
        return certificate

    def sentence(self) -> str:
        """All counts of reads, for people."""
        return (
            f"{self.reads:,} reads: {self.aligned:,} with {self.loci:,} loci, {self.over:,} "
            f"over the limit, {self.without:,} without a locus, {self.skipped:,} not searched"
        )


@dataclass(frozen=True)
class FoundChunk:
    """The loci of a chunk of reads.

    Attributes
    ----------
    chunk : ReadChunk
    both : ndarray, dtype=uint8
        The reads, then their reverse complements.
    loci : FoundLoci
        Those of reads within the limit of loci.
    alignments : LocusAlignments
    n_loci : ndarray, shape=(n_reads,), dtype=int64
        How many each read has, whatever the limit.
    over : ndarray, dtype=int64
        The reads over the limit.
    certificate : Certificate
    """

    chunk: ReadChunk
    both: np.ndarray
    loci: FoundLoci
    alignments: LocusAlignments
    n_loci: np.ndarray
    over: np.ndarray
    certificate: Certificate = field(default_factory=Certificate)


def find_chunks(
    index: FMIndex,
    genome: TextAndGenome,
    chunks: Iterator[ReadChunk],
    options: LocusOptions,
    max_places: int = 0,
    threads: int = 1,
    then: Callable[[FoundChunk], Result] = lambda found: found,
    kept: object | None = None,
) -> Iterator[Result]:
    """Find the loci of every chunk, several chunks at a time.

    Parameters
    ----------
    max_places : int
        A read with more is only counted; 0: no limit.
    then : function
        What else is done with a chunk in its thread, such as making text of it.
    kept : optional
        What `bwarp.loci.engine.load` has returned for a GPU: the loci are the same.
    """
    find = loci_finder(index, genome, options, kept)
    return in_order(
        lambda chunk: then(_find_chunk(find, genome, chunk, options, max_places)), chunks, threads
    )


def _find_chunk(find, genome, chunk: ReadChunk, options: LocusOptions, most: int) -> FoundChunk:
    both = both_strands(chunk.codes, chunk.offsets)
    blocks = blocks_of(both)
    loci, counts = find(both, blocks, chunk.offsets)
    return finish_chunk(genome, chunk, both, blocks, loci, counts, options, most)


def finish_chunk(
    genome: TextAndGenome,
    chunk: ReadChunk,
    both: np.ndarray,
    blocks: np.ndarray,
    loci: FoundLoci,
    counts: np.ndarray,
    options: LocusOptions,
    most: int = 0,
) -> FoundChunk:
    """The loci of a chunk with their alignments, and those of reads with more than `most` counted.

    Parameters
    ----------
    both, blocks : ndarray
        The reads on both strands, and their blocks.
    counts : ndarray, dtype=int64
        What it took to find the loci (`COUNTS`).
    """
    n_loci = np.bincount(loci.reads, minlength=chunk.n_reads)
    over = np.flatnonzero(n_loci > most) if most else np.empty(0, np.int64)
    if over.size:
        loci = _within(loci, n_loci <= most)
    gaps = options.gaps_of(options.edits_of(np.diff(chunk.offsets)))
    alignments = align_loci(genome.blocks, blocks, chunk.offsets, loci, gaps)
    skipped = int((loci.searched < 0).sum())
    with_loci = int((n_loci > 0).sum())
    certificate = Certificate(
        reads=chunk.n_reads,
        aligned=with_loci - over.size,
        over=int(over.size),
        without=chunk.n_reads - with_loci - skipped,
        skipped=skipped,
        loci=len(loci.reads),
        loci_over=int(n_loci[over].sum()),
        **dict(zip(COUNTS, counts.tolist(), strict=True)),
    )
    return FoundChunk(chunk, both, loci, alignments, n_loci, over, certificate)


def _within(loci: FoundLoci, kept: np.ndarray) -> FoundLoci:
    """The loci of the reads to be kept."""
    rows = kept[loci.reads]
    columns = [loci.reads, loci.strands, loci.starts, loci.ends, loci.distances]
    return FoundLoci(*(column[rows] for column in columns), loci.searched)
