"""Checksums of blocks on the GPU against zlib's."""

import zlib

import numpy as np
import pytest

from bwarp.bam.bgzf import BLOCK_BYTES

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.bam import bgzf_cuda as checksums_cuda
from bwarp.bam.bgzf_cuda import Checksums
from bwarp.gpu.cuda import cuda
from tests.helpers.gpu.pretended_device import pretend_gpu

SIZES = (1, 2, 3, 4, 5, 130, 1023, 1029, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 6)


def assert_sums(size: int) -> None:
    rng = np.random.default_rng(size)
    data = rng.integers(0, 256, -(-size // 4) * 4).astype(np.uint8)
    if size % 2:
        data[: size // 2] = 0
    n_blocks = -(-size // BLOCK_BYTES)
    sums = cuda.device_array(n_blocks, np.uint32)
    stream = cuda.stream()
    Checksums().compute(cuda.to_device(data.view(np.uint32)), size, sums, stream)
    stream.synchronize()
    blocks = [data[:size][BLOCK_BYTES * i : BLOCK_BYTES * (i + 1)] for i in range(n_blocks)]
    assert sums.copy_to_host().tolist() == [zlib.crc32(block.tobytes()) for block in blocks]


@pytest.mark.parametrize("threads", [32, 256])
def test_sums_of_blocks(threads, monkeypatch):
    pretend_gpu(monkeypatch, [])
    monkeypatch.setattr(checksums_cuda, "_THREADS", threads)
    for size in SIZES if threads == 256 else SIZES[:7]:
        assert_sums(size)


@pytest.mark.gpu
def test_sums_on_a_gpu():
    for size in (*SIZES, 10 * BLOCK_BYTES + 3):
        assert_sums(size)
