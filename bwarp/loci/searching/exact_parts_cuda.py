"""Exact parts of reads on the GPU: those that exact_parts_cpu cuts, an item in each thread."""

import numpy as np

from bwarp.gpu.cuda import cuda, int64, uint8, uint32, uint64
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import launch
from bwarp.gpu.ptx import load_uint32x4
from bwarp.index.device_index_cuda import DeviceIndex
from bwarp.index.rank_cuda import GROUPS, rank_both
from bwarp.loci.searching.device_parts_cuda import (
    DeviceItems,
    DeviceParts,
    ItemArrays,
    PartArrays,
    empty_parts,
)

__all__ = ["begin_search", "search_exact_parts", "step_left"]


def search_exact_parts(
    device: DeviceIndex, both, items: DeviceItems, n_parts: np.ndarray
) -> tuple[DeviceParts, np.ndarray]:
    """Cut and search items, into so many parts each.

    Returns
    -------
    parts : DeviceParts
    rows : ndarray, shape=(n_items,), dtype=int64
        How many rows the parts of each item have together; on the host.
    """
    parts = empty_parts(n_parts)
    totals = cuda.device_array(max(1, items.count), np.int64)
    length = device.index.prefix_length
    search_items[launch(items.count)](
        *device.forward.arrays, device.first_rows, device.table(length), length, both,
        items.arrays, parts.arrays, totals,
    )  # fmt: skip
    return parts, totals.copy_to_host()[: items.count]


@cuda.jit(device=True)
def begin_search(table, table_k, both, at, room, all_rows):
    """Where a search of up to `room` bases before `at` has come to by the table, its first row and
    its rows: nowhere yet where the bases are too few, or one of them is ambiguous."""
    first, rows = uint32(0), uint32(all_rows)
    if room >= table_k and table_k > 0:
        kmer, worst = uint64(0), uint32(0)
        for i in range(at - table_k, at):
            code = uint32(both[i])
            worst = max(worst, code)
            kmer = kmer << uint64(2) | uint64(code & uint32(3))
        if worst < 4:
            first, _, rows, _ = load_uint32x4(table, uint64(4) * kmer)
            at -= table_k
    return at, first, rows


@cuda.jit(device=True)
def step_left(words, separator_rows, groups, first_rows, both, at, first, rows):
    """The rows of a search with one base more, that before `at`; none over an ambiguous one."""
    code = uint32(both[at - 1])
    if code > 3:
        return first, uint32(0)
    start, stop = rank_both(words, separator_rows, groups, code, first, uint32(first + rows))
    return uint32(first_rows[code] + start), uint32(stop - start)


@kernel
def search_items(
    words: uint32[::1], separator_rows: uint32[::1], groups: GROUPS, first_rows: uint32[::1],
    table: uint32[::1], table_k: int, both: uint8[::1], items: ItemArrays, parts: PartArrays,
    totals: int64[::1],
):  # fmt: skip
    """Cut and search an item, as exact_parts_cpu does. One thread an item.

    A part takes one look into the table, and one or two sectors for every base more.
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
        at, first, rows = begin_search(table, table_k, both, at, int64(share), first_rows[4])
        # One base at least; more while there are several rows.
        while at == end or (rows > 1 and at > limit):
            first, rows = step_left(
                words, separator_rows, groups, first_rows, both, at, first, rows
            )
            at -= 1
        parts.items[part] = item
        parts.starts[part] = at - begin
        parts.ends[part] = end - begin
        parts.first_rows[part] = first
        parts.n_rows[part] = rows
        parts.intervals[part] = part
        total += int64(rows)
    totals[item] = total
