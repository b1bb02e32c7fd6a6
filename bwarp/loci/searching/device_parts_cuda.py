"""Items and their parts on the GPU, as `bwarp.loci.searching.parts` has them on the host."""

from typing import NamedTuple

import numpy as np

from bwarp.gpu.cuda import cuda, int32, int64, uint32
from bwarp.gpu.device_arrays import columns
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import launch
from bwarp.loci.searching.parts import Items, Parts, item_parts

__all__ = [
    "DeviceItems",
    "DeviceParts",
    "empty_parts",
    "items_on_gpu",
    "parts_on_gpu",
    "parts_on_host",
    "rows_of_items",
]


class ItemArrays(NamedTuple):
    """The columns of `Items` on the GPU."""

    begins: int64[::1]
    lengths: int32[::1]
    edits: int32[::1]
    gaps: int32[::1]
    mismatches: int32[::1]


class DeviceItems(NamedTuple):
    """`Items` on the GPU, and on the host."""

    arrays: ItemArrays
    on_host: Items

    @property
    def count(self) -> int:
        return len(self.on_host.begins)


class PartArrays(NamedTuple):
    """`Parts` on the GPU: where those of each item begin, the item of every part, and what the part
    is; the rows of every interval, and its part."""

    offsets: uint32[::1]
    items: uint32[::1]
    starts: int32[::1]
    ends: int32[::1]
    first_rows: uint32[::1]
    n_rows: uint32[::1]
    intervals: uint32[::1]


class DeviceParts(NamedTuple):
    """`Parts` on the GPU, and on the host where those of items, and intervals of parts, begin.

    Attributes
    ----------
    offsets_on_host : ndarray, shape=(n_items + 1,), dtype=int64
    interval_offsets : ndarray, shape=(n_parts + 1,), dtype=int64
    """

    offsets_on_host: np.ndarray
    interval_offsets: np.ndarray
    arrays: PartArrays


def items_on_gpu(items: Items) -> DeviceItems:
    """Copy items to the GPU."""
    columns = [np.ascontiguousarray(column, np.int32) for column in items[1:]]
    begins = np.ascontiguousarray(items.begins)
    return DeviceItems(ItemArrays(*map(cuda.to_device, [begins, *columns])), items)


def empty_parts(n_parts: np.ndarray) -> DeviceParts:
    """Memory for so many parts of each item, an interval each."""
    offsets = item_parts(n_parts)
    total = int(offsets[-1])
    there = cuda.to_device(offsets.astype(np.uint32))
    arrays = columns(PartArrays, max(1, total), offsets=there)
    return DeviceParts(offsets, np.arange(total + 1), arrays)


def parts_on_gpu(parts: Parts) -> DeviceParts:
    """Copy parts to the GPU."""
    n_parts = np.diff(parts.offsets)
    of_parts = np.repeat(np.arange(len(n_parts), dtype=np.uint32), n_parts)
    n_intervals = np.diff(parts.interval_offsets)
    of_intervals = np.repeat(np.arange(len(n_intervals), dtype=np.uint32), n_intervals)
    here = (
        parts.offsets.astype(np.uint32), of_parts, parts.starts, parts.ends, parts.first_rows,
        parts.n_rows, of_intervals,
    )  # fmt: skip
    return DeviceParts(parts.offsets, parts.interval_offsets, PartArrays(*map(_at_least_one, here)))


def parts_on_host(parts: DeviceParts) -> Parts:
    """The parts, and their rows, on the host."""
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
    """How many rows the parts of each item have together; on the host, dtype int64."""
    if parts.arrays.n_rows.size == 0:
        return np.zeros(len(parts.offsets_on_host) - 1, np.int64)
    n_items = len(parts.offsets_on_host) - 1
    firsts = cuda.to_device(parts.interval_offsets[parts.offsets_on_host])
    totals = cuda.device_array(max(1, n_items), np.int64)
    add_rows[launch(n_items)](firsts, parts.arrays.n_rows, n_items, totals)
    return totals.copy_to_host()[:n_items]


def _at_least_one(column: np.ndarray):
    """On the GPU, where no array is empty."""
    return cuda.to_device(
        np.ascontiguousarray(column if column.size else np.zeros(1, column.dtype))
    )


@kernel
def add_rows(firsts: int64[::1], n_rows: uint32[::1], n_items: int, totals: int64[::1]):
    """One thread an item; its few intervals are neighbours."""
    item = cuda.grid(1)
    if item < n_items:
        total = int64(0)
        for i in range(firsts[item], firsts[item + 1]):
            total += int64(n_rows[i])
        totals[item] = total
