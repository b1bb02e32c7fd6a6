"""The CPU engine against whole matrices in plain Python, parasail, SSW and WFA2."""

import itertools

import numpy as np
import parasail
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bwarp.alignment import batches_cpu as scores_and_ends_cpu
from bwarp.alignment import traceback_cpu
from bwarp.alignment.pair_ends_cpu import pair_alignments, pair_ends, pair_scores
from bwarp.alignment.pairs import PairBatch, Sequences, cigar_text, sequences_of
from bwarp.alignment.scoring import (
    FITTING,
    GLOBAL,
    LOCAL,
    SEMIGLOBAL,
    Mode,
    Scoring,
    matrix_scoring,
    nucleotide_scoring,
)
from bwarp.sequence import encode
from tests.helpers.cases.random_pairs import random_pairs
from tests.helpers.oracles.alignment_oracle import align, replayed_score

ALL_MODES = [LOCAL] + [Mode(False, *ends) for ends in itertools.product((False, True), repeat=4)]
NAMED_MODES = [GLOBAL, LOCAL, SEMIGLOBAL, FITTING]


def small_matrix():
    """Return an asymmetric matrix over five letters."""
    matrix = np.array(
        [[5, -3, 1, -7, 0], [-2, 4, -4, -1, -1], [0, -6, 7, -2, -3], [-5, 2, -4, 6, -1], [-1] * 5]
    )
    return Scoring(b"ACGTN", np.full(256, 255, np.uint8), matrix.astype(np.int16), 3, 2)


SCHEMES = {
    "bwa": nucleotide_scoring(1, -4, 6, 1),
    "linear": nucleotide_scoring(2, -3, 0, 2),
    "distance": nucleotide_scoring(0, -1, 1, 0),
    "large": nucleotide_scoring(200, -150, 249, 11),
    "free gaps": nucleotide_scoring(1, 0, 0, 0),
    "cheap gaps": nucleotide_scoring(3, -5, 1, 1),
    "small matrix": small_matrix(),
    "protein": matrix_scoring("BLOSUM62", 10, 1),
    "huge": nucleotide_scoring(9000, -8000, 9999, 9000),
}


def check_against_oracle(pairs, scoring, mode):
    """Check every field of every result, and the score of every CIGAR."""
    got = pair_alignments(pairs, scoring, mode)
    ends = pair_ends(pairs, scoring, mode)
    np.testing.assert_array_equal(pair_scores(pairs, scoring, mode), got.scores)
    np.testing.assert_array_equal(ends.query_ends, got.query_ends)
    np.testing.assert_array_equal(ends.reference_ends, got.reference_ends)
    np.testing.assert_array_equal(ends.scores, got.scores)
    for i in range(pairs.count):
        query, reference = pairs.queries.sequence(i).tolist(), pairs.references.sequence(i).tolist()
        expected = align(query, reference, scoring, mode)
        cigar = got.cigar[got.cigar_offsets[i] : got.cigar_offsets[i + 1]]
        fields = (got.scores, got.query_starts, got.query_ends, got.reference_starts,
                  got.reference_ends, got.edit_distances)  # fmt: skip
        assert (*(int(field[i]) for field in fields), cigar_text(cigar)) == (
            expected.score,
            expected.query_start,
            expected.query_end,
            expected.reference_start,
            expected.reference_end,
            expected.edit_distance,
            "".join(f"{length}{operation}" for length, operation in expected.cigar) or "*",
        ), (query, reference)
        earned = replayed_score(query, reference, scoring, expected)
        if mode.local or (mode.query_start and mode.reference_start):
            assert earned == (expected.score, expected.query_end, expected.reference_end)


@pytest.mark.parametrize("name", SCHEMES)
def test_equals_the_oracle(name):
    scoring = SCHEMES[name]
    rng = np.random.default_rng(11)
    letters = len(scoring.letters)
    modes, count = (ALL_MODES, 10) if name in ("bwa", "linear", "protein") else (NAMED_MODES, 20)
    for mode in modes:
        for alphabet in (2, letters):
            check_against_oracle(random_pairs(rng, count, alphabet, 24), scoring, mode)


sequence_codes = st.lists(st.integers(0, 4), min_size=1, max_size=18)


@settings(max_examples=150, deadline=None)
@given(
    pairs=st.lists(st.tuples(sequence_codes, sequence_codes), min_size=1, max_size=4),
    match=st.integers(0, 9),
    mismatch=st.integers(-9, -1),
    gap_open=st.integers(0, 12),
    gap_extend=st.integers(0, 4),
    mode=st.sampled_from(ALL_MODES),
)
def test_equals_the_oracle_on_any_input(pairs, match, mismatch, gap_open, gap_extend, mode):
    queries, references = zip(*pairs, strict=True)
    batch = PairBatch(
        sequences_of([np.array(q, np.uint8) for q in queries]),
        sequences_of([np.array(r, np.uint8) for r in references]),
    )
    check_against_oracle(batch, nucleotide_scoring(match, mismatch, gap_open, gap_extend), mode)


@pytest.mark.parametrize("mode", NAMED_MODES)
def test_slices_of_rows_change_nothing(monkeypatch, mode):
    pairs = random_pairs(np.random.default_rng(3), 60, 4, 70)
    scoring = nucleotide_scoring(2, -3, 2, 1)
    whole = pair_alignments(pairs, scoring, mode)
    monkeypatch.setattr(traceback_cpu, "DIRECTION_BYTES", 1000)
    sliced = pair_alignments(pairs, scoring, mode)
    for a, b in zip(whole, sliced, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("mode", NAMED_MODES)
@pytest.mark.parametrize("types", [(np.int16, np.int32), (np.int32,)])
def test_every_type_gives_the_same(monkeypatch, mode, types):
    pairs = random_pairs(np.random.default_rng(4), 200, 4, 60)
    scoring = nucleotide_scoring(1, -4, 6, 1)
    narrow = pair_alignments(pairs, scoring, mode)
    monkeypatch.setattr(scores_and_ends_cpu, "ELEMENT_TYPES", types)
    monkeypatch.setattr(traceback_cpu, "ELEMENT_TYPES", types)
    wide = pair_alignments(pairs, scoring, mode)
    for a, b in zip(narrow, wide, strict=True):
        np.testing.assert_array_equal(a, b)


def test_threads_and_batching_change_nothing():
    pairs = random_pairs(np.random.default_rng(8), 3000, 4, 50)
    scoring = nucleotide_scoring(1, -4, 6, 1)
    one = pair_alignments(pairs, scoring, SEMIGLOBAL, 1)
    four = pair_alignments(pairs, scoring, SEMIGLOBAL, 4)
    for a, b in zip(one, four, strict=True):
        np.testing.assert_array_equal(a, b)
    for i in (0, 1234, 2999):
        alone = PairBatch(
            sequences_of([pairs.queries.sequence(i)]), sequences_of([pairs.references.sequence(i)])
        )
        single = pair_alignments(alone, scoring, SEMIGLOBAL)
        assert single.scores[0] == one.scores[i]
        cigar = one.cigar[one.cigar_offsets[i] : one.cigar_offsets[i + 1]]
        np.testing.assert_array_equal(single.cigar, cigar)


def test_windows_of_one_array_need_no_copies():
    rng = np.random.default_rng(9)
    genome = rng.integers(0, 4, 5000, dtype=np.uint8)
    starts = rng.integers(0, 4700, 300)
    queries = sequences_of([mutate_lightly(rng, genome[s + 30 : s + 180]) for s in starts])
    windows = type(queries)(genome, starts.astype(np.int64), np.full(300, 220, np.int32))
    copies = sequences_of([genome[s : s + 220] for s in starts])
    scoring = nucleotide_scoring(1, -4, 6, 1)
    a = pair_alignments(PairBatch(queries, windows), scoring, FITTING)
    b = pair_alignments(PairBatch(queries, copies), scoring, FITTING)
    for x, y in zip(a, b, strict=True):
        np.testing.assert_array_equal(x, y)
    assert np.median(np.abs(a.reference_starts - 30)) == 0


def mutate_lightly(rng, codes):
    codes = codes.copy()
    codes[rng.random(codes.size) < 0.03] = 2
    return np.delete(codes, rng.integers(10, 140)) if rng.random() < 0.3 else codes


def test_an_indel_in_a_repeat_lies_at_its_left_end():
    pairs = PairBatch(
        sequences_of([encode(b"GATTACAAAAAACCGGTC"), encode(b"GATTACAAAAAAAACCGGTC")]),
        sequences_of([encode(b"GATTACAAAAAAACCGGTC")] * 2),
    )
    got = pair_alignments(pairs, nucleotide_scoring(1, -4, 2, 1), GLOBAL)
    texts = [cigar_text(got.cigar[a:b]) for a, b in itertools.pairwise(got.cigar_offsets)]
    assert texts == ["6=1D12=", "6=1I13="]


PARASAIL = {
    "global": (GLOBAL, parasail.nw_striped_16),
    "local": (LOCAL, parasail.sw_striped_16),
    "semiglobal": (SEMIGLOBAL, parasail.sg_striped_16),
    "fitting": (FITTING, parasail.sg_dx_striped_16),
    "query ends": (Mode(query_start=True, query_end=True), parasail.sg_qx_striped_16),
    "reference end": (Mode(reference_end=True), parasail.sg_de_striped_16),
    "reference start": (Mode(reference_start=True), parasail.sg_db_striped_16),
}


@pytest.mark.parametrize("name", PARASAIL)
def test_scores_equal_parasail(name):
    mode, peer = PARASAIL[name]
    count = 20_000 if name in ("global", "local", "semiglobal") else 2000
    rng = np.random.default_rng(12)
    references = rng.integers(0, 4, (count, 90), dtype=np.uint8)
    queries = references[:, 12:72].copy()
    wrong = rng.random(queries.shape) < 0.06
    queries[wrong] = rng.integers(0, 4, int(wrong.sum()))
    queries[: count // 4] = rng.integers(0, 4, (count // 4, 60))
    queries[count // 2 :, 20:57] = queries[count // 2 :, 23:60]
    pairs = PairBatch(sequences_of(list(queries)), sequences_of(list(references)))
    got = pair_scores(pairs, nucleotide_scoring(2, -3, 3, 2), mode)
    matrix = parasail.matrix_create("ACGT", 2, -3)
    letters = np.frombuffer(b"ACGT", np.uint8)
    query_texts = [row.tobytes().decode() for row in letters[queries]]
    reference_texts = [row.tobytes().decode() for row in letters[references]]
    expected = [
        peer(q, r, 5, 2, matrix).score for q, r in zip(query_texts, reference_texts, strict=True)
    ]
    np.testing.assert_array_equal(got, expected)


def read_wfa_pairs(path):
    queries, references = [], []
    for line in path.read_text().splitlines():
        (queries if line[0] == ">" else references).append(encode(line[1:].encode()))
    return PairBatch(sequences_of(queries), sequences_of(references))


@pytest.mark.parametrize(
    ("answers", "match", "mismatch", "gap_open", "gap_extend"),
    [
        ("affine", 0, -4, 6, 2),
        ("affine.p0", 0, -1, 2, 1),
        ("affine.p1", 0, -3, 1, 4),
        ("affine.p2", 0, -5, 3, 2),
        ("affine.p3", 5, -1, 2, 1),
        ("affine.p4", 2, -3, 1, 4),
        ("affine.p5", 3, -5, 3, 2),
        ("edit", 0, -1, 0, 1),
    ],
)
def test_scores_equal_wfa2(shared_data, answers, match, mismatch, gap_open, gap_extend):
    pairs = read_wfa_pairs(shared_data("expected_wfa2", "wfa.utest.seq"))
    path = shared_data("expected_wfa2", "wfa.utest.check", f"test.{answers}.alg")
    expected = np.array([int(line.split()[0]) for line in path.read_text().splitlines()])
    if answers == "edit":
        expected = -expected
    scoring = nucleotide_scoring(match, mismatch, gap_open, gap_extend)
    assert pairs.count == expected.size == 305
    np.testing.assert_array_equal(pair_scores(pairs, scoring, GLOBAL, 2), expected)
    if answers not in ("affine", "affine.p3"):
        return
    got = pair_alignments(pairs, scoring, GLOBAL, 2)
    for i in range(pairs.count):
        query, reference = pairs.queries.sequence(i), pairs.references.sequence(i)
        cigar = got.cigar[got.cigar_offsets[i] : got.cigar_offsets[i + 1]]
        assert score_of(query, reference, cigar, scoring) == (
            expected[i],
            query.size,
            reference.size,
        )


def test_no_pairs():
    nowhere = np.zeros(0, np.int64)
    nothing = Sequences(np.zeros(9, np.uint8), nowhere, nowhere.astype(np.int32))
    pairs = PairBatch(nothing, nothing)
    for mode in NAMED_MODES:
        got = pair_alignments(pairs, SCHEMES["bwa"], mode, 2)
        assert got.scores.size == got.cigar.size == 0
        assert got.cigar_offsets.tolist() == [0]
        assert pair_ends(pairs, SCHEMES["bwa"], mode).query_ends.size == 0
        assert pair_scores(pairs, SCHEMES["bwa"], mode).size == 0


def score_of(query, reference, cigar, scoring):
    i = j = score = 0
    for run in cigar.tolist():
        length, operation = run >> 4, run & 15
        if operation in (7, 8):
            same = query[i : i + length] == reference[j : j + length]
            assert np.all(same == (operation == 7))
            score += int(scoring.matrix[query[i : i + length], reference[j : j + length]].sum())
            i, j = i + length, j + length
        else:
            score -= scoring.gap_open + length * scoring.gap_extend
            i, j = i + length * (operation == 1), j + length * (operation == 2)
    return score, i, j
