"""The best stretch of a diagonal, found from mismatch to mismatch; both engines use these rules.

Between two mismatches a stretch only gains, so it is enough to look at its score on both sides of
each mismatch and at the end. A stretch may begin at the first base, or after a mismatch at the
price of a clipped end; and it ends at the last base, or clipped.
"""

from typing import NamedTuple

from numba import int64

from bwarp.mapping.extension.scored_hits_cpu import put_row
from bwarp.mapping.parameters import END_TO_END, MappingParameters
from bwarp.runtime.compiled_code import compiled

__all__ = [
    "END",
    "Costs",
    "Sums",
    "costs_of",
    "first_sums",
    "no_stretch",
    "pass_end",
    "pass_mismatch",
    "put_stretch",
]

#: A gap this near to a read's end may show as no more than a few mismatches there.
END = 16

#: The price of a clipped end where no end may be clipped.
NEVER_CLIP = 1 << 20


class Costs(NamedTuple):
    """Scores of an extension, and how many bases wider than the seeds its window is."""

    match: int
    mismatch: int
    gap: int
    clip: int
    margin: int


class Sums(NamedTuple):
    """Running sums of a diagonal up to the base at `end`.

    `begin_sum` is the least sum, its price included, at which a stretch may begin. `open` is the
    raw score of the current stretch, as if clipping were free, and `highest` the highest of all.
    """

    end: int
    total: int
    begin: int
    begin_sum: int
    open: int
    highest: int


class Stretch(NamedTuple):
    """A stretch of a diagonal within one contig, and its score with clipped ends penalised."""

    score: int
    begin: int
    end: int
    contig: int


def costs_of(parameters: MappingParameters) -> Costs:
    clip = NEVER_CLIP if parameters.mode == END_TO_END else parameters.clip
    gap = parameters.gap_open + parameters.gap_extend
    return Costs(parameters.match, parameters.mismatch, gap, clip, parameters.largest_gap)


@compiled(inline="always")
def no_stretch(contig):
    return Stretch(int64(-(1 << 30)), int64(0), int64(0), int64(contig))


@compiled(inline="always")
def first_sums(low, clip, highest):
    """The sums before the base at `low`, where a contig or the read begins."""
    zero = int64(0)
    return Sums(low, zero, low, zero if low == 0 else int64(clip), zero, highest)


@compiled(inline="always")
def _better(best, score, begin, end, contig):
    return Stretch(score, begin, end, contig) if score > best.score else best


@compiled(inline="always")
def pass_mismatch(sums, best, at, length, contig, costs):
    """The sums after the mismatch at base `at`, and the best stretch up to there."""
    gained = costs.match * (at - sums.end)
    highest = max(sums.highest, sums.open + gained)
    open_ = max(sums.open + gained + costs.mismatch, int64(0))
    total = sums.total + gained
    if at > sums.end:
        best = _better(best, total - sums.begin_sum - costs.clip, sums.begin, at, contig)
    total += costs.mismatch
    begin, begin_sum, end = sums.begin, sums.begin_sum, at + 1
    if total + costs.clip <= begin_sum:
        begin, begin_sum = end, total + costs.clip
    price = 0 if end == length else costs.clip
    best = _better(best, total - begin_sum - price, begin, end, contig)
    return Sums(end, total, begin, begin_sum, open_, highest), best


@compiled(inline="always")
def pass_end(sums, best, high, length, contig, costs):
    """The highest raw score and the best stretch where a contig or the read ends at `high`."""
    if high <= sums.end:
        return sums.highest, best
    gained = costs.match * (high - sums.end)
    reached = sums.total + gained - sums.begin_sum - (0 if high == length else costs.clip)
    return max(sums.highest, sums.open + gained), _better(best, reached, sums.begin, high, contig)


@compiled(inline="always")
def put_stretch(
    scored, row, best, highest, shows_gap, diagonal, length, lowest, widest, contig_starts, costs
):
    """Write the row of a candidate from its best stretch; returns the raw score of its diagonal.

    `lowest` and `widest` are the outermost diagonals with seeds.
    """
    clips = int64(best.begin > 0) + int64(best.end < length)
    start, end = diagonal + best.begin, diagonal + best.end
    window_start = max(lowest - costs.margin, contig_starts[best.contig])
    window_end = min(widest + length + costs.margin, contig_starts[best.contig + 1])
    shows_gap = shows_gap or clips > 0 or lowest < widest
    lost = costs.match * length - best.score
    # Of two gaps that cancel each other nothing shows but many mismatches between them.
    shows_gap = shows_gap or (lost > 4 * costs.gap and 5 * lost > 2 * costs.match * length)
    is_sure = lost <= costs.gap or not shows_gap
    if window_start >= window_end:
        is_sure, window_start, window_end = True, start, end
    score = max(best.score + costs.clip * clips, int64(0))
    if costs.clip == NEVER_CLIP:
        # A read that hangs over a contig's end fits only with gaps, if at all.
        score = highest = int64(0) if clips > 0 else max(best.score, int64(0))
    put_row(
        scored, row, score, start, end, best.begin, best.end, int64(is_sure), window_start,
        window_end,
    )  # fmt: skip
    return highest
