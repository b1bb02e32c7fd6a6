"""Plan which parts of an index go to a GPU, and the batch size, from the free memory.

Parts are kept if memory allows. They are given up in this order:

    the whole suffix array + the text in 2 bits     a row takes a lookup; the last rows of a search
                                                    are compared with the text
    a table of the rows of all strings of a length  the longer, the fewer steps a search takes
    the sampled suffix array                        LF steps to sampled rows on the GPU
    a more thinly sampled one                       more LF steps
    the BWT                                         required for any search

The plan also counts what else the program keeps on the GPU (a genome), the memory of one batch,
temporary memory for making the parts, and a reserve for the driver: code of kernels, their local
memory, and gaps between arrays.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from bwarp.errors import GpuMemoryError
from bwarp.index.fm_index import FMIndex

#: Maximum length of the strings in the table; less if the text is too short for them.
LONGEST_STRING = 15
SHORTEST_STRING = 4

#: Maximum number of bases by which the table may be shorter than the best length.
SHORTER_STRINGS = 3

#: Maximum sampling rate of the suffix array.
LARGEST_RATE = 32

#: Reserve for the driver: bytes, and a fraction of the free memory.
DRIVER_BYTES = 256 << 20
DRIVER_SHARE = 1 / 32

_TABLE_ENTRY = 16


@dataclass(frozen=True)
class MemoryNeeds:
    """The GPU memory needs of a program.

    Attributes
    ----------
    with_reverse : bool
        Whether the BWT of the reversed text is needed.
    with_suffixes : str
        ``"no"``, ``"if they fit"`` or ``"yes"``.
    bytes_an_element : int
        Memory per element of a batch: a k-mer or a read.
    fewest, enough, most : int
        Elements of a batch: the minimum for the program to run, a number that is nearly as fast as
        possible, and the maximum that is useful.
    beside : int
        Bytes that the program keeps on the GPU in addition to the index.
    spare : int
        Bytes that the program uses if they are free, and gives up if batches would otherwise have
        too few elements.
    share : float
        Fraction of the free memory to use.
    """

    with_reverse: bool
    with_suffixes: str
    bytes_an_element: int
    fewest: int
    enough: int
    most: int
    beside: int = 0
    spare: int = 0
    share: float = 1.0


@dataclass(frozen=True)
class MemoryPlan:
    """What goes to the GPU.

    Attributes
    ----------
    suffix_rate : int
        1: the whole suffix array, and the text; n: every n-th suffix, where n is a multiple of the
        rate of the index; 0: none.
    string_length : int
        The length of the strings in the table.
    elements : int
        Elements of a batch.
    index_bytes, work_bytes, free_bytes : int
        Memory for the index and the program's own data, memory for a batch, and the free memory.
    """

    suffix_rate: int
    string_length: int
    elements: int
    index_bytes: int
    work_bytes: int
    free_bytes: int

    def __str__(self) -> str:
        parts = {0: "no suffix array", 1: "the whole suffix array and the text"}
        ordinal = {2: "2nd", 3: "3rd", 32: "32nd"}.get(self.suffix_rate, f"{self.suffix_rate}th")
        suffixes = parts.get(self.suffix_rate, f"every {ordinal} suffix")
        return (
            f"GPU memory: {self.index_bytes / 1e9:.2f} GB for the index ({suffixes}, a table of "
            f"{self.string_length}-mers) and {self.work_bytes / 1e9:.2f} GB of work space; "
            f"{self.free_bytes / 1e9:.2f} GB are free"
        )


def plan_memory(index: FMIndex, needs: MemoryNeeds, free_bytes: int) -> MemoryPlan:
    """Choose what goes to a GPU with `free_bytes` free.

    Takes the largest parts that leave enough memory for a batch of `enough` elements and, if
    possible, for the spare bytes; otherwise for half as many elements, and so on.

    Raises
    ------
    GpuMemoryError
        If not even the smallest parts fit.
    """
    usable = int(free_bytes * (1 - DRIVER_SHARE)) - DRIVER_BYTES
    for least, spare in _wishes(needs):
        for rate, length in _sizes(index, needs):
            kept, peak = _index_bytes(index, needs, rate, length)
            elements = min(needs.most, (usable - kept - spare) // needs.bytes_an_element)
            if elements >= least and peak <= usable:
                return MemoryPlan(
                    rate, length, elements, kept, elements * needs.bytes_an_element, free_bytes
                )
    needed = min(
        max(peak, kept + needs.fewest * needs.bytes_an_element)
        for kept, peak in (_index_bytes(index, needs, *sizes) for sizes in _sizes(index, needs))
    )
    needed = (needed + DRIVER_BYTES) / (1 - DRIVER_SHARE)
    raise GpuMemoryError(
        f"searching this index requires at least {needed / 1e9:.1f} GB of GPU memory, but only "
        f"{free_bytes / 1e9:.1f} GB are free"
    )


def _wishes(needs: MemoryNeeds) -> Iterator[tuple[int, int]]:
    """Yield pairs of batch elements and spare bytes, the largest first."""
    yield needs.enough, needs.spare
    least = needs.enough
    while least > needs.fewest:
        yield least, 0
        least //= 2
    yield needs.fewest, 0


def _sizes(index: FMIndex, needs: MemoryNeeds) -> Iterator[tuple[int, int]]:
    """Yield pairs of suffix array rate and string length, the largest parts first."""
    rates = [1, index.sa_rate]
    while 2 * rates[-1] <= LARGEST_RATE:
        rates.append(2 * rates[-1])
    if needs.with_suffixes == "no":
        rates = [0]
    elif needs.with_suffixes == "if they fit":
        rates.append(0)
    longest = longest_string(index.forward.n_rows)
    for rate in dict.fromkeys(rates):
        for length in range(longest, max(longest - SHORTER_STRINGS, SHORTEST_STRING) - 1, -1):
            yield rate, length


def _index_bytes(index: FMIndex, needs: MemoryNeeds, rate: int, length: int) -> tuple[int, int]:
    """Return the bytes kept on the GPU, and the maximum while they are made."""
    n_rows = index.forward.n_rows
    forward = index.forward.blocks.nbytes
    suffixes = 4 * -(-n_rows // rate) if rate else 0
    text = n_rows // 4 if rate == 1 else 0
    table = _TABLE_ENTRY * 4**length
    kept = forward * (2 if needs.with_reverse else 1) + suffixes + text + table + needs.beside
    # The whole suffix array is made from the sampled one, the text from the packed genome, and the
    # table from the one of strings a base shorter.
    sampled = 4 * -(-n_rows // index.sa_rate) if rate == 1 and index.sa_rate > 1 else 0
    peak = max(forward + suffixes + max(sampled, 2 * text) + needs.beside, kept + table // 4)
    return kept, peak


def longest_string(n_rows: int) -> int:
    """Return the maximum length at which nearly all strings occur in a text."""
    length = SHORTEST_STRING
    while length < LONGEST_STRING and 4 ** (length + 1) <= n_rows // 2:
        length += 1
    return length
