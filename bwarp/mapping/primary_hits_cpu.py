"""Primary hits of reads without mates, and their mapping qualities.

The mapping quality is the probability that the read lies elsewhere: every other hit of the same
bases is less likely the less it scores (likelihoods.py), and the likelihoods of all of them are
added. A read without another hit has the quality that bwa gives it.

Hits are compared by clip-penalised scores: two mismatches at a read's end are worse than one,
although both are clipped to the same raw score.

Another hit is near if it scores less by one difference or nothing. Near hits show that the read is
from a repeat whose copies one difference tells apart, here or in a copy that was not found: each
counts `NEAR_RIVALS` times. Short reads have too many of them for that.

Unlocated hits have a bound (Candidates.unlocated), not a score. They are copies of a repeat of
which other copies were located; one of them is taken to be `UNLOCATED_LOSS` below what it is likely
to score, and there are more than one. How often it scores more than it is likely to was measured:
see `BOUND_ROOM`. A short read may have a locus that no seed shows at all, too: one with a mismatch
in each of its shortest seeds.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numba import int64, uint64

from bwarp.mapping.insert_size import SCORE_UNITS
from bwarp.mapping.likelihoods import (
    HIGHEST_QUALITY,
    MOST_LESS,
    likelihood,
    mapping_quality,
)
from bwarp.mapping.parameters import SHORT_READ, MappingParameters
from bwarp.mapping.scored_hits_cpu import ScoredHits
from bwarp.mapping.seeds_cpu import score_bound_of
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.timeline import on_timeline
from bwarp.runtime.uncounted import uncounted

# --------------------------------------------------------------------------------------------------
# Numbers of templates by which ties are broken: they look random, and are the same in every run.
#
# Both engines use them. Of equal hits of a read one is drawn by its template's number; of equal
# pairs
# that with the highest number of its own.


#: Odd numbers without a pattern in their bits.
_MIXER, _SECOND_MIXER = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9

#: No read has as many hits.
_HITS = 7919


@compiled(inline="always")
def tie_seed(template):
    """The number, uint64, of a template (uint64)."""
    mixed = uint64((template + uint64(1)) * uint64(_MIXER))
    mixed = uint64((mixed ^ (mixed >> uint64(29))) * uint64(_SECOND_MIXER))
    return mixed ^ (mixed >> uint64(32))


@compiled(inline="always")
def drawn_of(seed, equals):
    """Which one of so many equal hits is drawn, from 0."""
    return int64(seed % uint64(equals))


@compiled(inline="always")
def pair_tie(seed, i, j):
    """The number, uint64, of a template's pair of hits, `i` of read 1 and `j` of read 2."""
    return uint64((seed ^ uint64(i * _HITS + j)) * uint64(_MIXER))


@compiled
def seeds_of_templates(templates: np.ndarray) -> np.ndarray:
    """The numbers of templates, uint64 as they are."""
    seeds = np.empty_like(templates)
    for i in range(templates.size):
        seeds[i] = tie_seed(templates[i])
    return seeds


UNLOCATED_LOSS = 10
SHORT_UNLOCATED_LOSS = 5
_SHORTEST_SEED = 19

#: Bases of the seeds of the last round.
SHORTEST_SEED = MappingParameters.short.length

#: A short read's locus that seeds do not show is there once in so many reads.
HIDDEN_ONCE_IN = 10_000

#: Where hits are not located, there are so many times as many rivals as were seen.
UNLOCATED_RIVALS = 4

#: A near hit of a read that is not short counts so many times.
NEAR_RIVALS = 64

#: A read that scores as much as the bound of unlocated hits has another hit once in 1,100 times, as
#: if that scored 25 / 4 matches less; for every 4 matches that the read scores more, one less.
BOUND_ROOM = 25
BOUND_SLOPE = 4

#: Added to a quality before it is cut to a whole number, as in bwa.
ROUNDING = 0.499

#: Less than any score.
_NOTHING = -(1 << 60)


class PrimarySelection(NamedTuple):
    """The outcome for every read.

    Attributes
    ----------
    hits : ndarray, shape=(n_reads,), dtype=int64
        The index of the primary hit, or -1.
    qualities : ndarray, shape=(n_reads,), dtype=uint8
    suboptimal : ndarray, shape=(n_reads,), dtype=int32
        The best score of any other hit of the same bases, 0 where there is none: XS.
    proper : ndarray, shape=(n_reads,), dtype=bool
    """

    hits: np.ndarray
    qualities: np.ndarray
    suboptimal: np.ndarray
    proper: np.ndarray


class Reads(NamedTuple):
    """What is known of reads besides their hits."""

    lengths: np.ndarray
    unlocated: np.ndarray
    seeds: np.ndarray


class Scores(NamedTuple):
    """Scores; a hit is near that scores up to `near` less than another."""

    match: int
    mismatch: int
    clip: int
    least: int
    near: int


@on_timeline("select primary hits")
def select_single(
    hits: ScoredHits,
    lengths: np.ndarray,
    unlocated: np.ndarray,
    parameters: MappingParameters,
    seeds: np.ndarray,
) -> PrimarySelection:
    """Primary hits of reads that have no mates; `seeds` (uint64 a read) break ties."""
    primary = no_selection(len(lengths))
    select_unpaired(hits, Reads(lengths, unlocated, seeds), scores_of(parameters), primary)
    return primary


def no_selection(n_reads: int) -> PrimarySelection:
    """No read has a primary hit."""
    return PrimarySelection(
        np.full(n_reads, -1, np.int64),
        np.zeros(n_reads, np.uint8),
        np.zeros(n_reads, np.int32),
        np.zeros(n_reads, bool),
    )


def scores_of(parameters: MappingParameters) -> Scores:
    p = parameters
    return Scores(p.match, p.mismatch, p.clip, p.least_score, p.most_loss)


@compiled(inline="always")
def span_of(strand, read_start, read_end, length):
    """The bases of the read, as it was read, that a hit aligns; both engines use it."""
    return (length - read_end, length - read_start) if strand else (read_start, read_end)


@compiled(inline="always")
def read_span(hits, i, length):
    """The bases of the read, as it was read, that a hit aligns."""
    start, end = np.int64(hits.read_starts[i]), np.int64(hits.read_ends[i])
    return span_of(hits.strands[i], start, end, length)


@compiled(inline="always")
def same_bases(span, span_2):
    """Whether two stretches of a read share half of the shorter one or more."""
    shared = min(span[1], span_2[1]) - max(span[0], span_2[0])
    return 2 * shared >= min(span[1] - span[0], span_2[1] - span_2[0])


@compiled(inline="always")
def penalised_score(score, gapless, read_start, read_end, length, clip):
    """A hit's score with its clipped ends penalised; both engines use it.

    Not that of a gapped hit: its start is not known, and strands are to be equal.
    """
    if not gapless:
        return score
    return score - clip * (int64(read_start > 0) + int64(read_end < length))


@compiled(inline="always")
def clip_penalised(hits, i, length, clip):
    """A hit's score with its clipped ends penalised."""
    return penalised_score(
        np.int64(hits.scores[i]), hits.gapless[i], hits.read_starts[i], hits.read_ends[i], length,
        clip,
    )  # fmt: skip


# Inlined where hits are handed on as a tuple: a call counts references to all of its arrays, and
# takes half as long again.
@compiled(inline="always")
def suboptimal_of(hits, read, primary, length, clip, margin):
    """The best other hit of the same bases of a read, its raw and its clip-penalised score, and how
    many such hits are within `margin` of the primary one.
    """
    best = best_penalised = np.int64(0)
    n = 0
    least = clip_penalised(hits, primary, length, clip) - margin
    span = read_span(hits, primary, length)
    for i in range(hits.offsets[read], hits.offsets[read + 1]):
        if i == primary or not same_bases(span, read_span(hits, i, length)):
            continue
        penalised = clip_penalised(hits, i, length, clip)
        best = max(best, np.int64(hits.scores[i]))
        best_penalised = max(best_penalised, penalised)
        n += penalised >= least
    return best, best_penalised, n


@compiled(inline="always")
def hidden_score(length, match, loss):
    """What a locus of a short read scores at most that no seed of the last round shows."""
    return match * length - loss * (length // SHORTEST_SEED)


@compiled(inline="always")
def _lost_to_others(n):
    """What n suboptimal hits nearly as good take from a mapping quality."""
    return int(4.343 * math.log(n + 1) + ROUNDING) if n > 0 else 0


@compiled(inline="always")
def length_factor(aligned):
    """What an alignment of so many bases counts in bwa's mapping quality."""
    return 1.0 if aligned < 50 else 3.0 / math.log(aligned)


@compiled(inline="always")
def unique_suboptimal(match):
    """The suboptimal score that bwa takes a unique hit to have."""
    return _SHORTEST_SEED * match


@compiled(inline="always")
def unrounded_mapq(score, suboptimal, aligned, factor, match, mismatch):
    """bwa's mapping quality by itself, float64, `factor` being the `length_factor`; both engines
    use it. The suboptimal score is the lower one.
    """
    identity = 1.0 - (aligned * match - score) / (match - mismatch) / aligned
    factor *= identity * identity
    return 6.02 * (score - suboptimal) / match * factor * factor


@compiled
def single_end_mapq(score, suboptimal, n_suboptimal, aligned, unlocated, match, mismatch):
    """bwa's mem_approx_mapq_se."""
    suboptimal = max(suboptimal, unlocated - UNLOCATED_LOSS * match, unique_suboptimal(match))
    if suboptimal >= score:
        return 0
    factor = length_factor(aligned)
    quality = int(unrounded_mapq(score, suboptimal, aligned, factor, match, mismatch) + ROUNDING)
    return min(max(quality - _lost_to_others(n_suboptimal), 0), HIGHEST_QUALITY)


@compiled(inline="always")
def quality_beside(less, match):
    """The mapping quality of a hit beside another whose score is so much less."""
    return mapping_quality(likelihood(SCORE_UNITS * less, match))


@compiled(inline="always")
def is_near(less, length, near):
    """Whether a hit that scores so much less is a near one; both engines use it."""
    return length >= SHORT_READ and less <= near


@compiled(inline="always")
def others_beside(score, near, others, unlocated, length, match, mismatch):
    """How likely all hits beside one are together, those included that were not located or that no
    seed shows; both engines use it.

    Parameters
    ----------
    score : int64
        The clip-penalised score of the hit.
    near, others : int64
        The likelihoods of located near hits together, and of located hits that are not near.
    unlocated : int64
        What a hit that is not located is likely to score, or 0.
    """
    if unlocated:
        loss = match * (UNLOCATED_LOSS if length >= SHORT_READ else SHORT_UNLOCATED_LOSS)
        others += likelihood(SCORE_UNITS * (score - unlocated + loss), match)
        others *= UNLOCATED_RIVALS
    others += NEAR_RIVALS * near
    if unlocated and length >= SHORT_READ:
        above = score - score_bound_of(unlocated, length, match)
        others += likelihood(SCORE_UNITS * (above + BOUND_ROOM * match) // BOUND_SLOPE, match)
    if length < SHORT_READ:
        hidden = hidden_score(length, match, match - mismatch)
        others += likelihood(SCORE_UNITS * (score - hidden), match) // HIDDEN_ONCE_IN
    return others


@compiled(inline="always")
def select(hits, reads, scores, read, hit, primary):
    """Make a hit the primary one of its read; returns the best clip-penalised score of others."""
    length, match = reads.lengths[read], scores.match
    score = clip_penalised(hits, hit, length, scores.clip)
    span = read_span(hits, hit, length)
    best = best_penalised = np.int64(0)
    near = others = np.int64(0)
    for i in range(hits.offsets[read], hits.offsets[read + 1]):
        # The others score less still, and count nothing.
        if hits.scores[i] <= min(best_penalised, score - MOST_LESS * match):
            break
        if i == hit or not same_bases(span, read_span(hits, i, length)):
            continue
        penalised = clip_penalised(hits, i, length, scores.clip)
        best = max(best, np.int64(hits.scores[i]))
        best_penalised = max(best_penalised, penalised)
        likely = likelihood(SCORE_UNITS * (score - penalised), match)
        if is_near(score - penalised, length, scores.near):
            near += likely
        else:
            others += likely
    others = others_beside(
        score, near, others, np.int64(reads.unlocated[read]), length, match, scores.mismatch
    )
    alone = single_end_mapq(
        score, 0, 0, hits.ends[hit] - hits.starts[hit], 0, match, scores.mismatch
    )
    primary.hits[read], primary.suboptimal[read] = hit, best
    primary.qualities[read] = min(alone, mapping_quality(others))
    return best_penalised


@compiled
def select_unpaired(hits, reads, scores, primary):
    """Select the best hit of every read that is in no proper pair."""
    hits, reads, primary = uncounted((hits, reads, primary))
    for read in range(hits.offsets.size - 1):
        begin, end = hits.offsets[read], hits.offsets[read + 1]
        if primary.proper[read] or begin == end or hits.scores[begin] < scores.least:
            continue
        # Among equals one is drawn by the read's own number, so that no repeat is favoured.
        length = reads.lengths[read]
        best, equals = np.int64(_NOTHING), 0
        for i in range(begin, end):
            penalised = clip_penalised(hits, i, length, scores.clip)
            if hits.scores[i] >= scores.least and penalised >= best:
                equals = equals + 1 if penalised == best else 1
                best = penalised
        drawn = drawn_of(reads.seeds[read], equals)
        selected = begin
        for i in range(begin, end):
            penalised = clip_penalised(hits, i, length, scores.clip)
            if hits.scores[i] >= scores.least and penalised == best:
                if drawn == 0:
                    selected = i
                drawn -= 1
        select(hits, reads, scores, read, selected, primary)


# --------------------------------------------------------------------------------------------------
# Hits on ALT contigs, by bwa's rules: they take nothing from hits on the primary assembly.
#
#     chr6     |====================>          the primary record; its quality is that of chr6 alone
#     alt 1    |====================>          scores more: a supplementary record, and pa on chr6's
#     alt 2    |================>              scores less than alt 1: named in the XA of alt 1
#
# A read that aligns to the primary assembly has its primary record, quality and split parts from
# the
# hits there alone. All its hits are then ranked together, best first, of equals those of the
# primary
# assembly first. A hit that shares its bases with no better one leads; any other belongs to the
# first
# leader that it shares bases with, and is named in that one's XA. Leaders on ALT contigs get
# records.


@dataclass(frozen=True)
class AltHits:
    """What becomes of the hits of reads that have some on ALT contigs.

    Attributes
    ----------
    lines : ndarray, shape=(n,), dtype=int64
        Hits that get records, in the order of the reads.
    qualities : ndarray, shape=(n,), dtype=uint8
    suboptimal : ndarray, shape=(n,), dtype=int32
    secondary : ndarray, shape=(m,), dtype=int64
        Hits that are named in an XA.
    named_by : ndarray, shape=(m,), dtype=int64
        The number of the line whose record names it, or -1 for the read's primary record.
    better_scores : ndarray, shape=(n_reads,), dtype=int64
        Of the leader on an ALT contig that a read's primary hit belongs to; 0 where there is none.
    """

    lines: np.ndarray
    qualities: np.ndarray
    suboptimal: np.ndarray
    secondary: np.ndarray
    named_by: np.ndarray
    better_scores: np.ndarray


def on_alt_contigs(hits: ScoredHits, contig_starts: np.ndarray, alt: tuple[int, ...]) -> np.ndarray:
    """Whether each hit (bool) lies on one of the ALT contigs."""
    is_alt = np.zeros(len(contig_starts), bool)
    is_alt[list(alt)] = True
    # The end of a hit is known, its start may not be.
    return is_alt[np.searchsorted(contig_starts, hits.ends - 1, side="right") - 1]


def assembly_rows(hits: ScoredHits, on_alt: np.ndarray, least_score: int) -> np.ndarray:
    """The hits that compete for the primary records: all but those on ALT contigs, which only count
    for reads that align nowhere else. dtype int64.
    """
    has_other = np.zeros(len(hits.offsets) - 1, bool)
    has_other[hits.reads[~on_alt & (hits.scores >= least_score)]] = True
    return np.flatnonzero(~(on_alt & has_other[hits.reads]))


def unlocated_on_assembly(
    hits: ScoredHits, on_alt: np.ndarray, unlocated: np.ndarray
) -> np.ndarray:
    """What an unlocated hit on the primary assembly is likely to score (Candidates.unlocated).

    Where most hits of a read that were located are on ALT contigs, the others are taken to be, too.
    """
    n_alt = np.bincount(hits.reads[on_alt], minlength=len(unlocated))
    return np.where(2 * n_alt > np.diff(hits.offsets), 0, unlocated).astype(unlocated.dtype)


def alt_hits(
    hits: ScoredHits,
    on_alt: np.ndarray,
    lengths: np.ndarray,
    primary: np.ndarray,
    parameters: MappingParameters,
) -> AltHits:
    """Which hits of reads with hits on ALT contigs get records, and which are named in XA.

    Parameters
    ----------
    hits : ScoredHits
        All hits of the reads.
    on_alt : ndarray, dtype=bool
        Whether each lies on an ALT contig.
    primary : ndarray, shape=(n_reads,), dtype=int64
        The primary hit of every read, or -1.
    """
    n_reads = len(hits.offsets) - 1
    has_alt = np.bincount(hits.reads[on_alt], minlength=n_reads) > 0
    reads = np.flatnonzero(has_alt & (primary >= 0))
    counts = np.diff(hits.offsets)[reads]
    most = int(counts.sum())
    lines, secondary, named_by = (np.empty(most, np.int64) for _ in range(3))
    qualities, suboptimal = np.empty(most, np.uint8), np.empty(most, np.int32)
    better_scores = np.zeros(n_reads, np.int64)
    order, leaders = (np.empty(counts.max(initial=0), np.int64) for _ in range(2))
    n_lines, n_secondary = _rank_together(
        hits, on_alt, lengths, primary, reads, parameters.least_score, parameters.match,
        parameters.mismatch, parameters.most_loss, parameters.secondary_share,
        parameters.most_secondary, parameters.most_secondary_alt, order, leaders, lines, qualities,
        suboptimal, secondary, named_by, better_scores,
    )  # fmt: skip
    return AltHits(
        lines[:n_lines], qualities[:n_lines], suboptimal[:n_lines], secondary[:n_secondary],
        named_by[:n_secondary], better_scores,
    )  # fmt: skip


@compiled
def _rank_together(
    hits, on_alt, lengths, primary, reads, least, match, mismatch, margin, share, most, most_alt,
    order, leaders, lines, qualities, suboptimal, secondary, named_by, better_scores,
):  # fmt: skip
    hits = uncounted(hits)
    n_lines, n_secondary = 0, 0
    for read in reads:
        length, chosen = lengths[read], primary[read]
        first = hits.offsets[read]
        n = hits.offsets[read + 1] - first
        # Insertion sort: they are in order but for equals.
        for i in range(n):
            j = i
            if not on_alt[first + i]:
                while (
                    j > 0
                    and on_alt[order[j - 1]]
                    and hits.scores[order[j - 1]] == hits.scores[first + i]
                ):
                    order[j] = order[j - 1]
                    j -= 1
            order[j] = first + i
        for at in range(n):
            i = order[at]
            leader = i
            span = read_span(hits, i, length)
            for before in range(at):
                other = order[before]
                if leaders[other - first] == other and same_bases(
                    span, read_span(hits, other, length)
                ):
                    leader = other
                    break
            leaders[i - first] = leader
        leader = leaders[chosen - first]
        if on_alt[leader] and not on_alt[chosen]:
            better_scores[read] = hits.scores[leader]
        elif leader != chosen:
            # Of hits of one kind the primary one leads, though the other may score more.
            for i in range(n):
                if leaders[i] == leader:
                    leaders[i] = chosen
        first_line = n_lines
        for at in range(n):
            i = order[at]
            if on_alt[chosen] or not on_alt[i] or leaders[i - first] != i:
                continue
            if hits.scores[i] < least:
                continue
            lines[n_lines] = i
            # Both ends of parts may be clipped: there is no penalty for that.
            suboptimal[n_lines], other_score, near = suboptimal_of(hits, read, i, length, 0, margin)
            aligned = hits.ends[i] - hits.starts[i]
            qualities[n_lines] = single_end_mapq(
                hits.scores[i], other_score, near, aligned, 0, match, mismatch
            )
            n_lines += 1
        for line in range(first_line - 1, n_lines):
            owner = chosen if line < first_line else lines[line]
            begin = n_secondary
            limit = most
            for kind in (False, True):
                for at in range(n):
                    i = order[at]
                    if on_alt[i] != kind or i == owner or leaders[i - first] != owner:
                        continue
                    if hits.scores[i] < share * hits.scores[owner]:
                        continue
                    limit = most_alt if kind else limit
                    secondary[n_secondary] = i
                    named_by[n_secondary] = line if line >= first_line else -1
                    n_secondary += 1
            if n_secondary - begin > limit:
                n_secondary = begin
    return n_lines, n_secondary


# --------------------------------------------------------------------------------------------------
# The 5' part of a split read as its primary hit, for Hi-C: it is where the read's end lies.
#
#     read      0 ..................... 150
#     hit 1             |==================>      scores most
#     hit 2     |======>                          the 5' part: primary; hit 1 becomes supplementary
#
# The other part lies beyond the ligation, at the locus of the mate.


def five_prime_first(
    hits: ScoredHits,
    lengths: np.ndarray,
    primary: PrimarySelection,
    parameters: MappingParameters,
) -> PrimarySelection:
    """The selection with the part of each read that begins first, as of `bwa mem -5`.

    Parts are the primary hit, and hits that share bases with neither it nor a better part.
    """
    moved = PrimarySelection(*map(np.copy, primary))
    counts = np.diff(hits.offsets)
    reads = np.flatnonzero((primary.hits >= 0) & (counts > 1))
    parts = np.empty(counts.max(initial=0), np.int64)
    _take_first_parts(
        hits, lengths, reads, parameters.least_score, parameters.match, parameters.mismatch,
        parameters.most_loss, parts, moved,
    )  # fmt: skip
    return moved


@compiled
def _take_first_parts(hits, lengths, reads, least, match, mismatch, margin, parts, primary):
    hits, primary = uncounted((hits, primary))
    for read in reads:
        length = lengths[read]
        first = parts[0] = primary.hits[read]
        n = 1
        for i in range(hits.offsets[read], hits.offsets[read + 1]):
            if hits.scores[i] < least:
                break
            span = read_span(hits, i, length)
            taken = False
            for at in range(n):
                taken = taken or same_bases(span, read_span(hits, parts[at], length))
            if taken:
                continue
            parts[n] = i
            n += 1
            if span[0] < read_span(hits, first, length)[0]:
                first = i
        if first != parts[0]:
            primary.hits[read] = first
            # Both ends of parts may be clipped: there is no penalty for that.
            primary.suboptimal[read], other, near = suboptimal_of(
                hits, read, first, length, 0, margin
            )
            primary.qualities[read] = single_end_mapq(
                hits.scores[first], other, near, hits.ends[first] - hits.starts[first], 0, match,
                mismatch,
            )  # fmt: skip
