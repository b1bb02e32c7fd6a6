"""The kernels of the filter give what the CPU gives: in plain Python anywhere, and on a GPU."""

import numpy as np
import pytest

from bwarp.filtering import filter_cpu
from bwarp.filtering.candidates import Candidates, Filtered
from bwarp.sequence import pack
from tests.helpers.oracles.filter_oracle import mutated_candidates

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.filtering import filter_cuda
from tests.helpers.gpu.emulated_cuda import launch


def some_candidates(rng, n, longest):
    """Candidates of which about half are at their position and half anywhere."""
    genome = rng.integers(0, 4, 3000).astype(np.uint8)
    reads, read_starts, candidates = mutated_candidates(rng, genome, n, longest, most_edits=2)
    elsewhere = rng.random(n) < 0.5
    shift = np.where(elsewhere, rng.integers(0, 500, n), 0)
    shift = np.minimum(shift, genome.size - candidates.stops)
    candidates = Candidates(
        candidates.reads,
        candidates.strands,
        candidates.starts + shift,
        candidates.stops + shift,
        candidates.max_edits,
    )
    return reads, read_starts, pack(genome), candidates


@pytest.mark.filterwarnings("ignore:overflow encountered in scalar multiply")
@pytest.mark.parametrize("kmer_length", [1, 3])
def test_kernels_agree_with_the_cpu(kmer_length):
    *sequences, candidates = some_candidates(np.random.default_rng(kmer_length), 12, 90)
    expected = filter_cpu.filter_candidates(*sequences, candidates, kmer_length, 1)
    arguments = (
        *sequences, candidates.reads, candidates.strands, candidates.starts, candidates.stops,
        candidates.max_edits,
    )  # fmt: skip
    by_bases, by_kmers = np.full(12, -5, np.int32), np.zeros(12, np.int32)
    launch(filter_cuda.bound_by_bases, 1, 32, *arguments, by_bases)
    launch(filter_cuda.bound_by_kmers, 3, 128, *arguments, kmer_length, by_bases, by_kmers)
    found = Filtered.of(by_bases, by_kmers, candidates.max_edits)
    assert found.edits.tolist() == expected.edits.tolist()
    assert found.kept.tolist() == expected.kept.tolist()
    assert (found.dropped_by_bases, found.dropped_by_kmers) == (
        expected.dropped_by_bases,
        expected.dropped_by_kmers,
    )
    assert kmer_length == 1 or 0 < found.kept.sum() < 12


@pytest.mark.gpu
@pytest.mark.parametrize("kmer_length", [0, 1, 2, 3, 4, 5])
def test_the_gpu_agrees_with_the_cpu(kmer_length):
    *sequences, candidates = some_candidates(np.random.default_rng(7), 5000, 180)
    expected = filter_cpu.filter_candidates(*sequences, candidates, kmer_length, 1)
    found = filter_cuda.filter_candidates(*sequences, candidates, kmer_length, 1)
    assert (found.edits == expected.edits).all()
    assert (found.kept == expected.kept).all()
    assert found.dropped_by_bases == expected.dropped_by_bases
    assert found.dropped_by_kmers == expected.dropped_by_kmers
