"""Hits in the chunks of a reference, joined, are those of one index; so are counts and limits."""

import numpy as np
import pytest

from bwarp.seeding import find as find_module
from bwarp.seeding import find_cpu
from bwarp.seeding.find import count_seeds, find_in_passes, kmer_batches, prepare
from bwarp.seeding.hits import SeedOptions
from tests.helpers.cases.chunked_indexes import over_gpus, save_chunks
from tests.helpers.gpu.pretended_device import pretend_gpu
from tests.helpers.oracles.index_oracle import reference_of
from tests.helpers.oracles.seed_hits_oracle import (
    GENOMES,
    batch_of,
    hits_by_comparing,
    hits_of_parts,
    kmers_like,
    random_bases,
)

#: K-mers of all lengths; the last ones have more hits in an overlap than most limits allow.
LENGTHS = [8, 20, 8, 33, 21, 64, 63, 20, 32, 9, 8, 40]
OFTEN = [b"A" * 8, b"A" * 20, b"AC" * 5, b"ACACACACAC", b"CAG" * 4, b"T" * 64]


def kmers_of(genome, mismatches):
    kmers = [
        kmers_like(GENOMES[genome], k, mismatches, 4 + i, i)[-1] for i, k in enumerate(LENGTHS)
    ]
    return [*kmers, *OFTEN]


def batch_of_kmers(kmers):
    (batch,) = kmer_batches(batch_of({str(i): kmer for i, kmer in enumerate(kmers)}))
    return batch


def found_in(ready, kmers, options, backend="cpu", threads=1):
    """Return all hits of k-mers, and those over the limit with their counts, in order."""
    hits, over, counts = [], [], []
    for found in find_in_passes(ready, batch_of_kmers(kmers), options, backend, threads):
        over += found.over_kmers.tolist()
        counts += found.over_counts.tolist()
        hits += hits_of_parts(found.hits, ready.reference)
    return hits, over, counts


def expected_of(contigs, kmers, mismatches, max_hits):
    hits = hits_by_comparing(contigs, kmers, mismatches)
    counts = np.bincount([hit[0] for hit in hits], minlength=len(kmers))
    over = [int(kmer) for kmer in np.flatnonzero(counts > max_hits)] if max_hits else []
    return [hit for hit in hits if hit[0] not in over], over, counts[over].tolist()


@pytest.mark.parametrize(
    ("genome", "chunk_bases"),
    [("random", 150), ("repeats", 64), ("repeats", 150), ("gaps", 64), ("many contigs", 150)],
)
@pytest.mark.parametrize("mismatches", [0, 2])
def test_hits_counts_and_limits(tmp_path, genome, chunk_bases, mismatches):
    index = save_chunks(reference_of(GENOMES[genome]), chunk_bases, tmp_path / "index")
    kmers = kmers_of(genome, mismatches)
    ready = prepare(index, SeedOptions(mismatches), "cpu")
    for max_hits in (0, 5, 60, 2**32):
        expected = expected_of(GENOMES[genome], kmers, mismatches, max_hits)
        assert found_in(ready, kmers, SeedOptions(mismatches, max_hits)) == expected, max_hits
    hits, _, _ = expected_of(GENOMES[genome], kmers, mismatches, 0)
    counts = count_seeds(ready, batch_of_kmers(kmers), SeedOptions(mismatches), "cpu")
    expected = np.bincount([hit[0] for hit in hits], minlength=len(kmers))
    assert np.array_equal(counts, expected)


REPETITIVE = [b"A" * 700 + random_bases(100, 1) + b"A" * 900, b"AC" * 500 + b"A" * 37]


def test_limits_in_chunks_and_together(tmp_path):
    """Around every possible limit: over it in one chunk, in its overlap, only in all together."""
    index = save_chunks(reference_of(REPETITIVE), 300, tmp_path / "index")
    kmers = [b"A" * 8, b"A" * 30, b"A" * 64, b"AC" * 8, b"C" * 20, b"GT" * 15]
    counts = expected_of(REPETITIVE, kmers, 0, 1)[2]
    limits = {n + more for n in (126, 300, 363, *counts) for more in (-1, 0, 1)}
    ready = prepare(index, SeedOptions(), "cpu")
    for max_hits in sorted(limits):
        found = found_in(ready, kmers, SeedOptions(0, max_hits))
        assert found == expected_of(REPETITIVE, kmers, 0, max_hits), max_hits


def test_searches_that_stop_at_the_limit(tmp_path):
    """Backtracking counts one hit more than the limit, also if only all chunks exceed it."""
    contigs = GENOMES["repeats"]
    index = save_chunks(reference_of(contigs), 150, tmp_path / "index")
    kmers = kmers_of("repeats", 1)
    for max_hits in (5, 60):
        options = SeedOptions(1, max_hits, "backtracking")
        hits, over, _ = expected_of(contigs, kmers, 1, max_hits)
        found = found_in(prepare(index, options, "cpu"), kmers, options)
        assert found == (hits, over, [max_hits + 1] * len(over))


@pytest.mark.parametrize("at_once", [1, 3, 50, 1000])
def test_parts_and_passes_of_any_size(tmp_path, monkeypatch, at_once):
    index = save_chunks(reference_of(GENOMES["repeats"]), 150, tmp_path / "index")
    kmers = 3 * kmers_of("repeats", 1)
    monkeypatch.setattr(find_cpu, "HITS_AT_ONCE", at_once)
    monkeypatch.setitem(find_module._INTERVALS_AT_ONCE, "cpu", 20 * at_once)
    ready = prepare(index, SeedOptions(1), "cpu")
    for max_hits in (0, 9):
        expected = expected_of(GENOMES["repeats"], kmers, 1, max_hits)
        for threads in (1, 3):
            assert found_in(ready, kmers, SeedOptions(1, max_hits), threads=threads) == expected


@pytest.mark.parametrize("gpus", [2, 3])
def test_chunks_on_several_pretended_gpus(tmp_path, monkeypatch, gpus):
    pretend_gpu(monkeypatch, [], gpus=gpus)
    index = save_chunks(reference_of(GENOMES["repeats"]), 100, tmp_path / "index")
    kmers = 3 * kmers_of("repeats", 1)
    monkeypatch.setattr(find_cpu, "HITS_AT_ONCE", 20)
    monkeypatch.setitem(find_module._INTERVALS_AT_ONCE, "cpu", 400)
    ready = over_gpus(prepare(index, SeedOptions(1), "cpu"), gpus)
    assert len(ready.on_each) == gpus
    for max_hits in (0, 9):
        expected = expected_of(GENOMES["repeats"], kmers, 1, max_hits)
        assert found_in(ready, kmers, SeedOptions(1, max_hits)) == expected
    counts = count_seeds(ready, batch_of_kmers(kmers), SeedOptions(1), "cpu")
    assert counts.sum() == len(expected_of(GENOMES["repeats"], kmers, 1, 0)[0])


@pytest.mark.gpu
@pytest.mark.parametrize("gpus", [1, 2, 4])
def test_chunks_on_gpus(tmp_path, monkeypatch, gpus):
    from bwarp.gpu.cuda import cuda
    from bwarp.index import device_index_cuda

    monkeypatch.setattr(device_index_cuda, "MOST_ELEMENTS", 1 << 20)
    monkeypatch.setattr(device_index_cuda, "FEWEST_ELEMENTS", 1 << 14)

    if gpus > len(cuda.gpus):
        pytest.skip(f"needs {gpus} GPUs")
    for contigs, name in ((GENOMES["repeats"], "repeats"), (REPETITIVE, "random")):
        index = save_chunks(reference_of(contigs), 130, tmp_path / "index")
        for mismatches, max_hits, locate in ((0, 0, "gpu"), (0, 128, "auto"), (1, 9, "hybrid"),
                                             (2, 0, "cpu"), (1, 200, "gpu")):  # fmt: skip
            kmers = 3 * kmers_of(name, mismatches)
            options = SeedOptions(mismatches, max_hits, locate=locate)
            ready = prepare(index, options, "cuda", gpus)
            assert len(ready.on_each) == gpus
            expected = expected_of(contigs, kmers, mismatches, max_hits)
            assert found_in(ready, kmers, options, "cuda") == expected
            counts = count_seeds(ready, batch_of_kmers(kmers), options, "cuda")
            hits = expected_of(contigs, kmers, mismatches, 0)[0]
            n_hits = np.bincount([hit[0] for hit in hits], minlength=len(kmers))
            assert np.array_equal(counts, n_hits)
