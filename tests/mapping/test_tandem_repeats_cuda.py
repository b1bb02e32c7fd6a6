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
from tests.helpers.cases.tandem_reads import repeats_and_reads, tandem_case
from tests.helpers.oracles.mapping_oracle import flat
from tests.mapping.test_tandem_repeats import PARAMETERS


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("seed", [1, 2])
def test_reads_in_repeats_of_any_period(device, name, seed):
    parameters = PARAMETERS[name]
    case = tandem_case(seed, parameters)
    there = primary_on_gpu(case.primary)
    tandem_repeats_cuda.lower_tandem_repeats(
        genome_on_gpu(case.reference), device_reads_cuda.both_strands(case.codes, case.offsets),
        hits_on_gpu(case.hits), there, parameters,
    )  # fmt: skip
    assert there.qualities.copy_to_host().tolist() == case.expected
    assert np.count_nonzero(case.expected < case.before) > 20


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
