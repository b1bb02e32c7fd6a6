"""A genome cut into chunks has the same matches, for any chunk size."""

import numpy as np
import pytest

from bwarp.mems import reference_chunks
from bwarp.mems.find import KINDS, find_matches, prepare
from bwarp.mems.reference_chunks import find_in_chunks
from bwarp.reference import codes_of
from tests.helpers.cases.chunked_indexes import over_gpus, save_chunks
from tests.helpers.cases.mems_cases import index_of, reference_of, text_of
from tests.helpers.gpu.pretended_device import pretend_gpu
from tests.helpers.oracles.mems_oracle import expected_matches, random_case, rows_of


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

    def all_matches(bases, text, min_length, backend, threads):
        calls.append((bases.n_bases, backend))
        return find_matches(
            index_of([codes_of(bases)]), text, min_length, "maxmatch", "cpu", threads
        )

    monkeypatch.setattr(reference_chunks, "_matches_in", all_matches)
    found = find_in_chunks(reference_of(contigs), text, 100, 20, "maxmatch", "cuda")
    assert rows_of(found) == [(0, 0, 30, 170)]
    assert calls == [(119, "cuda"), (119, "cuda"), (100, "cuda")]


@pytest.mark.parametrize("kind", KINDS)
def test_stored_chunks(tmp_path, kind):
    """Minimum lengths below and above the overlap of the chunks."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        contigs, queries = random_case(rng)
        contigs.append(np.tile(contigs[0], 3)[:400])
        queries.append(np.concatenate([contigs[-1], contigs[-1][:200]]))
        reference = reference_of(contigs)
        for size in (64, 150):
            index = save_chunks(reference, size, tmp_path / "index", with_reverse=False)
            ready = prepare(index, kind, "cpu")
            for min_length in (1, 64, 65, 120):
                text = text_of(queries, (0, 1), min_length)
                expected = expected_matches(contigs, queries, (0, 1), min_length, kind)
                found = find_matches(ready, text, min_length, kind, "cpu", 2)
                assert rows_of(found) == expected, (seed, size, min_length)


@pytest.mark.parametrize("gpus", [2, 3])
def test_chunks_on_several_pretended_gpus(tmp_path, monkeypatch, gpus):
    pretend_gpu(monkeypatch, [], gpus=gpus)
    contigs, queries = random_case(np.random.default_rng(5))
    contigs.append(np.random.default_rng(6).integers(0, 4, 2000).astype(np.uint8))
    queries.append(contigs[-1][100:1800])
    index = save_chunks(reference_of(contigs), 150, tmp_path / "index")
    text = text_of(queries, (0, 1), 20)
    for kind in KINDS:
        ready = over_gpus(prepare(index, kind, "cpu"), gpus)
        assert len(ready.on_each) == gpus
        found = rows_of(find_matches(ready, text, 20, kind, "cpu"))
        assert found == rows_of(find_matches(index_of(contigs), text, 20, kind, "cpu"))


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


@pytest.mark.gpu
@pytest.mark.parametrize("gpus", [0, 1, 2, 4])
def test_stored_chunks_on_gpus(tmp_path, monkeypatch, gpus):
    """One chunk at a time (0), all chunks on one GPU, or spread over several."""
    from bwarp.gpu.cuda import cuda
    from bwarp.index import device_index_cuda

    monkeypatch.setattr(device_index_cuda, "MOST_ELEMENTS", 1 << 18)
    monkeypatch.setattr(device_index_cuda, "FEWEST_ELEMENTS", 1 << 10)

    if gpus > len(cuda.gpus):
        pytest.skip(f"needs {gpus} GPUs")
    rng = np.random.default_rng(3)
    unit = rng.integers(0, 4, 300)
    contigs = [rng.integers(0, 4, 4000).astype(np.uint8) for _ in range(3)]
    for contig in contigs:
        contig[1000:1300] = unit
    reads = [contigs[1][start : start + 100] for start in range(0, 3900, 37)]
    queries = [contigs[0][500:2900], contigs[1][:1500], *reads]
    index = save_chunks(reference_of(contigs), 1700, tmp_path / "index")
    for min_length in (15, 20, 90):
        text = text_of(queries, (0, 1), min_length)
        for kind in KINDS:
            ready = prepare(index, kind, "cuda", gpus)
            assert len(ready.on_each) == max(gpus, 1)
            found = rows_of(find_matches(ready, text, min_length, kind, "cuda"))
            expected = find_matches(index_of(contigs), text, min_length, kind, "cpu")
            assert found == rows_of(expected), (min_length, kind)
