"""Bounds of the score of a pair, which determine its element type."""

import numpy as np
import pytest

from bwarp.alignment.batches_cpu import fits_type, highest_scores, numba_side, pair_rules
from bwarp.alignment.pair_ends_cpu import pair_alignments, pair_scores
from bwarp.alignment.pairs import PairBatch, Sequences
from bwarp.alignment.scoring import LOCAL, MODES, Scoring, nucleotide_scoring


def sequences(rng, count: int, longest: int, letters: int) -> Sequences:
    lengths = rng.integers(1, longest, count).astype(np.int32)
    starts = np.cumsum(lengths) - lengths
    codes = rng.integers(0, letters, lengths.sum()).astype(np.uint8)
    return Sequences(codes, starts.astype(np.int64), lengths)


def scoring_of(matrix: np.ndarray) -> Scoring:
    plain = nucleotide_scoring(1, -4, 6, 1)
    return Scoring(b"ACGTN>"[: len(matrix)], plain.code_of_byte, matrix, 6, 1, 4)


@pytest.mark.parametrize("name", MODES)
def test_no_score_exceeds_the_bound(name):
    rng = np.random.default_rng(1)
    for _ in range(5):
        matrix = rng.integers(-20, 20, (6, 6)).astype(np.int16)
        matrix[4] = matrix[:, 4] = -1
        queries, references = (sequences(rng, 100, 150, 4) for _ in range(2))
        queries.codes[rng.random(queries.codes.size) < 0.05] = 5
        scoring, mode = scoring_of(matrix), MODES[name]
        high = highest_scores(
            pair_rules(scoring, mode), numba_side(queries), queries.lengths, references.lengths
        )
        scores = pair_scores(PairBatch(queries, references), scoring, mode)
        assert np.all(scores <= high)
        assert np.any(high < np.minimum(queries.lengths, references.lengths) * int(matrix.max()))


def test_a_rare_letter_with_a_high_score_does_not_widen_the_type():
    rng = np.random.default_rng(2)
    matrix = np.full((6, 6), -4, np.int16)
    matrix[np.arange(4), np.arange(4)] = 1
    matrix[5] = 5
    references = sequences(rng, 64, 200, 4)
    first, size = references.starts, references.lengths
    bodies = [references.codes[a : a + n] for a, n in zip(first, size, strict=True)]
    ends = np.full(1, 5, np.uint8)
    parts = [np.concatenate([ends, body, ends]) for body in bodies]
    lengths = np.array([part.size for part in parts], np.int32)
    queries = Sequences(np.concatenate(parts), np.cumsum(lengths) - lengths, lengths)
    scoring = scoring_of(matrix)
    rules = pair_rules(scoring, LOCAL)
    high = highest_scores(rules, numba_side(queries), queries.lengths, references.lengths)
    assert np.all(fits_type(rules, high, np.int8))
    found = pair_alignments(PairBatch(queries, references), scoring, LOCAL)
    # One end may replace the adjacent base.
    assert np.all(found.scores >= size)
    assert np.all(found.scores <= high)
