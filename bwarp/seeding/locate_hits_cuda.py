"""From the lists of a search to hits in order, on the GPU: count, keep, locate, sort.

A search leaves intervals of rows, and hits that it has located already. Both are held, for the
k-mers within the limit, until their hits are asked for:

    intervals   item | first row | rows | mismatches      --> one key a row
    keys        item, genome position                     --> as they are

A key is one number, item above genome position, so that sorting numbers sorts hits.
"""

from dataclasses import dataclass

import numpy as np
from numba import cuda, int32, uint8, uint32, uint64
from numba.cuda import types

from bwarp.gpu.append_lists import INTERVALS, KEYS, reserve
from bwarp.gpu.launch import ALL_LANES, WARP, launch
from bwarp.index import locate_cpu
from bwarp.index.device_index_cuda import DeviceIndex
from bwarp.index.locate_cuda import genome_position, look_up, step_to_sampled
from bwarp.runtime.threads import for_each_range
from bwarp.seeding.hits import SeedHits

__all__ = ["KERNEL_SIGNATURES", "HeldHits", "count_hits", "hold_hits", "locate_hits"]

_THREADS = 256


@dataclass(frozen=True)
class HeldHits:
    """What a batch of k-mers has found, limit applied; on the device, or on the host.

    Attributes
    ----------
    intervals : array, shape=(4 * n_intervals,), dtype=uint32
        Columns item, first row, rows, mismatches.
    keys : array, shape=(n_keys,), dtype=uint64
    values : array, shape=(n_keys,), dtype=uint32
        Mismatches of each key.
    """

    intervals: object
    keys: object
    values: object

    @property
    def nbytes(self) -> int:
        return self.intervals.nbytes + self.keys.nbytes + self.values.nbytes

    def on_host(self) -> "HeldHits":
        return HeldHits(
            *(array.copy_to_host() for array in (self.intervals, self.keys, self.values))
        )

    def on_device(self) -> "HeldHits":
        if not isinstance(self.intervals, np.ndarray):
            return self
        return HeldHits(
            *(cuda.to_device(array) for array in (self.intervals, self.keys, self.values))
        )


def count_hits(device: DeviceIndex, n_intervals: int, n_keys: int, n_kmers: int):
    """How many hits every k-mer of the batch has: device array, dtype=uint64."""
    work = device.work
    counts = cuda.to_device(np.zeros(n_kmers, np.uint64))
    count_listed[launch(max(n_intervals, n_keys), _THREADS)](
        work.intervals, work.elements, n_intervals, work.keys, n_keys, counts
    )
    return counts


def hold_hits(device, n_intervals: int, n_keys: int, counts, most: int) -> HeldHits:
    """Copy the lists' elements of k-mers with at most so many hits."""
    work = device.work
    work.counters.copy_to_device(np.zeros(work.counters.size, np.uint32))
    elements = work.elements
    kept_intervals = work.nodes[: 4 * elements]
    kept_keys = work.spare[: 2 * elements].view(np.uint64)
    kept_values = work.spare[2 * elements : 3 * elements]
    keep_listed[launch(max(n_intervals, n_keys), _THREADS)](
        work.intervals,
        work.keys,
        work.values,
        elements,
        n_intervals,
        n_keys,
        counts,
        most,
        kept_intervals,
        kept_keys,
        kept_values,
        work.counters,
    )
    n_intervals, n_keys = (int(n) for n in work.counters[:2].copy_to_host())
    held = cuda.device_array(4 * n_intervals, np.uint32)
    for column in range(4):
        _copy(kept_intervals, column * elements, held, column * n_intervals, n_intervals)
    keys, values = cuda.device_array(n_keys, np.uint64), cuda.device_array(n_keys, np.uint32)
    _copy(kept_keys, 0, keys, 0, n_keys)
    _copy(kept_values, 0, values, 0, n_keys)
    return HeldHits(held, keys, values)


def _copy(source, start: int, target, slot: int, count: int) -> None:
    if count:
        target[slot : slot + count].copy_to_device(source[start : start + count])


def locate_hits(
    device: DeviceIndex,
    held: HeldHits,
    first_kmer: int,
    kmers: tuple[int, int],
    n_hits: int,
    mode: str,
    threads: int,
) -> SeedHits:
    """The hits of some k-mers of a batch, in order.

    Parameters
    ----------
    first_kmer : int
        What the batch's first k-mer is called.
    kmers : pair of int
        The first and last + 1 of the k-mers in the batch.
    n_hits : int
        How many hits they have.
    mode : str
        ``"gpu"``, ``"hybrid"`` or ``"cpu"``: where rows become positions.
    """
    work = device.work
    if n_hits <= work.elements:
        keys = work.keys, work.checks
        values = work.values, work.intervals[: work.elements]
        rows, steps = work.nodes[: work.elements], work.spare[: work.elements]
    else:  # a single k-mer, without a limit
        keys = tuple(cuda.device_array(n_hits, np.uint64) for _ in range(2))
        values = tuple(cuda.device_array(n_hits, np.uint32) for _ in range(2))
        rows, steps = (cuda.device_array(n_hits, np.uint32) for _ in range(2))
    items = 2 * kmers[0], 2 * kmers[1]
    work.counters.copy_to_device(np.zeros(work.counters.size, np.uint32))
    n_intervals = held.intervals.size // 4
    list_rows[launch(n_intervals, _THREADS)](
        held.intervals, n_intervals, *items, rows, keys[0], values[0], work.counters
    )
    n_rows = int(work.counters[:1].copy_to_host()[0])
    if n_rows:
        _rows_to_positions(device, rows, steps, n_rows, mode, threads)
        finish_keys[launch(n_rows, _THREADS)](
            device.segment_text, device.segment_genome, rows, n_rows, keys[0]
        )
    list_keys[launch(held.keys.size, _THREADS)](
        held.keys, held.values, held.keys.size, *items, keys[0], values[0], work.counters
    )
    key_bits = 32 + max(1, (items[1] - 1).bit_length())
    keys, values = device.sort_pairs(keys, values, n_hits, key_bits)
    # Rows and steps are done with; the hits' columns go there.
    columns = work.nodes.view(np.uint8)
    if 10 * n_hits > columns.size:
        columns = cuda.device_array(10 * n_hits, np.uint8)
    read_keys[launch(n_hits, _THREADS)](
        keys[0], values[0], n_hits, first_kmer, *_columns(columns, n_hits)
    )
    kmers, positions, strands, mismatches = _columns(
        _bring(work, columns, 10 * n_hits, threads), n_hits
    )
    return SeedHits(kmers, strands, positions, mismatches)


def _columns(array, n_hits: int) -> tuple:
    """K-mers, positions, strands and mismatches in the first 10 bytes a hit of an array."""
    edges = [edge * n_hits for edge in (0, 4, 8, 9, 10)]
    dtypes = (np.uint32, np.uint32, np.uint8, np.uint8)
    return tuple(
        array[start:stop].view(dtype)
        for start, stop, dtype in zip(edges, edges[1:], dtypes, strict=False)
    )


def _bring(work, array, n_bytes: int, threads: int) -> np.ndarray:
    """The first bytes of a device array, by way of pinned memory.

    Fresh host memory is slow to write for the first time, so threads share that.
    """
    if n_bytes > work.pinned.size:
        return array[:n_bytes].copy_to_host()
    array[:n_bytes].copy_to_host(work.pinned[:n_bytes])
    host = np.empty(n_bytes, np.uint8)

    def copy(start: int, stop: int) -> None:
        host[start:stop] = work.pinned[start:stop]

    for_each_range(copy, n_bytes, threads, smallest=1 << 20)
    return host


def _rows_to_positions(device, rows, steps, n_rows: int, mode: str, threads: int) -> None:
    """Replace rows by text positions, where `mode` says."""
    index, rate = device.index, device.plan.suffix_rate
    if mode == "gpu":
        step_to_sampled(device.forward, device.first_rows, rate, rows, steps, n_rows)
        look_up(device.suffixes, rate, device.forward.n_rows, rows, steps, n_rows)
        return
    if mode == "hybrid":
        step_to_sampled(device.forward, device.first_rows, index.sa_rate, rows, steps, n_rows)
        positions = locate_cpu.look_up(
            index, rows[:n_rows].copy_to_host(), steps[:n_rows].copy_to_host(), threads
        )
    else:
        positions = locate_cpu.locate(index, rows[:n_rows].copy_to_host(), threads)
    rows[:n_rows].copy_to_device(positions)


@cuda.jit(cache=True)
def count_listed(intervals, capacity, n_intervals, keys, n_keys, counts):
    """Add every interval's rows, and every key, to its k-mer. One thread one of each."""
    i = cuda.grid(1)
    if i < n_intervals:
        cuda.atomic.add(counts, intervals[i] >> uint32(1), uint64(intervals[i + 2 * capacity]))
    if i < n_keys:
        cuda.atomic.add(counts, keys[i] >> uint64(33), uint64(1))


@cuda.jit(cache=True)
def keep_listed(
    intervals,
    keys,
    values,
    capacity,
    n_intervals,
    n_keys,
    counts,
    most,
    kept_intervals,
    kept_keys,
    kept_values,
    counters,
):
    """Copy what belongs to k-mers with at most `most` hits. One thread one of each list."""
    i = cuda.grid(1)
    is_kept = i < n_intervals
    if is_kept:
        is_kept = counts[intervals[i] >> uint32(1)] <= uint64(most)
    slot = reserve(counters, INTERVALS, uint32(1) if is_kept else uint32(0))
    if is_kept:
        for column in range(4):
            kept_intervals[uint64(column * capacity) + uint64(slot)] = intervals[
                column * capacity + i
            ]
    is_kept = i < n_keys
    if is_kept:
        is_kept = counts[keys[i] >> uint64(33)] <= uint64(most)
    slot = reserve(counters, KEYS, uint32(1) if is_kept else uint32(0))
    if is_kept:
        kept_keys[slot] = keys[i]
        kept_values[slot] = values[i]


@cuda.jit(cache=True)
def list_rows(intervals, n_intervals, first_item, last_item, rows, keys, values, counters):
    """List every row of the intervals of some items, and its key, still without a position.

    One thread an interval; then the lanes of a warp share all of its intervals' rows evenly, and
    each finds by bisection in the others' registers whose row it writes.
    """
    i = cuda.grid(1)
    lane = cuda.laneid
    item = first = count = mismatches = uint32(0)
    if i < n_intervals:
        item = intervals[i]
        if first_item <= item < last_item:
            first = intervals[n_intervals + i]
            count = intervals[2 * n_intervals + i]
            mismatches = intervals[3 * n_intervals + i]
    slot = reserve(counters, INTERVALS, count)
    warp_slot = uint32(cuda.shfl_sync(ALL_LANES, int32(slot), 0))
    start = int32(slot - warp_slot)
    stop = int32(slot + count - warp_slot)
    total = cuda.shfl_sync(ALL_LANES, stop, WARP - 1)
    for step in range(0, total, WARP):
        j = step + lane
        source = 0
        for half in (16, 8, 4, 2, 1):
            if cuda.shfl_sync(ALL_LANES, stop, source + half - 1) <= j:
                source += half
        row = uint32(cuda.shfl_sync(ALL_LANES, int32(first), source))
        row = uint32(row + uint32(j - cuda.shfl_sync(ALL_LANES, start, source)))
        its_item = uint32(cuda.shfl_sync(ALL_LANES, int32(item), source))
        its_mismatches = uint32(cuda.shfl_sync(ALL_LANES, int32(mismatches), source))
        if j < total:
            at = uint64(warp_slot) + uint64(j)
            rows[at] = row
            keys[at] = uint64(its_item) << uint64(32)
            values[at] = its_mismatches


@cuda.jit(cache=True)
def finish_keys(segment_text, segment_genome, positions, count, keys):
    """Put the genome position into keys from the text position. One thread a hit."""
    i = cuda.grid(1)
    if i < count:
        keys[i] |= uint64(genome_position(segment_text, segment_genome, positions[i]))


@cuda.jit(cache=True)
def list_keys(held_keys, held_values, n_keys, first_item, last_item, keys, values, counters):
    """Add the keys of some items to those of the rows. One thread a key."""
    i = cuda.grid(1)
    is_listed = False
    if i < n_keys:
        item = uint32(held_keys[i] >> uint64(32))
        is_listed = first_item <= item < last_item
    slot = reserve(counters, INTERVALS, uint32(1) if is_listed else uint32(0))
    if is_listed:
        keys[slot] = held_keys[i]
        values[slot] = held_values[i]


@cuda.jit(cache=True)
def read_keys(keys, values, count, first_kmer, kmers, positions, strands, mismatches):
    """Sorted keys as columns. One thread a hit."""
    i = cuda.grid(1)
    if i < count:
        key = keys[i]
        kmers[i] = uint32(uint32(first_kmer) + uint32(key >> uint64(33)))
        strands[i] = uint8((key >> uint64(32)) & uint64(1))
        positions[i] = uint32(key)
        mismatches[i] = uint8(values[i])


_NUMBERS, _WORDS, _INTEGER = types.uint32[::1], types.uint64[::1], types.int64
_BYTES = types.uint8[::1]

#: The argument types that every kernel is compiled with.
KERNEL_SIGNATURES = {
    count_listed: (_NUMBERS, _INTEGER, _INTEGER, _WORDS, _INTEGER, _WORDS),
    keep_listed: (
        _NUMBERS, _WORDS, _NUMBERS, _INTEGER, _INTEGER, _INTEGER, _WORDS, _INTEGER, _NUMBERS,
        _WORDS, _NUMBERS, _NUMBERS,
    ),
    list_rows: (
        _NUMBERS, _INTEGER, _INTEGER, _INTEGER, _NUMBERS, _WORDS, _NUMBERS, _NUMBERS
    ),
    finish_keys: (_NUMBERS, _NUMBERS, _NUMBERS, _INTEGER, _WORDS),
    list_keys: (
        _WORDS, _NUMBERS, _INTEGER, _INTEGER, _INTEGER, _WORDS, _NUMBERS, _NUMBERS
    ),
    read_keys: (
        _WORDS, _NUMBERS, _INTEGER, _INTEGER, _NUMBERS, _NUMBERS, _BYTES, _BYTES
    ),
}  # fmt: skip
