"""Edit distances of a read and stretches of the genome, by furthest-reaching rows.

Landau and Vishkin's algorithm (1989): with s edits, how many bases of the read can be aligned so
that the alignment then lies k bases off the diagonal it began on? From that of s - 1 edits: one
more base by a mismatch, or by a gap from the diagonals beside it; then on over all bases that
agree, 64 at a time.

    diagonal     -1      0      1
    0 edits              12            12 bases agree, the 13th does not
    1 edit       40      20     13     on diagonal -1, one base of the read inserted, 27 more agree

It takes (e + 1)^2 steps whatever the read's length. What lies beyond the stretch that may be
aligned to (a contig's border, an ambiguous base) is out of reach.
"""

import numba
import numpy as np

from bwarp.loci.verifying.read_blocks import differing
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import leading_zeros, population_count

__all__ = [
    "LEFT",
    "NOWHERE",
    "NO_DISTANCE",
    "RIGHT",
    "agreeing",
    "distances_to",
    "distances_with_few_gaps",
    "furthest",
    "room_to_work",
]

#: Of a stretch that takes more edits than are allowed.
NO_DISTANCE = 255

#: To which side of a position bases are compared: steps of it.
RIGHT, LEFT = 1, -1

#: The furthest row of a diagonal that no alignment comes to.
NOWHERE = -(1 << 30)


@numba.njit(nogil=True, inline="always")
def agreeing(genome, at, reads, first, most, side):
    """How many of up to `most` bases agree, from two positions to a side, `RIGHT` or `LEFT`."""
    n = np.int64(0)
    while n < most:
        if side == RIGHT:
            bits = differing(genome, at + n, reads, first + n)
            if bits:
                return min(most, n + np.int64(population_count(~bits & (bits - np.uint64(1)))))
            n += 64
        else:
            width = min(np.int64(64), at - n, first - n)
            bits = differing(genome, at - n - width, reads, first - n - width)
            bits <<= np.uint64(64 - width)
            if bits:
                return min(most, n + np.int64(leading_zeros(bits)))
            n += width
    return max(most, np.int64(0))


@numba.njit(nogil=True, inline="always")
def furthest(same, shorter, longer, most):
    """The furthest row with one edit more, at most `most`, from those of three diagonals: this one,
    the one before it, from which a base of the genome is left out, and the one after it, from which
    a base of the read is inserted."""
    # Distances never fall along a diagonal: one that would be passed is reached.
    row = min(max(same, longer) + 1, most)
    if shorter <= most:
        row = max(row, shorter)
    return row


@compiled
def distances_to(genome, origin, room, reads, first, length, edits, gaps, side, reach, distances):
    """The distances of bases of a read to the stretches of the genome at one side of a position.

    Parameters
    ----------
    origin, room : int
        Where the stretches begin, and how many bases of the genome may be aligned to from there.
    first, length : int
        Where the bases of the read begin, and how many they are.
    edits, gaps : int
        The most edits, and the most gap bases: as many, or none.
    side : int
        `RIGHT`: stretches and bases go on from `origin` and `first`; `LEFT`: they end there.
    reach : ndarray, shape=(room_to_work(gaps),), dtype=int64
        To work in.
    distances : ndarray, shape=(2 * gaps + 1,), dtype=uint8
        That to the stretch of ``length + k`` bases is put at ``gaps + k``; `NO_DISTANCE` for more
        than `edits`.

    Returns
    -------
    least : int
        The least of them; more than `edits` if there is none.
    """
    width = 2 * gaps + 3
    reach[: 2 * width] = NOWHERE
    distances[: 2 * gaps + 1] = NO_DISTANCE
    before, now = gaps + 1, width + gaps + 1  # their diagonals 0
    least = edits + 1
    row = agreeing(genome, origin, reads, first, min(length, room), side)
    reach[before] = row
    if row == length:
        distances[gaps] = least = 0
    for s in range(1, edits + 1):
        widest = min(s, gaps)
        for k in range(-widest, widest + 1):
            most = min(length, room - k)
            at = before + k
            row = furthest(reach[at], reach[at - 1], reach[at + 1], most)
            if row >= 0:
                row += agreeing(
                    genome, origin + side * (row + k), reads, first + side * row, most - row, side
                )
                if row == length and distances[gaps + k] == NO_DISTANCE:
                    distances[gaps + k] = s
                    least = min(least, s)
            reach[now + k] = row
        before, now = now, before
    return np.int64(least)


@compiled
def distances_with_few_gaps(
    genome, origin, room, reads, first, length, edits, gaps, reach, distances
):
    """As `distances_to`, to the right, with fewer gap bases than edits: rows for each number."""
    width = 2 * gaps + 3
    level = (gaps + 1) * width
    reach[: 2 * level] = NOWHERE
    distances[: 2 * gaps + 1] = NO_DISTANCE
    before, now = gaps + 1, level + gaps + 1
    row = agreeing(genome, origin, reads, first, min(length, room), RIGHT)
    reach[before] = row
    if row == length:
        distances[gaps] = 0
    for s in range(1, edits + 1):
        for g in range(min(s, gaps) + 1):
            for k in range(-g, g + 1, 2):
                most = min(length, room - k)
                at = before + g * width + k
                fewer = at - width
                row = furthest(
                    reach[at],
                    reach[fewer - 1] if g else NOWHERE,
                    reach[fewer + 1] if g else NOWHERE,
                    most,
                )
                if row >= 0:
                    row += agreeing(genome, origin + row + k, reads, first + row, most - row, RIGHT)
                    if row == length and distances[gaps + k] == NO_DISTANCE:
                        distances[gaps + k] = s
                reach[now + g * width + k] = row
        before, now = now, before


@numba.njit(nogil=True, inline="always")
def room_to_work(gaps):
    """How long `reach` must be for every function here."""
    return 2 * (gaps + 1) * (2 * gaps + 3)
