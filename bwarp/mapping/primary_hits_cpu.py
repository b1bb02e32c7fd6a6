"""Select the primary hits of reads without mates, and compute mapping qualities.

The mapping quality reflects the probability that the read is from elsewhere: every other hit of the
same bases is less likely the less it scores (likelihoods.py), and the likelihoods of all are added.
A read without another hit gets the quality of bwa.

Hits are compared by clip-penalised scores: two mismatches at an end of a read are worse than one,
although both are clipped to the same raw score.

Another hit is near if it scores less by at most one difference. Near hits indicate a repeat whose
copies differ by one difference, here or in a copy that was not found: each counts `NEAR_RIVALS`
times. In a repeat of two copies that were both found, it counts less if the read has few
differences, because another error at the base that differs is then less likely. Short reads have
too many near hits for that.

Unlocated hits have a bound (Candidates.unlocated) instead of a score. They are copies of a repeat
of which other copies were located; one of them is assumed to score `UNLOCATED_LOSS` below its
likely score, and there are several. How often it scores more was measured: see `BOUND_ROOM`. A
short read may also have a locus that no seed shows: one with a mismatch in each of its shortest
seeds.

The file also ranks hits on ALT contigs, and selects the 5' part of split reads for Hi-C.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy import int64, uint64

from bwarp.mapping.insert_size import SCORE_UNITS
from bwarp.mapping.likelihoods import HIGHEST_QUALITY, MOST_LESS, likelihood, mapping_quality
from bwarp.mapping.parameters import SHORT_READ, MappingParameters
from bwarp.mapping.scored_hits_cpu import ScoredHits, longest_between
from bwarp.mapping.seeds_cpu import score_bound_of
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.timeline import on_timeline
from bwarp.runtime.uncounted import uncounted

# --------------------------------------------------------------------------------------------------
# Numbers of templates that break ties: pseudo-random, and the same in every run.
#
# Both engines use them. Among equal hits of a read, one is drawn by the number of its template;
# among equal pairs, the one with the highest number is taken.


#: Odd numbers without a pattern in their bits.
_MIXER, _SECOND_MIXER = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9

#: More than the number of hits of any read.
_HITS = 7919


@compiled(inline="always")
def tie_seed(template):
    """Return the number, uint64, of a template (uint64)."""
    mixed = uint64((template + uint64(1)) * uint64(_MIXER))
    mixed = uint64((mixed ^ (mixed >> uint64(29))) * uint64(_SECOND_MIXER))
    return mixed ^ (mixed >> uint64(32))


@compiled(inline="always")
def drawn_of(seed, equals):
    """Return the index of the hit drawn among equal hits."""
    return int64(seed % uint64(equals))


@compiled(inline="always")
def pair_tie(seed, i, j):
    """Return the number, uint64, of a template's pair of hits, `i` of read 1 and `j` of read 2."""
    return uint64((seed ^ uint64(i * _HITS + j)) * uint64(_MIXER))


@compiled
def seeds_of_templates(templates: np.ndarray) -> np.ndarray:
    """Return the numbers of templates."""
    seeds = np.empty_like(templates)
    for i in range(templates.size):
        seeds[i] = tie_seed(templates[i])
    return seeds


UNLOCATED_LOSS = 10
SHORT_UNLOCATED_LOSS = 5
_SHORTEST_SEED = 19

#: Length of the seeds of the last round.
SHORTEST_SEED = MappingParameters.short.length

#: One in this number of short reads has a locus that seeds do not show.
HIDDEN_ONCE_IN = 10_000

#: If hits are not located, the number of rivals is multiplied by this.
UNLOCATED_RIVALS = 4

#: Weight of a near hit of a read that is not short.
NEAR_RIVALS = 64

#: Its weight in a repeat of few copies, for a read without differences; for a read with n
#: differences, n + 1 times as much. Chosen so that a read with two differences, whose other copy is
#: correct in one of 130 cases if 3 % of the bases differ, has a quality below 10.
FEW_NEAR_RIVALS = 12

#: A repeat has few copies if its near hits are at most as likely as this number of hits with one
#: mismatch.
FEW_COPIES = 1

#: A read that scores as much as the bound of unlocated hits has another hit once in 1,100 times, as
#: if that scored 25 / 4 matches less; for every 4 matches more, one match less.
BOUND_ROOM = 25
BOUND_SLOPE = 4

#: Added to a quality before it is truncated to an integer, as in bwa.
ROUNDING = 0.499

#: Lower than any score.
_NOTHING = -(1 << 60)


class PrimarySelection(NamedTuple):
    """The selected hit of each read.

    Attributes
    ----------
    hits : ndarray, shape=(n_reads,), dtype=int64
        The index of the primary hit, or -1.
    qualities : ndarray, shape=(n_reads,), dtype=uint8
    suboptimal : ndarray, shape=(n_reads,), dtype=int32
        The best score of any other hit of the same bases, 0 if there is none: XS.
    proper : ndarray, shape=(n_reads,), dtype=bool
    """

    hits: np.ndarray
    qualities: np.ndarray
    suboptimal: np.ndarray
    proper: np.ndarray


class Reads(NamedTuple):
    """Data of reads other than their hits.

    `unlocated` refers to the bases of a read in `spans`: all, or the best part of a split read.
    """

    lengths: np.ndarray
    unlocated: np.ndarray
    spans: np.ndarray
    seeds: np.ndarray


class Scores(NamedTuple):
    """Scores; a hit is near if it scores up to `near` less than another."""

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
    spans: np.ndarray | None = None,
) -> PrimarySelection:
    """Select primary hits of reads without mates; `seeds` (uint64 per read) break ties.

    Parameters
    ----------
    spans : ndarray, shape=(n_reads, 2), dtype=int64, or None
        The bases of each read to which `unlocated` refers, by default all.
    """
    primary = no_selection(len(lengths))
    spans = whole_reads(lengths) if spans is None else spans
    reads = Reads(lengths, unlocated, spans, seeds)
    select_unpaired(hits, reads, scores_of(parameters), primary)
    return primary


def whole_reads(lengths: np.ndarray) -> np.ndarray:
    """Return the first and the end of the bases of each read, shape (n_reads, 2)."""
    return np.stack([np.zeros_like(lengths), lengths], axis=1)


def no_selection(n_reads: int) -> PrimarySelection:
    """Return a selection without primary hits."""
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
    """Return the bases of the read, as sequenced, that a hit aligns; both engines use it."""
    return (length - read_end, length - read_start) if strand else (read_start, read_end)


@compiled(forceinline=True)
def read_span(hits, i, length):
    """Return the bases of the read, as sequenced, that a hit aligns."""
    start, end = np.int64(hits.read_starts[i]), np.int64(hits.read_ends[i])
    return span_of(hits.strands[i], start, end, length)


@compiled(inline="always")
def same_bases(span, span_2):
    """Return whether two stretches of a read share at least half of the shorter one."""
    shared = min(span[1], span_2[1]) - max(span[0], span_2[0])
    return 2 * shared >= min(span[1] - span[0], span_2[1] - span_2[0])


@compiled(inline="always")
def penalised_score(score, gapless, read_start, read_end, length, clip):
    """Return the clip-penalised score of a hit; both engines use it.

    Gapped hits are not penalised: their start is unknown, and strands must be treated alike.
    """
    if not gapless:
        return score
    return score - clip * (int64(read_start > 0) + int64(read_end < length))


@compiled(forceinline=True)
def clip_penalised(hits, i, length, clip):
    """Return the clip-penalised score of a hit."""
    return penalised_score(
        np.int64(hits.scores[i]), hits.gapless[i], hits.read_starts[i], hits.read_ends[i], length,
        clip,
    )  # fmt: skip


# Inlined where hits are passed as a tuple: a call counts references to all of its arrays, and takes
# half as long again.
@compiled(forceinline=True)
def suboptimal_of(hits, read, primary, length, clip, margin):
    """Return the best other hit of the same bases of a read, its raw and clip-penalised scores, and
    the number of such hits within `margin` of the primary one.
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


@compiled(forceinline=True)
def hidden_score(length, match, loss):
    """Return the maximum score of a locus of a short read that no seed of the last round shows."""
    return match * length - loss * (length // SHORTEST_SEED)


@compiled(forceinline=True)
def _lost_to_others(n):
    """Return the reduction of a mapping quality by n suboptimal hits that are nearly as good."""
    return int(4.343 * math.log(n + 1) + ROUNDING) if n > 0 else 0


@compiled(inline="always")
def length_factor(aligned):
    """Return the factor of an alignment of this length in bwa's mapping quality."""
    return 1.0 if aligned < 50 else 3.0 / math.log(aligned)


@compiled(inline="always")
def unique_suboptimal(match):
    """Return the suboptimal score that bwa assumes for a unique hit."""
    return _SHORTEST_SEED * match


@compiled(inline="always")
def unrounded_mapq(score, suboptimal, aligned, factor, match, mismatch):
    """Return bwa's mapping quality before rounding, float64, with `factor` of `length_factor`; both
    engines use it. The suboptimal score must be lower.
    """
    identity = 1.0 - (aligned * match - score) / (match - mismatch) / aligned
    factor *= identity * identity
    return 6.02 * (score - suboptimal) / match * factor * factor


@compiled
def single_end_mapq(score, suboptimal, n_suboptimal, aligned, unlocated, match, mismatch):
    """Return the mapping quality of bwa's mem_approx_mapq_se."""
    suboptimal = max(suboptimal, unlocated - UNLOCATED_LOSS * match, unique_suboptimal(match))
    if suboptimal >= score:
        return 0
    factor = length_factor(aligned)
    quality = int(unrounded_mapq(score, suboptimal, aligned, factor, match, mismatch) + ROUNDING)
    return min(max(quality - _lost_to_others(n_suboptimal), 0), HIGHEST_QUALITY)


@compiled(forceinline=True)
def rank_part(hits, read, i, length, scores):
    """Return the best score of other hits of the bases of a part of a split read, and the mapping
    quality of the part; both of its ends may be clipped without a penalty."""
    suboptimal, other, near = suboptimal_of(hits, read, i, length, 0, scores.near)
    aligned, match = hits.ends[i] - hits.starts[i], scores.match
    quality = single_end_mapq(hits.scores[i], other, near, aligned, 0, match, scores.mismatch)
    return suboptimal, quality


@compiled(inline="always")
def is_near(less, length, near):
    """Return whether a hit that scores `less` below another is near; both engines use it."""
    return length >= SHORT_READ and less <= near


@compiled(inline="always")
def above_unlocated(score, unlocated, length, match):
    """Return by how much a hit scores more than any that was not located; both engines use it."""
    return score - (score_bound_of(unlocated, length, match) if unlocated else int64(0))


@compiled(inline="always")
def has_few_copies(near, most, above, match, mismatch):
    """Return whether a repeat has few copies, located if they matter; both engines use it.

    Parameters
    ----------
    near : int64
        Sum of the likelihoods of the near hits, at most that of `most` hits with one mismatch.
    above : int64
        By how much the best hit scores more than those not located, at least by a mismatch.
    """
    loss = match - mismatch
    return near <= most * likelihood(SCORE_UNITS * loss, match) and above >= loss


@compiled(inline="always")
def others_beside(score, near, others, unlocated, length, match, mismatch):
    """Return the likelihood of all other hits together, including hits that were not located or
    that no seed shows; both engines use it.

    Parameters
    ----------
    score : int64
        The clip-penalised score of the hit.
    near, others : int64
        Sums of the likelihoods of located near hits, and of other located hits.
    unlocated : int64
        Likely score of a hit that is not located, or 0.
    """
    if unlocated:
        loss = match * (UNLOCATED_LOSS if length >= SHORT_READ else SHORT_UNLOCATED_LOSS)
        others += likelihood(SCORE_UNITS * (score - unlocated + loss), match)
        others *= UNLOCATED_RIVALS
    above = above_unlocated(score, unlocated, length, match)
    weight = int64(NEAR_RIVALS)
    if has_few_copies(near, FEW_COPIES, above, match, mismatch):
        differences = (match * length - score) // (match - mismatch)
        weight = min(weight, FEW_NEAR_RIVALS * (differences + 1))
    others += weight * near
    if unlocated and length >= SHORT_READ:
        others += likelihood(SCORE_UNITS * (above + BOUND_ROOM * match) // BOUND_SLOPE, match)
    if length < SHORT_READ:
        hidden = hidden_score(length, match, match - mismatch)
        others += likelihood(SCORE_UNITS * (score - hidden), match) // HIDDEN_ONCE_IN
    return others


@compiled(forceinline=True)
def unlocated_of(reads, read, span):
    """Return the likely score of an unlocated hit of these bases of a read, 0 if there is none."""
    begin, end = reads.spans[read, 0], reads.spans[read, 1]
    return np.int64(reads.unlocated[read]) if same_bases(span, (begin, end)) else np.int64(0)


@compiled(forceinline=True)
def select(hits, reads, scores, read, hit, primary):
    """Make a hit primary; return the best clip-penalised score of other hits of the same bases, the
    likely score of an unlocated one, and by how much the hit scores more than that can.
    """
    length, match = reads.lengths[read], scores.match
    score = clip_penalised(hits, hit, length, scores.clip)
    span = read_span(hits, hit, length)
    best = best_penalised = np.int64(0)
    near = others = np.int64(0)
    for i in range(hits.offsets[read], hits.offsets[read + 1]):
        # The others score even less, and have likelihood 0.
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
    unlocated = unlocated_of(reads, read, span)
    searched = reads.spans[read, 1] - reads.spans[read, 0]
    # A part of a split read was searched without the rest, and so without clipped ends.
    scored = score if searched == length else np.int64(hits.scores[hit])
    others = others_beside(scored, near, others, unlocated, searched, match, scores.mismatch)
    alone = single_end_mapq(
        score, 0, 0, hits.ends[hit] - hits.starts[hit], 0, match, scores.mismatch
    )
    primary.hits[read], primary.suboptimal[read] = hit, best
    primary.qualities[read] = min(alone, mapping_quality(others))
    return best_penalised, unlocated, above_unlocated(scored, unlocated, searched, match)


@compiled(counted=False)
def select_unpaired(hits, reads, scores, primary):
    """Select the best hit of every read that is not in a proper pair."""
    for read in range(hits.offsets.size - 1):
        begin, end = hits.offsets[read], hits.offsets[read + 1]
        if primary.proper[read] or begin == end or hits.scores[begin] < scores.least:
            continue
        # Among equals, draw one by the read's number, so that no repeat is favoured.
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
# Hits on ALT contigs, by bwa's rules: they do not affect hits on the primary assembly.
#
#     chr6     |====================>          the primary record; its quality is that of chr6 alone
#     alt 1    |====================>          scores more: a supplementary record, and pa on chr6's
#     alt 2    |================>              scores less than alt 1: listed in the XA of alt 1
#
# If a read aligns to the primary assembly, its primary record, quality and split parts are those of
# its hits there. All its hits are then ranked together, best first, and hits on the primary
# assembly first among equals. A hit that shares no bases with a better one leads; any other belongs
# to the first leader with shared bases, and is listed in its XA. Leaders on ALT contigs get
# records.


class AltHits(NamedTuple):
    """The selected hits of reads with hits on ALT contigs.

    Attributes
    ----------
    lines : ndarray, shape=(n,), dtype=int64
        Hits that get records, in the order of the reads.
    qualities : ndarray, shape=(n,), dtype=uint8
    suboptimal : ndarray, shape=(n,), dtype=int32
    secondary : ndarray, shape=(m,), dtype=int64
        Hits listed in an XA.
    named_by : ndarray, shape=(m,), dtype=int64
        Index in `lines` of the record that lists the hit, or -1 for the read's primary record.
    better_scores : ndarray, shape=(n_reads,), dtype=int64
        Score of the leader on an ALT contig to which the primary hit belongs; 0 without one.
    """

    lines: np.ndarray
    qualities: np.ndarray
    suboptimal: np.ndarray
    secondary: np.ndarray
    named_by: np.ndarray
    better_scores: np.ndarray


class AltLimits(NamedTuple):
    """A hit is listed in an XA if it scores `share` of the record's hit or more, and if at most
    `most` hits are, or `most_alt` with some on ALT contigs."""

    share: float
    most: int
    most_alt: int


def on_alt_contigs(hits: ScoredHits, contig_starts: np.ndarray, alt: tuple[int, ...]) -> np.ndarray:
    """Return whether each hit (bool) is on an ALT contig."""
    is_alt = np.zeros(len(contig_starts), bool)
    is_alt[list(alt)] = True
    # The end of a hit is known; its start may not be.
    return is_alt[np.searchsorted(contig_starts, hits.ends - 1, side="right") - 1]


def assembly_rows(hits: ScoredHits, on_alt: np.ndarray, least_score: int) -> np.ndarray:
    """Return the hits that compete for primary records, int64: all hits except those on ALT
    contigs, which count only for reads that align nowhere else.
    """
    has_other = np.zeros(len(hits.offsets) - 1, bool)
    has_other[hits.reads[~on_alt & (hits.scores >= least_score)]] = True
    return np.flatnonzero(~(on_alt & has_other[hits.reads]))


def unlocated_on_assembly(
    hits: ScoredHits, on_alt: np.ndarray, unlocated: np.ndarray
) -> np.ndarray:
    """Return the likely score of an unlocated hit on the primary assembly (Candidates.unlocated).

    If most located hits of a read are on ALT contigs, the unlocated ones are assumed to be, too.
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
    """Choose which hits of reads with hits on ALT contigs get records, and which are listed in XA.

    Parameters
    ----------
    hits : ScoredHits
        All hits of the reads.
    on_alt : ndarray, dtype=bool
        Whether each hit is on an ALT contig.
    primary : ndarray, shape=(n_reads,), dtype=int64
        The primary hit of each read, or -1.
    """
    n_reads = len(hits.offsets) - 1
    has_alt = np.bincount(hits.reads[on_alt], minlength=n_reads) > 0
    reads = np.flatnonzero(has_alt & (primary >= 0))
    counts = np.diff(hits.offsets)[reads]
    most = int(counts.sum())
    found = AltHits(
        np.empty(most, np.int64), np.empty(most, np.uint8), np.empty(most, np.int32),
        np.empty(most, np.int64), np.empty(most, np.int64), np.zeros(n_reads, np.int64),
    )  # fmt: skip
    p = parameters
    limits = AltLimits(p.secondary_share, p.most_secondary, p.most_secondary_alt)
    n_lines, n_secondary = _rank_together(
        hits, on_alt, lengths, primary, reads, scores_of(parameters), limits, found
    )
    return AltHits(
        *(column[:n_lines] for column in found[:3]),
        *(column[:n_secondary] for column in found[3:5]),
        found.better_scores,
    )


@compiled
def _rank_together(hits, on_alt, lengths, primary, reads, scores, limits, found):
    """Write the hits of all reads; return the numbers of lines and of secondary hits."""
    hits, found = uncounted((hits, found))
    lines = found.lines
    order, leaders = np.empty((2, longest_between(hits.offsets)), np.int64)
    n_lines, n_secondary = 0, 0
    for read in reads:
        length, chosen = lengths[read], primary[read]
        first = hits.offsets[read]
        n = hits.offsets[read + 1] - first
        # Insertion sort, because hits are in order except for equals.
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
            found.better_scores[read] = hits.scores[leader]
        elif leader != chosen:
            # Among hits of one assembly the primary hit leads, although another may score more.
            for i in range(n):
                if leaders[i] == leader:
                    leaders[i] = chosen
        first_line = n_lines
        for at in range(n):
            i = order[at]
            if on_alt[chosen] or not on_alt[i] or leaders[i - first] != i:
                continue
            if hits.scores[i] < scores.least:
                continue
            lines[n_lines] = i
            found.suboptimal[n_lines], found.qualities[n_lines] = rank_part(
                hits, read, i, length, scores
            )
            n_lines += 1
        for line in range(first_line - 1, n_lines):
            owner = chosen if line < first_line else lines[line]
            begin = n_secondary
            limit = limits.most
            for kind in (False, True):
                for at in range(n):
                    i = order[at]
                    if on_alt[i] != kind or i == owner or leaders[i - first] != owner:
                        continue
                    if hits.scores[i] < limits.share * hits.scores[owner]:
                        continue
                    limit = limits.most_alt if kind else limit
                    found.secondary[n_secondary] = i
                    found.named_by[n_secondary] = line if line >= first_line else -1
                    n_secondary += 1
            if n_secondary - begin > limit:
                n_secondary = begin
    return n_lines, n_secondary


# --------------------------------------------------------------------------------------------------
# The 5' part of a split read as its primary hit, for Hi-C: it is at the end of the template.
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
    """Return the selection with the first part of each read as primary, as in `bwa mem -5`.

    Parts are the primary hit, and hits that share no bases with it or a better part.
    """
    moved = PrimarySelection(*map(np.copy, primary))
    reads = np.flatnonzero((primary.hits >= 0) & (np.diff(hits.offsets) > 1))
    _take_first_parts(hits, lengths, reads, scores_of(parameters), moved)
    return moved


@compiled
def _take_first_parts(hits, lengths, reads, scores, primary):
    hits, primary = uncounted((hits, primary))
    parts = np.empty(longest_between(hits.offsets), np.int64)
    for read in reads:
        length = lengths[read]
        first = parts[0] = primary.hits[read]
        n = 1
        for i in range(hits.offsets[read], hits.offsets[read + 1]):
            if hits.scores[i] < scores.least:
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
            primary.suboptimal[read], primary.qualities[read] = rank_part(
                hits, read, first, length, scores
            )
