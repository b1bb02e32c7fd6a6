"""Scored hits on the GPU: ranked, merged, and brought to the host.

Hits are rows, as `bwarp.mapping.extension.scored_hits_cpu` has them.
"""

from dataclasses import dataclass

import numpy as np
from numba import cuda, int64
from numba.cuda import types

from bwarp.gpu.launch import ALL_LANES, WARP, launch
from bwarp.gpu.pinned_memory import PinnedBuffer
from bwarp.gpu.prefix_sum import add_up
from bwarp.mapping.extension.scored_hits_cpu import (
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

__all__ = ["KERNEL_SIGNATURES", "DeviceScoredHits", "hits_on_host", "merge", "ranked", "without"]

#: The columns that `split_hits` writes, in its order.
_COLUMNS = (*[np.int32] * 2, *[np.int64] * 2, *[np.int32] * 2, np.uint8, *[np.int64] * 2)


@dataclass(frozen=True)
class DeviceScoredHits:
    """The hits of all reads of a chunk, best first.

    Attributes
    ----------
    strands : device array, shape=(count,), dtype=uint8
    scored : device array, shape=(FIELDS * count,), dtype=int64
    offsets : device array, shape=(n_reads + 1,), dtype=uint32
    n_reads, count : int
    """

    strands: object
    scored: object
    offsets: object
    n_reads: int
    count: int


def ranked(hits: DeviceScoredHits, least_score: int, changed) -> DeviceScoredHits:
    """Each read's hits by score, without low and redundant ones.

    Parameters
    ----------
    changed : device array, shape=(n_reads + 1,), dtype=uint32
        Offsets of what is new; where a read has nothing its hits are in order already.
    """
    kept = cuda.device_array(max(1, hits.count), np.int32)
    offsets = cuda.device_array(hits.n_reads + 1, np.uint32)
    shape = launch(WARP * (hits.n_reads + 1))
    rank_hits[shape](
        hits.offsets, hits.strands, hits.scored, hits.n_reads, least_score, changed, kept, offsets
    )
    best_first = _empty(offsets, hits.n_reads)
    if best_first.count:
        take_kept[shape](
            hits.offsets, hits.strands, hits.scored, hits.n_reads, kept, offsets,
            best_first.strands, best_first.scored,
        )  # fmt: skip
    return best_first


def merge(hits: DeviceScoredHits, more: DeviceScoredHits, dropped) -> DeviceScoredHits:
    """The hits of both for every read, each once, best first.

    Parameters
    ----------
    dropped : device array, shape=(n_reads,), dtype=uint8
        1 for reads that keep nothing of `hits`.
    """
    n_reads = hits.n_reads
    offsets = cuda.device_array(n_reads + 1, np.uint32)
    count_joined[launch(n_reads + 1)](hits.offsets, more.offsets, dropped, n_reads, offsets)
    joined = _empty(offsets, n_reads)
    join_hits[launch(WARP * n_reads)](
        hits.offsets, hits.strands, hits.scored, more.offsets, more.strands, more.scored,
        dropped, n_reads, offsets, joined.strands, joined.scored,
    )  # fmt: skip
    return ranked(joined, 0, more.offsets) if more.count else joined


def without(hits: DeviceScoredHits, dropped) -> DeviceScoredHits:
    """The hits without those of the reads that `dropped` (device array, uint8) marks with 1."""
    n_reads = hits.n_reads
    no_more, offsets = (cuda.to_device(np.zeros(n_reads + 1, np.uint32)) for _ in range(2))
    count_joined[launch(n_reads + 1)](hits.offsets, no_more, dropped, n_reads, offsets)
    kept = _empty(offsets, n_reads)
    if kept.count:
        join_hits[launch(WARP * n_reads)](
            hits.offsets, hits.strands, hits.scored, no_more, hits.strands, hits.scored, dropped,
            n_reads, offsets, kept.strands, kept.scored,
        )  # fmt: skip
    return kept


def hits_on_host(hits: DeviceScoredHits, pinned: PinnedBuffer) -> ScoredHits:
    """The same on the host, in columns: views of pinned memory, but for `offsets`."""
    n = hits.count
    columns = [cuda.device_array(max(1, n), dtype) for dtype in _COLUMNS]
    split_hits[launch(WARP * hits.n_reads)](hits.offsets, hits.scored, hits.n_reads, *columns)
    columns.insert(1, hits.strands)
    found = pinned.arrays(max(1, n), [column.dtype for column in columns])
    for there, here in zip(columns, found, strict=True):
        there[: here.size].copy_to_host(here)
    offsets = hits.offsets.copy_to_host().astype(np.int64)
    on_host = ScoredHits(*(column[:n] for column in found), offsets=offsets)
    return on_host._replace(gapless=on_host.gapless.view(bool))


def _empty(counts, n_reads: int) -> DeviceScoredHits:
    """Memory for the counted hits of every read; the counts become offsets."""
    count = add_up(counts)
    strands = cuda.device_array(max(1, count), np.uint8)
    scored = cuda.device_array(max(1, FIELDS * count), np.int64)
    return DeviceScoredHits(strands, scored, counts, n_reads, count)


@cuda.jit(cache=True)
def rank_hits(offsets, strands, scored, n_reads, least, changed, kept, counts):
    """Order each read's hits and mark which to keep, as scored_hits_cpu does. One warp a read.

    A lane counts for a hit those before it. Then hits are kept in turn, each unless one kept before
    makes it redundant: of those a lane has every 32nd.
    """
    read = cuda.grid(1) // WARP
    lane = int64(cuda.laneid)
    if read == n_reads and lane == 0:
        counts[read] = 0
    if read >= n_reads:
        return
    first, last = int64(offsets[read]), int64(offsets[read + 1])
    if changed[read] == changed[read + 1]:
        for i in range(first + lane, last, WARP):
            kept[i] = i
        if lane == 0:
            counts[read] = last - first
        return
    n_listed = int64(0)
    for step in range(first, last, WARP):
        i = step + lane
        score = scored[FIELDS * i + SCORE] if i < last else int64(least - 1)
        rank = first
        for j in range(first, last):
            other = scored[FIELDS * j + SCORE]
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
            is_same = strands[other] == strands[i]
            is_known = is_known or (is_same and are_redundant(scored, FIELDS * other, FIELDS * i))
        if not cuda.any_sync(ALL_LANES, is_known):
            if lane == 0:
                kept[n_kept] = i
            n_kept += 1
            cuda.syncwarp()
    if lane == 0:
        counts[read] = n_kept - first


@cuda.jit(cache=True)
def take_kept(offsets, strands, scored, n_reads, kept, new_offsets, new_strands, new_scored):
    """Copy the hits that are kept. One warp a read, a lane a number."""
    read = cuda.grid(1) // WARP
    if read >= n_reads:
        return
    source, first = int64(offsets[read]), int64(new_offsets[read])
    count = int64(new_offsets[read + 1]) - first
    for at in range(int64(cuda.laneid), FIELDS * count, WARP):
        row = int64(kept[source + at // FIELDS])
        new_scored[FIELDS * first + at] = scored[FIELDS * row + at % FIELDS]
    for at in range(int64(cuda.laneid), count, WARP):
        new_strands[first + at] = strands[int64(kept[source + at])]


@cuda.jit(cache=True)
def count_joined(offsets, more_offsets, dropped, n_reads, counts):
    """How many hits each read has of two lists. One thread a read."""
    read = cuda.grid(1)
    if read > n_reads:
        return
    count = int64(0)
    if read < n_reads:
        count = int64(more_offsets[read + 1]) - int64(more_offsets[read])
        if not dropped[read]:
            count += int64(offsets[read + 1]) - int64(offsets[read])
    counts[read] = count


@cuda.jit(device=True)
def copy_hits(offsets, strands, scored, read, new_strands, new_scored, first):
    """Copy a read's hits to where they begin now; where the next ones begin. A whole warp."""
    source = int64(offsets[read])
    count = int64(offsets[read + 1]) - source
    for at in range(int64(cuda.laneid), FIELDS * count, WARP):
        new_scored[FIELDS * first + at] = scored[FIELDS * source + at]
    for at in range(int64(cuda.laneid), count, WARP):
        new_strands[first + at] = strands[source + at]
    return first + count


@cuda.jit(cache=True)
def join_hits(
    offsets, strands, scored, more_offsets, more_strands, more_scored, dropped, n_reads,
    new_offsets, new_strands, new_scored,
):  # fmt: skip
    """Lay each read's hits of two lists one after the other. One warp a read, a lane a number."""
    read = cuda.grid(1) // WARP
    if read >= n_reads:
        return
    first = int64(new_offsets[read])
    if not dropped[read]:
        first = copy_hits(offsets, strands, scored, read, new_strands, new_scored, first)
    copy_hits(more_offsets, more_strands, more_scored, read, new_strands, new_scored, first)


@cuda.jit(cache=True)
def split_hits(
    offsets, scored, n_reads, reads, scores, starts, ends, read_starts, read_ends, gapless,
    window_starts, window_ends,
):  # fmt: skip
    """Rows as columns. One warp a read, a lane a hit."""
    read = cuda.grid(1) // WARP
    if read >= n_reads:
        return
    for hit in range(int64(offsets[read]) + cuda.laneid, int64(offsets[read + 1]), int64(WARP)):
        row = FIELDS * hit
        reads[hit] = read
        scores[hit] = scored[row + SCORE]
        starts[hit], ends[hit] = scored[row + START], scored[row + END]
        read_starts[hit], read_ends[hit] = scored[row + READ_START], scored[row + READ_END]
        gapless[hit] = scored[row + GAPLESS]
        window_starts[hit], window_ends[hit] = scored[row + WINDOW_START], scored[row + WINDOW_END]


_INTEGER, _LONGS, _NUMBERS = types.int64, types.int64[::1], types.uint32[::1]
_SIGNED, _BYTES = types.int32[::1], types.uint8[::1]

#: The argument types that every kernel is compiled with.
KERNEL_SIGNATURES = {
    rank_hits: (_NUMBERS, _BYTES, _LONGS, _INTEGER, _INTEGER, _NUMBERS, _SIGNED, _NUMBERS),
    take_kept: (_NUMBERS, _BYTES, _LONGS, _INTEGER, _SIGNED, _NUMBERS, _BYTES, _LONGS),
    count_joined: (_NUMBERS, _NUMBERS, _BYTES, _INTEGER, _NUMBERS),
    join_hits: (
        _NUMBERS, _BYTES, _LONGS, _NUMBERS, _BYTES, _LONGS, _BYTES, _INTEGER, _NUMBERS, _BYTES,
        _LONGS,
    ),
    split_hits: (
        _NUMBERS, _LONGS, _INTEGER, _SIGNED, _SIGNED, _LONGS, _LONGS, _SIGNED, _SIGNED, _BYTES,
        _LONGS, _LONGS,
    ),
}  # fmt: skip
