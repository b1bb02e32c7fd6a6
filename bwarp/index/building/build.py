"""Building an index: the same arrays from either engine."""

from collections.abc import Callable

import numpy as np

from bwarp.index.fm_index import BWT, FMIndex
from bwarp.index.parameters import IndexParameters
from bwarp.reference import Reference, text_of

__all__ = ["build_index"]


def build_index(
    reference: Reference,
    parameters: IndexParameters,
    backend: str,
    threads: int = 1,
    memory: int = 1 << 62,
    done: Callable[[str], None] = lambda step: None,
) -> FMIndex:
    """Index a reference.

    Parameters
    ----------
    reference : Reference
    parameters : IndexParameters
    backend : str
        ``"cpu"`` or ``"cuda"``; the arrays are equal to the byte.
    threads : int
    memory : int
        Bytes that the process may take on the CPU, the reference included.
    done : function of str
        Called with every step that is done.
    """
    if backend == "cuda":
        from bwarp.index.building.build_cuda import build_bwts, require_building_memory

        require_building_memory(reference.text_length)
        arrays = build_bwts(text_of(reference, threads), parameters, done)
    else:
        from bwarp.index.building.build_cpu import build_bwts

        arrays = build_bwts(reference, parameters, threads, memory, done)
    forward, reverse, suffixes, table = arrays
    # As in an index that is loaded: for arrays that may be written, functions would compile again.
    for array in (*_arrays_of(forward), *_arrays_of(reverse), suffixes, table):
        array.setflags(write=False)
    return FMIndex(reference, forward, reverse, table, suffixes, parameters.sa_rate)


def _arrays_of(bwt: BWT) -> tuple[np.ndarray, np.ndarray]:
    return bwt.blocks, bwt.separator_rows
