"""A lower bound of edits, by 4-mers of a read that stand on no diagonal within reach.

The 4-mers lie side by side in the read, so an edit spoils one of them at most. One without an edit
stands in the genome on a diagonal no farther from the seed's than there are gap bases. So an
alignment has at least as many edits as there are 4-mers that stand on none of these diagonals.

    read      ACGT|TTGA|GATT|...     4-mers
    k = -1      .    .    .
    k =  0   stands  .  stands
    k =  1      .    .    .          the second one has an edit

Of hits that Alu repeats and the like give, 4-mers drop more than 8-mers do, for there are twice as
many, and take no longer. That some stand by chance, one in 256 on a diagonal, counts for less. To
compare how often a letter is in parts of the read and of the genome takes longer, and drops fewer:
like repeats have like letters.
"""

import numba
import numpy as np

from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import population_count

__all__ = ["cannot_align", "least_kmers_spoiled"]

_KMERS = 0x1111111111111111


@numba.njit(nogil=True, inline="always")
def _window(blocks, at, plane):
    """64 bits of a plane from a position on, and the 64 after them."""
    first = np.uint64(3) * (np.uint64(at) >> np.uint64(6)) + np.uint64(plane)
    shift = np.uint64(at) & np.uint64(63)
    a, b, c = blocks[first], blocks[first + np.uint64(3)], blocks[first + np.uint64(6)]
    back = np.uint64(63) - shift
    return a >> shift | (b << np.uint64(1)) << back, b >> shift | (c << np.uint64(1)) << back


@numba.njit(nogil=True, inline="always")
def cannot_align(genome, diagonal, reads, first, length, gaps, edits):
    """Whether a read has more edits than these wherever a seed lies on this diagonal.

    Near the ends of the genome, where windows of 4-mers would end beyond its blocks, nobody knows.
    """
    last = 64 * (genome.size // 3 - 4) - length - gaps
    return (
        gaps <= diagonal <= last
        and least_kmers_spoiled(genome, diagonal, reads, first, length, gaps, edits) > edits
    )


@compiled
def least_kmers_spoiled(genome, diagonal, reads, first, length, gaps, most):
    """How many 4-mers stand on no diagonal within `gaps` of this one; at most 31 gaps.

    Counting ends above `most`.
    """
    spoiled = np.int64(0)
    for at in range(0, length - 3, 64):
        low, _ = _window(reads, first + at, 0)
        high, _ = _window(reads, first + at, 1)
        ambiguous, _ = _window(reads, first + at, 2)
        window = diagonal + at - gaps
        low_a, low_b = _window(genome, window, 0)
        high_a, high_b = _window(genome, window, 1)
        kmers = ~np.uint64(0)
        for k in range(2 * gaps + 1):
            shift = np.uint64(k)
            back = np.uint64(63 - k)
            x = low ^ (low_a >> shift | (low_b << np.uint64(1)) << back)
            x |= high ^ (high_a >> shift | (high_b << np.uint64(1)) << back)
            x |= ambiguous
            x |= x >> np.uint64(2)
            x |= x >> np.uint64(1)
            kmers &= x
        kmers &= np.uint64(_KMERS)
        n = (length - at) >> 2
        if n < 16:
            kmers &= (np.uint64(1) << np.uint64(4 * n)) - np.uint64(1)
        spoiled += np.int64(population_count(kmers))
        if spoiled > most:
            break
    return spoiled
