"""Primary hits and mapping qualities on the GPU, by the rules of primary_pairs_cpu and
primary_hits_cpu.

One warp processes a pair. The CPU sorts the hits of read 2; the GPU tests all pairs of hits, 32 at
a time, using one number per hit that is computed once:

    hit of read 2    contig | strand | first base
    hit of read 1    contig | strand of read 2 | first position of the window for read 2

A hit of read 2 is in the window if its number is at least that of the hit of read 1, and less than
that plus the size of the window. Likelihoods are integers, so that their sums do not depend on the
order; among equal pairs, the one with the highest tie number is taken, which is unique.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from bwarp.gpu.cuda import cuda, float64, int32, int64, uint8, uint32, uint64
from bwarp.gpu.device_arrays import columns
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import ALL_LANES, WARP, launch
from bwarp.gpu.ptx import add_rounded, load_uint32x4
from bwarp.gpu.sums_and_sorts import greatest, total
from bwarp.mapping.extension_cuda import DeviceGenome, contig_at
from bwarp.mapping.insert_size import (
    SCORE_UNITS,
    InsertSize,
    five_prime,
    insert_size_scores,
)
from bwarp.mapping.likelihoods import HIGHEST_QUALITY, likelihood, mapping_quality
from bwarp.mapping.pair_scores import (
    better_apart,
    exclude_each_other,
    others_in_repeat,
    pair_quality,
    pairs_beside,
    unlocated_rival,
    unpaired_score,
)
from bwarp.mapping.parameters import SHORT_READ, MappingParameters
from bwarp.mapping.primary_hits_cpu import (
    ROUNDING,
    Scores,
    above_unlocated,
    drawn_of,
    is_near,
    length_factor,
    others_beside,
    pair_tie,
    penalised_score,
    same_bases,
    scores_of,
    span_of,
    tie_seed,
    unique_suboptimal,
    unrounded_mapq,
)
from bwarp.mapping.primary_pairs_cpu import number_of_size, window_of_mate
from bwarp.mapping.scored_hits_cpu import (
    END,
    FIELDS,
    GAPLESS,
    READ_END,
    READ_START,
    SCORE,
    START,
)
from bwarp.mapping.scored_hits_cuda import DeviceScoredHits
from bwarp.mapping.tandem_repeats import (
    are_alike,
    bases_compared,
    likelihood_of_rival,
    probe_width,
    quality_beside_rivals,
    starts_of_rivals,
)
from bwarp.reads.base_bits_cuda import differing, shifted
from bwarp.reads.device_reads_cuda import DeviceReads

# --------------------------------------------------------------------------------------------------
# Properties of a hit computed by threads of the GPU: clip-penalised score, aligned bases of the
# read, and mapping quality, by the rules of primary_hits_cpu.


@cuda.jit(device=True)
def span_at(hits, hit, length):
    """Return the bases of the read, as sequenced, that a hit aligns."""
    scored = hits.scored
    row = FIELDS * hit
    return span_of(hits.strands[hit], scored[row + READ_START], scored[row + READ_END], length)


@cuda.jit(device=True)
def penalised_at(hits, hit, length, clip):
    """Return the clip-penalised score of a hit."""
    scored = hits.scored
    row = FIELDS * hit
    return penalised_score(
        scored[row + SCORE], scored[row + GAPLESS], scored[row + READ_START],
        scored[row + READ_END], length, clip,
    )  # fmt: skip


@cuda.jit(device=True)
def unique_mapq(score, aligned, factors, scores):
    """Return bwa's mapping quality of a unique hit."""
    suboptimal = unique_suboptimal(scores.match)
    if suboptimal >= score:
        return int64(0)
    unrounded = unrounded_mapq(
        score, suboptimal, aligned, factors[aligned], scores.match, scores.mismatch
    )
    return min(max(int64(add_rounded(unrounded, ROUNDING)), int64(0)), int64(HIGHEST_QUALITY))


@cuda.jit(device=True)
def quality_of_hit(hits, first, last, hit, length, unlocated, factors, scores):
    """Return the results of `primary_hits_cpu.select` for a primary hit: mapping quality, and the
    best raw and clip-penalised scores of others. All lanes of a warp call it; every 32nd hit each.

    The CPU stops when raw scores, which are in descending order, are so low that nothing changes:
    a clip-penalised score never exceeds the raw one, so later hits are no better, and at least
    `MOST_LESS` matches below the primary hit, with likelihood 0. The GPU processes all.
    """
    scored = hits.scored
    score = penalised_at(hits, hit, length, scores.clip)
    span = span_at(hits, hit, length)
    best, best_penalised = int64(0), int64(0)
    near, others = int64(0), int64(0)
    for i in range(first + int64(cuda.laneid), last, WARP):
        if i != hit and same_bases(span, span_at(hits, i, length)):
            penalised = penalised_at(hits, i, length, scores.clip)
            best = max(best, scored[FIELDS * i + SCORE])
            best_penalised = max(best_penalised, penalised)
            likely = likelihood(SCORE_UNITS * (score - penalised), scores.match)
            if is_near(score - penalised, length, scores.near):
                near += likely
            else:
                others += likely
    if last - first > 1:
        best, best_penalised = greatest(best), greatest(best_penalised)
        near, others = total(near), total(others)
    others = others_beside(score, near, others, unlocated, length, scores.match, scores.mismatch)
    row = FIELDS * hit
    alone = unique_mapq(score, scored[row + END] - scored[row + START], factors, scores)
    return min(alone, mapping_quality(others)), best, best_penalised


#: Positions of strand and contig in a hit's number: no genome has as many bases, including windows
#: beyond its ends.
_STRAND, _CONTIG = 36, 37

#: Lower than any score.
_NOTHING = -(1 << 60)


class DevicePrimary(NamedTuple):
    """The selected hit of each read, as in `PrimarySelection`.

    Attributes
    ----------
    hits
        Row of the primary hit, or -1.
    qualities, suboptimal, proper
    """

    hits: int32[::1]
    qualities: uint8[::1]
    suboptimal: int32[::1]
    proper: uint8[::1]


class Known(NamedTuple):
    """Data of reads other than their hits, `length_factor` per number of bases, and the number of
    the first template."""

    unlocated: int32[::1]
    factors: float64[::1]
    first_template: int


class MateDistances(NamedTuple):
    """Scores of distances of mates, and positions of mates (`InsertSize`)."""

    likely: int64[::1]
    lowest: int
    orientation: int


class HitNumbers(NamedTuple):
    """The number of each hit described in the module's docstring, and its clip-penalised score."""

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
    """Select primary hits like `select_paired` (2 ends) or `select_single`, with the tie numbers of
    templates from `first_template` on.

    Parameters
    ----------
    unlocated : device array, shape=(n_reads,), dtype=int32
    insert : InsertSize or None
        If None or unknown, there are no proper pairs.
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
    """Return `length_factor` of all numbers of bases below `stop`, computed on the CPU because
    logarithms of a GPU differ in their last bits. No alignment has more bases than its read.
    """
    factors = [length_factor.py_func(aligned) for aligned in range(stop)]
    return cuda.to_device(np.array(factors, np.float64))


@lru_cache(maxsize=16)
def _insert_size_scores(_gpu, insert: InsertSize, match: int):
    return cuda.to_device(insert_size_scores(insert, match))


@cuda.jit(device=True)
def pair_score(numbers, hits, mates, a, b):
    """Return the score of two hits as a pair, or `_NOTHING` if it is not proper."""
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

    One warp per pair; every 32nd hit, then every 32nd pair of hits per lane. The rows of both reads
    are read once or twice; each pair of hits is tested twice, by two numbers from the cache.
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
    if best <= unpaired_score(single_a, single_b, scores.match):
        return

    # Sums of the likelihoods of all pairs with another hit of the same bases of a read.
    others_a, others_b, near_a, near_b = int64(0), int64(0), int64(0), int64(0)
    if n_found > 1:
        span_a = span_at(hits, first_a + best_a, length_a)
        span_b = span_at(hits, first_b + best_b, length_b)
        i, j = lane // n_b, lane % n_b
        while i < n_a:
            score = pair_score(numbers, hits, mates, first_a + i, first_b + j)
            if score != _NOTHING:
                beside = likelihood(best - score, scores.match)
                near = beside if best - score <= SCORE_UNITS * scores.near else int64(0)
                span = span_at(hits, first_a + i, length_a)
                if i != best_a and exclude_each_other(span_a, span, length_a):
                    others_a += beside
                    near_a += near
                span = span_at(hits, first_b + j, length_b)
                if j != best_b and exclude_each_other(span_b, span, length_b):
                    others_b += beside
                    near_b += near
            i += rows_a_step
            j += rest_a_step
            if j >= n_b:
                i += 1
                j -= n_b
        others_a, others_b = total(others_a), total(others_b)
        near_a, near_b = total(near_a), total(near_b)
    best_a, best_b = best_a + first_a, best_b + first_b

    unlocated_a, unlocated_b = int64(known.unlocated[a]), int64(known.unlocated[b])
    alone_a, raw_a, suboptimal_a = quality_of_hit(
        hits, first_a, first_b, best_a, length_a, unlocated_a, known.factors, scores
    )
    alone_b, raw_b, suboptimal_b = quality_of_hit(
        hits, first_b, last_b, best_b, length_b, unlocated_b, known.factors, scores
    )
    others_a += better_apart(
        best, int64(penalised[best_a]), suboptimal_a, single_a, single_b, length_a, scores.match
    )
    others_b += better_apart(
        best, int64(penalised[best_b]), suboptimal_b, single_b, single_a, length_b, scores.match
    )
    rivals = unlocated_rival(unlocated_a, suboptimal_a, scores.match)
    rivals += unlocated_rival(unlocated_b, suboptimal_b, scores.match)
    besides = pairs_beside(best, rivals, length_a, length_b, scores.match, scores.mismatch)
    is_short = length_a < SHORT_READ and length_b < SHORT_READ
    above = min(
        above_unlocated(int64(penalised[best_a]), unlocated_a, length_a, scores.match),
        above_unlocated(int64(penalised[best_b]), unlocated_b, length_b, scores.match),
    )
    others_a = others_in_repeat(
        others_a + besides, near_a, is_short, unlocated_a > 0, unlocated_b > 0, above, scores.match,
        scores.mismatch,
    )  # fmt: skip
    others_b = others_in_repeat(
        others_b + besides, near_b, is_short, unlocated_a > 0, unlocated_b > 0, above, scores.match,
        scores.mismatch,
    )  # fmt: skip
    if lane == 0:
        primary.hits[a], primary.suboptimal[a], primary.proper[a] = best_a, raw_a, 1
        primary.hits[b], primary.suboptimal[b], primary.proper[b] = best_b, raw_b, 1
        primary.qualities[a] = pair_quality(others_a, alone_a)
        primary.qualities[b] = pair_quality(others_b, alone_b)


@cuda.jit(device=True)
def lanes_with(hits, hit, last, best, length, scores):
    """Return a mask of lanes whose hit is reported and has this clip-penalised score."""
    is_best = False
    if hit < last and hits.scored[FIELDS * hit + SCORE] >= scores.least:
        is_best = penalised_at(hits, hit, length, scores.clip) == best
    return int64(cuda.ballot_sync(ALL_LANES, is_best)) & ALL_LANES


@kernel
def select_reads(
    reads: DeviceReads, hits: DeviceScoredHits, known: Known, scores: Scores, ends: int,
    is_paired: int, primary: DevicePrimary,
):  # fmt: skip
    """Select the primary hits of reads that are not in a proper pair.

    If `is_paired` is 1, `proper` marks reads in proper pairs; otherwise there are none. One warp
    per read, every 32nd hit per lane; rows are read up to four times, from the cache.
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
            # Select the lane by the number of lanes with such a hit before it.
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


#: bwa's mapping quality is computed in floating point.
DOUBLE_PRECISION = {select_pairs, select_reads}


# --------------------------------------------------------------------------------------------------
# Reads in tandem repeats on the GPU, by the rules of tandem_repeats.


def lower_tandem_repeats(
    genome: DeviceGenome,
    reads: DeviceReads,
    hits: DeviceScoredHits,
    primary: DevicePrimary,
    parameters: MappingParameters,
) -> None:
    """Lower the mapping qualities of reads that align about as well to loci near their hit."""
    lower_repeats[launch(reads.n_reads * WARP)](genome, reads, hits, primary, scores_of(parameters))


@cuda.jit(device=True)
def first_bits(count):
    """Return a mask of the lowest `count` bits of 32 (all if more)."""
    return uint32(0xFFFFFFFF) if count >= 32 else uint32((int64(1) << count) - 1)


@cuda.jit(device=True)
def bases_at(blocks, at):
    """Return low bits and high bits of 32 bases from any position on."""
    first = uint64(4) * (uint64(at) >> uint64(5))
    shift = uint32(at) & uint32(31)
    low, high, _, _ = load_uint32x4(blocks, first)
    low_after, high_after, _, _ = load_uint32x4(blocks, first + uint64(4))
    return shifted(low, low_after, shift), shifted(high, high_after, shift)


@cuda.jit(device=True)
def differences_at(blocks, at, others, other_at, n):
    """Count the differences of n bases from others, 32 at a time. One thread."""
    differences = int64(0)
    for i in range(0, n, 32):
        bits = differing(blocks, at + i, others, other_at + i) & first_bits(n - i)
        differences += cuda.popc(bits)
    return differences


@kernel
def lower_repeats(
    genome: DeviceGenome, reads: DeviceReads, hits: DeviceScoredHits, primary: DevicePrimary,
    scores: Scores,
):  # fmt: skip
    """Lower the qualities of reads that align about as well to loci near their hit.

    One warp per read; every 32nd position of the genome per lane, up to the read's length away.
    Neighbouring lanes load the same two or three blocks; few lanes compare the whole read.
    """
    offsets, contig_starts, scored = reads.offsets, genome.contig_starts, hits.scored
    read = int64(cuda.grid(1) // WARP)
    if read >= offsets.size - 1 or primary.qualities[read] == 0:
        return
    hit = int64(primary.hits[read])
    if hit < 0:
        return
    row = FIELDS * hit
    end, read_end = scored[row + END], scored[row + READ_END]
    contig = contig_at(contig_starts, end - 1)
    low, high = contig_starts[contig], contig_starts[contig + 1]
    n = bases_compared(scored[row + START], end, read_end, low)
    start, length = end - n, offsets[read + 1] - offsets[read]
    in_read = offsets[read] + read_end - n
    if hits.strands[hit]:
        in_read += reads.n_bases
    width = probe_width(n)
    inside = first_bits(width)
    own_low, own_high = bases_at(genome.blocks, start)
    rivals = int64(0)
    for side in range(2):
        first, last = starts_of_rivals(side, start, length, low, high - n)
        for at in range(first + int64(cuda.laneid), last + 1, WARP):
            other_low, other_high = bases_at(genome.blocks, at)
            bits = (own_low ^ other_low | own_high ^ other_high) & inside
            if are_alike(cuda.popc(bits), width):
                rivals += likelihood_of_rival(
                    scored[row + SCORE], n,
                    differences_at(genome.blocks, at, reads.blocks, in_read, n),
                    differences_at(genome.blocks, at, genome.blocks, start, n),
                    scored[row + GAPLESS], scores,
                )  # fmt: skip
    rivals = total(rivals)
    if cuda.laneid == 0 and rivals > 0:
        primary.qualities[read] = quality_beside_rivals(int64(primary.qualities[read]), rivals)
