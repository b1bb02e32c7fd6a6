"""Reads with long clipped ends, marked by the GPU, against those that the CPU checks."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.gpu.cuda import cuda
from bwarp.gpu.device_arrays import columns
from bwarp.mapping.extension_cpu import gap_costs, least_clipped
from bwarp.mapping.final_alignments_cuda import DeviceAlignments, mark_clipped
from bwarp.mapping.parameters import END_TO_END, MappingParameters
from bwarp.mapping.primary_hits_cuda import DevicePrimary
from bwarp.mapping.scored_hits_cuda import DeviceScoredHits
from bwarp.mapping.split_reads import MICROHOMOLOGY
from tests.helpers.cases.hostile_hits import reads_on_gpu

PARAMETERS = {
    "default": MappingParameters(),
    "end to end": MappingParameters(mode=END_TO_END),
    "low scores": MappingParameters(least_score=5),
    "doubled": MappingParameters(match=2, mismatch=-8, gap_open=12, gap_extend=2, least_score=61),
    "dear clipping": MappingParameters(clip=100),
}


def hits_of_counts(firsts):
    """Return hits in which only the number per read is set."""
    offsets = cuda.to_device(firsts.astype(np.uint32))
    return columns(DeviceScoredHits, 1, offsets=offsets, count=int(firsts[-1]))


@pytest.mark.parametrize("name", PARAMETERS)
def test_reads_that_clip_much_are_marked(device, name):
    parameters = PARAMETERS[name]
    rng = np.random.default_rng(1)
    n = 400
    lengths = rng.integers(0, 120, n)
    begins = np.where(rng.random(n) < 0.5, 0, rng.integers(0, 40, n)).clip(0, lengths)
    ends = (lengths - np.where(rng.random(n) < 0.5, 0, rng.integers(0, 40, n))).clip(begins)
    counts, before = rng.integers(0, 4, n), rng.integers(0, 2, n).astype(np.uint8)
    firsts = np.concatenate([[0], np.cumsum(counts)])
    primary = np.where((counts > 0) & (rng.random(n) < 0.9), firsts[:-1], -1)
    begins, ends = np.where(primary < 0, 0, begins), np.where(primary < 0, 0, ends)

    there = (cuda.to_device(array.astype(np.int32)) for array in (primary, begins, ends))
    primary_hits, read_starts, read_ends = there
    marks = cuda.to_device(before)
    mark_clipped(
        reads_on_gpu(lengths),
        hits_of_counts(firsts),
        columns(DevicePrimary, 1, hits=primary_hits),
        columns(DeviceAlignments, 1, read_starts=read_starts, read_ends=read_ends),
        parameters,
        marks,
    )
    clipped = np.maximum(begins, lengths - ends)
    splits = (clipped + MICROHOMOLOGY) * parameters.match >= parameters.least_score
    splits &= (clipped > 0) & (counts > 1)
    long_gaps = np.zeros(n, bool)
    if parameters.mode != END_TO_END:
        long_gaps = clipped >= least_clipped(gap_costs(parameters))
    expected = before.astype(bool) | ((primary >= 0) & (splits | long_gaps))
    assert marks.copy_to_host().tolist() == expected.tolist()
    assert before.sum() < expected.sum() < n


def test_where_every_clipped_base_counts(device):
    parameters = replace(MappingParameters(), least_score=1, clip=200)
    marks = cuda.to_device(np.zeros(3, np.uint8))
    numbers = np.array([0, 1, 2], np.int32)
    mark_clipped(
        reads_on_gpu(np.full(3, 20)),
        hits_of_counts(np.array([0, 2, 4, 5])),
        columns(DevicePrimary, 1, hits=cuda.to_device(np.array([0, 2, 4], np.int32))),
        columns(
            DeviceAlignments,
            1,
            read_starts=cuda.to_device(numbers),
            read_ends=cuda.to_device(np.full(3, 20, np.int32)),
        ),  # fmt: skip
        replace(parameters, mode=END_TO_END),
        marks,
    )
    assert marks.copy_to_host().tolist() == [0, 1, 0]
