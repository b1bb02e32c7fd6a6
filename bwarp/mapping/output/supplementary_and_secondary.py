"""Lines beyond a read's first one, and the places that a line names: split reads and repeats.

    read      0 .................................... 150
    chosen    |==================>                       the first line, 95 bases
    place 2                      |=================|     other bases: a supplementary line, SA
    place 3   |================>                         the same bases: an alternative, XA

Two places explain the same bases where they share half of the shorter stretch or more. Both lists
follow bwa: supplementary lines are as sure as their own rivals let them be, but no surer than the
first line; alternatives are named where they are few, for many say nothing.
"""

import numba
import numpy as np

from bwarp.mapping.extension.extension_cpu import Genome
from bwarp.mapping.extension.scored_hits_cpu import Places
from bwarp.mapping.output.alignment_records import Alternatives, Supplementary
from bwarp.mapping.output.final_alignments import MappedReads, align_chosen
from bwarp.mapping.pairing.primary_and_mapq_cpu import Choice, others_of, quality_alone, read_span
from bwarp.mapping.parameters import MappingParameters

__all__ = ["alternatives_of", "supplementary_of"]


def supplementary_of(
    genome: Genome,
    both: np.ndarray,
    offsets: np.ndarray,
    places: Places,
    mapped: MappedReads,
    choice: Choice,
    parameters: MappingParameters,
    threads: int = 1,
) -> Supplementary:
    """The places that explain what the first lines clip, best first for each read.

    Only reads whose first line clips enough bases at one end to score `least_score` are looked at.
    """
    lengths = np.diff(offsets)
    clipped = np.maximum(mapped.read_starts, lengths - mapped.read_ends)
    split = clipped * parameters.match >= parameters.least_score
    split &= (choice.places >= 0) & (np.diff(places.offsets) > 1)
    reads = np.flatnonzero(split)
    most = int(np.diff(places.offsets)[reads].sum())
    rows, others = np.empty(most, np.int64), np.empty(most, np.int32)
    qualities = np.empty(most, np.uint8)
    gap = parameters.gap_open + parameters.gap_extend
    n = _find_supplementary(
        places.offsets, places.scores, places.strands, places.starts, places.ends,
        places.read_starts, places.read_ends, places.gapless, lengths, mapped.strands,
        mapped.read_starts, mapped.read_ends, choice.places, choice.qualities, reads,
        parameters.least_score, parameters.match, parameters.mismatch, gap,
        rows, qualities, others,
    )  # fmt: skip
    return Supplementary(
        places.reads[rows[:n]].astype(np.int64),
        align_chosen(genome, both, offsets, places, rows[:n], parameters, threads=threads),
        qualities[:n],
        others[:n],
    )


def alternatives_of(
    genome: Genome,
    both: np.ndarray,
    offsets: np.ndarray,
    places: Places,
    choice: Choice,
    parameters: MappingParameters,
    threads: int = 1,
) -> Alternatives:
    """The other places of the same bases that score nearly as well, where they are not too many."""
    counts = np.diff(places.offsets)
    reads = np.flatnonzero((counts > 1) & (choice.places >= 0))
    rows = np.empty(reads.size * parameters.alternatives, np.int64)
    n = _find_alternatives(
        places.offsets, places.scores, places.strands, places.read_starts, places.read_ends,
        np.diff(offsets), choice.places, reads, parameters.alternatives,
        parameters.alternative_share, rows,
    )  # fmt: skip
    return Alternatives(
        places.reads[rows[:n]].astype(np.int64),
        align_chosen(genome, both, offsets, places, rows[:n], parameters, threads=threads),
    )


@numba.njit(cache=True, nogil=True)
def _find_supplementary(
    offsets, scores, strands, starts, ends, read_starts, read_ends, gapless, lengths,
    first_strands, first_starts, first_ends, chosen, chosen_qualities, reads, least, match,
    mismatch, gap, rows, qualities, others,
):  # fmt: skip
    n = 0
    for read in reads:
        length = lengths[read]
        first_of_read = n
        begin, end = np.int64(first_starts[read]), np.int64(first_ends[read])
        if first_strands[read]:
            begin, end = length - end, length - begin
        for i in range(offsets[read], offsets[read + 1]):
            if i == chosen[read] or scores[i] < least:
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
            others[n], other, near = others_of(
                offsets, scores, strands, read_starts, read_ends, gapless, length, 0, read, i,
                max(match - mismatch, gap),
            )  # fmt: skip
            alone = quality_alone(scores[i], other, near, ends[i] - starts[i], 0, match, mismatch)
            qualities[n] = min(alone, chosen_qualities[read])
            n += 1
    return n


@numba.njit(cache=True, nogil=True)
def _find_alternatives(
    offsets, scores, strands, read_starts, read_ends, lengths, chosen, reads, most, share, rows
):
    n = 0
    for read in reads:
        place = chosen[read]
        begin, end = read_span(strands[place], read_starts[place], read_ends[place], lengths[read])
        first_of_read = n
        for i in range(offsets[read], offsets[read + 1]):
            if scores[i] < share * scores[place]:
                break
            if i == place:
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
