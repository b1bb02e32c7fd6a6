"""Candidates become scored places on the card, by the rules of extension_cpu.

The best stretch of a candidate's main diagonal is found from mismatch to mismatch, 32 bases being
compared at a time: between two of them a stretch only gains. The genome stays on the card in
blocks of bits for that, half a byte a base; windows to align with gaps are copied out of it.
"""

from dataclasses import dataclass

import numpy as np
from numba import cuda, int32, int64
from numba.cuda import types

from bwarp.alignment.matrix.device_batch_cuda import DeviceBatch, DeviceSequences
from bwarp.alignment.pairwise.pairs_cuda import find_ends
from bwarp.alignment.scoring import FITTING, LOCAL
from bwarp.gpu.transfers import to_gpu
from bwarp.mapping.extension.extension_cpu import END, NEVER_CLIP, gapped_start, scoring_of
from bwarp.mapping.extension.scored_hits_cuda import FIELDS, DeviceScoredHits, ranked
from bwarp.mapping.parameters import END_TO_END, MappingParameters
from bwarp.mapping.reads.base_bits_cuda import blocks_of_packed, copy_bases, differing
from bwarp.mapping.reads.device_reads_cuda import DeviceReads
from bwarp.mapping.seeds.candidates_cpu import Candidates
from bwarp.reference import Reference, ambiguous_stretches

__all__ = ["KERNEL_SIGNATURES", "DeviceGenome", "extend", "genome_bytes", "genome_on_gpu"]

#: Threads a block.
BLOCK = 128

_WARP = 32
_ALL_LANES = 0xFFFFFFFF


@dataclass(frozen=True)
class DeviceGenome:
    """A `Genome` on the card, arrays there; its codes as base_bits_cuda has them."""

    blocks: object
    contig_starts: object


def genome_bytes(reference: Reference) -> int:
    """What `genome_on_gpu` takes."""
    return reference.n_bases // 2 + reference.contig_starts.nbytes


def genome_on_gpu(reference: Reference, threads: int = 1) -> DeviceGenome:
    """Unpacked there: a quarter of a byte a base travels."""
    (packed,) = to_gpu([np.ascontiguousarray(reference.packed)], threads)
    blocks = blocks_of_packed(packed, reference.n_bases, ambiguous_stretches(reference))
    return DeviceGenome(blocks, cuda.to_device(reference.contig_starts))


def extend(
    genome: DeviceGenome, reads: DeviceReads, candidates: Candidates, parameters: MappingParameters
) -> DeviceScoredHits:
    """Score every candidate; places below the least score are left out."""
    whole = parameters.mode == END_TO_END
    n_reads = reads.n_reads
    n = int(candidates.offsets[n_reads:].copy_to_host()[0])
    scored = cuda.device_array(max(1, FIELDS * n), np.int64)
    raw_scores = cuda.device_array(max(1, n), np.int32)
    hits = DeviceScoredHits(candidates.strands, scored, candidates.offsets, n_reads, n)
    if n == 0:
        return hits
    score_diagonals[_blocks(n), BLOCK](
        genome.blocks, genome.contig_starts, reads.blocks, reads.offsets, reads.both.size // 2,
        candidates.reads, candidates.strands, candidates.diagonals, candidates.lowest,
        candidates.highest, n,
        parameters.match, parameters.mismatch, parameters.gap_open + parameters.gap_extend,
        NEVER_CLIP if whole else parameters.clip, parameters.largest_gap, scored, raw_scores,
    )  # fmt: skip
    unsure = cuda.device_array(n, np.int32)
    counter = cuda.to_device(np.zeros(1, np.int32))
    list_unsure[_blocks(_WARP * n_reads), BLOCK](
        candidates.offsets, candidates.lowest, candidates.highest, n_reads,
        parameters.hopeless_margin, scored, unsure, counter,
    )  # fmt: skip
    n_unsure = int(counter.copy_to_host()[0])
    if n_unsure:
        _align(genome, reads, candidates, parameters, scored, raw_scores, unsure, n_unsure)
    return ranked(hits, parameters.least_score, hits.offsets)


def _align(
    genome, reads, candidates, parameters, scored, raw_scores, unsure, n_unsure: int
) -> None:
    """Align candidates with gaps, and take that where only a gap scores so much."""
    starts = [cuda.device_array(n_unsure, np.int64) for _ in range(2)]
    lengths = [cuda.device_array(n_unsure, np.int32) for _ in range(2)]
    cut_windows[_blocks(n_unsure), BLOCK](
        reads.offsets, reads.both.size // 2, candidates.reads, candidates.strands, scored, unsure,
        n_unsure, starts[0], lengths[0], starts[1], lengths[1],
    )  # fmt: skip
    host_lengths = [array.copy_to_host() for array in lengths]
    windows, window_starts = copy_bases(
        genome.blocks, starts[1], lengths[1], int(host_lengths[1].sum(dtype=np.int64))
    )
    batch = DeviceBatch(
        DeviceSequences(reads.both, starts[0], lengths[0], host_lengths[0]),
        DeviceSequences(windows, window_starts, lengths[1], host_lengths[1]),
    )
    whole = parameters.mode == END_TO_END
    ends = find_ends(batch, scoring_of(parameters), FITTING if whole else LOCAL)
    take_better[_blocks(n_unsure), BLOCK](
        *ends, unsure, n_unsure, raw_scores, whole, parameters.match, scored
    )


def _blocks(threads: int) -> int:
    return max(1, -(-threads // BLOCK))


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


@cuda.jit(cache=True)
def score_diagonals(
    genome, contig_starts, both, offsets, n_bases, reads, strands, diagonals, lowest, highest,
    count, match, mismatch, gap, clip, margin, scored, raw_scores,
):  # fmt: skip
    """The best stretch of each main diagonal, whether to look for gaps, and the window.

    One thread a candidate; two sectors or three of the genome, the read's from the cache.
    """
    i = cuda.grid(1)
    if i >= count:
        return
    read = reads[i]
    length = offsets[read + 1] - offsets[read]
    first = offsets[read]
    if strands[i]:
        first += n_bases
    diagonal = diagonals[i]
    # A read that hangs over a contig's end lies in the contig where it scores most.
    contig = contig_at(contig_starts, diagonal)
    best = int64(-(1 << 30))
    best_begin, best_end, best_contig = int64(0), int64(0), contig
    crowded = False
    highest_sum = int64(0)
    while contig < contig_starts.size - 1 and contig_starts[contig] < diagonal + length:
        low = max(int64(0), contig_starts[contig] - diagonal)
        high = min(length, contig_starts[contig + 1] - diagonal)
        # The sum before the next mismatch, and the least sum, with its price, at which a stretch
        # may begin; and, where no end has a price, the stretch that would be open now.
        total, summed = int64(0), low
        begin = low
        begin_sum = int64(0) if low == 0 else int64(clip)
        open_sum = int64(0)
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
                total += match * (at - summed)
                open_sum += match * (at - summed)
                highest_sum = max(highest_sum, open_sum)
                open_sum = max(open_sum + mismatch, int64(0))
                reached = total - begin_sum - clip
                if at > summed and reached > best:
                    best, best_begin, best_end, best_contig = reached, begin, at, contig
                total += mismatch
                summed = at + 1
                if total + clip <= begin_sum:
                    begin, begin_sum = summed, total + clip
                reached = total - begin_sum - (0 if summed == length else clip)
                if reached > best:
                    best, best_begin, best_end, best_contig = reached, begin, summed, contig
        if high > summed:
            total += match * (high - summed)
            highest_sum = max(highest_sum, open_sum + match * (high - summed))
            reached = total - begin_sum - (0 if high == length else clip)
            if reached > best:
                best, best_begin, best_end, best_contig = reached, begin, high, contig
        crowded = crowded or at_start > 1 or at_end > 1
        contig += 1
    clips = (1 if best_begin > 0 else 0) + (1 if best_end < length else 0)
    window_start = max(lowest[i] - margin, contig_starts[best_contig])
    window_end = min(highest[i] + length + margin, contig_starts[best_contig + 1])
    gap_seen = clips > 0 or crowded or lowest[i] < highest[i]
    is_sure = best >= match * length - gap or not gap_seen
    if window_start >= window_end:
        is_sure = True
        window_start, window_end = diagonal + best_begin, diagonal + best_end
    score = max(best + clip * clips, int64(0))
    if clip == NEVER_CLIP:
        # A read that hangs over a contig's end fits only with gaps, if at all.
        score = int64(0) if clips > 0 else max(best, int64(0))
        highest_sum = score
    raw_scores[i] = highest_sum
    row = FIELDS * int64(i)
    scored[row] = score
    scored[row + 1] = diagonal + best_begin
    scored[row + 2] = diagonal + best_end
    scored[row + 3] = best_begin
    scored[row + 4] = best_end
    scored[row + 5] = 1 if is_sure else 0
    scored[row + 6] = window_start
    scored[row + 7] = window_end


@cuda.jit(cache=True)
def list_unsure(offsets, lowest, highest, n_reads, hopeless_margin, scored, unsure, counter):
    """List the candidates to align with gaps, in any order. One warp a read, a lane a candidate.

    The others are marked as sure, also those that are far below the read's best with all their
    seeds on one diagonal: extension_cpu says why.
    """
    read = cuda.grid(1) // _WARP
    if read >= n_reads:
        return
    lane = int64(cuda.laneid)
    first, last = int64(offsets[read]), int64(offsets[read + 1])
    best = int64(0)
    for i in range(first + lane, last, _WARP):
        best = max(best, scored[FIELDS * i])
    for distance in (16, 8, 4, 2, 1):
        best = max(best, cuda.shfl_xor_sync(_ALL_LANES, best, distance))
    for step in range(first, last, _WARP):
        i = step + lane
        is_unsure = False
        if i < last:
            is_hopeless = lowest[i] == highest[i] and scored[FIELDS * i] + hopeless_margin < best
            is_unsure = not is_hopeless and scored[FIELDS * i + 5] == 0
            scored[FIELDS * i + 5] = 1
        lanes = int64(cuda.ballot_sync(_ALL_LANES, is_unsure)) & _ALL_LANES
        slot = int32(0)
        if lane == 0 and lanes != 0:
            slot = cuda.atomic.add(counter, 0, int32(cuda.popc(lanes)))
        slot = cuda.shfl_sync(_ALL_LANES, slot, 0)
        if is_unsure:
            unsure[slot + cuda.popc(lanes & ((int64(1) << lane) - 1))] = i


@cuda.jit(cache=True)
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
    window_starts[slot] = scored[FIELDS * i + 6]
    window_lengths[slot] = scored[FIELDS * i + 7] - scored[FIELDS * i + 6]


@cuda.jit(cache=True)
def take_better(scores, read_ends, window_ends, unsure, n_unsure, raw_scores, whole, match, scored):
    """Put alignments in the place of stretches where only a gap scores so much.

    One thread a pair.
    """
    slot = cuda.grid(1)
    if slot >= n_unsure:
        return
    row = FIELDS * int64(unsure[slot])
    if scores[slot] > raw_scores[unsure[slot]]:
        begin = gapped_start(scored[row + 3], scores[slot], read_ends[slot], whole, match)
        end = scored[row + 6] + window_ends[slot]
        scored[row] = scores[slot]
        scored[row + 1] = end - read_ends[slot] + begin
        scored[row + 2] = end
        scored[row + 3] = begin
        scored[row + 4] = read_ends[slot]
        scored[row + 5] = 0


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
        _SIGNED, _SIGNED, _SIGNED, _SIGNED, _INTEGER, _SIGNED, types.boolean, _INTEGER, _LONGS
    ),
}  # fmt: skip
