"""Bases as bits on the CPU, in blocks of 64, to compare 64 bases at a time at any position.

    block      64 bits 0        1                2
               low bits of 64   high bits of 64  ambiguous       base i: bit i

Each base takes three eighths of a byte: the 150 bases of a read lie in one to three cache lines.
Reads remain codes of one byte per base, because they are read sequentially, and a vector of codes
is converted to bits in fewer steps than 64 bits are cut from two blocks.
"""

import numpy as np

from bwarp.runtime.compiled_code import compiled, inner
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

#: Bases and words per block.
_BASES, _WORDS = 64, 3

#: Number of stretches by which bases are prefetched ahead.
_AHEAD = 12

#: Bytes after the codes of bases that may be overwritten.
SLACK = _BASES - 1

#: Inlined by LLVM; Numba's inlining takes longer, and counts references in loops.
_inlined = inner(nogil=True, forceinline=True)


def blocks_of_packed(
    packed: np.ndarray, n_bases: int, stretches: np.ndarray, threads: int = 1
) -> np.ndarray:
    """Convert a packed genome to blocks, without an intermediate byte per base.

    Parameters
    ----------
    packed : ndarray, shape=(n_bases / 32 rounded up or more,), dtype=uint64
        2 bits per base in the layout of `bwarp.sequence.pack`.
    stretches : ndarray, shape=(n, 2), dtype=int64
        Starts and ends of stretches of ambiguous bases.

    Returns
    -------
    blocks : ndarray, shape=(3 * n_blocks,), dtype=uint64
        With a block of ambiguous bases after the last base, so that two adjacent blocks can be
        read at any base.
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
    """Copy stretches of bases from blocks, concatenated, one byte per base.

    Parameters
    ----------
    starts, lengths : ndarray, shape=(count,), dtype=int64 and int32
        Start and length of each stretch.

    Returns
    -------
    codes : ndarray, shape=(sum of lengths + SLACK,), dtype=uint8
    copied_starts : ndarray, shape=(count,), dtype=int64
        Start of each stretch in `codes`.
    """
    stops = np.cumsum(lengths, dtype=np.int64)
    codes = np.empty((stops[-1] if stops.size else 0) + SLACK, np.uint8)
    copied_starts = stops - lengths
    _copy_bases(blocks, starts, lengths, codes, copied_starts)
    return codes, copied_starts


@compiled
def _turn_words(packed, n_bases, blocks, first, last):
    """Convert packed bases to blocks `first` to `last`.

    The first base is in the two highest bits of a word, and in the lowest bits of a block.
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
    """Return low and high bits of the 64 bases of a block, with A outside the genome."""
    low = high = np.uint64(0)
    for half in range(2):
        at = 2 * block + half
        if 0 <= at < packed.size:
            # After reversal, the high bit of a base comes first.
            word = turned(packed[at])
            high |= _even_bits(word) << np.uint64(32 * half)
            low |= _even_bits(word >> np.uint64(1)) << np.uint64(32 * half)
    return low, high


@_inlined
def turned(word):
    """Return the bits of a word in reverse order."""
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
    """Return bits 0, 2, 4, ... of a word, packed."""
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
    """Return low bits, high bits and ambiguity of 64 bases from any position on."""
    first = np.uint64(_WORDS) * (np.uint64(at) >> np.uint64(6))
    shift = np.uint64(at) & np.uint64(63)
    return (
        shifted(blocks[first], blocks[first + np.uint64(3)], shift),
        shifted(blocks[first + np.uint64(1)], blocks[first + np.uint64(4)], shift),
        shifted(blocks[first + np.uint64(2)], blocks[first + np.uint64(5)], shift),
    )


@_inlined
def shifted(word, following, shift):
    """Return 64 bits of two words, from bit `shift` (0 to 63) of the first on."""
    return word >> shift | following << np.uint64(1) << (np.uint64(63) - shift)


@_inlined
def bits_of_codes(codes, first, n):
    """Return low bits, high bits and ambiguity of n codes, 1 to 64; further bits are undefined."""
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
    """Return a mask of the `n` bases, 1 to 64, of blocks and of codes that differ or are ambiguous;
    the first base is the lowest bit."""
    low, high, ambiguous = bits_at(blocks, at)
    low_too, high_too, ambiguous_too = bits_of_codes(codes, first, n)
    bits = low ^ low_too | high ^ high_too | ambiguous | ambiguous_too
    return bits & (~np.uint64(0) >> np.uint64(_BASES - n))


@_inlined
def base_at(blocks, at):
    """Return the code of a base."""
    first = np.uint64(_WORDS) * (np.uint64(at) >> np.uint64(6))
    bit = np.uint64(at) & np.uint64(63)
    low, high = blocks[first] >> bit, blocks[first + np.uint64(1)] >> bit
    ambiguous = blocks[first + np.uint64(2)] >> bit
    one = np.uint64(1)
    # Ambiguous bases have neither a low nor a high bit.
    return low & one | (high & one) << one | (ambiguous & one) << np.uint64(2)


@_inlined
def put_bases(out, at, blocks, start, stop):
    """Write the codes of bases from `start` to `stop`; return their end in `out`.

    Whole blocks are written: `out` must have room for `SLACK` more bytes, and is filled in order.
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
    """Prefetch the cache lines of 150 bases from any position on."""
    word = _WORDS * (at >> 6)
    for line in range(0, 24, 8):
        prefetch(blocks, word + line)
