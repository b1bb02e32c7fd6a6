"""Secondary hits listed by the GPU's kernels as by the CPU."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.gpu.cuda import cuda
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.primary_hits_cpu import no_selection
from bwarp.mapping.secondary_hits import _find_secondary
from bwarp.mapping.secondary_hits_cuda import secondary_rows
from tests.helpers.cases.hostile_hits import (
    hits_on_gpu,
    hostile_hits,
    primary_on_gpu,
    reads_on_gpu,
)


def found_by_both(seed, parameters, share_marked=0.2, share_selected=0.9, counts=None):
    """Return offsets, rows and reads of rows, from the CPU and from the GPU."""
    rng, n_reads = np.random.default_rng(seed), 150
    given = {} if counts is None else {"counts": counts}
    hits, lengths = hostile_hits(rng, n_reads, **given)
    counts = np.diff(hits.offsets)
    chosen = hits.offsets[:-1] + rng.integers(0, 3, n_reads) % np.maximum(counts, 1)
    is_selected = (counts > 0) & (rng.random(n_reads) < share_selected)
    primary = no_selection(n_reads)._replace(hits=np.where(is_selected, chosen, -1))
    marks = (rng.random(n_reads) < share_marked).astype(np.uint8)

    reads = np.flatnonzero((counts > 1) & is_selected & (marks == 0))
    rows = np.empty(reads.size * parameters.most_secondary + 1, np.int64)
    n = _find_secondary(
        hits, lengths, primary.hits, reads, parameters.most_secondary, parameters.secondary_share,
        rows,
    )  # fmt: skip
    of_rows = hits.reads[rows[:n]]
    starts = np.concatenate([[0], np.cumsum(np.bincount(of_rows, minlength=n_reads))])
    expected = starts.tolist(), rows[:n].tolist(), of_rows.tolist()

    found = secondary_rows(
        reads_on_gpu(lengths), hits_on_gpu(hits), primary_on_gpu(primary),
        cuda.to_device(marks), parameters,
    )  # fmt: skip
    assert [column.dtype for column in found] == [np.uint32, np.int32, np.int32]
    return expected, tuple(column.copy_to_host().tolist() for column in found)


@pytest.mark.parametrize("most", [1, 5, 40])
@pytest.mark.parametrize("share", [0.3, 0.8, 1.0])
def test_random_hits(device, most, share):
    parameters = replace(MappingParameters(), most_secondary=most, secondary_share=share)
    expected, found = found_by_both(most, parameters)
    assert found == expected
    assert len(expected[1]) > 5


def test_none_at_all(device):
    for shares in ((1.0, 1.0), (0.0, 0.0)):
        expected, found = found_by_both(1, MappingParameters(), *shares)
        assert expected[0] == found[0] == [0] * 151
        assert found[1:] == ([-1], [0])
    expected, found = found_by_both(2, replace(MappingParameters(), most_secondary=0))
    assert found[0] == expected[0]


def test_more_than_a_warp_has_lanes(device):
    parameters = replace(MappingParameters(), most_secondary=200, secondary_share=0.1)
    expected, found = found_by_both(3, parameters, counts=(31, 32, 33, 64, 65, 90))
    assert found == expected
    assert np.diff(expected[0]).max() > 32
