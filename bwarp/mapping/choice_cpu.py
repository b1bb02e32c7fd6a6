"""Which place of each read is the one, and how sure that is: bwa's pairing and mapping quality.

A pair of places that face each other at a likely distance scores the sum of both and the logarithm
of that distance's probability; it is taken where that beats the two best places by themselves less
a penalty. The quality compares the chosen place with the best other one: of the read by itself, and
of the pair.
"""

import math
from dataclasses import dataclass

import numba
import numpy as np

from bwarp.mapping.extension_cpu import Places
from bwarp.mapping.insert_size import InsertSize, template_ends
from bwarp.mapping.parameters import MappingParameters
from bwarp.threads import for_each_range

__all__ = ["Choice", "choose_paired", "choose_single"]

UNPAIRED_PENALTY = 17
_SHORTEST_SEED = 19


@dataclass(frozen=True)
class Choice:
    """The outcome for every read.

    Attributes
    ----------
    places : ndarray, shape=(n_reads,), dtype=int64
        The number of the chosen place, or -1.
    qualities : ndarray, shape=(n_reads,), dtype=uint8
    others : ndarray, shape=(n_reads,), dtype=int32
        The best score of any other place, 0 where there is none: XS.
    proper : ndarray, shape=(n_reads,), dtype=bool
    """

    places: np.ndarray
    qualities: np.ndarray
    others: np.ndarray
    proper: np.ndarray


def choose_single(
    places: Places, unseen: np.ndarray, parameters: MappingParameters, seeds: np.ndarray
) -> Choice:
    """Choose for reads that have no mates; `seeds` (uint64 a read) break ties."""
    n_reads = len(places.offsets) - 1
    choice = _empty_choice(n_reads)
    _choose_single(
        places.offsets, places.scores, places.starts, places.ends, unseen, seeds,
        parameters.match, parameters.mismatch, parameters.gap_open + parameters.gap_extend,
        0, n_reads, choice.places, choice.qualities, choice.others,
    )  # fmt: skip
    return choice


def choose_paired(
    places: Places,
    lengths: np.ndarray,
    unseen: np.ndarray,
    insert: InsertSize,
    parameters: MappingParameters,
    seeds: np.ndarray,
    contig_starts: np.ndarray,
    threads: int = 1,
) -> Choice:
    """Choose for pairs: reads 2 i and 2 i + 1; `seeds` (uint64 a read) break ties."""
    n_reads = len(places.offsets) - 1
    choice = _empty_choice(n_reads)
    starts, ends = template_ends(places, lengths)
    contigs = np.searchsorted(contig_starts, places.starts, side="right")
    gap = parameters.gap_open + parameters.gap_extend

    def run(first: int, last: int) -> None:
        _choose_single(
            places.offsets, places.scores, places.starts, places.ends, unseen, seeds,
            parameters.match, parameters.mismatch, gap,
            2 * first, 2 * last, choice.places, choice.qualities, choice.others,
        )  # fmt: skip
        if insert.highest:
            _choose_pairs(
                places.offsets, places.scores, places.strands, starts, ends, contigs, unseen,
                seeds, insert.mean, insert.deviation, insert.lowest, insert.highest,
                parameters.match, parameters.mismatch, gap, first, last,
                choice.places, choice.qualities, choice.others, choice.proper,
            )  # fmt: skip

    for_each_range(run, n_reads // 2, threads)
    return choice


def _empty_choice(n_reads: int) -> Choice:
    return Choice(
        np.full(n_reads, -1, np.int64),
        np.zeros(n_reads, np.uint8),
        np.zeros(n_reads, np.int32),
        np.zeros(n_reads, bool),
    )


@numba.njit(cache=True, nogil=True)
def _single_quality(score, other, n_others, aligned, unseen, match, mismatch):
    """bwa's mem_approx_mapq_se; a place not looked at counts as if it were as good as it may be."""
    other = max(other, unseen, _SHORTEST_SEED * match)
    if other >= score:
        return 0
    identity = 1.0 - (aligned * match - score) / (match - mismatch) / aligned
    factor = 1.0 if aligned < 50 else 3.0 / math.log(aligned)
    factor *= identity * identity
    quality = int(6.02 * (score - other) / match * factor * factor + 0.499)
    if n_others > 0:
        quality -= int(4.343 * math.log(n_others + 1) + 0.499)
    return min(max(quality, 0), 60)


@numba.njit(cache=True, nogil=True)
def _others(offsets, scores, read, chosen, margin):
    """The best other score of a read, and how many places are within `margin` of that one."""
    best = 0
    for i in range(offsets[read], offsets[read + 1]):
        if i != chosen:
            best = max(best, scores[i])
    n = 0
    for i in range(offsets[read], offsets[read + 1]):
        if i != chosen and best - scores[i] <= margin and best > 0:
            n += 1
    return best, n


@numba.njit(cache=True, nogil=True)
def _choose_single(
    offsets, scores, starts, ends, unseen, seeds, match, mismatch, gap, first, last,
    chosen, qualities, others,
):  # fmt: skip
    for read in range(first, last):
        begin, end = offsets[read], offsets[read + 1]
        if begin == end:
            continue
        # Among equals one is taken by the read's own number, so that no repeat is favoured.
        equals = 1
        while begin + equals < end and scores[begin + equals] == scores[begin]:
            equals += 1
        place = begin + np.int64(seeds[read] % np.uint64(equals))
        chosen[read] = place
        other, n = _others(offsets, scores, read, place, max(match - mismatch, gap))
        others[read] = other
        qualities[read] = _single_quality(
            scores[place], other, n, ends[place] - starts[place], unseen[read], match, mismatch
        )


@numba.njit(cache=True, nogil=True)
def _choose_pairs(
    offsets, scores, strands, starts, ends, contigs, unseen, seeds, mean, deviation, lowest,
    highest, match, mismatch, gap, first, last, chosen, qualities, others, proper,
):  # fmt: skip
    margin = max(match - mismatch, gap)
    for template in range(first, last):
        a, b = 2 * template, 2 * template + 1
        if offsets[a] == offsets[a + 1] or offsets[b] == offsets[b + 1]:
            continue
        best, second = -1e9, -1e9
        n_second = 0
        best_a, best_b = -1, -1
        best_tie = np.uint64(0)
        for round_ in range(2):
            for i in range(offsets[a], offsets[a + 1]):
                for j in range(offsets[b], offsets[b + 1]):
                    if strands[i] == strands[j] or contigs[i] != contigs[j]:
                        continue
                    size = ends[j] - starts[i] if strands[i] == 0 else ends[i] - starts[j]
                    if size < lowest or size > highest:
                        continue
                    distance = abs(size - mean) / deviation
                    likely = 0.721 * math.log(2.0 * math.erfc(distance * math.sqrt(0.5)))
                    score = float(int(scores[i] + scores[j] + likely * match + 0.499))
                    if round_ == 1:
                        if (i != best_a or j != best_b) and second - score <= margin:
                            n_second += 1
                        continue
                    number = np.uint64((i - offsets[a]) * 7919 + j - offsets[b])
                    tie = (seeds[a] ^ number) * np.uint64(0x9E3779B97F4A7C15)
                    if score > best or (score == best and tie > best_tie):
                        second = max(second, best)
                        best, best_a, best_b, best_tie = score, i, j, tie
                    else:
                        second = max(second, score)
        if best_a < 0:
            continue
        unpaired = scores[offsets[a]] + scores[offsets[b]] - UNPAIRED_PENALTY * match
        if best <= unpaired:
            continue
        proper[a] = proper[b] = True
        other = max(second, float(unpaired), float(unseen[a] + unseen[b]))
        pair_quality = int(6.02 * (best - other) / match + 0.499)
        if n_second > 0 and second >= unpaired:
            pair_quality -= int(4.343 * math.log(n_second + 1) + 0.499)
        pair_quality = min(max(pair_quality, 0), 60)
        for end in range(2):
            read = a + end
            place = best_a if end == 0 else best_b
            score, n = _others(offsets, scores, read, place, margin)
            alone = _single_quality(
                scores[place], score, n, ends[place] - starts[place], unseen[read], match,
                mismatch,
            )  # fmt: skip
            quality = alone if alone >= pair_quality else min(pair_quality, alone + 40)
            chosen[read] = place
            others[read] = score
            qualities[read] = min(quality, 60)
