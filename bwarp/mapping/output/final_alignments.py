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
from bwarp.mapping.output.end_gaps import (
    end_costs,
    gap_may_gain,
    loses_more_than_a_gap,
    two_gaps_may_gain,
)
from bwarp.mapping.parameters import END_TO_END, MappingParameters
from bwarp.mapping.reads.base_bits_cpu import prefetch_bases
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import prefetch
from bwarp.runtime.timeline import on_timeline
from bwarp.runtime.uncounted import uncounted
from bwarp.sequence import AMBIGUOUS, LETTERS

__all__ = [
    "NOTHING",
    "READ_SENTINEL",
    "WINDOW_SENTINEL",
    "MappedReads",
    "align_hits",
    "gapless_alignments",
    "in_genome",
    "is_another_part",
    "scoring_with_sentinels",
    "window_of",
]

#: How many alignments ahead the genome is prefetched.
_AHEAD = 12

#: The codes of `>` and `<`, and of `|`.
READ_SENTINEL, WINDOW_SENTINEL = len(LETTERS), len(LETTERS) + 1


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


#: No alignments, of the types that `in_genome` gives.
NOTHING = MappedReads(
    np.empty(0, np.int64), np.empty(0, np.uint8), *np.empty((3, 0), np.int32),
    np.zeros(1, np.int64), np.empty(0, np.uint32),
)  # fmt: skip


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
    n = selected.size
    mapped = MappedReads(
        np.full(n, -1), np.zeros(n, np.uint8), *np.zeros((3, n), np.int32),
        np.zeros(n + 1, np.int64), np.empty(0, np.uint32),
    )  # fmt: skip
    _as_scored(hits, selected, mapped)
    rows = _rows_with_gaps(genome, both, offsets, hits, selected, end_costs(parameters))
    found, ends_on = NOTHING, rows
    if rows.size:
        found, ends_on = _align_with_gaps(
            genome, both, offsets, hits, selected[rows], parameters, pair_alignments, threads
        )
    cigar = _take_found(hits, selected, rows, found, ends_on, parameters.largest_gap, mapped)
    return mapped._replace(cigar=cigar)


def gapless_alignments(hits: ScoredHits, rows: np.ndarray) -> MappedReads:
    """Gapless hits as they are."""
    lengths = (hits.ends - hits.starts)[rows]
    return MappedReads(
        hits.starts[rows], hits.strands[rows], hits.read_starts[rows], hits.read_ends[rows],
        hits.scores[rows], np.arange(rows.size + 1), (lengths << 4 | MATCH).astype(np.uint32),
    )  # fmt: skip


@compiled
def _as_scored(hits, selected, mapped):
    """Rows as their hits were scored, without CIGARs."""
    hits, mapped = uncounted((hits, mapped))
    for row in range(selected.size):
        hit = selected[row]
        if hit >= 0:
            mapped.positions[row], mapped.strands[row] = hits.starts[hit], hits.strands[hit]
            mapped.read_starts[row] = hits.read_starts[hit]
            mapped.read_ends[row] = hits.read_ends[hit]
            mapped.scores[row] = hits.scores[hit]


@compiled
def _rows_with_gaps(genome, both, offsets, hits, selected, costs):
    """The rows whose alignments have gaps, or may have near an end."""
    genome, both, hits = uncounted((genome, both, hits))
    blocks, contig_starts = genome.blocks, genome.contig_starts
    rows = np.empty(selected.size, np.int64)
    n_losing = _rows_that_lose(offsets, hits, selected, costs, rows)
    n = 0
    for i in range(n_losing):
        if i + _AHEAD < n_losing:
            hit = selected[rows[i + _AHEAD]]
            prefetch_bases(blocks, hits.starts[hit])
            first = offsets[hits.reads[hit]] + (both.size // 2 if hits.strands[hit] else 0)
            for line in range(0, 192, 64):
                prefetch(both, first + line)
        hit = selected[rows[i]]
        if hits.gapless[hit]:
            first = offsets[hits.reads[hit]]
            length = offsets[hits.reads[hit] + 1] - first
            first += both.size // 2 if hits.strands[hit] else 0
            begin, end = np.int64(hits.read_starts[hit]), np.int64(hits.read_ends[hit])
            contig = np.searchsorted(contig_starts, hits.starts[hit], side="right")
            clipped = max(begin, length - end)
            if not two_gaps_may_gain(clipped, costs) and not gap_may_gain(
                blocks, both, first, length, hits.starts[hit] - begin, begin, end,
                contig_starts[contig - 1], contig_starts[contig], costs,
            ):  # fmt: skip
                continue
        rows[n] = rows[i]
        n += 1
    return rows[:n].copy()


@compiled(inline="always")
def _rows_that_lose(offsets, hits, selected, costs, rows):
    """List the rows with gaps, and those whose score is lower than that of matches by more than a
    gap costs; returns how many there are. Without branches: about half of the rows are."""
    n = 0
    for row in range(selected.size if hits.reads.size else 0):
        hit = max(selected[row], np.int64(0))
        length = offsets[hits.reads[hit] + 1] - offsets[hits.reads[hit]]
        loses = loses_more_than_a_gap(
            hits.scores[hit], length, hits.read_starts[hit], hits.read_ends[hit], costs
        )
        rows[n] = row
        n += selected[row] >= 0 and (not hits.gapless[hit] or loses)
    return n


@compiled(inline="always")
def is_another_part(gapless, start, end, on, found_start, found_end, found_on, largest_gap):
    """Whether a window gave another part of a split read, or another copy of a tandem repeat, than
    the stretch of a gapless hit: bases `start` to `end` of the read, which ends on diagonal `on`.
    Both engines use it."""
    shared = min(end, found_end) - max(start, found_start)
    is_away = abs(found_on - on) > largest_gap
    return gapless and (is_away or 2 * shared < end - start)


@compiled
def _take_found(hits, selected, rows, found, ends_on, largest_gap, mapped):
    """Give rows the alignments found for them, and all rows their CIGARs, which are returned.

    Where that is another part than the stretch of the hit, which is known, the row stays as it is.
    """
    hits, found, mapped = uncounted((hits, found, mapped))
    is_taken = np.zeros(rows.size, np.bool_)
    n_operations = np.int64(0)
    for row in range(selected.size):
        n_operations += selected[row] >= 0
    for i in range(rows.size):
        hit = selected[rows[i]]
        start, end = np.int64(hits.read_starts[hit]), np.int64(hits.read_ends[hit])
        found_start, found_end = np.int64(found.read_starts[i]), np.int64(found.read_ends[i])
        is_taken[i] = not is_another_part(
            hits.gapless[hit], start, end, hits.ends[hit] - end, found_start, found_end,
            ends_on[i], largest_gap,
        )  # fmt: skip
        if is_taken[i]:
            n_operations += found.cigar_offsets[i + 1] - found.cigar_offsets[i] - 1
    cigar = np.empty(n_operations, np.uint32)
    used, i = np.int64(0), 0
    for row in range(selected.size):
        taken = i < rows.size and rows[i] == row and is_taken[i]
        if taken:
            mapped.positions[row], mapped.scores[row] = found.positions[i], found.scores[i]
            mapped.read_starts[row] = found.read_starts[i]
            mapped.read_ends[row] = found.read_ends[i]
            for at in range(found.cigar_offsets[i], found.cigar_offsets[i + 1]):
                cigar[used] = found.cigar[at]
                used += 1
        elif selected[row] >= 0:
            length = np.int64(mapped.read_ends[row]) - np.int64(mapped.read_starts[row])
            cigar[used] = np.uint32(length << 4 | MATCH)
            used += 1
        i += i < rows.size and rows[i] == row
        mapped.cigar_offsets[row + 1] = used
    return cigar


@cache
def scoring_with_sentinels(parameters: MappingParameters) -> Scoring:
    plain = scoring_of(parameters)
    matrix = np.full((len(LETTERS) + 2,) * 2, -MATRIX_SCORE, np.int16)
    matrix[:READ_SENTINEL, :READ_SENTINEL] = plain.matrix
    matrix[READ_SENTINEL] = parameters.clip
    return Scoring(
        LETTERS + b">|", plain.code_of_byte, matrix, plain.gap_open, plain.gap_extend, AMBIGUOUS
    )


def _align_with_gaps(
    genome, both, offsets, hits, hit, parameters, pair_alignments, threads
) -> tuple[MappedReads, np.ndarray]:
    """The alignments, and the diagonal on which each ends."""
    strands = hits.strands[hit]
    window_starts, window_ends = _windows(
        genome.contig_starts, offsets, hits, hit, parameters.largest_gap
    )
    queries, windows = window_sequences(
        genome, both, offsets, hits.reads[hit], strands, window_starts, window_ends
    )
    if parameters.mode == END_TO_END:
        pairs, scoring, mode = PairBatch(queries, windows), scoring_of(parameters), FITTING
    else:
        queries = _with_sentinels(queries, READ_SENTINEL)
        pairs = PairBatch(queries, _with_sentinels(windows, WINDOW_SENTINEL))
        scoring, mode = scoring_with_sentinels(parameters), LOCAL
    found = pair_alignments(pairs, scoring, mode, threads)
    return in_genome(found, strands, window_starts, queries.lengths, parameters)


def in_genome(
    found: Alignments,
    strands: np.ndarray,
    window_starts: np.ndarray,
    query_lengths: np.ndarray,
    parameters: MappingParameters,
) -> tuple[MappedReads, np.ndarray]:
    """Alignments of reads with windows as alignments with the genome, and the diagonal on which
    each ends. Of queries and windows with sentinels, but end to end."""
    if parameters.mode == END_TO_END:
        before, at_start = 0, np.zeros(query_lengths.size, bool)
        at_end = at_start
    else:
        before, at_start = 1, found.query_starts == 0
        at_end = found.query_ends == query_lengths
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


@compiled(inline="always")
def window_of(start, end, low, high, length, largest_gap):
    """Where the window of a hit begins and ends: for long reads a tenth of the read more on both
    sides, for there the gaps of one may add up to more than hits are scored with. Both engines use
    it; the contig lies from `low` to `high`.
    """
    wider = max(length // 10 - largest_gap, 0)
    return max(start - wider, low), min(end + wider, high)


@compiled
def _windows(contig_starts, offsets, hits, hit, largest_gap):
    """Where the windows of hits begin and end."""
    hits = uncounted(hits)
    starts, ends = np.empty(hit.size, np.int64), np.empty(hit.size, np.int64)
    for i in range(hit.size):
        start, read = hits.window_starts[hit[i]], hits.reads[hit[i]]
        contig = np.searchsorted(contig_starts, start, side="right")
        starts[i], ends[i] = window_of(
            start, hits.window_ends[hit[i]], contig_starts[contig - 1], contig_starts[contig],
            offsets[read + 1] - offsets[read], largest_gap,
        )  # fmt: skip
    return starts, ends


def _with_sentinels(sequences: Sequences, sentinel: int) -> Sequences:
    """Copies of the sequences with a code before and one after each."""
    lengths = sequences.lengths + np.int32(2)
    ends = np.cumsum(lengths, dtype=np.int64)
    starts = ends - lengths
    codes = np.full(ends[-1], sentinel, np.uint8)
    _copy_inside(sequences.codes, sequences.starts, sequences.lengths, starts, codes)
    return Sequences(codes, starts, lengths)


@compiled
def _copy_inside(source, starts, lengths, out_starts, out):
    for i in range(starts.size):
        put_bytes(out, out_starts[i] + 1, source, starts[i], starts[i] + lengths[i])


@compiled
def _bases_beyond(offsets, cigar, long_gap):
    """Bases of gaps beyond the length up to which they cost: the aligner counts all."""
    beyond = np.zeros(offsets.size - 1, np.int32)
    for row in range(offsets.size - 1):
        for at in range(offsets[row], offsets[row + 1]):
            if cigar[at] & 15 != MATCH:
                beyond[row] += max(np.int64(cigar[at] >> 4) - long_gap, 0)
    return beyond


@compiled
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
