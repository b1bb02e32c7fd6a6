"""Hits of parts on the GPU: rows, positions, and keys of those that may have a locus, in order.

    parts  ->  SA rows  ->  text positions  ->  keys  ->  keys in order
          (list_rows)   (locate_cuda)      (key_hits)

A hit is a number, so that numbers in order are hits in order: those of an item side by side, by
their segment and diagonal, and of these by part.

    bits    63 ...            ...  5                                       4 ... 0
            item             diagonal in the text, spread               part

Diagonals are spread by the number of their segment, so far that none of two segments are
neighbours. The segment is what is sorted along.
"""

from dataclasses import dataclass

import numpy as np

from bwarp.gpu.append_lists import reserve
from bwarp.gpu.cuda import cuda, int32, int64, uint8, uint32, uint64
from bwarp.gpu.device_arrays import number_at, zeros
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import ALL_LANES, WARP, launch
from bwarp.gpu.prefix_sum import exclusive_sum
from bwarp.index.device_index_cuda import DeviceIndex
from bwarp.index.locate_cuda import look_up, segment_of, step_to_sampled
from bwarp.loci.searching.device_parts_cuda import DeviceItems, DeviceParts, parts_on_gpu
from bwarp.loci.searching.parts import PartHits, Parts
from bwarp.loci.searching.seeding_rule import MOST_EDITS
from bwarp.loci.verifying.device_text_cuda import DeviceText
from bwarp.loci.verifying.kmer_bound_cuda import cannot_align, last_bounded

__all__ = [
    "DeviceHits",
    "Keys",
    "KeyLayout",
    "diagonal_of",
    "hits_on_gpu",
    "key_layout",
    "keys_of_hits",
    "located_hits",
    "mark_hits",
]

#: Rows of an interval that a thread lists alone.
FEW = 4

PART_BITS = 5

#: Diagonals of two segments are farther apart than hits of one locus: `4 * gaps + 1`.
_APART = 4 * MOST_EDITS + 2


@dataclass(frozen=True)
class DeviceHits:
    """Hits of parts, in any order.

    Attributes
    ----------
    positions, parts : device array, shape=(count,), dtype=uint32
        Where each lies in the text, and its part.
    """

    positions: object
    parts: object
    count: int


@dataclass(frozen=True)
class KeyLayout:
    """How a hit becomes a number.

    Attributes
    ----------
    spread : int
        By how much more the diagonals of each segment are spread than those of the one before.
    item_shift : int
        The bit where the item begins.
    bits : int
        All of them.
    """

    spread: int
    item_shift: int
    bits: int


@dataclass(frozen=True)
class Keys:
    """Hits that may have loci, in order.

    Attributes
    ----------
    keys : device array, shape=(at least count,), dtype=uint64
    segments : device array, shape=(at least count,), dtype=uint32
    """

    keys: object
    segments: object
    count: int
    layout: KeyLayout


def key_layout(text: DeviceText, items: DeviceItems) -> KeyLayout:
    """The layout of keys of items; as many as fit into 64 bits may be worked on at once."""
    n_segments = text.segment_genome.size
    spread = int(items.on_host.lengths.max(initial=0)) + _APART
    largest = text.length + (n_segments + 1) * spread
    item_shift = largest.bit_length() + PART_BITS
    return KeyLayout(spread, item_shift, item_shift + max(1, items.count.bit_length()))


def located_hits(device: DeviceIndex, parts: DeviceParts, first: int, last: int) -> DeviceHits:
    """The hits of the items from `first` to `last`: fewer than 2**32."""
    first_part, last_part = parts.offsets_on_host[first], parts.offsets_on_host[last]
    first_interval = int(parts.interval_offsets[first_part])
    n_intervals = int(parts.interval_offsets[last_part]) - first_interval
    offsets = cuda.device_array(n_intervals + 1, np.uint32)
    count_rows[launch(n_intervals + 1)](parts.n_rows, first_interval, n_intervals, offsets)
    exclusive_sum(offsets)
    count = number_at(offsets, n_intervals)
    rows, of_parts, steps = (cuda.device_array(max(1, count), np.uint32) for _ in range(3))
    if count:
        list_rows[launch(n_intervals)](
            parts.first_rows, parts.n_rows, parts.intervals, first_interval, n_intervals, offsets,
            rows, of_parts,
        )  # fmt: skip
        rate = device.plan.suffix_rate
        step_to_sampled(device.forward, device.first_rows, rate, rows, steps, count)
        look_up(device.suffixes, rate, device.forward.n_rows, rows, steps, count)
    return DeviceHits(rows, of_parts, count)


def keys_of_hits(
    text: DeviceText,
    reads,
    items: DeviceItems,
    parts: DeviceParts,
    hits: DeviceHits,
    use_filter: bool,
) -> Keys:
    """The hits that may have a locus, in order.

    Parameters
    ----------
    reads : device array, dtype=uint32
        Blocks of the reads on both strands.
    use_filter : bool
        Whether hits are dropped by the bound.
    """
    layout = key_layout(text, items)
    keys, spare_keys = (cuda.device_array(max(1, hits.count), np.uint64) for _ in range(2))
    segments, spare = (cuda.device_array(max(1, hits.count), np.uint32) for _ in range(2))
    counters = zeros(1, np.uint32)
    if hits.count:
        key_hits[launch(hits.count)](
            text.blocks, reads, last_bounded(text.n_bases), items.begins,
            items.lengths, items.edits, items.gaps, parts.offsets, parts.items, parts.starts,
            hits.positions, hits.parts, hits.count, text.segment_text, text.segment_genome,
            1 if use_filter else 0, layout.spread, layout.item_shift, keys, segments, counters,
        )  # fmt: skip
    count = number_at(counters, 0)
    if count > 1:
        (keys, _), (segments, _) = text.sort_pairs(
            (keys, spare_keys), (segments, spare), count, layout.bits
        )
    return Keys(keys, segments, count, layout)


def mark_hits(text: DeviceText, reads, items: DeviceItems, parts: DeviceParts, hits: DeviceHits):
    """Which hits may have a locus: device array, shape=(at least hits.count,), dtype=uint8."""
    kept = cuda.device_array(max(1, hits.count), np.uint8)
    if hits.count:
        bound_hits[launch(hits.count)](
            text.blocks, reads, last_bounded(text.n_bases), items.begins,
            items.lengths, items.edits, items.gaps, parts.items, parts.starts, hits.positions,
            hits.parts, hits.count, text.segment_text, text.segment_genome, kept,
        )  # fmt: skip
    return kept


def hits_on_gpu(
    hits: PartHits, positions: np.ndarray, first: int, last: int
) -> tuple[DeviceParts, DeviceHits]:
    """The parts of the items from `first` to `last`, without rows, and their located hits."""
    first_part, last_part = hits.part_offsets[first], hits.part_offsets[last]
    offsets = hits.offsets[first_part : last_part + 1]
    parts = parts_on_gpu(
        Parts(
            hits.part_offsets[first : last + 1] - first_part,
            hits.starts[first_part:last_part],
            hits.ends[first_part:last_part],
            offsets - offsets[0],
            *np.empty((2, 0), np.uint32),
        )
    )
    count = int(offsets[-1] - offsets[0])
    here = positions[offsets[0] : offsets[-1]] if count else np.zeros(1, np.uint32)
    # Every hit is an interval of its part.
    return parts, DeviceHits(cuda.to_device(np.ascontiguousarray(here)), parts.intervals, count)


@kernel
def count_rows(n_rows: uint32[::1], first: int, n: int, counts: uint32[::1]):
    """Numbers of rows as numbers to add up, and a 0 after them. One thread each."""
    i = cuda.grid(1)
    if i <= n:
        counts[i] = n_rows[first + i] if i < n else uint32(0)


@kernel
def list_rows(
    first_rows: uint32[::1], n_rows: uint32[::1], of_parts: uint32[::1], first: int, n: int,
    offsets: uint32[::1], rows: uint32[::1], parts: uint32[::1],
):  # fmt: skip
    """The rows of intervals, and of which parts they are. One thread an interval, mostly of one row
    or none; the rows of one with more than `FEW` are listed by its warp."""
    i = int64(cuda.grid(1))
    row, part, count, out = uint32(0), uint32(0), int64(0), int64(0)
    if i < n:
        row, part = first_rows[first + i], of_parts[first + i]
        count, out = int64(n_rows[first + i]), int64(offsets[i])
    if count <= FEW:
        for hit in range(count):
            rows[out + hit] = uint32(row + hit)
            parts[out + hit] = part
    waiting = int64(cuda.ballot_sync(ALL_LANES, count > FEW)) & ALL_LANES
    while waiting != 0:
        lane = int64(cuda.ffs(waiting)) - 1
        waiting &= waiting - 1
        row_of = cuda.shfl_sync(ALL_LANES, int64(row), lane)
        part_of = cuda.shfl_sync(ALL_LANES, int64(part), lane)
        count_of = cuda.shfl_sync(ALL_LANES, count, lane)
        out_of = cuda.shfl_sync(ALL_LANES, out, lane)
        for hit in range(int64(cuda.laneid), count_of, int64(WARP)):
            rows[out_of + hit] = uint32(row_of + hit)
            parts[out_of + hit] = uint32(part_of)


@cuda.jit(device=True)
def diagonal_of(segment_text, segment_genome, segment, text_diagonal):
    """The diagonal in the genome of one in the text, of a segment."""
    return int64(segment_genome[segment]) + text_diagonal - int64(segment_text[segment])


@kernel
def key_hits(
    genome: uint32[::1], reads: uint32[::1], last: int, begins: int64[::1], lengths: int32[::1],
    edits: int32[::1], gaps: int32[::1], part_offsets: uint32[::1], part_items: uint32[::1],
    part_starts: int32[::1], positions: uint32[::1], parts: uint32[::1], n_hits: int,
    segment_text: uint32[::1], segment_genome: uint32[::1], use_filter: int, spread: int,
    item_shift: int, keys: uint64[::1], segments: uint32[::1], counters: uint32[::1],
):  # fmt: skip
    """Put the hits that the bound does not drop into the list of keys.

    One thread a hit: the segments from the cache, and two to four sectors of the genome.
    """
    hit = cuda.grid(1)
    is_kept = hit < n_hits
    key, segment = uint64(0), uint32(0)
    if is_kept:
        part = parts[hit]
        item = part_items[part]
        segment = segment_of(segment_text, positions[hit])
        text_diagonal = int64(positions[hit]) - int64(part_starts[part])
        if use_filter:
            is_kept = not cannot_align(
                genome, last, diagonal_of(segment_text, segment_genome, segment, text_diagonal),
                reads, begins[item], int64(lengths[item]), int64(gaps[item]), int64(edits[item]),
            )  # fmt: skip
        order = uint32(part - part_offsets[item])
        spread_diagonal = uint64(text_diagonal + (int64(segment) + 1) * int64(spread))
        key = (uint64(item) << uint64(item_shift) | spread_diagonal << uint64(PART_BITS)) | uint64(
            order
        )
    slot = reserve(counters, 0, uint32(1) if is_kept else uint32(0))
    if is_kept:
        keys[slot] = key
        segments[slot] = segment


@kernel
def bound_hits(
    genome: uint32[::1], reads: uint32[::1], last: int, begins: int64[::1], lengths: int32[::1],
    edits: int32[::1], gaps: int32[::1], part_items: uint32[::1], part_starts: int32[::1],
    positions: uint32[::1], parts: uint32[::1], n_hits: int, segment_text: uint32[::1],
    segment_genome: uint32[::1], kept: uint8[::1],
):  # fmt: skip
    """Mark the hits that the bound does not drop. One thread a hit."""
    hit = cuda.grid(1)
    if hit < n_hits:
        part = parts[hit]
        item = part_items[part]
        segment = segment_of(segment_text, positions[hit])
        text_diagonal = int64(positions[hit]) - int64(part_starts[part])
        is_dropped = cannot_align(
            genome, last, diagonal_of(segment_text, segment_genome, segment, text_diagonal), reads,
            begins[item], int64(lengths[item]), int64(gaps[item]), int64(edits[item]),
        )  # fmt: skip
        kept[hit] = 0 if is_dropped else 1
