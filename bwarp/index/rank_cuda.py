"""Rank, LF-mapping and the base of an SA row, or of both ends of an SA interval, on the GPU.

`bwarp.index.rank` has the source. At an occ_rate of 64 a block is one 32-byte sector, read by two
16-byte loads: a rank costs this one memory read. Both ends of a short interval are usually in one
block, which is then read once.

Rows are uint32, which take half the registers of 64 bits.
"""

from functools import partial
from typing import Annotated, NamedTuple

from bwarp.gpu.cuda import cuda, int64, types, uint32, uint64
from bwarp.gpu.ptx import load_uint32x2, load_uint32x4
from bwarp.index.rank import rank_functions


@cuda.jit(device=True)
def load_pair(words, at):
    return load_uint32x2(words, at)


@cuda.jit(device=True)
def load_counts(words, groups, block):
    """Return the counts of C, G and T of a block and its separator word."""
    at = uint32(block * uint32(4 + 2 * len(groups)))
    if len(groups) % 2 == 0:
        return load_uint32x4(words, at)
    c, g = load_uint32x2(words, at)
    t, separators = load_uint32x2(words, at + uint32(2))
    return c, g, t, separators


@cuda.jit(device=True)
def load_planes(words, groups, block, pair):
    """Return the low and high bits of 64 rows of a block, or of its last 32."""
    at = uint32(block * uint32(4 + 2 * len(groups)) + uint32(4 + 4 * pair))
    low_after, high_after = uint32(0), uint32(0)
    if len(groups) % 2 == 0:
        low, high, low_after, high_after = load_uint32x4(words, at)
    else:
        low, high = load_uint32x2(words, at)
        if 2 * pair + 1 < len(groups):
            low_after, high_after = load_uint32x2(words, at + uint32(2))
    shift = uint64(32)
    return uint64(low) | uint64(low_after) << shift, uint64(high) | uint64(high_after) << shift


@cuda.jit(device=True)
def load_separators(words, groups, block, code):
    """Return the separator word of a block if the code is 0."""
    return load_counts(words, groups, block)[3] if code == uint32(0) else uint32(0)


@cuda.jit(device=True)
def count_bits(bits):
    return uint32(cuda.popc(bits))


#: The number of groups at common occ_rates; kernels are compiled ahead of time for these.
GROUPS = Annotated[tuple, types.UniTuple(int64, 2), types.UniTuple(int64, 3)]


class DeviceBWT(NamedTuple):
    """A `bwarp.index.fm_index.BWT` on the GPU: the same attributes, with device arrays."""

    words: uint32[::1]
    separator_rows: uint32[::1]
    groups: GROUPS
    first_rows: uint32[::1]
    text_start: int
    n_rows: int


_jit = partial(cuda.jit, device=True)
_functions = rank_functions(
    _jit,
    _jit,
    uint32,
    load_pair,
    load_counts,
    load_planes,
    load_separators,
    count_bits,
)
_base_at, _lf_step = _functions.base_at, _functions.lf_step
block_of, rank, ranks = _functions.block_of, _functions.rank, _functions.ranks
add_bits, with_a = _functions.add_bits, _functions.with_a
bits_below, rows_with = _functions.bits_below, _functions.rows_with
count_before, without_separators = _functions.count_before, _functions.without_separators


@cuda.jit(device=True)
def base_at(bwt, row):
    """Return the base of a row (0 to 3), or 4 for a separator."""
    return _base_at(bwt.words, bwt.separator_rows, bwt.groups, row)


@cuda.jit(device=True)
def lf_step(bwt, row):
    """Return the row of the suffix that is one base longer."""
    return _lf_step(bwt.words, bwt.separator_rows, bwt.groups, bwt.first_rows, bwt.text_start, row)


@cuda.jit(device=True)
def rank_in(bwt, block, counts, low, high, code, row):
    """Return the rank at a row from a block of at most 64 rows that is already read."""
    below = bits_below(uint32(row - block * uint32(32 * len(bwt.groups))), uint32(0))
    found = uint32(
        count_before(bwt.groups, block, counts, code)
        + count_bits(rows_with(low, high, code) & below)
    )
    return without_separators(bwt.separator_rows, counts[3], code, row, found)


@cuda.jit(device=True)
def ranks_in(bwt, block, counts, low, high, row):
    """Return the ranks of A, C, G and T at a row from a block of at most 64 rows already read."""
    below = bits_below(uint32(row - block * uint32(32 * len(bwt.groups))), uint32(0))
    c, g, t, separators = counts
    c, g, t = add_bits(low, high, below, c, g, t)
    return with_a(bwt.separator_rows, separators, row, c, g, t)


@cuda.jit(device=True)
def rank_both(bwt, code, start, stop):
    """Return the ranks of a base at both ends of an SA interval, reading one or two blocks."""
    words, separator_rows, groups = bwt.words, bwt.separator_rows, bwt.groups
    if len(groups) > 2:
        return (
            rank(words, separator_rows, groups, code, start),
            rank(words, separator_rows, groups, code, stop),
        )
    block = block_of(groups, start)
    counts = load_counts(words, groups, block)
    low, high = load_planes(words, groups, block, 0)
    at_start = rank_in(bwt, block, counts, low, high, code, start)
    last_block = block_of(groups, stop)
    if last_block != block:
        counts = load_counts(words, groups, last_block)
        low, high = load_planes(words, groups, last_block, 0)
    return at_start, rank_in(bwt, last_block, counts, low, high, code, stop)


@cuda.jit(device=True)
def ranks_both(bwt, start, stop):
    """Return the ranks of A, C, G and T at both ends of an SA interval."""
    words, separator_rows, groups = bwt.words, bwt.separator_rows, bwt.groups
    if len(groups) > 2:
        return (
            ranks(words, separator_rows, groups, start),
            ranks(words, separator_rows, groups, stop),
        )
    block = block_of(groups, start)
    counts = load_counts(words, groups, block)
    low, high = load_planes(words, groups, block, 0)
    at_start = ranks_in(bwt, block, counts, low, high, start)
    last_block = block_of(groups, stop)
    if last_block != block:
        counts = load_counts(words, groups, last_block)
        low, high = load_planes(words, groups, last_block, 0)
    return at_start, ranks_in(bwt, last_block, counts, low, high, stop)
