"""Primary hits of reads without mates, and their mapping qualities.

The mapping quality is the probability that the read lies elsewhere: every other hit of the same
bases is less likely the less it scores (likelihoods.py), and the likelihoods of all of them are
added. A read without another hit has the quality that bwa gives it.

Hits are compared by clip-penalised scores: two mismatches at a read's end are worse than one,
although both are clipped to the same raw score.

Another hit is near if it scores less by one difference or nothing. Near hits show that the read is
from a repeat whose copies one difference tells apart, here or in a copy that was not found: each
counts `NEAR_RIVALS` times. Short reads have too many of them for that.

Unlocated hits have a bound (Candidates.unlocated), not a score. They are copies of a repeat of
which other copies were located; one of them is taken to be `UNLOCATED_LOSS` below what it is likely
to score, and there are more than one. How often it scores more than it is likely to was measured:
see `BOUND_ROOM`. A short read may have a locus that no seed shows at all, too: one with a mismatch
in each of its shortest seeds.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import int64

from bwarp.mapping.extension.scored_hits_cpu import ScoredHits
from bwarp.mapping.pairing.insert_size import SCORE_UNITS
from bwarp.mapping.pairing.likelihoods import (
    HIGHEST_QUALITY,
    MOST_LESS,
    likelihood,
    mapping_quality,
)
from bwarp.mapping.pairing.tie_seeds import drawn_of
from bwarp.mapping.parameters import SHORT_READ, MappingParameters
from bwarp.mapping.seeds.candidates_cpu import score_bound_of
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.timeline import on_timeline
from bwarp.runtime.uncounted import uncounted

__all__ = [
    "BOUND_ROOM",
    "BOUND_SLOPE",
    "HIDDEN_ONCE_IN",
    "NEAR_RIVALS",
    "ROUNDING",
    "SHORT_UNLOCATED_LOSS",
    "UNLOCATED_LOSS",
    "UNLOCATED_RIVALS",
    "PrimarySelection",
    "Reads",
    "Scores",
    "clip_penalised",
    "hidden_score",
    "is_near",
    "length_factor",
    "no_selection",
    "others_beside",
    "penalised_score",
    "quality_beside",
    "read_span",
    "same_bases",
    "scores_of",
    "select",
    "select_single",
    "select_unpaired",
    "single_end_mapq",
    "span_of",
    "suboptimal_of",
    "unique_suboptimal",
    "unrounded_mapq",
]

UNLOCATED_LOSS = 10
SHORT_UNLOCATED_LOSS = 5
_SHORTEST_SEED = 19

#: Bases of the seeds of the last round.
SHORTEST_SEED = MappingParameters.short.length

#: A short read's locus that seeds do not show is there once in so many reads.
HIDDEN_ONCE_IN = 10_000

#: Where hits are not located, there are so many times as many rivals as were seen.
UNLOCATED_RIVALS = 4

#: A near hit of a read that is not short counts so many times.
NEAR_RIVALS = 64

#: A read that scores as much as the bound of unlocated hits has another hit once in 1,100 times, as
#: if that scored 25 / 4 matches less; for every 4 matches that the read scores more, one less.
BOUND_ROOM = 25
BOUND_SLOPE = 4

#: Added to a quality before it is cut to a whole number, as in bwa.
ROUNDING = 0.499

#: Less than any score.
_NOTHING = -(1 << 60)


class PrimarySelection(NamedTuple):
    """The outcome for every read.

    Attributes
    ----------
    hits : ndarray, shape=(n_reads,), dtype=int64
        The index of the primary hit, or -1.
    qualities : ndarray, shape=(n_reads,), dtype=uint8
    suboptimal : ndarray, shape=(n_reads,), dtype=int32
        The best score of any other hit of the same bases, 0 where there is none: XS.
    proper : ndarray, shape=(n_reads,), dtype=bool
    """

    hits: np.ndarray
    qualities: np.ndarray
    suboptimal: np.ndarray
    proper: np.ndarray


class Reads(NamedTuple):
    """What is known of reads besides their hits."""

    lengths: np.ndarray
    unlocated: np.ndarray
    seeds: np.ndarray


class Scores(NamedTuple):
    """Scores; a hit is near that scores up to `near` less than another."""

    match: int
    mismatch: int
    clip: int
    least: int
    near: int


@on_timeline("select primary hits")
def select_single(
    hits: ScoredHits,
    lengths: np.ndarray,
    unlocated: np.ndarray,
    parameters: MappingParameters,
    seeds: np.ndarray,
) -> PrimarySelection:
    """Primary hits of reads that have no mates; `seeds` (uint64 a read) break ties."""
    primary = no_selection(len(lengths))
    select_unpaired(hits, Reads(lengths, unlocated, seeds), scores_of(parameters), primary)
    return primary


def no_selection(n_reads: int) -> PrimarySelection:
    """No read has a primary hit."""
    return PrimarySelection(
        np.full(n_reads, -1, np.int64),
        np.zeros(n_reads, np.uint8),
        np.zeros(n_reads, np.int32),
        np.zeros(n_reads, bool),
    )


def scores_of(parameters: MappingParameters) -> Scores:
    p = parameters
    return Scores(p.match, p.mismatch, p.clip, p.least_score, p.most_loss)


@compiled(inline="always")
def span_of(strand, read_start, read_end, length):
    """The bases of the read, as it was read, that a hit aligns; both engines use it."""
    return (length - read_end, length - read_start) if strand else (read_start, read_end)


@compiled(inline="always")
def read_span(hits, i, length):
    """The bases of the read, as it was read, that a hit aligns."""
    start, end = np.int64(hits.read_starts[i]), np.int64(hits.read_ends[i])
    return span_of(hits.strands[i], start, end, length)


@compiled(inline="always")
def same_bases(span, span_2):
    """Whether two stretches of a read share half of the shorter one or more."""
    shared = min(span[1], span_2[1]) - max(span[0], span_2[0])
    return 2 * shared >= min(span[1] - span[0], span_2[1] - span_2[0])


@compiled(inline="always")
def penalised_score(score, gapless, read_start, read_end, length, clip):
    """A hit's score with its clipped ends penalised; both engines use it.

    Not that of a gapped hit: its start is not known, and strands are to be equal.
    """
    if not gapless:
        return score
    return score - clip * (int64(read_start > 0) + int64(read_end < length))


@compiled(inline="always")
def clip_penalised(hits, i, length, clip):
    """A hit's score with its clipped ends penalised."""
    return penalised_score(
        np.int64(hits.scores[i]), hits.gapless[i], hits.read_starts[i], hits.read_ends[i], length,
        clip,
    )  # fmt: skip


# Inlined where hits are handed on as a tuple: a call counts references to all of its arrays, and
# takes half as long again.
@compiled(inline="always")
def suboptimal_of(hits, read, primary, length, clip, margin):
    """The best other hit of the same bases of a read, its raw and its clip-penalised score, and how
    many such hits are within `margin` of the primary one.
    """
    best = best_penalised = np.int64(0)
    n = 0
    least = clip_penalised(hits, primary, length, clip) - margin
    span = read_span(hits, primary, length)
    for i in range(hits.offsets[read], hits.offsets[read + 1]):
        if i == primary or not same_bases(span, read_span(hits, i, length)):
            continue
        penalised = clip_penalised(hits, i, length, clip)
        best = max(best, np.int64(hits.scores[i]))
        best_penalised = max(best_penalised, penalised)
        n += penalised >= least
    return best, best_penalised, n


@compiled(inline="always")
def hidden_score(length, match, loss):
    """What a locus of a short read scores at most that no seed of the last round shows."""
    return match * length - loss * (length // SHORTEST_SEED)


@compiled(inline="always")
def _lost_to_others(n):
    """What n suboptimal hits nearly as good take from a mapping quality."""
    return int(4.343 * math.log(n + 1) + ROUNDING) if n > 0 else 0


@compiled(inline="always")
def length_factor(aligned):
    """What an alignment of so many bases counts in bwa's mapping quality."""
    return 1.0 if aligned < 50 else 3.0 / math.log(aligned)


@compiled(inline="always")
def unique_suboptimal(match):
    """The suboptimal score that bwa takes a unique hit to have."""
    return _SHORTEST_SEED * match


@compiled(inline="always")
def unrounded_mapq(score, suboptimal, aligned, factor, match, mismatch):
    """bwa's mapping quality by itself, float64, `factor` being the `length_factor`; both engines
    use it. The suboptimal score is the lower one.
    """
    identity = 1.0 - (aligned * match - score) / (match - mismatch) / aligned
    factor *= identity * identity
    return 6.02 * (score - suboptimal) / match * factor * factor


@compiled
def single_end_mapq(score, suboptimal, n_suboptimal, aligned, unlocated, match, mismatch):
    """bwa's mem_approx_mapq_se."""
    suboptimal = max(suboptimal, unlocated - UNLOCATED_LOSS * match, unique_suboptimal(match))
    if suboptimal >= score:
        return 0
    factor = length_factor(aligned)
    quality = int(unrounded_mapq(score, suboptimal, aligned, factor, match, mismatch) + ROUNDING)
    return min(max(quality - _lost_to_others(n_suboptimal), 0), HIGHEST_QUALITY)


@compiled(inline="always")
def quality_beside(less, match):
    """The mapping quality of a hit beside another whose score is so much less."""
    return mapping_quality(likelihood(SCORE_UNITS * less, match))


@compiled(inline="always")
def is_near(less, length, near):
    """Whether a hit that scores so much less is a near one; both engines use it."""
    return length >= SHORT_READ and less <= near


@compiled(inline="always")
def others_beside(score, near, others, unlocated, length, match, mismatch):
    """How likely all hits beside one are together, those included that were not located or that no
    seed shows; both engines use it.

    Parameters
    ----------
    score : int64
        The clip-penalised score of the hit.
    near, others : int64
        The likelihoods of located near hits together, and of located hits that are not near.
    unlocated : int64
        What a hit that is not located is likely to score, or 0.
    """
    if unlocated:
        loss = match * (UNLOCATED_LOSS if length >= SHORT_READ else SHORT_UNLOCATED_LOSS)
        others += likelihood(SCORE_UNITS * (score - unlocated + loss), match)
        others *= UNLOCATED_RIVALS
    others += NEAR_RIVALS * near
    if unlocated and length >= SHORT_READ:
        above = score - score_bound_of(unlocated, length, match)
        others += likelihood(SCORE_UNITS * (above + BOUND_ROOM * match) // BOUND_SLOPE, match)
    if length < SHORT_READ:
        hidden = hidden_score(length, match, match - mismatch)
        others += likelihood(SCORE_UNITS * (score - hidden), match) // HIDDEN_ONCE_IN
    return others


@compiled(inline="always")
def select(hits, reads, scores, read, hit, primary):
    """Make a hit the primary one of its read; returns the best clip-penalised score of others."""
    length, match = reads.lengths[read], scores.match
    score = clip_penalised(hits, hit, length, scores.clip)
    span = read_span(hits, hit, length)
    best = best_penalised = np.int64(0)
    near = others = np.int64(0)
    for i in range(hits.offsets[read], hits.offsets[read + 1]):
        # The others score less still, and count nothing.
        if hits.scores[i] <= min(best_penalised, score - MOST_LESS * match):
            break
        if i == hit or not same_bases(span, read_span(hits, i, length)):
            continue
        penalised = clip_penalised(hits, i, length, scores.clip)
        best = max(best, np.int64(hits.scores[i]))
        best_penalised = max(best_penalised, penalised)
        likely = likelihood(SCORE_UNITS * (score - penalised), match)
        if is_near(score - penalised, length, scores.near):
            near += likely
        else:
            others += likely
    others = others_beside(
        score, near, others, np.int64(reads.unlocated[read]), length, match, scores.mismatch
    )
    alone = single_end_mapq(
        score, 0, 0, hits.ends[hit] - hits.starts[hit], 0, match, scores.mismatch
    )
    primary.hits[read], primary.suboptimal[read] = hit, best
    primary.qualities[read] = min(alone, mapping_quality(others))
    return best_penalised


@compiled
def select_unpaired(hits, reads, scores, primary):
    """Select the best hit of every read that is in no proper pair."""
    hits, reads, primary = uncounted((hits, reads, primary))
    for read in range(hits.offsets.size - 1):
        begin, end = hits.offsets[read], hits.offsets[read + 1]
        if primary.proper[read] or begin == end or hits.scores[begin] < scores.least:
            continue
        # Among equals one is drawn by the read's own number, so that no repeat is favoured.
        length = reads.lengths[read]
        best, equals = np.int64(_NOTHING), 0
        for i in range(begin, end):
            penalised = clip_penalised(hits, i, length, scores.clip)
            if hits.scores[i] >= scores.least and penalised >= best:
                equals = equals + 1 if penalised == best else 1
                best = penalised
        drawn = drawn_of(reads.seeds[read], equals)
        selected = begin
        for i in range(begin, end):
            penalised = clip_penalised(hits, i, length, scores.clip)
            if hits.scores[i] >= scores.least and penalised == best:
                if drawn == 0:
                    selected = i
                drawn -= 1
        select(hits, reads, scores, read, selected, primary)
