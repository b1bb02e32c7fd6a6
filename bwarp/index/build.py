"""Building an index: the same arrays from either engine."""

from collections.abc import Callable

from bwarp.errors import GpuMemoryError
from bwarp.index.fm_index import BWT, FMIndex
from bwarp.index.memory_plan import DRIVER_BYTES, DRIVER_SHARE
from bwarp.index.parameters import IndexParameters
from bwarp.reference import Reference


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
        from bwarp.index.build_cuda import build_forward

        forward, suffixes, table = build_forward(reference, parameters, threads)
    else:
        from bwarp.index.build_cpu import build_forward

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
        from bwarp.index import build_cuda

        reverse = build_cuda.build_reverse(reference, occ_rate, threads)
    else:
        from bwarp.index import build_cpu

        reverse = build_cpu.build_reverse(reference, occ_rate, threads, memory)
    for array in (reverse.blocks, reverse.separator_rows):
        array.setflags(write=False)
    done("BWT of the reversed text")
    return reverse


# --------------------------------------------------------------------------------------------------
# How many suffixes a GPU sorts at a time while it builds an index: planned from what is free.
#
# What lies there at the same time:
#
#     the text               1 byte a base
#     a part of the suffixes 37 bytes a row: two buffers of keys (16), three of positions (12), two
#                            of rows (8), the bits of the BWT, and the work space of the sort
#     the sampled ones       4 bytes of every sa_rate-th row of the part
#
# The prefix table is counted before, when no part is there.


BYTES_A_ROW = 37

#: Suffixes are counted by so many of their first symbols, and a part holds whole counts.
BUCKET_SYMBOLS = 10

#: Each part is a pass over the text.
MOST_PARTS = 64

#: Bytes that the sort takes, however few rows there are.
SORT_BYTES = 64 << 20

#: Bytes of a k-mer while the prefix table is made: three counts, and its entry.
_BYTES_A_KMER = 20


def suffixes_at_once(n: int, sa_rate: int, prefix_length: int, free_bytes: int) -> int:
    """The most suffixes of a part of a text of n symbols.

    Parameters
    ----------
    sa_rate : int
        0 where no suffixes are kept.
    prefix_length : int
        0 where no table is made.
    free_bytes : int
        Of the GPU's memory.

    Raises
    ------
    GpuMemoryError
        Where not even `MOST_PARTS` parts have room.
    """
    usable = int(free_bytes * (1 - DRIVER_SHARE)) - DRIVER_BYTES
    a_row = BYTES_A_ROW + (-(-4 // sa_rate) if sa_rate else 0)
    beside = n + 4 * 5**BUCKET_SYMBOLS + SORT_BYTES
    table = n + _BYTES_A_KMER * 4**prefix_length if prefix_length else 0
    rows = min(n, (usable - beside) // a_row)
    least = -(-n // MOST_PARTS)
    if rows < least or table > usable:
        needed = (max(beside + least * a_row, table) + DRIVER_BYTES) / (1 - DRIVER_SHARE)
        raise GpuMemoryError(
            f"indexing {n:,} bases takes at least {needed / 1e9:.1f} GB of GPU memory and "
            f"{free_bytes / 1e9:.1f} GB are free"
        )
    return rows
