"""Score candidates: extend without gaps if no gap shows, else align in a window.

The best stretch of a candidate's main diagonal is scored first. Its score is final if

- it is at least ``match * read length - gap_open - gap_extend`` with penalties for clipped ends:
  every alignment with a gap loses that much and gains no more; or
- no gap shows: all seeds lie on one diagonal, nothing is clipped, and there are fewer than two
  mismatches in the first and in the last 16 bases. A gap leaves random bases on one side of it,
  which are clipped; or
- it is hopeless: all seeds lie on one diagonal, and it scores at least `hopeless_margin` less than
  the read's best stretch.

Other candidates are aligned by dynamic programming in a window around all their diagonals. An
alignment replaces the stretch only if it scores more than any stretch of the main diagonal without
penalties for clipped ends: only then it has a gap. Long gaps before clipped ends are found here,
too.
"""

import mmap
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy import int64, uint64

from bwarp.alignment.pair_ends_cpu import pair_ends
from bwarp.alignment.pairs import PairBatch, Sequences
from bwarp.alignment.scoring import FITTING, LOCAL, Scoring, nucleotide_scoring
from bwarp.mapping.parameters import END_TO_END, MappingParameters
from bwarp.mapping.scored_hits_cpu import (
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
from bwarp.mapping.seeds_cpu import Candidates
from bwarp.reads.base_bits_cpu import (
    base_at,
    bits_at,
    bits_of_codes,
    blocks_of_packed,
    copy_bases,
    differing,
    prefetch_bases,
)
from bwarp.reference import Reference, ambiguous_stretches, interval_at
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

# --------------------------------------------------------------------------------------------------
# The best stretch of a diagonal, found from mismatch to mismatch; both engines use these rules.
#
# Between two mismatches the score of a stretch only rises, so it suffices to evaluate it on both
# sides of each mismatch and at the end. A stretch may begin at the first base, or after a mismatch
# at the cost of a clipped end; it ends at the last base, or clipped.


#: A gap this close to an end of a read may show only as a few mismatches.
END = 16

#: The cost of a clipped end in end-to-end mode.
NEVER_CLIP = 1 << 20


class Costs(NamedTuple):
    """Scores of an extension, and the number of bases by which its window exceeds the seeds."""

    match: int
    mismatch: int
    gap: int
    clip: int
    margin: int


class OnDiagonal(NamedTuple):
    """A read on a diagonal within a contig.

    Attributes
    ----------
    first, length : int
        Start of the read on its strand among the codes or bits of all reads, and its length.
    diagonal : int
    low, high : int
        Start and end of the contig.
    """

    first: int
    length: int
    diagonal: int
    low: int
    high: int


class Sums(NamedTuple):
    """Running sums of a diagonal up to the base at `end`.

    `begin_sum` is the minimum sum, including the cost of clipping, at which a stretch may begin.
    `open` is the raw score of the current stretch without clip penalties, `highest` the maximum.
    """

    end: int
    total: int
    begin: int
    begin_sum: int
    open: int
    highest: int


class Stretch(NamedTuple):
    """A stretch of a diagonal within a contig, and its clip-penalised score."""

    score: int
    begin: int
    end: int
    contig: int


def costs_of(parameters: MappingParameters) -> Costs:
    clip = NEVER_CLIP if parameters.mode == END_TO_END else parameters.clip
    gap = parameters.gap_open + parameters.gap_extend
    return Costs(parameters.match, parameters.mismatch, gap, clip, parameters.largest_gap)


@compiled(inline="always")
def on_diagonal(contig_starts, position, first, length, diagonal):
    """Return a read (`OnDiagonal`) in the contig that contains a position of the genome."""
    contig = interval_at(contig_starts, position)
    return OnDiagonal(first, length, diagonal, contig_starts[contig], contig_starts[contig + 1])


@compiled(inline="always")
def no_stretch(contig):
    return Stretch(int64(-(1 << 30)), int64(0), int64(0), int64(contig))


@compiled(inline="always")
def first_sums(low, clip, highest):
    """Return the sums before the base at `low`, where a contig or the read begins."""
    zero = int64(0)
    return Sums(low, zero, low, zero if low == 0 else int64(clip), zero, highest)


@compiled(forceinline=True)
def _better(best, score, begin, end, contig):
    return Stretch(score, begin, end, contig) if score > best.score else best


@compiled(inline="always")
def pass_mismatch(sums, best, at, length, contig, costs):
    """Return the sums after the mismatch at base `at`, and the best stretch so far."""
    gained = costs.match * (at - sums.end)
    highest = max(sums.highest, sums.open + gained)
    open_ = max(sums.open + gained + costs.mismatch, int64(0))
    total = sums.total + gained
    if at > sums.end:
        best = _better(best, total - sums.begin_sum - costs.clip, sums.begin, at, contig)
    total += costs.mismatch
    begin, begin_sum, end = sums.begin, sums.begin_sum, at + 1
    if total + costs.clip <= begin_sum:
        begin, begin_sum = end, total + costs.clip
    price = 0 if end == length else costs.clip
    best = _better(best, total - begin_sum - price, begin, end, contig)
    return Sums(end, total, begin, begin_sum, open_, highest), best


@compiled(inline="always")
def pass_end(sums, best, high, length, contig, costs):
    """Return the highest raw score and the best stretch at `high`, the end of a contig or read."""
    if high <= sums.end:
        return sums.highest, best
    gained = costs.match * (high - sums.end)
    reached = sums.total + gained - sums.begin_sum - (0 if high == length else costs.clip)
    return max(sums.highest, sums.open + gained), _better(best, reached, sums.begin, high, contig)


@compiled(inline="always")
def valid_score(score, best, length, costs):
    """Return a score of a diagonal; in end-to-end mode, the score of the whole read on it."""
    if costs.clip != NEVER_CLIP:
        return score
    # A read that extends beyond a contig's end fits only with gaps, if at all.
    return int64(0) if best.begin > 0 or best.end < length else max(best.score, int64(0))


@compiled(inline="always")
def put_stretch(scored, candidates, i, best, shows_gap, length, contig_starts, costs):
    """Write the row of candidate i from the best stretch of its main diagonal."""
    diagonal, lowest, highest = candidates.diagonals[i], candidates.lowest[i], candidates.highest[i]
    clips = int64(best.begin > 0) + int64(best.end < length)
    start, end = diagonal + best.begin, diagonal + best.end
    window_start = max(lowest - costs.margin, contig_starts[best.contig])
    window_end = min(highest + length + costs.margin, contig_starts[best.contig + 1])
    shows_gap = shows_gap or clips > 0 or lowest < highest
    lost = costs.match * length - best.score
    # Two gaps that cancel each other show only as many mismatches between them.
    shows_gap = shows_gap or (lost > 4 * costs.gap and 5 * lost > 2 * costs.match * length)
    is_sure = lost <= costs.gap or not shows_gap
    if window_start >= window_end:
        is_sure, window_start, window_end = True, start, end
    score = valid_score(max(best.score + costs.clip * clips, int64(0)), best, length, costs)
    fields = (
        score, start, end, best.begin, best.end, int64(is_sure), window_start, window_end
    )  # fmt: skip
    put_row(scored, FIELDS * i, fields)


#: Number of candidates by which the genome is prefetched ahead.
_AHEAD = 12


class Genome(NamedTuple):
    """The bases of the reference to which reads are compared.

    Attributes
    ----------
    blocks : ndarray, dtype=uint64
        Concatenated contigs in the blocks of base_bits_cpu.
    contig_starts : ndarray, shape=(n_contigs + 1,), dtype=int64
    """

    blocks: np.ndarray
    contig_starts: np.ndarray


@on_timeline("load the genome")
def genome_of(reference: Reference, threads: int = 1) -> Genome:
    """Return the bases of a reference; release the pages of a memory-mapped file."""
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
    """Return all reads, then all reverse complements at the same offsets, dtype uint8."""
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
    """Score every candidate; omit hits below the minimum score."""
    n = len(candidates.reads)
    scored = np.empty(FIELDS * n, np.int64)
    raw_scores, costs = np.empty(n, np.int32), costs_of(parameters)
    score_diagonals(genome, both, offsets, candidates, costs, scored, raw_scores)
    unsure = np.empty(n, np.int64)
    unsure = unsure[: _list_unsure(candidates, parameters.hopeless_margin, scored, unsure)]
    if unsure.size:
        rows = scored.reshape(n, FIELDS)[unsure]
        queries, windows = window_sequences(
            genome, both, offsets, candidates.reads[unsure], candidates.strands[unsure],
            rows[:, WINDOW_START], rows[:, WINDOW_END],
        )  # fmt: skip
        mode = FITTING if parameters.mode == END_TO_END else LOCAL
        pairs = PairBatch(queries, windows)
        ends = pair_ends(pairs, scoring_of(parameters), mode)
        _take_better(unsure, ends, raw_scores, candidates, costs, scored)
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
    """Return reads on strands, and windows of the genome, as the two sides of a batch of pairs."""
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


@compiled(forceinline=True)
def _below(n):
    """Return a mask of the bits below number n, which may be any integer."""
    if n >= 64:
        return ~np.uint64(0)
    return (np.uint64(1) << np.uint64(max(n, np.int64(0)))) - np.uint64(1)


@compiled(forceinline=True)
def _lowest(bits):
    """Return the number of the lowest set bit, or 64 if none is set."""
    return np.int64(population_count(~bits & (bits - np.uint64(1))))


@compiled(forceinline=True)
def _runs(bits, n):
    """Mark bits that begin runs of more than n set bits: all of a run except its last n."""
    for _ in range(n):
        bits &= bits >> np.uint64(1)
    return bits


@compiled(forceinline=True)
def _pass_several(sums, end, n, costs):
    """Return the sums after n more mismatches, up to `end`, if no run of matches before one of them
    gains more than it costs; return the same sums if such a run may be the highest.

    Sums only fall from mismatch to mismatch, so no stretch that ends here is the best: the one that
    ended before the last mismatch scores as much. A stretch that should begin after one of them is
    better if it begins after the last.
    """
    if sums.highest < sums.open + min(costs.match * (end - sums.end - n), -costs.mismatch):
        return sums
    more = costs.match * (end - sums.end - n) + costs.mismatch * n
    total, begin, begin_sum = sums.total + more, sums.begin, sums.begin_sum
    if total + costs.clip <= begin_sum:
        begin, begin_sum = end, total + costs.clip
    return Sums(end, total, begin, begin_sum, max(sums.open + more, np.int64(0)), sums.highest)


@compiled(counted=False)
def score_diagonals(genome, both, offsets, candidates, costs, scored, raw_scores):
    """Write the row of each candidate from its main diagonal, 64 bases of the genome at a time.

    Many candidates are random beyond their seeds: all mismatches before the next sufficiently long
    run of matches are passed at once.
    """
    blocks, contig_starts = genome.blocks, genome.contig_starts
    # Up to this number, matches do not outweigh a mismatch.
    short = min(-costs.mismatch // costs.match, np.int64(64))
    reads, diagonals = candidates.reads, candidates.diagonals
    for i in range(reads.size):
        if i + _AHEAD < reads.size:
            prefetch_bases(blocks, diagonals[i + _AHEAD])
        first = offsets[reads[i]] + (both.size // 2 if candidates.strands[i] else 0)
        length = offsets[reads[i] + 1] - offsets[reads[i]]
        diagonal = diagonals[i]
        # A read that extends over a contig's end is assigned to the contig where it scores most.
        contig = max(interval_at(contig_starts, diagonal), np.int64(0))
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
                # A stretch may end with the last base, even if it is a mismatch.
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
        put_stretch(scored, candidates, i, best, crowded, length, contig_starts, costs)
        raw_scores[i] = valid_score(highest, best, length, costs)


@compiled
def _list_unsure(candidates, hopeless_margin, scored, unsure):
    """List the candidates to align with gaps, except hopeless ones."""
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
def put_gapped(scored, candidates, i, found, largest_gap, whole, match):
    """Write an alignment with gaps, given its score and its ends in query and window, to the row of
    candidate i; both engines use it.

    Skip an alignment that ends on a diagonal far from the candidate's seeds: it is another part of
    a split read, or another copy of a tandem repeat in the same window.

    Only the end of the alignment is known. Its start is assumed where it would have lost half of
    the score of its bases, or at the start of the diagonal's stretch, which is a part of it. An
    end-to-end alignment starts with the read.
    """
    row = FIELDS * i
    score, query_end, reference_end = found
    begin = min(scored[row + READ_START], query_end - 2 * score // match)
    begin = 0 if whole or begin < 0 else begin
    window_start, window_end = scored[row + WINDOW_START], scored[row + WINDOW_END]
    end = window_start + reference_end
    diagonal = end - query_end
    if candidates.lowest[i] - largest_gap <= diagonal <= candidates.highest[i] + largest_gap:
        fields = (
            score, diagonal + begin, end, begin, query_end, 0, window_start, window_end
        )  # fmt: skip
        put_row(scored, row, fields)


@compiled(counted=False)
def _take_better(unsure, ends, raw_scores, candidates, costs, scored):
    """Replace stretches by alignments that score more than any stretch, and so have a gap."""
    scores, query_ends, reference_ends = ends
    whole = costs.clip == NEVER_CLIP
    for j in range(unsure.size):
        i = unsure[j]
        scored[FIELDS * i + GAPLESS] = 1
        if scores[j] > raw_scores[i]:
            found = scores[j], query_ends[j], reference_ends[j]
            put_gapped(scored, candidates, i, found, costs.margin, whole, costs.match)


# --------------------------------------------------------------------------------------------------
# The best long gap between an alignment and a clipped end of the read.
#
# The windows of alignments with gaps are narrow. Therefore a clipped end is compared with the
# genome on every diagonal near that of the alignment:
#
#     read        |==========================|~~~~~~~~~~~~~~~~|
#     genome      |==========================|      |~~~~~~~~~~~~~~~~|
#                             near              gap        far
#
# Most diagonals are random, as a comparison of 64 bases shows: no run of matches. On each of the
# others, the best position of the gap is searched in the clipped bases and in the last match before
# them. Bases are counted from the outer end of the read inwards: `far[t]` is the best score of a
# far stretch that ends with base t, `near[t]` that of the near stretch from base t on.
#
# Among gaps of equal score, the shortest is chosen, a deletion before an insertion, and in a repeat
# the leftmost position.


#: Minimum run of matches in a far stretch; such runs are rare among random bases.
_RUN = 10

#: Maximum distance of the gap from the end of the alignment, inwards.
_NEAR = 100

_NEVER = -(1 << 40)


class GapCosts(NamedTuple):
    """Scores; a gap costs at most `dearest`, and has up to `longest` bases."""

    match: int
    mismatch: int
    gap_open: int
    gap_extend: int
    dearest: int
    longest: int
    clip: int


def gap_costs(parameters: MappingParameters) -> GapCosts:
    p = parameters
    return GapCosts(
        p.match, p.mismatch, p.gap_open, p.gap_extend, p.long_gap_cost, p.longest_gap, p.clip
    )


@compiled(inline="always")
def least_clipped(costs):
    """Return the minimum number of clipped bases for which a long gap can pay off."""
    return max((costs.dearest - costs.clip) // costs.match, 1)


@compiled(forceinline=True)
def _has_run(bits):
    """Return whether `_RUN` consecutive bits are set."""
    bits &= bits >> uint64(1)
    bits &= bits >> uint64(2)
    bits &= bits >> uint64(4)
    return bits & bits >> uint64(_RUN - 8) != 0


@compiled(forceinline=True)
def _score(blocks, both, read, t, right, shift, costs):
    """Return the score of base t of a read, from its outer end on, on a diagonal farther by
    `shift`; `_NEVER` outside the contig."""
    i = read.length - 1 - t if right else int64(t)
    at = read.diagonal + shift + i
    if at < read.low or at >= read.high:
        return int64(_NEVER)
    code = both[read.first + i]
    return costs.match if code < 4 and code == base_at(blocks, at) else costs.mismatch


@compiled
def _near_scores(blocks, both, read, right, costs, total, near):
    """Write near[t] for t <= total."""
    near[total] = 0
    for t in range(total - 1, -1, -1):
        near[t] = near[t + 1] + _score(blocks, both, read, t, right, 0, costs)


@compiled
def _far_scores(blocks, both, read, right, shift, costs, last, far):
    """Write far[t] for t < last; return the start of the stretch that ends with the last base."""
    outer, score = int64(0), int64(_NEVER)
    for t in range(last):
        # If clipping and reaching the end score the same, the end is clipped.
        if t == 0:
            score = int64(0)
        elif score <= -costs.clip:
            outer, score = int64(t), int64(-costs.clip)
        score += _score(blocks, both, read, t, right, shift, costs)
        far[t] = score
    return outer


def space_for_gaps(offsets: np.ndarray) -> np.ndarray:
    """Return the space that `best_gap` needs for reads of these offsets."""
    return np.empty((2, int(np.diff(offsets).max(initial=0)) + 1), np.int64)


@compiled
def best_gap(blocks, both, read, right, clipped, matched, costs, space):
    """Find the best gap between an alignment and its clipped end.

    Parameters
    ----------
    read : OnDiagonal
        The read in `both`, on its diagonal at this end.
    right : bool
        Whether the clipped end is on the right.
    clipped, matched : int
        Number of clipped bases, and length of the last match at this end.
    space : ndarray, shape=(2, n), dtype=int64
        For near and far scores; n is at least the length of the read plus one.

    Returns
    -------
    shift : int
        Far diagonal minus near diagonal; 0 if no gap helps.
    split, outer : int
        Number of bases from the outer end to the near stretch, and of those that stay clipped.
    gain : int
        Increase of the score, without clip penalties.
    """
    near, far = space[0], space[1]
    total = clipped + min(matched, int64(_NEAR))
    best, best_shift, best_split = int64(0), int64(0), int64(0)
    before, is_first = int64(0), True
    # The outermost bases of the read, 64 at most.
    n = min(total, int64(64))
    start = read.length - n if right else int64(0)
    read_low, read_high, read_ambiguous = bits_of_codes(both, read.first + start, n)
    inside = ~uint64(0) >> uint64(64 - n)
    for size in range(1, costs.longest + 1):
        cost = min(costs.gap_open + size * costs.gap_extend, costs.dearest)
        for inserted in range(2):
            shift = int64(size) if right != (inserted == 1) else -int64(size)
            at = read.diagonal + start + shift
            if at < read.low or at + n > read.high:
                continue
            bits_low, bits_high, ambiguous = bits_at(blocks, at)
            differ = read_low ^ bits_low | read_high ^ bits_high | read_ambiguous | ambiguous
            if not _has_run(~differ & inside):
                continue
            if is_first:
                is_first = False
                _near_scores(blocks, both, read, right, costs, total, near)
                best = before = near[clipped] - costs.clip
            between = int64(size) if inserted else int64(0)
            last = total - between
            _far_scores(blocks, both, read, right, shift, costs, last, far)
            for t in range(1, last):
                score = far[t - 1] + near[t + between] - cost
                if score > best or (right and score == best and shift == best_shift):
                    best, best_shift, best_split = score, shift, t + between
    outer = int64(0)
    if best_shift != 0:
        between = abs(best_shift) if right == (best_shift < 0) else int64(0)
        last = best_split - between
        outer = _far_scores(blocks, both, read, right, best_shift, costs, last, far)
    # The alignment had no penalty for the clipped end.
    gain = best - before - (0 if outer > 0 else costs.clip)
    return best_shift, best_split, outer, gain
