"""Reads marked for further records by the GPU's kernel, against a plain loop over their hits."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.gpu.cuda import cuda
from bwarp.gpu.device_arrays import columns
from bwarp.mapping.extension_cuda import DeviceGenome
from bwarp.mapping.further_records_cuda import mark_further_records
from bwarp.mapping.parameters import ALL, MappingParameters
from bwarp.mapping.primary_hits_cuda import DevicePrimary
from tests.helpers.cases.hostile_hits import (
    CONTIG_STARTS,
    hits_on_gpu,
    hostile_hits,
    reads_on_gpu,
)

DEFAULT = MappingParameters()
PARAMETERS = {
    "nothing": DEFAULT,
    "ALT": replace(DEFAULT, alt=(3,)),
    "Hi-C": replace(DEFAULT, hic=True),
    "all": replace(DEFAULT, secondary_records=ALL),
    "all of them": replace(DEFAULT, alt=(0, 2), hic=True, secondary_records=3, least_score=60),
}


def is_marked(hits, lengths, read: int, chosen: int, parameters: MappingParameters) -> bool:
    def span(hit):
        ends = hits.read_starts[hit], hits.read_ends[hit]
        return (lengths[read] - ends[1], lengths[read] - ends[0]) if hits.strands[hit] else ends

    for hit in range(hits.offsets[read], hits.offsets[read + 1]):
        contig = np.searchsorted(CONTIG_STARTS, hits.starts[hit], side="right") - 1
        if contig in parameters.alt:
            return True
        if hit == chosen or chosen < 0 or hits.scores[hit] < parameters.least_score:
            continue
        (begin, end), (begin_2, end_2) = span(hit), span(chosen)
        shared = min(end, end_2) - max(begin, begin_2)
        is_rival = 2 * shared >= min(end - begin, end_2 - begin_2)
        if not is_rival and parameters.hic:
            return True
        scores_enough = 2 * hits.scores[hit] >= hits.scores[chosen]
        if is_rival and scores_enough and parameters.secondary_records:
            return True
    return False


@pytest.mark.parametrize("name", PARAMETERS)
def test_reads_that_a_plain_loop_marks(device, name):
    parameters, rng = PARAMETERS[name], np.random.default_rng(3)
    hits, lengths = hostile_hits(rng, 400)
    counts = np.diff(hits.offsets)
    chosen = hits.offsets[:-1] + rng.integers(0, 3, 400) % np.maximum(counts, 1)
    chosen[(counts == 0) | (rng.random(400) < 0.1)] = -1
    before = (rng.random(400) < 0.1).astype(np.uint8)
    marks = cuda.to_device(before)
    primary = columns(DevicePrimary, 400, hits=cuda.to_device(chosen.astype(np.int32)))
    genome = DeviceGenome(None, cuda.to_device(CONTIG_STARTS), int(CONTIG_STARTS[-1]))
    mark_further_records(
        genome, reads_on_gpu(lengths), hits_on_gpu(hits), primary, parameters, marks
    )
    expected = [
        bool(before[read]) or is_marked(hits, lengths, read, chosen[read], parameters)
        for read in range(400)
    ]
    assert marks.copy_to_host().tolist() == [int(mark) for mark in expected]
    assert sum(expected) > sum(before) or name == "nothing"
    assert sum(expected) < 400
