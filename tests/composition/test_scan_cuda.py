"""The kernels of the scan: in plain Python anywhere, and on a GPU, against the oracle."""

from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from bwarp.composition import classes_cpu, tiles_cpu
from bwarp.composition.histogram import count_bases
from bwarp.composition.scan import ALGORITHMS, Scan
from bwarp.errors import UsageError
from tests.composition.test_scan import check
from tests.helpers.oracles.composition_oracle import (
    hits_by_counting,
    hostile_inputs,
    queries_of,
    random_texts,
    references_of,
)

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.composition import classes_cuda, gather_cuda, tiles_cuda
from tests.helpers.gpu.emulated_cuda import launch

HOSTILE = hostile_inputs()

TEXTS = [[0, 1, 2, 3, 4, 3, 2, 1, 0] * 5, [0] * 9, [], [2, 2, 2, 4, 4, 2, 1, 1]]
QUERIES = [[0, 1, 2, 3], [2, 2, 2, 2], [4, 4, 2, 2], [0, 0, 0, 1], [3, 3, 3, 3]]


def placed_on_host(references):
    prefix = np.empty(references.codes.size + 1, np.uint32)
    room = np.empty(references.codes.size, np.uint8)
    tiles_cuda._pack_prefix(references.codes, prefix)
    tiles_cuda._measure_room(references.starts, room)
    return tiles_cuda.DeviceReferences(prefix, room)


def test_prefix_words_wrap_byte_by_byte():
    rng = np.random.default_rng(1)
    references = references_of([rng.choice(5, 2000, p=(0.6, 0.3, 0.03, 0.03, 0.04)).tolist()])
    prefix, room = placed_on_host(references)
    counts = prefix.view(np.uint8).reshape(-1, 4).T
    for base in range(4):
        expected = np.concatenate([[0], np.cumsum(references.codes == base)])
        assert (counts[base] == expected % 256).all()
    assert room[0] == room[1745] == 255
    assert room[-255:].tolist() == list(range(255, 0, -1))


@pytest.mark.parametrize(("distance", "first", "stop"), [(0, 0, 62), (2, 0, 62), (5, 3, 40)])
def test_tiles_are_counted_and_listed(distance, first, stop, monkeypatch):
    monkeypatch.setattr(tiles_cuda, "PIECE", 32)
    references = references_of(TEXTS)
    assert references.codes.size == 62
    _, _, (group,) = queries_of(QUERIES)
    largest = np.array([distance, distance, -1, distance, distance], np.int32)
    prepared = tiles_cpu.prepare_references(references, np.uint8)
    queries = tiles_cpu.TileQueries(4, group.counts, largest, first, stop, 4096)
    wanted = tiles_cpu.count_tile_hits(prepared, queries, 1)
    expected = tiles_cpu.find_tile_hits(prepared, queries, wanted, 1)
    # One tile of 4,096 windows on a GPU, two of 32 here.
    words = np.ascontiguousarray(group.counts.astype(np.uint8)).view(np.int32).ravel()
    hits = np.full(2 * len(words), -7, np.int32)
    queries = tiles_cuda.DeviceQueries(words, largest)
    tiles = tiles_cuda.Tiles(first, stop, 32)
    arguments = (placed_on_host(references), 4, queries, tiles)
    launch(tiles_cuda.count_tiles, 2, 32, *arguments, hits)
    assert hits.reshape(-1, 2).sum(axis=1).tolist() == wanted.sum(axis=1).tolist()
    positions = np.full(hits.sum(), 2**32 - 1, np.uint32)
    distances = np.full(hits.sum(), 2**16 - 1, np.uint16)
    cursors = (np.cumsum(hits) - hits).astype(np.int64)
    launch(tiles_cuda.list_tiles, 2, 32, *arguments, cursors, positions, distances)
    assert positions.tolist() == expected[0].tolist()
    assert distances.tolist() == expected[1].tolist()


@pytest.mark.parametrize("length", [1, 4, 9])
def test_windows_are_counted_by_class(length):
    references = references_of(TEXTS)
    placed = placed_on_host(references)
    expected = classes_cpu.count_windows(references.codes, references.starts, length, 2, 1)
    n_classes = classes_cpu.number_of_classes(length)
    table = np.full(n_classes + 1, 5, np.uint32)
    launch(classes_cuda.clear, -(-table.size // 32), 32, table)
    ambiguous = np.zeros(200, np.uint64)
    n_blocks = -(-placed.room.size // 32)
    launch(classes_cuda.number_windows, n_blocks, 32, placed, length, 2, table, ambiguous)
    assert table[:-1].tolist() == expected.tables[0, :n_classes].tolist()
    found, times = np.unique(ambiguous[: table[-1]], return_counts=True)
    assert found.tolist() == expected.ambiguous.tolist()
    assert times.tolist() == expected.tables[0, n_classes:].tolist()


def test_queries_are_counted_by_prefix_sums():
    rng = np.random.default_rng(8)
    codes, offsets, _ = queries_of([[], *random_texts(rng, 70, 0, 9, ambiguous=0.2), [], [2] * 40])
    sums = []
    for base in range(4):
        row = np.full(codes.size + 1, 9, np.uint32)
        launch(gather_cuda.mark_base, -(-row.size // 32), 32, codes, base, row)
        # Sums that wrap give the same differences.
        sums.append((np.cumsum(row) - row + np.uint32(2**32 - 50)).astype(np.uint32))
    counts = np.full((len(offsets) - 1, 4), 7, np.uint16)
    launch(gather_cuda.gather_counts, 3, 32, gather_cuda.BaseSums(*sums), offsets, counts)
    assert counts.tolist() == count_bases(codes, offsets).tolist()


@pytest.mark.gpu
@pytest.mark.parametrize("at_once", [1, 40, 1 << 25])
def test_queries_are_counted_on_the_gpu(at_once, monkeypatch):
    monkeypatch.setattr(gather_cuda, "_BASES_AT_ONCE", at_once)
    rng = np.random.default_rng(9)
    texts = [[], *random_texts(rng, 500, 0, 90, ambiguous=0.1), [2] * 65_000, [], []]
    for given in (texts, [[], []], []):
        codes, offsets, _ = queries_of(given)
        counts = gather_cuda.count_bases(codes, offsets)
        assert counts.dtype == np.uint16
        assert counts.tolist() == count_bases(codes, offsets).tolist()


def test_windows_are_gathered_and_compared():
    references = references_of(TEXTS)
    codes, offsets, (group,) = queries_of(QUERIES)
    total = references.codes.size
    n_blocks = -(-(total + 1) // 32)
    sums = []
    for base in range(4):
        row = np.full(total + 1, 9, np.uint32)
        launch(gather_cuda.mark_base, n_blocks, 32, references.codes, base, row)
        sums.append((np.cumsum(row) - row).astype(np.uint32))
    ends = np.repeat(references.starts[1:], np.diff(references.starts)).astype(np.uint32)
    never_written = np.iinfo(np.int32).min
    windows = gather_cuda.WindowCounts(*np.full((4, total), never_written, np.int32))
    sums = gather_cuda.BaseSums(*sums)
    launch(gather_cuda.gather_windows, n_blocks, 32, sums, ends, 4, windows)
    # Also where no window begins: old values there could look like a hit.
    assert not np.any(np.array(windows) == never_written)
    expected = hits_by_counting(references, codes, offsets, Fraction(1, 2))
    for query, counts in enumerate(group.counts):
        hits = np.zeros(2, np.int32)
        distances = np.zeros(total, np.uint16)
        arguments = windows, gather_cuda.QueryCounts(*map(int, counts), 2)
        tiles = tiles_cuda.Tiles(0, total, 40)
        launch(gather_cuda.count_query, n_blocks, 32, *arguments, tiles, 0, hits)
        launch(gather_cuda.compare_query, n_blocks, 32, *arguments, 0, distances)
        found = np.flatnonzero(distances != gather_cuda.NO_HIT)
        assert list(zip(found.tolist(), distances[found].tolist(), strict=True)) == expected.get(
            query, []
        )
        assert hits.tolist() == [(found < 40).sum(), (found >= 40).sum()]


def test_references_too_large_for_the_card_are_refused(monkeypatch):
    memory = SimpleNamespace(free=2_000_000_000)
    context = SimpleNamespace(get_memory_info=lambda: memory)
    monkeypatch.setattr(tiles_cuda.cuda, "current_context", lambda: context)
    references = SimpleNamespace(codes=SimpleNamespace(size=300_000_000))
    tiles_cuda.refuse_too_large(references, 5)
    with pytest.raises(UsageError) as error:
        tiles_cuda.refuse_too_large(references, 6)
    assert str(error.value) == (
        "the references require 1.8 GB of GPU memory and their hits 0.5 GB, but only 2.0 GB are "
        "free: "
        "split the references, or use --backend cpu"
    )


@pytest.mark.gpu
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("similarity", ["1", "0.9", "1/2"])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_inputs_on_the_gpu(name, similarity, algorithm):
    references, texts = HOSTILE[name]
    check(Scan(references, Fraction(similarity), algorithm, "cuda", 1), texts)


@pytest.mark.gpu
def test_ambiguous_windows_beyond_the_list_are_counted_again():
    references = references_of([[0, 1, 4, 2, 3] * 50])
    prepared = tiles_cuda.prepare_references(references, np.uint8)
    found = classes_cuda.count_windows(prepared, 6, 6, room=3)
    expected = classes_cpu.count_windows(references.codes, references.starts, 6, 6, 1)
    assert found.ambiguous.tolist() == expected.ambiguous.tolist()
    assert found.tables.tolist() == expected.tables.tolist()
