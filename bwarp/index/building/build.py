"""Building an index: the same arrays from either engine."""

from collections.abc import Callable

from bwarp.index.fm_index import BWT, FMIndex
from bwarp.index.parameters import IndexParameters
from bwarp.reference import Reference

__all__ = ["build_index", "build_reverse"]


def build_index(
    reference: Reference,
    parameters: IndexParameters,
    backend: str,
    threads: int = 1,
    memory: int = 1 << 62,
    done: Callable[[str], None] = lambda step: None,
    with_reverse: bool = False,
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
    with_reverse : bool
        Whether the BWT of the reversed text is made as well.
    """
    if backend == "cuda":
        from bwarp.index.building.build_cuda import build_forward

        forward, suffixes, table = build_forward(reference, parameters, threads)
    else:
        from bwarp.index.building.build_cpu import build_forward

        forward, suffixes, table = build_forward(reference, parameters, threads, memory)
    done("BWT of the text")
    # As in an index that is loaded: for arrays that may be written, functions would compile again.
    for array in (forward.blocks, forward.separator_rows, suffixes, table):
        array.setflags(write=False)
    reverse = None
    if with_reverse:
        memory -= forward.blocks.nbytes + suffixes.nbytes + table.nbytes
        reverse = build_reverse(reference, parameters.occ_rate, backend, threads, memory, done)
    return FMIndex(reference, forward, reverse, table, suffixes, parameters.sa_rate)


def build_reverse(
    reference: Reference,
    occ_rate: int,
    backend: str,
    threads: int = 1,
    memory: int = 1 << 62,
    done: Callable[[str], None] = lambda step: None,
) -> BWT:
    """The BWT of a reference's text read backwards: what `build_index` leaves out of an index.

    The parameters are those of `build_index`.
    """
    if backend == "cuda":
        from bwarp.index.building import build_cuda

        reverse = build_cuda.build_reverse(reference, occ_rate, threads)
    else:
        from bwarp.index.building import build_cpu

        reverse = build_cpu.build_reverse(reference, occ_rate, threads, memory)
    for array in (reverse.blocks, reverse.separator_rows):
        array.setflags(write=False)
    done("BWT of the reversed text")
    return reverse
