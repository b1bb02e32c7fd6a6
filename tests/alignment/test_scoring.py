"""Scoring schemes: NCBI's matrices, score bounds, and errors."""

import numpy as np
import pytest
from Bio.Align import substitution_matrices

from bwarp.alignment.scoring import (
    FITTING,
    GLOBAL,
    LOCAL,
    SEMIGLOBAL,
    Scoring,
    element_type,
    highest_score,
    lowest_score,
    matrix_scoring,
    nucleotide_scoring,
)
from bwarp.errors import InputError, UsageError
from tests.helpers.cases.random_pairs import random_pairs
from tests.helpers.oracles.alignment_oracle import matrices


@pytest.mark.parametrize("name", ["BLOSUM45", "BLOSUM62", "PAM30", "PAM250", "NUC.4.4", "LEVIN"])
def test_matrices_are_the_published_ones(name):
    scoring, published = matrix_scoring(name, 11, 1), substitution_matrices.load(name)
    codes = [scoring.code_of_byte[ord(letter)] for letter in published.alphabet]
    np.testing.assert_array_equal(scoring.matrix[np.ix_(codes, codes)], np.asarray(published))
    lower = [scoring.code_of_byte[ord(letter.lower())] for letter in published.alphabet]
    assert lower == codes


def test_letters_beyond_the_matrix_are_scored_as_ncbi_does():
    """Biopython's matrix BLASTP is NCBI's BLOSUM62 with U, O and J."""
    scoring, ncbi = matrix_scoring("BLOSUM62", 11, 1), substitution_matrices.load("BLASTP")
    code = {letter: int(scoring.code_of_byte[ord(letter)]) for letter in "UCOXJ*"}
    assert code["U"] == code["C"]
    assert code["O"] == code["X"]
    for letter in "ARNDCQEGHILKMFPSTWYVJ*":
        own = scoring.matrix[code["J"], scoring.code_of_byte[ord(letter)]]
        assert own == ncbi["J", letter], letter


def test_matrices_without_x_and_stop_give_them_the_lowest_score():
    scoring = matrix_scoring("LEVIN", 8, 1)
    x, stop, b = (scoring.code_of_byte[ord(letter)] for letter in "X*B")
    assert np.all(scoring.matrix[[x, stop]] == scoring.matrix.min())
    assert np.all(scoring.matrix[b, :20] == scoring.matrix.min())


def test_an_ambiguous_nucleotide_mismatches_even_itself():
    scoring = nucleotide_scoring(1, -4, 6, 1)
    assert scoring.matrix[4, 4] == -4
    assert scoring.match_mismatch == (1, -4)
    assert matrix_scoring("BLOSUM62", 11, 1).match_mismatch is None


@pytest.mark.parametrize("mode", [GLOBAL, LOCAL, SEMIGLOBAL, FITTING])
def test_bounds_hold_for_every_cell(mode):
    rng = np.random.default_rng(41)
    for scoring in (nucleotide_scoring(2, -7, 3, 1), nucleotide_scoring(1, -1, 0, 2)):
        pairs = random_pairs(rng, 40, 4, 12)
        for i in range(pairs.count):
            query, reference = pairs.queries.sequence(i), pairs.references.sequence(i)
            lengths = query.size, reference.size
            H, D, I = matrices(query.tolist(), reference.tolist(), scoring, mode)  # noqa: E741
            values = [v for matrix in (H, D, I) for row in matrix for v in row if v > -(10**8)]
            assert lowest_score(scoring, mode, *lengths) <= min(values)
            assert max(values) <= highest_score(scoring, *lengths)


def test_the_element_type_is_the_narrowest_that_holds_the_bounds():
    scoring = nucleotide_scoring(1, -4, 6, 1)
    assert element_type(scoring, LOCAL, 120, 200) is np.int8
    assert element_type(scoring, LOCAL, 150, 200) is np.int16
    assert element_type(scoring, GLOBAL, 40, 40) is np.int8
    assert element_type(scoring, GLOBAL, 150, 200) is np.int16
    assert element_type(scoring, GLOBAL, 20_000, 20_000) is np.int32


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (
            lambda: nucleotide_scoring(-1, -4, 6, 1),
            "match is -1: the score of a match must be 0 or more",
        ),
        (
            lambda: nucleotide_scoring(1, 4, 6, 1),
            "mismatch is 4: the score of a mismatch must be 0 or less: use -4",
        ),
        (
            lambda: nucleotide_scoring(0, 0, 6, 1),
            "match and mismatch are both 0: all alignments would have the same score",
        ),
        (
            lambda: nucleotide_scoring(20_000, -4, 6, 1),
            "match 20000, mismatch -4: scores must be from -10000 to 10000",
        ),
        (
            lambda: nucleotide_scoring(1, -4, -6, 1),
            "gap-open is -6: gap costs must not be negative: use 6",
        ),
        (
            lambda: nucleotide_scoring(1, -4, 6, -1),
            "gap-extend is -1: gap costs must not be negative: use 1",
        ),
        (
            lambda: nucleotide_scoring(1, -4, 60_000, 1),
            "gap-open is 60000: the maximum of costs and scores is 10000",
        ),
        (
            lambda: matrix_scoring("DAYHOFF", 11, 1),
            "matrix DAYHOFF does not hold integer scores of single letters: use another, such "
            "as BLOSUM62",
        ),
        (
            lambda: Scoring(
                b"AB", np.zeros(256, np.uint8), np.array([[200, 1], [2, 3]], np.int16), 1, 1
            ),
            "the matrix has a score of 200: the maximum in a matrix is 127",
        ),
    ],
)
def test_bad_schemes_are_refused(refused, message):
    with pytest.raises(UsageError) as error:
        refused()
    assert str(error.value) == message


def test_an_unknown_matrix_is_refused_and_known_ones_are_listed():
    with pytest.raises(UsageError, match=r"^unknown matrix 'BLOSSUM62': use one of BENNER"):
        matrix_scoring("BLOSSUM62", 11, 1)


def test_scores_beyond_the_bound_are_refused():
    with pytest.raises(InputError) as error:
        element_type(nucleotide_scoring(10_000, -4, 6, 1), LOCAL, 60_000, 70_000)
    assert str(error.value) == (
        "60000 against 70,000 residues can score 600010000 or -11, beyond the limit of "
        "536870912: use smaller scores and gap costs, or shorter sequences"
    )
