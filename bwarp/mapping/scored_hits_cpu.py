"""Scored hits of reads: sorted by score, without redundant ones, and merged.

Equal scores keep the order of their candidates. Before hits are in columns, a hit is a strand and a
row of eight numbers, on the CPU and on a GPU:

    row   SCORE  START  END  READ_START  READ_END  GAPLESS  WINDOW_START  WINDOW_END
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bwarp.runtime.compiled_code import compiled

#: Numbers per row, and the index of each.
FIELDS = 8
SCORE, START, END, READ_START, READ_END, GAPLESS, WINDOW_START, WINDOW_END = range(FIELDS)


class ScoredHits(NamedTuple):
    """Scored hits, in the order of reads, best first.

    Attributes
    ----------
    reads : ndarray, shape=(n,), dtype=int32
    strands : ndarray, shape=(n,), dtype=uint8
    scores : ndarray, shape=(n,), dtype=int32
        Raw scores of the local alignments, without clip penalties.
    starts, ends : ndarray, shape=(n,), dtype=int64
        Genome positions. The start of a gapped alignment is not known yet: it is the position that
        its first base would have without gaps.
    read_starts, read_ends : ndarray, shape=(n,), dtype=int32
        Aligned bases of the read on its strand; the start of a gapped alignment is an estimate
        (`extension_cpu.gapped_start`).
    gapless : ndarray, shape=(n,), dtype=bool
        Whether the alignment is a stretch of one diagonal, and thus completely known.
    window_starts, window_ends : ndarray, shape=(n,), dtype=int64
        The window of the genome for an alignment with gaps.
    offsets : ndarray, shape=(n_reads + 1,), dtype=int64
    """

    reads: np.ndarray
    strands: np.ndarray
    scores: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    read_starts: np.ndarray
    read_ends: np.ndarray
    gapless: np.ndarray
    window_starts: np.ndarray
    window_ends: np.ndarray
    offsets: np.ndarray


def best_scores(hits: ScoredHits) -> np.ndarray:
    """Return the best score of each read, 0 if it has no hit, dtype int32."""
    best = np.zeros(len(hits.offsets) - 1, np.int32)
    filled = hits.offsets[:-1] < hits.offsets[1:]
    best[filled] = hits.scores[hits.offsets[:-1][filled]]
    return best


def merge(hits: ScoredHits, more: ScoredHits) -> ScoredHits:
    """Merge the hits of both for every read, without duplicates, best first."""
    if len(more.reads) == 0:
        return hits
    merged = _empty(len(hits.reads) + len(more.reads), len(hits.offsets))
    longest = int((np.diff(hits.offsets) + np.diff(more.offsets)).max(initial=0))
    return _first(merged, _merge(hits, more, _row_space(longest), merged))


def joined(parts: Sequence[ScoredHits]) -> ScoredHits:
    """Concatenate the hits of consecutive parts of the reads."""
    n_reads = np.cumsum([0, *(len(part.offsets) - 1 for part in parts)])
    counts = np.concatenate([np.diff(part.offsets) for part in parts])
    reads = [part.reads + np.int32(first) for part, first in zip(parts, n_reads, strict=False)]
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return ScoredHits(*columns)._replace(
        reads=np.concatenate(reads), offsets=np.concatenate([[0], np.cumsum(counts)])
    )


def part_of(hits: ScoredHits, first: int, stop: int) -> ScoredHits:
    """Copy the hits of reads `first` to `stop`, renumbered from 0."""
    begin, end = hits.offsets[first], hits.offsets[stop]
    own = ScoredHits(*(column[begin:end].copy() for column in hits[:-1]), hits.offsets[:0])
    own.reads[:] -= np.int32(first)
    return own._replace(offsets=hits.offsets[first : stop + 1] - begin)


def hits_at(hits: ScoredHits, rows: np.ndarray) -> ScoredHits:
    """Return only these hits; `rows` must be in ascending order."""
    counts = np.bincount(hits.reads[rows], minlength=len(hits.offsets) - 1)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return ScoredHits(*(column[rows] for column in hits[:-1]), offsets=offsets)


def replaced(hits: ScoredHits, few: ScoredHits) -> ScoredHits:
    """Replace the hits of reads that have hits in `few` by those."""
    together = _empty(len(hits.reads) + len(few.reads), len(hits.offsets))
    return _first(together, _replace(hits, few, together))


def without(hits: ScoredHits, dropped: np.ndarray) -> ScoredHits:
    """Return the hits without those of reads marked in `dropped` (bool per read)."""
    return hits_at(hits, np.flatnonzero(~dropped[hits.reads]))


def ranked(
    offsets: np.ndarray, strands: np.ndarray, scored: np.ndarray, least_score: int
) -> ScoredHits:
    """Sort each read's hits by score, without low-scoring and redundant ones.

    Parameters
    ----------
    offsets : ndarray, shape=(n_reads + 1,), dtype=int64
        Start of the hits of each read.
    strands : ndarray, shape=(n,), dtype=uint8
    scored : ndarray, shape=(FIELDS * n,), dtype=int64
        Concatenated rows.
    """
    hits = _empty(len(strands), len(offsets))
    kept = np.empty(int(np.diff(offsets).max(initial=0)), np.int64)
    return _first(hits, _rank(offsets, strands, scored, least_score, kept, hits))


def _empty(n: int, n_offsets: int) -> ScoredHits:
    """Return uninitialised columns for n hits."""
    types = (np.int32, np.uint8, np.int32, np.int64, np.int64, np.int32, np.int32, np.bool_)
    columns = [np.empty(n, dtype) for dtype in (*types, np.int64, np.int64)]
    return ScoredHits(*columns, offsets=np.zeros(n_offsets, np.int64))


def _first(hits: ScoredHits, n: int) -> ScoredHits:
    """Return the first n hits."""
    return ScoredHits(*(column[:n] for column in hits[:-1]), offsets=hits.offsets)


@compiled
def longest_between(offsets):
    """Return the largest difference of neighbouring offsets; 0 if there is none."""
    longest = np.int64(0)
    for i in range(1, offsets.size):
        longest = max(longest, offsets[i] - offsets[i - 1])
    return longest


@compiled(inline="always")
def put_row(scored, row, fields):
    """Write the fields of a row (a tuple, in their order) that starts at `row`; both engines use
    it."""
    scored[row], scored[row + 1], scored[row + 2], scored[row + 3] = fields[:4]
    scored[row + 4], scored[row + 5], scored[row + 6], scored[row + 7] = fields[4:]


@compiled(inline="always")
def are_redundant(scored, a, b):
    """Return whether two rows (given by their starts) of one strand are one alignment.

    They end on one diagonal, for example because a window cut one short, or share 95 % of the
    genome and of the read, as in bwa. Both engines use it.
    """
    end, end_2 = scored[a + END], scored[b + END]
    start, start_2 = scored[a + START], scored[b + START]
    read_start, read_start_2 = scored[a + READ_START], scored[b + READ_START]
    read_end, read_end_2 = scored[a + READ_END], scored[b + READ_END]
    shared = min(end, end_2) - max(start, start_2)
    if end - read_end == end_2 - read_end_2:
        return shared > 0
    read_shared = min(read_end, read_end_2) - max(read_start, read_start_2)
    shortest = min(end - start, end_2 - start_2)
    read_shortest = min(read_end - read_start, read_end_2 - read_start_2)
    return 20 * shared > 19 * shortest and 20 * read_shared > 19 * read_shortest


@compiled(forceinline=True)
def _rank_read(strands, scored, start, stop, least, kept):
    """List hits from start to stop by score, without low or redundant ones; return their number."""
    n_listed = 0
    for i in range(start, stop):
        score = scored[FIELDS * i + SCORE]
        if score < least:
            continue
        # Insertion sort, because hits are few and nearly in order.
        j = n_listed
        while j > 0 and scored[FIELDS * kept[j - 1] + SCORE] < score:
            kept[j] = kept[j - 1]
            j -= 1
        kept[j] = i
        n_listed += 1
    n_kept = 0
    for at in range(n_listed):
        i = kept[at]
        known = False
        for j in range(n_kept):
            other = kept[j]
            same_strand = strands[other] == strands[i]
            if same_strand and are_redundant(scored, FIELDS * other, FIELDS * i):
                known = True
                break
        if not known:
            kept[n_kept] = i
            n_kept += 1
    return n_kept


@compiled(forceinline=True)
def _put_hit(hits, at, read, strand, scored, row):
    hits.reads[at], hits.strands[at] = read, strand
    hits.scores[at] = scored[row + SCORE]
    hits.starts[at], hits.ends[at] = scored[row + START], scored[row + END]
    hits.read_starts[at], hits.read_ends[at] = scored[row + READ_START], scored[row + READ_END]
    hits.gapless[at] = scored[row + GAPLESS] == 1
    hits.window_starts[at] = scored[row + WINDOW_START]
    hits.window_ends[at] = scored[row + WINDOW_END]


@compiled(counted=False)
def _rank(offsets, strands, scored, least, kept, hits):
    """Write every read's hits in order; return their number. `kept` has room for a read's hits."""
    n = 0
    for read in range(offsets.size - 1):
        n_kept = _rank_read(strands, scored, offsets[read], offsets[read + 1], least, kept)
        for j in range(n_kept):
            _put_hit(hits, n, read, strands[kept[j]], scored, FIELDS * kept[j])
            n += 1
        hits.offsets[read + 1] = n
    return n


@compiled(forceinline=True)
def _get_hits(hits, read, strands, scored, first):
    """Write a read's hits as rows from number `first` on; return the next number."""
    for i in range(hits.offsets[read], hits.offsets[read + 1]):
        strands[first] = hits.strands[i]
        fields = (
            hits.scores[i], hits.starts[i], hits.ends[i], hits.read_starts[i], hits.read_ends[i],
            hits.gapless[i], hits.window_starts[i], hits.window_ends[i],
        )  # fmt: skip
        put_row(scored, FIELDS * first, fields)
        first += 1
    return first


class _RowSpace(NamedTuple):
    """Space for the hits of a read as rows, and for the numbers of those that are kept."""

    strands: np.ndarray
    scored: np.ndarray
    kept: np.ndarray


def _row_space(n: int) -> _RowSpace:
    """Return space for n hits."""
    return _RowSpace(np.empty(n, np.uint8), np.empty(FIELDS * n, np.int64), np.empty(n, np.int64))


@compiled(counted=False)
def _merge(hits, more, space, merged):
    """Rank the hits of both together; reads without more hits are unchanged."""
    strands, scored, kept = space
    n = 0
    n_reads = hits.offsets.size - 1
    read = 0
    while read < n_reads:
        first = read
        while read < n_reads and more.offsets[read] == more.offsets[read + 1]:
            read += 1
            merged.offsets[read] = hits.offsets[read] - hits.offsets[first] + n
        n = _copy_hits(hits, hits.offsets[first], hits.offsets[read], merged, n)
        if read == n_reads:
            break
        n_old = _get_hits(hits, read, strands, scored, 0)
        n_all = _get_hits(more, read, strands, scored, n_old)
        n_kept = _rank_read(strands, scored, 0, n_all, 0, kept)
        for j in range(n_kept):
            _put_hit(merged, n, read, strands[kept[j]], scored, FIELDS * kept[j])
            n += 1
        read += 1
        merged.offsets[read] = n
    return n


@compiled(forceinline=True)
def _copy_hits(hits, start, stop, copied, at):
    """Copy hits from start to stop unchanged; return the end of the copies."""
    to, begin = np.uint64(at), np.uint64(start)
    for i in range(np.uint64(stop - start)):
        copied.reads[to + i] = hits.reads[begin + i]
        copied.strands[to + i] = hits.strands[begin + i]
        copied.scores[to + i] = hits.scores[begin + i]
        copied.starts[to + i] = hits.starts[begin + i]
        copied.ends[to + i] = hits.ends[begin + i]
        copied.read_starts[to + i] = hits.read_starts[begin + i]
        copied.read_ends[to + i] = hits.read_ends[begin + i]
        copied.gapless[to + i] = hits.gapless[begin + i]
        copied.window_starts[to + i] = hits.window_starts[begin + i]
        copied.window_ends[to + i] = hits.window_ends[begin + i]
    return at + stop - start


@compiled(counted=False)
def _replace(hits, few, together):
    n = read = np.int64(0)
    n_reads = hits.offsets.size - 1
    while read < n_reads:
        is_replaced = few.offsets[read] < few.offsets[read + 1]
        source = few if is_replaced else hits
        first, begin = read, n
        while read < n_reads and (few.offsets[read] < few.offsets[read + 1]) == is_replaced:
            read += 1
            together.offsets[read] = source.offsets[read] - source.offsets[first] + begin
        n = _copy_hits(source, source.offsets[first], source.offsets[read], together, n)
    return n
