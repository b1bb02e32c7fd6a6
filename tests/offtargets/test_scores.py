"""CFD and MIT scores, against published values and CRISPOR's."""

import csv
import math

import numpy as np
import pytest

from bwarp.offtargets.cas9_scores import cfd_scores, has_scores, mit_scores, specificity
from bwarp.offtargets.guides import guides_of, parse_pam
from bwarp.sequence import encode


def codes(*texts):
    return np.array([encode(text.encode()) for text in texts])


def both(guide, site):
    arguments = codes(guide[:20]), codes(site[:20]), codes(site[20:])
    return cfd_scores(*arguments)[0], mit_scores(*arguments)[0]


@pytest.mark.parametrize(
    ("guide", "site", "score"),
    [
        ("ATGGTCGGACTCCCTGCCAGAGG", "ATGGTGGGACTCCCTGCCAGAGG", 0.5),
        ("ATGGTCGGACTCCCTGCCAGAGG", "ATGATCCAAATCCCTGCCAGAGG", 0.53625000020625),
        ("ATGTGGAGATTGCCACCTACCGG", "ATCTGGAGATTGCCACCTACAGG", 0.384615385),
        ("G" * 23, "G" * 17 + "AAAGGG", 0.46359890070741755),
        ("G" * 23, "G" * 23, 1),
        ("G" * 23, "G" * 20 + "GAG", 0.259259259),
        ("G" * 23, "G" * 20 + "GCG", 0.107142857),
        ("G" * 23, "G" * 20 + "GTT", 0),
    ],
)
def test_published_cfd_scores(guide, site, score):
    assert both(guide, site)[0] == pytest.approx(score, rel=1e-12)


def test_mit_scores_by_hand():
    guide = "GAGTCCGAGCAGAAGAAGAAGGG"
    assert both(guide, guide)[1] == 100
    one = guide[:19] + "C" + "GGG"
    assert both(guide, one)[1] == pytest.approx(100 * (1 - 0.583))
    # Positions 3, 14 and 20: their mean distance is 8.5.
    three = "GATTCCGAGCAGATGAAGACGGG"
    product = (1 - 0.014) * (1 - 0.851) * (1 - 0.583)
    expected = 100 * product / ((19 - 8.5) / 19 * 4 + 1) / 9
    assert both(guide, three)[1] == pytest.approx(expected)
    assert both(guide, three[:21] + "AG")[1] == pytest.approx(expected / 5)


@pytest.mark.parametrize(
    ("pam", "side", "scored"),
    [
        ("NGG", 3, True), ("NRG", 3, True), ("NAG,NGG", 3, True), ("NNN", 3, True),
        ("NAG", 3, False), ("NGG", 5, False), ("TTN", 5, False), ("NNGRRT", 3, False),
        ("TGG", 3, False), ("none", 3, False), ("NG,NGG", 3, False), ("NGGNG,NGG", 3, False),
    ],
)  # fmt: skip
def test_only_guides_of_spcas9_are_scored(pam, side, scored):
    guides = guides_of(["a", "b"], ["A" * 20, "A" * 21])
    assert has_scores(guides, parse_pam(pam, side)).tolist() == [scored, False]


def test_specificity_is_that_of_the_others():
    assert specificity(1.0, 1.0, 1.0) == 1
    assert specificity(3.0, 1.0, 1.0) == pytest.approx(1 / 3)
    # If the target is not in the genome, all sites are off-targets.
    assert specificity(1.0, 0.0, 1.0) == 0.5


def test_a_specificity_has_the_scale_of_its_score():
    assert specificity(100.0, 100.0, 100.0) == 100
    # As in CRISPOR: 100 x 100 / (100 + sum).
    assert specificity(120.0, 100.0, 100.0) == pytest.approx(100 * 100 / 120)


def test_scores_of_crispor(shared_data):
    with shared_data("crispr_crispor", "expected_hg19_chr20.tsv").open() as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert len(rows) > 500
    for row in rows:
        guide, site = row["guideSeq"], row["offtargetSeq"]
        cfd, mit = both(guide, site)
        assert cfd == pytest.approx(float(row["cfdOfftargetScore"]), abs=1e-11)
        differ = [i for i in range(20) if guide[i] != site[i]]
        if len(differ) > 1:
            # CRISPOR rounds the mean distance down.
            distance = (differ[-1] - differ[0]) / (len(differ) - 1)
            mit *= ((19 - distance) * 4 + 19) / ((19 - math.floor(distance)) * 4 + 19)
        assert mit == pytest.approx(float(row["mitOfftargetScore"]), abs=1e-10)
