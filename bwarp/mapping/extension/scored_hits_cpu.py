"""Scored places of reads: put in order, and joined.

A read's places are in the order of score, equal ones as their candidates were; a second sight of a
better place is left out. A place that is not in columns yet is a strand and a row of numbers:

    scored   0      1      2    3           4         5      6             7
             score  start  end  read start  read end  sure   window start  window end
"""

from dataclasses import dataclass, fields

import numba
import numpy as np

__all__ = ["FIELDS", "ScoredHits", "best_scores", "joined", "merge", "ranked", "without"]

#: Numbers a row.
FIELDS = 8


@dataclass(frozen=True)
class ScoredHits:
    """Scored places of reads, in the order of reads, best first.

    Attributes
    ----------
    reads : ndarray, shape=(n,), dtype=int32
    strands : ndarray, shape=(n,), dtype=uint8
    scores : ndarray, shape=(n,), dtype=int32
        Of the local alignment, without what clipping costs.
    starts, ends : ndarray, shape=(n,), dtype=int64
        Genome positions; the start of a gapped alignment is not known yet and is where its first
        base would be without its gaps.
    read_starts, read_ends : ndarray, shape=(n,), dtype=int32
        The aligned bases of the read on its strand; the start of a gapped alignment is not known
        and is what `extension_cpu.gapped_start` says.
    gapless : ndarray, shape=(n,), dtype=bool
        Whether the alignment is a stretch of one diagonal, and so known in full.
    window_starts, window_ends : ndarray, shape=(n,), dtype=int64
        What was or would be aligned with.
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
    """The best score of every read, 0 where it has no place, dtype int32."""
    best = np.zeros(len(hits.offsets) - 1, np.int32)
    filled = hits.offsets[:-1] < hits.offsets[1:]
    best[filled] = hits.scores[hits.offsets[:-1][filled]]
    return best


def merge(hits: ScoredHits, more: ScoredHits) -> ScoredHits:
    """The places of both for every read, each once, best first."""
    if len(more.reads) == 0:
        return hits
    merged = _room_for(len(hits.reads) + len(more.reads), len(hits.offsets))
    n = _merge(
        hits.offsets, _columns(hits), more.offsets, _columns(more), merged.offsets,
        _columns(merged),
    )  # fmt: skip
    return _cut(merged, n)


def joined(parts: list[ScoredHits]) -> ScoredHits:
    """The places of reads that follow one another, out of those of each part of the reads."""
    if len(parts) == 1:
        return parts[0]
    columns = {
        field.name: np.concatenate([getattr(part, field.name) for part in parts])
        for field in fields(ScoredHits)
        if field.name not in ("reads", "offsets")
    }
    n_reads = np.cumsum([0, *(len(part.offsets) - 1 for part in parts)])
    counts = [np.diff(part.offsets) for part in parts]
    reads = [part.reads + np.int32(first) for part, first in zip(parts, n_reads, strict=False)]
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    return ScoredHits(reads=np.concatenate(reads), offsets=offsets, **columns)


def without(hits: ScoredHits, dropped: np.ndarray) -> ScoredHits:
    """The places of the other reads than those that `dropped` (bool, one a read) tells."""
    counts = np.where(dropped, 0, np.diff(hits.offsets))
    kept = np.flatnonzero(~dropped[hits.reads])
    columns = {name: values[kept] for name, values in vars(hits).items() if name != "offsets"}
    return ScoredHits(**columns, offsets=np.concatenate([[0], np.cumsum(counts)]))


def ranked(
    offsets: np.ndarray,
    reads: np.ndarray,
    strands: np.ndarray,
    scored: np.ndarray,
    least_score: int,
) -> ScoredHits:
    """Each read's places by score, without low ones and second sights of one place.

    Parameters
    ----------
    offsets : ndarray, shape=(n_reads + 1,), dtype=int64
        Where the places of each read begin.
    reads : ndarray, shape=(n,), dtype=int32
    strands : ndarray, shape=(n,), dtype=uint8
    scored : ndarray, shape=(n, FIELDS), dtype=int64
    """
    hits = _room_for(len(reads), len(offsets))
    n = _rank(offsets, reads, strands, scored, least_score, hits.offsets, _columns(hits))
    return _cut(hits, n)


def _room_for(n: int, n_offsets: int) -> ScoredHits:
    """Room for so many places, to be written."""
    types = (np.int32, np.uint8, np.int32, np.int64, np.int64, np.int32, np.int32, np.bool_)
    columns = [np.empty(n, dtype) for dtype in (*types, np.int64, np.int64)]
    return ScoredHits(*columns, offsets=np.zeros(n_offsets, np.int64))


def _columns(hits: ScoredHits) -> tuple[np.ndarray, ...]:
    """All arrays but the offsets, as compiled functions take them."""
    return tuple(vars(hits).values())[:-1]


def _cut(hits: ScoredHits, n: int) -> ScoredHits:
    """The first n places."""
    return ScoredHits(*(column[:n] for column in _columns(hits)), offsets=hits.offsets)


@numba.njit(cache=True, nogil=True, inline="always")
def _are_redundant(start, end, read_start, read_end, start_2, end_2, read_start_2, read_end_2):
    """Whether two alignments of a read on one strand are sights of one: they end on one diagonal,
    as where a window cut one short, or share 95 % of the genome and the read, as bwa says it.
    """
    shared = min(end, end_2) - max(start, start_2)
    if end - read_end == end_2 - read_end_2:
        return shared > 0
    read_shared = min(read_end, read_end_2) - max(read_start, read_start_2)
    return 20 * shared > 19 * min(end - start, end_2 - start_2) and 20 * read_shared > 19 * min(
        read_end - read_start, read_end_2 - read_start_2
    )


@numba.njit(cache=True, nogil=True, inline="always")
def _rank_read(strands, scored, start, stop, least, kept):
    """List the rows of a read by score, without low ones and second sights of one place.

    Equal ones stay in their order. Ranking again changes nothing. Returns how many are listed.
    """
    n_listed = 0
    for i in range(start, stop):
        if scored[i, 0] < least:
            continue
        # Insertion sort: few, and nearly in order already.
        j = n_listed
        while j > 0 and scored[kept[j - 1], 0] < scored[i, 0]:
            kept[j] = kept[j - 1]
            j -= 1
        kept[j] = i
        n_listed += 1
    n_kept = 0
    for at in range(n_listed):
        i = kept[at]
        same = False
        for j in range(n_kept):
            other = kept[j]
            if strands[other] == strands[i] and _are_redundant(
                scored[other, 1], scored[other, 2], scored[other, 3], scored[other, 4],
                scored[i, 1], scored[i, 2], scored[i, 3], scored[i, 4],
            ):  # fmt: skip
                same = True
                break
        if not same:
            kept[n_kept] = i
            n_kept += 1
    return n_kept


@numba.njit(cache=True, nogil=True, inline="always")
def _put_hit(columns, at, read, strand, scored, i):
    columns[0][at], columns[1][at] = read, strand
    columns[2][at], columns[3][at], columns[4][at] = scored[i, 0], scored[i, 1], scored[i, 2]
    columns[5][at], columns[6][at], columns[7][at] = scored[i, 3], scored[i, 4], scored[i, 5] == 1
    columns[8][at], columns[9][at] = scored[i, 6], scored[i, 7]


@numba.njit(cache=True, nogil=True)
def _rank(offsets, reads, strands, scored, least, ranked_offsets, ranked):
    """Put every read's places in order; returns how many there are."""
    n = 0
    kept = np.empty(max(1, np.diff(offsets).max() if offsets.size > 1 else 1), np.int64)
    for read in range(offsets.size - 1):
        n_kept = _rank_read(strands, scored, offsets[read], offsets[read + 1], least, kept)
        for j in range(n_kept):
            _put_hit(ranked, n, read, strands[kept[j]], scored, kept[j])
            n += 1
        ranked_offsets[read + 1] = n
    return n


@numba.njit(cache=True, nogil=True, inline="always")
def _get_hits(columns, start, stop, strands, scored, first):
    for i in range(start, stop):
        j = first + i - start
        strands[j] = columns[1][i]
        scored[j, 0], scored[j, 1], scored[j, 2] = columns[2][i], columns[3][i], columns[4][i]
        scored[j, 3], scored[j, 4], scored[j, 5] = columns[5][i], columns[6][i], columns[7][i]
        scored[j, 6], scored[j, 7] = columns[8][i], columns[9][i]


@numba.njit(cache=True, nogil=True)
def _merge(offsets, hits, more_offsets, more, merged_offsets, merged):
    """Rank the places of both together; reads without more keep theirs as they are."""
    n = 0
    longest = np.int64(0)
    for read in range(offsets.size - 1):
        both = offsets[read + 1] - offsets[read] + more_offsets[read + 1] - more_offsets[read]
        longest = max(longest, both)
    strands = np.empty(longest, np.uint8)
    scored = np.empty((longest, FIELDS), np.int64)
    kept = np.empty(longest, np.int64)
    for read in range(offsets.size - 1):
        n_old = offsets[read + 1] - offsets[read]
        n_new = more_offsets[read + 1] - more_offsets[read]
        _get_hits(hits, offsets[read], offsets[read + 1], strands, scored, 0)
        if n_new == 0:
            n_kept = n_old
            for j in range(n_old):
                kept[j] = j
        else:
            _get_hits(more, more_offsets[read], more_offsets[read + 1], strands, scored, n_old)
            n_kept = _rank_read(strands, scored, 0, n_old + n_new, 0, kept)
        for j in range(n_kept):
            _put_hit(merged, n, read, strands[kept[j]], scored, kept[j])
            n += 1
        merged_offsets[read + 1] = n
    return n
