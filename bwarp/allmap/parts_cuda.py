"""Items and their parts on the GPU: transfer, exact search, and the rarest parts in repeats.

Layouts and results are those of `bwarp.allmap.parts_cpu`.
"""

from typing import NamedTuple

import numpy as np

from bwarp.allmap.parts_cpu import (
    GRID,
    LONGEST,
    MANY,
    MANY_ROWS,
    NOT_COUNTED,
    Items,
    Parts,
    item_parts,
)
from bwarp.gpu.cuda import cuda, int32, int64, uint8, uint32, uint64
from bwarp.gpu.device_arrays import columns
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import ALL_LANES, WARP, launch
from bwarp.gpu.ptx import load_uint32x4
from bwarp.gpu.transfers import to_gpu
from bwarp.index.device_index_cuda import DeviceIndex, StringTable
from bwarp.index.rank_cuda import DeviceBWT, rank_both
from bwarp.runtime.compiled_code import compiled


class ItemArrays(NamedTuple):
    """The columns of `Items` on the GPU."""

    begins: int64[::1]
    lengths: int32[::1]
    edits: int32[::1]
    gaps: int32[::1]
    mismatches: int32[::1]


class DeviceItems(NamedTuple):
    """`Items` on the GPU and on the host."""

    arrays: ItemArrays
    on_host: Items

    @property
    def count(self) -> int:
        return len(self.on_host.begins)


class PartArrays(NamedTuple):
    """`Parts` on the GPU: where the parts of each item begin, the item and extent of every part,
    and the rows and part of every interval.
    """

    offsets: uint32[::1]
    items: uint32[::1]
    starts: int32[::1]
    ends: int32[::1]
    first_rows: uint32[::1]
    n_rows: uint32[::1]
    intervals: uint32[::1]


class DeviceParts(NamedTuple):
    """`Parts` on the GPU, with the offsets of items' parts and parts' intervals on the host.

    Attributes
    ----------
    offsets_on_host : ndarray, shape=(n_items + 1,), dtype=int64
    interval_offsets : ndarray, shape=(n_parts + 1,), dtype=int64
    """

    offsets_on_host: np.ndarray
    interval_offsets: np.ndarray
    arrays: PartArrays


def item_columns(items: Items) -> list[np.ndarray]:
    """Return the columns of `ItemArrays` on the host."""
    columns = [np.ascontiguousarray(column, np.int32) for column in items[1:]]
    return [np.ascontiguousarray(items.begins), *columns]


def items_on_gpu(items: Items) -> DeviceItems:
    """Copy items to the GPU."""
    return DeviceItems(ItemArrays(*to_gpu(item_columns(items))), items)


def empty_parts(n_parts: np.ndarray) -> DeviceParts:
    """Allocate the given number of parts for each item, with one interval each."""
    offsets = item_parts(n_parts)
    total = int(offsets[-1])
    there = cuda.to_device(offsets.astype(np.uint32))
    arrays = columns(PartArrays, max(1, total), offsets=there)
    return DeviceParts(offsets, np.arange(total + 1), arrays)


def parts_on_gpu(parts: Parts) -> DeviceParts:
    """Copy parts to the GPU."""
    columns = to_gpu(part_columns(parts))
    return DeviceParts(parts.offsets, parts.interval_offsets, PartArrays(*columns))


def part_columns(parts: Parts) -> list[np.ndarray]:
    """Return the columns of `PartArrays` on the host."""
    columns = (
        parts.offsets.astype(np.uint32), _group_numbers(parts.offsets), parts.starts, parts.ends,
        parts.first_rows, parts.n_rows, _group_numbers(parts.interval_offsets),
    )  # fmt: skip
    return list(map(at_least_one, columns))


def parts_on_host(parts: DeviceParts) -> Parts:
    """Copy the parts and their rows to the host."""
    n_parts, n_intervals = len(parts.interval_offsets) - 1, int(parts.interval_offsets[-1])
    return Parts(
        parts.offsets_on_host,
        parts.arrays.starts.copy_to_host()[:n_parts],
        parts.arrays.ends.copy_to_host()[:n_parts],
        parts.interval_offsets,
        parts.arrays.first_rows.copy_to_host()[:n_intervals],
        parts.arrays.n_rows.copy_to_host()[:n_intervals],
    )


def rows_of_items(parts: DeviceParts) -> np.ndarray:
    """Return the total rows of the parts of each item; on the host, dtype int64."""
    if parts.arrays.n_rows.size == 0:
        return np.zeros(len(parts.offsets_on_host) - 1, np.int64)
    n_items = len(parts.offsets_on_host) - 1
    firsts = cuda.to_device(parts.interval_offsets[parts.offsets_on_host])
    totals = cuda.device_array(max(1, n_items), np.int64)
    add_rows[launch(n_items)](firsts, parts.arrays.n_rows, n_items, totals)
    return totals.copy_to_host()[:n_items]


def _group_numbers(offsets: np.ndarray) -> np.ndarray:
    """Return the group number of each element (uint32); groups start at `offsets`."""
    numbers = np.empty(offsets[-1] - offsets[0], np.uint32)
    _number_groups(offsets, numbers)
    return numbers


# Like np.repeat, but without the GIL.
@compiled
def _number_groups(offsets, numbers):
    for group in range(offsets.size - 1):
        for member in range(offsets[group] - offsets[0], offsets[group + 1] - offsets[0]):
            numbers[member] = group


def at_least_one(column: np.ndarray) -> np.ndarray:
    """Return a contiguous column with at least one element: arrays on the GPU cannot be empty."""
    return np.ascontiguousarray(column if column.size else np.zeros(1, column.dtype))


@kernel
def add_rows(firsts: int64[::1], n_rows: uint32[::1], n_items: int, totals: int64[::1]):
    """Add up the rows of each item. One thread per item, whose few intervals are adjacent."""
    item = cuda.grid(1)
    if item < n_items:
        total = int64(0)
        for i in range(firsts[item], firsts[item + 1]):
            total += int64(n_rows[i])
        totals[item] = total


# Exact parts: cut as in parts_cpu, one item per thread.


def search_exact_parts(
    device: DeviceIndex, both, items: DeviceItems, n_parts: np.ndarray
) -> tuple[DeviceParts, np.ndarray]:
    """Cut and search items, each into its number of parts.

    Returns
    -------
    parts : DeviceParts
    rows : ndarray, shape=(n_items,), dtype=int64
        The total rows of the parts of each item; on the host.
    """
    parts = empty_parts(n_parts)
    totals = cuda.device_array(max(1, items.count), np.int64)
    strings = device.table(device.index.prefix_length)
    search_items[launch(items.count)](
        device.forward, strings, both, items.arrays, parts.arrays, totals
    )
    return parts, totals.copy_to_host()[: items.count]


@cuda.jit(device=True)
def begin_search(strings, both, at, room, all_rows):
    """Begin a search of up to `room` bases before `at` from the table: return its position, first
    row and number of rows. It has not moved if there are too few bases or one is ambiguous.
    """
    first, rows = uint32(0), uint32(all_rows)
    if room >= strings.length and strings.length > 0:
        kmer, worst = uint64(0), uint32(0)
        for i in range(at - strings.length, at):
            code = uint32(both[i])
            worst = max(worst, code)
            kmer = kmer << uint64(2) | uint64(code & uint32(3))
        if worst < 4:
            first, _, rows, _ = load_uint32x4(strings.rows, uint64(4) * kmer)
            at -= strings.length
    return at, first, rows


@cuda.jit(device=True)
def step_left(bwt, both, at, first, rows):
    """Return the rows of a search extended by the base before `at`; none at an ambiguous base."""
    code = uint32(both[at - 1])
    if code > 3:
        return first, uint32(0)
    start, stop = rank_both(bwt, code, first, uint32(first + rows))
    return uint32(bwt.first_rows[code] + start), uint32(stop - start)


@kernel
def search_items(
    bwt: DeviceBWT, strings: StringTable, both: uint8[::1], items: ItemArrays, parts: PartArrays,
    totals: int64[::1],
):  # fmt: skip
    """Cut and search an item, as parts_cpu does. One thread per item.

    A part takes one table lookup, and one or two memory sectors for each further base.
    """
    item = cuda.grid(1)
    if item >= items.begins.size:
        return
    begin = items.begins[item]
    at = begin + int64(items.lengths[item])
    last_part = int64(parts.offsets[item + 1])
    total = int64(0)
    for part in range(int64(parts.offsets[item]), last_part):
        end = at
        share = uint32(at - begin) // uint32(last_part - part)
        limit = at - int64(share)
        at, first, rows = begin_search(strings, both, at, int64(share), bwt.first_rows[4])
        # At least one base; more while there are several rows.
        while at == end or (rows > 1 and at > limit):
            first, rows = step_left(bwt, both, at, first, rows)
            at -= 1
        parts.items[part] = item
        parts.starts[part] = at - begin
        parts.ends[part] = end - begin
        parts.first_rows[part] = first
        parts.n_rows[part] = rows
        parts.intervals[part] = part
        total += int64(rows)
    totals[item] = total


# Rarest parts of reads from repeats: the cuts that parts_cpu chooses.
#
# A warp counts the rows of an item, each lane taking every 32nd grid end; a warp then chooses:
#
#     best[p, x] = min over x' <= x of c[p, x']
#     c[p, x]    = min over sizes of best[p - 1, x - size] + rows
#
# Each lane computes c for one x; a running minimum over the lanes gives best.


class Cuts(NamedTuple):
    """Items to cut, with at most `most_ends` grid ends, and the rows of parts before each end: a
    column per size.
    """

    items: uint32[::1]
    most_ends: int
    lows: uint32[::1]
    counts: uint32[::1]


#: Bytes of working memory.
_WORK_BYTES = 256 << 20


def cut_rarer(
    device: DeviceIndex, both, items: DeviceItems, parts: DeviceParts, rows: np.ndarray
) -> bool:
    """Replace the parts of items from repeats by rarer ones, in place.

    Parameters
    ----------
    rows : ndarray, shape=(n_items,), dtype=int64
        The total rows of each item's parts.

    Returns
    -------
    is_changed : bool
        Whether there were such items.
    """
    repeated = np.flatnonzero(rows > MANY_ROWS)
    if not repeated.size:
        return False
    most_ends = int(items.on_host.lengths[repeated].max()) // GRID
    most_parts = int(np.diff(parts.offsets_on_host)[repeated].max())
    bytes_an_item = most_ends * LONGEST * 8 + (most_ends + 1) * (16 + most_parts + 1)
    at_once = max(1, _WORK_BYTES // bytes_an_item)
    for first in range(0, repeated.size, at_once):
        some = cuda.to_device(repeated[first : first + at_once].astype(np.uint32))
        n = some.size
        lows, counts = (cuda.device_array(n * most_ends * LONGEST + 1, np.uint32) for _ in range(2))
        cuts = Cuts(some, most_ends, lows, counts)
        count_cuts[launch(n * WARP)](
            device.forward, device.table(device.index.prefix_length), both, items.arrays, cuts
        )
        best = cuda.device_array(n * 2 * (most_ends + 1), np.int64)
        come = cuda.device_array(n * (most_parts + 1) * (most_ends + 1), np.uint8)
        choose_cuts[launch(n * WARP)](items.arrays, cuts, most_parts, best, come, parts.arrays)
    return True


@kernel
def count_cuts(
    bwt: DeviceBWT, strings: StringTable, both: uint8[::1], items: ItemArrays, cuts: Cuts
):
    """Search from every grid end of an item. One warp per item; each lane takes every 32nd end.

    One or two sectors of the BWT per step, about twenty steps per end.
    """
    i = cuda.grid(1) // WARP
    if i >= cuts.items.size:
        return
    item = cuts.items[i]
    begin, length = items.begins[item], int64(items.lengths[item])
    for number in range(int64(cuda.laneid), length // GRID, int64(WARP)):
        out = (int64(i) * cuts.most_ends + number) * LONGEST
        for k in range(LONGEST):
            cuts.counts[out + k] = uint32(NOT_COUNTED)
        end = begin + length - GRID * number
        at, first, rows = begin_search(strings, both, end, end - begin, bwt.first_rows[4])
        while True:
            if at == end:
                first, rows = step_left(bwt, both, at, first, rows)
                at -= 1
            size = end - at
            is_whole = size % GRID == 0
            is_last = rows == 0 or (
                is_whole and (rows == 1 or at - GRID < begin or size == GRID * LONGEST)
            )
            if is_whole or is_last:
                k = (size + GRID - 1) // GRID - 1
                cuts.lows[out + k] = first
                cuts.counts[out + k] = rows
            if is_last:
                break
            first, rows = step_left(bwt, both, at, first, rows)
            at -= 1


@kernel
def choose_cuts(
    items: ItemArrays, cuts: Cuts, most_parts: int, best: int64[::1], come: uint8[::1],
    parts: PartArrays,
):  # fmt: skip
    """Choose the parts of each item with the fewest rows in total, if fewer than before.

    One warp per item; each lane takes every 32nd grid end.
    """
    i = cuda.grid(1) // WARP
    if i >= cuts.items.size:
        return
    lane = int64(cuda.laneid)
    item = cuts.items[i]
    n_ends = int64(items.lengths[item]) // GRID
    begin = int64(parts.offsets[item])
    n_parts = int64(parts.offsets[item + 1]) - begin
    total = int64(0)
    for part in range(begin, begin + n_parts):
        total += int64(parts.n_rows[part])
    width = int64(cuts.most_ends) + 1
    first_cut = int64(i) * cuts.most_ends * LONGEST
    row, above = 2 * int64(i) * width, (2 * int64(i) + 1) * width
    from_ = int64(i) * (most_parts + 1) * width
    for x in range(lane, n_ends + 1, int64(WARP)):
        best[row + x] = 0
    for p in range(1, n_parts + 1):
        row, above = above, row
        cuda.syncwarp()
        fewest = int64(MANY)
        if lane == 0:
            best[row] = int64(MANY)
        for step in range(1, n_ends + 1, int64(WARP)):
            x = step + lane
            here, from_size = int64(2 * MANY), int64(0)
            if x <= n_ends:
                for size in range(1, min(int64(LONGEST), x) + 1):
                    cost = best[above + x - size]
                    cost += int64(cuts.counts[first_cut + (x - size) * LONGEST + size - 1])
                    if cost < here:
                        here, from_size = cost, int64(size)
            running = here
            for distance in (1, 2, 4, 8, 16):
                other = cuda.shfl_up_sync(ALL_LANES, running, distance)
                if lane >= distance:
                    running = min(running, other)
            before = cuda.shfl_up_sync(ALL_LANES, running, 1)
            before = min(before, fewest) if lane > 0 else fewest
            if x <= n_ends:
                best[row + x] = min(before, here)
                come[from_ + p * width + x] = uint8(from_size) if here < before else uint8(0)
            fewest = min(fewest, cuda.shfl_sync(ALL_LANES, running, WARP - 1))
    cuda.syncwarp()
    if lane > 0 or best[row + n_ends] >= total:
        return
    x, p = n_ends, n_parts
    while p > 0:
        while come[from_ + p * width + x] == 0:
            x -= 1
        size = int64(come[from_ + p * width + x])
        at = first_cut + (x - size) * LONGEST + size - 1
        part = begin + p - 1
        end = int64(items.lengths[item]) - GRID * (x - size)
        parts.ends[part] = end
        parts.starts[part] = end - GRID * size
        parts.first_rows[part], parts.n_rows[part] = cuts.lows[at], cuts.counts[at]
        x -= size
        p -= 1
