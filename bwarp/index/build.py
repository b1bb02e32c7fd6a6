"""Build the arrays of an index with either engine, and plan the GPU memory of suffix sorting."""

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
    """Build the index of a reference.

    Parameters
    ----------
    reference : Reference
    parameters : IndexParameters
    backend : str
        ``"cpu"`` or ``"cuda"``; the arrays are identical.
    threads : int
    memory : int
        Maximum bytes of the process on the CPU, including the reference.
    done : function of str
        Called after each step with its name.
    with_reverse : bool
        Whether to build the BWT of the reversed text as well.
    """
    if backend == "cuda":
        from bwarp.index.build_cuda import build_forward

        forward, suffixes, table = build_forward(reference, parameters, threads)
    else:
        from bwarp.index.build_cpu import build_forward

        forward, suffixes, table = build_forward(reference, parameters, threads, memory)
    done("BWT of the text")
    # Read-only like a loaded index: for writable arrays, functions would be compiled again.
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
    """Build the BWT of the reversed text of a reference, if `build_index` left it out.

    Parameters as in `build_index`.
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


# The number of suffixes that a GPU sorts at a time, planned from its free memory.
#
# The GPU holds at the same time:
#
#     the text               1 byte per base
#     a part of the suffixes 37 bytes per row: two buffers of keys (16), three of positions (12),
#                            two of rows (8), the bits of the BWT, and the workspace of the sort
#     the sampled ones       4 bytes per sa_rate-th row of the part
#
# The prefix table is counted before, when no part is there.


BYTES_A_ROW = 37

#: Suffixes are counted by this many first symbols; a part consists of whole counts.
BUCKET_SYMBOLS = 10

#: Each part is a pass over the text.
MOST_PARTS = 64

#: Bytes that the sort takes for any number of rows.
SORT_BYTES = 64 << 20

#: Bytes per k-mer while the prefix table is made: three counts and its entry.
_BYTES_A_KMER = 20


def suffixes_at_once(n: int, sa_rate: int, prefix_length: int, free_bytes: int) -> int:
    """Return the maximum number of suffixes per part for a text of n symbols.

    Parameters
    ----------
    sa_rate : int
        0 if no suffixes are kept.
    prefix_length : int
        0 if no table is made.
    free_bytes : int
        Free GPU memory.

    Raises
    ------
    GpuMemoryError
        If not even `MOST_PARTS` parts fit.
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
            f"indexing {n:,} bases requires at least {needed / 1e9:.1f} GB of GPU memory, but only "
            f"{free_bytes / 1e9:.1f} GB are free"
        )
    return rows
