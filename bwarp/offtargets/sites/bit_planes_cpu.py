"""A stretch of the genome as bit planes, and 64 bases cut out of them wherever they begin.

base       A  C  G  T        plane word i holds bases 64 i to 64 i + 63 of the stretch,
high bit   0  0  1  1        the first in bit 0
low bit    0  1  0  1
"""

import numba
import numpy as np

from bwarp.mapping.reads.base_bits_cpu import bits_of_packed, shifted
from bwarp.runtime.compiled_code import compiled

__all__ = ["bits_at", "planes_of"]

_inlined = numba.njit(nogil=True, forceinline=True)


@compiled
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
        low[i], high[i] = bits_of_packed(packed, first_word + i)


@_inlined
def bits_at(plane, at):
    """64 bits of a plane from bit `at` on; a word must follow the one that holds it."""
    word = np.uint64(at) >> np.uint64(6)
    shift = np.uint64(at) & np.uint64(63)
    return shifted(plane[word], plane[word + np.uint64(1)], shift)
