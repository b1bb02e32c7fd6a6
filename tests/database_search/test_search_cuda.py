"""Database search on a GPU, by profiles and by prefix scans: emulated; many on a GPU."""

import threading

import numpy as np
import pytest

from bwarp.alignment.scoring import LOCAL, matrix_scoring, nucleotide_scoring
from bwarp.database_search import prefix_scan_cuda, search_cpu, search_cuda
from bwarp.database_search.database import sorted_database
from bwarp.database_search.profile_kernel_cuda import Tile, query_profile
from bwarp.errors import InputError
from bwarp.runtime.threads import bounded_ranges
from tests.helpers.gpu.emulated_alignment import pretend
from tests.helpers.oracles.alignment_oracle import matrices

#: Strips of 32 and 16 rows, so that short queries take several.
SHORT_STRIPS = {1: (Tile(4, 8, 1),), 2: (Tile(4, 8, 2),)}
OF_FOUR = {1: (Tile(4, 4, 1),), 2: (Tile(8, 4, 2),)}


@pytest.fixture(autouse=True)
def strips_of_any_length(monkeypatch):
    monkeypatch.setattr(search_cuda, "_may_be_one_of_several", lambda tile: True)


ENGINES = {"profile": search_cuda, "prefix scan": prefix_scan_cuda}


def small_search(rng, letters, lengths=(57, 66, 9), targets=5, longest=70):
    queries = [rng.integers(0, letters, length, dtype=np.uint8) for length in lengths]
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
    monkeypatch.setattr(search_cuda, "TILES", SHORT_STRIPS)
    rng = np.random.default_rng(sum(gaps))
    scoring = matrix_scoring("BLOSUM62", *gaps)
    check_against_oracle(ENGINES[engine], *small_search(rng, len(scoring.letters)), scoring)


@pytest.mark.parametrize("warps", [1, 3])
def test_prefix_maxima_cross_several_warps_and_slices(monkeypatch, warps):
    pretend(monkeypatch)
    monkeypatch.setattr(prefix_scan_cuda, "MOST_WARPS", warps)
    width = 32 * prefix_scan_cuda.COLUMNS * warps
    scoring = matrix_scoring("BLOSUM62", 1, 1)
    rng = np.random.default_rng(57)
    half = np.full(14, scoring.letters.index(b"W"), np.uint8)
    query = np.tile(half, 2)
    targets = []
    # A gap pays off: it ends at a border or crosses it, is short, or longer than a warp.
    of_warp = 32 * prefix_scan_cuda.COLUMNS
    for border, gap in ((of_warp, 60), (width, 60), (of_warp, 2), (of_warp, of_warp + 2)):
        for first in {border - 14 - gap, border - 40, border - 15}:
            target = rng.integers(0, 4, max(border, first + gap + 28), dtype=np.uint8)
            if first >= 0:
                target[first : first + 14] = target[first + gap + 14 :][:14] = half
                targets.append(target)
    database = sorted_database(targets, [str(i) for i in range(len(targets))])
    check_against_oracle(prefix_scan_cuda, [query, query[:1]], database, scoring)


@pytest.mark.parametrize("free_bytes", [1, 1500], ids=["one by one", "in parts"])
def test_edges_of_prefix_scans_go_in_parts(monkeypatch, free_bytes):
    pretend(monkeypatch, free_bytes=free_bytes)
    scoring = matrix_scoring("BLOSUM62", 11, 1)
    found = small_search(np.random.default_rng(56), 20, lengths=(33, 8), targets=5, longest=80)
    check_against_oracle(prefix_scan_cuda, *found, scoring)


def test_a_database_larger_than_the_card_goes_in_parts(monkeypatch):
    pretend(monkeypatch, free_bytes=600)
    monkeypatch.setattr(search_cuda, "TILES", SHORT_STRIPS)
    rng = np.random.default_rng(50)
    scoring = matrix_scoring("BLOSUM62", 11, 1)
    queries, database = small_search(rng, 20, lengths=(33, 8, 34), targets=4, longest=40)
    assert len(list(bounded_ranges(database.offsets, 40))) > 1
    check_against_oracle(search_cuda, queries, database, scoring)


@pytest.mark.parametrize("free_bytes", [1 << 30, 600], ids=["whole shares", "shares in parts"])
def test_several_gpus_share_a_database(monkeypatch, free_bytes):
    pretend(monkeypatch, free_bytes=free_bytes, gpus=3)
    monkeypatch.setattr(search_cuda, "TILES", SHORT_STRIPS)
    rng = np.random.default_rng(52)
    scoring = matrix_scoring("BLOSUM62", 11, 1)
    queries, database = small_search(rng, 20, lengths=(12, 15), targets=5, longest=20)
    expected = [scores.tolist() for scores in search_cuda.search_scores(queries, database, scoring)]
    for gpus in (2, 9):
        got = search_cuda.search_scores(queries, database, scoring, gpus=gpus)
        assert [scores.tolist() for scores in got] == expected
    # Stopping early leaves no thread behind.
    threads = threading.active_count()
    search = search_cuda.search_scores(queries, database, scoring, gpus=2)
    assert next(search).tolist() == expected[0]
    search.close()
    assert threading.active_count() == threads


def test_shares_have_similar_sizes():
    lengths = np.sort(np.random.default_rng(53).integers(1, 100, 60))
    offsets = np.append(0, np.cumsum(lengths))
    for gpus in (1, 2, 7):
        shares = search_cuda._shares(offsets, gpus)
        assert [first for first, _ in shares] == [0, *(last for _, last in shares[:-1])]
        assert shares[-1][1] == 60
        sizes = [offsets[last] - offsets[first] for first, last in shares]
        assert len(sizes) == gpus
        assert max(sizes) - min(sizes) <= 200
    assert search_cuda._shares(np.array([0, 5, 10]), 8) == [(0, 1), (1, 2)]
    assert search_cuda._shares(np.array([0]), 3) == []


def test_scores_beyond_sixteen_bits_and_beyond_a_byte(monkeypatch):
    pretend(monkeypatch)
    letters = np.random.default_rng(51).integers(0, 4, 40, dtype=np.uint8)
    database = sorted_database([letters, letters[:5]], ["a", "b"])
    # A match score of 107 never exceeds 2^15 here; 1000 does not fit into a byte.
    for match in (100, 1000):
        scoring = nucleotide_scoring(match, -20, 20, 7)
        check_against_oracle(search_cuda, [letters], database, scoring)
    monkeypatch.setattr(search_cuda, "LIMIT", 3000)
    scoring = nucleotide_scoring(100, -20, 20, 7)
    check_against_oracle(search_cuda, [letters], database, scoring)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_empty_query_is_refused(monkeypatch, engine):
    pretend(monkeypatch)
    database = sorted_database([np.zeros(3, np.uint8)], ["a"])
    empty = [np.zeros(2, np.uint8), np.zeros(0, np.uint8)]
    with pytest.raises(InputError, match="query 2 is empty: remove it"):
        list(ENGINES[engine].search_scores(empty, database, matrix_scoring("BLOSUM62", 11, 1)))


def test_one_of_two_queries_beyond_sixteen_bits(monkeypatch):
    pretend(monkeypatch)
    monkeypatch.setattr(search_cuda, "LIMIT", 100)
    letters = np.random.default_rng(54).integers(0, 20, 40, dtype=np.uint8)
    queries = [letters[:20], letters[16:]]
    database = sorted_database([letters, letters[:22], letters[30:]], ["a", "b", "c"])
    scoring = matrix_scoring("BLOSUM62", 11, 1)
    wide = []
    exact = search_cuda._scores_in_32_bits
    monkeypatch.setattr(
        search_cuda,
        "_scores_in_32_bits",
        lambda query, part, scoring, ids: (
            wide.append((query.size, ids.tolist())) or exact(query, part, scoring, ids)
        ),
    )
    check_against_oracle(search_cuda, queries, database, scoring)
    # By length: c, b, a. The first query is in a and b, the second only in a.
    assert wide == [(20, [1, 2]), (24, [2])]


def test_queries_are_searched_when_their_scores_are_needed(monkeypatch):
    pretend(monkeypatch)
    monkeypatch.setattr(search_cuda, "TILES", SHORT_STRIPS)
    searched = []
    start = search_cuda._start
    monkeypatch.setattr(
        search_cuda, "_start", lambda *arguments: searched.append(1) or start(*arguments)
    )
    database = sorted_database([np.zeros(3, np.uint8)], ["a"])
    queries = [np.zeros(length, np.uint8) for length in (60, 20, 64, 17, 90)]
    scoring = matrix_scoring("BLOSUM62", 11, 1)

    def batches_searched(queries):
        search = search_cuda.search_scores(queries, database, scoring)
        searched.clear()
        for query in queries:
            assert next(search).tolist() == [4 * min(query.size, 3)]
            yield len(searched)

    # 60 with 64, 20 with 17, and 90 alone; one batch ahead.
    assert list(batches_searched(queries)) == [2, 3, 3, 3, 3]
    # The memory for scores suffices for two queries, which are too different to be combined.
    monkeypatch.setattr(search_cuda, "GROUP_BYTES", 8)
    assert list(batches_searched(queries)) == [2, 2, 4, 4, 5]


def test_queries_of_similar_length_are_combined():
    def batches(lengths):
        return search_cuda.query_batches(lengths, 10**6)

    assert batches([]) == []
    assert batches([70]) == [(0,)]
    assert sorted(batches([100, 1000, 100, 990])) == [(0, 2), (1, 3)]
    assert sorted(batches([5000, 20])) == [(0,), (1,)]
    # The unpaired query is the one that costs least by itself.
    assert sorted(batches([5000, 5000, 100])) == [(0, 1), (2,)]
    rng = np.random.default_rng(55)
    for count in range(1, 12):
        lengths = rng.integers(1, 3000, count).tolist()
        taken = [query for batch in batches(lengths) for query in batch]
        assert sorted(taken) == list(range(count))


def test_groups_of_four_threads_give_the_same_scores(monkeypatch):
    pretend(monkeypatch)
    monkeypatch.setattr(search_cuda, "TILES", OF_FOUR)
    monkeypatch.setattr(search_cuda, "MANY_THREADS", 0)
    rng = np.random.default_rng(57)
    scoring = matrix_scoring("BLOSUM62", 11, 1)
    check_against_oracle(search_cuda, *small_search(rng, 24, lengths=(33, 40, 9)), scoring)


def test_a_loaded_database_is_searched_again(monkeypatch):
    pretend(monkeypatch)
    monkeypatch.setattr(search_cuda, "TILES", SHORT_STRIPS)
    loads = []
    load = search_cuda._load_part
    monkeypatch.setattr(
        search_cuda, "_load_part", lambda *arguments: loads.append(1) or load(*arguments)
    )
    scoring = matrix_scoring("BLOSUM62", 11, 1)
    queries, database = small_search(np.random.default_rng(58), 20, targets=3)
    loaded = search_cuda.DatabaseOnGpus(database)
    expected = [scores.tolist() for scores in loaded.search_scores(queries, scoring)]
    again = [scores.tolist() for scores in loaded.search_scores(queries[1:], scoring)]
    assert again == expected[1:]
    assert len(loads) == 1


@pytest.mark.parametrize("gap_open", [11, 200])
def test_kernels_are_loaded_before_the_database_is_read(monkeypatch, gap_open):
    pretend(monkeypatch)
    monkeypatch.setattr(search_cuda, "TILES", SHORT_STRIPS)
    used = []
    make = search_cuda.strip_kernel
    monkeypatch.setattr(
        search_cuda, "strip_kernel", lambda *arguments: used.append(arguments) or make(*arguments)
    )
    scoring = matrix_scoring("BLOSUM62", gap_open, 1)
    queries, database = small_search(np.random.default_rng(59), 20, targets=2)
    search_cuda.load_kernels(queries, scoring)
    loaded = set(used)
    # Gap costs beyond a byte need no such kernel.
    assert bool(loaded) == (gap_open == 11)
    check_against_oracle(search_cuda, queries, database, scoring)
    assert set(used) == loaded
    search_cuda.load_kernels([], scoring)


def test_tiles_suit_the_query(monkeypatch):
    many = 10**6
    for length, targets, group, rows in (
        (144, 2, 4, 36), (144, 1, 4, 36), (128, 2, 4, 32), (60, 1, 4, 16), (5478, 1, 8, 32),
    ):  # fmt: skip
        tile = search_cuda.best_tile(length, targets, many)
        assert (tile.group, tile.rows, tile.targets) == (group, rows, targets)
    # Two strips of 4 x 28 residues would wait for memory.
    monkeypatch.undo()
    assert search_cuda.best_tile(330, 1, many).residues >= search_cuda.LEAST_OF_SEVERAL
    # Few targets need all threads.
    for length, targets, rows in ((144, 2, 20), (128, 2, 16), (222, 2, 28), (128, 1, 16)):
        assert search_cuda.best_tile(length, targets, 100)[:2] == (rows, 8)


@pytest.mark.parametrize("group", [4, 8])
@pytest.mark.parametrize("count", [1, 2])
def test_the_profile_contains_all_queries_at_the_bottom(group, count):
    scoring = matrix_scoring("BLOSUM62", 11, 1)
    queries = [np.arange(20, dtype=np.uint8), np.arange(3, 15, dtype=np.uint8)]
    residues = 8 * group
    tile = Tile(8, group, 1)
    profile = query_profile(queries[:count], scoring.matrix, 12, tile).view(np.uint16)
    if count == 1:
        queries[1] = queries[1][:0]
    profile = profile.reshape(32, 2, 8 // group, group, 4, 2)
    for copy in range(8 // group):
        found = profile[:, :, copy].transpose(4, 0, 2, 1, 3).reshape(2, 32, residues)
        for lane, query in zip(found, queries, strict=True):
            length = query.size
            here = lane[: len(scoring.matrix), residues - length :]
            assert (here == scoring.matrix[query].T + 12).all()
            assert not lane[:, : residues - length].any()
            assert not lane[len(scoring.matrix) :].any()


@pytest.mark.gpu
@pytest.mark.parametrize("engine", ENGINES)
def test_equals_the_cpu_engine(engine):
    rng = np.random.default_rng(60)
    scoring = matrix_scoring("BLOSUM62", 11, 1)
    lengths = rng.integers(1, 3000, 300)
    sequences = [rng.integers(0, 20, n, dtype=np.uint8) for n in lengths]
    queries = [rng.integers(0, 20, n, dtype=np.uint8) for n in (1, 37, 144, 700, 1500, 140)]
    # A score that does not fit into 16 bits.
    sequences += [np.tile(queries[4], 6), queries[3]]
    queries.append(np.tile(queries[4], 6))
    database = sorted_database(sequences, [""] * len(sequences))
    for got, expected in zip(
        ENGINES[engine].search_scores(queries, database, scoring),
        search_cpu.search_scores(queries, database, scoring, 4),
        strict=True,
    ):
        np.testing.assert_array_equal(got, expected)


@pytest.mark.gpu
def test_every_tile_gives_the_same_scores(monkeypatch):
    rng = np.random.default_rng(61)
    scoring = matrix_scoring("BLOSUM62", 11, 1)
    sequences = [rng.integers(0, 20, n, dtype=np.uint8) for n in rng.integers(1, 700, 500)]
    queries = [rng.integers(0, 20, 300, dtype=np.uint8) for _ in range(3)]
    database = sorted_database(sequences, [""] * len(sequences))
    expected = np.array(list(search_cpu.search_scores(queries, database, scoring, 4)))
    loaded = search_cuda.DatabaseOnGpus(database)
    monkeypatch.setattr(search_cuda, "MANY_THREADS", 0)
    # Few, because each is compiled.
    for rows, group in ((16, 8), (36, 8), (16, 4), (36, 4)):
        tiles = {targets: (Tile(rows, group, targets),) for targets in (1, 2)}
        monkeypatch.setattr(search_cuda, "TILES", tiles)
        found = np.array(list(loaded.search_scores(queries, scoring)))
        np.testing.assert_array_equal(found, expected, str(tiles))
