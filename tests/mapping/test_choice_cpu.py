"""Choices and qualities against bwa's formulas in plain Python, and over all pairs of places."""

import itertools
import math

import numpy as np
import pytest
from mapping_oracle import places_of

from bwarp.mapping.choice_cpu import UNPAIRED_PENALTY, choose_paired, choose_single
from bwarp.mapping.insert_size import InsertSize
from bwarp.mapping.parameters import MappingParameters

PARAMETERS = MappingParameters()
INSERT = InsertSize(400.0, 50.0, 200, 600)
CONTIG_STARTS = np.array([0, 100_000, 200_000])


def quality_alone(score, others, aligned, unseen=0):
    """bwa's mem_approx_mapq_se, with what was not looked at as one more place."""
    sub = max([*others, unseen, 19])
    if sub >= score:
        return 0
    identity = 1 - (aligned - score) / 5 / aligned
    factor = (1.0 if aligned < 50 else 3 / math.log(aligned)) * identity**2
    quality = int(6.02 * (score - sub) * factor**2 + 0.499)
    near = sum(max(others) - other <= 7 for other in others) if others else 0
    if near:
        quality -= int(4.343 * math.log(near + 1) + 0.499)
    return min(max(quality, 0), 60)


def single(scores, length=150, unseen=0, seed=0):
    places = places_of(
        [[(score, 0, 1000 * i, 1000 * i + length) for i, score in enumerate(scores)]]
    )
    return choose_single(
        places, np.array([unseen], np.int32), PARAMETERS, np.array([seed], np.uint64)
    )


@pytest.mark.parametrize("length", [40, 100, 150, 250])
def test_single_qualities(length):
    for loss, *losses in itertools.product((0, 5, 20), (0, 5, 12, 40, 100), (0, 8, 60)):
        best = length - loss
        scores = sorted([best, *(best - more for more in losses if best - more > 0)])[::-1]
        for unseen in (0, length - 25, length):
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


def pair_by_trying_all(rows):
    """(best pair or None, its score, the second best score) of places that face each other."""
    scored = []
    for i, (score_1, strand_1, start_1, end_1) in enumerate(rows[0]):
        for j, (score_2, strand_2, start_2, end_2) in enumerate(rows[1]):
            left, right = (start_1, end_2) if strand_1 == 0 else (start_2, end_1)
            same = np.searchsorted(CONTIG_STARTS, [start_1, start_2], side="right")
            if strand_1 == strand_2 or same[0] != same[1] or not 200 <= right - left <= 600:
                continue
            z = abs(right - left - 400) / 50
            likely = 0.721 * math.log(2 * math.erfc(z / math.sqrt(2)))
            scored.append((int(score_1 + score_2 + likely + 0.499), i, j))
    scored.sort(key=lambda item: -item[0])
    if not scored:
        return None, 0, 0
    return scored[0][1:], scored[0][0], scored[1][0] if len(scored) > 1 else -(10**9)


def test_pairs_against_trying_all():
    rng = np.random.default_rng(1)
    n_proper = n_apart = 0
    for number in range(1000):
        rows = []
        for _ in range(2):
            scores = np.sort(rng.choice(np.arange(60, 151), rng.integers(1, 5), replace=False))
            rows.append([])
            for score in scores[::-1].tolist():
                start = int(rng.integers(0, 2000)) + 100_000 * int(rng.integers(2))
                rows[-1].append((score, int(rng.integers(2)), start, start + 150))
        choice = choose_paired(
            places_of(rows), np.full(2, 150), np.zeros(2, np.int32), INSERT, PARAMETERS,
            np.array([number, number], np.uint64), CONTIG_STARTS,
        )  # fmt: skip
        pair, best, second = pair_by_trying_all(rows)
        unpaired = rows[0][0][0] + rows[1][0][0] - UNPAIRED_PENALTY
        first_of_second = len(rows[0])
        if pair is None or best <= unpaired:
            n_apart += 1
            assert choice.places.tolist() == [0, first_of_second]
            assert not choice.proper.any()
            continue
        n_proper += 1
        assert choice.proper.all()
        if best > second:
            assert choice.places.tolist() == [pair[0], first_of_second + pair[1]]
        for end in range(2):
            mine = choice.places[end] - end * first_of_second
            others = [row[0] for i, row in enumerate(rows[end]) if i != mine]
            alone = quality_alone(rows[end][mine][0], others, 150)
            together = int(6.02 * (best - max(second, unpaired)) + 0.499)
            assert choice.others[end] == max(others, default=0)
            assert alone <= choice.qualities[end] <= max(alone, min(together, alone + 40, 60))
    assert n_proper > 50
    assert n_apart > 50


def test_nothing_is_proper_where_the_insert_size_is_not_known():
    rows = [[(150, 0, 100, 250)], [(150, 1, 350, 500)]]
    choice = choose_paired(
        places_of(rows), np.full(2, 150), np.zeros(2, np.int32), InsertSize(0.0, 0.0, 0, 0),
        PARAMETERS, np.zeros(2, np.uint64), CONTIG_STARTS,
    )  # fmt: skip
    assert choice.places.tolist() == [0, 1]
    assert not choice.proper.any()
