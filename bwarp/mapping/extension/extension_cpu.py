"""Candidates become scored hits: without gaps where none shows, else by alignment.

The best stretch of a candidate's main diagonal is scored first (diagonal.py). Its score stands if

- with its clipped ends penalised it is at least ``match * read length - gap_open - gap_extend``:
  every alignment with a gap pays that much and gains no more; or
- no gap shows: all seeds lie on one diagonal, nothing is clipped, and there are fewer than two
  mismatches in the first and in the last 16 bases. A gap leaves random bases on one side of it,
  which are clipped; or
- it is hopeless: all seeds lie on one diagonal, and it scores `hopeless_margin` less than the
  read's best stretch.

The other candidates are aligned by dynamic programming in a window around all their diagonals. An
alignment replaces the stretch if it scores more than any stretch of the main diagonal, clipped ends
not penalised: only then it has a gap.
"""

import mmap
from functools import cache
from typing import NamedTuple

import numpy as np

from bwarp.alignment.pairs import PairBatch, Sequences
from bwarp.alignment.pairwise.pairs_cpu import pair_ends
from bwarp.alignment.scoring import FITTING, LOCAL, Scoring, nucleotide_scoring
from bwarp.mapping.extension.diagonal import (
    END,
    Sums,
    costs_of,
    first_sums,
    no_stretch,
    pass_end,
    pass_mismatch,
    put_stretch,
)
from bwarp.mapping.extension.scored_hits_cpu import (
    FIELDS,
    GAPLESS,
    READ_START,
    SCORE,
    WINDOW_END,
    WINDOW_START,
    ScoredHits,
    put_row,
    ranked,
)
from bwarp.mapping.parameters import END_TO_END, MappingParameters
from bwarp.mapping.reads.base_bits_cpu import (
    blocks_of_packed,
    copy_bases,
    differing,
    prefetch_bases,
)
from bwarp.mapping.seeds.candidates_cpu import Candidates
from bwarp.reference import Reference, ambiguous_stretches
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import (
    VECTOR_BYTES,
    fill,
    greater,
    leading_zeros,
    load,
    population_count,
    reverse,
    select,
    store,
    subtract,
)
from bwarp.runtime.timeline import on_timeline
from bwarp.runtime.uncounted import uncounted

__all__ = [
    "Genome",
    "both_strands",
    "extend",
    "genome_of",
    "put_gapped",
    "score_diagonals",
    "scoring_of",
    "window_sequences",
]

#: How many candidates ahead the genome is prefetched.
_AHEAD = 12


class Genome(NamedTuple):
    """The bases reads are compared with.

    Attributes
    ----------
    blocks : ndarray, dtype=uint64
        Contigs end to end, in the blocks of base_bits_cpu.
    contig_starts : ndarray, shape=(n_contigs + 1,), dtype=int64
    """

    blocks: np.ndarray
    contig_starts: np.ndarray


@on_timeline("load the genome")
def genome_of(reference: Reference, threads: int = 1) -> Genome:
    """The bases of a reference; the pages of one in a file are let go of."""
    packed, stretches = reference.packed, ambiguous_stretches(reference)
    blocks = blocks_of_packed(packed, reference.n_bases, stretches, threads)
    memory = packed
    while isinstance(memory, np.ndarray):
        memory = memory.base
    if isinstance(memory, mmap.mmap):
        memory.madvise(mmap.MADV_DONTNEED)
    return Genome(blocks, reference.contig_starts)


@cache
def scoring_of(parameters: MappingParameters) -> Scoring:
    return nucleotide_scoring(
        parameters.match, parameters.mismatch, parameters.gap_open, parameters.gap_extend
    )


def both_strands(codes: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """All reads, then all their reverse complements at the same offsets, dtype uint8."""
    both = np.empty(2 * codes.size, np.uint8)
    both[: codes.size] = codes
    _turn(codes, offsets, both)
    return both


@on_timeline("score candidates")
def extend(
    genome: Genome,
    both: np.ndarray,
    offsets: np.ndarray,
    candidates: Candidates,
    parameters: MappingParameters,
) -> ScoredHits:
    """Score every candidate; hits below the least score are left out."""
    whole = parameters.mode == END_TO_END
    n = len(candidates.reads)
    scored = np.empty(FIELDS * n, np.int64)
    raw_scores = np.empty(n, np.int32)
    score_diagonals(genome, both, offsets, candidates, costs_of(parameters), scored, raw_scores)
    unsure = np.empty(n, np.int64)
    unsure = unsure[: _list_unsure(candidates, parameters.hopeless_margin, scored, unsure)]
    if unsure.size:
        rows = scored.reshape(n, FIELDS)[unsure]
        queries, windows = window_sequences(
            genome, both, offsets, candidates.reads[unsure], candidates.strands[unsure],
            rows[:, WINDOW_START], rows[:, WINDOW_END],
        )  # fmt: skip
        pairs, mode = PairBatch(queries, windows), FITTING if whole else LOCAL
        ends = pair_ends(pairs, scoring_of(parameters), mode)
        _take_better(
            unsure, ends.scores, ends.query_ends, ends.reference_ends, raw_scores,
            candidates.lowest, candidates.highest, parameters.largest_gap, whole,
            parameters.match, scored,
        )  # fmt: skip
    return ranked(candidates.offsets, candidates.strands, scored, parameters.least_score)


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
    window_lengths = (window_ends - window_starts).astype(np.int32)
    windows, copied_starts = copy_bases(genome.blocks, window_starts, window_lengths)
    return Sequences(both, starts, lengths), Sequences(windows, copied_starts, window_lengths)


@compiled
def _turn(codes, offsets, both):
    three = fill(np.uint8(3))
    for read in range(offsets.size - 1):
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


@compiled(inline="always")
def _below(n):
    """A mask of the bits below number n, which may be any."""
    if n >= 64:
        return ~np.uint64(0)
    return (np.uint64(1) << np.uint64(max(n, np.int64(0)))) - np.uint64(1)


@compiled(inline="always")
def _lowest(bits):
    """The number of the lowest bit that is set; 64 if none is."""
    return np.int64(population_count(~bits & (bits - np.uint64(1))))


@compiled(inline="always")
def _runs(bits, n):
    """Where more than n bits in a row are set: the lowest of them, and all but the last n."""
    for _ in range(n):
        bits &= bits >> np.uint64(1)
    return bits


@compiled(inline="always")
def _pass_several(sums, end, n, costs):
    """The sums after n more mismatches, up to `end`, with no run of matches before one of them that
    gains more than it costs; the same sums where such a run may still be the highest.

    Sums only fall from mismatch to mismatch, so no stretch that ends here is the best: that which
    ended before the last mismatch scores as much. And a stretch that had better begin after one of
    them had better begin after the last.
    """
    if sums.highest < sums.open + min(costs.match * (end - sums.end - n), -costs.mismatch):
        return sums
    more = costs.match * (end - sums.end - n) + costs.mismatch * n
    total, begin, begin_sum = sums.total + more, sums.begin, sums.begin_sum
    if total + costs.clip <= begin_sum:
        begin, begin_sum = end, total + costs.clip
    return Sums(end, total, begin, begin_sum, max(sums.open + more, np.int64(0)), sums.highest)


@compiled
def score_diagonals(genome, both, offsets, candidates, costs, scored, raw_scores):
    """The row of each candidate, by its main diagonal. The genome is read once, 64 bases a time.

    Beyond its seeds many a candidate is random: of its mismatches, those before the next run of
    matches that counts are passed at once.
    """
    genome, both, candidates = uncounted((genome, both, candidates))
    blocks, contig_starts = genome.blocks, genome.contig_starts
    # So many matches do not outweigh a mismatch.
    short = min(-costs.mismatch // costs.match, np.int64(64))
    reads, diagonals = candidates.reads, candidates.diagonals
    for i in range(reads.size):
        if i + _AHEAD < reads.size:
            prefetch_bases(blocks, diagonals[i + _AHEAD])
        first = offsets[reads[i]] + (both.size // 2 if candidates.strands[i] else 0)
        length = offsets[reads[i] + 1] - offsets[reads[i]]
        diagonal = diagonals[i]
        # A read that hangs over a contig's end lies in the contig where it scores most.
        contig = max(np.searchsorted(contig_starts, diagonal, side="right") - 1, 0)
        best, highest, crowded = no_stretch(contig), np.int64(0), False
        while contig < contig_starts.size - 1 and contig_starts[contig] < diagonal + length:
            low = max(np.int64(0), contig_starts[contig] - diagonal)
            high = min(length, contig_starts[contig + 1] - diagonal)
            sums = first_sums(low, costs.clip, highest)
            at_start = at_end = 0
            for block in range(low, high, 64):
                n = min(np.int64(64), high - block)
                bits = differing(blocks, diagonal + block, both, first + block, n)
                at_start += population_count(bits & _below(END - block))
                at_end += population_count(bits & ~_below(length - END - block))
                # A stretch may end with the last base, whatever it is.
                inner = bits & _below(length - 1 - block)
                long_runs = _runs(~bits & _below(n), short)
                while bits:
                    at = _lowest(bits)
                    bits &= bits - np.uint64(1)
                    sums, best = pass_mismatch(sums, best, block + at, length, contig, costs)
                    passed = inner & bits & _below(_lowest(long_runs & ~_below(at)))
                    if passed:
                        end = block + np.int64(64) - np.int64(leading_zeros(passed))
                        before = sums.end
                        sums = _pass_several(sums, end, population_count(passed), costs)
                        bits &= ~passed if sums.end > before else bits
            highest, best = pass_end(sums, best, high, length, contig, costs)
            crowded = crowded or at_start > 1 or at_end > 1
            contig += 1
        raw_scores[i] = put_stretch(
            scored, FIELDS * i, best, highest, crowded, diagonal, length, candidates.lowest[i],
            candidates.highest[i], contig_starts, costs,
        )  # fmt: skip


@compiled
def _list_unsure(candidates, hopeless_margin, scored, unsure):
    """List the candidates to align with gaps; hopeless ones are not among them."""
    n_unsure = 0
    offsets = candidates.offsets
    for read in range(offsets.size - 1):
        best = np.int64(0)
        for i in range(offsets[read], offsets[read + 1]):
            best = max(best, scored[FIELDS * i + SCORE])
        for i in range(offsets[read], offsets[read + 1]):
            row = FIELDS * i
            if scored[row + GAPLESS]:
                continue
            on_one = candidates.lowest[i] == candidates.highest[i]
            if on_one and scored[row + SCORE] + hopeless_margin < best:
                scored[row + GAPLESS] = 1
            else:
                unsure[n_unsure] = i
                n_unsure += 1
    return n_unsure


@compiled(inline="always")
def put_gapped(
    scored, row, score, query_end, reference_end, lowest, highest, largest_gap, whole, match
):
    """Write an alignment with gaps to its candidate's row; both engines use it.

    Not one that ends on a diagonal far from the candidate's seeds: that is another part of a split
    read, or another copy of a tandem repeat, which the window happens to hold as well.

    Only its end is known. It is taken to begin where it would have lost half of what its bases
    could score, or where the diagonal's stretch begins, for that is a part of it. An alignment from
    end to end begins with the read.
    """
    begin = min(scored[row + READ_START], query_end - 2 * score // match)
    begin = 0 if whole or begin < 0 else begin
    window_start, window_end = scored[row + WINDOW_START], scored[row + WINDOW_END]
    end = window_start + reference_end
    if not lowest - largest_gap <= end - query_end <= highest + largest_gap:
        return
    put_row(
        scored, row, score, end - query_end + begin, end, begin, query_end, 0, window_start,
        window_end,
    )  # fmt: skip


@compiled
def _take_better(
    unsure, scores, query_ends, reference_ends, raw_scores, lowest, highest, largest_gap, whole,
    match, scored,
):  # fmt: skip
    """Replace stretches by alignments that score more than any stretch: these have a gap."""
    for j in range(unsure.size):
        row = FIELDS * unsure[j]
        scored[row + GAPLESS] = 1
        if scores[j] > raw_scores[unsure[j]]:
            put_gapped(
                scored, row, scores[j], query_ends[j], reference_ends[j], lowest[unsure[j]],
                highest[unsure[j]], largest_gap, whole, match,
            )  # fmt: skip
