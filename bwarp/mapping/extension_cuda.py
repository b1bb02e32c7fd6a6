"""Score candidates on the GPU, by the rules of extension_cpu.

Diagonals are compared 32 bases at a time. For that, the genome is stored on the GPU in blocks of
bits, half a byte per base; windows to align with gaps are copied from it.
"""

from typing import NamedTuple

import numpy as np

from bwarp.alignment.device_batch_cuda import DeviceBatch, DeviceSequences
from bwarp.alignment.pair_ends_cuda import find_ends
from bwarp.alignment.scoring import FITTING, LOCAL
from bwarp.gpu.cuda import cuda, int32, int64, uint32
from bwarp.gpu.device_arrays import columns, number_at, zeros
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import ALL_LANES, WARP, launch
from bwarp.gpu.sums_and_sorts import slot_in_list
from bwarp.gpu.transfers import to_gpu
from bwarp.mapping.candidates_cuda import DeviceCandidates
from bwarp.mapping.extension_cpu import (
    END,
    Costs,
    costs_of,
    first_sums,
    no_stretch,
    pass_end,
    pass_mismatch,
    put_gapped,
    put_stretch,
    scoring_of,
    valid_score,
)
from bwarp.mapping.parameters import END_TO_END, MappingParameters
from bwarp.mapping.scored_hits_cpu import (
    FIELDS,
    GAPLESS,
    SCORE,
    WINDOW_END,
    WINDOW_START,
)
from bwarp.mapping.scored_hits_cuda import DeviceScoredHits, ranked
from bwarp.reads.base_bits_cuda import blocks_of_packed, copy_bases, differing
from bwarp.reads.device_reads_cuda import DeviceReads
from bwarp.reference import Reference, ambiguous_stretches


class DeviceGenome(NamedTuple):
    """A `Genome` on the GPU, its codes in the blocks of base_bits_cuda."""

    blocks: uint32[::1]
    contig_starts: int64[::1]
    n_bases: int


class Pairs(NamedTuple):
    """Reads on strands, and windows of the genome, to align with gaps."""

    starts: int64[::1]
    lengths: int32[::1]
    window_starts: int64[::1]
    window_lengths: int32[::1]


class PairEnds(NamedTuple):
    """The result of aligning each pair."""

    scores: int32[::1]
    read_ends: int32[::1]
    window_ends: int32[::1]


def genome_bytes(reference: Reference) -> int:
    """Return the number of bytes that `genome_on_gpu` allocates."""
    return reference.n_bases // 2 + reference.contig_starts.nbytes


def genome_on_gpu(reference: Reference, threads: int = 1) -> DeviceGenome:
    """Copy the genome packed, a quarter of a byte per base, and unpack it on the GPU."""
    (packed,) = to_gpu([np.ascontiguousarray(reference.packed)], threads)
    blocks = blocks_of_packed(packed, reference.n_bases, ambiguous_stretches(reference))
    contig_starts = cuda.to_device(reference.contig_starts)
    return DeviceGenome(blocks, contig_starts, reference.n_bases)


def extend(
    genome: DeviceGenome,
    reads: DeviceReads,
    candidates: DeviceCandidates,
    parameters: MappingParameters,
) -> DeviceScoredHits:
    """Score every candidate; omit hits below the minimum score."""
    n = number_at(candidates.offsets, reads.n_reads)
    scored = cuda.device_array(max(1, FIELDS * n), np.int64)
    raw_scores = cuda.device_array(max(1, n), np.int32)
    hits = DeviceScoredHits(candidates.strands, scored, candidates.offsets, n)
    if n == 0:
        return hits
    costs = costs_of(parameters)
    score_diagonals[launch(n)](genome, reads, candidates, n, costs, scored, raw_scores)
    unsure = cuda.device_array(n, np.int32)
    counter = zeros(1, np.int32)
    list_unsure(candidates, parameters.hopeless_margin, scored, unsure, counter)
    n_unsure = number_at(counter, 0)
    if n_unsure:
        _align(genome, reads, candidates, parameters, scored, raw_scores, unsure, n_unsure)
    return ranked(hits, parameters.least_score, hits.offsets)


def _align(
    genome, reads, candidates, parameters, scored, raw_scores, unsure, n_unsure: int
) -> None:
    """Align candidates with gaps, and replace their stretches if that scores more."""
    pairs = columns(Pairs, n_unsure)
    cut_windows(reads, candidates, scored, unsure, pairs)
    windows, window_starts, longest = copy_bases(
        genome.blocks, pairs.window_starts, pairs.window_lengths
    )
    batch = DeviceBatch(
        DeviceSequences(reads.both, pairs.starts, pairs.lengths, reads.longest),
        DeviceSequences(windows, window_starts, pairs.window_lengths, longest),
    )
    whole = parameters.mode == END_TO_END
    ends = PairEnds(*find_ends(batch, scoring_of(parameters), FITTING if whole else LOCAL))
    take_better(
        ends,
        unsure,
        raw_scores,
        candidates,
        parameters.largest_gap,
        whole,
        parameters.match,
        scored,
    )


@cuda.jit(device=True)
def contig_at(contig_starts, position):
    """Return the last contig that starts at or before a position, or 0, by bisection."""
    low, high = int64(0), int64(contig_starts.size)
    while high - low > 1:
        middle = (low + high) >> 1
        if contig_starts[middle] <= position:
            low = middle
        else:
            high = middle
    return low


@kernel
def score_diagonals(
    genome: DeviceGenome, reads: DeviceReads, candidates: DeviceCandidates, count: int,
    costs: Costs, scored: int64[::1], raw_scores: int32[::1],
):  # fmt: skip
    """Write the row of each candidate from its main diagonal.

    One thread per candidate; two or three sectors of the genome, and the read from the cache.
    """
    i, contig_starts = cuda.grid(1), genome.contig_starts
    if i >= count:
        return
    read = candidates.reads[i]
    length = reads.offsets[read + 1] - reads.offsets[read]
    first = reads.offsets[read]
    if candidates.strands[i]:
        first += reads.n_bases
    diagonal = candidates.diagonals[i]
    # A read that extends over a contig's end is assigned to the contig where it scores most.
    contig = contig_at(contig_starts, diagonal)
    best, highest_sum, crowded = no_stretch(contig), int64(0), False
    while contig < contig_starts.size - 1 and contig_starts[contig] < diagonal + length:
        low = max(int64(0), contig_starts[contig] - diagonal)
        high = min(length, contig_starts[contig + 1] - diagonal)
        sums = first_sums(low, costs.clip, highest_sum)
        at_start, at_end = int64(0), int64(0)
        for step in range(low, high, 32):
            mismatches = int64(
                differing(genome.blocks, diagonal + step, reads.blocks, first + step)
            )
            if high - step < 32:
                mismatches &= (int64(1) << (high - step)) - 1
            while mismatches != 0:
                at = step + int64(cuda.ffs(mismatches)) - 1
                mismatches &= mismatches - 1
                at_start += 1 if at < END else 0
                at_end += 1 if at >= length - END else 0
                sums, best = pass_mismatch(sums, best, at, length, contig, costs)
        highest_sum, best = pass_end(sums, best, high, length, contig, costs)
        crowded = crowded or at_start > 1 or at_end > 1
        contig += 1
    put_stretch(scored, candidates, int64(i), best, crowded, length, contig_starts, costs)
    raw_scores[i] = valid_score(highest_sum, best, length, costs)


@kernel(over="candidates.offsets", per=WARP)
def list_unsure(
    candidates: DeviceCandidates, hopeless_margin: int, scored: int64[::1], unsure: int32[::1],
    counter: int32[::1],
):  # fmt: skip
    """List the candidates to align with gaps, in any order. One warp per read.

    The others, including hopeless ones, are marked as gapless (extension_cpu).
    """
    read = cuda.grid(1) // WARP
    if read >= candidates.offsets.size - 1:
        return
    lane = int64(cuda.laneid)
    first, last = int64(candidates.offsets[read]), int64(candidates.offsets[read + 1])
    best = int64(0)
    for i in range(first + lane, last, WARP):
        best = max(best, scored[FIELDS * i + SCORE])
    for distance in (16, 8, 4, 2, 1):
        best = max(best, cuda.shfl_xor_sync(ALL_LANES, best, distance))
    for step in range(first, last, WARP):
        i = step + lane
        is_unsure = False
        if i < last:
            row = FIELDS * i
            is_hopeless = (
                candidates.lowest[i] == candidates.highest[i]
                and scored[row + SCORE] + hopeless_margin < best
            )
            is_unsure = not is_hopeless and scored[row + GAPLESS] == 0
            scored[row + GAPLESS] = 1
        slot = slot_in_list(counter, is_unsure)
        if is_unsure:
            unsure[slot] = i


@kernel(over="pairs.starts")
def cut_windows(
    reads: DeviceReads, candidates: DeviceCandidates, scored: int64[::1], unsure: int32[::1],
    pairs: Pairs,
):  # fmt: skip
    """Cut reads on strands, and windows of the genome, as sides of a batch. One thread per pair."""
    slot = cuda.grid(1)
    if slot >= pairs.starts.size:
        return
    i = int64(unsure[slot])
    read = candidates.reads[i]
    pairs.starts[slot] = reads.offsets[read] + (reads.n_bases if candidates.strands[i] else 0)
    pairs.lengths[slot] = reads.offsets[read + 1] - reads.offsets[read]
    pairs.window_starts[slot] = scored[FIELDS * i + WINDOW_START]
    pairs.window_lengths[slot] = scored[FIELDS * i + WINDOW_END] - scored[FIELDS * i + WINDOW_START]


@kernel(over="ends.scores")
def take_better(
    ends: PairEnds, unsure: int32[::1], raw_scores: int32[::1], candidates: DeviceCandidates,
    largest_gap: int, whole: bool, match: int, scored: int64[::1],
):  # fmt: skip
    """Replace stretches by alignments that score more than any stretch. One thread per pair."""
    slot = cuda.grid(1)
    if slot >= ends.scores.size:
        return
    i = int64(unsure[slot])
    if ends.scores[slot] > raw_scores[i]:
        found = ends.scores[slot], ends.read_ends[slot], ends.window_ends[slot]
        put_gapped(scored, candidates, i, found, largest_gap, whole, match)
