"""The seeding rounds on the CPU, by the rules of seeding_rounds."""

import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.mapping.extension_cpu import Genome, extend
from bwarp.mapping.parameters import MappingParameters, good_scores
from bwarp.mapping.scored_hits_cpu import ScoredHits, best_scores, merge, without
from bwarp.mapping.seeding_rounds import SECOND, needs_round, rounds_of, take_bounds
from bwarp.mapping.seeds_cpu import Candidates, find_candidates


def score_reads(
    index: FMIndex,
    genome: Genome,
    both: np.ndarray,
    codes: np.ndarray,
    offsets: np.ndarray,
    found: Candidates,
    parameters: MappingParameters,
) -> tuple[ScoredHits, np.ndarray, np.ndarray]:
    """Return the scored hits of reads: of the candidates `found` in the first seeding round, and of
    further rounds.

    Parameters
    ----------
    both : ndarray, shape=(2 * n_bases,), dtype=uint8
        The reads, then their reverse complements.
    codes : ndarray, shape=(n_bases,), dtype=uint8
    offsets : ndarray, shape=(n_reads + 1,), dtype=int64

    Returns
    -------
    hits : ScoredHits
    unlocated : ndarray, shape=(n_reads,), dtype=int32
        The likely score of a hit that was not located; 0 if there is none.
    searched : ndarray, shape=(3,), dtype=int64
        Numbers of seeds, located hits and candidates of all rounds.
    """
    lengths = np.diff(offsets)
    good = good_scores(int(lengths.max(initial=0)), parameters)[lengths]
    hits = extend(genome, both, offsets, found, parameters)
    searched, bounds, unlocated = found.searched, found.score_bounds.copy(), found.unlocated.copy()
    for number, seeds in rounds_of(parameters):
        needed = needs_round(
            number, lengths, best_scores(hits), bounds, unlocated, good, parameters.resolved_margin,
            parameters.match - parameters.mismatch,
        )  # fmt: skip
        reads = np.flatnonzero(needed)
        if not reads.size:
            continue
        found = find_candidates(index, codes, offsets, reads, seeds, parameters)
        more = extend(genome, both, offsets, found, parameters)
        searched = searched + found.searched
        if number == SECOND:
            hits = without(hits, needed)
        take_bounds(
            number, reads, lengths, found.score_bounds, found.unlocated, parameters.match, bounds,
            unlocated,
        )  # fmt: skip
        hits = merge(hits, more)
    return hits, unlocated, searched
