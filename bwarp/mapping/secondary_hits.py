"""Supplementary records of split reads, and secondary hits in repeats.

    read      0 .................................... 150
    chosen    |==================>                       the primary record, 95 bases
    hit 2                        |=================|     other bases: supplementary, SA
    hit 3     |================>                         the same bases: secondary, XA

With `--all`, secondary hits get their own records instead of XA.

Two hits explain the same bases if they share at least half of the shorter stretch. Both lists
follow bwa: the mapping quality of a supplementary record depends on its own rivals, and is at most
that of the primary record; secondary hits are listed in XA if they are few. With `--all`, hits get
records if they score at least half of the record whose bases they share.
"""

import numpy as np

from bwarp.mapping.extension_cpu import Genome
from bwarp.mapping.final_alignments import MappedReads, align_hits, gapless_alignments
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.primary_hits_cpu import (
    AltHits,
    PrimarySelection,
    rank_part,
    read_span,
    same_bases,
    scores_of,
)
from bwarp.mapping.scored_hits_cpu import ScoredHits
from bwarp.mapping.split_reads import MICROHOMOLOGY
from bwarp.records.alignment_records import (
    SecondaryHits,
    SecondaryRecords,
    Supplementary,
    joined_alignments,
)
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.timeline import on_timeline
from bwarp.runtime.uncounted import uncounted


def least_split(parameters: MappingParameters) -> int:
    """Return the minimum clipped bases at one end of a read with a supplementary record.

    With the bases that two parts may share, fewer would score less than `least_score`.
    """
    return max(1, -(-parameters.least_score // parameters.match) - MICROHOMOLOGY)


@on_timeline("find supplementary hits")
def supplementary_of(
    genome: Genome,
    both: np.ndarray,
    offsets: np.ndarray,
    hits: ScoredHits,
    mapped: MappedReads,
    primary: PrimarySelection,
    parameters: MappingParameters,
) -> Supplementary:
    """Return the hits that explain bases clipped by the primary records, best first for each read.

    This only considers reads with enough clipped bases at one end to score `least_score`, including
    those that two parts may share.
    """
    lengths = np.diff(offsets)
    clipped = np.maximum(mapped.read_starts, lengths - mapped.read_ends)
    split = clipped >= least_split(parameters)
    split &= (primary.hits >= 0) & (np.diff(hits.offsets) > 1)
    reads = np.flatnonzero(split)
    if parameters.hic:
        # Each part has the mapping quality of its own locus.
        primary = primary._replace(qualities=np.full(lengths.size, 60, np.uint8))
    most = int(np.diff(hits.offsets)[reads].sum())
    rows, suboptimal = np.empty(most, np.int64), np.empty(most, np.int32)
    qualities = np.empty(most, np.uint8)
    n = _find_supplementary(
        hits, lengths, mapped, primary, reads, scores_of(parameters), (rows, qualities, suboptimal)
    )
    rows, qualities, suboptimal = rows[:n], qualities[:n], suboptimal[:n]
    found = align_hits(genome, both, offsets, hits, rows, parameters)
    # In a window, a hit may align bases that the primary record already aligns. A gapless hit then
    # stays as it was scored; any other is dropped.
    again = _same_bases_as_primary(found, hits.reads[rows], mapped, lengths)
    order = np.arange(rows.size)
    if again.any():
        kept, own = np.flatnonzero(~again), np.flatnonzero(again & hits.gapless[rows])
        order = np.concatenate([kept, own])
        found = joined_alignments(
            align_hits(genome, both, offsets, hits, rows[kept], parameters),
            gapless_alignments(hits, rows[own]),
        )
    return Supplementary(
        hits.reads[rows[order]].astype(np.int64),
        found,
        qualities[order],
        suboptimal[order],
        np.zeros(order.size, bool),
        rows[order],
    )


def _same_bases_as_primary(found, reads, mapped, lengths) -> np.ndarray:
    """Return whether each alignment (bool) overlaps the primary alignment of its read.

    They must share at least half of the bases of the shorter alignment.
    """
    spans = []
    for alignments, rows in ((found, slice(None)), (mapped, reads)):
        starts, ends = alignments.read_starts[rows], alignments.read_ends[rows]
        turned = alignments.strands[rows] == 1
        length = lengths[reads]
        spans.append((np.where(turned, length - ends, starts),
                      np.where(turned, length - starts, ends)))  # fmt: skip
    (start, end), (start_2, end_2) = spans
    shared = np.minimum(end, end_2) - np.maximum(start, start_2)
    return 2 * shared >= np.minimum(end - start, end_2 - start_2)


@on_timeline("find secondary hits")
def secondary_of(
    genome: Genome,
    both: np.ndarray,
    offsets: np.ndarray,
    hits: ScoredHits,
    primary: PrimarySelection,
    parameters: MappingParameters,
) -> SecondaryHits:
    """Return the other hits of the same bases with nearly the same score, unless too many."""
    counts = np.diff(hits.offsets)
    reads = np.flatnonzero((counts > 1) & (primary.hits >= 0))
    rows = np.empty(reads.size * parameters.most_secondary, np.int64)
    n = _find_secondary(
        hits, np.diff(offsets), primary.hits, reads, parameters.most_secondary,
        parameters.secondary_share, rows,
    )  # fmt: skip
    return SecondaryHits(
        hits.reads[rows[:n]].astype(np.int64),
        align_hits(genome, both, offsets, hits, rows[:n], parameters),
        np.full(n, -1),
    )


def recorded_of(
    genome: Genome,
    both: np.ndarray,
    offsets: np.ndarray,
    hits: ScoredHits,
    primary: PrimarySelection,
    supplementary: Supplementary,
    parameters: MappingParameters,
) -> SecondaryRecords:
    """Return the secondary hits that get records, best first, at most `secondary_records` per read.

    As in bwa mem -a, they score at least `least_score`, and at least half of the primary or
    supplementary record of the same bases.
    """
    lengths, counts = np.diff(offsets), np.diff(hits.offsets)
    reads = np.flatnonzero((counts > 1) & (primary.hits >= 0))
    rows = _find_recorded(
        hits, lengths, primary.hits, supplementary.reads, supplementary.hits, reads,
        parameters.least_score, parameters.secondary_records,
    )  # fmt: skip
    return SecondaryRecords(
        hits.reads[rows].astype(np.int64),
        align_hits(genome, both, offsets, hits, rows, parameters),
    )


@compiled(forceinline=True)
def _nearest(hits, read, i, first, length):
    """Return the hit of the same bases and score as hit i that is nearest to the primary one."""
    span = read_span(hits, i, length)
    nearest = i
    for j in range(i + 1, hits.offsets[read + 1]):
        if hits.scores[j] < hits.scores[i]:
            break
        nearer = abs(hits.starts[j] - hits.starts[first])
        nearer -= abs(hits.starts[nearest] - hits.starts[first])
        if j != first and nearer < 0 and same_bases(span, read_span(hits, j, length)):
            nearest = j
    return nearest


@compiled(counted=False)
def _find_supplementary(hits, lengths, mapped, primary, reads, scores, found):
    """Write the hits, their qualities, and the best scores of their rivals; return their number."""
    rows, qualities, suboptimal = found
    n = 0
    for read in reads:
        length = lengths[read]
        first_of_read = n
        first = read_span(mapped, read, length)
        for i in range(hits.offsets[read], hits.offsets[read + 1]):
            if i == primary.hits[read] or hits.scores[i] < scores.least:
                continue
            span = read_span(hits, i, length)
            taken = same_bases(first, span)
            for at in range(first_of_read, n):
                taken = taken or same_bases(span, read_span(hits, rows[at], length))
            if taken:
                continue
            i = _nearest(hits, read, i, primary.hits[read], length)
            rows[n] = i
            suboptimal[n], alone = rank_part(hits, read, i, length, scores)
            qualities[n] = min(alone, primary.qualities[read])
            n += 1
    return n


@compiled(inline="always")
def scores_nearly_as_much(score, primary_score, share):
    """Return whether the score of a secondary hit suffices for XA; both engines use it."""
    return score >= share * primary_score


@compiled(inline="always")
def is_recorded(score, record_score):
    """Return whether the score of a secondary hit suffices for `--all`; both engines use it."""
    return 2 * score >= record_score


@compiled
def _find_secondary(hits, lengths, selected, reads, most, share, rows):
    n = 0
    for read in reads:
        hit = selected[read]
        span = read_span(hits, hit, lengths[read])
        first_of_read = n
        for i in range(hits.offsets[read], hits.offsets[read + 1]):
            if not scores_nearly_as_much(hits.scores[i], hits.scores[hit], share):
                break
            if i == hit or not same_bases(span, read_span(hits, i, lengths[read])):
                continue
            if n - first_of_read == most:
                n = first_of_read
                break
            rows[n] = i
            n += 1
    return n


@compiled
def _find_recorded(hits, lengths, selected, split_reads, split_hits, reads, least, most):
    hits = uncounted(hits)
    rows = np.empty(min(reads.size * most, hits.reads.size), np.int64)
    n, begin = 0, 0
    for read in reads:
        while begin < split_reads.size and split_reads[begin] < read:
            begin += 1
        end = begin
        while end < split_reads.size and split_reads[end] == read:
            end += 1
        length = lengths[read]
        first_of_read = n
        for i in range(hits.offsets[read], hits.offsets[read + 1]):
            if hits.scores[i] < least or n - first_of_read == most:
                break
            span = read_span(hits, i, length)
            found, recorded = False, i == selected[read]
            # The primary hit, then the supplementary ones.
            for at in range(begin - 1, end):
                other = selected[read] if at < begin else split_hits[at]
                recorded = recorded or other == i
                rivals = same_bases(span, read_span(hits, other, length))
                found = found or (rivals and is_recorded(hits.scores[i], hits.scores[other]))
            if found and not recorded:
                rows[n] = i
                n += 1
    return rows[:n].copy()


def with_alt_hits(
    genome: Genome,
    both: np.ndarray,
    offsets: np.ndarray,
    hits: ScoredHits,
    found: AltHits,
    supplementary: Supplementary,
    secondary: SecondaryHits,
    parameters: MappingParameters,
) -> tuple[Supplementary, SecondaryHits]:
    """Return the supplementary and secondary hits, with those found on ALT contigs added."""
    lines = align_hits(genome, both, offsets, hits, found.lines, parameters)
    named = align_hits(genome, both, offsets, hits, found.secondary, parameters)
    n_before = len(supplementary.reads)
    return (
        Supplementary(
            np.concatenate([supplementary.reads, hits.reads[found.lines].astype(np.int64)]),
            joined_alignments(supplementary.alignments, lines),
            np.concatenate([supplementary.qualities, found.qualities]),
            np.concatenate([supplementary.suboptimal, found.suboptimal]),
            # As in bwa, because their bases are useful without the primary record.
            np.concatenate([supplementary.soft, np.ones(len(found.lines), bool)]),
            np.concatenate([supplementary.hits, found.lines]),
        ),
        SecondaryHits(
            np.concatenate([secondary.reads, hits.reads[found.secondary].astype(np.int64)]),
            joined_alignments(secondary.alignments, named),
            np.concatenate(
                [secondary.named_by, np.where(found.named_by < 0, -1, found.named_by + n_before)]
            ),
        ),
    )
