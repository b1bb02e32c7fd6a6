"""How many suffixes a GPU sorts at a time while it builds an index: planned from what is free.

What lies there at the same time:

    the text               1 byte a base
    a part of the suffixes 37 bytes a row: two buffers of keys (16), three of positions (12), two of
                           rows (8), the bits of the BWT, and what the sort itself takes
    the sampled ones       4 bytes of every sa_rate-th row of the part

The prefix table is counted before, when no part is there.
"""

from bwarp.errors import GpuMemoryError
from bwarp.index.memory_plan import DRIVER_BYTES, DRIVER_SHARE

__all__ = ["BUCKET_SYMBOLS", "BYTES_A_ROW", "suffixes_at_once"]

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
