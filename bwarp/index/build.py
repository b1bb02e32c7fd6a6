"""Building an index: the same arrays from either engine."""

import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.index.parameters import IndexParameters
from bwarp.reference import Reference, text_of

__all__ = ["build_index"]


def build_index(
    reference: Reference,
    codes: np.ndarray,
    parameters: IndexParameters,
    backend: str,
    threads: int = 1,
) -> FMIndex:
    """Index a reference.

    Parameters
    ----------
    reference : Reference
    codes : ndarray, shape=(n_bases,), dtype=uint8
        The reference's codes, as `bwarp.reference.read_reference` returns them.
    parameters : IndexParameters
    backend : str
        ``"cpu"`` or ``"cuda"``; the arrays are equal to the byte.
    """
    text = text_of(reference, codes, threads)
    if backend == "cuda":
        from bwarp.index.build_cuda import build_transforms
    else:
        from bwarp.index.build_cpu import build_transforms
    forward, reverse, suffixes, table = build_transforms(text, parameters, threads)
    return FMIndex(reference, forward, reverse, table, suffixes, parameters.sa_rate)
