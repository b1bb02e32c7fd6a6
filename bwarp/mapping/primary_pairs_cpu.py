"""Select the primary hits of pairs by bwa's rules, and compute their mapping qualities.

A pair of hits with the orientation and distance of the run's pairs scores the sum of both and the
logarithm of the probability of its insert size; it is selected if that exceeds the sum of the two
best hits minus a penalty. The likelihoods of all pairs with another hit of the same bases of a read
are added; the other part of a split read, which often lies nearby, is no rival. Near ones count
more if hits of both reads were not located, as for single reads; for short reads, all count 1.5
times if hits of either were not located.

    hits of read 1     ---->            ---->        ---->
    window of each       [======]         [======]     [======]      where a mate starts
    hits of read 2      <----   <----             <----              by strand and first base

For two reads with many hits each, only the pairs within these windows are evaluated.
"""

import numpy as np

from bwarp.mapping.insert_size import (
    SCORE_UNITS,
    InsertSize,
    five_prime,
    insert_size_scores,
    mate_lies,
)
from bwarp.mapping.likelihoods import likelihood
from bwarp.mapping.pair_scores import (
    better_apart,
    exclude_each_other,
    others_in_repeat,
    pair_quality,
    pairs_beside,
    unlocated_rival,
    unpaired_score,
)
from bwarp.mapping.parameters import SHORT_READ, MappingParameters
from bwarp.mapping.primary_hits_cpu import (
    PrimarySelection,
    Reads,
    clip_penalised,
    no_selection,
    pair_tie,
    read_span,
    scores_of,
    select,
    select_unpaired,
    whole_reads,
)
from bwarp.mapping.scored_hits_cpu import ScoredHits
from bwarp.reference import interval_at
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.timeline import on_timeline

#: Added to the first bases of hits on the reverse strand, to sort them after all others.
_REVERSE = 1 << 40

#: Lower than any score.
_NOTHING = -(1 << 60)


@on_timeline("select primary hits")
def select_paired(
    hits: ScoredHits,
    lengths: np.ndarray,
    unlocated: np.ndarray,
    insert: InsertSize,
    parameters: MappingParameters,
    seeds: np.ndarray,
    contig_starts: np.ndarray,
    spans: np.ndarray | None = None,
) -> PrimarySelection:
    """Select primary hits of pairs, reads 2 i and 2 i + 1; `seeds` and `spans` are as in
    `select_single`.
    """
    primary = no_selection(len(lengths))
    spans = whole_reads(lengths) if spans is None else spans
    reads, scores = Reads(lengths, unlocated, spans, seeds), scores_of(parameters)
    if insert.highest:
        likely = insert_size_scores(insert, parameters.match)
        space = np.empty((4, int(np.diff(hits.offsets).max(initial=0))), np.int64)
        _select_pairs(hits, reads, scores, contig_starts, insert, likely, space, primary)
    select_unpaired(hits, reads, scores, primary)
    return primary


@compiled(inline="always")
def window_of_mate(orientation, strand, first_base, lowest, n_sizes):
    """Return, for a hit of read 1, the strand of read 2, whether it starts to the right (1) or left
    (-1), and the first of its `n_sizes` possible positions; both engines use it.
    """
    mate_strand, side = mate_lies(orientation, 0, strand)
    low = first_base + lowest if side > 0 else first_base - lowest - n_sizes + 1
    return mate_strand, side, low


@compiled(inline="always")
def number_of_size(from_low, side, n_sizes):
    """Return the index of the insert size, from the lowest, of a mate at this distance within its
    window; both engines use it.
    """
    return from_low if side > 0 else n_sizes - 1 - from_low


@compiled(forceinline=True)
def _five_prime_of(hits, i, length):
    return five_prime(
        hits.strands[i], hits.starts[i], hits.ends[i], hits.read_starts[i], hits.read_ends[i],
        length,
    )  # fmt: skip


@compiled(forceinline=True)
def _sort_hits(hits, read, length, clip, positions, rows, penalised):
    """Write a read's hits by strand and first base, with their clip-penalised scores; return the
    best score.
    """
    first, best = hits.offsets[read], np.int64(0)
    n = hits.offsets[read + 1] - first
    for number in range(n):
        row = first + number
        position = _five_prime_of(hits, row, length) + (_REVERSE if hits.strands[row] else 0)
        at = number
        while at > 0 and positions[at - 1] > position:
            positions[at], rows[at], penalised[at] = (
                positions[at - 1],
                rows[at - 1],
                penalised[at - 1],
            )
            at -= 1
        score = clip_penalised(hits, row, length, clip)
        positions[at], rows[at], penalised[at] = position, row, score
        best = max(best, score)
    return best


@compiled(forceinline=True)
def _first_from(positions, n, position):
    """Return the index of the first of n sorted positions at or after `position`."""
    first = np.int64(0)
    while n > 1:
        half = n >> 1
        # Branchless, because the branch would be unpredictable.
        first += half * np.int64(positions[first + half - 1] < position)
        n -= half
    return first + np.int64(positions[first] < position)


@compiled(counted=False)
def _select_pairs(hits, reads, scores, contig_starts, insert, likely, space, primary):
    positions, rows, penalised_b, firsts = space[0], space[1], space[2], space[3]
    match, clip = scores.match, scores.clip
    for a in range(0, hits.offsets.size - 1, 2):
        b = a + 1
        first_a, first_b = hits.offsets[a], hits.offsets[b]
        n_b = hits.offsets[b + 1] - first_b
        if first_a == first_b or n_b == 0:
            continue
        length_a, length_b = reads.lengths[a], reads.lengths[b]
        single_a = np.int64(0)
        single_b = _sort_hits(hits, b, length_b, clip, positions, rows, penalised_b)
        best = np.int64(_NOTHING)
        others_a = others_b = near_a = near_b = np.int64(0)
        best_a, best_b = np.int64(-1), np.int64(-1)
        best_tie, n_pairs = np.uint64(0), 0
        span_a = span_b = (np.int64(0), np.int64(0))
        is_rival = False
        for round_ in range(2):
            for i in range(first_a, first_b):
                if round_ == 1:
                    if firsts[i - first_a] == n_b:
                        continue
                    span = read_span(hits, i, length_a)
                    is_rival = i != best_a and exclude_each_other(span_a, span, length_a)
                penalised = clip_penalised(hits, i, length_a, clip)
                single_a = max(single_a, penalised)
                first_base = _five_prime_of(hits, i, length_a)
                strand, side, low = window_of_mate(
                    insert.orientation, np.int64(hits.strands[i]), first_base, insert.lowest,
                    likely.size,
                )  # fmt: skip
                low += _REVERSE if strand else 0
                if round_ == 0:
                    at = _first_from(positions, n_b, low)
                    near = at < n_b and positions[at] < low + likely.size
                    firsts[i - first_a] = at if near else n_b
                at = firsts[i - first_a]
                if at == n_b:
                    continue
                contig = interval_at(contig_starts, hits.ends[i] - 1)
                contig_start, contig_end = contig_starts[contig], contig_starts[contig + 1]
                while at < n_b and positions[at] < low + likely.size:
                    j = rows[at]
                    size = number_of_size(positions[at] - low, side, likely.size)
                    score = SCORE_UNITS * (penalised + penalised_b[at]) + likely[size]
                    at += 1
                    if not contig_start <= hits.ends[j] - 1 < contig_end:
                        continue
                    if round_ == 1:
                        beside = likelihood(best - score, match)
                        near = beside if best - score <= SCORE_UNITS * scores.near else 0
                        if is_rival:
                            others_a += beside
                            near_a += near
                        span = read_span(hits, j, length_b)
                        if j != best_b and exclude_each_other(span_b, span, length_b):
                            others_b += beside
                            near_b += near
                        continue
                    n_pairs += 1
                    if score < best:
                        continue
                    tie = pair_tie(reads.seeds[a], i - first_a, j - first_b)
                    if score > best or tie > best_tie:
                        best, best_a, best_b, best_tie = score, i, j, tie
            if n_pairs < 2:
                break
            span_a, span_b = read_span(hits, best_a, length_a), read_span(hits, best_b, length_b)
        if best_a < 0:
            continue
        if best <= unpaired_score(single_a, single_b, match):
            continue
        primary.proper[a] = primary.proper[b] = True
        rival_a, unlocated_a, above_a = select(hits, reads, scores, a, best_a, primary)
        rival_b, unlocated_b, above_b = select(hits, reads, scores, b, best_b, primary)
        rivals = unlocated_rival(unlocated_a, rival_a, match)
        rivals += unlocated_rival(unlocated_b, rival_b, match)
        besides = pairs_beside(best, rivals, length_a, length_b, match, scores.mismatch)
        penalised = clip_penalised(hits, best_a, length_a, clip)
        others_a += better_apart(best, penalised, rival_a, single_a, single_b, length_a, match)
        penalised = clip_penalised(hits, best_b, length_b, clip)
        others_b += better_apart(best, penalised, rival_b, single_b, single_a, length_b, match)
        is_short = length_a < SHORT_READ and length_b < SHORT_READ
        above = min(above_a, above_b)
        for read, others, near in ((a, others_a, near_a), (b, others_b, near_b)):
            others = others_in_repeat(
                others + besides, near, is_short, unlocated_a > 0, unlocated_b > 0, above, match,
                scores.mismatch,
            )  # fmt: skip
            alone = np.int64(primary.qualities[read])
            primary.qualities[read] = pair_quality(others, alone)
