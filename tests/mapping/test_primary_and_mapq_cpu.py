"""Primary hits and MAPQ, against the rules in plain Python over all pairs of hits."""

import itertools
import math

import numpy as np
import pytest

from bwarp.mapping.insert_size import InsertSize
from bwarp.mapping.likelihoods import MATCH_QUALITY
from bwarp.mapping.pair_scores import FEW_PAIRS, UNPAIRED_PENALTY
from bwarp.mapping.parameters import SHORT_READ, MappingParameters
from bwarp.mapping.primary_hits_cpu import (
    BOUND_ROOM,
    BOUND_SLOPE,
    FEW_COPIES,
    FEW_NEAR_RIVALS,
    HIDDEN_ONCE_IN,
    NEAR_RIVALS,
    SHORT_UNLOCATED_LOSS,
    UNLOCATED_LOSS,
    UNLOCATED_RIVALS,
    select_single,
)
from bwarp.mapping.primary_pairs_cpu import select_paired
from bwarp.options.common import ORIENTATIONS
from tests.helpers.oracles.mapping_oracle import hits_of_rows

PARAMETERS = MappingParameters()
INSERT = InsertSize(400.0, 50.0, 200, 600)
CONTIG_STARTS = np.array([0, 100_000, 200_000])


def odds(less):
    """Return the likelihood, relative to the best, of a hit that scores this much less."""
    return 10 ** (-MATCH_QUALITY * max(less, 0) / 10) if less < 20 else 0


def quality(others):
    """Return the mapping quality with this many other hits, each as likely as the best."""
    if others < 1e-6:
        return 60
    return 0 if others >= 1 else min(round(10 * math.log10((1 + others) / others)), 60)


def weight_of(near, most, above, of_few):
    """Return how often near hits count that score this much less than the best one."""
    is_few = sum(map(odds, near)) <= most * odds(5) * (1 + 1e-9) and above >= 5
    return of_few if is_few else NEAR_RIVALS


def single_end_mapq(score, others, length, unlocated=0):
    """Return the quality by all other hits, at most bwa's mem_approx_mapq_se of a unique hit."""
    is_short = length < SHORT_READ
    near = [score - other for other in others if score - other <= 7 and not is_short]
    far = [score - other for other in others if score - other > 7 or is_short]
    rivals = sum(map(odds, far))
    if unlocated:
        loss = SHORT_UNLOCATED_LOSS if is_short else UNLOCATED_LOSS
        rivals = UNLOCATED_RIVALS * (rivals + odds(score - unlocated + loss))
    # It probably loses twice the minimum.
    bound = unlocated if is_short or not unlocated else (length + unlocated) // 2
    of_few = min(FEW_NEAR_RIVALS * ((length - score) // 5 + 1), NEAR_RIVALS)
    rivals += weight_of(near, FEW_COPIES, score - bound, of_few) * sum(map(odds, near))
    if unlocated and not is_short:
        rivals += odds((score - bound + BOUND_ROOM) / BOUND_SLOPE)
    if is_short:
        # A mismatch in each of its 16-mers hides a locus.
        rivals += odds(score - (length - 5 * (length // 16))) / HIDDEN_ONCE_IN
    identity = 1 - (length - score) / 5 / length
    factor = (1.0 if length < 50 else 3 / math.log(length)) * identity**2
    unique = int(6.02 * (score - 19) * factor**2 + 0.499)
    return min(max(unique, 0), quality(rivals))


def single(scores, length=150, unlocated=0, seed=0):
    hits = hits_of_rows(
        [[(score, 0, 1000 * i, 1000 * i + length) for i, score in enumerate(scores)]]
    )
    return select_single(
        hits,
        np.array([length]),
        np.array([unlocated], np.int32),
        PARAMETERS,
        np.array([seed], np.uint64),
    )


@pytest.mark.parametrize("length", [40, 100, 150, 250])
def test_single_qualities(length):
    for loss, *losses in itertools.product((0, 5, 10), (0, 5, 12, 40, 100), (0, 8, 60)):
        best = length - loss
        scores = sorted([best, *(best - more for more in losses if best - more > 0)])[::-1]
        for unlocated in (0, length - 5, length + UNLOCATED_LOSS):
            primary = single(scores, length, unlocated)
            others = scores[1:]
            expected = single_end_mapq(scores[0], others, length, unlocated)
            assert abs(primary.qualities[0] - expected) <= 1
            assert primary.suboptimal[0] == max(others, default=0)


def test_reads_without_and_with_one_place():
    assert single([]).hits.tolist() == [-1]
    assert single([]).qualities.tolist() == [0]
    assert (single([150]).hits[0], single([150]).qualities[0]) == (0, 60)
    assert single([36], 36).qualities[0] == 60
    assert single([15], 15).qualities[0] == 0


def test_ties_are_broken_at_random_and_have_quality_0():
    selected = [single([150, 150, 150, 140], seed=seed) for seed in range(300)]
    counts = np.bincount([primary.hits[0] for primary in selected], minlength=4)
    assert counts.tolist() == [100, 100, 100, 0]
    assert {int(primary.qualities[0]) for primary in selected} == {0}


def test_another_part_of_the_read_is_no_rival():
    hits = hits_of_rows([[(60, 0, 0, 60), (50, 0, 500, 550), (45, 1, 900, 945)]])
    hits.read_starts[:] = [0, 60, 0]
    hits.read_ends[:] = [60, 110, 45]
    hits.gapless[:] = [True, True, False]
    # The third explains bases 65 to 110, because it is on the other strand.
    primary = select_single(
        hits, np.array([110]), np.zeros(1, np.int32), PARAMETERS, np.zeros(1, np.uint64)
    )
    assert (primary.hits[0], primary.suboptimal[0]) == (0, 0)
    assert primary.qualities[0] == single_end_mapq(60, [], 60)


@pytest.mark.parametrize("copies", [1, 2, 6])
@pytest.mark.parametrize("unlocated", [0, 140, 148])
@pytest.mark.parametrize("mismatches", [0, 1, 2, 6])
def test_one_mismatch_between_two_copies_suffices(copies, unlocated, mismatches):
    score = 150 - 5 * mismatches
    primary = single([score, *[score - 5] * copies], 150, unlocated)
    # The bound of the unlocated hits is 145 or 149; a read with more mismatches is less sure.
    is_sure = copies == 1 and mismatches <= 1
    is_sure &= not unlocated or score - (150 + unlocated) // 2 >= 5
    assert (primary.qualities[0] >= 10) == is_sure


@pytest.mark.parametrize("first", [0, 1])
def test_the_other_part_of_a_split_read_is_no_rival_of_a_pair(first):
    """The part near the mate scores less than the other one, which lies elsewhere or nearby."""
    for elsewhere in (50_000, 900):
        rows = [[(80, 0, elsewhere, elsewhere + 80), (70, 0, 1000, 1070)], [(150, 1, 1250, 1400)]]
        hits = hits_of_rows(rows[:: 1 - 2 * first])
        row = int(hits.starts[0] == 1250)
        hits.read_starts[row : row + 2] = [0, 80]
        hits.read_ends[row : row + 2] = [80, 150]
        primary = select_paired(
            hits, np.full(2, 150), np.zeros(2, np.int32), INSERT, PARAMETERS,
            np.zeros(2, np.uint64), CONTIG_STARTS,
        )  # fmt: skip
        assert primary.proper.all()
        assert hits.starts[primary.hits[first]] == (1000 if elsewhere > 900 else 900)
        assert primary.qualities[first] >= 50


def test_an_unlocated_hit_of_other_bases_is_no_rival():
    hits = hits_of_rows([[(90, 0, 0, 90)]])
    hits.read_starts[:], hits.read_ends[:] = 0, 90
    for spans, expected in (([[0, 150]], 0), ([[60, 150]], 60), ([[0, 90]], 35)):
        primary = select_single(
            hits, np.array([150]), np.array([89], np.int32), PARAMETERS, np.zeros(1, np.uint64),
            np.array(spans),
        )  # fmt: skip
        assert primary.qualities[0] <= expected
        assert (primary.qualities[0] > 0) == (expected > 0)


def test_low_scores_are_not_reported_alone():
    assert single([29], 35).hits.tolist() == [-1]
    assert single([30], 35).hits.tolist() == [0]
    rows = [[(150, 0, 100, 250)], [(25, 1, 375, 400)]]
    far = [[(150, 0, 100, 250)], [(25, 1, 7375, 7400)]]
    for pair, expected in ((rows, [0, 1]), (far, [0, -1])):
        primary = paired(pair)
        assert primary.hits.tolist() == expected
        assert primary.proper.tolist() == [expected[1] >= 0] * 2


def paired(rows, insert=INSERT, seed=0, lengths=None, unlocated=(0, 0)):
    hits = hits_of_rows(rows)
    return select_paired(
        hits, np.full(2, 150) if lengths is None else lengths, np.array(unlocated, np.int32),
        insert, PARAMETERS, np.array([seed, seed], np.uint64), CONTIG_STARTS,
    )  # fmt: skip


def pair_by_trying_all(rows, orientation):
    """Return (score, i, j) of the hits that form proper pairs, best first."""
    scored = []
    for i, (score_1, strand_1, start_1, end_1) in enumerate(rows[0]):
        for j, (score_2, strand_2, start_2, end_2) in enumerate(rows[1]):
            # The left and right ends in the picture of the orientation.
            first = {"FR": strand_1 == 0, "RF": strand_1 == 1}
            first |= {"FF": strand_1 == 0, "RR": strand_1 == 1}
            same = strand_1 == strand_2
            if same != (orientation in ("FF", "RR")):
                continue
            first_bases = (end_1 if strand_1 else start_1), (end_2 if strand_2 else start_2)
            left, right = first_bases if first[orientation] else first_bases[::-1]
            one_contig = np.searchsorted(CONTIG_STARTS, [start_1, start_2], side="right")
            if one_contig[0] != one_contig[1] or not 200 <= right - left <= 600:
                continue
            z = abs(right - left - 400) / 50
            likely = math.log(2 * math.erfc(z / math.sqrt(2)), 4)
            scored.append((score_1 + score_2 + likely, i, j))
    return sorted(scored, key=lambda item: -item[0])


@pytest.mark.parametrize("orientation", ORIENTATIONS)
def test_pairs_against_trying_all(orientation):
    rng = np.random.default_rng(1)
    insert = InsertSize(400.0, 50.0, 200, 600, ORIENTATIONS.index(orientation))
    n_proper = n_apart = 0
    for number in range(800):
        rows = []
        for _ in range(2):
            # A few hits, or as many as in a repeat.
            n = rng.integers(1, 5 if number % 8 else 60)
            scores = np.sort(rng.choice(np.arange(60, 151), n, replace=False))
            rows.append([])
            for score in scores[::-1].tolist():
                start = int(rng.integers(0, 1000)) + 100_000 * int(rng.integers(2))
                rows[-1].append((score, int(rng.integers(2)), start, start + 150))
        unlocated = (0, 0) if number % 3 else tuple(rng.integers(100, 150, 2).tolist())
        primary = paired(rows, insert, number, unlocated=unlocated)
        pairs = pair_by_trying_all(rows, orientation)
        unpaired = rows[0][0][0] + rows[1][0][0] - UNPAIRED_PENALTY
        first_of_second = len(rows[0])
        if not pairs or pairs[0][0] <= unpaired:
            n_apart += 1
            assert primary.hits.tolist() == [0, first_of_second]
            assert not primary.proper.any()
            continue
        n_proper += 1
        assert primary.proper.all()
        best = pairs[0][0]
        second = pairs[1][0] if len(pairs) > 1 else -(10**9)
        if best - second > 0.01:
            assert primary.hits.tolist() == [pairs[0][1], first_of_second + pairs[0][2]]
        rivals = 0
        for end in range(2):
            mine = primary.hits[end] - end * first_of_second
            others = [row[0] for i, row in enumerate(rows[end]) if i != mine]
            assert primary.suboptimal[end] == max(others, default=0)
            least = unlocated[end] - UNLOCATED_LOSS
            rivals += (
                max(min(unlocated[end], max(others, default=0)), least) if unlocated[end] else 0
            )
        selected = (row - end * first_of_second for end, row in enumerate(primary.hits))
        scores = [rows[end][row][0] for end, row in enumerate(selected)]
        above = min(score - (150 + u) // 2 for score, u in zip(scores, unlocated, strict=True))
        for end in range(2):
            mine = primary.hits[end] - end * first_of_second
            score = scores[end]
            # Pairs with another hit of this read; the two best hits unpaired; unlocated hits.
            less = [best - pair[0] for pair in pairs if pair[1 + end] != mine]
            near = weight_of([d for d in less if d <= 7], FEW_PAIRS, above + 10, 1)
            near = near if all(unlocated) else 1
            together = sum(odds(d) * (near if d <= 7 else 1) for d in less)
            together += odds(best - unpaired) if score < rows[end][0][0] else 0
            together += odds(best - rivals)
            others = [row[0] for i, row in enumerate(rows[end]) if i != mine]
            alone = single_end_mapq(score, others, 150, unlocated[end])
            expected = min(quality(together), alone + 40)
            # Below 3, a rival is equally likely.
            assert abs(max(int(primary.qualities[end]), 3) - max(expected, 3)) <= 2
    assert n_proper > 50
    assert n_apart > 50


def test_ties_of_pairs_go_to_the_likelier_distance():
    rows = [[(150, 0, 1000, 1150)], [(150, 1, 1255, 1405), (150, 1, 1260, 1410)]]
    assert {tuple(paired(rows, seed=seed).hits.tolist()) for seed in range(20)} == {(0, 1)}


def test_nothing_is_proper_where_the_insert_size_is_not_known():
    primary = paired([[(150, 0, 100, 250)], [(150, 1, 350, 500)]], InsertSize(0.0, 0.0, 0, 0))
    assert primary.hits.tolist() == [0, 1]
    assert not primary.proper.any()
