"""Turn hits of parts into sorted keys on the GPU: rows, positions, and keys that may have a locus.

    parts  ->  SA rows  ->  text positions  ->  keys  ->  keys in order
          (list_rows)   (locate_cuda)      (key_hits)

A hit is encoded as a number, so that sorting numbers sorts hits: by item, then by segment and
diagonal, then by part.

    bits    63 ...            ...  5                                       4 ... 0
            item             diagonal in the text, spread               part

Diagonals are shifted by a multiple of their segment number, so that diagonals of different segments
are never neighbours. Only the numbers are sorted; the segment follows as a value.
"""

from typing import NamedTuple

import numpy as np

from bwarp.allmap.candidates_cpu import HISTOGRAM
from bwarp.allmap.candidates_cuda import ItemLimits, bound_exceeded
from bwarp.allmap.device_text_cuda import DeviceText, TextArrays
from bwarp.allmap.parts_cpu import Items, PartHits, Parts, some_items
from bwarp.allmap.parts_cuda import (
    DeviceItems,
    DeviceParts,
    ItemArrays,
    PartArrays,
    at_least_one,
    item_columns,
    part_columns,
)
from bwarp.gpu.cuda import cuda, int64, uint8, uint32, uint64
from bwarp.gpu.device_arrays import number_at, zeros
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import ALL_LANES, WARP, launch
from bwarp.gpu.sums_and_sorts import exclusive_sum, reserve
from bwarp.index.device_index_cuda import DeviceIndex
from bwarp.index.locate_cuda import look_up, segment_of, step_to_sampled
from bwarp.options.mapping import MOST_EDITS

#: Rows of an interval that one thread lists by itself.
FEW = 4

PART_BITS = 5

#: Minimum gap between diagonals of two segments, larger than that of hits of one locus: `4 * gaps +
#: 1`.
_APART = 4 * MOST_EDITS + 2


class DeviceHits(NamedTuple):
    """Hits of parts in any order: the text position and the part of each."""

    positions: uint32[::1]
    parts: uint32[::1]
    count: int


class KeyLayout(NamedTuple):
    """The encoding of a hit as a number.

    Attributes
    ----------
    spread : int
        Shift of the diagonals of each segment relative to the previous one.
    item_shift : int
        The bit where the item begins.
    bits : int
        The number of bits in use.
    """

    spread: int
    item_shift: int
    bits: int


class Keys(NamedTuple):
    """Hits that may have loci, sorted; the arrays hold at least `count` numbers."""

    keys: uint64[::1]
    segments: uint32[::1]
    count: int
    layout: KeyLayout


def key_layout(text: DeviceText, items: DeviceItems) -> KeyLayout:
    """Return the layout of keys; 64 bits limit how many items are processed at once."""
    n_segments = text.arrays.segments.genome.size
    spread = int(items.on_host.lengths.max(initial=0)) + _APART
    largest = text.length + (n_segments + 1) * spread
    item_shift = largest.bit_length() + PART_BITS
    return KeyLayout(spread, item_shift, item_shift + max(1, items.count.bit_length()))


def located_hits(device: DeviceIndex, parts: DeviceParts, first: int, last: int) -> DeviceHits:
    """Locate the hits of the items from `first` to `last`, fewer than 2**32."""
    first_part, last_part = parts.offsets_on_host[first], parts.offsets_on_host[last]
    first_interval = int(parts.interval_offsets[first_part])
    n_intervals = int(parts.interval_offsets[last_part]) - first_interval
    offsets = cuda.device_array(n_intervals + 1, np.uint32)
    count_rows(parts.arrays.n_rows, first_interval, offsets)
    exclusive_sum(offsets)
    count = number_at(offsets, n_intervals)
    rows, of_parts, steps = (cuda.device_array(max(1, count), np.uint32) for _ in range(3))
    hits = DeviceHits(rows, of_parts, count)
    if count:
        list_rows(parts.arrays, first_interval, offsets, hits)
        step_to_sampled(device.forward, device.suffixes.rate, rows, steps, count)
        look_up(device.suffixes, rows, steps, count)
    return hits


def keys_of_hits(
    text: DeviceText,
    reads,
    items: DeviceItems,
    parts: DeviceParts,
    hits: DeviceHits,
    which: int = 0,
) -> tuple[Keys, int, int]:
    """Return the hits that may have a locus, sorted, and how many each bound drops.

    Parameters
    ----------
    reads : device array, dtype=uint32
        Blocks of the reads on both strands.
        With the sums of histogram_cuda for HISTOGRAM.
    which : int
        The bounds that drop hits (`bwarp.allmap.candidates_cpu.Bounds`).

    Returns
    -------
    keys : Keys
    by_histogram, by_kmers : int
    """
    layout = key_layout(text, items)
    keys, spare_keys = (cuda.device_array(max(1, hits.count), np.uint64) for _ in range(2))
    segments, spare = (cuda.device_array(max(1, hits.count), np.uint32) for _ in range(2))
    counters = zeros(2, np.uint32)
    if hits.count:
        key_hits[launch(hits.count)](
            text.arrays, reads, items.arrays, parts.arrays, hits, which,
            Keys(keys, segments, 0, layout), counters,
        )  # fmt: skip
    count, by_histogram = number_at(counters, 0), 0
    if which & HISTOGRAM:
        by_histogram = number_at(counters, 1)
    if count > 1:
        (keys, _), (segments, _) = text.sort_pairs(
            (keys, spare_keys), (segments, spare), count, layout.bits
        )
    dropped = by_histogram, hits.count - count - by_histogram
    return Keys(keys, segments, count, layout), *dropped


def dropped_by(
    text: DeviceText,
    reads,
    items: DeviceItems,
    parts: DeviceParts,
    hits: DeviceHits,
    which: int,
):
    """Return the bound that drops each hit, as `bwarp.allmap.candidates_cpu.dropped_by` does:
    device array, shape=(at least hits.count,), dtype=uint8; parameters as in `keys_of_hits`.
    """
    by = cuda.device_array(max(1, hits.count), np.uint8)
    if hits.count:
        given = text.arrays, reads, items.arrays, parts.arrays, hits
        bound_hits[launch(hits.count)](*given, which, by)
    return by


class SomeHits(NamedTuple):
    """The located hits of some items on the host, in the layout of the GPU.

    Attributes
    ----------
    items : Items
    parts : Parts
        Without rows; the hits are their intervals.
    columns : list of ndarray
        The columns of `ItemArrays`, of `PartArrays`, and the positions.
    """

    items: Items
    parts: Parts
    columns: list[np.ndarray]

    @classmethod
    def of(
        cls, items: Items, hits: PartHits, positions: np.ndarray, first: int, last: int
    ) -> "SomeHits":
        """Select the hits of the items from `first` to `last`."""
        items = some_items(items, slice(first, last))
        first_part, last_part = hits.part_offsets[first], hits.part_offsets[last]
        offsets = hits.offsets[first_part : last_part + 1]
        parts = Parts(
            hits.part_offsets[first : last + 1] - first_part,
            hits.starts[first_part:last_part],
            hits.ends[first_part:last_part],
            offsets - offsets[0],
            *np.empty((2, 0), np.uint32),
        )
        here = at_least_one(positions[offsets[0] : offsets[-1]])
        return cls(items, parts, [*item_columns(items), *part_columns(parts), here])

    def on_gpu(self, columns: list) -> tuple[DeviceItems, DeviceParts, DeviceHits]:
        """Return tables of these columns, copied to the GPU."""
        n = len(ItemArrays._fields)
        of_items, of_parts = ItemArrays(*columns[:n]), PartArrays(*columns[n:-1])
        positions = columns[-1]
        parts = DeviceParts(self.parts.offsets, self.parts.interval_offsets, of_parts)
        # Each hit is an interval of its part.
        count = int(self.parts.interval_offsets[-1])
        hits = DeviceHits(positions, of_parts.intervals, count)
        return DeviceItems(of_items, self.items), parts, hits


@kernel(over="counts")
def count_rows(n_rows: uint32[::1], first: int, counts: uint32[::1]):
    """Copy row counts for a prefix sum, followed by a 0. One thread each."""
    i = cuda.grid(1)
    if i < counts.size:
        counts[i] = n_rows[first + i] if i < counts.size - 1 else uint32(0)


@kernel(over="offsets")
def list_rows(parts: PartArrays, first: int, offsets: uint32[::1], hits: DeviceHits):
    """List the rows of intervals and the part of each. One thread per interval, as most have at
    most one row; a warp lists the rows of an interval with more than `FEW`.
    """
    i = int64(cuda.grid(1))
    row, part, count, out = uint32(0), uint32(0), int64(0), int64(0)
    if i < offsets.size - 1:
        row, part = parts.first_rows[first + i], parts.intervals[first + i]
        count, out = int64(parts.n_rows[first + i]), int64(offsets[i])
    if count <= FEW:
        for hit in range(count):
            hits.positions[out + hit] = uint32(row + hit)
            hits.parts[out + hit] = part
    waiting = int64(cuda.ballot_sync(ALL_LANES, count > FEW)) & ALL_LANES
    while waiting != 0:
        lane = int64(cuda.ffs(waiting)) - 1
        waiting &= waiting - 1
        row_of = cuda.shfl_sync(ALL_LANES, int64(row), lane)
        part_of = cuda.shfl_sync(ALL_LANES, int64(part), lane)
        count_of = cuda.shfl_sync(ALL_LANES, count, lane)
        out_of = cuda.shfl_sync(ALL_LANES, out, lane)
        for hit in range(int64(cuda.laneid), count_of, int64(WARP)):
            hits.positions[out_of + hit] = uint32(row_of + hit)
            hits.parts[out_of + hit] = uint32(part_of)


@cuda.jit(device=True)
def diagonal_of(text, segment, text_diagonal):
    """Convert a diagonal in the text, within a segment, to one in the genome."""
    segments = text.segments
    return int64(segments.genome[segment]) + text_diagonal - int64(segments.text[segment])


@cuda.jit(device=True)
def limits_of(items, item):
    """Return the `ItemLimits` of an item."""
    return ItemLimits(
        items.begins[item],
        int64(items.lengths[item]),
        int64(items.edits[item]),
        int64(items.gaps[item]),
    )


@kernel
def key_hits(
    text: TextArrays, reads: uint32[::1], items: ItemArrays, parts: PartArrays, hits: DeviceHits,
    which: int, kept: Keys, counters: uint32[::1],
):  # fmt: skip
    """Append the hits that no bound drops to the list of keys, and count those that HISTOGRAM drops
    in `counters[1]`.

    One thread per hit: reads segments from the cache, and two to four sectors of the genome; for
    HISTOGRAM, up to two per piece.
    """
    hit = cuda.grid(1)
    is_kept = hit < hits.count
    by = 0
    key, segment = uint64(0), uint32(0)
    if is_kept:
        part = hits.parts[hit]
        item = parts.items[part]
        segment = segment_of(text.segments.text, hits.positions[hit])
        text_diagonal = int64(hits.positions[hit]) - int64(parts.starts[part])
        diagonal = diagonal_of(text, segment, text_diagonal)
        by = bound_exceeded(which, text, diagonal, reads, limits_of(items, item))
        is_kept = by == 0
        order = uint32(part - parts.offsets[item])
        spread_diagonal = uint64(text_diagonal + (int64(segment) + 1) * int64(kept.layout.spread))
        key = (
            uint64(item) << uint64(kept.layout.item_shift) | spread_diagonal << uint64(PART_BITS)
        ) | uint64(order)
    slot = reserve(counters, 0, uint32(1) if is_kept else uint32(0))
    if is_kept:
        kept.keys[slot] = key
        kept.segments[slot] = segment
    if which & HISTOGRAM:
        votes = cuda.popc(cuda.ballot_sync(ALL_LANES, by == HISTOGRAM))
        if cuda.laneid == 0 and votes > 0:
            cuda.atomic.add(counters, 1, uint32(votes))


@kernel
def bound_hits(
    text: TextArrays, reads: uint32[::1], items: ItemArrays, parts: PartArrays, hits: DeviceHits,
    which: int, by: uint8[::1],
):  # fmt: skip
    """Write the bound that drops each hit, or 0. One thread per hit."""
    hit = cuda.grid(1)
    if hit < hits.count:
        part = hits.parts[hit]
        item = parts.items[part]
        segment = segment_of(text.segments.text, hits.positions[hit])
        text_diagonal = int64(hits.positions[hit]) - int64(parts.starts[part])
        diagonal = diagonal_of(text, segment, text_diagonal)
        by[hit] = bound_exceeded(which, text, diagonal, reads, limits_of(items, item))
