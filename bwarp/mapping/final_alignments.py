"""The final alignment of every selected hit: its start and its CIGAR.

The penalty for a clipped end is applied as a bonus for an unclipped end: read and window get
sentinels at both ends, and the read's sentinels score that bonus against anything.

    window     |ACGTACGTACGTAC|        | in the window matches no base
    read          >GTACCTACG<          > and < score `clip` against any base, | included

The best local alignment with sentinels has the best clip-penalised score. If clipping and reaching
the end score the same, the end is clipped, as in bwa. Clipped ends across long gaps are added last.
"""

from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
from numpy import int64, uint64

from bwarp.alignment.pair_ends_cpu import pair_alignments
from bwarp.alignment.pairs import DELETION, INSERTION, MATCH, Alignments, PairBatch, Sequences
from bwarp.alignment.scoring import FITTING, LOCAL, MATRIX_SCORE, Scoring
from bwarp.io.names import put_bytes
from bwarp.mapping.extension_cpu import (
    NEVER_CLIP,
    Genome,
    best_gap,
    gap_costs,
    least_clipped,
    on_diagonal,
    scoring_of,
    space_for_gaps,
    window_sequences,
)
from bwarp.mapping.parameters import END_TO_END, MappingParameters
from bwarp.mapping.scored_hits_cpu import ScoredHits
from bwarp.reads.base_bits_cpu import bits_at, bits_of_codes, prefetch_bases, shifted, turned
from bwarp.reference import interval_at
from bwarp.runtime.compiled_code import compiled, inner
from bwarp.runtime.simd import population_count, prefetch
from bwarp.runtime.timeline import on_timeline
from bwarp.runtime.uncounted import uncounted
from bwarp.sequence import AMBIGUOUS, LETTERS

# --------------------------------------------------------------------------------------------------
# Check whether gaps may improve a stretch of a diagonal: one near an end, or two inside.
#
# The outer 64 bases of the read are compared with the genome on the diagonal of the stretch, and on
# those near it:
#
#     read        |==========================|~~~~~~~~~|
#     genome      |==========================|  |~~~~~~~~~|
#                             near            gap    far
#
# Bases are counted from the outer end of the read inwards. Outside a split, an alignment with a gap
# lies on the far diagonal, except for inserted bases. It saves the mismatches of the near diagonal
# there, and pays for the gap, for the mismatches of the far diagonal, and for its outermost bases
# if they are better clipped.
#
# Most diagonals are random, and no split gains there: the outermost bases have too many mismatches
# to reach the end, as one population count shows, and too few matches in a row to pay for a gap and
# a clipped end. Every split is evaluated only on the others.
#
# Inside, an insertion and a deletion of the same length leave both ends of the read on one
# diagonal, where seeds find them. The bases between mostly mismatch there, and match on another:
#
#     read        |=============|~~~~~~~~|--|=============|
#     genome      |=============|--|~~~~~~~~|=============|
#                      near         far          near
#
# Every part of the 64 bases from a mismatch that is followed closely by others is compared with all
# diagonals up to the longest gap away.
#
# Both engines use these rules: the functions of the CPU are made here, those of the GPU in
# final_alignments_cuda.


#: Number of bases compared at an end.
_BASES = 64

_ALL = 0xFFFFFFFFFFFFFFFF

#: Mismatches that two gaps avoid follow each other closely: on average, within this many bases.
_CLOSE = 4


class EndCosts(NamedTuple):
    """Scores, with `loss` the difference between a match and a mismatch; the longest gap; and the
    shortest run of matches that scores more than a mismatch costs."""

    match: int
    loss: int
    gap_open: int
    gap_extend: int
    clip: int
    largest_gap: int
    run: int


def end_costs(parameters: MappingParameters) -> EndCosts:
    p = parameters
    return EndCosts(
        p.match, p.match - p.mismatch, p.gap_open, p.gap_extend,
        NEVER_CLIP if p.mode == END_TO_END else p.clip, p.largest_gap, -p.mismatch // p.match + 1,
    )  # fmt: skip


@compiled(inline="always")
def loses_more_than_a_gap(score, length, begin, end, costs):
    """Return whether the score of a stretch of a read is lower than that of matches by more than
    the cost of a gap; without branches."""
    clips = int64(begin > 0) + int64(end < length)
    lost = costs.match * length - score + costs.clip * clips
    return lost > costs.gap_open + costs.gap_extend


@compiled(inline="always")
def two_gaps_may_gain(clipped, costs):
    """Return whether clipped bases may pay for two gaps, which `gap_may_gain` does not check."""
    worth = costs.match * clipped + costs.clip
    return clipped > 0 and worth > 2 * (costs.gap_open + costs.gap_extend)


def end_gap_functions(
    jit: Callable,
    jit_call: Callable,
    bits_at: Callable,
    bits_of_codes: Callable,
    shifted: Callable,
    turned: Callable,
    population_count: Callable,
) -> SimpleNamespace:
    """Return the functions of one engine by name.

    Parameters
    ----------
    jit, jit_call : decorator
        Compile functions to inline, and functions to call.
    bits_at : function of blocks, at
        Return low bits, high bits and ambiguity of 64 bases of the genome.
    bits_of_codes : function of reads, first, n
        Return the same for 64 bases of reads, of which n are valid.
    shifted : function of word, following, shift
        Return 64 bits of two words, from a given bit of the first on.
    turned, population_count : function of uint64
        Reverse the bits; count the set bits.
    """

    @jit
    def outermost(n, right):
        """Return a mask of the n outermost bases."""
        if n <= 0:
            return uint64(0)
        others = uint64(_BASES - n)
        return uint64(uint64(_ALL) << others) if right else uint64(_ALL) >> others

    @jit
    def runs(bits, n):
        """Mark the lowest bits of runs of n set bits."""
        for _ in range(n - 1):
            bits &= bits >> uint64(1)
        return bits

    @jit
    def differing(read, genome, n, right):
        """Return a mask of the n outermost bases that differ; the outermost base is the highest bit
        on the right, the lowest on the left."""
        bits = read[0] ^ genome[0] | read[1] ^ genome[1] | read[2] | genome[2]
        return uint64(bits << uint64(_BASES - n)) if right else bits & outermost(n, right)

    @jit
    def between(bits, following, shift):
        """Return 64 bases from base `shift` (1 to 63) of two stretches of 64."""
        shift = uint64(shift)
        return (
            shifted(bits[0], following[0], shift),
            shifted(bits[1], following[1], shift),
            shifted(bits[2], following[2], shift),
        )

    @jit
    def next_split(outside, inside):
        """Add a mismatch outside the split; return it, the next split, and mismatches inside."""
        at = int64(population_count(~inside & (inside - uint64(1))))
        return outside + 1, at + 1, inside & (inside - uint64(1))

    @jit_call
    def goes_on(near, clipped, costs):
        """Return whether the stretch scores more with clipped bases; if it was found for a part of
        the read, it ends with that part.
        """
        score = int64(0)
        for base in range(clipped - 1, -1, -1):
            score += costs.match - costs.loss * int64(near >> uint64(base) & uint64(1))
            if score > 0:
                return True
        return score + costs.clip > 0

    @jit
    def reaches_end(far, outside, split, inside, inserted, right, price, costs):
        """Return whether a split from here on saves more than it costs, without clipping."""
        saved, most = outside, outside + int64(population_count(inside))
        lost = int64(population_count(far & outermost(split - inserted, right)))
        while inside and costs.loss * (saved - lost) < price <= costs.loss * (most - lost):
            saved, split, inside = next_split(saved, inside)
            lost = int64(population_count(far & outermost(split - inserted, right)))
        return costs.loss * (saved - lost) >= price

    @jit_call
    def any_split_gains(near, far, n, inserted, price, costs):
        """Return whether any split saves more than it costs, with or without clipping."""
        lost = int64(0)
        for base in range(n - inserted):
            # Loss of the best stretch of the far diagonal up to this base, compared to matches.
            lost = min(lost, costs.match * base + costs.clip) if base else lost
            lost += costs.loss * int64(far >> uint64(base) & uint64(1))
            saved = int64(population_count(near & outermost(base + 1 + inserted, False)))
            if costs.loss * saved - lost >= price:
                return True
        return False

    @jit_call
    def gains_at_end(blocks, both, read_at, right, clipped, n, costs):
        """Return whether a gap in the n outermost bases, the first of them clipped, may gain."""
        first, length, diagonal, low, high = read_at
        start = length - n if right else int64(0)
        at = diagonal + start
        if at < low or at + n > high:
            return True
        read, here = bits_of_codes(both, first + start, n), bits_at(blocks, at)
        near = differing(read, here, n, right)
        if clipped and goes_on(turned(near) if right else near, clipped, costs):
            return True
        # Score of the clipped bases on this diagonal if they reached the end.
        unclipped = costs.match * clipped + (costs.clip if clipped else int64(0))
        unclipped -= costs.loss * int64(population_count(near & outermost(clipped, right)))
        most = costs.loss * int64(population_count(near)) + unclipped
        longest = (most - costs.gap_open) // costs.gap_extend
        longest = min(longest, max(costs.largest_gap, length // 10))
        if longest < 1:
            return False
        if longest >= _BASES or at - _BASES < low or at + 2 * _BASES > high:
            return True
        near = turned(near) if right else near
        for kind in range(2):
            is_insertion = kind == 1
            ahead = right != is_insertion
            beside = bits_at(blocks, at + _BASES if ahead else at - _BASES)
            # Mismatches outside the split, which grows with the gap, and inside it.
            outside, split, inside = int64(0), int64(0), near
            for size in range(1, longest + 1):
                inserted = size if is_insertion else int64(0)
                gap = costs.gap_open + size * costs.gap_extend
                price = gap + costs.match * inserted - unclipped
                while inside and costs.loss * outside < price:
                    outside, split, inside = next_split(outside, inside)
                if costs.loss * outside < price or inserted >= n:
                    break
                if ahead:
                    far = differing(read, between(here, beside, size), n, right)
                else:
                    far = differing(read, between(beside, here, _BASES - size), n, right)
                if reaches_end(far, outside, split, inside, inserted, right, price, costs):
                    return True
                # Any stretch scores at most one match per run of `costs.run` matches that begins in
                # it, plus the cost of a mismatch.
                matches = int64(population_count(runs(~far & outermost(n, right), costs.run)))
                scores = costs.match * matches + costs.loss - costs.match
                if scores < gap or most - costs.clip - costs.match < gap + costs.match * inserted:
                    continue
                from_outside = turned(far) if right else far
                if any_split_gains(near, from_outside, n, inserted, price, costs):
                    return True
        return False

    @jit_call
    def gap_may_gain(blocks, both, read, begin, end, costs):
        """Return whether a gap in the outer 64 bases of an end may score at least as much as none.

        If more bases are clipped, or the contig ends within 64 bases, nothing is compared and the
        result is true.

        Parameters
        ----------
        read : OnDiagonal
        begin, end : int
            The stretch; no other stretch of the diagonal has a higher clip-penalised score.
        """
        for side in range(2):
            right = side == 1
            clipped = read.length - end if right else begin
            n = min(clipped + end - begin, int64(_BASES))
            if clipped > _BASES or gains_at_end(blocks, both, read, right, clipped, n, costs):
                return True
        return False

    @jit
    def first_set(bits):
        """Return the index of the lowest set bit, 64 if there is none."""
        return int64(population_count(~bits & (bits - uint64(1))))

    @jit
    def price_of_two(size, costs):
        """Return the cost of a deletion and an insertion of this size, which loses its matches."""
        return 2 * (costs.gap_open + size * costs.gap_extend) + costs.match * size

    @jit
    def are_close(bits, n):
        """Return whether n set bits follow each other closely; the first is the lowest bit."""
        for _ in range(n - 1):
            bits &= bits - uint64(1)
        return first_set(bits) < _CLOSE * n

    @jit_call
    def part_gains(near, far, n, size, is_ahead, costs):
        """Return whether any part of n bases scores more on the far diagonal, which lies ahead of
        the near one or behind it by the size of the gaps."""
        price = price_of_two(size, costs)
        before, after = (int64(0), size) if is_ahead else (size, int64(0))
        # Mismatches saved before the part begins; fewer are better.
        least = int64(_BASES)
        for base in range(n + 1):
            lost = int64(population_count(far & outermost(base, False)))
            if base + after <= n:
                saved = int64(population_count(near & outermost(base + after, False)))
                if costs.loss * (saved - lost - least) > price:
                    return True
            if base >= before:
                saved = int64(population_count(near & outermost(base - before, False)))
                least = min(least, saved - lost)
        return False

    @jit_call
    def any_part_gains(blocks, read, at, near, n, low, high, costs):
        """Return whether any part of n bases scores more on another diagonal; `read` has their
        bits, and the first is at position `at` on their own diagonal, in a contig from `low` to
        `high`."""
        most = costs.loss * int64(population_count(near))
        for size in range(1, min(n, costs.largest_gap + 1)):
            if price_of_two(size, costs) >= most:
                break
            if at - size < low or at + n + size > high:
                return True
            for side in range(2):
                is_ahead = side == 1
                there = bits_at(blocks, at + size if is_ahead else at - size)
                far = differing(read, there, n, False)
                if part_gains(near, far, n, size, is_ahead, costs):
                    return True
        return False

    @jit_call
    def two_inside_may_gain(blocks, both, read, begin, end, score, costs):
        """Return whether an insertion and a deletion of equal size score more than the mismatches
        inside a stretch. Parts of more than 64 bases, and those with few mismatches, may be missed.

        The mismatches are visited one by one: per mismatch, 64 bases of the read and the genome are
        compared once.
        """
        first, _, diagonal, low, high = read
        fewest = price_of_two(int64(1), costs) // costs.loss + 1
        if costs.match * (end - begin) - score < costs.loss * fewest:
            return False
        at = int64(begin)
        while at < end:
            n = min(end - at, int64(_BASES))
            bits = bits_of_codes(both, first + at, n)
            near = differing(bits, bits_at(blocks, diagonal + at), n, False)
            is_worth = near & uint64(1) and are_close(near, fewest)
            if is_worth and any_part_gains(blocks, bits, diagonal + at, near, n, low, high, costs):
                return True
            at += min(first_set(near & ~uint64(1)), int64(_BASES))
        return False

    @jit_call
    def gaps_may_gain(blocks, both, read, begin, end, score, costs):
        """Return whether gaps may improve a stretch of a diagonal with this score."""
        clipped = max(begin, read.length - end)
        if two_gaps_may_gain(clipped, costs) or gap_may_gain(blocks, both, read, begin, end, costs):
            return True
        return two_inside_may_gain(blocks, both, read, begin, end, score, costs)

    return SimpleNamespace(**locals())


_inlined = inner(nogil=True, forceinline=True)
_called = inner(nogil=True)
_functions = end_gap_functions(
    _inlined, _called, bits_at, bits_of_codes, shifted, turned, population_count
)
gap_may_gain, two_inside_may_gain = _functions.gap_may_gain, _functions.two_inside_may_gain
gaps_may_gain = _functions.gaps_may_gain


#: Number of alignments by which the genome is prefetched ahead.
_AHEAD = 12

#: The codes of `>` and `<`, and of `|`.
READ_SENTINEL, WINDOW_SENTINEL = len(LETTERS), len(LETTERS) + 1


class MappedReads(NamedTuple):
    """One alignment of a read per row; rows without one have position -1 and no CIGAR.

    Attributes
    ----------
    positions : ndarray, shape=(n,), dtype=int64
        Genome position of the first aligned base.
    strands : ndarray, shape=(n,), dtype=uint8
    read_starts, read_ends : ndarray, shape=(n,), dtype=int32
        Range of aligned bases of the read on its strand; other bases are clipped.
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


#: No alignments, with the types of `in_genome`.
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
) -> MappedReads:
    """Align reads at their selected hits.

    Parameters
    ----------
    selected : ndarray, shape=(n,), dtype=int64
        The hit of each row; -1 for none.
    """
    n = selected.size
    mapped = MappedReads(
        np.full(n, -1), np.zeros(n, np.uint8), *np.zeros((3, n), np.int32),
        np.zeros(n + 1, np.int64), np.empty(0, np.uint32),
    )  # fmt: skip
    _as_scored(hits, selected, mapped)
    rows = np.empty(n, np.int64)
    costs = end_costs(parameters)
    rows = rows[: _rows_with_gaps(genome, both, offsets, hits, selected, costs, rows)]
    found, ends_on = NOTHING, rows
    if rows.size:
        found, ends_on = _align_with_gaps(genome, both, offsets, hits, selected[rows], parameters)
    cigar = _take_found(hits, selected, rows, found, ends_on, parameters.largest_gap, mapped)
    return mapped._replace(cigar=cigar)


def gapless_alignments(hits: ScoredHits, rows: np.ndarray) -> MappedReads:
    """Return gapless hits unchanged."""
    lengths = (hits.ends - hits.starts)[rows]
    return MappedReads(
        hits.starts[rows], hits.strands[rows], hits.read_starts[rows], hits.read_ends[rows],
        hits.scores[rows], np.arange(rows.size + 1), (lengths << 4 | MATCH).astype(np.uint32),
    )  # fmt: skip


@compiled(counted=False)
def _as_scored(hits, selected, mapped):
    """Return rows as their hits were scored, without CIGARs."""
    for row in range(selected.size):
        hit = selected[row]
        if hit >= 0:
            mapped.positions[row], mapped.strands[row] = hits.starts[hit], hits.strands[hit]
            mapped.read_starts[row] = hits.read_starts[hit]
            mapped.read_ends[row] = hits.read_ends[hit]
            mapped.scores[row] = hits.scores[hit]


@compiled(counted=False)
def _rows_with_gaps(genome, both, offsets, hits, selected, costs, rows):
    """List the rows whose alignments have gaps, or may score more with gaps; return their
    number."""
    blocks, contig_starts = genome.blocks, genome.contig_starts
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
            start, score = hits.starts[hit], np.int64(hits.scores[hit])
            read = on_diagonal(contig_starts, start, first, length, start - begin)
            if not gaps_may_gain(blocks, both, read, begin, end, score, costs):
                continue
        rows[n] = rows[i]
        n += 1
    return n


@compiled(forceinline=True)
def _rows_that_lose(offsets, hits, selected, costs, rows):
    """List the rows with gaps, and those that lose more than the cost of a gap compared to matches;
    return their number. Without branches, because about half of the rows are listed."""
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
    """Return whether a window gave another part of a split read, or another copy of a tandem
    repeat, than the stretch of a gapless hit: bases `start` to `end` of the read, on diagonal `on`.
    Both engines use it."""
    shared = min(end, found_end) - max(start, found_start)
    is_away = abs(found_on - on) > largest_gap
    return gapless and (is_away or 2 * shared < end - start)


@compiled
def _take_found(hits, selected, rows, found, ends_on, largest_gap, mapped):
    """Give rows the alignments found for them; return the CIGARs of all rows.

    If an alignment is another part than the known stretch of the hit, the row is unchanged.
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
    genome, both, offsets, hits, hit, parameters
) -> tuple[MappedReads, np.ndarray]:
    """Return the alignments, and the diagonal on which each ends."""
    strands = hits.strands[hit]
    window_starts, window_ends = np.empty((2, hit.size), np.int64)
    _windows(
        genome.contig_starts, offsets, hits, hit, parameters.largest_gap, window_starts, window_ends
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
    found = pair_alignments(pairs, scoring, mode)
    return in_genome(found, strands, window_starts, queries.lengths, parameters)


def in_genome(
    found: Alignments,
    strands: np.ndarray,
    window_starts: np.ndarray,
    query_lengths: np.ndarray,
    parameters: MappingParameters,
) -> tuple[MappedReads, np.ndarray]:
    """Convert alignments to windows into alignments to the genome; also return the diagonals on
    which they end. Queries and windows have sentinels, except in end-to-end mode."""
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
    """Return start and end of the window of a hit in a contig from `low` to `high`. For long reads
    it is wider by a tenth of the read on both sides, because their gaps may add up to more than in
    the scoring of hits. Both engines use it.
    """
    wider = max(length // 10 - largest_gap, 0)
    return max(start - wider, low), min(end + wider, high)


@compiled(counted=False)
def _windows(contig_starts, offsets, hits, hit, largest_gap, starts, ends):
    """Write starts and ends of the windows of hits."""
    for i in range(hit.size):
        start, read = hits.window_starts[hit[i]], hits.reads[hit[i]]
        contig = interval_at(contig_starts, start)
        starts[i], ends[i] = window_of(
            start, hits.window_ends[hit[i]], contig_starts[contig], contig_starts[contig + 1],
            offsets[read + 1] - offsets[read], largest_gap,
        )  # fmt: skip


def _with_sentinels(sequences: Sequences, sentinel: int) -> Sequences:
    """Copy the sequences with a sentinel before and after each."""
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
    """Return the bases of gaps beyond the length at which costs stop; the aligner counts all."""
    beyond = np.zeros(offsets.size - 1, np.int32)
    for row in range(offsets.size - 1):
        for at in range(offsets[row], offsets[row + 1]):
            if cigar[at] & 15 != MATCH:
                beyond[row] += max(np.int64(cigar[at] >> 4) - long_gap, 0)
    return beyond


@compiled
def _plain_cigars(offsets, cigar, at_start, at_end):
    """Return CIGARs without sentinels, with = and X joined to M."""
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


# --------------------------------------------------------------------------------------------------
# Clipped ends across a long gap are added to the alignment.


#: Columns of gaps: row of the alignment, whether on the right, far minus near diagonal, bases from
#: the outer end to the near stretch, bases that stay clipped, and increase of the score.
_ROW, _RIGHT, _SHIFT, _SPLIT, _OUTER, _GAIN = range(6)


def across_long_gaps(
    genome: Genome,
    both: np.ndarray,
    offsets: np.ndarray,
    mapped: MappedReads,
    parameters: MappingParameters,
) -> MappedReads:
    """Return the alignments, extended by clipped ends that lie across a long gap.

    Parameters
    ----------
    both : ndarray, shape=(2 * n_bases,), dtype=uint8
        The reads, then their reverse complements.
    offsets : ndarray, shape=(n_reads + 1,), dtype=int64
    mapped : MappedReads
        Row i is of read i.
    """
    if parameters.mode == END_TO_END:
        return mapped
    costs = gap_costs(parameters)
    gaps = np.empty((2 * mapped.positions.size, 6), np.int64)
    space = space_for_gaps(offsets)
    gaps = gaps[: _find_gaps(genome, both, offsets, mapped, costs, space, gaps)]
    if not len(gaps):
        return mapped
    joined = mapped._replace(
        positions=mapped.positions.copy(),
        read_starts=mapped.read_starts.copy(),
        read_ends=mapped.read_ends.copy(),
        scores=mapped.scores.copy(),
        cigar_offsets=np.zeros_like(mapped.cigar_offsets),
        cigar=np.empty(mapped.cigar.size + 2 * len(gaps), np.uint32),
    )
    _add_gaps(gaps, np.diff(offsets), mapped.cigar_offsets, mapped.cigar, joined)
    return joined


@compiled(counted=False)
def _find_gaps(genome, both, offsets, mapped, costs, space, gaps):
    """Write a row per clipped end with a gap before it; return their number."""
    blocks, contig_starts = genome.blocks, genome.contig_starts
    least = least_clipped(costs)
    n_found = 0
    for row in range(mapped.positions.size):
        length = offsets[row + 1] - offsets[row]
        position = mapped.positions[row]
        begin, end = int64(mapped.read_starts[row]), int64(mapped.read_ends[row])
        if position < 0 or max(begin, length - end) < least:
            continue
        base = offsets[row] + (both.size // 2 if mapped.strands[row] else 0)
        first, last = mapped.cigar_offsets[row], mapped.cigar_offsets[row + 1]
        diagonal = position - begin
        matched = int64(mapped.cigar[first] >> 4)
        for right in (False, True):
            clipped = length - end if right else begin
            if right:
                for at in range(first, last):
                    n, kind = int64(mapped.cigar[at] >> 4), mapped.cigar[at] & 15
                    if kind == INSERTION:
                        diagonal -= n
                    elif kind == DELETION:
                        diagonal += n
                if last - first > 1:
                    matched = int64(mapped.cigar[last - 1] >> 4)
            if clipped < least:
                continue
            read = on_diagonal(contig_starts, position, base, length, diagonal)
            shift, split, outer, gain = best_gap(
                blocks, both, read, right, clipped, matched, costs, space
            )
            if shift == 0:
                continue
            gaps[n_found, _ROW], gaps[n_found, _RIGHT] = row, right
            gaps[n_found, _SHIFT], gaps[n_found, _SPLIT] = shift, split
            gaps[n_found, _OUTER], gaps[n_found, _GAIN] = outer, gain
            n_found += 1
            # For a single match, the rest that is left for a gap at its other end.
            matched -= split - clipped
    return n_found


@compiled
def _add_gaps(gaps, lengths, offsets, cigar, joined):
    """Write the CIGARs of all rows with added gaps, and update the other columns."""
    joined = uncounted(joined)
    used, at = 0, 0
    for row in range(lengths.size):
        begin = used
        for i in range(offsets[row], offsets[row + 1]):
            joined.cigar[used] = cigar[i]
            used += 1
        while at < len(gaps) and gaps[at, _ROW] == row:
            shift, outer, split = gaps[at, _SHIFT], gaps[at, _OUTER], gaps[at, _SPLIT]
            right = gaps[at, _RIGHT] == 1
            deleted = right == (shift > 0)
            gap = abs(shift) << 4 | (DELETION if deleted else INSERTION)
            aligned = split - outer - (0 if deleted else abs(shift))
            far = aligned << 4 | MATCH
            if right:
                grown = lengths[row] - joined.read_ends[row] - split
                joined.cigar[used - 1] = int64(joined.cigar[used - 1]) + (grown << 4)
                joined.cigar[used], joined.cigar[used + 1] = gap, far
                joined.read_ends[row] = lengths[row] - outer
            else:
                grown = joined.read_starts[row] - split
                for i in range(used - 1, begin - 1, -1):
                    joined.cigar[i + 2] = joined.cigar[i]
                joined.cigar[begin + 2] = int64(joined.cigar[begin + 2]) + (grown << 4)
                joined.cigar[begin], joined.cigar[begin + 1] = far, gap
                joined.positions[row] += shift + outer - joined.read_starts[row]
                joined.read_starts[row] = outer
            joined.scores[row] += gaps[at, _GAIN]
            used += 2
            at += 1
        joined.cigar_offsets[row + 1] = used
