"""The best long gap between an alignment and an end of the read that it clips.

The windows of alignments with gaps are narrow. A clipped end is compared with the genome on every
diagonal near that of the alignment:

    read        |==========================|~~~~~~~~~~~~~~~~|
    genome      |==========================|      |~~~~~~~~~~~~~~~~|
                            near              gap        far

Most diagonals are random there, as 64 bases at once show: no matches in a row. On each of the
others the best position of the gap is looked for, in the clipped bases and in the last match of the
alignment before them. Bases are counted from the outer end of the read inwards: `far[t]` is the
best score of a far stretch that ends with base t, `near[t]` that of the near stretch from base t
on.

Of gaps that score the same the shortest is taken, a deletion before an insertion, and in a repeat
the leftmost position.
"""

from typing import NamedTuple

from numba import int64, uint64

from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.reads.base_bits_cpu import base_at, bits_at, bits_of_codes
from bwarp.runtime.compiled_code import compiled

__all__ = ["GapCosts", "best_gap", "gap_costs", "least_clipped"]

#: Matches in a row that a far stretch has; among random bases they are rare.
_RUN = 10

#: How far into the alignment the gap may lie.
_NEAR = 100

_NEVER = -(1 << 40)


class GapCosts(NamedTuple):
    """Scores; a gap costs `dearest` at most, and has up to `longest` bases."""

    match: int
    mismatch: int
    gap_open: int
    gap_extend: int
    dearest: int
    longest: int
    clip: int


def gap_costs(parameters: MappingParameters) -> GapCosts:
    p = parameters
    return GapCosts(
        p.match, p.mismatch, p.gap_open, p.gap_extend, p.long_gap_cost, p.longest_gap, p.clip
    )


@compiled(inline="always")
def least_clipped(costs):
    """An end with fewer clipped bases gains nothing by a long gap."""
    return max((costs.dearest - costs.clip) // costs.match, 1)


@compiled(inline="always")
def _has_run(bits):
    """Whether `_RUN` bits in a row are set."""
    bits &= bits >> uint64(1)
    bits &= bits >> uint64(2)
    bits &= bits >> uint64(4)
    return bits & bits >> uint64(_RUN - 8) != 0


@compiled(inline="always")
def _score(blocks, both, base, i, diagonal, low, high, costs):
    """The score of base i of a read on a diagonal; `_NEVER` outside of the contig."""
    at = diagonal + i
    if at < low or at >= high:
        return int64(_NEVER)
    code = both[base + i]
    return costs.match if code < 4 and code == base_at(blocks, at) else costs.mismatch


@compiled
def _near_scores(blocks, both, base, length, right, diagonal, low, high, costs, total, near):
    """Write near[t] for t <= total."""
    near[total] = 0
    for t in range(total - 1, -1, -1):
        i = length - 1 - t if right else int64(t)
        near[t] = near[t + 1] + _score(blocks, both, base, i, diagonal, low, high, costs)


@compiled
def _far_scores(blocks, both, base, length, right, diagonal, low, high, costs, last, far):
    """Write far[t] for t < last; returns where the stretch that ends with the last one begins."""
    outer, score = int64(0), int64(_NEVER)
    for t in range(last):
        # Where clipping and reaching the end score the same, the end is clipped.
        if t == 0:
            score = int64(0)
        elif score <= -costs.clip:
            outer, score = int64(t), int64(-costs.clip)
        i = length - 1 - t if right else int64(t)
        score += _score(blocks, both, base, i, diagonal, low, high, costs)
        far[t] = score
    return outer


@compiled
def best_gap(blocks, both, base, length, right, diagonal, clipped, matched, low, high, costs,
              near, far):  # fmt: skip
    """The best gap between an alignment and its clipped end.

    Parameters
    ----------
    base, length : int
        Where the read on its strand begins in `both`, and its bases.
    right : bool
        Which end.
    diagonal, clipped, matched : int
        Of the alignment at this end: its diagonal, the clipped bases, and those of its last match.
    low, high : int
        Where the contig begins and ends.
    near, far : ndarray, dtype=int64
        Memory, of a number more than the read has bases.

    Returns
    -------
    shift : int
        By how much the far diagonal is more than the near one; 0 where no gap helps.
    split, outer : int
        Bases from the outer end to the near stretch, and those of them that stay clipped.
    gain : int
        By how much the score rises, without penalties for clipping.
    """
    total = clipped + min(matched, int64(_NEAR))
    best, best_shift, best_split = int64(0), int64(0), int64(0)
    before, is_first = int64(0), True
    # The outermost bases of the read, 64 at most.
    n = min(total, int64(64))
    start = length - n if right else int64(0)
    read_low, read_high, read_ambiguous = bits_of_codes(both, base + start, n)
    inside = ~uint64(0) >> uint64(64 - n)
    for size in range(1, costs.longest + 1):
        cost = min(costs.gap_open + size * costs.gap_extend, costs.dearest)
        for inserted in range(2):
            shift = int64(size) if right != (inserted == 1) else -int64(size)
            at = diagonal + start + shift
            if at < low or at + n > high:
                continue
            bits_low, bits_high, ambiguous = bits_at(blocks, at)
            differ = read_low ^ bits_low | read_high ^ bits_high | read_ambiguous | ambiguous
            if not _has_run(~differ & inside):
                continue
            if is_first:
                is_first = False
                _near_scores(
                    blocks, both, base, length, right, diagonal, low, high, costs, total, near
                )
                best = before = near[clipped] - costs.clip
            between = int64(size) if inserted else int64(0)
            last = total - between
            _far_scores(
                blocks, both, base, length, right, diagonal + shift, low, high, costs, last, far
            )
            for t in range(1, last):
                score = far[t - 1] + near[t + between] - cost
                if score > best or (right and score == best and shift == best_shift):
                    best, best_shift, best_split = score, shift, t + between
    outer = int64(0)
    if best_shift != 0:
        between = abs(best_shift) if right == (best_shift < 0) else int64(0)
        outer = _far_scores(
            blocks, both, base, length, right, diagonal + best_shift, low, high, costs,
            best_split - between, far,
        )  # fmt: skip
    # The alignment had no penalty for the clipped end.
    gain = best - before - (0 if outer > 0 else costs.clip)
    return best_shift, best_split, outer, gain
