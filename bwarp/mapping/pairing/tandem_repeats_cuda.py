"""Reads in tandem repeats on the GPU, by the rules of tandem_repeats.

Few reads are looked at: a thread finds out for each whether it is, and the whole warp then takes
those of its 32 reads in turn. A lane compares a read with itself for each period, and 32 bases of
it with the genome.
"""

from bwarp.gpu.cuda import cuda, int64, uint32, uint64
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import ALL_LANES, WARP, launch
from bwarp.gpu.ptx import load_uint32x4
from bwarp.gpu.warp_reductions import total
from bwarp.mapping.extension.extension_cuda import DeviceGenome, contig_at
from bwarp.mapping.extension.scored_hits_cpu import FIELDS, READ_START, SCORE, START
from bwarp.mapping.extension.scored_hits_cuda import DeviceScoredHits
from bwarp.mapping.pairing.primary_and_mapq_cpu import quality_beside
from bwarp.mapping.pairing.primary_hits_cuda import DevicePrimary
from bwarp.mapping.pairing.tandem_repeats import (
    LONGEST_PERIOD,
    MOST_DIFFERENCES,
    score_farther,
    shift_of_period,
)
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.reads.base_bits_cuda import differing, shifted
from bwarp.mapping.reads.device_reads_cuda import DeviceReads

__all__ = ["lower_tandem_repeats"]


def lower_tandem_repeats(
    genome: DeviceGenome,
    reads: DeviceReads,
    hits: DeviceScoredHits,
    primary: DevicePrimary,
    parameters: MappingParameters,
) -> None:
    """Lower the mapping qualities of reads of proper pairs that lie periods farther as well."""
    lower_repeats[launch(reads.n_reads)](
        genome, reads, hits, primary, parameters.match, parameters.match - parameters.mismatch,
        parameters.most_loss,
    )  # fmt: skip


@cuda.jit(device=True)
def first_bits(count):
    """The lowest bits, so many of 32 (more: all)."""
    return uint32(0xFFFFFFFF) if count >= 32 else uint32((int64(1) << count) - 1)


@cuda.jit(device=True)
def unlike(blocks, at, other):
    """Which of 32 bases differ from 32 others of the same blocks, a bit each; ambiguous ones are
    equal."""
    first = (uint64(at) >> uint64(5)) << uint64(2)
    other_first = (uint64(other) >> uint64(5)) << uint64(2)
    shift, other_shift = uint32(at) & uint32(31), uint32(other) & uint32(31)
    low, high, ambiguous, _ = load_uint32x4(blocks, first)
    low_2, high_2, ambiguous_2, _ = load_uint32x4(blocks, first + uint64(4))
    other_low, other_high, other_ambiguous, _ = load_uint32x4(blocks, other_first)
    next_low, next_high, next_ambiguous, _ = load_uint32x4(blocks, other_first + uint64(4))
    bits = shifted(low, low_2, shift) ^ shifted(other_low, next_low, other_shift)
    bits |= shifted(high, high_2, shift) ^ shifted(other_high, next_high, other_shift)
    bits |= shifted(ambiguous, ambiguous_2, shift) ^ shifted(
        other_ambiguous, next_ambiguous, other_shift
    )
    return uint32(bits)


@cuda.jit(device=True)
def period_of(both, first, length):
    """The shortest period of a read, 0 where it has none. A whole warp, a lane a period."""
    period = int64(cuda.laneid) + 1
    fits = period <= min(int64(LONGEST_PERIOD), length // 2)
    differences, at = int64(0), int64(0)
    while fits and at < length - period:
        bits = unlike(both, first + at, first + at + period) & first_bits(length - period - at)
        differences += cuda.popc(bits)
        fits = differences <= MOST_DIFFERENCES
        at += 32
    lanes = int64(cuda.ballot_sync(ALL_LANES, fits)) & ALL_LANES
    return int64(cuda.ffs(lanes))


@cuda.jit(device=True)
def differences_on(genome, diagonal, both, first, length):
    """In how many bases a read differs from the genome. A whole warp, a lane 32 bases a step."""
    differences = int64(0)
    for at in range(32 * int64(cuda.laneid), length, 32 * WARP):
        bits = differing(genome, diagonal + at, both, first + at) & first_bits(length - at)
        differences += cuda.popc(bits)
    return total(differences)


@kernel
def lower_repeats(
    genome: DeviceGenome, reads: DeviceReads, hits: DeviceScoredHits, primary: DevicePrimary,
    match: int, loss: int, margin: int,
):  # fmt: skip
    """One thread a read, which reads a number of it or two. For each that has another hit about as
    good the whole warp reads the read a dozen times, from the cache, and the genome twice.
    """
    offsets, contig_starts, scored = reads.offsets, genome.contig_starts, hits.scored
    own = int64(cuda.grid(1))
    may_repeat = False
    if own < offsets.size - 1 and primary.proper[own]:
        score = scored[FIELDS * int64(primary.hits[own]) + SCORE]
        may_repeat = int64(primary.suboptimal[own]) + margin >= score
    lanes = int64(cuda.ballot_sync(ALL_LANES, may_repeat)) & ALL_LANES
    while lanes != 0:
        read = own - int64(cuda.laneid) + int64(cuda.ffs(lanes)) - 1
        lanes &= lanes - 1
        hit = int64(primary.hits[read])
        row = FIELDS * hit
        length = offsets[read + 1] - offsets[read]
        first = offsets[read]
        if hits.strands[hit]:
            first += reads.n_bases
        period = period_of(reads.blocks, first, length)
        if period == 0:
            continue
        contig = contig_at(contig_starts, scored[row + START])
        low, high = contig_starts[contig], contig_starts[contig + 1]
        here = scored[row + START] - scored[row + READ_START]
        shift = shift_of_period(period)
        quality = int64(primary.qualities[read])
        for side in range(-1, 2, 2):
            diagonal = here + side * shift
            if diagonal >= low and diagonal + length <= high:
                differences = differences_on(genome.blocks, diagonal, reads.blocks, first, length)
                less = scored[row + SCORE] - score_farther(length, differences, match, loss)
                quality = min(quality, quality_beside(less, match))
        if cuda.laneid == 0:
            primary.qualities[read] = quality
