"""An index on the GPU: the parts that fit, and lists as workspace.

`bwarp.index.memory_plan` selects the parts. The lists (`Workspace`) have a fixed number of elements
and are reused for every batch of k-mers; the same amount of memory is reserved for results waiting
to be located.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from bwarp.gpu.available_memory import free_memory
from bwarp.gpu.cuda import cuda, uint32, uint64
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import launch
from bwarp.gpu.ptx import load_uint32x4
from bwarp.gpu.sums_and_sorts import pair_sorter
from bwarp.gpu.transfers import to_gpu
from bwarp.index.fm_index import BWT, FMIndex
from bwarp.index.locate_cuda import Segments, Suffixes, packed_text, whole_suffix_array
from bwarp.index.memory_plan import MemoryNeeds, MemoryPlan, plan_memory
from bwarp.index.rank_cuda import DeviceBWT, ranks_both
from bwarp.reference import Reference
from bwarp.runtime.timeline import on_timeline

#: Elements of the workspace: the maximum useful number, one nearly as fast, and the minimum.
MOST_ELEMENTS = 1 << 27
ENOUGH_ELEMENTS = 1 << 24
FEWEST_ELEMENTS = 1 << 22

#: Counters of the workspace (`Workspace.counters`).
COUNTERS = 1024

#: Pinned host memory, to which the GPU copies at full speed.
PINNED_BYTES = 40 << 20

_TABLE_ENTRY = 16
_THREADS = 256


class StringTable(NamedTuple):
    """The rows of all strings of a length.

    Attributes
    ----------
    rows : device array, shape=(4 * 4**length,), dtype=uint32
        First row forward, first row reverse, number of rows, 0, for each string; the index of a
        string is its bases as a number in base 4.
    length : int
    """

    rows: uint32[::1]
    length: int


class IndexText(NamedTuple):
    """The text of an index, to compare hits with.

    Attributes
    ----------
    suffixes : device array, dtype=uint32
        The text position of each row.
    bases : device array, dtype=uint64
        The text in 2 bits per base.
    segments : Segments
    """

    suffixes: uint32[::1]
    bases: uint64[::1]
    segments: Segments


class Workspace(NamedTuple):
    """Lists of `elements` elements on the GPU, reused for every batch.

    nodes, spare : device array, shape=(5 * elements,), dtype=uint32
        Columns of the nodes that a search extends, and of the extended nodes.
    checks : device array, shape=(elements,), dtype=uint64
        Rows to compare with the text.
    intervals : device array, shape=(4 * elements,), dtype=uint32
        Columns item, first row, rows and mismatches of the results of a search.
    keys : device array, shape=(elements,), dtype=uint64
        Item and genome position of hits that are already located.
    values : device array, shape=(elements,), dtype=uint32
        Their mismatches.
    counters : device array, shape=(COUNTERS,), dtype=uint32
        The elements of a list in use, or requested.
    """

    BYTES = 2 * 5 * 4 + 8 + 4 * 4 + 8 + 4

    elements: int
    nodes: uint32[::1]
    spare: uint32[::1]
    checks: uint64[::1]
    intervals: uint32[::1]
    keys: uint64[::1]
    values: uint32[::1]
    counters: uint32[::1]


def make_workspace(elements: int) -> Workspace:
    """Allocate lists of this many elements."""
    return Workspace(
        elements,
        nodes=cuda.device_array(5 * elements, np.uint32),
        spare=cuda.device_array(5 * elements, np.uint32),
        checks=cuda.device_array(elements, np.uint64),
        intervals=cuda.device_array(4 * elements, np.uint32),
        keys=cuda.device_array(elements, np.uint64),
        values=cuda.device_array(elements, np.uint32),
        counters=cuda.device_array(COUNTERS, np.uint32),
    )


@dataclass
class DeviceIndex:
    """An index on the GPU, ready for searches.

    Attributes
    ----------
    index : FMIndex
        The index on the host.
    plan : MemoryPlan
        ``str(plan)`` describes it.
    forward, reverse : DeviceBWT
        `reverse` is None if no search needs it.
    segments : Segments
    suffixes : Suffixes or None
        The text position of every `plan.suffix_rate`-th row.
    text : IndexText or None
        If the whole suffix array is there.
    work : Workspace or None
        None for callers with their own lists.
    pinned : ndarray, shape=(PINNED_BYTES,), dtype=uint8, or None
        On the host, beside a workspace: a buffer for copies from the GPU.
    tables : dict of int to StringTable
        See `table`.
    sort_pairs : function
        From `bwarp.gpu.sums_and_sorts.pair_sorter`; loading it takes milliseconds.
    search_tables : dict
        The tables of search schemes that were used; see `bwarp.seeding.search_schemes_cuda`.
    """

    index: FMIndex = field(repr=False)
    plan: MemoryPlan
    forward: DeviceBWT
    reverse: DeviceBWT | None
    segments: Segments = field(repr=False)
    suffixes: Suffixes | None = field(repr=False)
    text: IndexText | None = field(repr=False)
    work: Workspace | None = field(repr=False)
    pinned: np.ndarray | None = field(repr=False)
    tables: dict = field(repr=False)
    sort_pairs: Callable = field(repr=False)
    search_tables: dict = field(repr=False, default_factory=dict)

    @property
    def has_reverse(self) -> bool:
        """Return whether the index has the reverse BWT, on the GPU or not."""
        return self.index.has_reverse

    def table(self, length: int) -> StringTable:
        """Return the rows of all strings of a length."""
        if length not in self.tables:
            self.tables[length] = string_table(self.forward, length)
        return self.tables[length]


def search_needs(
    with_reverse: bool, with_suffixes: str, beside: int = 0, share: float = 1.0
) -> MemoryNeeds:
    """Return the GPU memory needs of searches with a `Workspace`; see `MemoryNeeds`."""
    return MemoryNeeds(
        with_reverse,
        with_suffixes,
        bytes_an_element=2 * Workspace.BYTES,
        fewest=FEWEST_ELEMENTS,
        enough=ENOUGH_ELEMENTS,
        most=MOST_ELEMENTS,
        beside=beside,
        share=share,
    )


def make_device_index(
    index: FMIndex, needs: MemoryNeeds, with_lists: bool = True, threads: int = 1
) -> DeviceIndex:
    """Plan the memory, copy the chosen parts to the GPU, and compute the rest there.

    Parameters
    ----------
    with_lists : bool
        Whether to allocate a `Workspace`, for batches of as many elements as planned.
    threads : int
        Several threads copy the files of an index to the GPU three times as fast as one.
    """
    plan = plan_memory(index, needs, int(needs.share * free_memory()))
    forward = _upload_bwt(index.forward, threads)
    reference = index.reference
    segments = segments_on_gpu(reference)
    suffixes = text = None
    if plan.suffix_rate:
        # Make the suffixes that are kept from those of the index.
        kept = index.suffix_array[:: max(1, plan.suffix_rate // index.sa_rate)]
        rate = max(index.sa_rate, plan.suffix_rate)
        suffixes = Suffixes(upload(kept, threads), rate, forward.n_rows)
    if plan.suffix_rate == 1:
        if index.sa_rate > 1:
            suffixes = whole_suffix_array(forward, suffixes)
        packed = upload(reference.packed, threads)
        bases = packed_text(packed, segments, reference.text_length)
        text = IndexText(suffixes.positions, bases, segments)
    reverse = _upload_bwt(index.reverse, threads) if needs.with_reverse else None
    table = string_table(forward, plan.string_length)
    free_memory()  # inputs that are no longer needed
    return DeviceIndex(
        index=index,
        plan=plan,
        forward=forward,
        reverse=reverse,
        segments=segments,
        suffixes=suffixes,
        text=text,
        work=make_workspace(plan.elements) if with_lists else None,
        pinned=cuda.pinned_array(PINNED_BYTES, np.uint8) if with_lists else None,
        tables={plan.string_length: table},
        sort_pairs=pair_sorter(),
    )


def segments_on_gpu(reference: Reference) -> Segments:
    """Copy the segments of a reference to the GPU."""
    segments = reference.segment_text, reference.segment_genome
    return Segments(*(cuda.to_device(starts.astype(np.uint32)) for starts in segments))


@on_timeline("copy to the GPU")
def upload(array: np.ndarray, threads: int = 1):
    """Return a flat device copy of a host array, which may be a mapped file."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return to_gpu([flat], threads)[0] if threads > 1 else cuda.to_device(flat)


def _upload_bwt(bwt: BWT, threads: int) -> DeviceBWT:
    return DeviceBWT(
        upload(bwt.words, threads),
        upload(bwt.separator_rows),
        bwt.groups,
        cuda.to_device(bwt.first_rows.astype(np.uint32)),
        bwt.text_start,
        bwt.n_rows,
    )


def string_table(forward: DeviceBWT, length: int) -> StringTable:
    """Make `DeviceIndex.table`: extend strings to the left, base by base, from the empty one."""
    table = cuda.to_device(np.array([0, 0, forward.n_rows, 0], np.uint32))
    for shorter in range(length):
        strings = 4**shorter
        longer = cuda.device_array(_TABLE_ENTRY * strings, np.uint32)
        grow_table[launch(strings, _THREADS)](forward, table, longer)
        table = longer
    return StringTable(table, length)


@kernel
def grow_table(bwt: DeviceBWT, table: uint32[::1], longer: uint32[::1]):
    """Extend every string of a table by one base to the left.

    One thread per string, which writes four entries. Neighbouring strings have neighbouring rows,
    so their blocks come from the cache.
    """
    i = cuda.grid(1)
    strings = table.size // 4
    if i < strings:
        string = uint64(i)
        first, other_row, rows, _ = load_uint32x4(table, uint64(4) * string)
        at_start, at_stop = ranks_both(bwt, first, uint32(first + rows))
        other_row = uint32(other_row + rows)
        for base in range(4):
            other_row = uint32(other_row - (at_stop[base] - at_start[base]))
        for base in range(4):
            count = uint32(at_stop[base] - at_start[base])
            entry = uint64(4) * (uint64(base) * uint64(strings) + string)
            longer[entry] = uint32(bwt.first_rows[base] + at_start[base]) if count else uint32(0)
            longer[entry + uint64(1)] = other_row if count else uint32(0)
            longer[entry + uint64(2)] = count
            longer[entry + uint64(3)] = uint32(0)
            other_row = uint32(other_row + count)
