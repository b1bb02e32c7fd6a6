"""A genome cut into chunks has the same matches, for any chunk size."""

import numpy as np
import pytest

from bwarp.mems import reference_chunks
from bwarp.mems.find import KINDS, find_matches
from bwarp.mems.reference_chunks import cut_reference, find_in_chunks
from bwarp.reference import codes_of
from tests.helpers.cases.mems_cases import index_of, reference_of, text_of
from tests.helpers.oracles.mems_oracle import expected_matches, random_case, rows_of


def test_chunks_contain_their_bases():
    contigs = [np.array(c, np.uint8) for c in ([0, 1, 4, 2], [], [4, 4, 4, 4, 4], [3, 3, 0])]
    reference = reference_of(contigs)
    codes = np.concatenate(contigs)
    for size in (1, 2, 3, 5, 100):
        positions = []
        for chunk in cut_reference(reference, size, 3):
            end = min(chunk.stop + 2, codes.size)
            assert np.array_equal(codes_of(chunk.reference), codes[chunk.start : end])
            assert chunk.stop - chunk.start <= size
            positions += range(chunk.start, chunk.stop)
        # Only sequences without any base to match are skipped.
        assert len(set(positions)) == len(positions)
        assert np.all(codes[sorted(set(range(codes.size)) - set(positions))] == 4)


@pytest.mark.parametrize("kind", KINDS)
def test_matches_do_not_depend_on_the_cuts(kind):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        contigs, queries = random_case(rng)
        min_length = int(rng.choice([1, 2, 5, 13, 40]))
        reference = reference_of(contigs)
        text = text_of(queries, (0, 1), min_length)
        expected = expected_matches(contigs, queries, (0, 1), min_length, kind)
        for size in (1, 3, 10, 31, 1000):
            if size < 10 and seed >= 5:
                continue
            found = find_in_chunks(reference, text, size, min_length, kind, "cpu")
            assert rows_of(found) == expected, (seed, size)


@pytest.mark.parametrize("kind", KINDS)
def test_matches_over_many_chunks(kind):
    """One match spans dozens of cuts, and its copies span others."""
    rng = np.random.default_rng(1)
    unit = rng.integers(0, 4, 900)
    contigs = [np.concatenate([unit, unit[:400], unit]).astype(np.uint8), unit.astype(np.uint8)]
    queries = [unit.astype(np.uint8), np.concatenate([unit[50:], unit[:300]]).astype(np.uint8)]
    text = text_of(queries, (0, 1), 20)
    whole = rows_of(find_matches(index_of(contigs), text, 20, kind, "cpu"))
    for size in (25, 100, 901):
        found = find_in_chunks(reference_of(contigs), text, size, 20, kind, "cpu", 2)
        assert rows_of(found) == whole


def test_each_chunk_can_be_searched_on_the_gpu(monkeypatch):
    """The search on a GPU gets the index of each chunk; here the CPU's search replaces it."""
    contigs = [np.random.default_rng(2).integers(0, 4, 300).astype(np.uint8)]
    text = text_of([contigs[0][30:200]], (0,), 20)
    calls = []

    def all_matches(chunk, text, min_length, backend, threads):
        calls.append((chunk.start, chunk.stop, backend))
        return find_matches(
            index_of([codes_of(chunk.reference)]), text, min_length, "maxmatch", "cpu", threads
        )

    monkeypatch.setattr(reference_chunks, "_all_matches", all_matches)
    found = find_in_chunks(reference_of(contigs), text, 100, 20, "maxmatch", "cuda")
    assert rows_of(found) == [(0, 0, 30, 170)]
    assert calls == [(0, 100, "cuda"), (100, 200, "cuda"), (200, 300, "cuda")]


@pytest.mark.gpu
@pytest.mark.parametrize("kind", KINDS)
def test_on_a_gpu(kind):
    rng = np.random.default_rng(3)
    contigs = [rng.integers(0, 4, 3000).astype(np.uint8) for _ in range(2)]
    queries = [contigs[0][500:2900], contigs[1][:1500]]
    text = text_of(queries, (0, 1), 20)
    expected = rows_of(find_matches(index_of(contigs), text, 20, kind, "cpu"))
    found = find_in_chunks(reference_of(contigs), text, 1000, 20, kind, "cuda")
    assert rows_of(found) == expected
