r"""Verify hits of parts and find the loci of each item (a read on a strand) by edit distances.

A locus is a stretch of the genome with at most e edits from the read that is the best of all
stretches with its start, and the best of all with its end. The stretch with fewer edits is better,
then the one whose length is closer to the read's, then the shorter one.

**Stretches to compare.** An alignment with at most e edits covers a part of the read without edits
(the rule in `options`), and so a hit, on the hit's diagonal. From there it extends in both
directions, with separate edits on each side:

    genome  ......i=================================j....
                   \____ left ____|  hit  |__ right _/
    read           0              a       b          L

    distance(i, j) = the minimum, over the hits, of left(i) + right(j)

Hits connected by matching bases give the same sums, so one of them suffices.

**Hits to verify.** A hit is dropped if a bound shows that there are too many edits
(`candidates_cpu`), or if the parts searched before its own leave too few edits for one side: if its
part is the first one without edits, each earlier part has at least one.
"""

from typing import NamedTuple

import numpy as np

from bwarp.allmap.candidates_cpu import (
    AHEAD,
    DIAGONAL_AT,
    HISTOGRAM,
    SEGMENT_AT,
    ItemLimits,
    bound_exceeded,
    diagonal_of,
    differing,
    list_hits,
    prefetch_window,
)
from bwarp.allmap.candidates_cpu import mismatches as count_mismatches
from bwarp.allmap.histogram_cpu import count_pieces
from bwarp.runtime.compiled_code import compiled, inner
from bwarp.runtime.simd import leading_zeros, population_count
from bwarp.runtime.uncounted import uncounted

# Edit distances between a read and stretches of the genome, by furthest-reaching rows.
#
# The algorithm of Landau and Vishkin (1989) computes, for s edits, how many bases of the read can
# be aligned so that the alignment ends k diagonals from where it started. This follows from the
# values for s - 1 edits: one more base by a mismatch, or by a gap from a neighbouring diagonal, and
# then all bases that agree, 64 at a time.
#
#     diagonal     -1      0      1
#     0 edits              12            12 bases agree, the 13th does not
#     1 edit       40      20     13     diagonal -1, one base of the read inserted, 27 more agree
#
# It takes (e + 1)^2 steps regardless of the length of the read. Bases beyond a contig border or an
# ambiguous base are out of reach.


#: The distance of a stretch that needs more edits than allowed.
NO_DISTANCE = 255

#: The direction in which bases are compared; int64, so that a function is compiled once for both.
RIGHT, LEFT = np.int64(1), np.int64(-1)

#: The furthest row of a diagonal that no alignment reaches.
NOWHERE = -(1 << 30)


#: Inlined by LLVM; Numba's inlining takes longer.
_inlined = inner(nogil=True, forceinline=True)


class Compared(NamedTuple):
    """Bases of a read, and the genome on the same side of a position of both.

    Attributes
    ----------
    origin, room : int
        Where stretches of the genome begin, and how many bases of it are available from there.
    first, length : int
        Where the bases of the read begin, and their number.
    """

    origin: int
    room: int
    first: int
    length: int


@_inlined
def agreeing(genome, at, reads, first, most, side):
    """Count agreeing bases, up to `most`, from two positions towards `RIGHT` or `LEFT`."""
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


@_inlined
def furthest(same, shorter, longer, most):
    """Return the furthest row with one more edit, at most `most`, from those of three diagonals:
    the same one; the previous one, from which a base of the genome is deleted; and the next one,
    from which a base of the read is inserted.
    """
    # Distances never fall along a diagonal, so every skipped row is reachable too.
    row = min(max(same, longer) + 1, most)
    if shorter <= most:
        row = max(row, shorter)
    return row


@compiled
def distances_to(genome, reads, compared, edits, gaps, side, reach, distances):
    """Compute the distances between bases of a read and the stretches at one side of a position.

    Parameters
    ----------
    compared : Compared
    edits, gaps : int
        The maximum edits, and the maximum gap bases: equal to the edits, or 0.
    side : int
        `RIGHT`: stretches and bases extend from `origin` and `first`; `LEFT`: they end there.
    reach : ndarray, shape=(room_to_work(gaps),), dtype=int64
        Working memory.
    distances : ndarray, shape=(2 * gaps + 1,), dtype=uint8
        The distance to the stretch of ``length + k`` bases is stored at ``gaps + k``; `NO_DISTANCE`
        if it exceeds `edits`.

    Returns
    -------
    least : int
        The minimum distance; more than `edits` if there is none.
    """
    origin, room, first, length = compared
    width = 2 * gaps + 3
    reach[: 2 * width] = NOWHERE
    distances[: 2 * gaps + 1] = NO_DISTANCE
    before, now = gaps + 1, width + gaps + 1  # offsets of diagonal 0
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
def distances_with_few_gaps(genome, reads, compared, edits, gaps, reach, distances):
    """Do what `distances_to` does, to the right, with fewer gaps than edits: rows per number of
    gaps.
    """
    origin, room, first, length = compared
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


@inner(nogil=True, forceinline=True)
def room_to_work(gaps):
    """Return the size of `reach` that suffices for every function here."""
    return 2 * (gaps + 1) * (2 * gaps + 3)


#: Counters: parts searched; rows located; hits dropped by each bound; hits verified, one for each
#: group that agree; and verified hits with an alignment.
COUNTS = (
    "parts", "located", "dropped_by_histogram", "dropped_by_kmers", "verified", "confirmed",
)  # fmt: skip
_, _LOCATED, _, _, _VERIFIED, _CONFIRMED = range(6)


@compiled
def find_loci(genome, reads, items, hits, positions, segments, bounds, counts):
    """Find the loci of items. Each row holds the item, start, end and distance, in this order.

    Parameters
    ----------
    genome, reads : ndarray, dtype=uint64
        Blocks of the genome; blocks of the reads on both strands.
    items : Items
    hits : PartHits
    positions : ndarray, dtype=uint32
        Text positions of the hits.
    segments : Segments
    bounds : Bounds
        Which bounds drop hits; none are needed for hits that `dropped_by` selected.
    counts : ndarray, dtype=int64
        Counters (`COUNTS`); hits dropped, verified and confirmed are added here.
    """
    genome, reads, positions = uncounted((genome, reads, positions))
    hits, segments, bounds = uncounted((hits, segments, bounds))
    part_offsets, part_starts, part_ends, row_offsets = hits
    begins, lengths, all_edits, all_gaps, all_mismatches = uncounted(items)
    _, segment_genome, segment_ends, _ = segments
    most_gaps = all_gaps.max() if all_gaps.size else 0
    width = 2 * most_gaps + 1
    reach = np.empty(room_to_work(most_gaps), np.int64)
    before, after = np.empty((2, width), np.uint8)
    distances = np.empty((256, width), np.uint8)
    found = np.empty((max(begins.size, 16), 4), np.int64)
    keys = np.empty(256, np.uint64)
    pieces = np.empty(16, np.uint64)
    n_found = 0
    for item in range(begins.size):
        first_part, last_part = part_offsets[item], part_offsets[item + 1]
        n = row_offsets[last_part] - row_offsets[first_part]
        if n == 0:
            continue
        if n > keys.size:
            keys = np.empty(2 * n, np.uint64)
        list_hits(first_part, last_part, hits, positions, segments, keys)
        begin, length, e, g = begins[item], lengths[item], all_edits[item], all_gaps[item]
        mismatches = all_mismatches[item]
        if bounds.which & HISTOGRAM:
            pieces = count_pieces(reads, begin, length, g, pieces)
        if bounds.which:
            limits = ItemLimits(begin, length, e, g)
            n = _keep_hits(genome, reads, limits, bounds, pieces, keys[:n], counts)
        keys[:n].sort()
        # The starts of stretches to compare, [low, high), all in one segment.
        low = high = np.int64(0)
        group_end = np.int64(-1)
        # The last run of matching bases: its segment, diagonal and start in the read.
        run, run_start = ~np.uint64(0), np.int64(0)
        for i in range(n):
            if bounds.which == 0 and i + AHEAD < n:
                prefetch_window(genome, bounds, diagonal_of(keys[i + AHEAD]))
            key = keys[i]
            diagonal = diagonal_of(key)
            order = np.int64(key & np.uint64((1 << DIAGONAL_AT) - 1))
            part = first_part + order
            a, b = np.int64(part_starts[part]), np.int64(part_ends[part])
            if key >> np.uint64(DIAGONAL_AT) == run and a >= run_start:
                continue  # parts are listed from the end of the read
            counts[_VERIFIED] += 1
            segment = np.int64(key >> np.uint64(SEGMENT_AT))
            from_, to = segment_genome[segment], segment_ends[segment]
            wrong = np.int64(0)
            if mismatches:
                wrong = count_mismatches(genome, diagonal + a, reads, begin + a, b - a)
            if wrong == 0:
                a -= agreeing(
                    genome, diagonal + a, reads, begin + a, min(a, diagonal + a - from_), LEFT
                )
                b += agreeing(
                    genome, diagonal + b, reads, begin + b, min(length - b, to - diagonal - b),
                    RIGHT,
                )  # fmt: skip
                run, run_start = key >> np.uint64(DIAGONAL_AT), a
            most = e - wrong - order
            if most < 0:
                continue
            at = diagonal + a
            to_left = Compared(at, at - from_, begin + a, a)
            left = distances_to(genome, reads, to_left, most, g, LEFT, reach, before)
            # A stretch that starts within the run: the bases before its start are inserted.
            for k in range(a + 1, min(g, most) + 1):
                before[g - k] = k
            if left > most:
                continue
            at = diagonal + b
            most = e - wrong - left
            to_right = Compared(at, to - at, begin + b, length - b)
            right = distances_to(genome, reads, to_right, most, g, RIGHT, reach, after)
            if wrong + left + right > e:
                continue
            for k in range(length - b + 1, min(g, most) + 1):
                after[g - k] = k
            counts[_CONFIRMED] += 1
            start, stop = max(diagonal - g, from_), diagonal + g + 1
            # Stretches with a common end start no farther apart than this.
            if to != group_end or start > high + 2 * g:
                found, n_found = _put_loci(item, length, g, distances, low, high, found, n_found)
                low = high = start
                group_end = to
            if stop - low > len(distances):
                distances = _with_room(distances, high - low, 2 * (stop - low))
            for at in range(high, stop):
                if 0 < g < e:
                    whole = Compared(at, to - at, begin, length)
                    distances_with_few_gaps(genome, reads, whole, e, g, reach, distances[at - low])
                else:
                    distances[at - low, : 2 * g + 1] = NO_DISTANCE
            high = max(high, stop)
            if g == 0 or g >= e:
                for s in range(-g, g + 1):
                    if before[g - s] > e or diagonal + s < low:
                        continue
                    for u in range(-g, g + 1):
                        d = np.int64(before[g - s]) + np.int64(after[g + u]) + wrong
                        if d <= e and d < distances[diagonal + s - low, g + u - s]:
                            distances[diagonal + s - low, g + u - s] = d
        found, n_found = _put_loci(item, length, g, distances, low, high, found, n_found)
    return found[:n_found]


@inner(nogil=True)
def _keep_hits(genome, reads, limits, bounds, pieces, keys, counts):
    """Move the hits that no bound drops to the front, and return their number.

    Most hits are dropped, so this takes less time before they are sorted than after.
    """
    n_kept = 0
    for i in range(min(AHEAD, keys.size)):
        prefetch_window(genome, bounds, diagonal_of(keys[i]))
    for i in range(keys.size):
        if i + AHEAD < keys.size:
            prefetch_window(genome, bounds, diagonal_of(keys[i + AHEAD]))
        by = bound_exceeded(bounds, genome, diagonal_of(keys[i]), reads, limits, pieces)
        if by:
            counts[_LOCATED + by] += 1
        else:
            keys[n_kept] = keys[i]
            n_kept += 1
    return n_kept


@inner(nogil=True)
def _with_room(rows, count, room):
    """Copy the first rows to an array with room for more; slices take two seconds to compile."""
    more = np.empty((room, rows.shape[1]), rows.dtype)
    for row in range(count):
        for k in range(rows.shape[1]):
            more[row, k] = rows[row, k]
    return more


@inner(nogil=True)
def _put_loci(item, length, gaps, distances, low, high, found, n_found):
    """Write the loci among the stretches that start from `low` to `high`."""
    for row in range(high - low):
        k = _best_end(distances[row], gaps)
        if k > gaps or not _is_best_start(distances, high - low, row, k, gaps):
            continue
        if n_found == len(found):
            found = _with_room(found, n_found, 2 * n_found)
        found[n_found, 0] = item
        found[n_found, 1] = low + row
        found[n_found, 2] = low + row + length + k
        found[n_found, 3] = distances[row, gaps + k]
        n_found += 1
    return found, n_found


@_inlined
def _value(distance, k):
    """Rank stretches with a common start or end, lower is better; k: length minus the read's."""
    return (np.int64(distance) << 16) + (abs(k) << 1) + (1 if k > 0 else 0)


@inner(nogil=True)
def _best_end(distances, gaps):
    """Return the length, minus the read's, of the best stretch from a start; gaps + 1 if none."""
    best, best_value = gaps + 1, np.int64(NO_DISTANCE) << 16
    for k in range(-gaps, gaps + 1):
        value = _value(distances[gaps + k], k)
        if value < best_value:
            best, best_value = k, value
    return best


@inner(nogil=True)
def _is_best_start(distances, n_starts, row, k, gaps):
    """Return whether no other start has a better stretch to the end of that k bases longer."""
    value = _value(distances[row, gaps + k], k)
    for other in range(max(0, row + k - gaps), min(n_starts, row + k + gaps + 1)):
        at = row + k - other
        if _value(distances[other, gaps + at], at) < value:
            return False
    return True
