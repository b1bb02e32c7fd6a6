"""Write the tables of a seed search: hits as TSV, BED or Parquet, and two tables next to them.

    OUT.tsv           hits, or OUT.bed, either also .gz, or OUT.parquet
    OUT.over.tsv      the k-mers with more hits than the limit, with their number
    OUT.skipped.tsv   the k-mers that were not searched, and why

All three appear once all are complete.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np

from bwarp.counted import counted
from bwarp.io.atomic_output import atomic_files, table_format
from bwarp.io.line_scan import SLACK
from bwarp.io.names import MOST_DIGITS, Names, put_field
from bwarp.io.numbered_rows import NumberedRows
from bwarp.io.table_writer import TableWriter
from bwarp.options.finding import LONGEST_KMER
from bwarp.reference import Reference
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import VECTOR_BYTES, load, store
from bwarp.seeding.hits import FoundSeeds, SeedHits, taken
from bwarp.seeding.kmers import REASONS, KmerBatch

# Hits as columns, for Parquet and data frames.


def hit_columns(
    hits: SeedHits, kmers: KmerBatch, queries: Names, reference: Reference
) -> NumberedRows:
    """Return the columns of the hits of a batch of k-mers."""
    columns = kmers.starts[hits.kmers], hits.strands, hits.positions, hits.mismatches
    return NumberedRows.of(queries, kmers.queries[hits.kmers], columns, reference)


# Hits and k-mers as lines of text, TSV or BED, written by jitted code into arrays of bytes.
#
#     hits, TSV     query  kmer_start  strand  contig  position  mismatches
#     with sites    the same, plus the bases of the hit on its strand
#     hits, BED     contig  position  position + k  query  mismatches  strand
#     over          query  kmer_start  hits
#     skipped       query  kmer_start  reason
#
# In BED, a k-mer that does not begin at the first base of the query is named ``query:kmer_start``.
# Hits of a k-mer on the same strand and contig begin alike, so a TSV line starts as a copy of the
# previous one.


TSV, BED, TSV_WITH_SITES = 0, 1, 2


class _Hits(NamedTuple):
    """Columns of `SeedHits` and `KmerBatch`, the names, and the bases of the genome."""

    kmers: np.ndarray
    strands: np.ndarray
    positions: np.ndarray
    mismatches: np.ndarray
    kmer_queries: np.ndarray
    kmer_starts: np.ndarray
    kmer_lengths: np.ndarray
    queries: Names
    contigs: Names
    contig_starts: np.ndarray
    packed: np.ndarray


# All of one type: Numba compiles a function anew for each type of literal.
_TAB, _NEWLINE, _COLON, _PLUS, _MINUS = np.frombuffer(b"\t\n:+-", np.uint8)
_LETTERS = np.frombuffer(b"ACGT", np.uint8)
_START = np.int64(0)
#: The maximum bytes of a number and its separator.
_NUMBER = MOST_DIGITS + 1
#: Rows of Parquet per range of hits, whose columns are made by one thread.
_PARQUET_ROWS = 1 << 18


def hit_lines(
    layout: int,
    hits: SeedHits,
    kmers: KmerBatch,
    queries: Names,
    reference: Reference,
    contigs: Names,
) -> Callable[[int, int], np.ndarray]:
    """Return a function that formats a range of hits as `TSV`, `BED` or `TSV_WITH_SITES` lines.

    It takes the first hit and the last + 1, and returns bytes.
    """
    write = {TSV: _write_tsv, BED: _write_bed, TSV_WITH_SITES: _write_sites}[layout]
    table = _Hits(
        hits.kmers, hits.strands, hits.positions, hits.mismatches,
        kmers.queries, kmers.starts, kmers.lengths,
        queries, contigs, reference.contig_starts, reference.packed,
    )  # fmt: skip
    line = contigs.longest + 1 + 4 * _NUMBER
    if layout == TSV_WITH_SITES:
        line += LONGEST_KMER + 1

    def lines_of(first: int, last: int) -> np.ndarray:
        names = _name_bytes(hits.kmers, kmers.queries, queries.bounds, first, last)
        text = np.empty((last - first) * line + names + SLACK, np.uint8)
        return text[: write(table, first, last, text)]

    return lines_of


def number_lines(
    queries: Names, numbers: np.ndarray, starts: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """Format lines of query ``numbers[i]``, ``starts[i]`` and ``values[i]``: an array of bytes."""
    text = _room(queries, numbers, _NUMBER)
    return text[: _write_numbers(queries, numbers, starts, values, text)]


def reason_lines(
    queries: Names, numbers: np.ndarray, starts: np.ndarray, values: np.ndarray, reasons: Names
) -> np.ndarray:
    """Format lines of query ``numbers[i]``, ``starts[i]`` and ``reasons[values[i]]``."""
    text = _room(queries, numbers, reasons.longest + 1)
    return text[: _write_reasons(queries, numbers, starts, values, reasons, text)]


def _room(queries: Names, numbers: np.ndarray, rest: int) -> np.ndarray:
    """Allocate an array with space for a name, a number and `rest` more bytes per line."""
    lengths = queries.bounds[:, 1] - queries.bounds[:, 0]
    line = 1 + _NUMBER + rest
    return np.empty(int(lengths[numbers].sum()) + len(numbers) * line + SLACK, np.uint8)


@compiled
def _name_bytes(hit_kmers, kmer_queries, bounds, first, last):
    """Sum the bytes of the query names of hits first to last."""
    total = 0
    for i in range(first, last):
        query = kmer_queries[hit_kmers[i]]
        total += bounds[query, 1] - bounds[query, 0]
    return total


@compiled
def _put(text, at, source, start, stop, ending):
    """Copy source[start:stop] and one byte more; overwrites up to `SLACK` bytes after them."""
    end = at + stop - start
    while at < end and start + VECTOR_BYTES <= source.size:
        store(text, at, load(source, start))
        at += VECTOR_BYTES
        start += VECTOR_BYTES
    while at < end:
        text[at] = source[start]
        at += 1
        start += 1
    text[end] = ending
    return end + 1


@compiled
def _put_name(text, at, names, number, ending):
    """Write a name and one byte more, as `_put` does."""
    return _put(text, at, names.text, names.bounds[number, 0], names.bounds[number, 1], ending)


@compiled
def _put_head(text, at, hits, kmer, strand, contig):
    """Write the columns that the hits of a k-mer on a strand and contig share, each with a tab."""
    at = _put_name(text, at, hits.queries, hits.kmer_queries[kmer], _TAB)
    at = put_field(text, at, hits.kmer_starts[kmer], _TAB)
    text[at] = _MINUS if strand else _PLUS
    text[at + 1] = _TAB
    return _put_name(text, at + 2, hits.contigs, contig, _TAB)


@compiled
def _contig_of(contig_starts, position, contig):
    """Return the contig of a genome position; `contig` is tried first."""
    if contig_starts[contig] <= position < contig_starts[contig + 1]:
        return contig
    return np.searchsorted(contig_starts, position, side="right") - 1


@compiled
def _write_tsv(hits, first, last, text):
    at = _START
    contig = _START
    head = head_size = _START
    for i in range(first, last):
        kmer = hits.kmers[i]
        strand = hits.strands[i]
        position = np.int64(hits.positions[i])
        here = _contig_of(hits.contig_starts, position, contig)
        line = at
        if (
            i > first
            and kmer == hits.kmers[i - 1]
            and strand == hits.strands[i - 1]
            and here == contig
        ):
            at = _put(text, at, text, head, head + head_size, _TAB)
        else:
            contig = here
            at = _put_head(text, at, hits, kmer, strand, here)
            head_size = at - line - 1
        head = line
        at = put_field(text, at, position - hits.contig_starts[here], _TAB)
        text[at] = np.uint8(48) + hits.mismatches[i]
        text[at + 1] = _NEWLINE
        at += 2
    return at


@compiled
def _write_bed(hits, first, last, text):
    at = _START
    contig = _START
    for i in range(first, last):
        kmer = hits.kmers[i]
        query = hits.kmer_queries[kmer]
        position = np.int64(hits.positions[i])
        contig = _contig_of(hits.contig_starts, position, contig)
        start = position - hits.contig_starts[contig]
        at = _put_name(text, at, hits.contigs, contig, _TAB)
        at = put_field(text, at, start, _TAB)
        at = put_field(text, at, start + hits.kmer_lengths[kmer], _TAB)
        at = _put_name(text, at, hits.queries, query, _TAB)
        if hits.kmer_starts[kmer]:
            text[at - 1] = _COLON
            at = put_field(text, at, hits.kmer_starts[kmer], _TAB)
        text[at] = np.uint8(48) + hits.mismatches[i]
        text[at + 1] = _TAB
        text[at + 2] = _MINUS if hits.strands[i] else _PLUS
        text[at + 3] = _NEWLINE
        at += 4
    return at


@compiled
def _write_sites(hits, first, last, text):
    at = _START
    contig = _START
    for i in range(first, last):
        kmer = hits.kmers[i]
        position = np.int64(hits.positions[i])
        contig = _contig_of(hits.contig_starts, position, contig)
        at = _put_head(text, at, hits, kmer, hits.strands[i], contig)
        at = put_field(text, at, position - hits.contig_starts[contig], _TAB)
        text[at] = np.uint8(48) + hits.mismatches[i]
        text[at + 1] = _TAB
        at += 2
        length = np.int64(hits.kmer_lengths[kmer])
        for b in range(length):
            base = position + (length - 1 - b if hits.strands[i] else b)
            code = hits.packed[base >> 5] >> np.uint64(62 - 2 * (base & 31)) & np.uint64(3)
            text[at + b] = _LETTERS[np.uint64(3) - code if hits.strands[i] else code]
        text[at + length] = _NEWLINE
        at += length + 1
    return at


@compiled
def _write_numbers(names, queries, starts, values, text):
    at = _START
    for i in range(queries.size):
        at = _put_name(text, at, names, queries[i], _TAB)
        at = put_field(text, at, starts[i], _TAB)
        at = put_field(text, at, values[i], _NEWLINE)
    return at


@compiled
def _write_reasons(names, queries, starts, values, reasons, text):
    at = _START
    for i in range(queries.size):
        at = _put_name(text, at, names, queries[i], _TAB)
        at = put_field(text, at, starts[i], _TAB)
        at = _put_name(text, at, reasons, values[i], _NEWLINE)
    return at


HITS_HEADER = b"query\tkmer_start\tstrand\tcontig\tposition\tmismatches\n"
NUMBER_HEADER = b"query\tkmer_start\thits\n"
_HEADERS = {TSV: HITS_HEADER, BED: b"", TSV_WITH_SITES: HITS_HEADER.replace(b"\n", b"\tsite\n")}
_SKIPPED_HEADER = b"query\tkmer_start\treason\n"

_REASONS = Names.of(REASONS)


def sibling(path: str | os.PathLike, kind: str) -> Path:
    """Return the path of a related table: OUT.tsv, OUT.bed.gz -> OUT.over.tsv.

    >>> sibling("hits/guides.tsv.gz", "over").as_posix()
    'hits/guides.over.tsv'
    """
    name = Path(path).name.removesuffix(".gz")
    return Path(path).with_name(f"{Path(name).stem}.{kind}.tsv")


def tables_at(path: str | os.PathLike) -> list[str | os.PathLike]:
    """Return the files that a search with this output writes, the hits last."""
    if str(path) == "-":
        return [path]
    return [sibling(path, "over"), sibling(path, "skipped"), path]


@dataclass
class SeedCounts:
    """K-mers by outcome: skipped or searched; of those searched, over the limit, with hits, or
    without.
    """

    searched: int = 0
    skipped: int = 0
    over: int = 0
    with_hits: int = 0
    hits: int = 0

    @property
    def without_hits(self) -> int:
        return self.searched - self.over - self.with_hits

    def sentence(self) -> str:
        """Return all counts as a sentence."""
        return (
            f"{counted(self.searched, 'k-mer')} searched: {counted(self.hits, 'hit')} of "
            f"{self.with_hits:,}, "
            f"{self.over:,} over the limit, {self.without_hits:,} without a hit; "
            f"{self.skipped:,} skipped"
        )


class SeedTables:
    """Open tables of hits, k-mers over the limit and skipped k-mers.

    Attributes
    ----------
    counts : SeedCounts
        Counts of the k-mers written so far.
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
        """Write the results of a pass, yielding every part of its hits once it is handed over."""
        over = found.over_kmers
        if self._over is not None:
            numbers, starts = kmers.queries[over], kmers.starts[over]
            self._over.write(number_lines(queries, numbers, starts, found.over_counts))
        self.counts.over += over.size
        last = -1
        for hits in found.hits:
            self._write_hits(hits, kmers, queries)
            self.counts.hits += hits.count
            self.counts.with_hits += int(np.count_nonzero(hits.kmers[1:] != hits.kmers[:-1]))
            self.counts.with_hits += int(hits.kmers[0]) != last
            last = int(hits.kmers[-1])
            yield hits


class CountTable:
    """An open table of hit counts of k-mers; `counts` covers what has been written so far."""

    def __init__(self, writer: TableWriter, skipped: IO[bytes] | None):
        self.counts = SeedCounts()
        self._writer = writer
        self._skipped = skipped

    def add(self, kmers: KmerBatch, queries: Names, hits: np.ndarray) -> None:
        """Write the k-mers of a batch: those searched, with their number of hits."""
        if self._skipped is not None:
            self._skipped.write(_skipped_lines(kmers, queries))

        def lines_of(first: int, last: int) -> np.ndarray:
            rows = slice(first, last)
            return number_lines(queries, kmers.queries[rows], kmers.starts[rows], hits[rows])

        self._writer.add(lines_of, kmers.count)
        self.counts.searched += kmers.count
        self.counts.skipped += len(kmers.skipped)
        self.counts.with_hits += int(np.count_nonzero(hits))
        self.counts.hits += int(hits.sum())


def _skipped_lines(kmers: KmerBatch, queries: Names) -> np.ndarray:
    numbers, starts, reasons = np.ascontiguousarray(kmers.skipped.T)
    return reason_lines(queries, numbers, starts, reasons, _REASONS)


@contextmanager
def open_count_table(path: str | os.PathLike, threads: int = 1) -> Iterator[CountTable]:
    """Open a TSV of counts and its table of skipped k-mers, as `open_seed_tables` does."""
    siblings = [] if str(path) == "-" else [sibling(path, "skipped")]
    with atomic_files([*siblings, path], threads=threads) as (*siblings, file):
        file.write(NUMBER_HEADER)
        (skipped,) = siblings or [None]
        if siblings:
            skipped.write(_SKIPPED_HEADER)
        with TableWriter(file.write, threads) as writer:
            yield CountTable(writer, skipped)


@contextmanager
def open_seed_tables(
    path: str | os.PathLike, reference: Reference, threads: int = 1, with_sites: bool = False
) -> Iterator[SeedTables]:
    """Open the tables; they appear, the hits last, if the block ends without an error.

    Standard output (``-``) has no other tables: their rows are only counted. `with_sites` adds the
    bases of the hits to TSV.
    """
    layout = table_format(path)
    with ExitStack() as stack:
        *siblings, file = stack.enter_context(atomic_files(tables_at(path), threads=threads))
        over, skipped = siblings or (None, None)
        if siblings:
            over.write(NUMBER_HEADER)
            skipped.write(_SKIPPED_HEADER)
        if layout == "parquet":
            from bwarp.io.parquet_rows import ParquetRows

            table = stack.enter_context(ParquetRows(file, HITS_HEADER, "uint8", reference.names))
            writer = stack.enter_context(TableWriter(table.write, threads))

            def write_hits(hits: SeedHits, kmers: KmerBatch, queries: Names) -> None:
                def columns_of(first: int, last: int) -> NumberedRows:
                    return hit_columns(taken(hits, slice(first, last)), kmers, queries, reference)

                writer.add(columns_of, hits.count, _PARQUET_ROWS)

        else:
            lines = TSV_WITH_SITES if with_sites else BED if layout == "bed" else TSV
            file.write(_HEADERS[lines])
            contigs = Names.of(reference.names)
            writer = stack.enter_context(TableWriter(file.write, threads))

            def write_hits(hits: SeedHits, kmers: KmerBatch, queries: Names) -> None:
                rows_of = hit_lines(lines, hits, kmers, queries, reference, contigs)
                writer.add(rows_of, hits.count)

        yield SeedTables(write_hits, over, skipped)
