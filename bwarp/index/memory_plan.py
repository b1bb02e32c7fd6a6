"""Which parts of an index go to a GPU, and how much work at a time: planned from what is free.

What is kept, where memory allows, in the order in which it is given up:

    the whole suffix array + the text in 2 bits     a row is one look-up; the last rows of a search
                                                    are compared with the text
    a table of the rows of all strings of a length  the longer, the fewer steps a search takes
    the sampled suffix array                        LF steps to sampled rows on the GPU
    a more thinly sampled one                       more LF steps
    the BWT                                         without it there is no search

Beside the index the plan counts what else the program keeps there (a genome), its work on one
batch, what making the parts takes for a moment, and some room for the driver: code of kernels,
their local memory, and gaps between arrays.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from bwarp.errors import GpuMemoryError
from bwarp.index.fm_index import FMIndex

#: Strings of at most so many bases are in the table; of fewer in a text too short for them.
LONGEST_STRING = 15
SHORTEST_STRING = 4

#: The table is at most so many bases shorter than the longest that pays.
SHORTER_STRINGS = 3

#: The suffix array is sampled no more thinly than this.
LARGEST_RATE = 32

#: The driver's share: bytes, and a part of what is free.
DRIVER_BYTES = 256 << 20
DRIVER_SHARE = 1 / 32

_TABLE_ENTRY = 16


@dataclass(frozen=True)
class MemoryNeeds:
    """What a program wants on the GPU.

    Attributes
    ----------
    with_reverse : bool
        Whether the BWT of the reversed text is needed.
    with_suffixes : str
        ``"no"``, ``"if they fit"`` or ``"yes"``.
    bytes_an_element : int
        Memory of each element of a batch: a k-mer, a read.
    fewest, enough, most : int
        Elements of a batch: with fewer the program does not run, with enough it is nearly as fast
        as it can be, and more than most do not pay.
    beside : int
        Bytes of what the program keeps on the GPU beside the index.
    spare : int
        Bytes that it has a use for if they stay free, and does without if batches would not have
        enough elements.
    """

    with_reverse: bool
    with_suffixes: str
    bytes_an_element: int
    fewest: int
    enough: int
    most: int
    beside: int = 0
    spare: int = 0


@dataclass(frozen=True)
class MemoryPlan:
    """What goes to the GPU.

    Attributes
    ----------
    suffix_rate : int
        1: the whole suffix array, and the text; n: every n-th suffix, n being a multiple of the
        rate of the index; 0: none.
    string_length : int
        Bases of the strings in the table.
    elements : int
        Of a batch.
    index_bytes, work_bytes, free_bytes : int
        Memory that the index's parts and the program's own, and work on a batch take, of what is
        free.
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
            f"{self.string_length}-mers) and {self.work_bytes / 1e9:.2f} GB to work in, of "
            f"{self.free_bytes / 1e9:.2f} GB free"
        )


def plan_memory(index: FMIndex, needs: MemoryNeeds, free_bytes: int) -> MemoryPlan:
    """Choose what goes to a GPU with so many bytes free.

    The largest parts beside which batches of enough elements have room, with the bytes to spare if
    that can be; else beside half as many elements, and so on.

    Raises
    ------
    GpuMemoryError
        Where not even the smallest parts have room.
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
        f"searching this index takes at least {needed / 1e9:.1f} GB of GPU memory and "
        f"{free_bytes / 1e9:.1f} GB are free"
    )


def _wishes(needs: MemoryNeeds) -> Iterator[tuple[int, int]]:
    """Elements of a batch, and bytes to spare: the most that are wished for first."""
    yield needs.enough, needs.spare
    least = needs.enough
    while least > needs.fewest:
        yield least, 0
        least //= 2
    yield needs.fewest, 0


def _sizes(index: FMIndex, needs: MemoryNeeds) -> Iterator[tuple[int, int]]:
    """Rates of the suffix array and lengths of the table's strings, the largest parts first."""
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
    """What is kept on the GPU, and the most that is there while it is made."""
    n_rows = index.forward.n_rows
    forward = index.forward.blocks.nbytes
    suffixes = 4 * -(-n_rows // rate) if rate else 0
    text = n_rows // 4 if rate == 1 else 0
    table = _TABLE_ENTRY * 4**length
    kept = forward * (2 if needs.with_reverse else 1) + suffixes + text + table + needs.beside
    # The whole suffix array is made from the sampled one, the text from the packed genome, and the
    # table from that of strings one base shorter.
    sampled = 4 * -(-n_rows // index.sa_rate) if rate == 1 and index.sa_rate > 1 else 0
    peak = max(forward + suffixes + max(sampled, 2 * text) + needs.beside, kept + table // 4)
    return kept, peak


def longest_string(n_rows: int) -> int:
    """The longest strings that nearly all occur in a text: most searches go on beyond them."""
    length = SHORTEST_STRING
    while length < LONGEST_STRING and 4 ** (length + 1) <= n_rows // 2:
        length += 1
    return length
