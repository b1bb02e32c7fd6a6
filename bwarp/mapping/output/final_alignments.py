"""The final alignment of every chosen hit: where it begins, and its CIGAR.

The penalty for a clipped end is a bonus for not clipping it: read and window get sentinels at both
ends, and the read's score that much against anything.

    window     |ACGTACGTACGTAC|        | in the window matches no base
    read          >GTACCTACG<          > and < score `clip` against any base, | included

The best local alignment with sentinels has the best clip-penalised score. Where clipping and
reaching the end score the same, the end is clipped, as bwa does.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numba
import numpy as np

from bwarp.alignment.pairs import MATCH, Alignments, PairBatch, Sequences
from bwarp.alignment.pairwise.pairs_cpu import pair_alignments as pair_alignments_cpu
from bwarp.alignment.scoring import FITTING, LOCAL, MATRIX_SCORE, Mode, Scoring
from bwarp.io.put_text import put_bytes
from bwarp.mapping.extension.extension_cpu import (
    Genome,
    scoring_of,
    window_sequences,
)
from bwarp.mapping.extension.scored_hits_cpu import ScoredHits
from bwarp.mapping.parameters import END_TO_END, MappingParameters
from bwarp.mapping.reads.base_bits_cpu import differing, prefetch_bases
from bwarp.runtime.simd import population_count
from bwarp.runtime.timeline import on_timeline
from bwarp.runtime.uncounted import uncounted
from bwarp.sequence import AMBIGUOUS, LETTERS

__all__ = ["MappedReads", "align_hits", "gapless_alignments"]

#: A gap this near to an end may leave no seed beyond it.
_END = 16

#: How many alignments ahead the genome is prefetched.
_AHEAD = 12

_READ_SENTINEL, _WINDOW_SENTINEL = len(LETTERS), len(LETTERS) + 1


class MappedReads(NamedTuple):
    """An alignment a row, of a read; rows without one have position -1 and no CIGAR.

    Attributes
    ----------
    positions : ndarray, shape=(n,), dtype=int64
        Genome position of the first aligned base.
    strands : ndarray, shape=(n,), dtype=uint8
    read_starts, read_ends : ndarray, shape=(n,), dtype=int32
        The aligned bases of the read on its strand; the others are clipped.
    scores : ndarray, shape=(n,), dtype=int32
    cigar_offsets : ndarray, shape=(n + 1,), dtype=int64
    cigar : ndarray, dtype=uint32
        M, I and D of the aligned bases, ``length << 4 | operation``.
    """

    positions: np.ndarray
    strands: np.ndarray
    read_starts: np.ndarray
    read_ends: np.ndarray
    scores: np.ndarray
    cigar_offsets: np.ndarray
    cigar: np.ndarray


@on_timeline("align")
def align_hits(
    genome: Genome,
    both: np.ndarray,
    offsets: np.ndarray,
    hits: ScoredHits,
    selected: np.ndarray,
    parameters: MappingParameters,
    pair_alignments: Callable[[PairBatch, Scoring, Mode, int], Alignments] = pair_alignments_cpu,
    threads: int = 1,
) -> MappedReads:
    """Align reads at their chosen hits.

    Parameters
    ----------
    selected : ndarray, shape=(n,), dtype=int64
        The hit of every row; -1 for none.
    pair_alignments : callable
        That of the CPU's engine or of the GPU's.
    """
    mapped = selected >= 0
    hit = selected[mapped]
    positions = np.full(selected.size, -1)
    strands, scores = np.zeros(selected.size, np.uint8), np.zeros(selected.size, np.int32)
    read_starts, read_ends = scores.copy(), scores.copy()
    positions[mapped], strands[mapped] = hits.starts[hit], hits.strands[hit]
    read_starts[mapped], read_ends[mapped] = hits.read_starts[hit], hits.read_ends[hit]
    scores[mapped] = hits.scores[hit]
    gapped = np.flatnonzero(mapped)[~hits.gapless[hit]]
    gapless = np.flatnonzero(mapped)[hits.gapless[hit]]
    if gapless.size:
        shows_gap = _gaps_near_ends(
            genome.blocks, both, offsets, hits.reads[selected[gapless]], strands[gapless],
            positions[gapless], read_starts[gapless], read_ends[gapless], parameters.match,
            parameters.mismatch, parameters.gap_open + parameters.gap_extend, parameters.clip,
        )  # fmt: skip
        gapped = np.sort(np.concatenate([gapped, gapless[shows_gap]]))
    n_operations = mapped.astype(np.int64)
    if gapped.size:
        found, ends_on = _align_with_gaps(
            genome, both, offsets, hits, selected[gapped], parameters, pair_alignments, threads
        )
        counts = np.diff(found.cigar_offsets)
        here = ~_is_elsewhere(hits, selected[gapped], found, ends_on, parameters.largest_gap)
        gapped, counts, operations = (
            gapped[here],
            counts[here],
            found.cigar[np.repeat(here, counts)],
        )
        positions[gapped], scores[gapped] = found.positions[here], found.scores[here]
        read_starts[gapped], read_ends[gapped] = found.read_starts[here], found.read_ends[here]
        n_operations[gapped] = counts
    cigar_offsets = np.concatenate([[0], np.cumsum(n_operations)])
    cigar = np.zeros(cigar_offsets[-1], np.uint32)
    mapped[gapped] = False
    cigar[cigar_offsets[:-1][mapped]] = (read_ends - read_starts)[mapped] << 4 | MATCH
    if gapped.size:
        shifts = np.repeat(cigar_offsets[gapped] - (np.cumsum(counts) - counts), counts)
        cigar[shifts + np.arange(operations.size)] = operations
    return MappedReads(positions, strands, read_starts, read_ends, scores, cigar_offsets, cigar)


def gapless_alignments(hits: ScoredHits, rows: np.ndarray) -> MappedReads:
    """Gapless hits as they are."""
    lengths = (hits.ends - hits.starts)[rows]
    return MappedReads(
        hits.starts[rows], hits.strands[rows], hits.read_starts[rows], hits.read_ends[rows],
        hits.scores[rows], np.arange(rows.size + 1), (lengths << 4 | MATCH).astype(np.uint32),
    )  # fmt: skip


@numba.njit(cache=True, nogil=True)
def _gaps_near_ends(
    blocks, both, offsets, reads, strands, positions, read_starts, read_ends, match, mismatch, gap,
    clip,
):  # fmt: skip
    """Whether a short gap may improve a stretch of one diagonal near one of its ends.

    It may where it saves clipped bases worth more than it costs, or mismatches: enough of them
    within `_END` bases of an end. Elsewhere the seeds on both sides show a gap.
    """
    blocks, both = uncounted((blocks, both))
    found = np.zeros(reads.size, np.bool_)
    for i in range(reads.size):
        if i + _AHEAD < reads.size:
            prefetch_bases(blocks, positions[i + _AHEAD])
        length = offsets[reads[i] + 1] - offsets[reads[i]]
        base = offsets[reads[i]] + (both.size // 2 if strands[i] else 0)
        begin, end = np.int64(read_starts[i]), np.int64(read_ends[i])
        if max(begin, length - end) * match + clip > gap:
            found[i] = True
            continue
        n = min(_END, end - begin)
        last = end - n
        mismatches = max(
            population_count(differing(blocks, positions[i], both, base + begin, n)),
            population_count(differing(blocks, positions[i] + last - begin, both, base + last, n)),
        )
        found[i] = np.int64(mismatches) * (match - mismatch) > gap
    return found


@cache
def _scoring_with_sentinels(parameters: MappingParameters) -> Scoring:
    plain = scoring_of(parameters)
    matrix = np.full((len(LETTERS) + 2,) * 2, -MATRIX_SCORE, np.int16)
    matrix[:_READ_SENTINEL, :_READ_SENTINEL] = plain.matrix
    matrix[_READ_SENTINEL] = parameters.clip
    return Scoring(
        LETTERS + b">|", plain.code_of_byte, matrix, plain.gap_open, plain.gap_extend, AMBIGUOUS
    )


def _align_with_gaps(
    genome, both, offsets, hits, hit, parameters, pair_alignments, threads
) -> tuple[MappedReads, np.ndarray]:
    """The alignments, and the diagonal on which each ends."""
    strands = hits.strands[hit]
    window_starts, window_ends = _windows(genome, offsets, hits, hit, parameters.largest_gap)
    queries, windows = window_sequences(
        genome, both, offsets, hits.reads[hit], strands, window_starts, window_ends
    )
    if parameters.mode == END_TO_END:
        pairs, scoring = PairBatch(queries, windows), scoring_of(parameters)
        found = pair_alignments(pairs, scoring, FITTING, threads)
        before, at_start = 0, np.zeros(hit.size, bool)
        at_end = at_start
    else:
        queries = _with_sentinels(queries, _READ_SENTINEL)
        pairs = PairBatch(queries, _with_sentinels(windows, _WINDOW_SENTINEL))
        found = pair_alignments(pairs, _scoring_with_sentinels(parameters), LOCAL, threads)
        before, at_start = 1, found.query_starts == 0
        at_end = found.query_ends == queries.lengths
    cigar_offsets, cigar = _plain_cigars(found.cigar_offsets, found.cigar, at_start, at_end)
    ends_on = window_starts + found.reference_ends - found.query_ends
    aligned = MappedReads(
        window_starts + found.reference_starts - before + at_start,
        strands,
        found.query_starts - before + at_start,
        found.query_ends - before - at_end,
        found.scores
        - parameters.clip * (at_start.astype(np.int32) + at_end)
        + parameters.gap_extend * _bases_beyond(cigar_offsets, cigar, parameters.long_gap),
        cigar_offsets,
        cigar,
    )
    return aligned, ends_on


def _windows(genome, offsets, hits, hit, largest_gap) -> tuple[np.ndarray, np.ndarray]:
    """Where the windows of hits begin and end: for long reads a tenth of the read more on both
    sides, for there the gaps of one may add up to more than hits are scored with.
    """
    wider = np.maximum(np.diff(offsets)[hits.reads[hit]] // 10 - largest_gap, 0)
    starts, ends = hits.window_starts[hit], hits.window_ends[hit]
    contigs = np.searchsorted(genome.contig_starts, starts, side="right")
    return (
        np.maximum(starts - wider, genome.contig_starts[contigs - 1]),
        np.minimum(ends + wider, genome.contig_starts[contigs]),
    )


def _is_elsewhere(hits, hit, found, ends_on, largest_gap) -> np.ndarray:
    """Where a window gave another part of a split read, or another copy of a tandem repeat, than
    the stretch of the hit, which is known.
    """
    starts, ends = hits.read_starts[hit], hits.read_ends[hit]
    shared = np.minimum(ends, found.read_ends) - np.maximum(starts, found.read_starts)
    away = np.abs(ends_on - (hits.ends[hit] - ends)) > largest_gap
    return hits.gapless[hit] & (away | (2 * shared < ends - starts))


def _with_sentinels(sequences: Sequences, sentinel: int) -> Sequences:
    """Copies of the sequences with a code before and one after each."""
    lengths = sequences.lengths + np.int32(2)
    ends = np.cumsum(lengths, dtype=np.int64)
    starts = ends - lengths
    codes = np.full(ends[-1], sentinel, np.uint8)
    _copy_inside(sequences.codes, sequences.starts, sequences.lengths, starts, codes)
    return Sequences(codes, starts, lengths)


@numba.njit(cache=True, nogil=True)
def _copy_inside(source, starts, lengths, out_starts, out):
    for i in range(starts.size):
        put_bytes(out, out_starts[i] + 1, source, starts[i], starts[i] + lengths[i])


@numba.njit(cache=True, nogil=True)
def _bases_beyond(offsets, cigar, long_gap):
    """Bases of gaps beyond the length up to which they cost: the aligner counts all."""
    beyond = np.zeros(offsets.size - 1, np.int32)
    for row in range(offsets.size - 1):
        for at in range(offsets[row], offsets[row + 1]):
            if cigar[at] & 15 != MATCH:
                beyond[row] += max(np.int64(cigar[at] >> 4) - long_gap, 0)
    return beyond


@numba.njit(cache=True, nogil=True)
def _plain_cigars(offsets, cigar, at_start, at_end):
    """CIGARs without the sentinels, = and X joined to M."""
    out_offsets = np.zeros(offsets.size, np.int64)
    out = np.empty(cigar.size, np.uint32)
    used = 0
    for i in range(offsets.size - 1):
        last = np.uint32(255)
        for at in range(offsets[i], offsets[i + 1]):
            operation, length = cigar[at] & np.uint32(15), cigar[at] >> np.uint32(4)
            length -= np.uint32(at == offsets[i] and at_start[i])
            length -= np.uint32(at == offsets[i + 1] - 1 and at_end[i])
            if length == 0:
                continue
            operation = np.uint32(MATCH) if operation > 6 else operation
            if operation != last:
                out[used] = operation
                used += 1
            out[used - 1] += length << np.uint32(4)
            last = operation
        out_offsets[i + 1] = used
    return out_offsets, out[:used].copy()
