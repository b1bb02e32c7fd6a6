"""Qualities of reads in tandem repeats, lowered by the GPU's kernel as by the CPU."""

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.mapping import primary_hits_cuda as tandem_repeats_cuda
from bwarp.mapping.extension_cpu import both_strands, genome_of
from bwarp.mapping.extension_cuda import genome_on_gpu
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.primary_hits_cpu import PrimarySelection
from bwarp.mapping.scored_hits_cpu import ScoredHits
from bwarp.mapping.tandem_repeats import LONGEST_PERIOD, lower_tandem_repeats
from bwarp.reads import device_reads_cuda
from bwarp.reference import make_reference
from tests.helpers.cases.hostile_hits import hits_on_gpu, primary_on_gpu
from tests.helpers.oracles.mapping_oracle import flat, opposite

PARAMETERS = {
    "default": MappingParameters(),
    "doubled": MappingParameters(match=2, mismatch=-3, gap_open=5, gap_extend=2),
}


def repeats_and_reads(rng, n_reads):
    """Return a genome of imperfect tandem repeats, some cut by contig ends, and its reads."""
    starts = np.array([0, 500, 900, 900, 1500, 4000])
    bases = rng.integers(0, 4, starts[-1]).astype(np.uint8)
    for at in range(0, starts[-1] - 450, 450):
        unit = rng.integers(0, 4, rng.integers(1, LONGEST_PERIOD + 3))
        bases[at : at + 380] = np.resize(unit, 380)
    errors = rng.random(starts[-1]) < 0.004
    bases[errors] = rng.integers(0, 5, errors.sum())
    reads, rows = [], []
    for _ in range(n_reads):
        length = int(rng.choice([rng.integers(20, 301), 32, 64, 65, 96]))
        start = int(rng.integers(0, starts[-1] - length))
        read = bases[start : start + length].copy()
        errors = rng.random(length) < rng.choice([0, 0.005, 0.03])
        read[errors] = rng.integers(0, 5, errors.sum())
        strand, begin = int(rng.integers(2)), int(rng.choice([0, 0, 7]))
        reads.append(opposite(read) if strand else read)
        rows.append((strand, length, start + begin, start + length, begin, length))
    strands, scores, hit_starts, ends, begins, stops = np.array(rows, np.int64).T
    scores = scores - rng.choice([0, 3, 6], n_reads)
    hits = ScoredHits(
        np.arange(n_reads, dtype=np.int32), strands.astype(np.uint8), scores.astype(np.int32),
        hit_starts, ends, begins.astype(np.int32), stops.astype(np.int32), np.ones(n_reads, bool),
        hit_starts, ends, np.arange(n_reads + 1),
    )  # fmt: skip
    names = tuple(f"contig{i}" for i in range(len(starts) - 1))
    return make_reference(names, starts, bases), reads, hits


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("seed", [1, 2])
def test_reads_shifted_by_periods(device, name, seed):
    rng, parameters = np.random.default_rng(seed), PARAMETERS[name]
    n_reads = 203
    reference, reads, hits = repeats_and_reads(rng, n_reads)
    hits.scores[:] *= parameters.match
    codes, offsets = flat(reads)
    proper = rng.random(n_reads) < 0.8
    selected = np.where(proper | (rng.random(n_reads) < 0.5), np.arange(n_reads), -1)
    suboptimal = np.where(rng.random(n_reads) < 0.8, hits.scores - 5, 0).astype(np.int32)
    before = rng.integers(0, 61, n_reads).astype(np.uint8)
    primary = PrimarySelection(selected, before.copy(), suboptimal, proper)
    there = primary_on_gpu(primary)
    lower_tandem_repeats(
        genome_of(reference), both_strands(codes, offsets), offsets, hits, primary, parameters
    )
    tandem_repeats_cuda.lower_tandem_repeats(
        genome_on_gpu(reference), device_reads_cuda.both_strands(codes, offsets), hits_on_gpu(hits),
        there, parameters,
    )  # fmt: skip
    assert there.qualities.copy_to_host().tolist() == primary.qualities.tolist()
    lowered = primary.qualities < before
    assert 20 < lowered.sum() < proper.sum() - 10
    assert np.unique(primary.qualities[lowered]).size > 2


def test_no_proper_pairs(device):
    reference, reads, hits = repeats_and_reads(np.random.default_rng(1), 1)
    codes, offsets = flat(reads)
    primary = PrimarySelection(
        np.array([-1]), np.zeros(1, np.uint8), np.zeros(1, np.int32), np.zeros(1, bool)
    )
    there = primary_on_gpu(primary)
    tandem_repeats_cuda.lower_tandem_repeats(
        genome_on_gpu(reference), device_reads_cuda.both_strands(codes, offsets), hits_on_gpu(hits),
        there, MappingParameters(),
    )  # fmt: skip
    assert there.qualities.copy_to_host().tolist() == [0]
