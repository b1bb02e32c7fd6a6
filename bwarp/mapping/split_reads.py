"""Hits of reads whose best hit covers only a part: split reads, and reads with a long gap.

    read         |=======================>~~~~~~~~~~~~~~~~|
    best hit     |=======================>
    rest                                 |~~~~~~~~~~~~~~~~|

1. If the rest lies nearby, across a long gap, both parts become one hit (extension_cpu.py).
2. If hits of the whole read were not located, the part that the best hit aligns is searched as a
   separate read, because seeds of the rest do not find other loci of this part.
3. The rest is searched as a separate read, with more seeds than the whole read has there.

All steps run on the host with either engine, because few reads take part. The hits of these reads
are extracted and put back once, because copying all hits takes longer than all steps.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy import int64

from bwarp.index.fm_index import FMIndex
from bwarp.mapping.extension_cpu import (
    Genome,
    best_gap,
    both_strands,
    extend,
    gap_costs,
    least_clipped,
    on_diagonal,
    space_for_gaps,
)
from bwarp.mapping.parameters import END_TO_END, MappingParameters
from bwarp.mapping.primary_hits_cpu import read_span, whole_reads
from bwarp.mapping.scored_hits_cpu import ScoredHits, hits_at, merge, replaced
from bwarp.mapping.seeding_rounds_cpu import score_reads
from bwarp.mapping.seeds_cpu import find_candidates
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.threads import joined_stretches, offsets_of
from bwarp.runtime.timeline import on_timeline

#: Maximum bases that the parts of a split read share: they match on both sides of the breakpoint.
MICROHOMOLOGY = 10

#: Maximum number of best hits per read whose clipped ends are searched across gaps.
MOST_HITS = 8


def with_split_reads(
    index: FMIndex,
    genome: Genome,
    both: np.ndarray,
    codes: np.ndarray,
    offsets: np.ndarray,
    hits: ScoredHits,
    unlocated: np.ndarray,
    parameters: MappingParameters,
) -> tuple[ScoredHits, np.ndarray, np.ndarray]:
    """Return the hits after all steps, and `unlocated` and the bases to which it refers.

    Parameters
    ----------
    both : ndarray, shape=(2 * n_bases,), dtype=uint8
        The reads, then their reverse complements.
    codes : ndarray, shape=(n_bases,), dtype=uint8
    offsets : ndarray, shape=(n_reads + 1,), dtype=int64
    unlocated : ndarray, shape=(n_reads,), dtype=int32
        The likely score of a hit that was not located; 0 if there is none.

    Returns
    -------
    hits : ScoredHits
    unlocated : ndarray, shape=(n_reads,), dtype=int32
    spans : ndarray, shape=(n_reads, 2), dtype=int64
        Begin and end of the bases to which `unlocated` refers: all of a read, or a part of a split
        read.
    """
    spans = whole_reads(np.diff(offsets))
    if parameters.mode == END_TO_END:
        return hits, unlocated, spans
    rows = np.empty(len(hits.reads), np.int64)
    rows = rows[: _list_hits(hits, offsets, gap_costs(parameters), least_part(parameters), rows)]
    if not rows.size:
        return hits, unlocated, spans
    few = hits_at(hits, rows)
    few = across_gaps(genome, both, offsets, few, parameters)
    unlocated = unlocated.copy()
    few = with_aligned_parts(index, genome, codes, offsets, few, unlocated, spans, parameters)
    few = with_clipped_ends(index, genome, codes, offsets, few, parameters)
    return replaced(hits, few), unlocated, spans


@on_timeline("join across gaps")
def across_gaps(
    genome: Genome,
    both: np.ndarray,
    offsets: np.ndarray,
    hits: ScoredHits,
    parameters: MappingParameters,
) -> ScoredHits:
    """Return the hits, with the best ones extended across a long gap to a clipped end.

    The parameters are those of `with_split_reads`.
    """
    if parameters.mode == END_TO_END:
        return hits
    n_reads = len(offsets) - 1
    counts = np.minimum(np.diff(hits.offsets), MOST_HITS)
    gaps = np.empty((int(counts.sum()), 5), np.int64)
    costs, space = gap_costs(parameters), space_for_gaps(offsets)
    gaps = gaps[: _find_gaps(genome, both, offsets, hits, costs, space, gaps)]
    if not len(gaps):
        return hits
    hit, right, shift, outer, gain = gaps.T
    reads = hits.reads[hit]
    # A window for both stretches.
    low, high = np.minimum(shift, 0), np.maximum(shift, 0)
    contigs = np.searchsorted(genome.contig_starts, hits.starts[hit], side="right")
    lowest, highest = genome.contig_starts[contigs - 1], genome.contig_starts[contigs]
    lengths = np.diff(offsets)[reads]
    read_starts = np.where(right, hits.read_starts[hit], outer)
    read_ends = np.where(right, lengths - outer, hits.read_ends[hit])
    near = hits.ends[hit] - hits.read_ends[hit]
    joined = ScoredHits(
        reads=reads,
        strands=hits.strands[hit],
        scores=hits.scores[hit] + gain.astype(np.int32),
        starts=near + read_starts + np.where(right, 0, shift),
        ends=near + read_ends + np.where(right, shift, 0),
        read_starts=read_starts.astype(np.int32),
        read_ends=read_ends.astype(np.int32),
        gapless=np.zeros(len(gaps), bool),
        window_starts=np.maximum(hits.window_starts[hit] + low, lowest),
        window_ends=np.minimum(hits.window_ends[hit] + high, highest),
        offsets=offsets_of(reads, n_reads),
    )
    return merge(hits, joined)


@on_timeline("search parts of split reads")
def with_aligned_parts(
    index: FMIndex,
    genome: Genome,
    codes: np.ndarray,
    offsets: np.ndarray,
    hits: ScoredHits,
    unlocated: np.ndarray,
    spans: np.ndarray,
    parameters: MappingParameters,
) -> ScoredHits:
    """Return the hits, and those of the aligned parts of split reads, searched as separate reads;
    write `unlocated` and `spans` of these parts.

    Only reads with unlocated hits take part. The parameters, and `spans`, are those of
    `with_split_reads`.
    """
    listed = np.empty((len(offsets) - 1, 3), np.int64)
    n = _list_aligned(hits, offsets, unlocated, least_part(parameters), listed)
    if not n:
        return hits
    parts = _as_reads(codes, offsets, listed[:n])
    found = find_candidates(
        index, parts.codes, parts.offsets, np.arange(n), parameters.first, parameters
    )
    both = both_strands(parts.codes, parts.offsets)
    more, left, _ = score_reads(
        index, genome, both, parts.codes, parts.offsets, found, _with_low_scores(parameters)
    )
    unlocated[parts.reads] = left
    spans[parts.reads] = listed[:n, 1:]
    return merge(hits, _of_reads(more, parts, offsets))


@on_timeline("search clipped ends")
def with_clipped_ends(
    index: FMIndex,
    genome: Genome,
    codes: np.ndarray,
    offsets: np.ndarray,
    hits: ScoredHits,
    parameters: MappingParameters,
) -> ScoredHits:
    """Return the hits, and those of the clipped ends of the best hits, searched as separate reads.

    The parameters are those of `with_split_reads`.
    """
    listed = np.empty((2 * (len(offsets) - 1), 3), np.int64)
    least = least_part(parameters)
    n = 0 if parameters.mode == END_TO_END else _list_clipped(hits, offsets, least, listed)
    if not n:
        return hits
    parts = _as_reads(codes, offsets, listed[:n])
    found = find_candidates(
        index, parts.codes, parts.offsets, np.arange(n), parameters.part, parameters
    )
    both = both_strands(parts.codes, parts.offsets)
    more = extend(genome, both, parts.offsets, found, _with_low_scores(parameters))
    return merge(hits, _of_reads(more, parts, offsets))


class _Parts(NamedTuple):
    """Parts of reads as separate reads: their codes, the reads, and where they begin and end."""

    codes: np.ndarray
    offsets: np.ndarray
    reads: np.ndarray
    begins: np.ndarray
    ends: np.ndarray


def _as_reads(codes: np.ndarray, offsets: np.ndarray, listed: np.ndarray) -> _Parts:
    """Cut out the parts listed as (read, begin, end)."""
    reads, begins, ends = listed.T
    part_offsets = np.concatenate([[0], np.cumsum(ends - begins)])
    part_codes = joined_stretches(codes, offsets[reads] + begins, part_offsets)
    return _Parts(part_codes, part_offsets, reads, begins, ends)


def _of_reads(more: ScoredHits, parts: _Parts, offsets: np.ndarray) -> ScoredHits:
    """Return hits of parts as hits of their reads."""
    part = more.reads
    reads = parts.reads[part]
    ends = np.diff(offsets)[reads] - parts.ends[part]
    before = np.where(more.strands == 0, parts.begins[part], ends).astype(np.int32)
    return more._replace(
        reads=reads.astype(np.int32),
        read_starts=more.read_starts + before,
        read_ends=more.read_ends + before,
        offsets=offsets_of(reads, len(offsets) - 1),
    )


def _with_low_scores(parameters: MappingParameters) -> MappingParameters:
    """Return parameters for parts that keep hits with too low scores for a record, as rivals."""
    return replace(parameters, least_score=parameters.least_mate_score)


def least_part(parameters: MappingParameters) -> int:
    """Return the number of matching bases that reach the minimum score."""
    return -(-parameters.least_score // parameters.match)


@compiled(inline="always")
def longest_clip(read_start, read_end, length):
    """Return the length of the longer clipped end of a hit; both engines use it."""
    return max(int64(read_start), length - read_end)


@compiled(inline="always")
def clips_part(clipped, least):
    """Return whether `clipped` bases are searched separately; both engines use it."""
    return clipped + MICROHOMOLOGY >= least


@compiled(inline="always")
def gains_by_gap(score, clipped, best, gap, shortest_gap, match):
    """Return whether a hit with its clipped end and a gap could score more than the best hit.

    An end of fewer than `gap` bases gains nothing. Both engines use it.
    """
    return clipped >= gap and score + match * clipped - shortest_gap > best


@compiled(counted=False)
def _list_hits(hits, offsets, costs, least, rows):
    """List all hits of the reads that either step may change.

    In these reads the best hit clips an end that is searched, or one of the best hits would score
    more than all others with its clipped end and a gap.
    """
    gap, shortest_gap = least_clipped(costs), costs.gap_open + costs.gap_extend
    n = 0
    for read in range(offsets.size - 1):
        first, last = hits.offsets[read], hits.offsets[read + 1]
        if first == last:
            continue
        length = offsets[read + 1] - offsets[read]
        best = hits.scores[first]
        clipped = longest_clip(hits.read_starts[first], hits.read_ends[first], length)
        may_change = clips_part(clipped, least)
        if last - first > 1 and best + costs.dearest < costs.match * length:
            for hit in range(first, min(last, first + MOST_HITS)):
                clipped = longest_clip(hits.read_starts[hit], hits.read_ends[hit], length)
                may_change |= gains_by_gap(
                    hits.scores[hit], clipped, best, gap, shortest_gap, costs.match
                )
        if may_change:
            for row in range(first, last):
                rows[n] = row
                n += 1
    return n


@compiled(counted=False)
def _list_aligned(hits, offsets, unlocated, least, parts):
    """List (read, begin, end) of the parts that the best hits align, if their reads have unlocated
    hits and a clipped end that is searched; return their number.
    """
    n = 0
    for read in range(offsets.size - 1):
        i = hits.offsets[read]
        if i == hits.offsets[read + 1] or not unlocated[read]:
            continue
        length = offsets[read + 1] - offsets[read]
        if not clips_part(longest_clip(hits.read_starts[i], hits.read_ends[i], length), least):
            continue
        parts[n, 0] = read
        parts[n, 1], parts[n, 2] = read_span(hits, i, length)
        n += 1
    return n


@compiled(counted=False)
def _list_clipped(hits, offsets, least, parts):
    """List (read, begin, end) of the ends that the best hits clip, with `MICROHOMOLOGY` bases more.

    Each has `least` bases or more.
    """
    n = 0
    for read in range(offsets.size - 1):
        i = hits.offsets[read]
        if i == hits.offsets[read + 1]:
            continue
        length = offsets[read + 1] - offsets[read]
        begin, end = read_span(hits, i, length)
        begin, end = begin + MICROHOMOLOGY, end - MICROHOMOLOGY
        if least <= begin < length:
            parts[n, 0], parts[n, 1], parts[n, 2] = read, 0, begin
            n += 1
        if least <= length - end < length:
            parts[n, 0], parts[n, 1], parts[n, 2] = read, end, length
            n += 1
    return n


@compiled(counted=False)
def _find_gaps(genome, both, offsets, hits, costs, space, gaps):
    """Write hit, right, shift, outer and gain of every hit that gains by a gap at an end of it."""
    blocks, contig_starts = genome.blocks, genome.contig_starts
    least, shortest = least_clipped(costs), costs.gap_open + costs.gap_extend
    n = 0
    for read in range(offsets.size - 1):
        first, last = hits.offsets[read], hits.offsets[read + 1]
        length = offsets[read + 1] - offsets[read]
        # A single hit needs no score to be the primary one: the final alignment has the gap.
        if last - first < 2 or hits.scores[first] + costs.dearest >= costs.match * length:
            continue
        for hit in range(first, min(last, first + MOST_HITS)):
            begin, end = int64(hits.read_starts[hit]), int64(hits.read_ends[hit])
            clipped = max(begin, length - end)
            if not hits.gapless[hit] or clipped < least:
                continue
            # With all of its clipped end it would not be better than the best hit.
            if hits.scores[hit] + costs.match * clipped - shortest <= hits.scores[first]:
                continue
            base = offsets[read] + (both.size // 2 if hits.strands[hit] else 0)
            start = hits.starts[hit]
            read_there = on_diagonal(contig_starts, start, base, length, start - begin)
            gaps[n, 4] = 0
            for right in (False, True):
                clipped = length - end if right else begin
                if clipped < least:
                    continue
                shift, _, outer, gain = best_gap(
                    blocks, both, read_there, right, clipped, end - begin, costs, space
                )
                if gain > gaps[n, 4]:
                    gaps[n, 0], gaps[n, 1], gaps[n, 2] = hit, right, shift
                    gaps[n, 3], gaps[n, 4] = outer, gain
            n += gaps[n, 4] > 0
    return n
