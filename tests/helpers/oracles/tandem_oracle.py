"""Mapping qualities of reads with loci that overlap their hit, base by base."""

import numpy as np

from bwarp.mapping.insert_size import SCORE_UNITS
from bwarp.mapping.likelihoods import likelihood, mapping_quality
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.primary_hits_cpu import UNLOCATED_RIVALS, PrimarySelection
from bwarp.mapping.scored_hits_cpu import ScoredHits
from bwarp.mapping.tandem_repeats import ALIKE, APART, LEAST_REACH, PROBE
from tests.helpers.oracles.mapping_oracle import opposite


def lowered_qualities(
    bases: np.ndarray,
    contig_starts: np.ndarray,
    reads: list[np.ndarray],
    hits: ScoredHits,
    primary: PrimarySelection,
    parameters: MappingParameters,
) -> list[int]:
    """Return the quality of each read after all positions of its contig were compared."""
    qualities = primary.qualities.tolist()
    for number, read in enumerate(reads):
        hit = primary.hits[number]
        if hit >= 0:
            rivals = _rivals(bases, contig_starts, read, hits, hit, parameters)
            lowered = mapping_quality(UNLOCATED_RIVALS * rivals)
            qualities[number] = min(qualities[number], int(lowered))
    return qualities


def _rivals(bases, contig_starts, read, hits, hit, parameters):
    match, loss = parameters.match, parameters.match - parameters.mismatch
    read = opposite(read) if hits.strands[hit] else read
    end, read_end = int(hits.ends[hit]), int(hits.read_ends[hit])
    contig = np.searchsorted(contig_starts, end - 1, side="right") - 1
    low, high = contig_starts[contig : contig + 2].tolist()
    n = min(end - max(int(hits.starts[hit]), low), read_end)
    locus, part = bases[end - n : end], read[read_end - n : read_end]
    width, rivals = min(PROBE, n), 0
    for at in range(low, high - n + 1):
        if not APART <= abs(at - (end - n)) <= max(read.size, LEAST_REACH):
            continue
        other = bases[at : at + n]
        # An ambiguous base begins like A.
        if ALIKE * np.count_nonzero(other[:width] % 4 != locus[:width] % 4) > width:
            continue
        in_read = np.count_nonzero((other != part) | (other > 3) | (part > 3))
        less = int(hits.scores[hit]) - (match * n - loss * in_read)
        if not hits.gapless[hit]:
            less = min(less, loss * np.count_nonzero((other != locus) | (other > 3)))
        rivals += likelihood(SCORE_UNITS * less, match)
    return rivals
