"""Rank, LF-mapping and the base of a row, for one row or the two ends of an interval, on the GPU.

At an occ_rate of 64 a block is one 32-byte sector, read by two 16-byte loads: that one read of
memory is what a rank costs. The two ends of a short interval mostly lie in one block, and then it
is read once. The arguments that the functions share are those of `bwarp.index.rank_cpu`; `groups`
is passed to kernels as a tuple here too, so that each rate has code of its own:

    words             BWT.words on the device
    separator_rows    read only for the few blocks that say they have such rows
    groups            BWT.groups: its length is the blocks' geometry

Rows are uint32: half the registers of 64 bits. Any sum or product of such numbers is 64 bits wide
to Numba until it is cut back.
"""

from numba import cuda, uint32, uint64

from bwarp.gpu.ptx import load_uint32x2, load_uint32x4

__all__ = ["base_at", "block_of", "lf_step", "rank", "rank_both", "ranks_both"]

KERNEL_SIGNATURES = {}

_SEPARATOR = 4


@cuda.jit(device=True)
def block_of(groups, row):
    """The number of the block of a row."""
    return uint32(row // uint32(32 * len(groups)))


@cuda.jit(device=True)
def load_counts(words, groups, block):
    """A block's counts of C, G and T and its word of separators."""
    at = uint32(block * uint32(4 + 2 * len(groups)))
    if len(groups) % 2 == 0:
        return load_uint32x4(words, at)
    c, g = load_uint32x2(words, at)
    t, separators = load_uint32x2(words, at + uint32(2))
    return c, g, t, separators


@cuda.jit(device=True)
def load_planes(words, groups, block, pair):
    """Low and high bits of 64 rows of a block, or of its last 32."""
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
def bits_below(offset, first):
    """A mask of the 64 rows from row `first` of a block on that lie below an offset in it."""
    if offset <= first:
        return uint64(0)
    if offset - first >= uint32(64):
        return uint64(0xFFFFFFFFFFFFFFFF)
    return uint64((uint64(1) << uint64(offset - first)) - uint64(1))


@cuda.jit(device=True)
def separators_below(separator_rows, first, row):
    """How many separator rows, from number `first` on, lie below a row."""
    number = first
    while number < uint32(separator_rows.size) and separator_rows[number] < row:
        number = uint32(number + uint32(1))
    return uint32(number - first)


@cuda.jit(device=True)
def rows_with(low, high, code):
    """A mask of the rows whose base is `code`."""
    everything = uint64(0xFFFFFFFFFFFFFFFF)
    flip_low = uint64(0) if code & uint32(1) else everything
    flip_high = uint64(0) if code & uint32(2) else everything
    return (low ^ flip_low) & (high ^ flip_high)


@cuda.jit(device=True)
def count_before(groups, block, counts, code):
    """How many rows before a block have the base `code`."""
    c, g, t, separators = counts
    first = uint32(block * uint32(32 * len(groups)))
    a = uint32(first - c - g - t - (separators >> uint32(1)))
    low_pair = c if code & uint32(1) else a
    high_pair = t if code & uint32(1) else g
    return high_pair if code & uint32(2) else low_pair


@cuda.jit(device=True)
def rank_in(separator_rows, groups, block, counts, low, high, code, row):
    """The rank at a row of a block of at most 64 rows that has been read."""
    below = bits_below(uint32(row - block * uint32(32 * len(groups))), uint32(0))
    found = uint32(
        count_before(groups, block, counts, code)
        + uint32(cuda.popc(rows_with(low, high, code) & below))
    )
    separators = counts[3]
    if separators & uint32(1) and code == uint32(0):
        found = uint32(
            found - separators_below(separator_rows, uint32(separators >> uint32(1)), row)
        )
    return found


@cuda.jit(device=True)
def rank(words, separator_rows, groups, code, row):
    """How many of the rows below `row` have the base `code` (0 to 3)."""
    block = block_of(groups, row)
    offset = uint32(row - block * uint32(32 * len(groups)))
    counts = load_counts(words, groups, block)
    found = count_before(groups, block, counts, code)
    for pair in range((len(groups) + 1) // 2):
        if pair == 0 or uint32(64 * pair) < offset:
            low, high = load_planes(words, groups, block, pair)
            below = bits_below(offset, uint32(64 * pair))
            found = uint32(found + uint32(cuda.popc(rows_with(low, high, code) & below)))
    separators = counts[3]
    if separators & uint32(1) and code == uint32(0):
        found = uint32(
            found - separators_below(separator_rows, uint32(separators >> uint32(1)), row)
        )
    return found


@cuda.jit(device=True)
def rank_both(words, separator_rows, groups, code, start, stop):
    """The ranks of a base at both ends of an interval: one block is read, or two."""
    if len(groups) > 2:
        return (
            rank(words, separator_rows, groups, code, start),
            rank(words, separator_rows, groups, code, stop),
        )
    block = block_of(groups, start)
    counts = load_counts(words, groups, block)
    low, high = load_planes(words, groups, block, 0)
    at_start = rank_in(separator_rows, groups, block, counts, low, high, code, start)
    last_block = block_of(groups, stop)
    if last_block != block:
        counts = load_counts(words, groups, last_block)
        low, high = load_planes(words, groups, last_block, 0)
    return at_start, rank_in(separator_rows, groups, last_block, counts, low, high, code, stop)


@cuda.jit(device=True)
def ranks_in(separator_rows, groups, block, counts, low, high, row):
    """The ranks of A, C, G and T at a row of a block of at most 64 rows that has been read."""
    below = bits_below(uint32(row - block * uint32(32 * len(groups))), uint32(0))
    c, g, t, separators = counts
    low &= below
    high &= below
    both = uint32(cuda.popc(low & high))
    c = uint32(c + uint32(cuda.popc(low)) - both)
    g = uint32(g + uint32(cuda.popc(high)) - both)
    t = uint32(t + both)
    before = uint32(separators >> uint32(1))
    if separators & uint32(1):
        before = uint32(before + separators_below(separator_rows, before, row))
    return uint32(row - c - g - t - before), c, g, t


@cuda.jit(device=True)
def ranks(words, separator_rows, groups, row):
    """The ranks of A, C, G and T at a row, from one read of its block."""
    block = block_of(groups, row)
    offset = uint32(row - block * uint32(32 * len(groups)))
    c, g, t, separators = load_counts(words, groups, block)
    for pair in range((len(groups) + 1) // 2):
        if pair == 0 or uint32(64 * pair) < offset:
            low, high = load_planes(words, groups, block, pair)
            below = bits_below(offset, uint32(64 * pair))
            both = uint32(cuda.popc(low & high & below))
            c = uint32(c + uint32(cuda.popc(low & below)) - both)
            g = uint32(g + uint32(cuda.popc(high & below)) - both)
            t = uint32(t + both)
    before = uint32(separators >> uint32(1))
    if separators & uint32(1):
        before = uint32(before + separators_below(separator_rows, before, row))
    return uint32(row - c - g - t - before), c, g, t


@cuda.jit(device=True)
def ranks_both(words, separator_rows, groups, start, stop):
    """The ranks of A, C, G and T at the start of an interval, and at its stop."""
    if len(groups) > 2:
        return (
            ranks(words, separator_rows, groups, start),
            ranks(words, separator_rows, groups, stop),
        )
    block = block_of(groups, start)
    counts = load_counts(words, groups, block)
    low, high = load_planes(words, groups, block, 0)
    at_start = ranks_in(separator_rows, groups, block, counts, low, high, start)
    last_block = block_of(groups, stop)
    if last_block != block:
        counts = load_counts(words, groups, last_block)
        low, high = load_planes(words, groups, last_block, 0)
    return at_start, ranks_in(separator_rows, groups, last_block, counts, low, high, stop)


@cuda.jit(device=True)
def base_at(words, separator_rows, groups, row):
    """The base of a row (0 to 3), or 4 for a separator."""
    block = block_of(groups, row)
    offset = uint32(row - block * uint32(32 * len(groups)))
    plane = uint32(
        block * uint32(4 + 2 * len(groups)) + uint32(4) + uint32(2) * (offset >> uint32(5))
    )
    low, high = load_uint32x2(words, plane)
    bit = uint32(offset & uint32(31))
    code = uint32(((low >> bit) & uint32(1)) | (((high >> bit) & uint32(1)) << uint32(1)))
    if code == uint32(0):
        separators = load_counts(words, groups, block)[3]
        if separators & uint32(1):
            number = uint32(separators >> uint32(1))
            number = uint32(number + separators_below(separator_rows, number, row))
            if number < separator_rows.size and separator_rows[number] == row:
                code = uint32(_SEPARATOR)
    return code


@cuda.jit(device=True)
def lf_step(words, separator_rows, groups, first_rows, text_start, row):
    """The row of the suffix one base longer; `bwarp.index.rank_cpu.lf_step` tells of separators."""
    code = base_at(words, separator_rows, groups, row)
    if code < uint32(_SEPARATOR):
        return uint32(first_rows[code] + rank(words, separator_rows, groups, code, row))
    number = uint32(load_counts(words, groups, block_of(groups, row))[3] >> uint32(1))
    number = uint32(number + separators_below(separator_rows, number, row))
    if number == text_start:
        return uint32(0)
    return uint32(number + uint32(1)) if number < text_start else number
