"""Bases as bits on the CPU, 64 a block, so that 64 are compared at a time wherever they begin.

    block      64 bits 0        1                2
               low bits of 64   high bits of 64  ambiguous       base i: bit i

Three eighths of a byte a base: the 150 bases of a read lie in one to three cache lines. Reads stay
codes, a byte a base. They are read one after another, and a vector of codes becomes bits in fewer
steps than 64 bits are cut out of two blocks.
"""

import numba
import numpy as np

from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import (
    VECTOR_BYTES,
    add,
    equal,
    fill,
    greater,
    load,
    mask_bits,
    mask_of,
    prefetch,
    select,
    store,
)
from bwarp.runtime.threads import for_each_range

#: Bases of a block, and its words.
_BASES, _WORDS = 64, 3

#: How many stretches ahead bases are prefetched.
_AHEAD = 12

#: Bytes behind the codes of bases that writing them may touch.
SLACK = _BASES - 1

#: Compiled into callers by LLVM: Numba's own inlining takes longer, and counts references in loops.
_inlined = numba.njit(nogil=True, forceinline=True)


def blocks_of_packed(
    packed: np.ndarray, n_bases: int, stretches: np.ndarray, threads: int = 1
) -> np.ndarray:
    """Blocks of a packed genome, without a byte a base in between.

    Parameters
    ----------
    packed : ndarray, shape=(n_bases / 32 rounded up or more,), dtype=uint64
        2 bits a base as `bwarp.sequence.pack` lays them out.
    stretches : ndarray, shape=(n, 2), dtype=int64
        Where ambiguous bases begin and end.

    Returns
    -------
    blocks : ndarray, shape=(3 * n_blocks,), dtype=uint64
        With a block of ambiguous bases beyond the last base, so that two neighbouring ones can be
        read wherever a base is.
    """
    n_blocks = n_bases // _BASES + 2
    blocks = np.empty(_WORDS * n_blocks, np.uint64)
    for_each_range(
        lambda first, last: _turn_words(packed, n_bases, blocks, first, last), n_blocks, threads
    )
    _mark_ambiguous(np.ascontiguousarray(stretches), blocks)
    return blocks


def copy_bases(
    blocks: np.ndarray, starts: np.ndarray, lengths: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Stretches of bases out of blocks, one after another, a byte a base.

    Parameters
    ----------
    starts, lengths : ndarray, shape=(count,), dtype=int64 and int32
        Of every stretch.

    Returns
    -------
    codes : ndarray, shape=(sum of lengths + SLACK,), dtype=uint8
    copied_starts : ndarray, shape=(count,), dtype=int64
        Where each stretch begins in `codes`.
    """
    stops = np.cumsum(lengths, dtype=np.int64)
    codes = np.empty((stops[-1] if stops.size else 0) + SLACK, np.uint8)
    copied_starts = stops - lengths
    _copy_bases(blocks, starts, lengths, codes, copied_starts)
    return codes, copied_starts


@compiled
def _turn_words(packed, n_bases, blocks, first, last):
    """Blocks `first` to `last` of packed bases.

    The first base of a word is in its two highest bits, and in a block's lowest.
    """
    for block in range(first, last):
        low, high = bits_of_packed(packed, block)
        here = n_bases - _BASES * block
        inside = np.uint64(0)
        if here > 0:
            inside = ~np.uint64(0) >> np.uint64(_BASES - min(here, _BASES))
        blocks[_WORDS * block] = low & inside
        blocks[_WORDS * block + 1] = high & inside
        blocks[_WORDS * block + 2] = ~inside


@_inlined
def bits_of_packed(packed, block):
    """Low and high bits of the 64 bases of a block; what lies before or behind the genome is A."""
    low = high = np.uint64(0)
    for half in range(2):
        at = 2 * block + half
        if 0 <= at < packed.size:
            # Turned, a base's high bit comes first.
            word = turned(packed[at])
            high |= _even_bits(word) << np.uint64(32 * half)
            low |= _even_bits(word >> np.uint64(1)) << np.uint64(32 * half)
    return low, high


@_inlined
def turned(word):
    """The bits of a word from the last to the first."""
    word = _swapped(word, np.uint64(1), np.uint64(0x5555555555555555))
    word = _swapped(word, np.uint64(2), np.uint64(0x3333333333333333))
    word = _swapped(word, np.uint64(4), np.uint64(0x0F0F0F0F0F0F0F0F))
    word = _swapped(word, np.uint64(8), np.uint64(0x00FF00FF00FF00FF))
    word = _swapped(word, np.uint64(16), np.uint64(0x0000FFFF0000FFFF))
    return word << np.uint64(32) | word >> np.uint64(32)


@_inlined
def _swapped(word, shift, mask):
    return (word >> shift) & mask | (word & mask) << shift


@_inlined
def _even_bits(word):
    """Bits 0, 2, 4, ... of a word, packed."""
    word &= np.uint64(0x5555555555555555)
    word = (word | word >> np.uint64(1)) & np.uint64(0x3333333333333333)
    word = (word | word >> np.uint64(2)) & np.uint64(0x0F0F0F0F0F0F0F0F)
    word = (word | word >> np.uint64(4)) & np.uint64(0x00FF00FF00FF00FF)
    word = (word | word >> np.uint64(8)) & np.uint64(0x0000FFFF0000FFFF)
    return (word | word >> np.uint64(16)) & np.uint64(0x00000000FFFFFFFF)


@compiled
def _mark_ambiguous(stretches, blocks):
    for i in range(len(stretches)):
        start, stop = stretches[i, 0], stretches[i, 1]
        while start < stop:
            block, bit = start // _BASES, start % _BASES
            n = min(_BASES - bit, stop - start)
            marked = (~np.uint64(0) >> np.uint64(_BASES - n)) << np.uint64(bit)
            blocks[_WORDS * block] &= ~marked
            blocks[_WORDS * block + 1] &= ~marked
            blocks[_WORDS * block + 2] |= marked
            start += n


@_inlined
def bits_at(blocks, at):
    """Low bits, high bits and ambiguity of 64 bases that begin anywhere."""
    first = np.uint64(_WORDS) * (np.uint64(at) >> np.uint64(6))
    shift = np.uint64(at) & np.uint64(63)
    return (
        shifted(blocks[first], blocks[first + np.uint64(3)], shift),
        shifted(blocks[first + np.uint64(1)], blocks[first + np.uint64(4)], shift),
        shifted(blocks[first + np.uint64(2)], blocks[first + np.uint64(5)], shift),
    )


@_inlined
def shifted(word, following, shift):
    """64 bits of two words, from bit `shift` (0 to 63) of the first on."""
    return word >> shift | following << np.uint64(1) << (np.uint64(63) - shift)


@_inlined
def bits_of_codes(codes, first, n):
    """Low bits, high bits and ambiguity of n codes, 1 to 64; of those after them, anything."""
    low = high = ambiguous = np.uint64(0)
    if first + _BASES <= codes.size:
        for part in range(0, _BASES, VECTOR_BYTES):
            bases = load(codes, first + part)
            three = np.uint64(mask_bits(equal(bases, fill(np.uint8(3)))))
            one = np.uint64(mask_bits(equal(bases, fill(np.uint8(1))))) | three
            two = np.uint64(mask_bits(equal(bases, fill(np.uint8(2))))) | three
            more = np.uint64(mask_bits(greater(bases, fill(np.uint8(3)))))
            low |= one << np.uint64(part)
            high |= two << np.uint64(part)
            ambiguous |= more << np.uint64(part)
    else:
        for i in range(n):
            code = np.uint64(codes[first + i])
            low |= (code & np.uint64(1)) << np.uint64(i)
            high |= (code >> np.uint64(1) & np.uint64(1)) << np.uint64(i)
            ambiguous |= np.uint64(code > np.uint64(3)) << np.uint64(i)
    return low, high, ambiguous


@_inlined
def differing(blocks, at, codes, first, n):
    """Which of `n` bases, 1 to 64, of blocks and of codes differ or are ambiguous: a bit each, the
    first the lowest."""
    low, high, ambiguous = bits_at(blocks, at)
    low_too, high_too, ambiguous_too = bits_of_codes(codes, first, n)
    bits = low ^ low_too | high ^ high_too | ambiguous | ambiguous_too
    return bits & (~np.uint64(0) >> np.uint64(_BASES - n))


@_inlined
def base_at(blocks, at):
    """The code of a base."""
    first = np.uint64(_WORDS) * (np.uint64(at) >> np.uint64(6))
    bit = np.uint64(at) & np.uint64(63)
    low, high = blocks[first] >> bit, blocks[first + np.uint64(1)] >> bit
    ambiguous = blocks[first + np.uint64(2)] >> bit
    one = np.uint64(1)
    # Ambiguous bases have neither a low nor a high bit.
    return low & one | (high & one) << one | (ambiguous & one) << np.uint64(2)


@_inlined
def put_bases(out, at, blocks, start, stop):
    """Write the codes of bases from `start` to `stop`; returns where in `out` they end.

    Whole blocks are written: `out` must have room for `SLACK` more, and is filled from its start.
    """
    while start < stop:
        low, high, ambiguous = bits_at(blocks, start)
        n = min(stop - start, _BASES)
        nothing = fill(np.uint8(0))
        for part in range(0, _BASES, VECTOR_BYTES):
            bits = np.uint64(part)
            codes = select(mask_of(low >> bits, nothing), fill(np.uint8(1)), nothing)
            codes = add(codes, select(mask_of(high >> bits, nothing), fill(np.uint8(2)), nothing))
            codes = add(
                codes, select(mask_of(ambiguous >> bits, nothing), fill(np.uint8(4)), nothing)
            )
            store(out, at + part, codes)
        start += n
        at += n
    return at


@compiled
def _copy_bases(blocks, starts, lengths, codes, copied_starts):
    for i in range(starts.size):
        if i + _AHEAD < starts.size:
            prefetch_bases(blocks, starts[i + _AHEAD])
        put_bases(codes, copied_starts[i], blocks, starts[i], starts[i] + lengths[i])


@_inlined
def prefetch_bases(blocks, at):
    """Ask for the cache lines of the 150 bases from one on, which may lie anywhere."""
    word = _WORDS * (at >> 6)
    for line in range(0, 24, 8):
        prefetch(blocks, word + line)
