"""Database search against whole matrices in plain Python, parasail and results of SSW."""

import re

import numpy as np
import parasail
import pytest

from bwarp.alignment.cells_cpu import ROWS
from bwarp.alignment.pair_ends_cpu import pair_ends
from bwarp.alignment.scoring import AMINO_ACIDS, LOCAL, matrix_scoring, nucleotide_scoring
from bwarp.database_search import search_cpu
from bwarp.database_search.best_hits import Hits, hit_pairs, top_hits
from bwarp.database_search.database import read_database, sorted_database
from bwarp.database_search.search_cpu import BLOCK, search_scores
from bwarp.errors import InputError, UsageError
from bwarp.io.fastx import read_sequences
from tests.helpers.cases.random_pairs import mutated, random_sequence
from tests.helpers.oracles.alignment_oracle import end_cell, matrices


def random_search(rng, letters, longest, count):
    queries = [random_sequence(rng, letters, longest) for _ in range(5)]
    targets = [random_sequence(rng, letters, longest) for _ in range(count)]
    for _ in range(count // 3):
        copies = [mutated(rng, queries[i], letters, 0.2) for i in rng.integers(0, 5, 3)]
        targets.append(np.concatenate(copies))
    return queries, targets


def check_against_oracle(queries, targets, scoring, threads=1):
    database = sorted_database(targets, [str(i) for i in range(len(targets))])
    for query, scores in zip(
        queries, search_scores(queries, database, scoring, threads), strict=True
    ):
        for i in range(database.count):
            H = matrices(query.tolist(), database.sequence(i).tolist(), scoring, LOCAL)[0]
            assert scores[i] == end_cell(H, LOCAL)[0], (query, database.sequence(i))


@pytest.mark.parametrize("gaps", [(11, 1), (0, 4), (300, 2)])
def test_equals_the_oracle(gaps):
    queries, targets = random_search(np.random.default_rng(31), len(AMINO_ACIDS), 40, 60)
    check_against_oracle(queries, targets, matrix_scoring("BLOSUM62", *gaps))


def test_sequences_of_every_length_follow_one_another_in_a_lane(monkeypatch):
    monkeypatch.setattr(search_cpu, "_COLUMNS", 3 * BLOCK)
    rng = np.random.default_rng(35)
    targets = [rng.integers(0, 3, n, dtype=np.uint8) for n in range(1, 3 * BLOCK + 2)] * 6
    queries = [rng.integers(0, 3, n, dtype=np.uint8) for n in (1, ROWS - 1, ROWS, ROWS + 1)]
    check_against_oracle(queries, targets, nucleotide_scoring(2, -3, 3, 1), threads=2)


@pytest.mark.parametrize(
    ("match", "lengths"), [(1, (126, 129)), (1, (253, 258)), (127, (256, 260))]
)
@pytest.mark.parametrize("others", [0, 70])
def test_scores_around_the_ends_of_the_types(match, lengths, others):
    """Runs of one letter score their length; adjacent sequences of another letter do not."""
    lengths = np.arange(*lengths)
    targets = [np.zeros(n, np.uint8) for n in (*lengths, *2 * lengths)]
    targets += [np.ones(n, np.uint8) for n in range(others, 0, -1)]
    database = sorted_database(targets, [""] * len(targets))
    scoring = nucleotide_scoring(match, -match, 100, 3)
    queries = [np.zeros(n, np.uint8) for n in (*lengths, *2 * lengths)]
    own = np.array([database.sequence(i)[0] == 0 for i in range(database.count)])
    for query, scores in zip(queries, search_scores(queries, database, scoring), strict=True):
        shorter = np.minimum(np.diff(database.offsets), query.size)
        np.testing.assert_array_equal(scores, match * shorter * own)


def test_scores_beyond_eight_bits():
    rng = np.random.default_rng(32)
    query = rng.integers(0, 20, 90, dtype=np.uint8)
    targets = [mutated(rng, query, 20, errors) for errors in (0, 0.05, 0.3, 0.6, 0.9)]
    targets += [rng.integers(0, 20, 50, dtype=np.uint8) for _ in range(20)]
    check_against_oracle([query, query[:30]], targets, matrix_scoring("PAM30", 9, 1))


def test_scores_beyond_sixteen_bits():
    query = np.zeros(700, np.uint8)
    database = sorted_database([np.zeros(900, np.uint8), np.ones(60, np.uint8)], ["a", "b"])
    (scores,) = search_scores([query], database, nucleotide_scoring(127, -127, 200, 5))
    assert scores.tolist() == [0, 700 * 127]


def test_long_sequences_are_cut_where_no_alignment_is_lost(monkeypatch):
    monkeypatch.setattr(search_cpu, "_UNCUT", 10)
    rng = np.random.default_rng(33)
    queries, targets = random_search(rng, 4, 12, 20)
    targets.append(np.concatenate(targets * 3))
    check_against_oracle(queries, targets, nucleotide_scoring(2, -3, 3, 2))


def test_threads_change_nothing():
    rng = np.random.default_rng(34)
    queries, targets = random_search(rng, 20, 300, 3000)
    database = sorted_database(targets, [""] * len(targets))
    scoring = matrix_scoring("BLOSUM62", 11, 1)
    for one, three in zip(
        search_scores(queries, database, scoring, 1),
        search_scores(queries, database, scoring, 3),
        strict=True,
    ):
        np.testing.assert_array_equal(one, three)


def test_equals_parasail_on_proteins(shared_data):
    scoring = matrix_scoring("BLOSUM62", 10, 1)
    queries = read_database(
        shared_data("protein_queries_cudasw", "queries.fasta"), scoring.code_of_byte
    )
    swissprot = next(
        read_sequences(
            shared_data("protein_swissprot", "swissprot_25th.fasta.gz"), scoring.code_of_byte
        )
    )
    targets = np.split(swissprot.codes, swissprot.offsets[1:-1])[:1500]
    database = sorted_database(targets, swissprot.names()[:1500])
    # parasail lacks J; otherwise the matrices are the same
    matrix = parasail.matrix_create(scoring.letters.decode(), 1, 0)
    letters = np.frombuffer(scoring.letters, np.uint8)
    for row in range(letters.size):
        for column in range(letters.size):
            matrix[row, column] = int(scoring.matrix[row, column])
    texts = [letters[database.sequence(i)].tobytes().decode() for i in range(database.count)]
    chosen = [queries.sequence(i) for i in (0, 4, 9)]
    for query, scores in zip(chosen, search_scores(chosen, database, scoring, 2), strict=True):
        profile = parasail.profile_create_16(letters[query].tobytes().decode(), matrix)
        expected = [parasail.sw_striped_profile_16(profile, t, 11, 1).score for t in texts]
        np.testing.assert_array_equal(scores, expected)


def test_equals_ssw(shared_data):
    """Compare scores of all 100 reads, and ends if SSW's is the first of the best."""
    scoring = nucleotide_scoring(2, -2, 2, 1)
    database = read_database(shared_data("expected_ssw", "1M.fa"), scoring.code_of_byte)
    batches = list(
        read_sequences(shared_data("expected_ssw", "54mer_hap1_1.100.fa"), scoring.code_of_byte)
    )
    queries = [q for b in batches for q in np.split(b.codes, b.offsets[1:-1])]
    text = shared_data("expected_ssw", "new.txt").read_text()
    answers = np.array(
        [
            [int(field) for field in match]
            for match in re.findall(
                r"optimal_alignment_score: (\d+).*target_end: (\d+)\s+query_end: (\d+)", text
            )
        ]
    )
    assert len(queries) == len(answers) == 100
    scores = np.array([row[0] for row in search_scores(queries, database, scoring, 2)])
    np.testing.assert_array_equal(scores, answers[:, 0])
    every = np.arange(100)
    hits = Hits(every, np.zeros(100, np.int64), scores.astype(np.int32))
    ends = pair_ends(hit_pairs(hits, queries, database), scoring, LOCAL, 2)
    np.testing.assert_array_equal(ends.scores, answers[:, 0])
    np.testing.assert_array_equal(ends.reference_ends, answers[:, 1])
    np.testing.assert_array_equal(ends.query_ends, answers[:, 2])


def test_top_hits_are_in_the_order_of_the_file():
    scores = np.array([5, 9, 5, 7, 5, 0], np.int32)
    order = np.array([4, 1, 0, 3, 2, 5])
    assert top_hits(scores, order, 10, 1).tolist() == [1, 3, 2, 4, 0]
    assert top_hits(scores, order, 3, 1).tolist() == [1, 3, 2]
    assert top_hits(scores, order, 3, 6).tolist() == [1, 3]
    assert top_hits(scores, order, 3, 10).size == 0


def test_bad_searches_are_refused():
    database = sorted_database([np.zeros(3, np.uint8)], ["a"])
    with pytest.raises(InputError, match=r"^query 2 is empty: remove it$"):
        list(
            search_scores(
                [np.zeros(3, np.uint8), np.zeros(0, np.uint8)],
                database,
                nucleotide_scoring(1, -1, 1, 1),
            )
        )
    with pytest.raises(
        UsageError,
        match=r"^the largest score is 200, but a search allows at most 127: scale the scores$",
    ):
        list(
            search_scores([np.zeros(3, np.uint8)], database, nucleotide_scoring(200, -150, 249, 11))
        )
