"""The genome, its segments and the reads on the GPU, in the layout in which they are compared."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bwarp.gpu.cuda import cuda, uint32
from bwarp.mapping.extension_cuda import genome_on_gpu
from bwarp.reference import Reference


class TextArrays(NamedTuple):
    """The genome in the blocks of base_bits_cuda; the starts of segments in the text, plus its end;
    and their starts in the genome.
    """

    blocks: uint32[::1]
    segment_text: uint32[::1]
    segment_genome: uint32[::1]


class DeviceText(NamedTuple):
    """What the GPU verifies hits against.

    Attributes
    ----------
    n_bases, length
        Bases of the genome, and length of the text.
    sort_pairs
        The sort made by `bwarp.gpu.sums_and_sorts.pair_sorter`.
    """

    arrays: TextArrays
    n_bases: int
    length: int
    sort_pairs: Callable


def text_on_gpu(reference: Reference, sort_pairs: Callable, threads: int = 1) -> DeviceText:
    """Copy the genome and its segments to the GPU."""
    segments = reference.segment_text, reference.segment_genome
    return DeviceText(
        TextArrays(
            genome_on_gpu(reference, threads).blocks,
            *(cuda.to_device(array.astype(np.uint32)) for array in segments),
        ),
        reference.n_bases,
        reference.text_length,
        sort_pairs,
    )


def blocks_on_gpu(blocks: np.ndarray):
    """Copy 64-base blocks of `bwarp.loci.candidates_cpu` to the GPU as 32-base blocks."""
    halves = np.zeros((blocks.size // 3, 2, 4), np.uint32)
    halves[:, :, :3] = blocks.view(np.uint32).reshape(-1, 3, 2).transpose(0, 2, 1)
    return cuda.to_device(halves.reshape(-1))
