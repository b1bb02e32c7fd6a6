"""The genome, its segments and the reads on the GPU, in the layout in which they are compared."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bwarp.allmap.candidates_cuda import last_bounded
from bwarp.allmap.histogram_cuda import sum_bases
from bwarp.gpu.cuda import uint32
from bwarp.index.device_index_cuda import segments_on_gpu
from bwarp.index.locate_cuda import Segments
from bwarp.mapping.extension_cuda import genome_on_gpu
from bwarp.reference import Reference


class TextArrays(NamedTuple):
    """The genome in the blocks of base_bits_cuda, with the sums of histogram_cuda; its segments;
    and the last diagonal that `bwarp.allmap.candidates_cuda.bound_exceeded` may judge.
    """

    blocks: uint32[::1]
    segments: Segments
    last_bounded: int


class DeviceText(NamedTuple):
    """What the GPU verifies hits against.

    Attributes
    ----------
    length
        Of the text.
    sort_pairs
        The sort made by `bwarp.gpu.sums_and_sorts.pair_sorter`.
    """

    arrays: TextArrays
    length: int
    sort_pairs: Callable


def text_on_gpu(reference: Reference, sort_pairs: Callable, threads: int = 1) -> DeviceText:
    """Copy the genome and its segments to the GPU."""
    blocks = genome_on_gpu(reference, threads).blocks
    sum_bases(blocks)
    arrays = TextArrays(blocks, segments_on_gpu(reference), last_bounded(reference.n_bases))
    return DeviceText(arrays, reference.text_length, sort_pairs)


def device_blocks(blocks: np.ndarray) -> np.ndarray:
    """Return 64-base blocks of `bwarp.allmap.candidates_cpu` as 32-base blocks without sums, on the
    host.
    """
    halves = np.zeros((blocks.size // 3, 2, 4), np.uint32)
    halves[:, :, :3] = blocks.view(np.uint32).reshape(-1, 3, 2).transpose(0, 2, 1)
    return halves.reshape(-1)
