"""The tables of a seed search: the hits in the format their file's ending says, and two siblings.

    OUT.tsv           hits, or OUT.bed, either also .gz, or OUT.parquet
    OUT.over.tsv      the k-mers with more hits than the limit, and how many they have
    OUT.skipped.tsv   the k-mers that were not searched, and why

All three appear when all are complete.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from bwarp.counted import counted
from bwarp.io.atomic_output import atomic_files
from bwarp.io.names import Names
from bwarp.io.output_names import table_format
from bwarp.reference import Reference
from bwarp.seeding.hits import FoundSeeds, SeedHits
from bwarp.seeding.kmers import REASONS, KmerBatch
from bwarp.seeding.output.hit_columns import hit_columns
from bwarp.seeding.output.seed_text import (
    BED,
    TSV,
    TSV_WITH_SITES,
    hit_lines,
    number_lines,
    reason_lines,
)

__all__ = [
    "HITS_HEADER",
    "NUMBER_HEADER",
    "CountTable",
    "SeedCounts",
    "SeedTables",
    "open_count_table",
    "open_seed_tables",
    "sibling",
    "tables_at",
]

HITS_HEADER = b"query\tkmer_start\tstrand\tcontig\tposition\tmismatches\n"
NUMBER_HEADER = b"query\tkmer_start\thits\n"
_SKIPPED_HEADER = b"query\tkmer_start\treason\n"

_REASONS = Names.of(REASONS)


def sibling(path: str | os.PathLike, kind: str) -> Path:
    """The table that goes with another: OUT.tsv, OUT.bed.gz -> OUT.over.tsv.

    >>> sibling("hits/guides.tsv.gz", "over").as_posix()
    'hits/guides.over.tsv'
    """
    name = Path(path).name.removesuffix(".gz")
    return Path(path).with_name(f"{Path(name).stem}.{kind}.tsv")


def tables_at(path: str | os.PathLike) -> list[str | os.PathLike]:
    """The files that a search with this output writes, the hits last."""
    if str(path) == "-":
        return [path]
    return [sibling(path, "over"), sibling(path, "skipped"), path]


@dataclass
class SeedCounts:
    """What became of every k-mer: it is skipped or searched, and a searched one is over the
    limit, or has hits, or has none."""

    searched: int = 0
    skipped: int = 0
    over: int = 0
    with_hits: int = 0
    hits: int = 0

    @property
    def without_hits(self) -> int:
        return self.searched - self.over - self.with_hits

    def sentence(self) -> str:
        """All counts, for people."""
        return (
            f"{counted(self.searched, 'k-mer')} searched: {counted(self.hits, 'hit')} of "
            f"{self.with_hits:,}, "
            f"{self.over:,} over the limit, {self.without_hits:,} without a hit; "
            f"{self.skipped:,} skipped"
        )


class SeedTables:
    """Open tables of hits, k-mers over the limit and k-mers skipped.

    Attributes
    ----------
    counts : SeedCounts
        Of what has been written so far.
    """

    def __init__(self, write_hits: Callable, over: IO[bytes] | None, skipped: IO[bytes] | None):
        self.counts = SeedCounts()
        self._write_hits = write_hits
        self._over = over
        self._skipped = skipped

    def add_kmers(self, kmers: KmerBatch, queries: Names) -> None:
        """Count a batch of k-mers, and write those that are not searched."""
        if self._skipped is not None:
            self._skipped.write(_skipped_lines(kmers, queries))
        self.counts.searched += kmers.count
        self.counts.skipped += len(kmers.skipped)

    def add_found(self, found: FoundSeeds, kmers: KmerBatch, queries: Names) -> Iterator[SeedHits]:
        """Write what one pass found, yielding every part of its hits once it is written."""
        over = found.over_kmers
        if self._over is not None:
            numbers, starts = kmers.queries[over], kmers.starts[over]
            self._over.write(number_lines(queries, numbers, starts, found.over_counts))
        self.counts.over += over.size
        last = -1
        for hits in found.hits:
            self._write_hits(hits, kmers, queries)
            self.counts.hits += hits.count
            self.counts.with_hits += int(np.count_nonzero(np.diff(hits.kmers, prepend=last)))
            last = hits.kmers[-1]
            yield hits


class CountTable:
    """An open table of how many hits k-mers have; `counts` is of what has been written so far."""

    def __init__(self, file: IO[bytes], skipped: IO[bytes] | None):
        self.counts = SeedCounts()
        self._file = file
        self._skipped = skipped

    def add(self, kmers: KmerBatch, queries: Names, hits: np.ndarray) -> None:
        """Write the k-mers of a batch: those searched with their number of hits."""
        if self._skipped is not None:
            self._skipped.write(_skipped_lines(kmers, queries))
        self._file.write(number_lines(queries, kmers.queries, kmers.starts, hits))
        self.counts.searched += kmers.count
        self.counts.skipped += len(kmers.skipped)
        self.counts.with_hits += int(np.count_nonzero(hits))
        self.counts.hits += int(hits.sum())


def _skipped_lines(kmers: KmerBatch, queries: Names) -> np.ndarray:
    numbers, starts, reasons = np.ascontiguousarray(kmers.skipped.T)
    return reason_lines(queries, numbers, starts, reasons, _REASONS)


@contextmanager
def open_count_table(path: str | os.PathLike) -> Iterator[CountTable]:
    """A table of counts, TSV, and its sibling of skipped k-mers, as `open_seed_tables`."""
    siblings = [] if str(path) == "-" else [sibling(path, "skipped")]
    with atomic_files([*siblings, path]) as (*siblings, file):
        file.write(NUMBER_HEADER)
        (skipped,) = siblings or [None]
        if siblings:
            skipped.write(_SKIPPED_HEADER)
        yield CountTable(file, skipped)


@contextmanager
def open_seed_tables(
    path: str | os.PathLike, reference: Reference, threads: int = 1, with_sites: bool = False
) -> Iterator[SeedTables]:
    """Tables to write; they appear, the hits last, when the block ends well.

    Standard output (``-``) has no siblings: what would stand there is only counted. `with_sites`
    adds the bases of the hits to TSV.
    """
    layout = table_format(path)
    with ExitStack() as stack:
        *siblings, file = stack.enter_context(atomic_files(tables_at(path)))
        over, skipped = siblings or (None, None)
        if siblings:
            over.write(NUMBER_HEADER)
            skipped.write(_SKIPPED_HEADER)
        if layout == "parquet":
            from bwarp.io.parquet_rows import ParquetRows

            table = stack.enter_context(ParquetRows(file, HITS_HEADER, "uint8", reference.names))

            def write_hits(hits: SeedHits, kmers: KmerBatch, queries: Names) -> None:
                table.write(*hit_columns(hits, kmers, queries, reference))

        else:
            lines = TSV_WITH_SITES if with_sites else BED if layout == "bed" else TSV
            write_hits = _line_writer(file, lines, reference, threads)
        yield SeedTables(write_hits, over, skipped)


def _line_writer(file: IO[bytes], layout: int, reference: Reference, threads: int) -> Callable:
    contigs = Names.of(reference.names)
    if layout == TSV:
        file.write(HITS_HEADER)
    elif layout == TSV_WITH_SITES:
        file.write(HITS_HEADER.replace(b"\n", b"\tsite\n"))

    def write_hits(hits: SeedHits, kmers: KmerBatch, queries: Names) -> None:
        for text in hit_lines(layout, hits, kmers, queries, reference, contigs, threads):
            file.write(text)

    return write_hits
