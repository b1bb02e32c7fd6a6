"""The 5' part of a split read as its primary hit, for Hi-C: it is where the read's end lies.

    read      0 ..................... 150
    hit 1             |==================>      scores most
    hit 2     |======>                          the 5' part: primary; hit 1 becomes supplementary

The other part lies beyond the ligation, at the locus of the mate.
"""

import numpy as np

from bwarp.mapping.extension.scored_hits_cpu import ScoredHits
from bwarp.mapping.pairing.primary_and_mapq_cpu import (
    PrimarySelection,
    read_span,
    same_bases,
    single_end_mapq,
    suboptimal_of,
)
from bwarp.mapping.parameters import MappingParameters
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.uncounted import uncounted

__all__ = ["five_prime_first"]


def five_prime_first(
    hits: ScoredHits,
    lengths: np.ndarray,
    primary: PrimarySelection,
    parameters: MappingParameters,
) -> PrimarySelection:
    """The selection with the part of each read that begins first, as of `bwa mem -5`.

    Parts are the primary hit, and hits that share bases with neither it nor a better part.
    """
    moved = PrimarySelection(*map(np.copy, primary))
    counts = np.diff(hits.offsets)
    reads = np.flatnonzero((primary.hits >= 0) & (counts > 1))
    parts = np.empty(counts.max(initial=0), np.int64)
    _take_first_parts(
        hits, lengths, reads, parameters.least_score, parameters.match, parameters.mismatch,
        parameters.most_loss, parts, moved,
    )  # fmt: skip
    return moved


@compiled
def _take_first_parts(hits, lengths, reads, least, match, mismatch, margin, parts, primary):
    hits, primary = uncounted((hits, primary))
    for read in reads:
        length = lengths[read]
        first = parts[0] = primary.hits[read]
        n = 1
        for i in range(hits.offsets[read], hits.offsets[read + 1]):
            if hits.scores[i] < least:
                break
            span = read_span(hits, i, length)
            taken = False
            for at in range(n):
                taken = taken or same_bases(span, read_span(hits, parts[at], length))
            if taken:
                continue
            parts[n] = i
            n += 1
            if span[0] < read_span(hits, first, length)[0]:
                first = i
        if first != parts[0]:
            primary.hits[read] = first
            # Both ends of parts may be clipped: there is no penalty for that.
            primary.suboptimal[read], other, near = suboptimal_of(
                hits, read, first, length, 0, margin
            )
            primary.qualities[read] = single_end_mapq(
                hits.scores[first], other, near, hits.ends[first] - hits.starts[first], 0, match,
                mismatch,
            )  # fmt: skip
