"""Primary hits, by bwa's rules for pairs and single reads, and their mapping qualities.

A pair of hits that lie to each other as the run's pairs do scores the sum of both and the logarithm
of its insert size's probability; it is taken where that beats the two best hits by themselves less
a penalty. The mapping quality is the probability that the read lies elsewhere: every other hit of
the same bases is less likely by `MATCH_QUALITY` decibels a match that it scores less, and the
likelihoods of all of them are added, and of a pair those of all pairs with another hit of the read.
A read without another hit has the quality that bwa gives it.

Hits are compared by clip-penalised scores: two mismatches at a read's end are worse than one,
although both are clipped to the same raw score.

Unlocated hits have a bound (Candidates.unlocated), not a score. They are copies of a repeat of
which other copies were located; one of them is taken to be as good as the best located copy, or
`UNLOCATED_LOSS` below the bound, whichever is more; and there are more than one. A short read may
have a locus that no seed shows at all, too: one with a mismatch in each of its shortest seeds.
"""

import math
from typing import NamedTuple

import numba
import numpy as np

from bwarp.mapping.extension.scored_hits_cpu import ScoredHits
from bwarp.mapping.pairing.insert_size import (
    SCORE_UNITS,
    InsertSize,
    five_prime,
    insert_size_scores,
    signed_insert_size,
)
from bwarp.mapping.parameters import SHORT_READ, MappingParameters
from bwarp.runtime.timeline import on_timeline
from bwarp.runtime.uncounted import uncounted

__all__ = [
    "PrimarySelection",
    "quality_beside",
    "read_span",
    "same_bases",
    "select_paired",
    "select_single",
    "single_end_mapq",
    "suboptimal_of",
]

UNPAIRED_PENALTY = 17
UNLOCATED_LOSS = 10
_SHORTEST_SEED = 19

#: Bases of the seeds of the last round.
SHORTEST_SEED = MappingParameters.short.length

#: A short read's locus that seeds do not show is there once in so many decibels.
HIDDEN_QUALITY = 40
HIDDEN = 10.0 ** (-HIDDEN_QUALITY / 10)

#: Where hits are not located, there are so many times as many rivals as were seen: hits, or pairs;
#: pairs of short reads, whose frequent seeds are located more often.
UNLOCATED_RIVALS = 4
SHORT_RIVALS = 2

#: What a match less makes of a pair's mapping quality.
MATCH_QUALITY = 4.9

#: How likely a pair is, against one that scores more, by sixteenths of a match.
ODDS_STEP = SCORE_UNITS // 16
ODDS = 10.0 ** (-MATCH_QUALITY / 10 * np.arange(20 * 16) / 16)


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


class _Reads(NamedTuple):
    """What is known of reads besides their hits."""

    lengths: np.ndarray
    unlocated: np.ndarray
    seeds: np.ndarray


class _Scores(NamedTuple):
    match: int
    mismatch: int
    clip: int
    least: int


@on_timeline("select primary hits")
def select_single(
    hits: ScoredHits,
    lengths: np.ndarray,
    unlocated: np.ndarray,
    parameters: MappingParameters,
    seeds: np.ndarray,
) -> PrimarySelection:
    """Primary hits of reads that have no mates; `seeds` (uint64 a read) break ties."""
    n_reads = len(hits.offsets) - 1
    primary = PrimarySelection(
        np.full(n_reads, -1, np.int64),
        np.zeros(n_reads, np.uint8),
        np.zeros(n_reads, np.int32),
        np.zeros(n_reads, bool),
    )
    _select_single(hits, _Reads(lengths, unlocated, seeds), _scores_of(parameters), primary)
    return primary


@on_timeline("select primary hits")
def select_paired(
    hits: ScoredHits,
    lengths: np.ndarray,
    unlocated: np.ndarray,
    insert: InsertSize,
    parameters: MappingParameters,
    seeds: np.ndarray,
    contig_starts: np.ndarray,
) -> PrimarySelection:
    """Primary hits of pairs: reads 2 i and 2 i + 1; `seeds` (uint64 a read) break ties."""
    primary = select_single(hits, lengths, unlocated, parameters, seeds)
    if insert.highest:
        likely = insert_size_scores(insert, parameters.match)
        reads = _Reads(lengths, unlocated, seeds)
        _select_pairs(
            hits, reads, _scores_of(parameters), contig_starts, likely, insert.lowest,
            insert.orientation, primary,
        )  # fmt: skip
    return primary


def _scores_of(parameters: MappingParameters) -> _Scores:
    p = parameters
    return _Scores(p.match, p.mismatch, p.clip, p.least_score)


@numba.njit(cache=True, nogil=True, inline="always")
def read_span(hits, i, length):
    """The bases of the read, as it was read, that a hit aligns."""
    start, end = np.int64(hits.read_starts[i]), np.int64(hits.read_ends[i])
    return (length - end, length - start) if hits.strands[i] else (start, end)


@numba.njit(cache=True, nogil=True, inline="always")
def same_bases(span, span_2):
    """Whether two stretches of a read share half of the shorter one or more."""
    shared = min(span[1], span_2[1]) - max(span[0], span_2[0])
    return 2 * shared >= min(span[1] - span[0], span_2[1] - span_2[0])


@numba.njit(cache=True, nogil=True, inline="always")
def _clip_penalised(hits, i, length, clip):
    """A hit's score with its clipped ends penalised.

    Not that of a gapped hit: its start is not known, and strands are to be equal.
    """
    score = np.int64(hits.scores[i])
    if not hits.gapless[i]:
        return score
    return score - clip * (np.int64(hits.read_starts[i] > 0) + np.int64(hits.read_ends[i] < length))


# Inlined where hits are handed on as a tuple: a call counts references to all of its arrays, and
# takes half as long again.
@numba.njit(cache=True, nogil=True, inline="always")
def suboptimal_of(hits, read, primary, length, clip, margin):
    """The best other hit of the same bases of a read, its raw and its clip-penalised score, and how
    many such hits are within `margin` of the primary one.
    """
    best = best_penalised = np.int64(0)
    n = 0
    least = _clip_penalised(hits, primary, length, clip) - margin
    span = read_span(hits, primary, length)
    for i in range(hits.offsets[read], hits.offsets[read + 1]):
        if i == primary or not same_bases(span, read_span(hits, i, length)):
            continue
        penalised = _clip_penalised(hits, i, length, clip)
        best = max(best, np.int64(hits.scores[i]))
        best_penalised = max(best_penalised, penalised)
        n += penalised >= least
    return best, best_penalised, n


@numba.njit(cache=True, nogil=True, inline="always")
def _hidden_score(length, match, loss):
    """What a locus of a short read scores at most that no seed of the last round shows."""
    return match * length - loss * (length // SHORTEST_SEED)


@numba.njit(cache=True, nogil=True, inline="always")
def _lost_to_others(n):
    """What n suboptimal hits nearly as good take from a mapping quality."""
    return int(4.343 * math.log(n + 1) + 0.499) if n > 0 else 0


@numba.njit(cache=True, nogil=True)
def single_end_mapq(score, suboptimal, n_suboptimal, aligned, unlocated, match, mismatch):
    """bwa's mem_approx_mapq_se."""
    suboptimal = max(suboptimal, unlocated - UNLOCATED_LOSS * match, _SHORTEST_SEED * match)
    if suboptimal >= score:
        return 0
    identity = 1.0 - (aligned * match - score) / (match - mismatch) / aligned
    factor = 1.0 if aligned < 50 else 3.0 / math.log(aligned)
    factor *= identity * identity
    quality = int(6.02 * (score - suboptimal) / match * factor * factor + 0.499)
    return min(max(quality - _lost_to_others(n_suboptimal), 0), 60)


@numba.njit(cache=True, nogil=True, inline="always")
def _odds(less, match):
    """How likely a pair is that scores so much less than the best, which counts as 1."""
    step = max(less, np.int64(0)) // (match * ODDS_STEP)
    return ODDS[step] if step < ODDS.size else 0.0


@numba.njit(cache=True, nogil=True, inline="always")
def _quality(others):
    """The mapping quality of a hit beside which all others are so likely together."""
    if others < 1e-6:
        return 60
    if others >= 1.0:
        return 0
    return min(int(4.343 * math.log((1.0 + others) / others) + 0.499), 60)


@numba.njit(cache=True, nogil=True, inline="always")
def quality_beside(less, match):
    """The mapping quality of a hit beside another whose score is so much less."""
    return _quality(_odds(SCORE_UNITS * less, match))


@numba.njit(cache=True, nogil=True, inline="always")
def _select(hits, reads, scores, read, hit, primary):
    """Make a hit the primary one of its read; returns the best clip-penalised score of others."""
    length, match = reads.lengths[read], scores.match
    score = _clip_penalised(hits, hit, length, scores.clip)
    span = read_span(hits, hit, length)
    best = best_penalised = np.int64(0)
    others = 0.0
    for i in range(hits.offsets[read], hits.offsets[read + 1]):
        if i == hit or not same_bases(span, read_span(hits, i, length)):
            continue
        penalised = _clip_penalised(hits, i, length, scores.clip)
        best = max(best, np.int64(hits.scores[i]))
        best_penalised = max(best_penalised, penalised)
        others += _odds(SCORE_UNITS * (score - penalised), match)
    unlocated = np.int64(reads.unlocated[read])
    if unlocated:
        others += _odds(SCORE_UNITS * (score - unlocated + UNLOCATED_LOSS * match), match)
        others *= UNLOCATED_RIVALS
    if length < SHORT_READ:
        hidden = _hidden_score(length, match, match - scores.mismatch)
        others += HIDDEN * _odds(SCORE_UNITS * (score - hidden), match)
    alone = single_end_mapq(
        score, 0, 0, hits.ends[hit] - hits.starts[hit], 0, match, scores.mismatch
    )
    primary.hits[read], primary.suboptimal[read] = hit, best
    primary.qualities[read] = min(alone, _quality(others))
    return best_penalised


@numba.njit(cache=True, nogil=True)
def _select_single(hits, reads, scores, primary):
    hits, reads, primary = uncounted((hits, reads, primary))
    for read in range(hits.offsets.size - 1):
        begin, end = hits.offsets[read], hits.offsets[read + 1]
        if begin == end or hits.scores[begin] < scores.least:
            continue
        # Among equals one is drawn by the read's own number, so that no repeat is favoured.
        length = reads.lengths[read]
        best, equals = np.int64(-1), 0
        for i in range(begin, end):
            penalised = _clip_penalised(hits, i, length, scores.clip)
            if hits.scores[i] >= scores.least and penalised >= best:
                equals = equals + 1 if penalised == best else 1
                best = penalised
        drawn = np.int64(reads.seeds[read] % np.uint64(equals))
        selected = begin
        for i in range(begin, end):
            penalised = _clip_penalised(hits, i, length, scores.clip)
            if hits.scores[i] >= scores.least and penalised == best:
                if drawn == 0:
                    selected = i
                drawn -= 1
        _select(hits, reads, scores, read, selected, primary)


@numba.njit(cache=True, nogil=True, inline="always")
def _best_clip_penalised(hits, read, length, clip):
    best = np.int64(0)
    for i in range(hits.offsets[read], hits.offsets[read + 1]):
        best = max(best, _clip_penalised(hits, i, length, clip))
    return best


@numba.njit(cache=True, nogil=True, inline="always")
def _five_prime_of(hits, i, length):
    return five_prime(
        hits.strands[i], hits.starts[i], hits.ends[i], hits.read_starts[i], hits.read_ends[i],
        length,
    )  # fmt: skip


@numba.njit(cache=True, nogil=True, inline="always")
def _one_contig(contig_starts, position, position_2):
    contig = np.searchsorted(contig_starts, position, side="right")
    return contig_starts[contig - 1] <= position_2 < contig_starts[contig]


@numba.njit(cache=True, nogil=True)
def _select_pairs(hits, reads, scores, contig_starts, likely, lowest, orientation, primary):
    hits, reads, contig_starts = uncounted((hits, reads, contig_starts))
    likely, primary = uncounted((likely, primary))
    match, clip = scores.match, scores.clip
    same_strand, side = orientation >> 1, -1 if orientation & 1 else 1
    nothing = np.int64(-(1 << 60))
    for a in range(0, hits.offsets.size - 1, 2):
        b = a + 1
        first_a, first_b, end_b = hits.offsets[a], hits.offsets[b], hits.offsets[b + 1]
        length_a, length_b = reads.lengths[a], reads.lengths[b]
        best = nothing
        others_a = others_b = 0.0
        best_a, best_b = np.int64(-1), np.int64(-1)
        best_tie, n_pairs = np.uint64(0), 0
        for round_ in range(2):
            for i in range(first_a, first_b):
                penalised = _clip_penalised(hits, i, length_a, clip)
                five_prime_a = _five_prime_of(hits, i, length_a)
                for j in range(first_b, end_b):
                    if (hits.strands[i] == hits.strands[j]) != same_strand:
                        continue
                    five_prime_b = _five_prime_of(hits, j, length_b)
                    size = signed_insert_size(five_prime_a, hits.strands[i], five_prime_b)
                    size = side * size - lowest
                    if size < 0 or size >= likely.size:
                        continue
                    if not _one_contig(contig_starts, hits.ends[i] - 1, hits.ends[j] - 1):
                        continue
                    score = penalised + _clip_penalised(hits, j, length_b, clip)
                    score = SCORE_UNITS * score + likely[size]
                    if round_ == 1:
                        odds = _odds(best - score, match)
                        others_a += odds if i != best_a else 0.0
                        others_b += odds if j != best_b else 0.0
                        continue
                    number = np.uint64((i - first_a) * 7919 + j - first_b)
                    tie = (reads.seeds[a] ^ number) * np.uint64(0x9E3779B97F4A7C15)
                    n_pairs += 1
                    if score > best or (score == best and tie > best_tie):
                        best, best_a, best_b, best_tie = score, i, j, tie
            if n_pairs < 2:
                break
        if best_a < 0:
            continue
        single_a = _best_clip_penalised(hits, a, length_a, clip)
        single_b = _best_clip_penalised(hits, b, length_b, clip)
        unpaired = SCORE_UNITS * (single_a + single_b - UNPAIRED_PENALTY * match)
        if best <= unpaired:
            continue
        primary.proper[a] = primary.proper[b] = True
        rivals = np.int64(0)
        for read, hit in ((a, best_a), (b, best_b)):
            suboptimal = _select(hits, reads, scores, read, hit, primary)
            unlocated = np.int64(reads.unlocated[read])
            if unlocated:
                rivals += max(min(unlocated, suboptimal), unlocated - UNLOCATED_LOSS * match)
        besides = _odds(best - SCORE_UNITS * rivals, match)
        more = UNLOCATED_RIVALS
        if length_a < SHORT_READ and length_b < SHORT_READ:
            more = SHORT_RIVALS
            loss = match - scores.mismatch
            hidden = _hidden_score(length_a, match, loss) + _hidden_score(length_b, match, loss)
            besides += HIDDEN * _odds(best - SCORE_UNITS * hidden, match)
        apart = _odds(best - unpaired, match)
        if _clip_penalised(hits, best_a, length_a, clip) < single_a:
            others_a += apart
        if _clip_penalised(hits, best_b, length_b, clip) < single_b:
            others_b += apart
        for read, others in ((a, others_a + besides), (b, others_b + besides)):
            if reads.unlocated[a] or reads.unlocated[b]:
                others *= more
            alone = np.int64(primary.qualities[read])
            primary.qualities[read] = min(_quality(others), alone + 40)
