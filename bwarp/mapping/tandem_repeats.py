"""Mapping qualities of reads in tandem repeats, which match equally well some periods away.

    genome   ...GATACACACACACACACACACACACACACACACACAGTC...
    read           ACACACACACACACACA
    as well                              ACACACACACACACACA

If only its mate distinguishes a hit from others of the same score, the read may belong anywhere in
the repeat: not all hits of frequent seeds are located, and mate rescue finds only one hit.
"""

import numpy as np

from bwarp.mapping.extension_cpu import Genome
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.primary_hits_cpu import PrimarySelection, quality_beside
from bwarp.mapping.scored_hits_cpu import ScoredHits
from bwarp.reads.base_bits_cpu import bits_of_codes, differing
from bwarp.reference import interval_at
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import population_count

#: Minimum distance in bases between different loci.
APART = 20

#: Maximum period that is searched.
LONGEST_PERIOD = 12

#: Maximum differences between a tandem repeat and itself, shifted by one period.
MOST_DIFFERENCES = 3


def lower_tandem_repeats(
    genome: Genome,
    both: np.ndarray,
    offsets: np.ndarray,
    hits: ScoredHits,
    primary: PrimarySelection,
    parameters: MappingParameters,
) -> None:
    """Lower the mapping qualities of properly paired reads that also match some periods away."""
    _lower(
        genome, both, offsets, hits, primary, parameters.match,
        parameters.match - parameters.mismatch, parameters.most_loss,
    )  # fmt: skip


@compiled(inline="always")
def shift_of_period(period):
    """Return the distance to the nearest other locus of a tandem repeat; both engines use it."""
    return period * (APART // period + 1)


@compiled(inline="always")
def score_farther(length, differences, match, loss):
    """Return the end-to-end score of a read at that locus; both engines use it."""
    return match * length - loss * differences


@compiled(counted=False)
def _lower(genome, both, offsets, hits, primary, match, loss, margin):
    for read in range(offsets.size - 1):
        hit = primary.hits[read]
        if not primary.proper[read] or primary.suboptimal[read] + margin < hits.scores[hit]:
            continue
        length = offsets[read + 1] - offsets[read]
        first = offsets[read] + (both.size // 2 if hits.strands[hit] else 0)
        period = _period_of(both, first, length)
        if not period:
            continue
        contig = interval_at(genome.contig_starts, hits.starts[hit])
        low, high = genome.contig_starts[contig], genome.contig_starts[contig + 1]
        here = hits.starts[hit] - np.int64(hits.read_starts[hit])
        shift = shift_of_period(period)
        for diagonal in (here - shift, here + shift):
            if diagonal < low or diagonal + length > high:
                continue
            differences = 0
            for at in range(0, length, 64):
                n = min(np.int64(64), length - at)
                bits = differing(genome.blocks, diagonal + at, both, first + at, n)
                differences += population_count(bits)
            less = hits.scores[hit] - score_farther(length, np.int64(differences), match, loss)
            primary.qualities[read] = min(
                np.int64(primary.qualities[read]), quality_beside(less, match)
            )


@compiled
def _period_of(both, first, length):
    """Return the shortest period of a read, or 0 if it has none."""
    n = min(length, np.int64(64))
    low, high, ambiguous = bits_of_codes(both, first, n)
    for period in range(1, min(LONGEST_PERIOD, length // 2) + 1):
        # Most reads differ from themselves often enough in their first bases.
        shift = np.uint64(period)
        bits = low ^ low >> shift | high ^ high >> shift | ambiguous ^ ambiguous >> shift
        bits &= ~np.uint64(0) >> np.uint64(64 - n + period)
        if population_count(bits) > MOST_DIFFERENCES:
            continue
        differences = 0
        for at in range(first, first + length - period):
            differences += both[at] != both[at + period]
            if differences > MOST_DIFFERENCES:
                break
        if differences <= MOST_DIFFERENCES:
            return period
    return 0
