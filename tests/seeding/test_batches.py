"""Batches of k-mers that several simulated GPUs search with the CPU engine."""

import numpy as np
import pytest

from bwarp.offtargets.guides import parse_pam
from bwarp.seeding import find_cpu
from bwarp.seeding.find import (
    BatchSearch,
    count_seeds,
    find_in_passes,
    find_sites,
    is_beside_pam,
    kmer_batches,
)
from bwarp.seeding.hits import SeedOptions
from tests.helpers.gpu.pretended_device import pretend_gpu
from tests.helpers.oracles.seed_hits_oracle import (
    GENOMES,
    batch_of,
    hits_of_parts,
    index_of_genome,
    kmers_like,
)

GENOME = "repeats" if "repeats" in GENOMES else next(iter(GENOMES))


def batches():
    for number, k in enumerate((20, 12, 21, 9, 30, 20, 16)):
        kmers = kmers_like(GENOMES[GENOME], k, 1, 6, number)
        kmers += [b"A" * 20] * (number % 2)
        named = {str(i): kmer for i, kmer in enumerate(kmers)}
        yield next(kmer_batches(batch_of(named))), number


@pytest.mark.parametrize("gpus", [1, 2, 3])
@pytest.mark.parametrize("pam", [None, "NGG"])
def test_hits_come_in_order_with_their_kmers(monkeypatch, gpus, pam):
    monkeypatch.setattr(find_cpu, "HITS_AT_ONCE", 3)
    pretend_gpu(monkeypatch, [], gpus=3)
    index, options = index_of_genome(GENOME), SeedOptions(1, 5)
    pam = parse_pam(pam, 3) if pam else None
    search = BatchSearch(options, "cpu", 1, index.reference, pam)
    got = search.find([index] * gpus, batches())
    n_found = n_hits = 0
    for (kmers, _), (same, _), found in zip_found(batches(), got):
        assert np.array_equal(kmers.words, same.words)
        is_site = is_beside_pam(index.reference, pam, kmers) if pam else None
        expected = list(find_sites(index, kmers, options, "cpu", 1, is_site))
        n_found += len(expected)
        for one, other in zip(found, expected, strict=True):
            assert one.over_kmers.tolist() == other.over_kmers.tolist()
            assert one.over_counts.tolist() == other.over_counts.tolist()
            hits = hits_of_parts(other.hits, index.reference)
            n_hits += len(hits)
            assert hits_of_parts(one.hits, index.reference) == hits
    assert n_found
    assert n_hits


def zip_found(expected, got):
    for batch, (same, found) in zip(expected, got, strict=True):
        yield batch, same, found


@pytest.mark.parametrize("gpus", [1, 2])
def test_counts(monkeypatch, gpus):
    pretend_gpu(monkeypatch, [], gpus=2)
    index, options = index_of_genome(GENOME), SeedOptions(1, 0)
    got = BatchSearch(options, "cpu", 1, index.reference).count([index] * gpus, batches())
    for (kmers, number), (_, same), counts in zip_found(batches(), got):
        assert same == number
        assert counts.tolist() == count_seeds(index, kmers, options, "cpu").tolist()
        n_hits = sum(
            hits.count
            for found in find_in_passes(index, kmers, options, "cpu")
            for hits in found.hits
        )
        assert counts.sum() == n_hits
