"""Whether a gap near one of its ends may improve a stretch of a diagonal.

The outer 64 bases of the read are compared with the genome on the diagonal of the stretch, and on
those near it:

    read        |==========================|~~~~~~~~~|
    genome      |==========================|  |~~~~~~~~~|
                            near            gap    far

Bases are counted from the outer end of the read inwards. Outside of a split an alignment with a gap
lies on the far diagonal, but for the bases that are inserted. It saves the mismatches that the near
diagonal has there, and pays for the gap, for the mismatches of the far diagonal, and for its
outermost bases where these are better clipped.

Most diagonals are random, and no split gains there: the outermost bases have too many mismatches to
reach the end, as one population count shows, and there are too few matches in a row to pay for a
gap and a clipped end. Only on the others every split is looked at.
"""

from typing import NamedTuple

import numba
from numba import int64, uint64

from bwarp.mapping.extension.diagonal import NEVER_CLIP
from bwarp.mapping.parameters import END_TO_END, MappingParameters
from bwarp.mapping.reads.base_bits_cpu import bits_at, bits_of_codes, shifted, turned
from bwarp.runtime.simd import population_count

__all__ = ["EndCosts", "end_costs", "gap_may_gain", "two_gaps_may_gain"]

#: Bases of an end that are compared.
_BASES = 64


class EndCosts(NamedTuple):
    """Scores, of which `loss` is that of a mismatch in place of a match; the longest gap; and the
    shortest run of matches that scores more than a mismatch costs."""

    match: int
    loss: int
    gap_open: int
    gap_extend: int
    clip: int
    largest_gap: int
    run: int


def end_costs(parameters: MappingParameters) -> EndCosts:
    p = parameters
    return EndCosts(
        p.match, p.match - p.mismatch, p.gap_open, p.gap_extend,
        NEVER_CLIP if p.mode == END_TO_END else p.clip, p.largest_gap, -p.mismatch // p.match + 1,
    )  # fmt: skip


@numba.njit(cache=True, nogil=True, inline="always")
def two_gaps_may_gain(clipped, costs):
    """Whether clipped bases may pay for two gaps, which `gap_may_gain` does not look for."""
    worth = costs.match * clipped + costs.clip
    return clipped > 0 and worth > 2 * (costs.gap_open + costs.gap_extend)


@numba.njit(cache=True, nogil=True)
def gap_may_gain(blocks, both, first, length, diagonal, begin, end, low, high, costs):
    """Whether a gap in the outer 64 bases of one end may score as much as none, or more.

    Nothing is compared where more bases are clipped, or where the contig ends within 64 bases:
    there it may.

    Parameters
    ----------
    first, length : int
        Where the read on its strand begins in `both`, and its bases.
    diagonal, begin, end : int
        The stretch; no other of the diagonal scores more, clipped ends penalised.
    low, high : int
        Where the contig begins and ends.
    """
    for right in (False, True):
        clipped = length - end if right else begin
        n = min(clipped + end - begin, int64(_BASES))
        if clipped > _BASES or _gains_at_end(
            blocks, both, first, length, right, diagonal, clipped, n, low, high, costs
        ):
            return True
    return False


@numba.njit(cache=True, nogil=True)
def _gains_at_end(
    blocks, both, first, length, right, diagonal, clipped, n, low, high, costs
):  # fmt: skip
    """Whether a gap in the n outermost bases may gain, the first of which are clipped."""
    start = length - n if right else int64(0)
    at = diagonal + start
    if at < low or at + n > high:
        return True
    read, here = bits_of_codes(both, first + start, n), bits_at(blocks, at)
    near = _differing(read, here, n, right)
    if clipped and _goes_on(turned(near) if right else near, clipped, costs):
        return True
    # What the clipped bases would score on this diagonal, with reaching the end.
    unclipped = costs.match * clipped + (costs.clip if clipped else int64(0))
    unclipped -= costs.loss * int64(population_count(near & _outermost(clipped, right)))
    most = costs.loss * int64(population_count(near)) + unclipped
    longest = (most - costs.gap_open) // costs.gap_extend
    longest = min(longest, max(costs.largest_gap, length // 10))
    if longest < 1:
        return False
    if longest >= _BASES or at - _BASES < low or at + 2 * _BASES > high:
        return True
    near = turned(near) if right else near
    for is_insertion in (False, True):
        ahead = right != is_insertion
        beside = bits_at(blocks, at + _BASES if ahead else at - _BASES)
        # Mismatches outside of a split, which grows with the gap, and those inside of it.
        outside, split, inside = int64(0), int64(0), near
        for size in range(1, longest + 1):
            inserted = size if is_insertion else int64(0)
            gap = costs.gap_open + size * costs.gap_extend
            price = gap + costs.match * inserted - unclipped
            while inside and costs.loss * outside < price:
                outside, split, inside = _next_split(outside, inside)
            if costs.loss * outside < price or inserted >= n:
                break
            if ahead:
                far = _differing(read, _between(here, beside, size), n, right)
            else:
                far = _differing(read, _between(beside, here, _BASES - size), n, right)
            if _reaches_end(far, outside, split, inside, inserted, right, price, costs):
                return True
            # Any stretch scores at most a match for each run of so many matches that begins in it,
            # and what a mismatch costs.
            runs = _runs(~far & _outermost(n, right), costs.run)
            scores = costs.match * int64(population_count(runs)) + costs.loss - costs.match
            if (
                scores >= gap
                and most - costs.clip - costs.match >= gap + costs.match * inserted
                and _any_split_gains(near, turned(far) if right else far, n, inserted, price, costs)
            ):
                return True
    return False


@numba.njit(cache=True, nogil=True)
def _goes_on(near, clipped, costs):
    """Whether the stretch scores more with clipped bases: one that was found for a part of the read
    ends with that part.
    """
    score = int64(0)
    for base in range(clipped - 1, -1, -1):
        score += costs.match - costs.loss * int64(near >> uint64(base) & uint64(1))
        if score > 0:
            return True
    return score + costs.clip > 0


@numba.njit(cache=True, nogil=True, inline="always")
def _reaches_end(far, outside, split, inside, inserted, right, price, costs):
    """Whether a split from this one on saves mismatches worth the price, with nothing clipped."""
    saved, most = outside, outside + int64(population_count(inside))
    lost = int64(population_count(far & _outermost(split - inserted, right)))
    while inside and costs.loss * (saved - lost) < price <= costs.loss * (most - lost):
        saved, split, inside = _next_split(saved, inside)
        lost = int64(population_count(far & _outermost(split - inserted, right)))
    return costs.loss * (saved - lost) >= price


@numba.njit(cache=True, nogil=True)
def _any_split_gains(near, far, n, inserted, price, costs):
    """Whether any split saves mismatches worth the price, the outermost bases clipped or not."""
    lost = int64(0)
    for base in range(n - inserted):
        # What the best stretch of the far diagonal up to this base scores less than matches.
        lost = min(lost, costs.match * base + costs.clip) if base else lost
        lost += costs.loss * int64(far >> uint64(base) & uint64(1))
        saved = int64(population_count(near & _outermost(base + 1 + inserted, False)))
        if costs.loss * saved - lost >= price:
            return True
    return False


@numba.njit(cache=True, nogil=True, inline="always")
def _next_split(outside, inside):
    """One more mismatch outside of the split, the split behind it, and the mismatches inside."""
    at = int64(population_count(~inside & (inside - uint64(1))))
    return outside + 1, at + 1, inside & (inside - uint64(1))


@numba.njit(cache=True, nogil=True, inline="always")
def _between(bits, following, shift):
    """64 bases from base `shift` (1 to 63) of two stretches of 64."""
    shift = uint64(shift)
    return (
        shifted(bits[0], following[0], shift),
        shifted(bits[1], following[1], shift),
        shifted(bits[2], following[2], shift),
    )


@numba.njit(cache=True, nogil=True, inline="always")
def _differing(read, genome, n, right):
    """Which of the n outermost bases differ: a bit each, that of the outermost the highest on the
    right, the lowest on the left."""
    bits = read[0] ^ genome[0] | read[1] ^ genome[1] | read[2] | genome[2]
    return bits << uint64(_BASES - n) if right else bits & _outermost(n, right)


@numba.njit(cache=True, nogil=True, inline="always")
def _outermost(n, right):
    """A mask of the n outermost bases."""
    if n <= 0:
        return uint64(0)
    others = uint64(_BASES - n)
    return ~uint64(0) << others if right else ~uint64(0) >> others


@numba.njit(cache=True, nogil=True, inline="always")
def _runs(bits, n):
    """Where n bits in a row are set: the lowest of them."""
    for _ in range(n - 1):
        bits &= bits >> uint64(1)
    return bits
