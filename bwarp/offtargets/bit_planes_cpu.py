"""A stretch of the genome as bit planes, and 64 bases cut out of them wherever they begin.

base       A  C  G  T        plane word i holds bases 64 i to 64 i + 63 of the stretch,
high bit   0  0  1  1        the first in bit 0
low bit    0  1  0  1
"""

import numba
import numpy as np

__all__ = ["bits_at", "planes_of", "reversed_bits"]

_inlined = numba.njit(nogil=True, forceinline=True)


@numba.njit(cache=True, nogil=True)
def planes_of(packed, first_word, n_words, low, high):
    """Write both planes of `n_words` words, 64 bases each.

    Parameters
    ----------
    packed : ndarray, dtype=uint64
        As `bwarp.sequence.pack` makes it.
    first_word : int
        Number of the first word; what lies before or behind the genome is A.
    low, high : ndarray, shape=(n_words,), dtype=uint64
    """
    for i in range(n_words):
        low_word = high_word = np.uint64(0)
        for half in range(2):
            at = 2 * (first_word + i) + half
            if 0 <= at < packed.size:
                # Reversed, a base's high bit comes first.
                word = reversed_bits(packed[at])
                high_word |= _even_bits(word) << np.uint64(32 * half)
                low_word |= _even_bits(word >> np.uint64(1)) << np.uint64(32 * half)
        low[i] = low_word
        high[i] = high_word


@_inlined
def _even_bits(word):
    """Bits 0, 2, 4, ... of a word, packed."""
    word &= np.uint64(0x5555555555555555)
    word = (word | word >> np.uint64(1)) & np.uint64(0x3333333333333333)
    word = (word | word >> np.uint64(2)) & np.uint64(0x0F0F0F0F0F0F0F0F)
    word = (word | word >> np.uint64(4)) & np.uint64(0x00FF00FF00FF00FF)
    word = (word | word >> np.uint64(8)) & np.uint64(0x0000FFFF0000FFFF)
    return (word | word >> np.uint64(16)) & np.uint64(0x00000000FFFFFFFF)


@_inlined
def _swapped(word, shift, mask):
    return (word >> shift) & mask | (word & mask) << shift


@_inlined
def reversed_bits(word):
    """The bits of a word from the last to the first."""
    word = _swapped(word, np.uint64(1), np.uint64(0x5555555555555555))
    word = _swapped(word, np.uint64(2), np.uint64(0x3333333333333333))
    word = _swapped(word, np.uint64(4), np.uint64(0x0F0F0F0F0F0F0F0F))
    word = _swapped(word, np.uint64(8), np.uint64(0x00FF00FF00FF00FF))
    word = _swapped(word, np.uint64(16), np.uint64(0x0000FFFF0000FFFF))
    return word << np.uint64(32) | word >> np.uint64(32)


@_inlined
def bits_at(plane, at):
    """64 bits of a plane from bit `at` on; a word must follow the one that holds it."""
    word = np.uint64(at) >> np.uint64(6)
    shift = np.uint64(at) & np.uint64(63)
    following = plane[word + np.uint64(1)]
    return plane[word] >> shift | following << np.uint64(1) << (np.uint64(63) - shift)
