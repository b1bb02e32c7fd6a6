"""Rank, LF-mapping and the base of a row, for one row, on the CPU.

Every function reads one block (`bwarp.index.fm_index` draws it). `groups` is
`BurrowsWheeler.groups`; `separator_rows` is read only for the few blocks that say so.
"""

import numba
import numpy as np

from bwarp.simd import population_count

__all__ = ["base_at", "extend_left", "lf_step", "rank", "ranks"]

SEPARATOR = 4


@numba.njit(inline="always")
def _bits_below(offset, group):
    """A mask of the rows of a group that lie below an offset in the block."""
    rows = offset - 32 * group
    if rows <= 0:
        return np.uint32(0)
    if rows >= 32:
        return np.uint32(0xFFFFFFFF)
    return np.uint32((np.uint32(1) << np.uint32(rows)) - np.uint32(1))


@numba.njit(cache=True, nogil=True)
def _separators_below(separator_rows, first, row):
    """How many separator rows, from number `first` on, lie below a row."""
    found = 0
    while first + found < separator_rows.size and separator_rows[first + found] < row:
        found += 1
    return found


@numba.njit(cache=True, nogil=True)
def rank(blocks, separator_rows, groups, code, row):
    """How many of the rows below `row` have the base `code` (0 to 3)."""
    occ_rate = 32 * len(groups)
    block = row // occ_rate
    offset = row - block * occ_rate
    flip_low = np.uint32(0) if code & 1 else np.uint32(0xFFFFFFFF)
    flip_high = np.uint32(0) if code & 2 else np.uint32(0xFFFFFFFF)
    found = np.int64(0)
    for group in groups:
        low = blocks[block, 4 + 2 * group] ^ flip_low
        high = blocks[block, 5 + 2 * group] ^ flip_high
        found += np.int64(population_count(np.uint32(low & high & _bits_below(offset, group))))
    c = np.int64(blocks[block, 0])
    g = np.int64(blocks[block, 1])
    t = np.int64(blocks[block, 2])
    separators = np.int64(blocks[block, 3])
    # Selected, not branched on: which base comes next is what no branch predictor knows.
    a = block * occ_rate - c - g - t - (separators >> 1)
    low_pair = c if code == 1 else a
    high_pair = t if code == 3 else g
    found += high_pair if code & 2 else low_pair
    if separators & 1 and code == 0:
        found -= _separators_below(separator_rows, separators >> 1, row)
    return found


@numba.njit(cache=True, nogil=True)
def ranks(blocks, separator_rows, groups, row):
    """The ranks of A, C, G and T at a row, from one read of its block."""
    occ_rate = 32 * len(groups)
    block = row // occ_rate
    offset = row - block * occ_rate
    c = np.int64(blocks[block, 0])
    g = np.int64(blocks[block, 1])
    t = np.int64(blocks[block, 2])
    separators = np.int64(blocks[block, 3])
    a = row - c - g - t - (separators >> 1)
    for group in groups:
        below = _bits_below(offset, group)
        low = blocks[block, 4 + 2 * group]
        high = blocks[block, 5 + 2 * group]
        in_c = np.int64(population_count(np.uint32(low & ~high & below)))
        in_g = np.int64(population_count(np.uint32(~low & high & below)))
        in_t = np.int64(population_count(np.uint32(low & high & below)))
        c += in_c
        g += in_g
        t += in_t
        a -= in_c + in_g + in_t
    if separators & 1:
        a -= _separators_below(separator_rows, separators >> 1, row)
    return a, c, g, t


@numba.njit(cache=True, nogil=True)
def extend_left(blocks, separator_rows, groups, first_rows, code, start, stop):
    """The rows of ``code + pattern`` from those of a pattern: one step of backward search."""
    first = np.int64(first_rows[code])
    return (
        first + rank(blocks, separator_rows, groups, code, start),
        first + rank(blocks, separator_rows, groups, code, stop),
    )


@numba.njit(cache=True, nogil=True)
def base_at(blocks, separator_rows, groups, row):
    """The base of a row (0 to 3), or 4 for a separator."""
    occ_rate = 32 * len(groups)
    block = row // occ_rate
    offset = row - block * occ_rate
    group = offset >> 5
    bit = np.uint32(offset & 31)
    low = (blocks[block, 4 + 2 * group] >> bit) & np.uint32(1)
    high = (blocks[block, 5 + 2 * group] >> bit) & np.uint32(1)
    code = np.int64(low + np.uint32(2) * high)
    separators = np.int64(blocks[block, 3])
    if code == 0 and separators & 1:
        at = (separators >> 1) + _separators_below(separator_rows, separators >> 1, row)
        if at < separator_rows.size and separator_rows[at] == row:
            return SEPARATOR
    return code


@numba.njit(cache=True, nogil=True)
def lf_step(blocks, separator_rows, groups, first_rows, text_start, row):
    """The row of the suffix one base longer: the paper's beta.

    Before the whole text comes, by definition, its last separator, which is row 0. The other
    separators' rows follow it in the order of `separator_rows`.
    """
    code = base_at(blocks, separator_rows, groups, row)
    if code < SEPARATOR:
        return np.int64(first_rows[code]) + rank(blocks, separator_rows, groups, code, row)
    block = row // (32 * len(groups))
    first = np.int64(blocks[block, 3]) >> 1
    number = first + _separators_below(separator_rows, first, row)
    if number == text_start:
        return np.int64(0)
    return number + 1 if number < text_start else number
