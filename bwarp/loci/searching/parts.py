"""Reads on both strands, cut into parts, and the SA rows and positions where parts lie.

An item is a read on a strand: item 2 i is read i, item 2 i + 1 its reverse complement. Parts of an
item are numbered from its last base to its first, in the order in which they are searched.
"""

from typing import NamedTuple

import numpy as np

from bwarp.runtime.compiled_code import compiled

__all__ = [
    "Items",
    "PartHits",
    "Parts",
    "hits_of",
    "item_parts",
    "items_of",
    "kept_hits",
    "merge_parts",
    "no_parts",
    "some_items",
]


class Items(NamedTuple):
    """Reads on strands, and what is looked for of each.

    Attributes
    ----------
    begins : ndarray, shape=(n,), dtype=int64
        Where each begins among the reads and their reverse complements.
    lengths, edits, gaps : ndarray, shape=(n,), dtype=int64
        Its bases; the most edits of a locus, and the most gap letters among them.
    mismatches : ndarray, shape=(n,), dtype=int64
        The most with which its parts are searched.
    """

    begins: np.ndarray
    lengths: np.ndarray
    edits: np.ndarray
    gaps: np.ndarray
    mismatches: np.ndarray


class Parts(NamedTuple):
    """Parts of items, and SA intervals of parts.

    Attributes
    ----------
    offsets : ndarray, shape=(n_items + 1,), dtype=int64
        The parts of item i are those from offsets[i] to offsets[i + 1].
    starts, ends : ndarray, shape=(n_parts,), dtype=int32
        Within the item.
    interval_offsets : ndarray, shape=(n_parts + 1,), dtype=int64
        The intervals of a part.
    first_rows, n_rows : ndarray, shape=(n_intervals,), dtype=uint32
    """

    offsets: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    interval_offsets: np.ndarray
    first_rows: np.ndarray
    n_rows: np.ndarray


class PartHits(NamedTuple):
    """Whose hits an array of hits has, be they SA rows or positions: those of parts in their order.

    Attributes
    ----------
    part_offsets : ndarray, shape=(n_items + 1,), dtype=int64
        The parts of each item.
    starts, ends : ndarray, shape=(n_parts,), dtype=int32
        Within the item.
    offsets : ndarray, shape=(n_parts + 1,), dtype=int64
        The hits of each part.
    """

    part_offsets: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    offsets: np.ndarray


def items_of(
    offsets: np.ndarray,
    reads: np.ndarray,
    edits: np.ndarray,
    gaps: np.ndarray,
    mismatches: np.ndarray,
) -> Items:
    """Both items of each of some reads, which lie from `offsets` on, all complements after them."""
    items = Items(*np.empty((5, 2 * len(reads)), np.int64))
    _fill_items(offsets, reads, edits, gaps, mismatches, *items)
    return items


@compiled
def _fill_items(
    offsets, reads, edits, gaps, mismatches, begins, lengths, all_edits, all_gaps, all_mismatches
):
    n_bases = offsets[offsets.size - 1]
    for item in range(begins.size):
        i = item >> 1
        begin = offsets[reads[i]]
        lengths[item] = offsets[reads[i] + 1] - begin
        begins[item] = begin + n_bases * (item & 1)
        all_edits[item], all_gaps[item] = edits[i], gaps[i]
        all_mismatches[item] = mismatches[i]


def some_items(items: Items, which) -> Items:
    """Those of some numbers, or of a slice."""
    return Items(*(column[which] for column in items))


def hits_of(parts: Parts, first: int, last: int) -> tuple[PartHits, np.ndarray]:
    """The SA rows (uint32) of the items from `first` to `last`, and of which parts they are."""
    first_part, last_part = parts.offsets[first], parts.offsets[last]
    before, after = parts.interval_offsets[first_part], parts.interval_offsets[last_part]
    offsets = np.concatenate([[0], np.cumsum(parts.n_rows[before:after], dtype=np.int64)])
    rows = np.empty(offsets[-1], np.uint32)
    _list_rows(parts.first_rows[before:after], offsets, rows)
    hits = PartHits(
        parts.offsets[first : last + 1] - first_part,
        parts.starts[first_part:last_part],
        parts.ends[first_part:last_part],
        offsets[parts.interval_offsets[first_part : last_part + 1] - before],
    )
    return hits, rows


def kept_hits(hits: PartHits, positions: np.ndarray, kept: np.ndarray):
    """The hits of a mask, and of which parts they are."""
    before = np.concatenate([[0], np.cumsum(kept, dtype=np.int64)])
    return hits._replace(offsets=before[hits.offsets]), positions[kept]


def no_parts() -> Parts:
    """Those of no items."""
    none = np.zeros(1, np.int64)
    return Parts(none, *np.empty((2, 0), np.int32), none, *np.empty((2, 0), np.uint32))


def merge_parts(some: list[np.ndarray], found: list[Parts]) -> Parts:
    """The parts of all items from those of some each, in the order of the items.

    Parameters
    ----------
    some : list of ndarray, dtype=int64
        The items that each of `found` is of; together all.
    """
    order = np.argsort(np.concatenate(some), kind="stable")
    parts, offsets = _in_order(order, [part.offsets for part in found])
    intervals, interval_offsets = _in_order(parts, [part.interval_offsets for part in found])
    columns = [
        np.concatenate([getattr(part, name) for part in found])
        for name in ("starts", "ends", "first_rows", "n_rows")
    ]
    starts, ends, first_rows, n_rows = columns
    return Parts(
        offsets, starts[parts], ends[parts], interval_offsets, first_rows[intervals],
        n_rows[intervals],
    )  # fmt: skip


def _in_order(order: np.ndarray, all_offsets: list[np.ndarray]):
    """Where the members of groups are when the groups, of several lists, are put in an order."""
    sizes = np.concatenate([np.diff(offsets) for offsets in all_offsets])
    begins = np.cumsum(sizes) - sizes
    offsets = item_parts(sizes[order])
    members = np.arange(offsets[-1]) + np.repeat(begins[order] - offsets[:-1], sizes[order])
    return members, offsets


@compiled
def _list_rows(first_rows, offsets, rows):
    for i in range(first_rows.size):
        row = first_rows[i]
        for at in range(offsets[i], offsets[i + 1]):
            rows[at] = row
            row += np.uint32(1)


def item_parts(n_parts: np.ndarray) -> np.ndarray:
    """Offsets of the parts of items that have so many each."""
    return np.concatenate([[0], np.cumsum(n_parts, dtype=np.int64)])
