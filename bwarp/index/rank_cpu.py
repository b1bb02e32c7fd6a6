"""Rank, LF-mapping and the base of an SA row on the CPU; `bwarp.index.rank` has the rules.

Rows and codes are uint64 throughout: signed indexes cost a test and an addition each, which made
a search three times slower.
"""

import numba
from numba import uint64

from bwarp.index.rank import rank_functions
from bwarp.runtime.simd import population_count

__all__ = [
    "base_at",
    "block_start",
    "extend_left",
    "lf_step",
    "load_counts",
    "load_planes",
    "rank",
    "ranks",
]

_inlined = numba.njit(nogil=True, inline="always")
#: A loop that Numba inlined would count references to its array: LLVM inlines it.
_inlined_late = numba.njit(nogil=True, forceinline=True)


@_inlined
def block_start(groups, row):
    """Where in the flat array the block of a row begins: what to prefetch before a rank."""
    return uint64(row) // uint64(32 * len(groups)) * uint64(4 + 2 * len(groups))


@_inlined
def _load_pair(words, at):
    return uint64(words[at]), uint64(words[at + uint64(1)])


@_inlined
def load_counts(words, groups, block):
    at = block * uint64(4 + 2 * len(groups))
    return *_load_pair(words, at), *_load_pair(words, at + uint64(2))


@_inlined
def load_planes(words, groups, block, pair):
    at = block * uint64(4 + 2 * len(groups)) + uint64(4 + 4 * pair)
    low, high = _load_pair(words, at)
    if 2 * pair + 1 < len(groups):
        low_after, high_after = _load_pair(words, at + uint64(2))
        low |= low_after << uint64(32)
        high |= high_after << uint64(32)
    return low, high


@_inlined
def _load_separators(words, groups, block, code):
    return uint64(words[block * uint64(4 + 2 * len(groups)) + uint64(3)])


_functions = rank_functions(
    _inlined,
    _inlined_late,
    uint64,
    _load_pair,
    load_counts,
    load_planes,
    _load_separators,
    population_count,
)
base_at, lf_step = _functions.base_at, _functions.lf_step
rank, ranks = _functions.rank, _functions.ranks
_block_of, _bits_below = _functions.block_of, _functions.bits_below
_rows_with, _count_before = _functions.rows_with, _functions.count_before
_without_separators = _functions.without_separators


@_inlined
def extend_left(words, separator_rows, groups, first_rows, code, start, stop):
    """The SA interval of ``code + pattern`` from that of a pattern: a step of backward search.

    Most intervals are short and lie in one block, which is read once for both ends.
    """
    first, code = uint64(first_rows[code]), uint64(code)
    block = _block_of(groups, start)
    if block != _block_of(groups, stop):
        return (
            first + rank(words, separator_rows, groups, code, start),
            first + rank(words, separator_rows, groups, code, stop),
        )
    begin = block * uint64(32 * len(groups))
    counts = load_counts(words, groups, block)
    new_start = new_stop = first + _count_before(groups, block, counts, code)
    for pair in range((len(groups) + 1) // 2):
        low, high = load_planes(words, groups, block, pair)
        alike = _rows_with(low, high, code)
        before = _bits_below(start - begin, uint64(64 * pair))
        new_start += population_count(alike & before)
        before = _bits_below(stop - begin, uint64(64 * pair))
        new_stop += population_count(alike & before)
    return (
        _without_separators(separator_rows, counts[3], code, start, new_start),
        _without_separators(separator_rows, counts[3], code, stop, new_stop),
    )
