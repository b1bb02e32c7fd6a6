"""Database search on a GPU, by profiles and by prefix scans: emulated, and on a GPU in bulk."""

import threading

import numpy as np
import pytest
from alignment_oracle import matrices
from emulated_alignment import pretend

from bwarp.alignment import prefix_scan_cuda, search_cpu, search_cuda
from bwarp.alignment.database import sorted_database
from bwarp.alignment.profile_cuda import query_profile
from bwarp.alignment.scheme import LOCAL, matrix_scoring, nucleotide_scoring
from bwarp.errors import InputError

ENGINES = {"profile": search_cuda, "prefix scan": prefix_scan_cuda}


def small_search(rng, letters, queries=2, targets=5, longest=70):
    queries = [
        rng.integers(0, letters, rng.integers(1, longest), dtype=np.uint8) for _ in range(queries)
    ]
    database = []
    for _ in range(targets):
        target = rng.integers(0, letters, rng.integers(1, longest), dtype=np.uint8)
        piece = queries[0][rng.integers(0, queries[0].size) :][: target.size]
        if rng.random() < 0.6:
            target[: piece.size] = piece
        database.append(target)
    return queries, sorted_database(database, [str(i) for i in range(targets)])


def best_score(query, target, scoring):
    H, _, _ = matrices(query, target, scoring, LOCAL)
    return max(map(max, H))


def check_against_oracle(engine, queries, database, scoring):
    results = list(engine.search_scores(queries, database, scoring))
    assert len(results) == len(queries)
    for query, scores in zip(queries, results, strict=True):
        expected = [
            max(
                map(max, matrices(query.tolist(), database.sequence(i).tolist(), scoring, LOCAL)[0])
            )
            for i in range(database.count)
        ]
        assert scores.tolist() == expected


@pytest.mark.parametrize(
    ("engine", "gaps"),
    [("profile", gaps) for gaps in ((11, 1), (10, 2), (2, 1), (0, 4))]
    + [("prefix scan", gaps) for gaps in ((11, 1), (0, 4))],
    ids=str,
)
def test_equals_the_oracle(monkeypatch, engine, gaps):
    pretend(monkeypatch)
    # Strips of 16 rows, so that these queries take several.
    monkeypatch.setattr(search_cuda, "STRIP_ROWS", (2,))
    rng = np.random.default_rng(sum(gaps))
    scoring = matrix_scoring("BLOSUM62", *gaps)
    check_against_oracle(ENGINES[engine], *small_search(rng, len(scoring.letters)), scoring)


def test_a_database_larger_than_the_card_goes_in_parts(monkeypatch):
    pretend(monkeypatch, free_bytes=600)
    monkeypatch.setattr(search_cuda, "STRIP_ROWS", (2,))
    rng = np.random.default_rng(50)
    scoring = matrix_scoring("BLOSUM62", 11, 1)
    queries, database = small_search(rng, 20, queries=1, targets=4, longest=40)
    assert len(search_cuda._part_edges(database.offsets, 40, 0, 4)) > 1
    check_against_oracle(search_cuda, queries, database, scoring)


@pytest.mark.parametrize("free_bytes", [1 << 30, 600], ids=["whole shares", "shares in parts"])
def test_several_cards_share_a_database(monkeypatch, free_bytes):
    pretend(monkeypatch, free_bytes=free_bytes, cards=3)
    monkeypatch.setattr(search_cuda, "STRIP_ROWS", (2,))
    rng = np.random.default_rng(52)
    scoring = matrix_scoring("BLOSUM62", 11, 1)
    queries, database = small_search(rng, 20, queries=2, targets=5, longest=30)
    expected = [scores.tolist() for scores in search_cuda.search_scores(queries, database, scoring)]
    for cards in (2, 9):
        got = search_cuda.search_scores(queries, database, scoring, cards=cards)
        assert [scores.tolist() for scores in got] == expected
    # Who stops early leaves no thread behind.
    threads = threading.active_count()
    search = search_cuda.search_scores(queries, database, scoring, cards=2)
    assert next(search).tolist() == expected[0]
    search.close()
    assert threading.active_count() == threads


def test_shares_are_of_like_size():
    lengths = np.sort(np.random.default_rng(53).integers(1, 100, 60))
    offsets = np.append(0, np.cumsum(lengths))
    for cards in (1, 2, 7):
        shares = search_cuda._shares(offsets, cards)
        assert [first for first, _ in shares] == [0, *(last for _, last in shares[:-1])]
        assert shares[-1][1] == 60
        sizes = [offsets[last] - offsets[first] for first, last in shares]
        assert len(sizes) == cards
        assert max(sizes) - min(sizes) <= 200
    assert search_cuda._shares(np.array([0, 5, 10]), 8) == [(0, 1), (1, 2)]
    assert search_cuda._shares(np.array([0]), 3) == []


def test_scores_beyond_sixteen_bits_and_beyond_a_byte(monkeypatch):
    pretend(monkeypatch)
    letters = np.random.default_rng(51).integers(0, 4, 40, dtype=np.uint8)
    database = sorted_database([letters, letters[:5]], ["a", "b"])
    # 127 - 20 a match passes 2^15 nowhere here, 1000 a match does not fit a byte.
    for match in (100, 1000):
        scoring = nucleotide_scoring(match, -20, 20, 7)
        check_against_oracle(search_cuda, [letters], database, scoring)
    monkeypatch.setattr(search_cuda, "LIMIT", 3000)
    scoring = nucleotide_scoring(100, -20, 20, 7)
    check_against_oracle(search_cuda, [letters], database, scoring)


def test_an_empty_query_is_refused(monkeypatch):
    pretend(monkeypatch)
    database = sorted_database([np.zeros(3, np.uint8)], ["a"])
    empty = [np.zeros(2, np.uint8), np.zeros(0, np.uint8)]
    with pytest.raises(InputError, match="query 2 is empty: remove it"):
        list(search_cuda.search_scores(empty, database, matrix_scoring("BLOSUM62", 11, 1)))


def test_rows_suit_the_query():
    assert search_cuda.best_rows(144) == 20
    assert search_cuda.best_rows(128) == 16
    assert search_cuda.best_rows(222) == 28
    assert search_cuda.best_rows(5478) == 32


def test_the_profile_stands_at_the_bottom_of_its_strips():
    scoring = matrix_scoring("BLOSUM62", 11, 1)
    query = np.arange(20, dtype=np.uint8)
    profile = query_profile(query, scoring.matrix, 12, 20).view(np.uint8).reshape(1, 32, 2, 8, 16)
    rows = np.concatenate([profile[0, :, 0], profile[0, :, 1]], axis=-1)[:, :, :20].reshape(32, 160)
    assert (rows[: len(scoring.matrix), 140:] == scoring.matrix[query].T + 12).all()
    assert not rows[:, :140].any()
    assert not rows[len(scoring.matrix) :].any()


@pytest.mark.gpu
@pytest.mark.parametrize("engine", ENGINES)
def test_equals_the_cpu_engine(engine):
    rng = np.random.default_rng(60)
    scoring = matrix_scoring("BLOSUM62", 11, 1)
    lengths = rng.integers(1, 3000, 300)
    sequences = [rng.integers(0, 20, n, dtype=np.uint8) for n in lengths]
    queries = [rng.integers(0, 20, n, dtype=np.uint8) for n in (1, 37, 144, 700, 1500)]
    # A score that no 16 bits hold.
    sequences += [np.tile(queries[4], 6), queries[3]]
    queries.append(np.tile(queries[4], 6))
    database = sorted_database(sequences, [""] * len(sequences))
    for got, expected in zip(
        ENGINES[engine].search_scores(queries, database, scoring),
        search_cpu.search_scores(queries, database, scoring, 4),
        strict=True,
    ):
        np.testing.assert_array_equal(got, expected)
