"""Blocks finished on the GPU have the same bytes as blocks finished on the host."""

import numpy as np
import pytest

from bwarp.bam.bgzf import BLOCK_BYTES

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.bam import bgzf_cuda as bgzf_blocks_cuda
from bwarp.bam import sorted_blocks_cuda as finished_blocks_cuda
from bwarp.bam.bgzf_cuda import BlocksOnGpu
from bwarp.bam.sorted_blocks_cuda import FinishedBlocks
from bwarp.gpu import nvcomp
from tests.bam.test_bgzf_blocks_cuda import (
    assert_read_back,
    blocks_of,
    hostile_data,
    sizes_to_try,
)
from tests.helpers.gpu.pretended_device import pretend_gpu
from tests.helpers.gpu.pretended_nvcomp import pretend_nvcomp


def assert_blocks(data: np.ndarray, finished: FinishedBlocks, elsewhere: BlocksOnGpu) -> None:
    finished.raw[: data.size].copy_to_device(data, stream=finished.stream)
    finished.begin(data.size)
    ends = finished.finish()
    blocks = finished.file[: ends[-1]].copy_to_host()
    assert_read_back(data, blocks, ends)
    other_blocks, other_ends = blocks_of(elsewhere, data)
    assert np.array_equal(ends, other_ends)
    assert np.array_equal(blocks, other_blocks)


def test_blocks_are_those_of_the_host(monkeypatch):
    pretend_gpu(monkeypatch, [])
    monkeypatch.setattr(bgzf_blocks_cuda, "_THREADS", 32)
    monkeypatch.setattr(finished_blocks_cuda, "_THREADS", 32)
    monkeypatch.setattr(finished_blocks_cuda.cuda, "synchronize", int, raising=False)
    pretend_nvcomp(monkeypatch)
    finished, elsewhere = FinishedBlocks(9), BlocksOnGpu(most_blocks=9, lanes=1)
    for size in sizes_to_try():
        assert_blocks(hostile_data()[:size], finished, elsewhere)


@pytest.mark.gpu
@pytest.mark.skipif(
    not nvcomp.is_installed(), reason="needs nvCOMP: pip install nvidia-libnvcomp-cu13"
)
def test_blocks_of_a_gpu():
    finished, elsewhere = FinishedBlocks(20), BlocksOnGpu(most_blocks=20, lanes=1)
    for size in (*sizes_to_try(), 3 * BLOCK_BYTES + 7):
        assert_blocks(hostile_data()[:size], finished, elsewhere)
