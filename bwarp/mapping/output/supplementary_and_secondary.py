"""Supplementary records of split reads, and secondary hits in repeats.

    read      0 .................................... 150
    chosen    |==================>                       the primary record, 95 bases
    hit 2                        |=================|     other bases: supplementary, SA
    hit 3     |================>                         the same bases: secondary, XA

Two hits explain the same bases where they share half of the shorter stretch or more. Both lists
follow bwa: a supplementary record has the mapping quality that its own rivals leave, but no more
than the primary record; secondary hits are named where they are few.
"""

import numba
import numpy as np

from bwarp.mapping.extension.extension_cpu import Genome
from bwarp.mapping.extension.scored_hits_cpu import ScoredHits
from bwarp.mapping.output.alignment_records import SecondaryHits, Supplementary
from bwarp.mapping.output.final_alignments import MappedReads, align_hits
from bwarp.mapping.pairing.primary_and_mapq_cpu import (
    PrimarySelection,
    read_span,
    single_end_mapq,
    suboptimal_of,
)
from bwarp.mapping.parameters import MappingParameters

__all__ = ["secondary_of", "supplementary_of"]


def supplementary_of(
    genome: Genome,
    both: np.ndarray,
    offsets: np.ndarray,
    hits: ScoredHits,
    mapped: MappedReads,
    primary: PrimarySelection,
    parameters: MappingParameters,
    threads: int = 1,
) -> Supplementary:
    """The hits that explain what the primary records clip, best first for each read.

    Only reads are looked at of which enough bases are clipped at one end to score `least_score`.
    """
    lengths = np.diff(offsets)
    clipped = np.maximum(mapped.read_starts, lengths - mapped.read_ends)
    split = clipped * parameters.match >= parameters.least_score
    split &= (primary.hits >= 0) & (np.diff(hits.offsets) > 1)
    reads = np.flatnonzero(split)
    most = int(np.diff(hits.offsets)[reads].sum())
    rows, suboptimal = np.empty(most, np.int64), np.empty(most, np.int32)
    qualities = np.empty(most, np.uint8)
    gap = parameters.gap_open + parameters.gap_extend
    n = _find_supplementary(
        hits.offsets, hits.scores, hits.strands, hits.starts, hits.ends,
        hits.read_starts, hits.read_ends, hits.gapless, lengths, mapped.strands,
        mapped.read_starts, mapped.read_ends, primary.hits, primary.qualities, reads,
        parameters.least_score, parameters.match, parameters.mismatch, gap,
        rows, qualities, suboptimal,
    )  # fmt: skip
    return Supplementary(
        hits.reads[rows[:n]].astype(np.int64),
        align_hits(genome, both, offsets, hits, rows[:n], parameters, threads=threads),
        qualities[:n],
        suboptimal[:n],
    )


def secondary_of(
    genome: Genome,
    both: np.ndarray,
    offsets: np.ndarray,
    hits: ScoredHits,
    primary: PrimarySelection,
    parameters: MappingParameters,
    threads: int = 1,
) -> SecondaryHits:
    """The other hits of the same bases that score nearly as well, where they are not too many."""
    counts = np.diff(hits.offsets)
    reads = np.flatnonzero((counts > 1) & (primary.hits >= 0))
    rows = np.empty(reads.size * parameters.most_secondary, np.int64)
    n = _find_secondary(
        hits.offsets, hits.scores, hits.strands, hits.read_starts, hits.read_ends,
        np.diff(offsets), primary.hits, reads, parameters.most_secondary,
        parameters.secondary_share, rows,
    )  # fmt: skip
    return SecondaryHits(
        hits.reads[rows[:n]].astype(np.int64),
        align_hits(genome, both, offsets, hits, rows[:n], parameters, threads=threads),
    )


@numba.njit(cache=True, nogil=True)
def _find_supplementary(
    offsets, scores, strands, starts, ends, read_starts, read_ends, gapless, lengths,
    first_strands, first_starts, first_ends, selected, primary_qualities, reads, least, match,
    mismatch, gap, rows, qualities, suboptimal,
):  # fmt: skip
    n = 0
    for read in reads:
        length = lengths[read]
        first_of_read = n
        begin, end = np.int64(first_starts[read]), np.int64(first_ends[read])
        if first_strands[read]:
            begin, end = length - end, length - begin
        for i in range(offsets[read], offsets[read + 1]):
            if i == selected[read] or scores[i] < least:
                continue
            begin_2, end_2 = read_span(strands[i], read_starts[i], read_ends[i], length)
            shared = min(end, end_2) - max(begin, begin_2)
            taken = 2 * shared >= min(end - begin, end_2 - begin_2)
            for at in range(first_of_read, n):
                j = rows[at]
                begin_3, end_3 = read_span(strands[j], read_starts[j], read_ends[j], length)
                shared = min(end_2, end_3) - max(begin_2, begin_3)
                taken = taken or 2 * shared >= min(end_2 - begin_2, end_3 - begin_3)
            if taken:
                continue
            rows[n] = i
            # Both ends of parts may be clipped: no price is paid for that.
            suboptimal[n], other, near = suboptimal_of(
                offsets, scores, strands, read_starts, read_ends, gapless, length, 0, read, i,
                max(match - mismatch, gap),
            )  # fmt: skip
            alone = single_end_mapq(scores[i], other, near, ends[i] - starts[i], 0, match, mismatch)
            qualities[n] = min(alone, primary_qualities[read])
            n += 1
    return n


@numba.njit(cache=True, nogil=True)
def _find_secondary(
    offsets, scores, strands, read_starts, read_ends, lengths, selected, reads, most, share, rows
):
    n = 0
    for read in reads:
        hit = selected[read]
        begin, end = read_span(strands[hit], read_starts[hit], read_ends[hit], lengths[read])
        first_of_read = n
        for i in range(offsets[read], offsets[read + 1]):
            if scores[i] < share * scores[hit]:
                break
            if i == hit:
                continue
            begin_2, end_2 = read_span(strands[i], read_starts[i], read_ends[i], lengths[read])
            shared = min(end, end_2) - max(begin, begin_2)
            if 2 * shared < min(end - begin, end_2 - begin_2):
                continue
            if n == first_of_read + most:
                n = first_of_read
                break
            rows[n] = i
            n += 1
    return n
