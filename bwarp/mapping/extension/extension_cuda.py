"""Candidates become scored hits on the GPU, by the rules of extension_cpu.

Diagonals are compared 32 bases at a time. The genome stays on the GPU in blocks of bits for that,
half a byte a base; windows to align with gaps are copied out of it.
"""

from dataclasses import dataclass

import numpy as np
from numba import cuda, int64
from numba.cuda import types

from bwarp.alignment.matrix.device_batch_cuda import DeviceBatch, DeviceSequences
from bwarp.alignment.pairwise.pairs_cuda import find_ends
from bwarp.alignment.scoring import FITTING, LOCAL
from bwarp.gpu.append_lists import slot_in_list
from bwarp.gpu.device_arrays import number_at, zeros
from bwarp.gpu.kernel_loading import compiled_kernel
from bwarp.gpu.launch import ALL_LANES, WARP, launch
from bwarp.gpu.transfers import to_gpu
from bwarp.mapping.extension.diagonal import (
    END,
    Costs,
    costs_of,
    first_sums,
    no_stretch,
    pass_end,
    pass_mismatch,
    put_stretch,
)
from bwarp.mapping.extension.extension_cpu import put_gapped, scoring_of
from bwarp.mapping.extension.scored_hits_cpu import (
    FIELDS,
    GAPLESS,
    SCORE,
    WINDOW_END,
    WINDOW_START,
)
from bwarp.mapping.extension.scored_hits_cuda import DeviceScoredHits, ranked
from bwarp.mapping.parameters import END_TO_END, MappingParameters
from bwarp.mapping.reads.base_bits_cuda import blocks_of_packed, copy_bases, differing
from bwarp.mapping.reads.device_reads_cuda import DeviceReads
from bwarp.mapping.seeds.candidates_cpu import Candidates
from bwarp.reference import Reference, ambiguous_stretches

__all__ = ["KERNEL_SIGNATURES", "DeviceGenome", "extend", "genome_bytes", "genome_on_gpu"]


@dataclass(frozen=True)
class DeviceGenome:
    """A `Genome` on the GPU, its codes in the blocks of base_bits_cuda."""

    blocks: object
    contig_starts: object
    n_bases: int


def genome_bytes(reference: Reference) -> int:
    """What `genome_on_gpu` takes."""
    return reference.n_bases // 2 + reference.contig_starts.nbytes


def genome_on_gpu(reference: Reference, threads: int = 1) -> DeviceGenome:
    """Unpacked there: a quarter of a byte a base travels."""
    (packed,) = to_gpu([np.ascontiguousarray(reference.packed)], threads)
    blocks = blocks_of_packed(packed, reference.n_bases, ambiguous_stretches(reference))
    contig_starts = cuda.to_device(reference.contig_starts)
    return DeviceGenome(blocks, contig_starts, reference.n_bases)


def extend(
    genome: DeviceGenome, reads: DeviceReads, candidates: Candidates, parameters: MappingParameters
) -> DeviceScoredHits:
    """Score every candidate; hits below the least score are left out."""
    n_reads = reads.n_reads
    n = number_at(candidates.offsets, n_reads)
    scored = cuda.device_array(max(1, FIELDS * n), np.int64)
    raw_scores = cuda.device_array(max(1, n), np.int32)
    hits = DeviceScoredHits(candidates.strands, scored, candidates.offsets, n_reads, n)
    if n == 0:
        return hits
    score_diagonals[launch(n)](
        genome.blocks, genome.contig_starts, reads.blocks, reads.offsets, reads.both.size // 2,
        candidates.reads, candidates.strands, candidates.diagonals, candidates.lowest,
        candidates.highest, n, *costs_of(parameters), scored, raw_scores,
    )  # fmt: skip
    unsure = cuda.device_array(n, np.int32)
    counter = zeros(1, np.int32)
    list_unsure[launch(WARP * n_reads)](
        candidates.offsets, candidates.lowest, candidates.highest, n_reads,
        parameters.hopeless_margin, scored, unsure, counter,
    )  # fmt: skip
    n_unsure = number_at(counter, 0)
    if n_unsure:
        _align(genome, reads, candidates, parameters, scored, raw_scores, unsure, n_unsure)
    return ranked(hits, parameters.least_score, hits.offsets)


def _align(
    genome, reads, candidates, parameters, scored, raw_scores, unsure, n_unsure: int
) -> None:
    """Align candidates with gaps, and replace their stretches where that scores more."""
    starts = [cuda.device_array(n_unsure, np.int64) for _ in range(2)]
    lengths = [cuda.device_array(n_unsure, np.int32) for _ in range(2)]
    cut_windows[launch(n_unsure)](
        reads.offsets, reads.both.size // 2, candidates.reads, candidates.strands, scored, unsure,
        n_unsure, starts[0], lengths[0], starts[1], lengths[1],
    )  # fmt: skip
    windows, window_starts, longest = copy_bases(genome.blocks, starts[1], lengths[1])
    batch = DeviceBatch(
        DeviceSequences(reads.both, starts[0], lengths[0], reads.longest),
        DeviceSequences(windows, window_starts, lengths[1], longest),
    )
    whole = parameters.mode == END_TO_END
    ends = find_ends(batch, scoring_of(parameters), FITTING if whole else LOCAL)
    take_better[launch(n_unsure)](
        *ends, unsure, n_unsure, raw_scores, candidates.lowest, candidates.highest,
        parameters.largest_gap, whole, parameters.match, scored,
    )  # fmt: skip


@cuda.jit(device=True)
def contig_at(contig_starts, position):
    """The last contig that begins at a position or before it, 0 where none does: bisection."""
    low, high = int64(0), int64(contig_starts.size)
    while high - low > 1:
        middle = (low + high) >> 1
        if contig_starts[middle] <= position:
            low = middle
        else:
            high = middle
    return low


@compiled_kernel
def score_diagonals(
    genome, contig_starts, both, offsets, n_bases, reads, strands, diagonals, lowest, highest,
    count, match, mismatch, gap, clip, margin, scored, raw_scores,
):  # fmt: skip
    """The row of each candidate, by its main diagonal.

    One thread a candidate; two sectors or three of the genome, the read's from the cache.
    """
    i = cuda.grid(1)
    if i >= count:
        return
    costs = Costs(match, mismatch, gap, clip, margin)
    read = reads[i]
    length = offsets[read + 1] - offsets[read]
    first = offsets[read]
    if strands[i]:
        first += n_bases
    diagonal = diagonals[i]
    # A read that hangs over a contig's end lies in the contig where it scores most.
    contig = contig_at(contig_starts, diagonal)
    best, highest_sum, crowded = no_stretch(contig), int64(0), False
    while contig < contig_starts.size - 1 and contig_starts[contig] < diagonal + length:
        low = max(int64(0), contig_starts[contig] - diagonal)
        high = min(length, contig_starts[contig + 1] - diagonal)
        sums = first_sums(low, clip, highest_sum)
        at_start, at_end = int64(0), int64(0)
        for step in range(low, high, 32):
            mismatches = int64(differing(genome, diagonal + step, both, first + step))
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
    raw_scores[i] = put_stretch(
        scored, FIELDS * int64(i), best, highest_sum, crowded, diagonal, length, lowest[i],
        highest[i], contig_starts, costs,
    )  # fmt: skip


@compiled_kernel
def list_unsure(offsets, lowest, highest, n_reads, hopeless_margin, scored, unsure, counter):
    """List the candidates to align with gaps, in any order. One warp a read, a lane a candidate.

    The others are marked as gapless, hopeless ones among them (extension_cpu).
    """
    read = cuda.grid(1) // WARP
    if read >= n_reads:
        return
    lane = int64(cuda.laneid)
    first, last = int64(offsets[read]), int64(offsets[read + 1])
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
            is_hopeless = lowest[i] == highest[i] and scored[row + SCORE] + hopeless_margin < best
            is_unsure = not is_hopeless and scored[row + GAPLESS] == 0
            scored[row + GAPLESS] = 1
        slot = slot_in_list(counter, is_unsure)
        if is_unsure:
            unsure[slot] = i


@compiled_kernel
def cut_windows(
    offsets, n_bases, reads, strands, scored, unsure, n_unsure, starts, lengths, window_starts,
    window_lengths,
):  # fmt: skip
    """Reads on strands, and windows of the genome, as sides of a batch. One thread a pair."""
    slot = cuda.grid(1)
    if slot >= n_unsure:
        return
    i = int64(unsure[slot])
    read = reads[i]
    starts[slot] = offsets[read] + (n_bases if strands[i] else 0)
    lengths[slot] = offsets[read + 1] - offsets[read]
    window_starts[slot] = scored[FIELDS * i + WINDOW_START]
    window_lengths[slot] = scored[FIELDS * i + WINDOW_END] - scored[FIELDS * i + WINDOW_START]


@compiled_kernel
def take_better(
    scores, read_ends, window_ends, unsure, n_unsure, raw_scores, lowest, highest, largest_gap,
    whole, match, scored,
):  # fmt: skip
    """Replace stretches by alignments that score more than any stretch. One thread a pair."""
    slot = cuda.grid(1)
    if slot >= n_unsure:
        return
    i = int64(unsure[slot])
    if scores[slot] > raw_scores[i]:
        put_gapped(
            scored, FIELDS * i, scores[slot], read_ends[slot], window_ends[slot], lowest[i],
            highest[i], largest_gap, whole, match,
        )  # fmt: skip


_INTEGER, _LONGS, _NUMBERS = types.int64, types.int64[::1], types.uint32[::1]
_SIGNED, _BYTES = types.int32[::1], types.uint8[::1]

#: The argument types that every kernel is compiled with.
KERNEL_SIGNATURES = {
    score_diagonals: (
        _NUMBERS, _LONGS, _NUMBERS, _LONGS, _INTEGER, _SIGNED, _BYTES, _LONGS, _LONGS, _LONGS,
        _INTEGER, _INTEGER, _INTEGER, _INTEGER, _INTEGER, _INTEGER, _LONGS, _SIGNED,
    ),
    list_unsure: (
        _NUMBERS, _LONGS, _LONGS, _INTEGER, _INTEGER, _LONGS, _SIGNED, _SIGNED
    ),
    cut_windows: (
        _LONGS, _INTEGER, _SIGNED, _BYTES, _LONGS, _SIGNED, _INTEGER, _LONGS, _SIGNED, _LONGS,
        _SIGNED,
    ),
    take_better: (
        _SIGNED, _SIGNED, _SIGNED, _SIGNED, _INTEGER, _SIGNED, _LONGS, _LONGS, _INTEGER,
        types.boolean, _INTEGER, _LONGS,
    ),
}  # fmt: skip
