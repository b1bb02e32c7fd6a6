"""Seeds on a GPU, against comparing every window, and against the CPU engine."""

import numpy as np
import pytest

from bwarp.seeding.find import find_in_passes
from bwarp.seeding.hits import SeedOptions
from bwarp.seeding.kmers import whole_queries
from tests.helpers.oracles.index_oracle import index_of
from tests.helpers.oracles.seed_hits_oracle import (
    GENOMES,
    batch_of,
    counts_when_stopped,
    hits_by_comparing,
    hits_of_parts,
    index_of_genome,
    kmers_like,
    mutated,
    random_bases,
)

pytestmark = pytest.mark.gpu


@pytest.fixture
def small_lists(monkeypatch):
    """Use workspace for small genomes."""
    from bwarp.index import device_index_cuda

    monkeypatch.setattr(device_index_cuda, "MOST_ELEMENTS", 1 << 18)
    monkeypatch.setattr(device_index_cuda, "FEWEST_ELEMENTS", 1 << 10)


def kmers_of(kmers: list[bytes]):
    return whole_queries(batch_of({str(i): kmer for i, kmer in enumerate(kmers)}))


@pytest.mark.parametrize("genome", GENOMES)
@pytest.mark.parametrize(
    ("locate", "occ_rate", "sa_rate"),
    [("auto", 64, 4), ("gpu", 64, 1), ("hybrid", 96, 3), ("cpu", 32, 1), ("hybrid", 1024, 1)],
)
def test_every_window(small_lists, genome, locate, occ_rate, sa_rate):
    from bwarp.seeding import find_cuda

    index = index_of_genome(genome, occ_rate=occ_rate, sa_rate=sa_rate)
    prepared = None
    for mismatches in (2, 0, 1):
        for algorithm in ("schemes", "backtracking"):
            options = SeedOptions(mismatches, 9, algorithm, locate)
            prepared = find_cuda.prepare(prepared or index, options)
            for k in (8, 20, 33) if algorithm == "schemes" else (13, 40):
                kmers = kmers_like(GENOMES[genome], k, mismatches, 25, k)
                found = find_cuda.find_seeds(prepared, kmers_of(kmers).words, k, options, threads=2)
                expected = hits_by_comparing(GENOMES[genome], kmers, mismatches)
                counts = np.bincount([hit[0] for hit in expected], minlength=len(kmers))
                over = np.flatnonzero(counts > 9)
                assert found.over_kmers.tolist() == over.tolist()
                most = 10 if options.stops else 10**9
                assert found.over_counts.tolist() == np.minimum(counts[over], most).tolist()
                assert hits_of_parts(found.hits, index.reference) == [
                    hit for hit in expected if counts[hit[0]] <= 9
                ]


@pytest.mark.parametrize("genome", GENOMES)
@pytest.mark.parametrize("mismatches", [1, 2])
def test_backtracking_stops_above_the_limit(small_lists, genome, mismatches):
    from bwarp.seeding import find_cuda

    contigs = GENOMES[genome]
    for k in (9, 20):
        kmers = [*kmers_like(contigs, k, mismatches, 20, k), b"T" * k, (b"CAG" * k)[:k]]
        hits = hits_by_comparing(contigs, kmers, mismatches)
        for max_hits in (1, 3, 20):
            options = SeedOptions(mismatches, max_hits, "backtracking")
            device = find_cuda.prepare(index_of_genome(genome), options)
            [(_, counts, _)] = find_cuda._search_batches(device, kmers_of(kmers).words, k, options)
            assert np.array_equal(counts, counts_when_stopped(contigs, kmers, hits, max_hits))


def repetitive_genome() -> list[bytes]:
    """Return two contigs of 150,000 bases; a third are copies of a few units of all ages."""
    rng = np.random.default_rng(3)
    letters = bytearray(random_bases(300_000, 8))
    for family in range(5):
        unit = random_bases(300, 20 + family)
        for copy in range(70):
            start = int(rng.integers(0, len(letters) - 300))
            changed = rng.integers(0, 300, int(rng.integers(0, 40)))
            letters[start : start + 300] = mutated(unit, changed, copy)
    letters[1000:2000] = b"N" * 1000
    return [bytes(letters[:150_000]), bytes(letters[150_000:])]


@pytest.fixture(scope="module")
def repeats():
    return index_of(repetitive_genome(), prefix_length=8)


@pytest.mark.parametrize("max_hits", [0, 30])
@pytest.mark.parametrize(
    ("k", "mismatches"), [(10, 0), (20, 0), (20, 1), (30, 2), (40, 3), (24, 4)]
)
def test_like_the_cpu(small_lists, repeats, monkeypatch, k, mismatches, max_hits):
    from bwarp.seeding import find_cuda

    monkeypatch.setattr(find_cuda, "HITS_AT_ONCE", 50_000)
    contigs = [letters.replace(b"N", b"A") for letters in repetitive_genome()]
    kmers = kmers_of(kmers_like(contigs, k, mismatches, 1500, 1))
    options = SeedOptions(mismatches, max_hits)
    (expected,) = find_in_passes(repeats, kmers, options, "cpu", 4)
    found = find_cuda.find_seeds(repeats, kmers.words, k, options, threads=4)
    assert np.array_equal(found.over_kmers, expected.over_kmers)
    assert np.array_equal(found.over_counts, expected.over_counts)
    parts, expected_parts = list(found.hits), list(expected.hits)
    for name in ("kmers", "strands", "positions", "mismatches"):
        mine = np.concatenate([getattr(part, name) for part in parts])
        its = np.concatenate([getattr(part, name) for part in expected_parts])
        assert mine.dtype == its.dtype
        assert np.array_equal(mine, its), name


def test_no_kmers(small_lists, repeats):
    from bwarp.seeding import find_cuda

    found = find_cuda.find_seeds(repeats, np.empty((0, 1), np.uint64), 20, SeedOptions())
    assert found.over_kmers.size == 0
    assert not list(found.hits)


def test_memory_is_as_planned(repeats):
    from bwarp.gpu.available_memory import free_memory
    from bwarp.index.device_index_cuda import Workspace
    from bwarp.seeding import find_cuda

    before = free_memory()
    prepared = find_cuda.prepare(repeats, SeedOptions(mismatches=1))
    taken = before - free_memory()
    # Half of the workspace is left for rows that wait to be located.
    planned = prepared.plan.index_bytes + prepared.plan.elements * Workspace.BYTES
    assert abs(taken - planned) <= 0.05 * planned
