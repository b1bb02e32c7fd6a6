"""Where the blocks of BAM files are compressed: by the threads of the host, or on a GPU."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bwarp.bam.bgzf import compressed_blocks
from bwarp.errors import UsageError

#: Shares of the GPU's free memory that compression takes, beside what maps reads and after it.
WHILE_MAPPING, WHEN_MAPPED = 0.25, 0.9


class Compression(NamedTuple):
    """How blocks are made.

    Attributes
    ----------
    blocks : function
        ``blocks(size, fill)`` makes blocks of so many bytes, which ``fill(out)`` writes to an
        uint8 array: bytes of the file, and where in them each block ends.
    blocks_a_job : int
        Blocks that are made at a time, so that handing them out costs little.
    most_threads : int
        No more threads take jobs.
    on_gpu : bool
        Whether nvCOMP makes them: then what lies on the GPU is best compressed there.
    begin : function
        ``begin(share)`` is called where many blocks of the host's will be made, as soon as that is
        clear, and again where memory has become free: what it needs on the GPU may take that share
        of the free memory.
    """

    blocks: Callable[[int, Callable[[np.ndarray], None]], tuple[np.ndarray, np.ndarray]]
    blocks_a_job: int
    most_threads: int
    on_gpu: bool = False
    begin: Callable[[float], None] = lambda share: None


def filled(size: int, fill: Callable[[np.ndarray], None]) -> np.ndarray:
    """An array of so many bytes."""
    data = np.empty(size, np.uint8)
    fill(data)
    return data


def _on_host(size: int, fill: Callable[[np.ndarray], None]) -> tuple[np.ndarray, np.ndarray]:
    return compressed_blocks(filled(size, fill))


def _stored(size: int, fill: Callable[[np.ndarray], None]) -> tuple[np.ndarray, np.ndarray]:
    return filled(size, fill), np.array([size])


#: A job takes milliseconds.
ON_HOST = Compression(_on_host, blocks_a_job=16, most_threads=1 << 10)

#: Bytes as they are, for a program that reads them at once.
STORED = ON_HOST._replace(blocks=_stored)


def compression_for(where: str, backend: str) -> Compression:
    """The compression that was asked for, of a program that runs on a backend.

    Raises
    ------
    UsageError
        For `gpu` where there is none, or no nvCOMP.
    """
    if where == "host" or (where == "auto" and backend != "cuda"):
        return ON_HOST
    if backend != "cuda":
        raise UsageError("--compress gpu: this run uses no GPU: leave it out")
    from bwarp.gpu import nvcomp

    if not nvcomp.is_installed():
        if where == "auto":
            return ON_HOST
        raise UsageError(
            "--compress gpu: nvCOMP is not installed: pip install nvidia-libnvcomp-cu13, or "
            "nvidia-libnvcomp-cu12 for an older driver"
        )
    from bwarp.bam.bgzf_cuda import BlocksOnGpu
    from bwarp.gpu.available_memory import total_memory

    # Together enough blocks to fill a large GPU.
    lanes = min(12, max(1, total_memory() >> 32))
    blocks_a_job = 512
    blocks = BlocksOnGpu(blocks_a_job, lanes)
    return Compression(blocks, blocks_a_job, lanes + 2, on_gpu=True, begin=blocks.begin)
