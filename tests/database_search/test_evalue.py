"""E-values: BLAST's own values, and its equation for the length adjustment."""

import math

import numpy as np
import pytest

from bwarp.database_search.evalue import bit_scores, evalues, karlin_altschul, length_adjustment
from bwarp.errors import UsageError


def test_bit_scores_equal_those_of_blast():
    """Raw scores and bits in reports of blastp with BLOSUM62, 11, 1."""
    bits = bit_scores(karlin_altschul("BLOSUM62", 11, 1), np.array([100, 583, 1000]))
    assert [f"{b:.1f}" for b in bits] == ["43.1", "229.2", "389.8"]


@pytest.mark.parametrize(
    ("query", "residues", "sequences"), [(464, 190_000_000, 540_000), (30, 8_000, 20), (9, 9, 1)]
)
def test_the_length_adjustment_solves_its_equation(query, residues, sequences):
    p = karlin_altschul("blosum62", 11, 1)
    found = length_adjustment(p, query, residues, sequences)

    def holds(length):
        space = (query - length) * (residues - sequences * length)
        if space < max(query, residues) / p.k:
            return False
        return p.alpha / p.lam * (math.log(p.k) + math.log(space)) + p.beta >= length

    limit = min(query, residues // sequences)
    assert found == max([length for length in range(limit) if holds(length)], default=0)


def test_an_evalue_halves_with_every_bit():
    p = karlin_altschul("BLOSUM62", 11, 1)
    expected = evalues(p, np.array([50, 60, 600]), 464, 190_000_000, 540_000)
    assert expected[1] / expected[0] == pytest.approx(math.exp(-10 * p.lam))
    length = length_adjustment(p, 464, 190_000_000, 540_000)
    space = (464 - length) * (190_000_000 - 540_000 * length)
    assert expected[0] == pytest.approx(p.k * space * math.exp(-p.lam * 50))
    assert 0 < expected[2] < 1e-50


def test_scoring_without_published_parameters_is_refused():
    with pytest.raises(UsageError) as error:
        karlin_altschul("BLOSUM62", 5, 1)
    assert str(error.value) == (
        "no E-values for BLOSUM62 with gap-open 5 and gap-extend 1: parameters are published for "
        "11/2, 10/2, 9/2, 8/2, 7/2, 6/2, 13/1, 12/1, 11/1, 10/1, 9/1"
    )
    with pytest.raises(UsageError, match=r"^no E-values for matrix LEVIN: parameters are publish"):
        karlin_altschul("LEVIN", 11, 1)
