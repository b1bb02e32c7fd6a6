"""Mapping qualities of reads that align about as well to loci near their hit.

    genome   ...GATACACACACACACACACACACACACACACACACACAGTC...
    read           ACACACACACACACACA
    as well                              ACACACACACACACACA

In tandem repeats of any period, and in stretches of few different bases, hits do not show these
loci: seeds on near diagonals form one candidate, not all hits of frequent seeds are located, and
mate rescue finds only one hit. A mate does not distinguish them, because it fits most of them.

Therefore the first bases of every primary hit in the genome are compared with those from every
other position up to a read's length away. Where they are alike, the read is aligned without gaps.
Each of these loci lowers the mapping quality like `UNLOCATED_RIVALS` other hits of its score.
"""

import numpy as np
from numpy import int64

from bwarp.mapping.extension_cpu import Genome
from bwarp.mapping.insert_size import SCORE_UNITS
from bwarp.mapping.likelihoods import likelihood, mapping_quality
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.primary_hits_cpu import UNLOCATED_RIVALS, PrimarySelection, scores_of
from bwarp.mapping.scored_hits_cpu import ScoredHits
from bwarp.reads.base_bits_cpu import bits_at, differing, prefetch_bases
from bwarp.reference import interval_at
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import population_count

#: Minimum distance in bases between different loci.
APART = 20

#: Rivals of shorter reads are also searched up to this number of bases away.
LEAST_REACH = 160

#: Number of bases that are compared first: those of a word on a GPU.
PROBE = 32

#: They are alike if at most one in this number of bases differs.
ALIKE = 4

#: The genome is prefetched for the read that comes this number of reads later.
_AHEAD = 12


def lower_tandem_repeats(
    genome: Genome,
    both: np.ndarray,
    offsets: np.ndarray,
    hits: ScoredHits,
    primary: PrimarySelection,
    parameters: MappingParameters,
) -> None:
    """Lower the mapping qualities of reads that align about as well to loci near their hit."""
    _lower(genome, both, offsets, hits, primary, scores_of(parameters))


@compiled(inline="always")
def bases_compared(start, end, read_end, low):
    """Return how many of the last bases of a hit are compared: on the diagonal of its end, within
    the read and the contig, which begins at `low`; both engines use it."""
    return min(end - max(start, low), int64(read_end))


@compiled(inline="always")
def probe_width(n):
    """Return how many of the first bases of a hit of n bases are compared; both engines use it."""
    return min(int64(PROBE), n)


@compiled(inline="always")
def are_alike(n_different, width):
    """Return whether the first bases of two loci are alike; both engines use it."""
    return ALIKE * int64(n_different) <= width


@compiled(inline="always")
def starts_of_rivals(side, start, length, low, high):
    """Return the first and the last position of rivals to the left (side 0) or right (1) of a hit
    at `start` that are between `low` and `high`; both engines use it."""
    farthest = max(length, int64(LEAST_REACH))
    if side == 0:
        return max(start - farthest, low), min(start - APART, high)
    return max(start + APART, low), min(start + farthest, high)


@compiled(inline="always")
def likelihood_of_rival(score, n, in_read, in_genome, gapless, scores):
    """Return the likelihood of a rival of a hit with this score; both engines use it.

    The gaps of a gapped hit are not known yet: its rival loses at most the differences of the loci.

    Parameters
    ----------
    n : int64
        Bases of the genome in the hit.
    in_read, in_genome : int64
        Differences of the rival from the read, without gaps, and from the hit's locus.
    """
    loss = scores.match - scores.mismatch
    less = score - (scores.match * n - loss * in_read)
    if not gapless:
        less = min(less, loss * in_genome)
    return likelihood(SCORE_UNITS * less, scores.match)


@compiled(inline="always")
def quality_beside_rivals(quality, rivals):
    """Return a mapping quality lowered by rivals, given the sum of their likelihoods; both engines
    use it."""
    return min(quality, mapping_quality(UNLOCATED_RIVALS * rivals))


@compiled(counted=False)
def _lower(genome, both, offsets, hits, primary, scores):
    blocks, contig_starts = genome.blocks, genome.contig_starts
    n_reads = offsets.size - 1
    for read in range(n_reads):
        if read + _AHEAD < n_reads and primary.hits[read + _AHEAD] >= 0:
            prefetch_bases(blocks, hits.starts[primary.hits[read + _AHEAD]])
        hit = primary.hits[read]
        if hit < 0 or primary.qualities[read] == 0:
            continue
        length = offsets[read + 1] - offsets[read]
        contig = interval_at(contig_starts, hits.ends[hit] - 1)
        low, high = contig_starts[contig], contig_starts[contig + 1]
        n = bases_compared(hits.starts[hit], hits.ends[hit], hits.read_ends[hit], low)
        start = hits.ends[hit] - n
        in_both = offsets[read] + (both.size // 2 if hits.strands[hit] else 0)
        in_both += hits.read_ends[hit] - n
        width = probe_width(n)
        rivals = np.int64(0)
        for side in range(2):
            first, last = starts_of_rivals(side, start, length, low, high - n)
            for at in range(first, last + 1, 32):
                alike = _alike(blocks, start, at, width)
                while alike:
                    i = np.int64(population_count(~alike & (alike - np.uint64(1))))
                    alike &= alike - np.uint64(1)
                    if at + i > last:
                        break
                    in_read = _differences(blocks, at + i, both, in_both, n)
                    in_genome = _differences_of_loci(blocks, at + i, start, n)
                    rivals += likelihood_of_rival(
                        np.int64(hits.scores[hit]), n, in_read, in_genome, hits.gapless[hit], scores
                    )
        if rivals:
            quality = np.int64(primary.qualities[read])
            primary.qualities[read] = quality_beside_rivals(quality, rivals)


@compiled(forceinline=True)
def _alike(blocks, start, at, width):
    """Return a mask of the 32 positions from `at`: 1 if the `width` bases of the genome from there
    are like those from `start`."""
    low, high, _ = bits_at(blocks, start)
    other_low, other_high, _ = bits_at(blocks, at)
    inside = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    alike = np.uint64(0)
    # Branchless, so that LLVM compares several positions at a time.
    for i in range(np.uint64(32)):
        bits = (low ^ other_low >> i | high ^ other_high >> i) & inside
        alike |= np.uint64(are_alike(population_count(bits), width)) << i
    return alike


@compiled
def _differences(blocks, at, both, first, n):
    """Count the differences of n bases of a read from the genome."""
    differences = np.int64(0)
    for i in range(0, n, 64):
        bits = differing(blocks, at + i, both, first + i, min(np.int64(64), n - i))
        differences += np.int64(population_count(bits))
    return differences


@compiled
def _differences_of_loci(blocks, at, other, n):
    """Count the differences of n bases of the genome from others."""
    differences = np.int64(0)
    for i in range(0, n, 64):
        low, high, ambiguous = bits_at(blocks, at + i)
        other_low, other_high, other_ambiguous = bits_at(blocks, other + i)
        bits = low ^ other_low | high ^ other_high | ambiguous | other_ambiguous
        bits &= ~np.uint64(0) >> np.uint64(64 - min(np.int64(64), n - i))
        differences += np.int64(population_count(bits))
    return differences
