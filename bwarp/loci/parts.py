"""Reads on both strands, cut into parts, and the SA rows where parts lie.

An item is a read on a strand: item 2 i is read i, item 2 i + 1 its reverse complement. Parts of an
item are numbered from its last base to its first, in the order in which they are searched.
"""

from typing import NamedTuple

import numba
import numpy as np

__all__ = ["Items", "Parts", "item_parts", "rows_of"]


class Items(NamedTuple):
    """Reads on strands, and what is looked for of each.

    Attributes
    ----------
    begins : ndarray, shape=(n,), dtype=int64
        Where each begins among the reads and their reverse complements.
    lengths, edits, gaps : ndarray, shape=(n,), dtype=int64
        Its bases; the most edits of a locus, and the most gap letters among them.
    """

    begins: np.ndarray
    lengths: np.ndarray
    edits: np.ndarray
    gaps: np.ndarray


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


def rows_of(parts: Parts, first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
    """The SA rows of the parts from `first` to `last`, and where those of each part begin."""
    before, after = parts.interval_offsets[first], parts.interval_offsets[last]
    offsets = np.concatenate([[0], np.cumsum(parts.n_rows[before:after], dtype=np.int64)])
    rows = np.empty(offsets[-1], np.uint32)
    _list_rows(parts.first_rows[before:after], offsets, rows)
    return rows, offsets[parts.interval_offsets[first : last + 1] - before]


@numba.njit(cache=True, nogil=True)
def _list_rows(first_rows, offsets, rows):
    for i in range(first_rows.size):
        row = first_rows[i]
        for at in range(offsets[i], offsets[i + 1]):
            rows[at] = row
            row += np.uint32(1)


def item_parts(n_parts: np.ndarray) -> np.ndarray:
    """Offsets of the parts of items that have so many each."""
    return np.concatenate([[0], np.cumsum(n_parts, dtype=np.int64)])
