"""An index on the GPU: which of its parts go there, how much memory that takes, and working space.

What is kept, where memory allows, in the order in which it is given up:

    the whole suffix array + the text in 2 bits     a row is one look-up; the last rows of a search
                                                    are compared with the text
    a table of the rows of all strings of a length  the longer, the fewer steps a search takes
    the sampled suffix array                        rows are walked to sampled ones on the GPU
    the transforms                                  without them there is no search

Half of the rest, or less, is working space: lists of a fixed number of elements that every batch
of k-mers uses again (`Workspace`). The other half is for what waits to be located, and for others.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numba import cuda, uint32, uint64
from numba.cuda import types

from bwarp.errors import UsageError
from bwarp.index.fm_index import BurrowsWheeler, FMIndex
from bwarp.index.locate_cuda import packed_text, whole_suffix_array
from bwarp.index.radix_sort_cuda import pair_sorter
from bwarp.index.rank_cuda import ranks_both
from bwarp.ptx import load_uint32x4

__all__ = [
    "KERNEL_SIGNATURES",
    "DeviceIndex",
    "DeviceTransform",
    "MemoryPlan",
    "Workspace",
    "free_memory",
    "make_device_index",
    "plan_memory",
    "upload",
]

#: Strings of at most so many bases are in the table; of fewer in a text too short for them.
LONGEST_STRING = 15
SHORTEST_STRING = 4

#: Elements of the working space: as many as pay, and as few as do not.
MOST_ELEMENTS = 1 << 27
FEWEST_ELEMENTS = 1 << 22

#: Counters of the working space; `Workspace.counters`.
COUNTERS = 1024

#: Host memory that the GPU copies to at full speed.
PINNED_BYTES = 40 << 20

_TABLE_ENTRY = 16
_THREADS = 256


@dataclass(frozen=True)
class MemoryPlan:
    """What goes to the GPU.

    Attributes
    ----------
    suffix_rate : int
        1: the whole suffix array, and the text; the index's rate: as it is; 0: none.
    string_length : int
        Bases of the strings in the table.
    elements : int
        Of the working space.
    index_bytes, work_bytes, free_bytes : int
        Memory that the index's parts and the working space take, of what is free.
    """

    suffix_rate: int
    string_length: int
    elements: int
    index_bytes: int
    work_bytes: int
    free_bytes: int

    def __str__(self) -> str:
        parts = {0: "no suffix array", 1: "the whole suffix array and the text"}
        ordinal = {2: "2nd", 3: "3rd"}.get(self.suffix_rate, f"{self.suffix_rate}th")
        suffixes = parts.get(self.suffix_rate, f"every {ordinal} suffix")
        return (
            f"GPU memory: {self.index_bytes / 1e9:.2f} GB for the index ({suffixes}, a table of "
            f"{self.string_length}-mers) and {self.work_bytes / 1e9:.2f} GB to work in, of "
            f"{self.free_bytes / 1e9:.2f} GB free"
        )


def plan_memory(
    index: FMIndex, with_reverse: bool, with_suffixes: str, free_bytes: int
) -> MemoryPlan:
    """Choose what goes to a GPU with so many bytes free.

    Parameters
    ----------
    with_reverse : bool
        Whether the transform of the reversed text is needed.
    with_suffixes : str
        ``"no"``, ``"if they fit"`` or ``"yes"``.
    """
    n_rows = index.forward.n_rows
    transforms = index.forward.blocks.nbytes * (2 if with_reverse else 1)
    choices = {
        1: 4 * n_rows + n_rows // 4,
        index.sa_rate: 4 * -(-n_rows // index.sa_rate),
        0: 0,
    }
    if index.sa_rate == 1:
        choices = {1: 4 * n_rows + n_rows // 4, 0: 0}
    if with_suffixes == "no":
        choices = {0: 0}
    elif with_suffixes == "yes":
        del choices[0]
    longest = _string_length(n_rows)
    for rate, suffix_bytes in choices.items():
        for length in range(longest, max(longest - 3, SHORTEST_STRING - 1), -1):
            index_bytes = transforms + suffix_bytes + _TABLE_ENTRY * 4**length
            elements = min(MOST_ELEMENTS, (free_bytes - index_bytes) // (2 * Workspace.BYTES))
            if elements >= FEWEST_ELEMENTS:
                return MemoryPlan(
                    rate, length, elements, index_bytes, elements * Workspace.BYTES, free_bytes
                )
    needed = transforms + min(choices.values()) + 2 * FEWEST_ELEMENTS * Workspace.BYTES
    raise UsageError(
        f"searching this index takes at least {needed / 1e9:.1f} GB of GPU memory and "
        f"{free_bytes / 1e9:.1f} GB are free: use --backend cpu, or a GPU with more memory"
    )


def _string_length(n_rows: int) -> int:
    """The longest strings that nearly all occur in a text: most searches go on beyond them."""
    length = SHORTEST_STRING
    while length < LONGEST_STRING and 4 ** (length + 1) <= n_rows // 2:
        length += 1
    return length


@dataclass(frozen=True)
class DeviceTransform:
    """A `BurrowsWheeler` on the GPU; the same attributes, arrays there."""

    words: object = field(repr=False)
    separator_rows: object = field(repr=False)
    groups: tuple[int, ...]
    text_start: int
    n_rows: int


class Workspace:
    """Lists of `elements` elements on the GPU, which every batch uses again.

    nodes, spare : device array, shape=(5 * elements,), dtype=uint32
        Columns of what a search is growing, and of what it has grown.
    checks : device array, shape=(elements,), dtype=uint64
        Rows to compare with the text.
    intervals : device array, shape=(4 * elements,), dtype=uint32
        Columns item, first row, rows, mismatches of what a search found.
    keys : device array, shape=(elements,), dtype=uint64
        Item and genome position of hits that are located already.
    values : device array, shape=(elements,), dtype=uint32
        Their mismatches.
    counters : device array, shape=(COUNTERS,), dtype=uint32
        How many elements of a list are in use, or were wanted.
    pinned : ndarray, shape=(PINNED_BYTES,), dtype=uint8
        On the host: what comes from the GPU passes through here.
    """

    BYTES = 2 * 5 * 4 + 8 + 4 * 4 + 8 + 4

    def __init__(self, elements: int):
        self.elements = elements
        self.nodes = cuda.device_array(5 * elements, np.uint32)
        self.spare = cuda.device_array(5 * elements, np.uint32)
        self.checks = cuda.device_array(elements, np.uint64)
        self.intervals = cuda.device_array(4 * elements, np.uint32)
        self.keys = cuda.device_array(elements, np.uint64)
        self.values = cuda.device_array(elements, np.uint32)
        self.counters = cuda.device_array(COUNTERS, np.uint32)
        self.pinned = cuda.pinned_array(PINNED_BYTES, np.uint8)


@dataclass
class DeviceIndex:
    """An index on the GPU, ready for searches.

    Attributes
    ----------
    index : FMIndex
        The index on the host.
    plan : MemoryPlan
        ``str(plan)`` says what was chosen.
    forward, reverse : DeviceTransform
        `reverse` is None where no search needs it.
    first_rows, segment_text, segment_genome : device arrays, dtype=uint32
    suffixes : device array, dtype=uint32, or None
        Of every `plan.suffix_rate`-th row.
    text : device array, dtype=uint64, or None
        The text in 2 bits a base, where the whole suffix array is there.
    work : Workspace
    tables : dict of int to device array
        See `table`.
    sort_pairs : function
        As `bwarp.index.radix_sort_cuda.pair_sorter` makes it; loading it takes milliseconds.
    """

    index: FMIndex = field(repr=False)
    plan: MemoryPlan
    forward: DeviceTransform
    reverse: DeviceTransform | None
    first_rows: object = field(repr=False)
    segment_text: object = field(repr=False)
    segment_genome: object = field(repr=False)
    suffixes: object = field(repr=False)
    text: object = field(repr=False)
    work: Workspace = field(repr=False)
    tables: dict = field(repr=False)
    sort_pairs: Callable = field(repr=False)

    def table(self, length: int):
        """The rows of all strings of a length.

        Returns
        -------
        table : device array, shape=(4 * 4**length,), dtype=uint32
            First row forward, first row reverse, number of rows, 0, of every string; the string's
            place is its bases as a number to the base 4.
        """
        if length not in self.tables:
            self.tables[length] = string_table(self.forward, self.first_rows, length)
        return self.tables[length]


def free_memory() -> int:
    """Bytes of GPU memory that can be had."""
    context = cuda.current_context()
    # Numba frees memory late; what it still holds must not count.
    context.memory_manager.deallocations.clear()
    return context.get_memory_info().free


def make_device_index(index: FMIndex, with_reverse: bool, with_suffixes: str) -> DeviceIndex:
    """Plan the memory, upload the parts that `plan_memory` chose, and make the rest there."""
    plan = plan_memory(index, with_reverse, with_suffixes, free_memory())
    first_rows = cuda.to_device(index.forward.first_rows.astype(np.uint32))
    forward = _upload_transform(index.forward)
    reference = index.reference
    segment_text = cuda.to_device(reference.segment_text.astype(np.uint32))
    segment_genome = cuda.to_device(reference.segment_genome.astype(np.uint32))
    suffixes = text = None
    if plan.suffix_rate:
        suffixes = upload(index.suffix_array)
    if plan.suffix_rate == 1:
        if index.sa_rate > 1:
            suffixes = whole_suffix_array(forward, first_rows, index.sa_rate, suffixes)
        text = packed_text(
            upload(reference.packed), segment_text, segment_genome, reference.text_length
        )
    reverse = _upload_transform(index.reverse) if with_reverse else None
    table = string_table(forward, first_rows, plan.string_length)
    free_memory()  # what was uploaded only to be transformed
    return DeviceIndex(
        index=index,
        plan=plan,
        forward=forward,
        reverse=reverse,
        first_rows=first_rows,
        segment_text=segment_text,
        segment_genome=segment_genome,
        suffixes=suffixes,
        text=text,
        work=Workspace(plan.elements),
        tables={plan.string_length: table},
        sort_pairs=pair_sorter(),
    )


def upload(array: np.ndarray):
    """A flat device copy of a host array, mapped files included."""
    return cuda.to_device(np.ascontiguousarray(array).reshape(-1))


def _upload_transform(transform: BurrowsWheeler) -> DeviceTransform:
    return DeviceTransform(
        upload(transform.words),
        upload(transform.separator_rows),
        transform.groups,
        transform.text_start,
        transform.n_rows,
    )


def string_table(forward: DeviceTransform, first_rows, length: int):
    """`DeviceIndex.table`: strings grow to the left, base by base, from the empty one."""
    table = cuda.to_device(np.array([0, 0, forward.n_rows, 0], np.uint32))
    for shorter in range(length):
        strings = 4**shorter
        longer = cuda.device_array(_TABLE_ENTRY * strings, np.uint32)
        grow_table[-(-strings // _THREADS), _THREADS](
            forward.words, forward.separator_rows, forward.groups, first_rows, table, longer
        )
        table = longer
    return table


@cuda.jit(cache=True)
def grow_table(words, separator_rows, groups, first_rows, table, longer):
    """Grow every string of a table by one base to the left.

    One thread a string. Neighbouring strings have neighbouring rows, so their blocks come from
    the cache; four entries are written.
    """
    i = cuda.grid(1)
    strings = table.size // 4
    if i < strings:
        string = uint64(i)
        first, other_row, rows, _ = load_uint32x4(table, uint64(4) * string)
        at_start, at_stop = ranks_both(words, separator_rows, groups, first, uint32(first + rows))
        other_row = uint32(other_row + rows)
        for base in range(4):
            other_row = uint32(other_row - (at_stop[base] - at_start[base]))
        for base in range(4):
            count = uint32(at_stop[base] - at_start[base])
            entry = uint64(4) * (uint64(base) * uint64(strings) + string)
            longer[entry] = uint32(first_rows[base] + at_start[base]) if count else uint32(0)
            longer[entry + uint64(1)] = other_row if count else uint32(0)
            longer[entry + uint64(2)] = count
            longer[entry + uint64(3)] = uint32(0)
            other_row = uint32(other_row + count)


_NUMBERS = types.uint32[::1]

#: The argument types that every kernel is compiled with.
KERNEL_SIGNATURES = {
    grow_table: [
        (_NUMBERS, _NUMBERS, types.UniTuple(types.int64, n), _NUMBERS, _NUMBERS, _NUMBERS)
        for n in (2, 3)
    ]
}
