"""The filter keeps whatever has an alignment, drops what it should, and says how many."""

import numpy as np
import pytest

from bwarp.errors import UsageError
from bwarp.filtering import filter_cpu
from bwarp.filtering.candidates import Candidates
from bwarp.sequence import pack
from tests.helpers.oracles.filter_oracle import mutated_candidates

#: The benchmark program does the same a million times.
N_MUTATED = 33_000


def genome_with_repeats(rng):
    genome = rng.integers(0, 4, 30_000).astype(np.uint8)
    genome[5000:9000] = np.tile([0, 1], 2000)
    genome[12_000:13_000] = 2
    genome[20_000:21_000] = 4
    return genome


@pytest.fixture(scope="module")
def mutated():
    """A genome, and reads and candidates of it that must be kept."""
    rng = np.random.default_rng(0)
    genome = genome_with_repeats(rng)
    return genome, *mutated_candidates(rng, genome, N_MUTATED)


@pytest.mark.parametrize("kmer_length", [0, 2, 4])
def test_no_mutated_window_is_ever_dropped(mutated, kmer_length):
    genome, reads, starts, candidates = mutated
    found = filter_cpu.filter_candidates(reads, starts, pack(genome), candidates, kmer_length, 2)
    assert found.kept.all()
    assert (found.edits <= candidates.max_edits).all()
    assert found.seen == found.kept.size
    assert found.dropped_by_bases == found.dropped_by_kmers == 0
    # The bound is not idle: somewhere it says as much as is true.
    assert (found.edits == candidates.max_edits)[candidates.max_edits > 5].any()


def test_random_places_are_dropped_and_counted():
    rng = np.random.default_rng(5)
    genome = rng.integers(0, 4, 50_000).astype(np.uint8)
    n = 2000
    starts = rng.integers(0, genome.size - 170, n)
    candidates = Candidates(
        np.arange(n),
        rng.integers(0, 2, n).astype(np.uint8),
        starts,
        starts + 170,
        np.full(n, 10, np.int32),
    )
    reads = rng.integers(0, 4, n * 150).astype(np.uint8)
    read_starts = np.arange(n + 1) * 150
    found = filter_cpu.filter_candidates(pack(reads), read_starts, pack(genome), candidates, 4, 1)
    assert found.seen == n
    assert found.seen == found.kept.sum() + found.dropped_by_bases + found.dropped_by_kmers
    assert found.kept.sum() < n / 100
    again = filter_cpu.filter_candidates(pack(reads), read_starts, pack(genome), candidates, 4, 3)
    assert (again.kept == found.kept).all()
    assert (again.edits == found.edits).all()


def test_no_candidates():
    nothing = np.zeros(0, np.int64)
    candidates = Candidates(
        nothing, nothing.astype(np.uint8), nothing, nothing, nothing.astype(np.int32)
    )
    words = np.zeros(2, np.uint64)
    found = filter_cpu.filter_candidates(words, np.zeros(1, np.int64), words, candidates, 4, 2)
    assert found.seen == 0
    assert found.kept.size == 0


@pytest.mark.parametrize("kmer_length", [-1, 6])
def test_kmer_lengths_out_of_range_are_refused(kmer_length):
    with pytest.raises(UsageError) as error:
        filter_cpu.filter_candidates(None, None, None, None, kmer_length, 1)
    assert str(error.value) == (
        f"word length {kmer_length} is not from 1 to 5, or 0 for bases alone"
    )
