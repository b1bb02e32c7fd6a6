"""Compression of BAM blocks by threads of the host or on a GPU."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from bwarp.bam.bgzf import LEVEL, compressed_blocks
from bwarp.errors import UsageError

#: Shares of the free GPU memory that compression takes, during mapping and after it.
WHILE_MAPPING, WHEN_MAPPED = 0.25, 0.9


class Compression(NamedTuple):
    """How blocks are compressed.

    Attributes
    ----------
    blocks : function
        ``blocks(size, fill)`` compresses `size` bytes, which ``fill(out)`` writes to a uint8 array.
        It returns the bytes of the file, and the end of each block in them.
    blocks_a_job : int
        Blocks per job: enough to make the overhead of a job small.
    most_threads : int
        Maximum number of threads that take jobs.
    on_gpu : bool
        Whether nvCOMP compresses; data on the GPU is then best compressed there.
    begin : function
        ``begin(share)`` is called as soon as many blocks from the host are expected, and again when
        memory becomes free. It may allocate that share of the free GPU memory.
    """

    blocks: Callable[[int, Callable[[np.ndarray], None]], tuple[np.ndarray, np.ndarray]]
    blocks_a_job: int
    most_threads: int
    on_gpu: bool = False
    begin: Callable[[float], None] = lambda share: None


def filled(size: int, fill: Callable[[np.ndarray], None]) -> np.ndarray:
    """Return an array of `size` bytes, written by `fill`."""
    data = np.empty(size, np.uint8)
    fill(data)
    return data


def _on_host(
    size: int, fill: Callable[[np.ndarray], None], level: int = LEVEL
) -> tuple[np.ndarray, np.ndarray]:
    return compressed_blocks(filled(size, fill), level)


def _stored(size: int, fill: Callable[[np.ndarray], None]) -> tuple[np.ndarray, np.ndarray]:
    return filled(size, fill), np.array([size])


#: A job takes milliseconds.
ON_HOST = Compression(_on_host, blocks_a_job=16, most_threads=1 << 10)

#: Blocks of uncompressed bytes, for a file that is read once and removed.
STORED_BLOCKS = ON_HOST._replace(blocks=partial(_on_host, level=0))

#: Uncompressed bytes, for a program that reads them immediately.
STORED = ON_HOST._replace(blocks=_stored)


def compression_for(where: str, backend: str) -> Compression:
    """Return the requested compression for a program that runs on a backend.

    Raises
    ------
    UsageError
        For `gpu` without a GPU or without nvCOMP.
    """
    if where == "host" or (where == "auto" and backend != "cuda"):
        return ON_HOST
    if backend != "cuda":
        raise UsageError("--compress gpu requires a GPU, but this run uses none: omit it")
    from bwarp.gpu import nvcomp

    if not nvcomp.is_installed():
        if where == "auto":
            return ON_HOST
        raise UsageError(
            "--compress gpu requires nvCOMP: pip install nvidia-libnvcomp-cu13, or "
            "nvidia-libnvcomp-cu12 for an older driver"
        )
    from bwarp.bam.bgzf_cuda import BlocksOnGpu
    from bwarp.gpu.available_memory import total_memory

    # Together, the lanes hold enough blocks to fill a large GPU.
    lanes = min(12, max(1, total_memory() >> 32))
    blocks_a_job = 512
    blocks = BlocksOnGpu(blocks_a_job, lanes)
    return Compression(blocks, blocks_a_job, lanes + 2, on_gpu=True, begin=blocks.begin)
