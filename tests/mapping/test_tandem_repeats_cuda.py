"""Qualities of reads in tandem repeats, lowered by the GPU's kernel as by the CPU."""

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.mapping import primary_hits_cuda as tandem_repeats_cuda
from bwarp.mapping.extension_cuda import genome_on_gpu
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.primary_hits_cpu import PrimarySelection
from bwarp.reads import device_reads_cuda
from tests.helpers.cases.hostile_hits import hits_on_gpu, primary_on_gpu
from tests.helpers.cases.tandem_reads import repeats_and_reads
from tests.helpers.oracles.mapping_oracle import flat
from tests.helpers.oracles.tandem_oracle import lowered_qualities
from tests.mapping.test_tandem_repeats import PARAMETERS


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("seed", [1, 2])
def test_reads_in_repeats_of_any_period(device, name, seed):
    rng, parameters = np.random.default_rng(seed), PARAMETERS[name]
    n_reads = 203
    reference, bases, reads, hits = repeats_and_reads(rng, n_reads)
    hits.scores[:] *= parameters.match
    codes, offsets = flat(reads)
    selected = np.where(rng.random(n_reads) < 0.9, np.arange(n_reads), -1)
    before = rng.integers(0, 61, n_reads).astype(np.uint8)
    none = np.zeros(n_reads, np.int32)
    primary = PrimarySelection(selected, before, none, none.astype(bool))
    there = primary_on_gpu(primary)
    tandem_repeats_cuda.lower_tandem_repeats(
        genome_on_gpu(reference), device_reads_cuda.both_strands(codes, offsets), hits_on_gpu(hits),
        there, parameters,
    )  # fmt: skip
    expected = lowered_qualities(bases, reference.contig_starts, reads, hits, primary, parameters)
    assert there.qualities.copy_to_host().tolist() == expected
    assert np.count_nonzero(expected < before) > 20


def test_a_read_without_hits(device):
    reference, _, reads, hits = repeats_and_reads(np.random.default_rng(1), 1)
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
