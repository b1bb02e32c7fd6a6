"""Reads that may be split, marked by the GPU's kernel, as listed by the CPU."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.mapping.extension_cpu import gap_costs
from bwarp.mapping.parameters import END_TO_END, MappingParameters
from bwarp.mapping.split_reads import _list_hits, least_part
from bwarp.mapping.split_reads_cuda import mark_split_reads
from tests.helpers.cases.hostile_hits import hits_on_gpu, hostile_hits, reads_on_gpu

PARAMETERS = {
    "default": MappingParameters(),
    "doubled": MappingParameters(match=2, mismatch=-8, gap_open=12, gap_extend=2, least_score=61),
    # Gaps are sufficient to change reads.
    "high scores": MappingParameters(least_score=1000),
    "dear clipping": MappingParameters(clip=100, least_score=200),
}


def marks_of(hits, lengths, parameters):
    marks = mark_split_reads(reads_on_gpu(lengths), hits_on_gpu(hits), parameters)
    assert marks.dtype == np.uint8
    return marks.copy_to_host()


@pytest.mark.parametrize("name", PARAMETERS)
def test_the_reads_that_the_cpu_lists(device, name):
    parameters = PARAMETERS[name]
    hits, lengths = hostile_hits(np.random.default_rng(1), 400, parameters.match)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    rows = np.empty(len(hits.reads), np.int64)
    n = _list_hits(hits, offsets, gap_costs(parameters), least_part(parameters), rows)
    expected = np.bincount(hits.reads[rows[:n]], minlength=400) > 0
    assert marks_of(hits, lengths, parameters).tolist() == expected.tolist()
    assert 3 < expected.sum() < 350


def test_end_to_end_alignments_are_not_split(device):
    hits, lengths = hostile_hits(np.random.default_rng(2), 20)
    parameters = replace(MappingParameters(), mode=END_TO_END)
    assert marks_of(hits, lengths, parameters).tolist() == [0] * 20
