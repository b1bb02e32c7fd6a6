"""Choices and qualities against bwa's formulas in plain Python, and over all pairs of places."""

import itertools
import math

import numpy as np
import pytest

from bwarp.mapping.pairing.insert_size import InsertSize
from bwarp.mapping.pairing.primary_and_mapq_cpu import (
    UNPAIRED_PENALTY,
    UNSEEN_LOSS,
    choose_paired,
    choose_single,
)
from bwarp.mapping.parameters import ORIENTATIONS, MappingParameters
from tests.helpers.oracles.mapping_oracle import places_of

PARAMETERS = MappingParameters()
INSERT = InsertSize(400.0, 50.0, 200, 600)
CONTIG_STARTS = np.array([0, 100_000, 200_000])


def quality_alone(score, others, aligned, unseen=0):
    """bwa's mem_approx_mapq_se, with what was not looked at as one more place."""
    sub = max([*others, unseen - UNSEEN_LOSS, 19])
    if sub >= score:
        return 0
    identity = 1 - (aligned - score) / 5 / aligned
    factor = (1.0 if aligned < 50 else 3 / math.log(aligned)) * identity**2
    quality = int(6.02 * (score - sub) * factor**2 + 0.499)
    near = sum(score - other <= 7 for other in others)
    if near:
        quality -= int(4.343 * math.log(near + 1) + 0.499)
    return min(max(quality, 0), 60)


def single(scores, length=150, unseen=0, seed=0):
    places = places_of(
        [[(score, 0, 1000 * i, 1000 * i + length) for i, score in enumerate(scores)]]
    )
    return choose_single(
        places,
        np.array([length]),
        np.array([unseen], np.int32),
        PARAMETERS,
        np.array([seed], np.uint64),
    )


@pytest.mark.parametrize("length", [40, 100, 150, 250])
def test_single_qualities(length):
    for loss, *losses in itertools.product((0, 5, 10), (0, 5, 12, 40, 100), (0, 8, 60)):
        best = length - loss
        scores = sorted([best, *(best - more for more in losses if best - more > 0)])[::-1]
        for unseen in (0, length - 5, length + UNSEEN_LOSS):
            choice = single(scores, length, unseen)
            others = scores[1:]
            assert choice.qualities[0] == quality_alone(scores[0], others, length, unseen)
            assert choice.others[0] == max(others, default=0)


def test_reads_without_and_with_one_place():
    assert single([]).places.tolist() == [-1]
    assert single([]).qualities.tolist() == [0]
    assert (single([150]).places[0], single([150]).qualities[0]) == (0, 60)
    assert single([15], 15).qualities[0] == 0


def test_equals_are_drawn_by_the_read_and_have_no_quality():
    chosen = [single([150, 150, 150, 140], seed=seed) for seed in range(300)]
    counts = np.bincount([choice.places[0] for choice in chosen], minlength=4)
    assert counts.tolist() == [100, 100, 100, 0]
    assert {int(choice.qualities[0]) for choice in chosen} == {0}


def test_another_part_of_the_read_is_no_rival():
    places = places_of([[(60, 0, 0, 60), (50, 0, 500, 550), (45, 1, 900, 945)]])
    places.read_starts[:] = [0, 60, 0]
    places.read_ends[:] = [60, 110, 45]
    places.gapless[:] = [True, True, False]
    # The third explains bases 65 to 110, for it is on the other strand.
    choice = choose_single(
        places, np.array([110]), np.zeros(1, np.int32), PARAMETERS, np.zeros(1, np.uint64)
    )
    assert (choice.places[0], choice.others[0]) == (0, 0)
    assert choice.qualities[0] == quality_alone(60, [], 60)


def test_low_scores_are_not_chosen_alone():
    assert single([29], 35).places.tolist() == [-1]
    assert single([30], 35).places.tolist() == [0]
    rows = [[(150, 0, 100, 250)], [(25, 1, 375, 400)]]
    far = [[(150, 0, 100, 250)], [(25, 1, 7375, 7400)]]
    for pair, expected in ((rows, [0, 1]), (far, [0, -1])):
        choice = paired(pair)
        assert choice.places.tolist() == expected
        assert choice.proper.tolist() == [expected[1] >= 0] * 2


def paired(rows, insert=INSERT, seed=0, lengths=None, unseen=(0, 0)):
    places = places_of(rows)
    return choose_paired(
        places, np.full(2, 150) if lengths is None else lengths, np.array(unseen, np.int32), insert,
        PARAMETERS, np.array([seed, seed], np.uint64), CONTIG_STARTS,
    )  # fmt: skip


def pair_by_trying_all(rows, orientation):
    """(score, i, j) of the places that lie to each other as pairs do, best first."""
    scored = []
    for i, (score_1, strand_1, start_1, end_1) in enumerate(rows[0]):
        for j, (score_2, strand_2, start_2, end_2) in enumerate(rows[1]):
            # What lies left in the picture of the orientation, and what right.
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
            scores = np.sort(rng.choice(np.arange(60, 151), rng.integers(1, 5), replace=False))
            rows.append([])
            for score in scores[::-1].tolist():
                start = int(rng.integers(0, 1000)) + 100_000 * int(rng.integers(2))
                rows[-1].append((score, int(rng.integers(2)), start, start + 150))
        unseen = (0, 0) if number % 3 else tuple(rng.integers(100, 150, 2).tolist())
        choice = paired(rows, insert, number, unseen=unseen)
        pairs = pair_by_trying_all(rows, orientation)
        unpaired = rows[0][0][0] + rows[1][0][0] - UNPAIRED_PENALTY
        first_of_second = len(rows[0])
        if not pairs or pairs[0][0] <= unpaired:
            n_apart += 1
            assert choice.places.tolist() == [0, first_of_second]
            assert not choice.proper.any()
            continue
        n_proper += 1
        assert choice.proper.all()
        best = pairs[0][0]
        second = pairs[1][0] if len(pairs) > 1 else -(10**9)
        if best - second > 0.01:
            assert choice.places.tolist() == [pairs[0][1], first_of_second + pairs[0][2]]
        rivals = 0
        for end in range(2):
            mine = choice.places[end] - end * first_of_second
            others = [row[0] for i, row in enumerate(rows[end]) if i != mine]
            assert choice.others[end] == max(others, default=0)
            least = unseen[end] - UNSEEN_LOSS
            rivals += max(min(unseen[end], max(others, default=0)), least) if unseen[end] else 0
        other = max(second, unpaired, rivals)
        together = 6.02 * (best - other)
        near = sum(second - score <= 7 for score, *_ in pairs[1:])
        if near and second >= unpaired:
            together -= int(4.343 * math.log(near + 1) + 0.499)
        for end in range(2):
            mine = choice.places[end] - end * first_of_second
            others = [row[0] for i, row in enumerate(rows[end]) if i != mine]
            alone = quality_alone(rows[end][mine][0], others, 150, unseen[end])
            expected = max(alone, min(max(together, 0), 60, alone + 40))
            assert abs(choice.qualities[end] - expected) < 1.2
    assert n_proper > 50
    assert n_apart > 50


def test_of_equal_pairs_the_likelier_distance_wins():
    rows = [[(150, 0, 1000, 1150)], [(150, 1, 1255, 1405), (150, 1, 1260, 1410)]]
    assert {tuple(paired(rows, seed=seed).places.tolist()) for seed in range(20)} == {(0, 1)}


def test_nothing_is_proper_where_the_insert_size_is_not_known():
    choice = paired([[(150, 0, 100, 250)], [(150, 1, 350, 500)]], InsertSize(0.0, 0.0, 0, 0))
    assert choice.places.tolist() == [0, 1]
    assert not choice.proper.any()
