"""The genome and its segments on the GPU, and reads as they are compared with it."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from bwarp.gpu.cuda import cuda
from bwarp.mapping.extension.extension_cuda import genome_on_gpu
from bwarp.reference import Reference

__all__ = ["DeviceText", "blocks_on_gpu", "text_on_gpu"]


@dataclass(frozen=True)
class DeviceText:
    """What hits are verified against.

    Attributes
    ----------
    blocks : device array, dtype=uint32
        Of the genome, in the blocks of base_bits_cuda.
    segment_text, segment_genome : device array, dtype=uint32
        Where segments begin in the text, and where that ends; where they begin in the genome.
    n_bases, length : int
        Of the genome, and of the text.
    sort_pairs : function
        As `bwarp.gpu.radix_sort.pair_sorter` makes it.
    """

    blocks: object = field(repr=False)
    segment_text: object = field(repr=False)
    segment_genome: object = field(repr=False)
    n_bases: int
    length: int
    sort_pairs: Callable = field(repr=False)


def text_on_gpu(reference: Reference, sort_pairs: Callable, threads: int = 1) -> DeviceText:
    """Copy the genome and its segments to the GPU."""
    segments = reference.segment_text, reference.segment_genome
    return DeviceText(
        genome_on_gpu(reference, threads).blocks,
        *(cuda.to_device(array.astype(np.uint32)) for array in segments),
        reference.n_bases,
        reference.text_length,
        sort_pairs,
    )


def blocks_on_gpu(blocks: np.ndarray):
    """Blocks of 64 bases of `bwarp.loci.verifying.read_blocks` as blocks of 32 bases on the GPU."""
    halves = np.zeros((blocks.size // 3, 2, 4), np.uint32)
    halves[:, :, :3] = blocks.view(np.uint32).reshape(-1, 3, 2).transpose(0, 2, 1)
    return cuda.to_device(halves.reshape(-1))
