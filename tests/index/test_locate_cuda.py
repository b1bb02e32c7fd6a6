"""The kernels that locate rows, run in plain Python, against the CPU's functions."""

import numpy as np
import pytest

from bwarp.index.locate_cpu import look_up, step_to_sampled
from tests.helpers.oracles.index_oracle import HOSTILE, index_of

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.index import locate_cuda
from bwarp.index.rank_cuda import DeviceBWT
from tests.helpers.gpu.emulated_cuda import launch
from tests.helpers.gpu.emulated_mapping import pretend


@pytest.mark.parametrize("sa_rate", [1, 3, 8])
def test_kernels_agree_with_the_cpu(monkeypatch, sa_rate):
    pretend(monkeypatch)
    index = index_of(HOSTILE["with gaps"], sa_rate=sa_rate)
    count = index.forward.n_rows
    rows, steps = np.arange(count, dtype=np.uint32), np.full(count, 7, np.uint32)
    sampled, expected_steps = step_to_sampled(index, rows)
    # The last block has threads without a row.
    blocks = count // 32 + 1
    bwt = DeviceBWT(*index.forward.arrays, count)
    launch(locate_cuda.step_rows, blocks, 32, bwt, sa_rate, rows, steps, count)
    assert rows.tolist() == sampled.tolist()
    assert steps.tolist() == expected_steps.tolist()
    suffixes = locate_cuda.Suffixes(index.suffix_array, sa_rate, count)
    launch(locate_cuda.look_up_rows, blocks, 32, suffixes, rows, steps, count)
    assert rows.tolist() == look_up(index, sampled, expected_steps).tolist()
