"""The rarest parts of reads from repeats on the GPU: the cuts that rare_cuts_cpu chooses.

A warp counts the rows of an item, a lane for every 32nd grid end, and a warp chooses:

    best[p, x] = min over x' <= x of c[p, x']
    c[p, x]    = min over sizes of best[p - 1, x - size] + rows

A lane computes c for one x, and a running minimum over the lanes makes best of them.
"""

import numpy as np

from bwarp.gpu.cuda import cuda, int64, uint8, uint32
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import ALL_LANES, WARP, launch
from bwarp.index.device_index_cuda import DeviceIndex
from bwarp.index.rank_cuda import GROUPS
from bwarp.loci.searching.device_parts_cuda import (
    DeviceItems,
    DeviceParts,
    ItemArrays,
    PartArrays,
)
from bwarp.loci.searching.exact_parts_cuda import begin_search, step_left
from bwarp.loci.searching.rare_cuts_cpu import GRID, LONGEST, MANY, MANY_ROWS, NOT_COUNTED

__all__ = ["cut_rarer"]

#: Bytes to work in.
_WORK_BYTES = 256 << 20


def cut_rarer(
    device: DeviceIndex, both, items: DeviceItems, parts: DeviceParts, rows: np.ndarray
) -> bool:
    """Replace the parts of items from repeats by rarer ones, where they lie.

    Parameters
    ----------
    rows : ndarray, shape=(n_items,), dtype=int64
        The rows of each item's parts together.

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
        count_cuts[launch(n * WARP)](
            *device.forward.arrays, device.first_rows, device.table(device.index.prefix_length),
            device.index.prefix_length, both, items.arrays, some, most_ends,
            lows, counts,
        )  # fmt: skip
        best = cuda.device_array(n * 2 * (most_ends + 1), np.int64)
        come = cuda.device_array(n * (most_parts + 1) * (most_ends + 1), np.uint8)
        choose_cuts[launch(n * WARP)](
            items.arrays, some, most_ends, most_parts, lows, counts, best, come, parts.arrays
        )
    return True


@kernel
def count_cuts(
    words: uint32[::1], separator_rows: uint32[::1], groups: GROUPS, first_rows: uint32[::1],
    table: uint32[::1], table_k: int, both: uint8[::1], items: ItemArrays, some: uint32[::1],
    most_ends: int, lows: uint32[::1], counts: uint32[::1],
):  # fmt: skip
    """Search from every grid end of an item. One warp an item, a lane every 32nd end.

    One or two sectors of the BWT a step, about twenty steps an end.
    """
    i = cuda.grid(1) // WARP
    if i >= some.size:
        return
    item = some[i]
    begin, length = items.begins[item], int64(items.lengths[item])
    for number in range(int64(cuda.laneid), length // GRID, int64(WARP)):
        out = (int64(i) * most_ends + number) * LONGEST
        for k in range(LONGEST):
            counts[out + k] = uint32(NOT_COUNTED)
        end = begin + length - GRID * number
        at, first, rows = begin_search(table, table_k, both, end, end - begin, first_rows[4])
        while True:
            if at == end:
                first, rows = step_left(
                    words, separator_rows, groups, first_rows, both, at, first, rows
                )
                at -= 1
            size = end - at
            is_whole = size % GRID == 0
            is_last = rows == 0 or (
                is_whole and (rows == 1 or at - GRID < begin or size == GRID * LONGEST)
            )
            if is_whole or is_last:
                k = (size + GRID - 1) // GRID - 1
                lows[out + k] = first
                counts[out + k] = rows
            if is_last:
                break
            first, rows = step_left(
                words, separator_rows, groups, first_rows, both, at, first, rows
            )
            at -= 1


@kernel
def choose_cuts(
    items: ItemArrays, some: uint32[::1], most_ends: int, most_parts: int, lows: uint32[::1],
    counts: uint32[::1], best: int64[::1], come: uint8[::1], parts: PartArrays,
):  # fmt: skip
    """The parts of each item whose rows are the fewest in sum, if they are fewer than now.

    One warp an item, a lane every 32nd grid end.
    """
    i = cuda.grid(1) // WARP
    if i >= some.size:
        return
    lane = int64(cuda.laneid)
    item = some[i]
    n_ends = int64(items.lengths[item]) // GRID
    begin = int64(parts.offsets[item])
    n_parts = int64(parts.offsets[item + 1]) - begin
    total = int64(0)
    for part in range(begin, begin + n_parts):
        total += int64(parts.n_rows[part])
    width = int64(most_ends) + 1
    cuts = int64(i) * most_ends * LONGEST
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
                    cost += int64(counts[cuts + (x - size) * LONGEST + size - 1])
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
        at = cuts + (x - size) * LONGEST + size - 1
        part = begin + p - 1
        end = int64(items.lengths[item]) - GRID * (x - size)
        parts.ends[part] = end
        parts.starts[part] = end - GRID * size
        parts.first_rows[part], parts.n_rows[part] = lows[at], counts[at]
        x -= size
        p -= 1
