"""Hits and k-mers as lines of text, TSV or BED, written by jitted code into arrays of bytes.

    hits, TSV     query  kmer_start  strand  contig  position  mismatches
    with sites    the same, and the bases of the hit on its strand
    hits, BED     contig  position  position + k  query  mismatches  strand
    over          query  kmer_start  hits
    skipped       query  kmer_start  reason

In BED a k-mer that does not begin at the query's first base is called ``query:kmer_start``.
The hits of one k-mer on one strand and contig begin alike, so a TSV line begins with a copy of the
line before it.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np

from bwarp.io.line_scan import SLACK
from bwarp.io.names import Names
from bwarp.io.put_text import MOST_DIGITS, put_field
from bwarp.reference import Reference
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import VECTOR_BYTES, load, store
from bwarp.seeding.hits import SeedHits
from bwarp.seeding.kmers import LONGEST_KMER, KmerBatch

__all__ = [
    "BED",
    "TSV",
    "TSV_WITH_SITES",
    "hit_lines",
    "number_lines",
    "reason_lines",
]

TSV, BED, TSV_WITH_SITES = 0, 1, 2

# As numbers of one type: for each literal number Numba would compile a function again.
_TAB, _NEWLINE, _COLON, _PLUS, _MINUS = np.frombuffer(b"\t\n:+-", np.uint8)
_LETTERS = np.frombuffer(b"ACGT", np.uint8)
_START = np.int64(0)
#: The most bytes of a number and its separator.
_NUMBER = MOST_DIGITS + 1
#: Lines that one call of a jitted function writes: few enough to stay in a core's cache.
_LINES_AT_ONCE = 1 << 14


def hit_lines(
    layout: int,
    hits: SeedHits,
    kmers: KmerBatch,
    queries: Names,
    reference: Reference,
    contigs: Names,
    threads: int = 1,
) -> Iterator[np.ndarray]:
    """Hits as lines of a layout, `TSV`, `BED` or `TSV_WITH_SITES`, as arrays of bytes in order.

    While one is written, threads fill the next.
    """
    if layout == TSV_WITH_SITES:
        write = partial(_write_sites, reference.packed)
    else:
        write = _write_bed if layout == BED else _write_tsv
    line = contigs.longest + 1 + 4 * _NUMBER
    if layout == TSV_WITH_SITES:
        line += LONGEST_KMER + 1

    def work(first: int) -> np.ndarray:
        last = min(first + _LINES_AT_ONCE, hits.count)
        names = _name_bytes(hits.kmers, kmers.queries, queries.bounds, first, last)
        text = np.empty((last - first) * line + names + SLACK, np.uint8)
        used = write(
            hits.kmers, hits.strands, hits.positions, hits.mismatches,
            kmers.queries, kmers.starts, kmers.lengths,
            queries.text, queries.bounds, reference.contig_starts, contigs.text, contigs.bounds,
            first, last, text,
        )  # fmt: skip
        return text[:used]

    firsts = range(0, hits.count, _LINES_AT_ONCE)
    if threads == 1 or len(firsts) == 1:
        yield from map(work, firsts)
        return
    with ThreadPoolExecutor(threads) as pool:
        yield from pool.map(work, firsts)


def number_lines(
    queries: Names, numbers: np.ndarray, starts: np.ndarray, values: np.ndarray
) -> np.ndarray:
    """Lines of query ``numbers[i]``, ``starts[i]`` and ``values[i]``, as an array of bytes."""
    text = _room(queries, numbers, _NUMBER)
    used = _write_numbers(queries.text, queries.bounds, numbers, starts, values, text)
    return text[:used]


def reason_lines(
    queries: Names, numbers: np.ndarray, starts: np.ndarray, values: np.ndarray, reasons: Names
) -> np.ndarray:
    """Lines of query ``numbers[i]``, ``starts[i]`` and ``reasons[values[i]]``."""
    text = _room(queries, numbers, reasons.longest + 1)
    used = _write_reasons(
        queries.text, queries.bounds, numbers, starts, values, reasons.text, reasons.bounds, text
    )
    return text[:used]


def _room(queries: Names, numbers: np.ndarray, rest: int) -> np.ndarray:
    """An array with room for a name, a number and `rest` bytes more a line."""
    lengths = queries.bounds[:, 1] - queries.bounds[:, 0]
    line = 1 + _NUMBER + rest
    return np.empty(int(lengths[numbers].sum()) + len(numbers) * line + SLACK, np.uint8)


@compiled
def _name_bytes(hit_kmers, kmer_queries, bounds, first, last):
    """The bytes of the query names of hits first to last."""
    total = 0
    for i in range(first, last):
        query = kmer_queries[hit_kmers[i]]
        total += bounds[query, 1] - bounds[query, 0]
    return total


@compiled
def _put(text, at, source, start, stop, ending):
    """Copy source[start:stop] and one byte more; up to `SLACK` bytes after them are overwritten."""
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
def _contig_of(contig_starts, position, contig):
    """The contig of a genome position; `contig` is tried first."""
    if contig_starts[contig] <= position < contig_starts[contig + 1]:
        return contig
    return np.searchsorted(contig_starts, position, side="right") - 1


@compiled
def _write_tsv(
    hit_kmers, hit_strands, hit_positions, hit_mismatches, kmer_queries, kmer_starts, kmer_lengths,
    names, bounds, contig_starts, contig_names, contig_bounds, first, last, text,
):  # fmt: skip
    at = _START
    contig = _START
    head = head_size = _START
    for i in range(first, last):
        kmer = hit_kmers[i]
        strand = hit_strands[i]
        position = np.int64(hit_positions[i])
        here = _contig_of(contig_starts, position, contig)
        line = at
        if (
            i > first
            and kmer == hit_kmers[i - 1]
            and strand == hit_strands[i - 1]
            and here == contig
        ):
            at = _put(text, at, text, head, head + head_size, _TAB)
        else:
            query = kmer_queries[kmer]
            contig = here
            at = _put(text, at, names, bounds[query, 0], bounds[query, 1], _TAB)
            at = put_field(text, at, kmer_starts[kmer], _TAB)
            text[at] = _MINUS if strand else _PLUS
            text[at + 1] = _TAB
            at = _put(
                text, at + 2, contig_names, contig_bounds[here, 0], contig_bounds[here, 1], _TAB
            )
            head_size = at - line - 1
        head = line
        at = put_field(text, at, position - contig_starts[here], _TAB)
        text[at] = np.uint8(48) + hit_mismatches[i]
        text[at + 1] = _NEWLINE
        at += 2
    return at


@compiled
def _write_bed(
    hit_kmers, hit_strands, hit_positions, hit_mismatches, kmer_queries, kmer_starts, kmer_lengths,
    names, bounds, contig_starts, contig_names, contig_bounds, first, last, text,
):  # fmt: skip
    at = _START
    contig = _START
    for i in range(first, last):
        kmer = hit_kmers[i]
        query = kmer_queries[kmer]
        position = np.int64(hit_positions[i])
        contig = _contig_of(contig_starts, position, contig)
        start = position - contig_starts[contig]
        at = _put(text, at, contig_names, contig_bounds[contig, 0], contig_bounds[contig, 1], _TAB)
        at = put_field(text, at, start, _TAB)
        at = put_field(text, at, start + kmer_lengths[kmer], _TAB)
        at = _put(text, at, names, bounds[query, 0], bounds[query, 1], _TAB)
        if kmer_starts[kmer]:
            text[at - 1] = _COLON
            at = put_field(text, at, kmer_starts[kmer], _TAB)
        text[at] = np.uint8(48) + hit_mismatches[i]
        text[at + 1] = _TAB
        text[at + 2] = _MINUS if hit_strands[i] else _PLUS
        text[at + 3] = _NEWLINE
        at += 4
    return at


@compiled
def _write_sites(
    packed, hit_kmers, hit_strands, hit_positions, hit_mismatches, kmer_queries, kmer_starts,
    kmer_lengths, names, bounds, contig_starts, contig_names, contig_bounds, first, last, text,
):  # fmt: skip
    at = _START
    contig = _START
    for i in range(first, last):
        kmer = hit_kmers[i]
        query = kmer_queries[kmer]
        position = np.int64(hit_positions[i])
        contig = _contig_of(contig_starts, position, contig)
        at = _put(text, at, names, bounds[query, 0], bounds[query, 1], _TAB)
        at = put_field(text, at, kmer_starts[kmer], _TAB)
        text[at] = _MINUS if hit_strands[i] else _PLUS
        text[at + 1] = _TAB
        at = _put(
            text, at + 2, contig_names, contig_bounds[contig, 0], contig_bounds[contig, 1], _TAB
        )
        at = put_field(text, at, position - contig_starts[contig], _TAB)
        text[at] = np.uint8(48) + hit_mismatches[i]
        text[at + 1] = _TAB
        at += 2
        length = np.int64(kmer_lengths[kmer])
        for b in range(length):
            base = position + (length - 1 - b if hit_strands[i] else b)
            code = packed[base >> 5] >> np.uint64(62 - 2 * (base & 31)) & np.uint64(3)
            text[at + b] = _LETTERS[np.uint64(3) - code if hit_strands[i] else code]
        text[at + length] = _NEWLINE
        at += length + 1
    return at


@compiled
def _write_numbers(names, bounds, queries, starts, values, text):
    at = _START
    for i in range(queries.size):
        at = _put(text, at, names, bounds[queries[i], 0], bounds[queries[i], 1], _TAB)
        at = put_field(text, at, starts[i], _TAB)
        at = put_field(text, at, values[i], _NEWLINE)
    return at


@compiled
def _write_reasons(names, bounds, queries, starts, values, reasons, reason_bounds, text):
    at = _START
    for i in range(queries.size):
        at = _put(text, at, names, bounds[queries[i], 0], bounds[queries[i], 1], _TAB)
        at = put_field(text, at, starts[i], _TAB)
        start, stop = reason_bounds[values[i]]
        at = _put(text, at, reasons, start, stop, _NEWLINE)
    return at
