"""Rank, LF-mapping and the base of a row, for one row, on the CPU.

Every function reads one block (`bwarp.index.fm_index` draws it). The arguments they share:

    words             BWT.words: the blocks as one flat array
    separator_rows    read only for the few blocks that say they have such rows
    groups            BWT.groups: its length is the blocks' geometry

Rows and codes are uint64 throughout: signed indexes cost a test and an addition each, which made
a search three times slower.
"""

import numba
import numpy as np

from bwarp.runtime.simd import population_count

__all__ = ["base_at", "block_start", "extend_left", "lf_step", "rank", "ranks"]

_u64 = np.uint64
SEPARATOR = _u64(4)


@numba.njit(cache=True, nogil=True, forceinline=True)
def block_start(groups, row):
    """Where in the flat array the block of a row begins: what to prefetch before a rank."""
    return _u64(row) // _u64(32 * len(groups)) * _u64(4 + 2 * len(groups))


@numba.njit(cache=True, nogil=True, forceinline=True)
def _bits_below(offset, first):
    """A mask of the 64 rows from row `first` of a block on that lie below an offset in it."""
    if offset <= first:
        return _u64(0)
    if offset - first >= _u64(64):
        return ~_u64(0)
    return (_u64(1) << (offset - first)) - _u64(1)


@numba.njit(cache=True, nogil=True, inline="always")
def _planes(words, groups, at, pair):
    """Low and high bits of 64 rows, or of the last 32 where the number of groups is odd."""
    first = at + _u64(4 + 4 * pair)
    low = _u64(words[first])
    high = _u64(words[first + _u64(1)])
    if 2 * pair + 1 < len(groups):
        low |= _u64(words[first + _u64(2)]) << _u64(32)
        high |= _u64(words[first + _u64(3)]) << _u64(32)
    return low, high


@numba.njit(cache=True, nogil=True, forceinline=True)
def _separators_below(separator_rows, first, row):
    """How many separator rows, from number `first` on, lie below a row."""
    found = _u64(0)
    while first + found < _u64(separator_rows.size):
        if _u64(separator_rows[first + found]) >= row:
            break
        found += _u64(1)
    return found


@numba.njit(cache=True, nogil=True, inline="always")
def rank(words, separator_rows, groups, code, row):
    """How many of the rows below `row` have the base `code` (0 to 3)."""
    row, code = _u64(row), _u64(code)
    at = block_start(groups, row)
    first = row // _u64(32 * len(groups)) * _u64(32 * len(groups))
    flip_low = _u64(0) if code & _u64(1) else ~_u64(0)
    flip_high = _u64(0) if code & _u64(2) else ~_u64(0)
    found = _u64(0)
    for pair in range((len(groups) + 1) // 2):
        low, high = _planes(words, groups, at, pair)
        below = _bits_below(row - first, _u64(64 * pair))
        found += population_count((low ^ flip_low) & (high ^ flip_high) & below)
    c = _u64(words[at])
    g = _u64(words[at + _u64(1)])
    t = _u64(words[at + _u64(2)])
    separators = _u64(words[at + _u64(3)])
    # Selected, not branched on: which base comes next is what no branch predictor knows.
    a = first - c - g - t - (separators >> _u64(1))
    low_pair = c if code == _u64(1) else a
    high_pair = t if code == _u64(3) else g
    found += high_pair if code & _u64(2) else low_pair
    if separators & _u64(1) and code == _u64(0):
        found -= _separators_below(separator_rows, separators >> _u64(1), row)
    return found


@numba.njit(cache=True, nogil=True, inline="always")
def ranks(words, separator_rows, groups, row):
    """The ranks of A, C, G and T at a row, from one read of its block."""
    row = _u64(row)
    at = block_start(groups, row)
    first = row // _u64(32 * len(groups)) * _u64(32 * len(groups))
    c = _u64(words[at])
    g = _u64(words[at + _u64(1)])
    t = _u64(words[at + _u64(2)])
    separators = _u64(words[at + _u64(3)])
    for pair in range((len(groups) + 1) // 2):
        low, high = _planes(words, groups, at, pair)
        below = _bits_below(row - first, _u64(64 * pair))
        c += population_count(low & ~high & below)
        g += population_count(~low & high & below)
        t += population_count(low & high & below)
    before = separators >> _u64(1)
    if separators & _u64(1):
        before += _separators_below(separator_rows, before, row)
    return row - c - g - t - before, c, g, t


@numba.njit(cache=True, nogil=True, inline="always")
def extend_left(words, separator_rows, groups, first_rows, code, start, stop):
    """The rows of ``code + pattern`` from those of a pattern: one step of backward search."""
    first = _u64(first_rows[code])
    return (
        first + rank(words, separator_rows, groups, code, start),
        first + rank(words, separator_rows, groups, code, stop),
    )


@numba.njit(cache=True, nogil=True, inline="always")
def base_at(words, separator_rows, groups, row):
    """The base of a row (0 to 3), or 4 for a separator."""
    row = _u64(row)
    at = block_start(groups, row)
    offset = row % _u64(32 * len(groups))
    plane = at + _u64(4) + _u64(2) * (offset >> _u64(5))
    bit = offset & _u64(31)
    low = (_u64(words[plane]) >> bit) & _u64(1)
    high = (_u64(words[plane + _u64(1)]) >> bit) & _u64(1)
    code = low | (high << _u64(1))
    separators = _u64(words[at + _u64(3)])
    if code == _u64(0) and separators & _u64(1):
        number = separators >> _u64(1)
        number += _separators_below(separator_rows, number, row)
        if number < _u64(separator_rows.size) and _u64(separator_rows[number]) == row:
            return SEPARATOR
    return code


@numba.njit(cache=True, nogil=True, inline="always")
def lf_step(words, separator_rows, groups, first_rows, text_start, row):
    """The row of the suffix one base longer: the paper's beta.

    Before the whole text comes, by definition, its last separator, which is row 0. The other
    separators' rows follow it in the order of `separator_rows`.
    """
    row = _u64(row)
    code = base_at(words, separator_rows, groups, row)
    if code < SEPARATOR:
        return _u64(first_rows[code]) + rank(words, separator_rows, groups, code, row)
    number = _u64(words[block_start(groups, row) + _u64(3)]) >> _u64(1)
    number += _separators_below(separator_rows, number, row)
    if number == _u64(text_start):
        return _u64(0)
    return number + _u64(1) if number < _u64(text_start) else number
