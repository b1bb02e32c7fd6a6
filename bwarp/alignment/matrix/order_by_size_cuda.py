"""The order in which kernels take the pairs of a batch; of large batches, found on the GPU.

Every pair falls into a *bin* by its size; pairs of one bin stand side by side, in no order of their
own, so that the threads of a warp take the same steps. What a kernel finds for a pair does not
depend on where the pair stands.

Bins come in rows of `width`, one row a *class* of pairs that one launch takes:

    bin  =  class * width  +  column bin

    slots   [ class 0: bin 0 | bin 1 | bin 2 ... ][ class 1: bin 0 | ... ]

On the GPU pairs are sorted by counting. The table of a sort is one array of three parts: how many
pairs each bin has, how many of them have their slot already, and where each bin starts (with one
more entry, where the last one ends).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bwarp.alignment.matrix.device_batch_cuda import BLOCK, blocks
from bwarp.gpu.cuda import cuda, int32, int64, types, uint32, uint64
from bwarp.gpu.kernel import kernel
from bwarp.gpu.prefix_sum import exclusive_sum
from bwarp.gpu.transfers import to_gpu, to_host
from bwarp.gpu.workspace import cut, device_array

__all__ = [
    "FEW_PAIRS",
    "NO_BIN",
    "NO_LIMIT",
    "Order",
    "clear",
    "device_size_bin",
    "largest_in_bin",
    "order_by_bins",
    "order_by_size",
    "size_bin",
    "size_bins",
]

#: The bin of a pair that gets no slot.
NO_BIN = 0xFFFFFFFF
ALL = 0xFFFFFFFF
#: Fewer pairs are sorted by the host before the GPU could have begun.
FEW_PAIRS = 4096
#: Classes that one sort by size can have.
MOST_CLASSES = 16
#: Longer than any query.
NO_LIMIT = 2**31 - 1
#: Sizes below 2 ** (EXACT_BITS + 1) have a bin each; above, bins are 2 ** -EXACT_BITS of a size.
EXACT_BITS = 5


@dataclass(frozen=True)
class Order:
    """Which pair each slot holds.

    Attributes
    ----------
    slots : device array, dtype=int32
        Pairs by bins.
    starts : ndarray, shape=(classes * width + 1,), dtype=int64
        Where each bin starts in `slots`.
    width : int
        Bins a class.
    """

    slots: object
    starts: np.ndarray
    width: int

    def part(self, begin: int, end: int):
        """The pairs in some of the slots."""
        return cut(self.slots, 4 * begin, end - begin, np.int32)

    def classes(self) -> Iterator[tuple[int, int, int, int]]:
        """Of every class that has pairs: its number, its slots (from, to), its last bin in use."""
        for row in range((self.starts.size - 1) // self.width):
            starts = self.starts[row * self.width : (row + 1) * self.width + 1]
            if starts[-1] > starts[0]:
                last_bin = int(np.flatnonzero(starts[:-1] < starts[-1])[-1])
                yield row, int(starts[0]), int(starts[-1]), last_bin


def size_bins(sizes):
    """The bins of sizes up to 2 ** 31: their own where small, of a few per cent where large."""
    powers = np.maximum(np.frexp(sizes)[1] - 1, EXACT_BITS).astype(np.int64)
    return ((powers - EXACT_BITS) << EXACT_BITS) + (sizes >> (powers - EXACT_BITS))


def size_bin(size: int) -> int:
    """`size_bins` of one size."""
    return int(size_bins(size))


def largest_in_bin(number: int) -> int:
    """The largest size of a bin of `size_bin`."""
    if number < 2 << EXACT_BITS:
        return number
    power = (number >> EXACT_BITS) - 1
    return (((number & ((1 << EXACT_BITS) - 1)) + (1 << EXACT_BITS) + 1) << power) - 1


@cuda.jit(device=True)
def device_size_bin(size):
    """`size_bin` on the GPU, for an int32."""
    if size < 2 << EXACT_BITS:
        return int32(size)
    power = int32(63 - cuda.clz(int64(size)))
    return int32(((power - EXACT_BITS) << EXACT_BITS) + (size >> (power - EXACT_BITS)))


def order_by_size(batch, limits, columns: int, exact: bool, marks=None, wanted: int = 0) -> Order:
    """Pairs by the length of their query (classes), then by that of their reference (bins).

    Parameters
    ----------
    batch : DeviceBatch
    limits : sequence of int
        The longest query of each class, ascending, up to 16; the last holds the longest of all.
    columns : int
        References longer than this count as this long.
    exact : bool
        Every length has its own bin, and bins have an even number of slots: a pair stands twice
        where need be. Else bins are those of `size_bin`.
    marks, wanted : device array of int32, and int
        Take only pairs whose mark is this.
    """
    width = columns + 1 if exact else size_bin(columns) + 1
    if batch.count < FEW_PAIRS:
        ids = np.arange(batch.count, dtype=np.int32)
        if marks is not None:
            ids = np.flatnonzero(to_host([marks])[0] == wanted).astype(np.int32)
        rows = np.searchsorted(limits, batch.queries.host_lengths[ids])
        lengths = np.minimum(batch.references.host_lengths[ids], columns)
        bins = rows * width + (lengths if exact else size_bins(lengths))
        return _order_on_host(ids, bins, len(limits), width, exact)
    if marks is None and batch.queries.is_even and batch.references.is_even:
        return _order_of_equals(batch, limits, columns, exact, width)
    bins = device_array(max(1, batch.count), np.uint32)
    rows, lengths = batch.queries.lengths, batch.references.lengths
    bin_by_size[blocks(batch.count), BLOCK](
        rows,
        lengths,
        # Always as many: their number is part of the kernel's type.
        (*map(int, limits), *[NO_LIMIT] * (MOST_CLASSES - len(limits))),
        columns,
        exact,
        width,
        rows if marks is None else marks,
        wanted,
        marks is None,
        bins,
    )
    return order_by_bins(bins, batch.count, len(limits), width, exact)


def _order_on_host(ids, bins, classes: int, width: int, even: bool) -> Order:
    order = np.argsort(bins, kind="stable")
    sizes = np.bincount(bins, minlength=classes * width)
    slots = ids[order]
    if even:
        copies = np.ones(slots.size, np.int64)
        copies[np.cumsum(sizes)[sizes % 2 == 1] - 1] = 2
        slots = np.repeat(slots, copies)
        sizes += sizes % 2
    return Order(to_gpu([slots])[0], np.append(0, np.cumsum(sizes)), width)


def _order_of_equals(batch, limits, columns: int, exact: bool, width: int) -> Order:
    """Pairs of one size stay as they are."""
    count = batch.count
    slots = device_array(count + (count % 2 if exact else 0), np.int32)
    number_slots[blocks(slots.size), BLOCK](slots, count)
    column = min(batch.references.longest, columns)
    number = int(np.searchsorted(limits, batch.queries.longest)) * width
    number += column if exact else size_bin(column)
    starts = np.zeros(len(limits) * width + 1, np.int64)
    starts[number + 1 :] = slots.size
    return Order(slots, starts, width)


def order_by_bins(bins, count: int, classes: int, width: int, even: bool) -> Order:
    """Pairs by their bins.

    Parameters
    ----------
    bins : device array, dtype=uint32
        The bin of each pair, or `NO_BIN`.
    even : bool
        Every bin gets an even number of slots: one of its pairs stands twice where need be.
    """
    n_bins = classes * width
    table = device_array(3 * n_bins + 1, np.uint32)
    slots = device_array(count + (min(n_bins, count) if even else 0), np.int32)
    clear(table)
    count_bins[blocks(count), BLOCK](bins, count, table)
    size_slots[blocks(n_bins), BLOCK](table, n_bins, even)
    exclusive_sum(table, 2 * n_bins)
    assign_slots[blocks(count), BLOCK](bins, count, table, n_bins, even, slots)
    [starts] = to_host([cut(table, 8 * n_bins, n_bins + 1, np.uint32)])
    return Order(slots, starts.astype(np.int64), width)


def clear(array) -> None:
    """Set a device array of uint32 to 0."""
    clear_words[blocks(array.size), BLOCK](array)


@kernel
def clear_words(words: uint32[::1]):
    """One thread a word."""
    i = cuda.grid(1)
    if i < words.size:
        words[i] = 0


@kernel
def number_slots(slots: int32[::1], count: int):
    """The pairs in their order; the last stands twice where a slot is left. One thread a slot."""
    slot = cuda.grid(1)
    if slot < slots.size:
        slots[slot] = int32(min(slot, count - 1))


@kernel
def bin_by_size(
    rows: int32[::1], columns: int32[::1], limits: types.UniTuple(int64, 16), most_columns: int,
    exact: bool, width: int, marks: int32[::1], wanted: int, all_pairs: bool, bins: uint32[::1],
):  # fmt: skip
    """The bin of each pair; see `order_by_size`. One thread a pair, which reads its two lengths."""
    i = cuda.grid(1)
    if i >= bins.size:
        return
    if not all_pairs and marks[i] != wanted:
        bins[i] = uint32(NO_BIN)
        return
    row = int32(0)
    for limit in limits:
        if rows[i] > limit:
            row += int32(1)
    column = int32(min(int64(columns[i]), most_columns))
    if not exact:
        column = device_size_bin(column)
    bins[i] = uint32(row * width + column)


@cuda.jit(device=True)
def add_to_bin(table, entry, number, in_use):
    """Add 1 to an entry of the table for every thread with a bin, and return what it was before.

    Threads with the bin of the warp's first do so together.
    """
    first = uint32(cuda.shfl_sync(ALL, int32(number), 0))
    with_first = in_use and number == first
    together = int64(cuda.ballot_sync(ALL, with_first)) & ALL
    lane = int32(cuda.laneid)
    before = uint32(0)
    if lane == 0 and with_first:
        before = cuda.atomic.add(table, entry, uint32(cuda.popc(together)))
    before = uint32(cuda.shfl_sync(ALL, int32(before), 0))
    if with_first:
        return uint32(before + uint32(cuda.popc(together & ((int64(1) << lane) - 1))))
    if in_use:
        return uint32(cuda.atomic.add(table, entry, uint32(1)))
    return uint32(0)


@kernel
def count_bins(bins: uint32[::1], count: int, table: uint32[::1]):
    """How many pairs each bin has. One thread a pair: one atomic addition, or one a warp."""
    i = cuda.grid(1)
    number = uint32(NO_BIN)
    if i < count:
        number = bins[i]
    add_to_bin(table, int64(number), number, number != uint32(NO_BIN))


@kernel
def size_slots(table: uint32[::1], n_bins: int, even: bool):
    """How many slots each bin takes. One thread a bin."""
    i = cuda.grid(1)
    if i < n_bins:
        size = uint32(table[i])
        if even:
            size = uint32(size + (size & uint32(1)))
        table[2 * n_bins + i] = size


@kernel
def assign_slots(
    bins: uint32[::1], count: int, table: uint32[::1], n_bins: int, even: bool, slots: int32[::1]
):
    """Give each pair a slot of its bin. One thread a pair, as in `count_bins`."""
    i = cuda.grid(1)
    number = uint32(NO_BIN)
    if i < count:
        number = bins[i]
    in_use = number != uint32(NO_BIN)
    rank = add_to_bin(table, n_bins + int64(number), number, in_use)
    if in_use:
        start = uint64(table[2 * n_bins + int64(number)])
        slots[start + uint64(rank)] = int32(i)
        size = uint32(table[int64(number)])
        if even and rank == 0 and size & uint32(1):
            slots[start + uint64(size)] = int32(i)
