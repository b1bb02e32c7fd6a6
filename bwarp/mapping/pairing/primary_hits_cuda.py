"""Primary hits and their mapping qualities on the GPU, by the rules of primary_pairs_cpu and
primary_and_mapq_cpu.

One warp works on a pair. The CPU sorts the hits of read 2; here all pairs of hits are looked at,
32 at a time, for which a number a hit is enough that is written once:

    hit of read 2    contig | strand | first base
    hit of read 1    contig | strand of read 2 | first position of the window where that begins

A hit of read 2 lies in the window if its number is less than the window's size above that of the
hit of read 1. Likelihoods are whole numbers, so that their sums are the same in any order; and of
equal pairs that with the highest tie number is taken, which no two have in common.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bwarp.gpu.cuda import cuda, float64, int32, int64, uint8, uint64
from bwarp.gpu.device_arrays import columns
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import ALL_LANES, WARP, launch
from bwarp.gpu.warp_reductions import greatest, total
from bwarp.mapping.extension.extension_cuda import DeviceGenome, contig_at
from bwarp.mapping.extension.scored_hits_cpu import (
    END,
    FIELDS,
    READ_END,
    READ_START,
    SCORE,
    START,
)
from bwarp.mapping.extension.scored_hits_cuda import DeviceScoredHits
from bwarp.mapping.pairing.hit_qualities_cuda import penalised_at, quality_of_hit
from bwarp.mapping.pairing.insert_size import (
    SCORE_UNITS,
    InsertSize,
    five_prime,
    insert_size_scores,
)
from bwarp.mapping.pairing.likelihoods import likelihood
from bwarp.mapping.pairing.primary_and_mapq_cpu import Scores, length_factor, scores_of
from bwarp.mapping.pairing.primary_pairs_cpu import (
    number_of_size,
    pair_quality,
    pairs_beside,
    unlocated_rival,
    unpaired_score,
    window_of_mate,
)
from bwarp.mapping.pairing.tie_seeds import drawn_of, pair_tie, tie_seed
from bwarp.mapping.parameters import SHORT_READ, MappingParameters
from bwarp.mapping.reads.device_reads_cuda import DeviceReads

__all__ = ["DevicePrimary", "select_primary"]

#: Where strand and contig stand in a hit's number: no genome has as many bases, and no window
#: beyond its ends.
_STRAND, _CONTIG = 36, 37

#: Less than any score.
_NOTHING = -(1 << 60)


class DevicePrimary(NamedTuple):
    """The outcome for every read, as `PrimarySelection`.

    Attributes
    ----------
    hits
        The row of the primary hit, or -1.
    qualities, suboptimal, proper
    """

    hits: int32[::1]
    qualities: uint8[::1]
    suboptimal: int32[::1]
    proper: uint8[::1]


class Known(NamedTuple):
    """What is known of reads besides their hits, `length_factor` of numbers of bases, and the
    number of the first template."""

    unlocated: int32[::1]
    factors: float64[::1]
    first_template: int


class MateDistances(NamedTuple):
    """What distances of mates score, and where mates lie (`InsertSize`)."""

    likely: int64[::1]
    lowest: int
    orientation: int


class HitNumbers(NamedTuple):
    """Of every hit the number that the module's docstring draws, and its clip-penalised score."""

    keys: int64[::1]
    penalised: int32[::1]


def select_primary(
    genome: DeviceGenome,
    reads: DeviceReads,
    hits: DeviceScoredHits,
    unlocated,
    insert: InsertSize | None,
    ends: int,
    first_template: int,
    parameters: MappingParameters,
) -> DevicePrimary:
    """Primary hits as `select_paired` (2 ends) or `select_single` finds them, with the tie numbers
    of templates from `first_template` on.

    Parameters
    ----------
    unlocated : device array, shape=(n_reads,), dtype=int32
    insert : InsertSize or None
        None, or one that is not known: there are no proper pairs.
    """
    n_reads = reads.n_reads
    primary = columns(DevicePrimary, max(1, n_reads))
    gpu = cuda.get_current_device().id
    factors = _length_factors(gpu, 1 << reads.longest.bit_length())
    known, scores = Known(unlocated, factors, first_template), scores_of(parameters)
    is_paired = ends == 2 and insert is not None and insert.highest > 0
    if is_paired:
        likely = _insert_size_scores(gpu, insert, parameters.match)
        mates = MateDistances(likely, insert.lowest, insert.orientation)
        numbers = columns(HitNumbers, max(1, hits.count))
        select_pairs[launch(n_reads // 2 * WARP)](
            genome, reads, hits, known, mates, scores, numbers, primary
        )
    select_reads[launch(n_reads * WARP)](reads, hits, known, scores, ends, int(is_paired), primary)
    return primary


@lru_cache(maxsize=16)
def _length_factors(_gpu, stop: int):
    """`length_factor` of all numbers of bases below `stop`: logarithms of a GPU differ in their
    last bits. No alignment of a scored hit has more bases than its read.
    """
    factors = [length_factor.py_func(aligned) for aligned in range(stop)]
    return cuda.to_device(np.array(factors, np.float64))


@lru_cache(maxsize=16)
def _insert_size_scores(_gpu, insert: InsertSize, match: int):
    return cuda.to_device(insert_size_scores(insert, match))


@cuda.jit(device=True)
def pair_score(numbers, hits, mates, a, b):
    """What two hits score as a pair, or `_NOTHING` where that is no proper one."""
    from_low = numbers.keys[b] - numbers.keys[a]
    if from_low < 0 or from_low >= mates.likely.size:
        return int64(_NOTHING)
    _, side, _ = window_of_mate(
        mates.orientation, int64(hits.strands[a]), int64(0), int64(0), mates.likely.size
    )
    size = number_of_size(from_low, side, mates.likely.size)
    return (
        SCORE_UNITS * (int64(numbers.penalised[a]) + int64(numbers.penalised[b]))
        + mates.likely[size]
    )


@kernel
def select_pairs(
    genome: DeviceGenome, reads: DeviceReads, hits: DeviceScoredHits, known: Known,
    mates: MateDistances, scores: Scores, numbers: HitNumbers, primary: DevicePrimary,
):  # fmt: skip
    """Mark the reads of proper pairs, and select their primary hits.

    One warp a pair, a lane every 32nd hit, then every 32nd pair of hits. Reads the rows of both
    reads once or twice; each pair of hits is looked at twice, by two numbers from the cache.
    """
    offsets, scored = reads.offsets, hits.scored
    keys, penalised = numbers.keys, numbers.penalised
    pair = cuda.grid(1) // WARP
    if pair >= (offsets.size - 1) // 2:
        return
    lane = int64(cuda.laneid)
    a, b = 2 * int64(pair), 2 * int64(pair) + 1
    first_a, first_b = int64(hits.offsets[a]), int64(hits.offsets[b])
    last_b = int64(hits.offsets[b + 1])
    n_a, n_b = first_b - first_a, last_b - first_b
    if lane == 0:
        primary.proper[a] = 0
        primary.proper[b] = 0
    if n_a == 0 or n_b == 0:
        return
    length_a, length_b = offsets[b] - offsets[a], offsets[b + 1] - offsets[b]
    single_a, single_b = int64(0), int64(0)
    for hit in range(first_a + lane, last_b, WARP):
        is_b, row, strand = hit >= first_b, FIELDS * hit, int64(hits.strands[hit])
        length = length_b if is_b else length_a
        score = penalised_at(hits, hit, length, scores.clip)
        position = five_prime(
            strand, scored[row + START], scored[row + END], scored[row + READ_START],
            scored[row + READ_END], length,
        )  # fmt: skip
        if is_b:
            single_b = max(single_b, score)
        else:
            single_a = max(single_a, score)
            strand, _, position = window_of_mate(
                mates.orientation, strand, position, mates.lowest, mates.likely.size
            )
        contig = int64(contig_at(genome.contig_starts, scored[row + END] - 1))
        keys[hit] = position + (strand << _STRAND) + (contig << _CONTIG)
        penalised[hit] = score
    cuda.syncwarp()

    # The best pair: score, then tie number.
    seed = tie_seed(uint64(known.first_template + pair))
    best, best_tie, best_hits = int64(_NOTHING), int64(0), int64(0)
    n_found = int64(0)
    rows_a_step, rest_a_step = WARP // n_b, WARP % n_b
    i, j = lane // n_b, lane % n_b
    while i < n_a:
        score = pair_score(numbers, hits, mates, first_a + i, first_b + j)
        if score != _NOTHING:
            n_found += 1
        if score != _NOTHING and score >= best:
            tie = pair_tie(seed, i, j)
            if score > best or tie > uint64(best_tie):
                best, best_tie, best_hits = score, int64(tie), (i << 32) + j
        i += rows_a_step
        j += rest_a_step
        if j >= n_b:
            i += 1
            j -= n_b
    n_found = total(n_found)
    if n_found == 0:
        return
    for distance in (16, 8, 4, 2, 1):
        score = cuda.shfl_xor_sync(ALL_LANES, best, distance)
        tie = cuda.shfl_xor_sync(ALL_LANES, best_tie, distance)
        pair_of_hits = cuda.shfl_xor_sync(ALL_LANES, best_hits, distance)
        if score > best or (score == best and uint64(tie) > uint64(best_tie)):
            best, best_tie, best_hits = score, tie, pair_of_hits
    best_a, best_b = best_hits >> 32, best_hits & 0xFFFFFFFF
    single_a, single_b = greatest(single_a), greatest(single_b)
    unpaired = unpaired_score(single_a, single_b, scores.match)
    if best <= unpaired:
        return

    # How likely all pairs with another hit of a read are.
    others_a, others_b, near_a, near_b = int64(0), int64(0), int64(0), int64(0)
    if n_found > 1:
        i, j = lane // n_b, lane % n_b
        while i < n_a:
            score = pair_score(numbers, hits, mates, first_a + i, first_b + j)
            if score != _NOTHING:
                beside = likelihood(best - score, scores.match)
                near = beside if best - score <= SCORE_UNITS * scores.near else int64(0)
                others_a += beside if i != best_a else int64(0)
                others_b += beside if j != best_b else int64(0)
                near_a += near if i != best_a else int64(0)
                near_b += near if j != best_b else int64(0)
            i += rows_a_step
            j += rest_a_step
            if j >= n_b:
                i += 1
                j -= n_b
        others_a, others_b = total(others_a), total(others_b)
        near_a, near_b = total(near_a), total(near_b)
    best_a, best_b = best_a + first_a, best_b + first_b
    apart = likelihood(best - unpaired, scores.match)
    others_a += apart if int64(penalised[best_a]) < single_a else int64(0)
    others_b += apart if int64(penalised[best_b]) < single_b else int64(0)

    unlocated_a, unlocated_b = int64(known.unlocated[a]), int64(known.unlocated[b])
    alone_a, raw_a, suboptimal_a = quality_of_hit(
        hits, first_a, first_b, best_a, length_a, unlocated_a, known.factors, scores
    )
    alone_b, raw_b, suboptimal_b = quality_of_hit(
        hits, first_b, last_b, best_b, length_b, unlocated_b, known.factors, scores
    )
    rivals = unlocated_rival(unlocated_a, suboptimal_a, scores.match)
    rivals += unlocated_rival(unlocated_b, suboptimal_b, scores.match)
    besides = pairs_beside(best, rivals, length_a, length_b, scores.match, scores.mismatch)
    is_short = length_a < SHORT_READ and length_b < SHORT_READ
    is_repeat_a, is_repeat_b = unlocated_a > 0, unlocated_b > 0
    if lane == 0:
        primary.hits[a], primary.suboptimal[a], primary.proper[a] = best_a, raw_a, 1
        primary.hits[b], primary.suboptimal[b], primary.proper[b] = best_b, raw_b, 1
        primary.qualities[a] = pair_quality(
            others_a + besides, near_a, is_short, is_repeat_a, is_repeat_b, alone_a
        )
        primary.qualities[b] = pair_quality(
            others_b + besides, near_b, is_short, is_repeat_a, is_repeat_b, alone_b
        )


@cuda.jit(device=True)
def lanes_with(hits, hit, last, best, length, scores):
    """The lanes, as bits, whose hit is reported and has this clip-penalised score."""
    is_best = False
    if hit < last and hits.scored[FIELDS * hit + SCORE] >= scores.least:
        is_best = penalised_at(hits, hit, length, scores.clip) == best
    return int64(cuda.ballot_sync(ALL_LANES, is_best)) & ALL_LANES


@kernel
def select_reads(
    reads: DeviceReads, hits: DeviceScoredHits, known: Known, scores: Scores, ends: int,
    is_paired: int, primary: DevicePrimary,
):  # fmt: skip
    """Select the primary hits of reads that are in no proper pair.

    Where `is_paired` is 1 `proper` says which are; else none is. One warp a read, a lane every 32nd
    hit; rows are read up to four times, from the cache.
    """
    read = int64(cuda.grid(1) // WARP)
    if read >= reads.offsets.size - 1 or (is_paired and primary.proper[read]):
        return
    lane = int64(cuda.laneid)
    first, last = int64(hits.offsets[read]), int64(hits.offsets[read + 1])
    if first == last or hits.scored[FIELDS * first + SCORE] < scores.least:
        if lane == 0:
            primary.hits[read], primary.suboptimal[read] = -1, 0
            primary.qualities[read], primary.proper[read] = 0, 0
        return
    length = reads.offsets[read + 1] - reads.offsets[read]
    best = int64(_NOTHING)
    for hit in range(first + lane, last, WARP):
        if hits.scored[FIELDS * hit + SCORE] >= scores.least:
            best = max(best, penalised_at(hits, hit, length, scores.clip))
    best = greatest(best)
    equals = int64(0)
    for step in range(first, last, WARP):
        equals += cuda.popc(lanes_with(hits, step + lane, last, best, length, scores))
    drawn = drawn_of(tie_seed(uint64(known.first_template + read // ends)), equals)
    chosen = first
    for step in range(first, last, WARP):
        lanes = lanes_with(hits, step + lane, last, best, length, scores)
        if drawn >= 0 and drawn < cuda.popc(lanes):
            # The lane before which so many others have such a hit.
            before = cuda.popc(lanes & ((int64(1) << lane) - 1))
            is_drawn = (lanes >> lane) & 1 == 1 and before == drawn
            drawn_lane = int64(cuda.ballot_sync(ALL_LANES, is_drawn)) & ALL_LANES
            chosen = step + int64(cuda.ffs(drawn_lane)) - 1
        drawn -= cuda.popc(lanes)
    quality, raw, _ = quality_of_hit(
        hits, first, last, chosen, length, int64(known.unlocated[read]), known.factors, scores
    )
    if lane == 0:
        primary.hits[read], primary.suboptimal[read] = chosen, raw
        primary.qualities[read], primary.proper[read] = quality, 0


#: bwa's mapping quality is a formula of real numbers.
DOUBLE_PRECISION = {select_pairs, select_reads}
