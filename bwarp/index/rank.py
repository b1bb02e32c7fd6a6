"""Rank, LF-mapping and the base of an SA row: the source that each engine compiles for itself.

Every function reads one block (see `bwarp.index.fm_index`). Common arguments:

    words             BWT.words: the blocks as one flat array
    separator_rows    read only for the few blocks that have such rows
    groups            BWT.groups: its length gives the geometry of blocks
"""

from collections.abc import Callable
from types import SimpleNamespace

from numpy import uint64

from bwarp.runtime.compiled_code import inner
from bwarp.runtime.simd import population_count

#: The result of `base_at` for a separator.
SEPARATOR = 4

_ALL = 0xFFFFFFFFFFFFFFFF


def rank_functions(
    jit: Callable,
    jit_loop: Callable,
    number: Callable,
    load_pair: Callable,
    load_counts: Callable,
    load_planes: Callable,
    load_separators: Callable,
    count_bits: Callable,
) -> SimpleNamespace:
    """Return the functions of one engine, by name.

    Parameters
    ----------
    jit, jit_loop : decorator
        Compile functions that compiled code calls: straight code, and the one loop.
    number : Numba type
        The unsigned type of rows and codes. Sums are cast to it, because Numba widens them.
    load_pair : function of words, index
        Returns the two words at the index.
    load_counts : function of words, groups, block
        Returns the counts of C, G and T of a block and its separator word.
    load_planes : function of words, groups, block, pair
        Returns the low and high bits of 64 rows of a block, or of its last 32.
    load_separators : function of words, groups, block, code
        Returns the separator word of a block, needed for code 0 only: a CPU branch costs more than
        the read, a GPU branch less.
    count_bits : function of uint64
    """

    @jit
    def block_of(groups, row):
        """Return the number of the block of a row."""
        return number(row // number(32 * len(groups)))

    @jit
    def bits_below(offset, first):
        """Return a mask of the 64 rows from `first` of a block on that precede an offset in it."""
        if offset <= first:
            return uint64(0)
        if offset - first >= number(64):
            return uint64(_ALL)
        return uint64((uint64(1) << uint64(offset - first)) - uint64(1))

    @jit_loop
    def separators_below(separator_rows, first, row):
        """Count the separator rows, from number `first` on, that precede a row."""
        at = first
        while at < number(separator_rows.size) and separator_rows[at] < row:
            at = number(at + number(1))
        return number(at - first)

    @jit
    def rows_with(low, high, code):
        """Return a mask of the rows whose base is `code`."""
        flip_low = uint64(0) if code & number(1) else uint64(_ALL)
        flip_high = uint64(0) if code & number(2) else uint64(_ALL)
        return (low ^ flip_low) & (high ^ flip_high)

    @jit
    def count_before(groups, block, counts, code):
        """Count the rows before a block that have the base `code`.

        Branch-free, because the next base is unpredictable.
        """
        c, g, t, separators = counts
        first = number(block * number(32 * len(groups)))
        a = number(first - c - g - t - (separators >> number(1)))
        low_pair = c if code & number(1) else a
        high_pair = t if code & number(1) else g
        return high_pair if code & number(2) else low_pair

    @jit
    def without_separators(separator_rows, separators, code, row, found):
        """Correct a rank at a row for separators, which are stored as A.

        One combined test that is rarely true; a test for A alone would be unpredictable.
        """
        if separators & number(1) > code:
            first = number(separators >> number(1))
            found = number(found - separators_below(separator_rows, first, row))
        return found

    @jit
    def rank(words, separator_rows, groups, code, row):
        """Count the rows before `row` with the base `code` (0 to 3)."""
        row, code = number(row), number(code)
        block = block_of(groups, row)
        offset = number(row - block * number(32 * len(groups)))
        counts = load_counts(words, groups, block)
        found = count_before(groups, block, counts, code)
        for pair in range((len(groups) + 1) // 2):
            if pair == 0 or number(64 * pair) < offset:
                low, high = load_planes(words, groups, block, pair)
                below = bits_below(offset, number(64 * pair))
                found = number(found + number(count_bits(rows_with(low, high, code) & below)))
        return without_separators(separator_rows, counts[3], code, row, found)

    @jit
    def add_bits(low, high, below, c, g, t):
        """Add the C, G and T of masked rows to their counts."""
        both = number(count_bits(low & high & below))
        return (
            number(c + number(count_bits(low & below)) - both),
            number(g + number(count_bits(high & below)) - both),
            number(t + both),
        )

    @jit
    def with_a(separator_rows, separators, row, c, g, t):
        """Return the ranks of A, C, G and T at a row from those of C, G and T."""
        before = number(separators >> number(1))
        if separators & number(1):
            before = number(before + separators_below(separator_rows, before, row))
        return number(row - c - g - t - before), c, g, t

    @jit
    def ranks(words, separator_rows, groups, row):
        """Return the ranks of A, C, G and T at a row, from one read of its block."""
        row = number(row)
        block = block_of(groups, row)
        offset = number(row - block * number(32 * len(groups)))
        c, g, t, separators = load_counts(words, groups, block)
        for pair in range((len(groups) + 1) // 2):
            if pair == 0 or number(64 * pair) < offset:
                low, high = load_planes(words, groups, block, pair)
                c, g, t = add_bits(low, high, bits_below(offset, number(64 * pair)), c, g, t)
        return with_a(separator_rows, separators, row, c, g, t)

    @jit
    def base_at(words, separator_rows, groups, row):
        """Return the base of a row (0 to 3), or 4 for a separator."""
        row = number(row)
        block = block_of(groups, row)
        offset = number(row - block * number(32 * len(groups)))
        plane = number(
            block * number(4 + 2 * len(groups)) + number(4) + number(2) * (offset >> number(5))
        )
        low, high = load_pair(words, plane)
        bit = number(offset & number(31))
        code = number(((low >> bit) & number(1)) | (((high >> bit) & number(1)) << number(1)))
        separators = load_separators(words, groups, block, code)
        if separators & number(1) > code:
            at = number(separators >> number(1))
            at = number(at + separators_below(separator_rows, at, row))
            if at < number(separator_rows.size) and separator_rows[at] == row:
                code = number(SEPARATOR)
        return code

    @jit
    def lf_step(words, separator_rows, groups, first_rows, text_start, row):
        """Return the row of the suffix that is one base longer (beta in the paper).

        By definition, the whole text is preceded by its last separator, which is row 0. The rows of
        the other separators follow in the order of `separator_rows`.
        """
        row = number(row)
        code = base_at(words, separator_rows, groups, row)
        if code < number(SEPARATOR):
            return number(first_rows[code] + rank(words, separator_rows, groups, code, row))
        at = number(load_counts(words, groups, block_of(groups, row))[3] >> number(1))
        at = number(at + separators_below(separator_rows, at, row))
        if at == number(text_start):
            return number(0)
        return number(at + number(1)) if at < number(text_start) else at

    return SimpleNamespace(**locals())


# The CPU functions.
#
# Rows and codes are uint64 throughout: each signed index costs a test and an addition, which made a
# search three times slower.


#: Inlined by LLVM. Numba's inlining takes several times as long: callers inline dozens of these.
_inlined = inner(nogil=True, forceinline=True)


@_inlined
def block_start(groups, row):
    """Return where the block of a row begins in the flat array, to prefetch it before a rank."""
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
    _inlined,
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
    """Return the SA interval of ``code + pattern`` from that of a pattern: a backward search step.

    Most intervals are short and within one block, which is read once for both ends.
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
