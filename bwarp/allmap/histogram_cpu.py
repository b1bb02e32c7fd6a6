"""A lower bound of edits from base counts, after Breland et al.: prefix sums and their differences.

The read is cut into pieces. A piece [a, b) on the diagonal of a seed is compared with a window:

    genome   ....[ gaps |   a ............ b   | gaps ]....       all bases to which the piece may
    read                [A C A T G ... C A T T]                   align lie in the window
    counts       A C G T of the window  against  A C G T of the piece

**The bound.** At least ``b - a - sum(min(count in the piece, count in the window))`` bases of the
piece are edits, summed over A, C, G and T; the sum over all pieces is a lower bound of the edits.

Proof. A base of the read that is no edit matches a base of the genome. Both lie on a diagonal that
differs from the seed's by at most one per gap letter of the alignment, hence within the window, and
different bases of the read match different bases of the genome. So no more As of the piece match
than there are in the window, and likewise the other bases; ambiguous ones match nothing and are not
counted. All other bases of the piece are mismatched or inserted, each of which is an edit, and
pieces have no bases in common.

**Pieces.** Short pieces show differences that cancel out in a long one. The window's additional
bases hide differences, and each window has ``2 * gaps`` of them. Therefore, the more gaps are
allowed, the longer the pieces.

**Prefix sums.** The counts of a window are the difference of two sums. Each block of bases has one
sum, with four counts in one number:

    sums    (A + 256 C + 65,536 G + 2**24 T) modulo 2**32, of all bases before the block

In a sum, the four counts carry over into each other. In the difference of two sums they do not,
because each count of a window is less than 256.
"""

import numpy as np

from bwarp.reads.base_bits_cpu import bits_at
from bwarp.runtime.compiled_code import compiled, inner
from bwarp.runtime.simd import population_count

_BASES, _WORDS = 64, 3

#: Bases of a piece without gaps and per gap, and the most of any piece: with gaps on both sides,
#: fewer than 256.
_PIECE, _MOST = 16, 128


@compiled(inline="always")
def piece_length(gaps):
    """Return the maximum length of a piece; both engines use it."""
    return min(_PIECE * (gaps + 1), _MOST)


@compiled
def base_sums(blocks):
    """Return the sums before each block (`bwarp.reads.base_bits_cpu`), dtype uint32."""
    sums = np.empty(blocks.size // _WORDS, np.uint32)
    total = np.uint64(0)
    for block in range(sums.size):
        sums[block] = np.uint32(total)
        first = _WORDS * block
        total += _counts(blocks[first], blocks[first + 1], ~blocks[first + 2])
    return sums


@inner(nogil=True, forceinline=True)
def _counts(low, high, known):
    """Return the four counts of up to 64 bases as one number; `known` marks those to count."""
    t = population_count(low & high & known)
    c = population_count(low & known) - t
    g = population_count(high & known) - t
    a = population_count(known) - c - g - t
    return (
        np.uint64(a)
        | np.uint64(c) << np.uint64(8)
        | np.uint64(g) << np.uint64(16)
        | np.uint64(t) << np.uint64(24)
    )


@inner(nogil=True, forceinline=True)
def _sum_before(blocks, sums, at):
    """Return the sum before any base, modulo 2**32; higher bits are to be ignored."""
    block = np.uint64(at) >> np.uint64(6)
    first = np.uint64(_WORDS) * block
    inside = (np.uint64(1) << (np.uint64(at) & np.uint64(63))) - np.uint64(1)
    known = inside & ~blocks[first + np.uint64(2)]
    return np.uint64(sums[block]) + _counts(blocks[first], blocks[first + np.uint64(1)], known)


@inner(nogil=True, forceinline=True)
def _common(one, other):
    """Return the maximum number of bases that two stretches can share."""
    n = np.int64(0)
    for shift in range(0, 32, 8):
        in_one = np.int64(one >> np.uint64(shift) & np.uint64(255))
        in_other = np.int64(other >> np.uint64(shift) & np.uint64(255))
        n += min(in_one, in_other)
    return n


@inner(nogil=True)
def count_pieces(reads, first, length, gaps, pieces):
    """Return the counts of the pieces of a read, in `pieces` (uint64) if it is long enough."""
    n = -(-length // piece_length(gaps))
    if n > pieces.size:
        pieces = np.empty(2 * n, np.uint64)
    for piece in range(n):
        a, b = length * piece // n, length * (piece + 1) // n
        counts = np.uint64(0)
        for at in range(a, b, _BASES):
            low, high, ambiguous = bits_at(reads, first + at)
            here = min(b - at, np.int64(_BASES))
            counts += _counts(low, high, ~ambiguous & (~np.uint64(0) >> np.uint64(64 - here)))
        pieces[piece] = counts
    return pieces


@compiled
def least_unmatched(genome, sums, diagonal, pieces, length, gaps, most):
    """Count the bases of a read without a match in their windows, in pieces of `count_pieces`.

    Counting stops above `most`. Costs two sums of the genome per piece; one without gaps.
    """
    n = -(-length // piece_length(gaps))
    unmatched, a = np.int64(0), np.int64(0)
    start = _sum_before(genome, sums, diagonal - gaps)
    for piece in range(n):
        b = length * (piece + 1) // n
        stop = _sum_before(genome, sums, diagonal + b + gaps)
        unmatched += b - a - _common(pieces[piece], stop - start)
        if unmatched > most:
            break
        a, start = b, stop
        if gaps:
            start = _sum_before(genome, sums, diagonal + a - gaps)
    return unmatched
