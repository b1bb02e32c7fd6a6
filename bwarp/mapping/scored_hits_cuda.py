"""Scored hits on the GPU: ranked, merged, and brought to the host.

Hits are rows, as `bwarp.mapping.scored_hits_cpu` has them.
"""

from typing import NamedTuple

import numpy as np

from bwarp.gpu.cuda import cuda, int32, int64, uint8, uint32
from bwarp.gpu.device_arrays import columns, zeros
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import ALL_LANES, WARP
from bwarp.gpu.sums_and_sorts import add_up
from bwarp.gpu.transfers import PinnedBuffer
from bwarp.mapping.scored_hits_cpu import (
    END,
    FIELDS,
    GAPLESS,
    READ_END,
    READ_START,
    SCORE,
    START,
    WINDOW_END,
    WINDOW_START,
    ScoredHits,
    are_redundant,
)


class DeviceScoredHits(NamedTuple):
    """The hits of all reads of a chunk, best first.

    Attributes
    ----------
    strands : shape=(count,)
    scored : shape=(FIELDS * count,)
    offsets : shape=(n_reads + 1,)
    """

    strands: uint8[::1]
    scored: int64[::1]
    offsets: uint32[::1]
    count: int

    @property
    def n_reads(self) -> int:
        return self.offsets.size - 1


class HitColumns(NamedTuple):
    """The columns of `ScoredHits`, without offsets."""

    reads: int32[::1]
    strands: uint8[::1]
    scores: int32[::1]
    starts: int64[::1]
    ends: int64[::1]
    read_starts: int32[::1]
    read_ends: int32[::1]
    gapless: uint8[::1]
    window_starts: int64[::1]
    window_ends: int64[::1]


def ranked(hits: DeviceScoredHits, least_score: int, changed) -> DeviceScoredHits:
    """Return the hits of each read sorted by score, without low-scoring and redundant ones.

    Parameters
    ----------
    changed : device array, shape=(n_reads + 1,), dtype=uint32
        Offsets of the new hits; a read without new hits is sorted already.
    """
    kept = cuda.device_array(max(1, hits.count), np.int32)
    offsets = cuda.device_array(hits.n_reads + 1, np.uint32)
    rank_hits(hits, least_score, changed, kept, offsets)
    best_first = _empty(offsets)
    if best_first.count:
        take_kept(hits, kept, best_first)
    return best_first


def merge(hits: DeviceScoredHits, more: DeviceScoredHits, dropped) -> DeviceScoredHits:
    """Merge two lists of hits per read, best first, without duplicates.

    Parameters
    ----------
    dropped : device array, shape=(n_reads,), dtype=uint8
        1 for reads that keep nothing of `hits`.
    """
    joined = _joined(hits, more, dropped)
    return ranked(joined, 0, more.offsets) if more.count else joined


def without(hits: DeviceScoredHits, dropped) -> DeviceScoredHits:
    """Return the hits, without those of reads that `dropped` (device array, uint8) marks with 1."""
    return _joined(hits, hits._replace(offsets=zeros(hits.offsets.size, np.uint32)), dropped)


def hits_on_host(hits: DeviceScoredHits, pinned: PinnedBuffer) -> ScoredHits:
    """Copy hits to the host, in columns: views of pinned memory, except `offsets`."""
    n = hits.count
    on_gpu = columns(HitColumns, max(1, n), strands=hits.strands)
    split_hits(hits, on_gpu)
    found = pinned.arrays(max(1, n), [column.dtype for column in on_gpu])
    for there, here in zip(on_gpu, found, strict=True):
        there[: here.size].copy_to_host(here)
    offsets = hits.offsets.copy_to_host().astype(np.int64)
    on_host = ScoredHits(*(column[:n] for column in found), offsets=offsets)
    return on_host._replace(gapless=on_host.gapless.view(bool))


def _joined(hits: DeviceScoredHits, more: DeviceScoredHits, dropped) -> DeviceScoredHits:
    offsets = cuda.device_array(hits.offsets.size, np.uint32)
    count_joined(hits, more, dropped, offsets)
    joined = _empty(offsets)
    if joined.count:
        join_hits(hits, more, dropped, joined)
    return joined


def _empty(counts) -> DeviceScoredHits:
    """Allocate memory for the counted hits of each read; the counts become offsets."""
    count = add_up(counts)
    strands = cuda.device_array(max(1, count), np.uint8)
    scored = cuda.device_array(max(1, FIELDS * count), np.int64)
    return DeviceScoredHits(strands, scored, counts, count)


@kernel(over="hits.offsets", per=WARP)
def rank_hits(
    hits: DeviceScoredHits, least: int, changed: uint32[::1], kept: int32[::1], counts: uint32[::1]
):
    """Sort each read's hits and mark which to keep, as scored_hits_cpu does. One warp per read.

    For its hit, a lane counts the hits that come before it. Then each hit in turn is kept unless a
    kept one makes it redundant; each lane compares it with every 32nd kept hit.
    """
    read, n_reads = cuda.grid(1) // WARP, hits.offsets.size - 1
    lane = int64(cuda.laneid)
    if read == n_reads and lane == 0:
        counts[read] = 0
    if read >= n_reads:
        return
    first, last = int64(hits.offsets[read]), int64(hits.offsets[read + 1])
    if changed[read] == changed[read + 1]:
        for i in range(first + lane, last, WARP):
            kept[i] = i
        if lane == 0:
            counts[read] = last - first
        return
    n_listed = int64(0)
    for step in range(first, last, WARP):
        i = step + lane
        score = hits.scored[FIELDS * i + SCORE] if i < last else int64(least - 1)
        rank = first
        for j in range(first, last):
            other = hits.scored[FIELDS * j + SCORE]
            rank += 1 if other > score or (other == score and j < i) else 0
        if score >= least:
            kept[rank] = i
        listed = int64(cuda.ballot_sync(ALL_LANES, score >= least)) & ALL_LANES
        n_listed += cuda.popc(listed)
    cuda.syncwarp()
    n_kept = first
    for at in range(first, first + n_listed):
        i = int64(kept[at])
        is_known = False
        for j in range(first + lane, n_kept, WARP):
            other = int64(kept[j])
            is_same = hits.strands[other] == hits.strands[i]
            is_same = is_same and are_redundant(hits.scored, FIELDS * other, FIELDS * i)
            is_known = is_known or is_same
        if not cuda.any_sync(ALL_LANES, is_known):
            if lane == 0:
                kept[n_kept] = i
            n_kept += 1
            cuda.syncwarp()
    if lane == 0:
        counts[read] = n_kept - first


@kernel(over="hits.offsets", per=WARP)
def take_kept(hits: DeviceScoredHits, kept: int32[::1], best_first: DeviceScoredHits):
    """Copy the kept hits. One warp per read, one lane per number."""
    read = cuda.grid(1) // WARP
    if read >= hits.offsets.size - 1:
        return
    source, first = int64(hits.offsets[read]), int64(best_first.offsets[read])
    count = int64(best_first.offsets[read + 1]) - first
    for at in range(int64(cuda.laneid), FIELDS * count, WARP):
        row = int64(kept[source + at // FIELDS])
        best_first.scored[FIELDS * first + at] = hits.scored[FIELDS * row + at % FIELDS]
    for at in range(int64(cuda.laneid), count, WARP):
        best_first.strands[first + at] = hits.strands[int64(kept[source + at])]


@kernel(over="hits.offsets")
def count_joined(
    hits: DeviceScoredHits, more: DeviceScoredHits, dropped: uint8[::1], counts: uint32[::1]
):
    """Count the hits of each read in two lists. One thread per read."""
    read, n_reads = cuda.grid(1), hits.offsets.size - 1
    if read > n_reads:
        return
    count = int64(0)
    if read < n_reads:
        count = int64(more.offsets[read + 1]) - int64(more.offsets[read])
        if not dropped[read]:
            count += int64(hits.offsets[read + 1]) - int64(hits.offsets[read])
    counts[read] = count


@cuda.jit(device=True)
def copy_hits(hits, read, target, first):
    """Copy the hits of a read to `first`; return the start of the next. Called by a whole warp."""
    source = int64(hits.offsets[read])
    count = int64(hits.offsets[read + 1]) - source
    for at in range(int64(cuda.laneid), FIELDS * count, WARP):
        target.scored[FIELDS * first + at] = hits.scored[FIELDS * source + at]
    for at in range(int64(cuda.laneid), count, WARP):
        target.strands[first + at] = hits.strands[source + at]
    return first + count


@kernel(over="hits.offsets", per=WARP)
def join_hits(
    hits: DeviceScoredHits, more: DeviceScoredHits, dropped: uint8[::1], joined: DeviceScoredHits
):
    """Concatenate each read's hits of two lists. One warp per read, one lane per number."""
    read = cuda.grid(1) // WARP
    if read >= hits.offsets.size - 1:
        return
    first = int64(joined.offsets[read])
    if not dropped[read]:
        first = copy_hits(hits, read, joined, first)
    copy_hits(more, read, joined, first)


@kernel(over="hits.offsets", per=WARP)
def split_hits(hits: DeviceScoredHits, to: HitColumns):
    """Split rows into columns, except strands. One warp per read, one lane per hit."""
    read = cuda.grid(1) // WARP
    if read >= hits.offsets.size - 1:
        return
    offsets, scored = hits.offsets, hits.scored
    for hit in range(int64(offsets[read]) + cuda.laneid, int64(offsets[read + 1]), int64(WARP)):
        row = FIELDS * hit
        to.reads[hit], to.scores[hit] = read, scored[row + SCORE]
        to.starts[hit], to.ends[hit] = scored[row + START], scored[row + END]
        to.read_starts[hit], to.read_ends[hit] = scored[row + READ_START], scored[row + READ_END]
        to.gapless[hit] = scored[row + GAPLESS]
        to.window_starts[hit] = scored[row + WINDOW_START]
        to.window_ends[hit] = scored[row + WINDOW_END]
