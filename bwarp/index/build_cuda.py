"""Build an index on a GPU within its free memory; the result is identical to the CPU's."""

import gc

import numpy as np

from bwarp.gpu.available_memory import free_memory
from bwarp.index.build import suffixes_at_once
from bwarp.index.bwt_cuda import make_bwt, prefix_table
from bwarp.index.fm_index import BWT
from bwarp.index.packed_text_cpu import pack_text, reversed_text
from bwarp.index.packed_text_cuda import text_on_gpu
from bwarp.index.parameters import IndexParameters
from bwarp.reference import Reference


def build_forward(
    reference: Reference, parameters: IndexParameters, threads: int = 1
) -> tuple[BWT, np.ndarray, np.ndarray]:
    """Build everything that depends on the forward text; see `build_cpu.build_forward`."""
    most = _suffixes_at_once(reference, parameters.sa_rate, parameters.prefix_length)
    text = pack_text(reference, threads)
    codes = text_on_gpu(text, threads)
    table = prefix_table(codes, parameters.prefix_length)
    forward, suffixes = make_bwt(
        text, codes, parameters.occ_rate, parameters.sa_rate, most, threads
    )
    return forward, suffixes, table


def build_reverse(reference: Reference, occ_rate: int, threads: int = 1) -> BWT:
    """Build the BWT of the reversed text."""
    most = _suffixes_at_once(reference, 0, 0)
    text = reversed_text(pack_text(reference, threads), threads)
    reverse, _ = make_bwt(text, text_on_gpu(text, threads), occ_rate, 0, most, threads)
    return reverse


def _suffixes_at_once(reference: Reference, sa_rate: int, prefix_length: int) -> int:
    gc.collect()  # free GPU memory held only by reference cycles
    return suffixes_at_once(reference.text_length, sa_rate, prefix_length, free_memory())
