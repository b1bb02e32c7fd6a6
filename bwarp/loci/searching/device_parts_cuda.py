"""Items and their parts on the GPU, as `bwarp.loci.searching.parts` has them on the host."""

from dataclasses import dataclass

import numpy as np

from bwarp.gpu.cuda import cuda, int64, uint32
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


@dataclass(frozen=True)
class DeviceItems:
    """`Items` on the GPU.

    Attributes
    ----------
    begins : device array, shape=(count,), dtype=int64
    lengths, edits, gaps, mismatches : device array, shape=(count,), dtype=int32
    count : int
    on_host : Items
    """

    begins: object
    lengths: object
    edits: object
    gaps: object
    mismatches: object
    count: int
    on_host: Items


@dataclass(frozen=True)
class DeviceParts:
    """`Parts` on the GPU; an interval of rows names its part.

    Attributes
    ----------
    offsets_on_host : ndarray, shape=(n_items + 1,), dtype=int64
    interval_offsets : ndarray, shape=(n_parts + 1,), dtype=int64
        On the host.
    offsets : device array, shape=(n_items + 1,), dtype=uint32
    items : device array, shape=(n_parts,), dtype=uint32
        Of every part.
    starts, ends : device array, shape=(n_parts,), dtype=int32
    first_rows, n_rows, intervals : device array, shape=(n_intervals,), dtype=uint32
        The rows of every interval, and its part.
    """

    offsets_on_host: np.ndarray
    interval_offsets: np.ndarray
    offsets: object
    items: object
    starts: object
    ends: object
    first_rows: object
    n_rows: object
    intervals: object


def items_on_gpu(items: Items) -> DeviceItems:
    """Copy items to the GPU."""
    columns = [np.ascontiguousarray(column, np.int32) for column in items[1:]]
    begins = np.ascontiguousarray(items.begins)
    return DeviceItems(*map(cuda.to_device, [begins, *columns]), len(begins), items)


def empty_parts(n_parts: np.ndarray) -> DeviceParts:
    """Memory for so many parts of each item, an interval each."""
    offsets = item_parts(n_parts)
    total = int(offsets[-1])
    size = max(1, total)
    items, first_rows, n_rows, intervals = (cuda.device_array(size, np.uint32) for _ in range(4))
    starts, ends = (cuda.device_array(size, np.int32) for _ in range(2))
    return DeviceParts(
        offsets, np.arange(total + 1), cuda.to_device(offsets.astype(np.uint32)), items, starts,
        ends, first_rows, n_rows, intervals,
    )  # fmt: skip


def parts_on_gpu(parts: Parts) -> DeviceParts:
    """Copy parts to the GPU."""
    n_parts = np.diff(parts.offsets)
    of_parts = np.repeat(np.arange(len(n_parts), dtype=np.uint32), n_parts)
    n_intervals = np.diff(parts.interval_offsets)
    of_intervals = np.repeat(np.arange(len(n_intervals), dtype=np.uint32), n_intervals)
    columns = (
        parts.offsets.astype(np.uint32), of_parts, parts.starts, parts.ends, parts.first_rows,
        parts.n_rows, of_intervals,
    )  # fmt: skip
    return DeviceParts(parts.offsets, parts.interval_offsets, *map(_at_least_one, columns))


def parts_on_host(parts: DeviceParts) -> Parts:
    """The parts, and their rows, on the host."""
    n_parts, n_intervals = len(parts.interval_offsets) - 1, int(parts.interval_offsets[-1])
    return Parts(
        parts.offsets_on_host,
        parts.starts.copy_to_host()[:n_parts],
        parts.ends.copy_to_host()[:n_parts],
        parts.interval_offsets,
        parts.first_rows.copy_to_host()[:n_intervals],
        parts.n_rows.copy_to_host()[:n_intervals],
    )


def rows_of_items(parts: DeviceParts) -> np.ndarray:
    """How many rows the parts of each item have together; on the host, dtype int64."""
    if parts.n_rows.size == 0:
        return np.zeros(len(parts.offsets_on_host) - 1, np.int64)
    n_items = len(parts.offsets_on_host) - 1
    firsts = cuda.to_device(parts.interval_offsets[parts.offsets_on_host])
    totals = cuda.device_array(max(1, n_items), np.int64)
    add_rows[launch(n_items)](firsts, parts.n_rows, n_items, totals)
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
