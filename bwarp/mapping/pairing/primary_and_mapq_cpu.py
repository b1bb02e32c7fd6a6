"""Which place of each read is the one, and how sure that is: bwa's pairing and mapping quality.

A pair of places that lie to each other as the run's pairs do scores the sum of both and the
logarithm of its distance's probability; it is taken where that beats the two best places by
themselves less a penalty. The quality compares the chosen place with the best other one that
explains the same bases: of the read by itself, and of the pair.

Places are compared by their scores with clipped ends paid for: two mismatches at a read's end are
worse than one, although both are clipped to the same score.

Places that nobody looked at have a bound (Candidates.unlocated), not a score. They are copies of a
repeat of which other copies were seen; one of them is taken to be as good as the best copy seen,
or as `UNLOCATED_LOSS` below the bound, whichever is more.
"""

import math
from dataclasses import dataclass

import numba
import numpy as np

from bwarp.mapping.extension.scored_hits_cpu import ScoredHits
from bwarp.mapping.pairing.insert_size import (
    SCORE_UNITS,
    InsertSize,
    insert_size_scores,
    signed_insert_size,
)
from bwarp.mapping.parameters import MappingParameters
from bwarp.runtime.threads import for_each_range

__all__ = [
    "PrimarySelection",
    "select_paired",
    "select_single",
    "suboptimal_of",
    "single_end_mapq",
    "read_span",
]

UNPAIRED_PENALTY = 17
UNLOCATED_LOSS = 10
_SHORTEST_SEED = 19


@dataclass(frozen=True)
class PrimarySelection:
    """The outcome for every read.

    Attributes
    ----------
    hits : ndarray, shape=(n_reads,), dtype=int64
        The number of the chosen place, or -1.
    qualities : ndarray, shape=(n_reads,), dtype=uint8
    suboptimal : ndarray, shape=(n_reads,), dtype=int32
        The best score of any other place of the same bases, 0 where there is none: XS.
    proper : ndarray, shape=(n_reads,), dtype=bool
    """

    hits: np.ndarray
    qualities: np.ndarray
    suboptimal: np.ndarray
    proper: np.ndarray


def select_single(
    hits: ScoredHits,
    lengths: np.ndarray,
    unlocated: np.ndarray,
    parameters: MappingParameters,
    seeds: np.ndarray,
    threads: int = 1,
) -> PrimarySelection:
    """Choose for reads that have no mates; `seeds` (uint64 a read) break ties."""
    n_reads = len(hits.offsets) - 1
    primary = _empty_choice(n_reads)
    for_each_range(
        lambda first, last: _select_single(
            *_columns_of(hits), lengths, unlocated, seeds, *_scores_of(parameters),
            parameters.least_score, first, last, primary.hits, primary.qualities,
            primary.suboptimal,
        ),
        n_reads,
        threads,
    )  # fmt: skip
    return primary


def select_paired(
    hits: ScoredHits,
    lengths: np.ndarray,
    unlocated: np.ndarray,
    insert: InsertSize,
    parameters: MappingParameters,
    seeds: np.ndarray,
    contig_starts: np.ndarray,
    threads: int = 1,
) -> PrimarySelection:
    """Choose for pairs: reads 2 i and 2 i + 1; `seeds` (uint64 a read) break ties."""
    n_reads = len(hits.offsets) - 1
    primary = _empty_choice(n_reads)
    likely = insert_size_scores(insert, parameters.match) if insert.highest else None

    def run(first: int, last: int) -> None:
        _select_single(
            *_columns_of(hits), lengths, unlocated, seeds, *_scores_of(parameters),
            parameters.least_score, 2 * first, 2 * last,
            primary.hits, primary.qualities, primary.suboptimal,
        )  # fmt: skip
        if likely is not None:
            _select_pairs(
                *_columns_of(hits), lengths, unlocated, seeds, *_scores_of(parameters),
                contig_starts, likely, insert.lowest, insert.orientation, first, last,
                primary.hits, primary.qualities, primary.suboptimal, primary.proper,
            )  # fmt: skip

    for_each_range(run, n_reads // 2, threads)
    return primary


def _empty_choice(n_reads: int) -> PrimarySelection:
    return PrimarySelection(
        np.full(n_reads, -1, np.int64),
        np.zeros(n_reads, np.uint8),
        np.zeros(n_reads, np.int32),
        np.zeros(n_reads, bool),
    )


def _columns_of(hits: ScoredHits) -> tuple[np.ndarray, ...]:
    return (
        hits.offsets, hits.scores, hits.strands, hits.starts, hits.ends,
        hits.read_starts, hits.read_ends, hits.gapless,
    )  # fmt: skip


def _scores_of(parameters: MappingParameters) -> tuple[int, int, int, int]:
    gap = parameters.gap_open + parameters.gap_extend
    return parameters.match, parameters.mismatch, gap, parameters.clip


@numba.njit(cache=True, nogil=True, inline="always")
def read_span(strand, read_start, read_end, length):
    """The bases of the read, as it was read, that a place explains."""
    if strand:
        return length - read_end, length - read_start
    return np.int64(read_start), np.int64(read_end)


@numba.njit(cache=True, nogil=True, inline="always")
def _clip_penalised(score, read_start, read_end, gapless, length, clip):
    """A place's score with its clipped ends paid for.

    A gapped one's start is not known, so its end is not paid for either: strands are equal.
    """
    if not gapless:
        return np.int64(score)
    return np.int64(score) - clip * (np.int64(read_start > 0) + np.int64(read_end < length))


@numba.njit(cache=True, nogil=True)
def suboptimal_of(
    offsets, scores, strands, read_starts, read_ends, gapless, length, clip, read, selected, margin
):  # fmt: skip
    """The best other place of the same bases of a read, its score and its score paid for, and how
    many such places are within `margin` of the chosen. The same bases: half of the shorter stretch
    or more.
    """
    best = best_penalised = np.int64(0)
    n = 0
    selected_penalised = _clip_penalised(
        scores[selected],
        read_starts[selected],
        read_ends[selected],
        gapless[selected],
        length,
        clip,
    )
    start, end = read_span(strands[selected], read_starts[selected], read_ends[selected], length)
    for i in range(offsets[read], offsets[read + 1]):
        if i == selected:
            continue
        start_2, end_2 = read_span(strands[i], read_starts[i], read_ends[i], length)
        shared = min(end, end_2) - max(start, start_2)
        if 2 * shared < min(end - start, end_2 - start_2):
            continue
        penalised = _clip_penalised(
            scores[i], read_starts[i], read_ends[i], gapless[i], length, clip
        )
        best = max(best, np.int64(scores[i]))
        best_penalised = max(best_penalised, penalised)
        n += selected_penalised - penalised <= margin
    return best, best_penalised, n


@numba.njit(cache=True, nogil=True)
def single_end_mapq(score, other, n_suboptimal, aligned, unlocated, match, mismatch):
    """bwa's mem_approx_mapq_se."""
    other = max(other, unlocated - UNLOCATED_LOSS * match, _SHORTEST_SEED * match)
    if other >= score:
        return 0
    identity = 1.0 - (aligned * match - score) / (match - mismatch) / aligned
    factor = 1.0 if aligned < 50 else 3.0 / math.log(aligned)
    factor *= identity * identity
    quality = int(6.02 * (score - other) / match * factor * factor + 0.499)
    if n_suboptimal > 0:
        quality -= int(4.343 * math.log(n_suboptimal + 1) + 0.499)
    return min(max(quality, 0), 60)


@numba.njit(cache=True, nogil=True)
def _select_single(
    offsets, scores, strands, starts, ends, read_starts, read_ends, gapless, lengths, unlocated,
    seeds, match, mismatch, gap, clip, least, first, last, selected, qualities, suboptimal,
):  # fmt: skip
    for read in range(first, last):
        begin, end = offsets[read], offsets[read + 1]
        if begin == end or scores[begin] < least:
            continue
        # Among equals one is taken by the read's own number, so that no repeat is favoured.
        length = lengths[read]
        best, equals = np.int64(-1), 0
        for i in range(begin, end):
            penalised = _clip_penalised(
                scores[i], read_starts[i], read_ends[i], gapless[i], length, clip
            )
            if scores[i] >= least and penalised >= best:
                equals = equals + 1 if penalised == best else 1
                best = penalised
        drawn = np.int64(seeds[read] % np.uint64(equals))
        hit = begin
        for i in range(begin, end):
            penalised = _clip_penalised(
                scores[i], read_starts[i], read_ends[i], gapless[i], length, clip
            )
            if scores[i] >= least and penalised == best:
                if drawn == 0:
                    hit = i
                drawn -= 1
        selected[read] = hit
        suboptimal[read], other, n = suboptimal_of(
            offsets, scores, strands, read_starts, read_ends, gapless, length, clip, read, hit,
            max(match - mismatch, gap),
        )  # fmt: skip
        qualities[read] = single_end_mapq(
            best, other, n, ends[hit] - starts[hit], unlocated[read], match, mismatch
        )


@numba.njit(cache=True, nogil=True)
def _best_clip_penalised(offsets, scores, read_starts, read_ends, gapless, length, clip, read):
    best = np.int64(0)
    for i in range(offsets[read], offsets[read + 1]):
        best = max(
            best, _clip_penalised(scores[i], read_starts[i], read_ends[i], gapless[i], length, clip)
        )
    return best


@numba.njit(cache=True, nogil=True, inline="always")
def _five_prime(strand, start, end, read_start, read_end, length):
    """Where the read's first base lies, clipped bases included."""
    return end + length - read_end if strand else start - read_start


@numba.njit(cache=True, nogil=True, inline="always")
def _one_contig(contig_starts, position, position_2):
    contig = np.searchsorted(contig_starts, position, side="right")
    return contig_starts[contig - 1] <= position_2 < contig_starts[contig]


@numba.njit(cache=True, nogil=True, inline="always")
def _unlocated_rival(unlocated, other, match):
    """What a place that was not looked at may score; 0 if there is none."""
    return max(min(unlocated, other), unlocated - UNLOCATED_LOSS * match) if unlocated else 0


@numba.njit(cache=True, nogil=True)
def _select_pairs(
    offsets, scores, strands, starts, ends, read_starts, read_ends, gapless, lengths, unlocated,
    seeds, match, mismatch, gap, clip, contig_starts, likely, lowest, orientation, first, last,
    selected, qualities, suboptimal, proper,
):  # fmt: skip
    margin = max(match - mismatch, gap)
    same_strand, side = orientation >> 1, -1 if orientation & 1 else 1
    nothing = np.int64(-(1 << 60))
    for template in range(first, last):
        a, b = 2 * template, 2 * template + 1
        if offsets[a] == offsets[a + 1] or offsets[b] == offsets[b + 1]:
            continue
        best, second = nothing, nothing
        n_second = 0
        best_a, best_b = np.int64(-1), np.int64(-1)
        best_tie = np.uint64(0)
        for round_ in range(2):
            for i in range(offsets[a], offsets[a + 1]):
                penalised = _clip_penalised(
                    scores[i], read_starts[i], read_ends[i], gapless[i], lengths[a], clip
                )
                five_prime = _five_prime(
                    strands[i], starts[i], ends[i], read_starts[i], read_ends[i], lengths[a]
                )
                for j in range(offsets[b], offsets[b + 1]):
                    if (strands[i] == strands[j]) != same_strand:
                        continue
                    five_prime_2 = _five_prime(
                        strands[j], starts[j], ends[j], read_starts[j], read_ends[j], lengths[b]
                    )
                    size = side * signed_insert_size(five_prime, strands[i], five_prime_2) - lowest
                    if size < 0 or size >= likely.size:
                        continue
                    if not _one_contig(contig_starts, ends[i] - 1, ends[j] - 1):
                        continue
                    score = penalised + _clip_penalised(
                        scores[j], read_starts[j], read_ends[j], gapless[j], lengths[b], clip
                    )
                    score = SCORE_UNITS * score + likely[size]
                    if round_ == 1:
                        near = second - score <= SCORE_UNITS * margin
                        n_second += near and (i != best_a or j != best_b)
                        continue
                    number = np.uint64((i - offsets[a]) * 7919 + j - offsets[b])
                    tie = (seeds[a] ^ number) * np.uint64(0x9E3779B97F4A7C15)
                    if score > best or (score == best and tie > best_tie):
                        second = max(second, best)
                        best, best_a, best_b, best_tie = score, i, j, tie
                    else:
                        second = max(second, score)
            if second == nothing:
                break
        if best_a < 0:
            continue
        unpaired = -UNPAIRED_PENALTY * match
        for read in (a, b):
            unpaired += _best_clip_penalised(
                offsets, scores, read_starts, read_ends, gapless, lengths[read], clip, read
            )
        if best <= SCORE_UNITS * unpaired:
            continue
        proper[a] = proper[b] = True
        rivals = np.int64(0)
        for end in range(2):
            read, hit = (a, best_a) if end == 0 else (b, best_b)
            selected[read] = hit
            suboptimal[read], rival, n = suboptimal_of(
                offsets, scores, strands, read_starts, read_ends, gapless, lengths[read], clip,
                read, hit, margin,
            )  # fmt: skip
            penalised = _clip_penalised(
                scores[hit],
                read_starts[hit],
                read_ends[hit],
                gapless[hit],
                lengths[read],
                clip,
            )
            qualities[read] = single_end_mapq(
                penalised, rival, n, ends[hit] - starts[hit], unlocated[read], match, mismatch
            )
            rivals += _unlocated_rival(unlocated[read], rival, match)
        other = max(second, SCORE_UNITS * max(unpaired, rivals))
        together = int(6.02 * (best - other) / (SCORE_UNITS * match) + 0.499)
        if n_second > 0 and second >= SCORE_UNITS * unpaired:
            together -= int(4.343 * math.log(n_second + 1) + 0.499)
        together = min(max(together, 0), 60)
        for read in (a, b):
            alone = np.int64(qualities[read])
            if together > alone:
                qualities[read] = min(together, alone + 40)
