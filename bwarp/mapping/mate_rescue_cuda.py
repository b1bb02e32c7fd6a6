"""Find candidates for reads near their mates on the GPU, by the rules of mate_rescue_cpu.

An 8-mer in common is eight equal bases in a row: each thread counts them on its own diagonals,
comparing 32 bases at a time; neighbouring threads read the same blocks.
"""

from typing import NamedTuple

import numpy as np

from bwarp.gpu.cuda import cuda, int32, int64, uint32
from bwarp.gpu.device_arrays import columns, zeros
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import ALL_LANES, WARP, launch
from bwarp.gpu.sums_and_sorts import add_up
from bwarp.mapping.candidates_cuda import DeviceCandidates
from bwarp.mapping.extension_cuda import DeviceGenome, contig_at
from bwarp.mapping.insert_size import InsertSize, five_prime, mate_lies, mate_window
from bwarp.mapping.mate_rescue_cpu import KMER, LEAST_KMERS
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.scored_hits_cpu import (
    END,
    FIELDS,
    READ_END,
    READ_START,
    SCORE,
    START,
)
from bwarp.mapping.scored_hits_cuda import DeviceScoredHits
from bwarp.reads.base_bits_cuda import differing
from bwarp.reads.device_reads_cuda import DeviceReads

#: Number of k-mers within 32 bases.
_STEP = 25


class MateRules(NamedTuple):
    """Positions of mates (`InsertSize`), and thresholds of hits (`MappingParameters`)."""

    lowest: int
    highest: int
    orientation: int
    margin: int
    hopeless_margin: int


class FoundMates(NamedTuple):
    """The best diagonal of the mate of each hit, and its number of k-mers; 0 for none."""

    diagonals: int64[::1]
    kmers: int32[::1]


def rescue_candidates(
    genome: DeviceGenome,
    reads: DeviceReads,
    hits: DeviceScoredHits,
    insert: InsertSize,
    parameters: MappingParameters,
) -> DeviceCandidates:
    """Find at most one candidate for every good hit of the mate that has no partner yet."""
    n_reads = reads.n_reads
    mates = FoundMates(
        cuda.device_array(max(1, hits.count), np.int64), zeros(max(1, hits.count), np.int32)
    )
    offsets = cuda.device_array(n_reads + 1, np.uint32)
    rules = MateRules(
        insert.lowest, insert.highest, insert.orientation, parameters.rescue_margin,
        parameters.hopeless_margin,
    )  # fmt: skip
    find_mates[launch(n_reads * WARP)](genome, reads, hits, rules, mates)
    count_mates(hits, mates, offsets)
    n_found = add_up(offsets)
    diagonals = cuda.device_array(max(1, n_found), np.int64)
    candidates = columns(
        DeviceCandidates, max(1, n_found), diagonals=diagonals, lowest=diagonals,
        highest=diagonals, offsets=offsets,
    )  # fmt: skip
    if n_found:
        write_mates[launch(n_reads)](hits, mates, insert.orientation, candidates)
    return candidates


@cuda.jit(device=True)
def kmers_on(both, base, length, genome, start, stop, diagonal):
    """Return the number of k-mers of a read on a diagonal between two genome positions.

    Each step compares 32 bases, and starts later than the one before by the number of k-mers in it.
    """
    kmers = int32(0)
    last = min(length, stop - diagonal)
    for at in range(max(int64(0), start - diagonal), last - (KMER - 1), _STEP):
        same = uint32(~differing(genome, diagonal + at, both, base + at))
        if last - at < 32:
            same &= uint32((int64(1) << (last - at)) - 1)
        # Bit i stays set if bits i to i + 7 are set.
        same &= same >> uint32(1)
        same &= same >> uint32(2)
        same &= same >> uint32(4)
        kmers = int32(kmers + cuda.popc(same & uint32((1 << _STEP) - 1)))
    return kmers


@kernel
def find_mates(
    genome: DeviceGenome, reads: DeviceReads, hits: DeviceScoredHits, rules: MateRules,
    mates: FoundMates,
):  # fmt: skip
    """Find the best diagonal of the mate for every good hit of a read, and its k-mers (0: none).

    One warp per read, hit by hit; every 32nd hit of the mate, and every 32nd diagonal per thread. A
    hit whose mate must be searched takes one step per 25 bases and 32 diagonals, read from the
    cache.
    """
    offsets, contig_starts = reads.offsets, genome.contig_starts
    strands, scored = hits.strands, hits.scored
    anchor = cuda.grid(1) // WARP
    if anchor >= reads.offsets.size - 1:
        return
    mate = anchor ^ 1
    first, last = int64(hits.offsets[anchor]), int64(hits.offsets[anchor + 1])
    length = offsets[mate + 1] - offsets[mate]
    if first == last or length < KMER:
        return
    least = scored[FIELDS * first + SCORE] - rules.margin
    first_of_mate, last_of_mate = int64(hits.offsets[mate]), int64(hits.offsets[mate + 1])
    least_of_mate = int64(0)
    if first_of_mate < last_of_mate:
        least_of_mate = scored[FIELDS * first_of_mate + SCORE] - rules.hopeless_margin
    anchor_length = offsets[anchor + 1] - offsets[anchor]
    for hit in range(first, last):
        row = FIELDS * hit
        if scored[row + SCORE] < least:
            break
        first_base = five_prime(
            strands[hit], scored[row + START], scored[row + END], scored[row + READ_START],
            scored[row + READ_END], anchor_length,
        )  # fmt: skip
        strand, low = mate_window(
            rules.orientation,
            anchor & 1,
            strands[hit],
            first_base,
            rules.lowest,
            rules.highest,
            length,
        )
        high = low + rules.highest - rules.lowest
        contig = contig_at(contig_starts, scored[row + START])
        has_partner = False
        for other in range(first_of_mate + cuda.laneid, last_of_mate, int64(WARP)):
            # A hit far below the mate's best was not aligned with gaps and may be better.
            other_row = FIELDS * other
            if scored[other_row + SCORE] < least_of_mate:
                break
            start = scored[other_row + START] - scored[other_row + READ_START]
            if strands[other] == strand and low <= start and start <= high:
                other_contig = contig_at(contig_starts, scored[other_row + START])
                has_partner = has_partner or other_contig == contig
        if cuda.any_sync(ALL_LANES, has_partner):
            continue
        base = offsets[mate]
        if strand:
            base += reads.n_bases
        start = max(low, contig_starts[contig])
        stop = min(high + length, contig_starts[contig + 1])
        # Maximise the number of k-mers, then minimise the diagonal, as one number.
        best = int64(0)
        for step in range(0, rules.highest - rules.lowest + 1, WARP):
            diagonal = step + cuda.laneid
            if diagonal <= rules.highest - rules.lowest:
                count = kmers_on(
                    reads.blocks, base, length, genome.blocks, start, stop, low + diagonal
                )
                best = max(best, (int64(count) << 32) - diagonal)
        for distance in (16, 8, 4, 2, 1):
            best = max(best, cuda.shfl_xor_sync(ALL_LANES, best, distance))
        count = (best + 0xFFFFFFFF) >> 32
        if cuda.laneid == 0 and count >= LEAST_KMERS:
            mates.diagonals[hit] = low + (count << 32) - best
            mates.kmers[hit] = count


@kernel(over="counts")
def count_mates(hits: DeviceScoredHits, mates: FoundMates, counts: uint32[::1]):
    """Count the candidates that each read's mate has found for it. One thread per read."""
    read = cuda.grid(1)
    if read > counts.size - 1:
        return
    count = int32(0)
    if read < counts.size - 1:
        anchor = read ^ 1
        for hit in range(int64(hits.offsets[anchor]), int64(hits.offsets[anchor + 1])):
            if mates.kmers[hit] > 0:
                count = int32(count + 1)
    counts[read] = count


@kernel
def write_mates(hits: DeviceScoredHits, mates: FoundMates, orientation: int, to: DeviceCandidates):
    """Write the candidates of each read in the order of its mate's hits. One thread per read."""
    read = cuda.grid(1)
    if read >= to.offsets.size - 1:
        return
    anchor = read ^ 1
    at = int64(to.offsets[read])
    for hit in range(int64(hits.offsets[anchor]), int64(hits.offsets[anchor + 1])):
        if mates.kmers[hit] > 0:
            to.reads[at] = read
            to.strands[at] = mate_lies(orientation, anchor & 1, hits.strands[hit])[0]
            to.diagonals[at] = mates.diagonals[hit]
            to.seeds[at] = mates.kmers[hit]
            at += 1
