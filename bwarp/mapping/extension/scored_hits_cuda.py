"""Scored places on the card: put in order, joined, and brought to the host.

A place is one row of eight numbers, as `bwarp.mapping.extension.scored_hits_cpu` has it, and a
strand:

    scored   0      1      2    3           4         5      6             7
             score  start  end  read start  read end  sure   window start  window end
"""

from dataclasses import dataclass

import numpy as np
from numba import cuda, int64
from numba.cuda import types

from bwarp.gpu.pinned_memory import PinnedBuffer
from bwarp.gpu.prefix_sum import exclusive_sum
from bwarp.mapping.extension.scored_hits_cpu import FIELDS, ScoredHits

__all__ = ["FIELDS", "KERNEL_SIGNATURES", "DeviceScoredHits", "merge", "hits_on_host", "ranked"]

#: Threads a block.
BLOCK = 128

_WARP = 32
_ALL_LANES = 0xFFFFFFFF

#: What `split_places` makes of a row, in its order.
_COLUMNS = (np.int32, *[np.int32] * 3, np.uint8, *[np.int64] * 4)


@dataclass(frozen=True)
class DeviceScoredHits:
    """The places of all reads of a chunk, best first.

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
    """Each read's places by score, without low ones and second sights of one place.

    Parameters
    ----------
    changed : device array, shape=(n_reads + 1,), dtype=uint32
        Offsets of what is new; where a read has nothing its places are in order already.
    """
    kept = cuda.device_array(max(1, hits.count), np.int32)
    offsets = cuda.device_array(hits.n_reads + 1, np.uint32)
    blocks = _blocks(_WARP * (hits.n_reads + 1))
    rank_hits[blocks, BLOCK](
        hits.offsets, hits.strands, hits.scored, hits.n_reads, least_score, changed, kept,
        offsets,
    )  # fmt: skip
    exclusive_sum(offsets)
    count = int(offsets[hits.n_reads :].copy_to_host()[0])
    best_first = _empty(offsets, hits.n_reads, count)
    if count:
        take_kept[blocks, BLOCK](
            hits.offsets, hits.strands, hits.scored, hits.n_reads, kept, offsets,
            best_first.strands, best_first.scored,
        )  # fmt: skip
    return best_first


def merge(hits: DeviceScoredHits, more: DeviceScoredHits, dropped) -> DeviceScoredHits:
    """The places of both for every read, each once, best first.

    Parameters
    ----------
    dropped : device array, shape=(n_reads,), dtype=uint8
        1 for reads that keep of `hits` nothing.
    """
    n_reads = hits.n_reads
    offsets = cuda.device_array(n_reads + 1, np.uint32)
    count_joined[_blocks(n_reads + 1), BLOCK](hits.offsets, more.offsets, dropped, n_reads, offsets)
    exclusive_sum(offsets)
    joined = _empty(offsets, n_reads, int(offsets[n_reads:].copy_to_host()[0]))
    join_hits[_blocks(_WARP * n_reads), BLOCK](
        hits.offsets, hits.strands, hits.scored, more.offsets, more.strands, more.scored,
        dropped, n_reads, offsets, joined.strands, joined.scored,
    )  # fmt: skip
    return ranked(joined, 0, more.offsets) if more.count else joined


def hits_on_host(hits: DeviceScoredHits, pinned: PinnedBuffer) -> ScoredHits:
    """The same on the host, in columns: views of pinned memory, but for `offsets`."""
    n = hits.count
    columns = [cuda.device_array(max(1, n), dtype) for dtype in _COLUMNS]
    split_hits[_blocks(_WARP * hits.n_reads), BLOCK](
        hits.offsets, hits.scored, hits.n_reads, *columns
    )
    columns.append(hits.strands)
    found = pinned.arrays(max(1, n), [column.dtype for column in columns])
    for there, here in zip(columns, found, strict=True):
        there[: here.size].copy_to_host(here)
    reads, scores, read_starts, read_ends, gapless, starts, ends, window_starts, window_ends = (
        column[:n] for column in found[:-1]
    )
    return ScoredHits(
        reads=reads,
        strands=found[-1][:n],
        scores=scores,
        starts=starts,
        ends=ends,
        read_starts=read_starts,
        read_ends=read_ends,
        gapless=gapless.view(bool),
        window_starts=window_starts,
        window_ends=window_ends,
        offsets=hits.offsets.copy_to_host().astype(np.int64),
    )


def _empty(offsets, n_reads: int, count: int) -> DeviceScoredHits:
    strands = cuda.device_array(max(1, count), np.uint8)
    scored = cuda.device_array(max(1, FIELDS * count), np.int64)
    return DeviceScoredHits(strands, scored, offsets, n_reads, count)


def _blocks(threads: int) -> int:
    return max(1, -(-threads // BLOCK))


@cuda.jit(device=True)
def are_redundant(scored, a, b):
    """Whether two rows (where they begin) are sights of one place: scored_hits_cpu's
    `_are_redundant`."""
    start, end, read_start, read_end = scored[a + 1], scored[a + 2], scored[a + 3], scored[a + 4]
    start_2, end_2 = scored[b + 1], scored[b + 2]
    read_start_2, read_end_2 = scored[b + 3], scored[b + 4]
    shared = min(end, end_2) - max(start, start_2)
    if end - read_end == end_2 - read_end_2:
        return shared > 0
    read_shared = min(read_end, read_end_2) - max(read_start, read_start_2)
    shortest = min(end - start, end_2 - start_2)
    read_shortest = min(read_end - read_start, read_end_2 - read_start_2)
    return 20 * shared > 19 * shortest and 20 * read_shared > 19 * read_shortest


@cuda.jit(cache=True)
def rank_hits(offsets, strands, scored, n_reads, least, changed, kept, counts):
    """Choose and order each read's places, as scored_hits_cpu's `_rank` does. One warp a read.

    A lane counts for a place those before it. Then places are kept in turn, each if it is no sight
    of one kept before: of those a lane has every 32nd.
    """
    read = cuda.grid(1) // _WARP
    lane = int64(cuda.laneid)
    if read == n_reads and lane == 0:
        counts[read] = 0
    if read >= n_reads:
        return
    first, last = int64(offsets[read]), int64(offsets[read + 1])
    if changed[read] == changed[read + 1]:
        for i in range(first + lane, last, _WARP):
            kept[i] = i
        if lane == 0:
            counts[read] = last - first
        return
    n_listed = int64(0)
    for step in range(first, last, _WARP):
        i = step + lane
        score = scored[FIELDS * i] if i < last else int64(least - 1)
        hit = first
        for j in range(first, last):
            other = scored[FIELDS * j]
            hit += 1 if other > score or (other == score and j < i) else 0
        if score >= least:
            kept[hit] = i
        listed = int64(cuda.ballot_sync(_ALL_LANES, score >= least)) & _ALL_LANES
        n_listed += cuda.popc(listed)
    cuda.syncwarp()
    n_kept = first
    for at in range(first, first + n_listed):
        i = int64(kept[at])
        is_known = False
        for j in range(first + lane, n_kept, _WARP):
            other = int64(kept[j])
            is_same = strands[other] == strands[i]
            is_known = is_known or (is_same and are_redundant(scored, FIELDS * other, FIELDS * i))
        if not cuda.any_sync(_ALL_LANES, is_known):
            if lane == 0:
                kept[n_kept] = i
            n_kept += 1
            cuda.syncwarp()
    if lane == 0:
        counts[read] = n_kept - first


@cuda.jit(cache=True)
def take_kept(offsets, strands, scored, n_reads, kept, new_offsets, new_strands, new_scored):
    """Copy the places that were kept. One warp a read, a lane a number."""
    read = cuda.grid(1) // _WARP
    if read >= n_reads:
        return
    source, hit = int64(offsets[read]), int64(new_offsets[read])
    count = int64(new_offsets[read + 1]) - hit
    for at in range(int64(cuda.laneid), FIELDS * count, _WARP):
        row = int64(kept[source + at // FIELDS])
        new_scored[FIELDS * hit + at] = scored[FIELDS * row + at % FIELDS]
    for at in range(int64(cuda.laneid), count, _WARP):
        new_strands[hit + at] = strands[int64(kept[source + at])]


@cuda.jit(cache=True)
def count_joined(offsets, more_offsets, dropped, n_reads, counts):
    """How many places each read has of two lists. One thread a read."""
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
def copy_hits(offsets, strands, scored, read, new_strands, new_scored, hit):
    """Copy a read's places to where they begin now; where the next one begins. A whole warp."""
    source = int64(offsets[read])
    count = int64(offsets[read + 1]) - source
    for at in range(int64(cuda.laneid), FIELDS * count, _WARP):
        new_scored[FIELDS * hit + at] = scored[FIELDS * source + at]
    for at in range(int64(cuda.laneid), count, _WARP):
        new_strands[hit + at] = strands[source + at]
    return hit + count


@cuda.jit(cache=True)
def join_hits(
    offsets, strands, scored, more_offsets, more_strands, more_scored, dropped, n_reads,
    new_offsets, new_strands, new_scored,
):  # fmt: skip
    """Lay each read's places of two lists one after the other. One warp a read, a lane a number."""
    read = cuda.grid(1) // _WARP
    if read >= n_reads:
        return
    hit = int64(new_offsets[read])
    if not dropped[read]:
        hit = copy_hits(offsets, strands, scored, read, new_strands, new_scored, hit)
    copy_hits(more_offsets, more_strands, more_scored, read, new_strands, new_scored, hit)


@cuda.jit(cache=True)
def split_hits(
    offsets, scored, n_reads, reads, scores, read_starts, read_ends, sure, starts, ends,
    window_starts, window_ends,
):  # fmt: skip
    """Rows as columns. One warp a read, a lane a place."""
    read = cuda.grid(1) // _WARP
    if read >= n_reads:
        return
    for hit in range(int64(offsets[read]) + cuda.laneid, int64(offsets[read + 1]), int64(_WARP)):
        at = FIELDS * hit
        reads[hit] = read
        scores[hit] = scored[at]
        starts[hit] = scored[at + 1]
        ends[hit] = scored[at + 2]
        read_starts[hit] = scored[at + 3]
        read_ends[hit] = scored[at + 4]
        sure[hit] = scored[at + 5]
        window_starts[hit] = scored[at + 6]
        window_ends[hit] = scored[at + 7]


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
        _NUMBERS, _LONGS, _INTEGER, _SIGNED, _SIGNED, _SIGNED, _SIGNED, _BYTES, _LONGS, _LONGS,
        _LONGS, _LONGS,
    ),
}  # fmt: skip
