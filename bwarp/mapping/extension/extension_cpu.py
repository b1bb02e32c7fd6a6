"""Candidates become scored places: without gaps where none shows, else by alignment.

A candidate's main diagonal is added up first: its best stretch, each end clipped at a price or
reaching the read's own end (clipped where both score the same; the shorter of equal stretches). It
is what counts when

- it scores, the price paid, at least ``match * read length - gap_open - gap_extend``, because every
  alignment with a gap pays that much and gains no more; or
- no gap shows: all seeds on one diagonal, nothing clipped, and fewer than two mismatches in the
  first and in the last 16 bases. A gap leaves random bases on one side of it, which clip; or
- it is hopeless: all seeds on one diagonal, and `hopeless_margin` below the best stretch of all.

The others are aligned by dynamic programming in a window around all the candidate's diagonals. An
alignment takes the stretch's place where it scores more than any stretch of the main diagonal,
clips not paid: only then it has a gap.
"""

from dataclasses import dataclass

import numba
import numpy as np

from bwarp.alignment.pairs import PairBatch, Sequences
from bwarp.alignment.pairwise.pairs_cpu import pair_ends
from bwarp.alignment.scoring import FITTING, LOCAL, Scoring, nucleotide_scoring
from bwarp.mapping.extension.scored_hits_cpu import FIELDS, ScoredHits, ranked
from bwarp.mapping.parameters import END_TO_END, MappingParameters
from bwarp.mapping.seeds.candidates_cpu import Candidates
from bwarp.runtime.simd import (
    VECTOR_BYTES,
    equal,
    fill,
    greater,
    lane_count,
    load,
    mask_bits,
    population_count,
    prefetch,
    reverse,
    select,
    store,
    subtract,
)
from bwarp.runtime.threads import for_each_range

__all__ = [
    "Genome",
    "both_strands",
    "extend",
    "gapped_start",
    "scoring_of",
    "window_sequences",
]

#: So many candidates before its turn, the genome at a candidate is asked for.
_AHEAD = 12

#: A gap this near to a read's end may show as no more than a few mismatches there.
END = 16


#: The price of a clipped end where no end may be clipped.
NEVER_CLIP = 1 << 20


@dataclass(frozen=True)
class Genome:
    """The bases reads are compared with.

    Attributes
    ----------
    codes : ndarray, shape=(n_bases,), dtype=uint8
        Contigs end to end; 4 for ambiguous bases.
    contig_starts : ndarray, shape=(n_contigs + 1,), dtype=int64
    """

    codes: np.ndarray
    contig_starts: np.ndarray


def scoring_of(parameters: MappingParameters) -> Scoring:
    return nucleotide_scoring(
        parameters.match, parameters.mismatch, parameters.gap_open, parameters.gap_extend
    )


def both_strands(codes: np.ndarray, offsets: np.ndarray, threads: int = 1) -> np.ndarray:
    """All reads, then all their reverse complements at the same offsets, dtype uint8."""
    both = np.empty(2 * codes.size, np.uint8)
    both[: codes.size] = codes
    for_each_range(
        lambda start, stop: _turn(codes, offsets, start, stop, both), len(offsets) - 1, threads
    )
    return both


def extend(
    genome: Genome,
    both: np.ndarray,
    offsets: np.ndarray,
    candidates: Candidates,
    parameters: MappingParameters,
    threads: int = 1,
) -> ScoredHits:
    """Score every candidate; places below the least score are left out."""
    whole = parameters.mode == END_TO_END
    n = len(candidates.reads)
    scored = np.empty((n, FIELDS), np.int64)
    raw_scores = np.empty(n, np.int32)
    for_each_range(
        lambda start, stop: _score_diagonals(
            genome.codes,
            genome.contig_starts,
            both,
            offsets,
            candidates.reads[start:stop],
            candidates.strands[start:stop],
            candidates.diagonals[start:stop],
            candidates.lowest[start:stop],
            candidates.highest[start:stop],
            parameters.match,
            parameters.mismatch,
            parameters.gap_open + parameters.gap_extend,
            NEVER_CLIP if whole else parameters.clip,
            parameters.largest_gap,
            scored[start:stop],
            raw_scores[start:stop],
        ),
        n,
        threads,
    )
    unsure = np.empty(n, np.int64)
    n_unsure = _list_unsure(
        candidates.offsets, candidates.lowest, candidates.highest, parameters.hopeless_margin,
        scored, unsure,
    )  # fmt: skip
    unsure = unsure[:n_unsure]
    if n_unsure:
        queries, windows = window_sequences(
            genome,
            both,
            offsets,
            candidates.reads[unsure],
            candidates.strands[unsure],
            scored[unsure, 6],
            scored[unsure, 7],
        )
        pairs, mode = PairBatch(queries, windows), FITTING if whole else LOCAL
        ends = pair_ends(pairs, scoring_of(parameters), mode, threads)
        _take_better(
            unsure, ends.scores, ends.query_ends, ends.reference_ends, raw_scores,
            whole, parameters.match, scored,
        )  # fmt: skip
    return ranked(
        candidates.offsets, candidates.reads, candidates.strands, scored, parameters.least_score
    )


def window_sequences(
    genome: Genome,
    both: np.ndarray,
    offsets: np.ndarray,
    reads: np.ndarray,
    strands: np.ndarray,
    window_starts: np.ndarray,
    window_ends: np.ndarray,
) -> tuple[Sequences, Sequences]:
    """Reads on strands, and windows of the genome, as the two sides of a batch of pairs."""
    starts = offsets[reads] + strands.astype(np.int64) * (both.size // 2)
    lengths = (offsets[reads + 1] - offsets[reads]).astype(np.int32)
    return (
        Sequences(both, starts, lengths),
        Sequences(genome.codes, window_starts, (window_ends - window_starts).astype(np.int32)),
    )


@numba.njit(cache=True, nogil=True)
def _turn(codes, offsets, start, stop, both):
    three = fill(np.uint8(3))
    for read in range(start, stop):
        first, last = offsets[read], offsets[read + 1]
        target = codes.size + first
        end = last
        while end - first >= VECTOR_BYTES:
            end -= VECTOR_BYTES
            part = reverse(load(codes, end))
            store(both, target, select(greater(part, three), part, subtract(three, part)))
            target += VECTOR_BYTES
        for i in range(end - first):
            code = codes[end - 1 - i]
            both[target + i] = np.uint8(3) - code if code < 4 else code


@numba.njit(cache=True, nogil=True, inline="always")
def _differing(genome, at, both, first, n):
    """Which of `n` bases, at most 64, differ or are ambiguous: a bit each, the first the lowest."""
    bits = np.uint64(0)
    if at + 64 <= genome.size and first + 64 <= both.size:
        lanes = lane_count(fill(np.uint8(0)))
        for part in range(0, 64, lanes):
            bases = load(both, first + part)
            different = mask_bits(greater(bases, fill(np.uint8(3))))
            different |= ~mask_bits(equal(bases, load(genome, at + part)))
            bits |= np.uint64(different) << np.uint64(part)
        return bits & (~np.uint64(0) >> np.uint64(64 - n))
    for i in range(n):
        code = both[first + i]
        bits |= np.uint64(code != genome[at + i] or code > 3) << np.uint64(i)
    return bits


@numba.njit(cache=True, nogil=True)
def _score_diagonals(
    genome,
    contig_starts,
    both,
    offsets,
    reads,
    strands,
    diagonals,
    lowest,
    highest,
    match,
    mismatch,
    gap,
    clip,
    margin,
    scored,
    raw_scores,
):
    """The best stretch of each main diagonal, whether to look for gaps, and the window.

    Reads the genome once, 64 bases a time, and works from mismatch to mismatch: a stretch that
    can end, or begin, elsewhere is never better.
    """
    for i in range(reads.size):
        if i + _AHEAD < reads.size:
            for line in range(0, 192, 64):
                prefetch(genome, diagonals[i + _AHEAD] + line)
        first = offsets[reads[i]] + (both.size // 2 if strands[i] else 0)
        length = offsets[reads[i] + 1] - offsets[reads[i]]
        diagonal = diagonals[i]
        # A read that hangs over a contig's end lies in the contig where it scores most.
        contig = max(np.searchsorted(contig_starts, diagonal, side="right") - 1, 0)
        best = np.int64(-(1 << 30))
        best_begin, best_end, best_contig = np.int64(0), np.int64(0), contig
        crowded = False
        highest_sum = np.int64(0)
        while contig < contig_starts.size - 1 and contig_starts[contig] < diagonal + length:
            low = max(np.int64(0), contig_starts[contig] - diagonal)
            high = min(length, contig_starts[contig + 1] - diagonal)
            # The sum before the next mismatch, and the least sum, with its price, at which a
            # stretch may begin.
            total = np.int64(0)
            begin = low
            begin_sum = np.int64(0) if low == 0 else np.int64(clip)
            summed = low
            open_sum = np.int64(0)
            at_start = at_end = 0
            for block in range(low, high, 64):
                n = min(np.int64(64), high - block)
                bits = _differing(genome, diagonal + block, both, first + block, n)
                while bits:
                    at = block + np.int64(population_count((bits & -bits) - np.uint64(1)))
                    bits &= bits - np.uint64(1)
                    at_start += at < END
                    at_end += at >= length - END
                    total += match * (at - summed)
                    open_sum += match * (at - summed)
                    highest_sum = max(highest_sum, open_sum)
                    open_sum = max(open_sum + mismatch, 0)
                    reached = total - begin_sum - clip
                    if at > summed and reached > best:
                        best, best_begin, best_end, best_contig = reached, begin, at, contig
                    total += mismatch
                    summed = at + 1
                    if total + clip <= begin_sum:
                        begin, begin_sum = summed, total + clip
                    reached = total - begin_sum - (0 if summed == length else clip)
                    if reached > best:
                        best, best_begin, best_end, best_contig = reached, begin, summed, contig
            if high > summed:
                total += match * (high - summed)
                highest_sum = max(highest_sum, open_sum + match * (high - summed))
                reached = total - begin_sum - (0 if high == length else clip)
                if reached > best:
                    best, best_begin, best_end, best_contig = reached, begin, high, contig
            crowded = crowded or at_start > 1 or at_end > 1
            contig += 1
        raw_scores[i] = highest_sum
        contig = best_contig
        clips = (best_begin > 0) + (best_end < length)
        scored[i, 0] = max(best + clip * clips, 0)
        if clip == NEVER_CLIP:
            # A read that hangs over a contig's end fits only with gaps, if at all.
            scored[i, 0] = raw_scores[i] = 0 if clips else max(best, 0)
        scored[i, 1] = diagonal + best_begin
        scored[i, 2] = diagonal + best_end
        scored[i, 3] = best_begin
        scored[i, 4] = best_end
        gap_seen = clips > 0 or crowded or lowest[i] < highest[i]
        scored[i, 5] = best >= match * length - gap or not gap_seen
        scored[i, 6] = max(lowest[i] - margin, contig_starts[contig])
        scored[i, 7] = min(highest[i] + length + margin, contig_starts[contig + 1])
        if scored[i, 6] >= scored[i, 7]:
            scored[i, 5] = 1
            scored[i, 6] = scored[i, 1]
            scored[i, 7] = scored[i, 2]


@numba.njit(cache=True, nogil=True)
def _list_unsure(offsets, lowest, highest, hopeless_margin, scored, unsure):
    """List the candidates to align with gaps; those that are hopeless no more count as unsure."""
    n_unsure = 0
    for read in range(offsets.size - 1):
        best = np.int64(0)
        for i in range(offsets[read], offsets[read + 1]):
            best = max(best, scored[i, 0])
        for i in range(offsets[read], offsets[read + 1]):
            if scored[i, 5]:
                continue
            if lowest[i] == highest[i] and scored[i, 0] + hopeless_margin < best:
                scored[i, 5] = 1
            else:
                unsure[n_unsure] = i
                n_unsure += 1
    return n_unsure


@numba.jit
def gapped_start(stretch_start, score, query_end, whole, match):
    """The base of the read that a gapped alignment is taken to begin at: only its end is known.

    That is where it would have lost half of what its bases could score, or where the diagonal's
    stretch begins, for that is a part of it. An alignment from end to end begins with the read.
    """
    begin = min(stretch_start, query_end - 2 * score // match)
    return 0 if whole or begin < 0 else begin


@numba.njit(cache=True, nogil=True)
def _take_better(unsure, scores, query_ends, reference_ends, raw_scores, whole, match, scored):
    """Put alignments in the place of stretches where only a gap scores what they score."""
    for j in range(unsure.size):
        i = unsure[j]
        scored[i, 5] = scores[j] <= raw_scores[i]
        if scores[j] > raw_scores[i]:
            begin = gapped_start(scored[i, 3], scores[j], query_ends[j], whole, match)
            scored[i, 0] = scores[j]
            scored[i, 2] = scored[i, 6] + reference_ends[j]
            scored[i, 3] = begin
            scored[i, 4] = query_ends[j]
            scored[i, 1] = scored[i, 2] - query_ends[j] + begin
