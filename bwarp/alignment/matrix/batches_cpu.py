"""Batches of pairs on the CPU: as many as a vector has lanes, in the narrowest type that will do.

Each pair runs in the narrowest type that is likely to do, and again in the next wider one where
the answer turns out not to be proved:

    local          the score stayed below the highest number of the type: nothing was cut off
    not local      values below ``lowest - origin`` were raised to it, nothing above is ever cut.
                   A path through a raised cell, counted from there, collects at most the best
                   entry of the matrix for every pair of residues, `high` in all. So a score above
                   ``lowest - origin + high`` comes from no raised cell, and is exact; and so is
                   every cell of every path that reaches it.
"""

from typing import NamedTuple

import numba
import numpy as np

from bwarp.alignment.matrix.cells_cpu import interleave
from bwarp.alignment.pairs import Sequences
from bwarp.alignment.scoring import Mode, Scoring
from bwarp.runtime.compiled_code import read_only
from bwarp.runtime.simd import fill, stand_alone, store

__all__ = [
    "ELEMENT_TYPES",
    "Costs",
    "Side",
    "by_length",
    "element_costs",
    "fits_type",
    "highest_scores",
    "lay_out",
    "longest_of",
    "numba_side",
    "put_everywhere",
    "set_borders",
]

ELEMENT_TYPES = (np.int8, np.int16, np.int32)

#: The highest score a pair may reach for a type to be tried: local, and not local. Of the latter
#: the rest of the range is for scores below zero.
_TRIED = {np.int8: (255, 190), np.int16: (65_535, 49_000), np.int32: (2**30, 2**30)}

#: What 32-bit values are kept above: far below any score, far above overflow.
_LOWEST_32 = -(2**30)


class Side(NamedTuple):
    """`Sequences` for compiled code."""

    codes: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray


class Costs(NamedTuple):
    """All that is the same for every batch of one run, for compiled code.

    `origin` stands for a score of 0, and nothing lies below `lowest`. `top` is the best entry of
    the matrix, or 0.
    """

    local: bool
    query_start: bool
    query_end: bool
    reference_start: bool
    reference_end: bool
    gap_open: int
    gap_extend: int
    top: int
    origin: int
    lowest: int
    highest: int


def numba_side(sequences: Sequences) -> Side:
    """The arrays of one side, contiguous."""
    return Side(
        read_only(np.ascontiguousarray(sequences.codes)),
        np.ascontiguousarray(sequences.starts),
        np.ascontiguousarray(sequences.lengths, np.int32),
    )


def highest_scores(scoring: Scoring, query_lengths, reference_lengths) -> np.ndarray:
    """What the score of each pair cannot pass, int64."""
    shorter = np.minimum(query_lengths, reference_lengths).astype(np.int64)
    return shorter * max(int(scoring.matrix.max()), 0)


def fits_type(scoring: Scoring, mode: Mode, high: np.ndarray, dtype) -> np.ndarray:
    """Which pairs to try in this type."""
    info = np.iinfo(dtype)
    if scoring.gap_open + scoring.gap_extend > info.max or scoring.matrix.min() < info.min:
        return np.zeros(high.size, bool)
    return high <= _TRIED[dtype][0 if mode.local else 1]


def element_costs(scoring: Scoring, mode: Mode, dtype, high: int) -> Costs:
    """The costs for scores up to `high` in this type."""
    info = np.iinfo(dtype)
    if dtype is np.int32:
        origin, lowest = 0, _LOWEST_32
    else:
        origin, lowest = info.max - high, info.min
    if mode.local:
        origin = lowest = 0 if dtype is np.int32 else info.min
    return Costs(
        mode.local,
        mode.local or mode.query_start,
        mode.query_end and not mode.local,
        mode.local or mode.reference_start,
        mode.reference_end,
        scoring.gap_open,
        scoring.gap_extend,
        max(int(scoring.matrix.max()), 0),
        int(origin),
        int(lowest),
        int(info.max),
    )


def by_length(ids: np.ndarray, rows: np.ndarray, columns: np.ndarray, lanes: int) -> np.ndarray:
    """The ids sorted by rows, then columns, filled up to whole batches with the last one."""
    key = rows[ids].astype(np.int64) << 32 | columns[ids]
    if np.any(key[1:] < key[:-1]):
        ids = ids[np.argsort(key, kind="stable")]
    return np.pad(ids, (0, -ids.size % lanes), mode="edge")


@numba.njit(cache=True, nogil=True)
def longest_of(lengths, members):
    """The largest of some lengths, int64."""
    longest = np.int64(0)
    for member in members:
        longest = max(longest, np.int64(lengths[member]))
    return longest


@numba.njit(cache=True, nogil=True)
def put_everywhere(array, count, value):
    """array[:count] = value, in less time to compile."""
    for k in range(count):
        array[k] = value


@numba.njit(cache=True, nogil=True)
def set_borders(costs, first, more, lanes, rows, columns, left, row_H, row_I):
    """H on the left border (from i = 0) and the upper one (from j = 1), and I below that."""
    for i in range(rows + 1):
        value = costs.origin
        if not costs.query_start and i > 0:
            value = max(costs.lowest, costs.origin - costs.gap_open - i * costs.gap_extend)
        store(left, i * lanes, fill(left.dtype.type(value)))
    for j in range(columns):
        value = costs.origin
        if not costs.reference_start:
            value = max(costs.lowest, costs.origin - costs.gap_open - (j + 1) * costs.gap_extend)
        store(row_H, j * lanes, fill(left.dtype.type(value)))
        store(row_I, j * lanes, fill(left.dtype.type(max(costs.lowest, value - first))))


@numba.njit(cache=True, nogil=True)
def lay_out(
    members,
    queries,
    references,
    tables,
    costs,
    first,
    more,
    rows,
    columns,
    query,
    reference,
    left,
    row_H,
    row_I,
):
    """Lay the residues of a batch side by side, and set the borders of its cells."""
    stand_alone()
    lanes = members.size
    for plane in range(tables.query.shape[0]):
        interleave(
            queries.codes, queries.starts[members], queries.lengths[members], tables.query[plane],
            tables.query_padding[plane], rows, query, plane * rows * lanes,
        )  # fmt: skip
    interleave(
        references.codes, references.starts[members], references.lengths[members],
        tables.reference, tables.reference_padding, columns, reference, np.int64(0),
    )  # fmt: skip
    set_borders(costs, first, more, lanes, rows, columns, left, row_H, row_I)
