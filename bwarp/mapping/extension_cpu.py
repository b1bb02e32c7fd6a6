"""Candidates become scored places: without gaps where that is provably best, else by alignment.

A candidate's main diagonal is added up first. Its best stretch, each end clipped at a price or
reaching the read's own end, is the best alignment of all when it scores at least

    match * read length - gap_open - gap_extend,

because every alignment with a gap pays that much and gains no more. The others are aligned by
dynamic programming in a window around all the candidate's diagonals.
"""

from dataclasses import dataclass

import numba
import numpy as np

from bwarp.alignment.pairs import PairBatch, Sequences
from bwarp.alignment.pairs_cpu import pair_ends
from bwarp.alignment.scheme import LOCAL, Scoring, nucleotide_scoring
from bwarp.mapping.candidates_cpu import Candidates
from bwarp.mapping.parameters import MappingParameters
from bwarp.threads import for_each_range

__all__ = ["Genome", "Places", "both_strands", "extend", "merge", "scoring_of", "window_sequences"]


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


@dataclass(frozen=True)
class Places:
    """Scored places of reads, in the order of reads, best first.

    Attributes
    ----------
    reads : ndarray, shape=(n,), dtype=int32
    strands : ndarray, shape=(n,), dtype=uint8
    scores : ndarray, shape=(n,), dtype=int32
        Of the local alignment, without what clipping costs.
    starts, ends : ndarray, shape=(n,), dtype=int64
        Genome positions; the start of a gapped alignment is not known yet and is where the read
        would begin without its gaps.
    read_starts, read_ends : ndarray, shape=(n,), dtype=int32
        The aligned bases of the read on its strand; the start is 0 where it is not known yet.
    gapless : ndarray, shape=(n,), dtype=bool
        Whether the alignment is a stretch of one diagonal, and so known in full.
    window_starts, window_ends : ndarray, shape=(n,), dtype=int64
        What was or would be aligned with.
    offsets : ndarray, shape=(n_reads + 1,), dtype=int64
    """

    reads: np.ndarray
    strands: np.ndarray
    scores: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    read_starts: np.ndarray
    read_ends: np.ndarray
    gapless: np.ndarray
    window_starts: np.ndarray
    window_ends: np.ndarray
    offsets: np.ndarray


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
) -> Places:
    """Score every candidate; places below the least score are left out."""
    n = len(candidates.reads)
    # score, start, end, read start, read end, sure, window start, window end
    scored = np.zeros((n, 8), np.int64)
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
            parameters.clip,
            parameters.largest_gap,
            scored[start:stop],
        ),
        n,
        threads,
    )
    # Where all seeds share a diagonal, what a gap could add lies between seeds and is short: far
    # below the read's best score it makes neither a choice nor a quality different.
    best = np.zeros(len(candidates.offsets) - 1, np.int64)
    filled = np.flatnonzero(np.diff(candidates.offsets))
    if n:
        best[filled] = np.maximum.reduceat(scored[:, 0], candidates.offsets[filled])
    hopeless = candidates.lowest == candidates.highest
    hopeless &= scored[:, 0] + parameters.hopeless_margin < best[candidates.reads]
    unsure = np.flatnonzero((scored[:, 5] == 0) & ~hopeless)
    scored[hopeless, 5] = 1
    if unsure.size:
        queries, windows = window_sequences(
            genome,
            both,
            offsets,
            candidates.reads[unsure],
            candidates.strands[unsure],
            scored[unsure, 6],
            scored[unsure, 7],
        )
        ends = pair_ends(PairBatch(queries, windows), scoring_of(parameters), LOCAL, threads)
        better = ends.scores > scored[unsure, 0]
        gapped = unsure[better]
        scored[gapped, 0] = ends.scores[better]
        scored[gapped, 2] = scored[gapped, 6] + ends.reference_ends[better]
        scored[gapped, 3] = 0
        scored[gapped, 4] = ends.query_ends[better]
        scored[gapped, 1] = scored[gapped, 2] - scored[gapped, 4]
        scored[unsure, 5] = 1
        scored[gapped, 5] = 0
    return _ranked(
        candidates.offsets, candidates.reads, candidates.strands, scored, parameters.least_score
    )


def merge(places: Places, more: Places) -> Places:
    """The places of both for every read, each once, best first."""
    if len(more.reads) == 0:
        return places
    reads = np.concatenate([places.reads, more.reads])
    order = np.argsort(reads, kind="stable")
    columns = [
        (one.scores, one.starts, one.ends, one.read_starts, one.read_ends, one.gapless,
         one.window_starts, one.window_ends)
        for one in (places, more)
    ]  # fmt: skip
    scored = np.concatenate([np.column_stack(one).astype(np.int64) for one in columns])
    strands = np.concatenate([places.strands, more.strands])
    offsets = places.offsets + more.offsets
    return _ranked(offsets, reads[order], strands[order], scored[order], 0)


def _ranked(offsets, reads, strands, scored, least_score) -> Places:
    kept = np.empty(len(reads), np.int64)
    places = np.zeros(len(offsets), np.int64)
    n_kept = _rank(offsets, strands, scored, least_score, kept, places)
    kept = kept[:n_kept]
    return Places(
        reads=reads[kept],
        strands=strands[kept],
        scores=scored[kept, 0].astype(np.int32),
        starts=scored[kept, 1],
        ends=scored[kept, 2],
        read_starts=scored[kept, 3].astype(np.int32),
        read_ends=scored[kept, 4].astype(np.int32),
        gapless=scored[kept, 5] == 1,
        window_starts=scored[kept, 6],
        window_ends=scored[kept, 7],
        offsets=places,
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
    for read in range(start, stop):
        first, last = offsets[read], offsets[read + 1]
        for i in range(last - first):
            code = codes[last - 1 - i]
            both[codes.size + first + i] = np.uint8(3) - code if code < 4 else code


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
):
    """The best stretch of each main diagonal, whether it is surely best, and the window."""
    for i in range(reads.size):
        first = offsets[reads[i]] + (both.size // 2 if strands[i] else 0)
        length = offsets[reads[i] + 1] - offsets[reads[i]]
        diagonal = diagonals[i]
        # A read that hangs over a contig's end lies in the contig where it scores most.
        contig = max(np.searchsorted(contig_starts, diagonal, side="right") - 1, 0)
        best = np.int64(-(1 << 30))
        best_begin, best_end, best_contig = np.int64(0), np.int64(0), contig
        while contig < contig_starts.size - 1 and contig_starts[contig] < diagonal + length:
            low = max(np.int64(0), contig_starts[contig] - diagonal)
            high = min(length, contig_starts[contig + 1] - diagonal)
            # The sum so far, and the least sum (with its price) at which a stretch may begin.
            total = np.int64(0)
            begin = low
            begin_sum = np.int64(0) if low == 0 else np.int64(clip)
            for at in range(low, high):
                code = both[first + at]
                same = code == genome[diagonal + at] and code < 4
                total += match if same else mismatch
                if total + clip < begin_sum:
                    begin, begin_sum = at + 1, total + clip
                reached = total - begin_sum - (0 if at + 1 == length else clip)
                if reached >= best:
                    best, best_begin, best_end, best_contig = reached, begin, at + 1, contig
            contig += 1
        contig = best_contig
        clips = (best_begin > 0) + (best_end < length)
        scored[i, 0] = max(best + clip * clips, 0)
        scored[i, 1] = diagonal + best_begin
        scored[i, 2] = diagonal + best_end
        scored[i, 3] = best_begin
        scored[i, 4] = best_end
        scored[i, 5] = best >= match * length - gap
        scored[i, 6] = max(lowest[i] - margin, contig_starts[contig])
        scored[i, 7] = min(highest[i] + length + margin, contig_starts[contig + 1])
        if scored[i, 6] >= scored[i, 7]:
            scored[i, 5] = 1
            scored[i, 6] = scored[i, 1]
            scored[i, 7] = scored[i, 2]


@numba.njit(cache=True, nogil=True, inline="always")
def _one_place(start, end, read_start, read_end, start_2, end_2, read_start_2, read_end_2):
    """Whether two alignments of a read on one strand are sights of one: they end on one diagonal,
    as where a window cut one short, or share 95 % of the genome and the read, as bwa says it.
    """
    shared = min(end, end_2) - max(start, start_2)
    if end - read_end == end_2 - read_end_2:
        return shared > 0
    read_shared = min(read_end, read_end_2) - max(read_start, read_start_2)
    return 20 * shared > 19 * min(end - start, end_2 - start_2) and 20 * read_shared > 19 * min(
        read_end - read_start, read_end_2 - read_start_2
    )


@numba.njit(cache=True, nogil=True)
def _rank(offsets, strands, scored, least, kept, places):
    """Order each read's candidates by score, without low ones and second sights of one place."""
    n_kept = 0
    for read in range(offsets.size - 1):
        first = n_kept
        for i in range(offsets[read], offsets[read + 1]):
            if scored[i, 0] < least:
                continue
            same = False
            for j in range(first, n_kept):
                other = kept[j]
                if strands[other] == strands[i] and _one_place(
                    scored[other, 1], scored[other, 2], scored[other, 3], scored[other, 4],
                    scored[i, 1], scored[i, 2], scored[i, 3], scored[i, 4],
                ):  # fmt: skip
                    same = True
                    if scored[i, 0] > scored[other, 0]:
                        kept[j] = i
                    break
            if same:
                continue
            kept[n_kept] = i
            n_kept += 1
        # Insertion sort: few, and nearly in order already.
        for i in range(first + 1, n_kept):
            item = kept[i]
            j = i
            while j > first and scored[kept[j - 1], 0] < scored[item, 0]:
                kept[j] = kept[j - 1]
                j -= 1
            kept[j] = item
        places[read + 1] = n_kept
    return n_kept
