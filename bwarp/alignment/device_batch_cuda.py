"""A batch of pairs on the GPU, the order of its pairs, and their scores and ends in 32 bits."""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bwarp.alignment.follow_directions_cuda import TraceRules
from bwarp.alignment.int32_kernel_cuda import (
    MATRIX_STRIDE,
    PADDING_ROW,
    ROWS,
    MatrixCosts,
    full_matrix_kernel,
)
from bwarp.alignment.pair_tables_cuda import Directions, EndArrays, PairArrays, SequenceArrays
from bwarp.alignment.pairs import PairBatch, Sequences
from bwarp.alignment.scoring import Mode, Scoring
from bwarp.gpu.available_memory import affordable
from bwarp.gpu.cuda import cuda, int32, int64, types, uint32, uint64
from bwarp.gpu.kernel import kernel
from bwarp.gpu.memory_pool import cut, device_array, work_space
from bwarp.gpu.sums_and_sorts import exclusive_sum
from bwarp.gpu.transfers import to_gpu, to_host
from bwarp.runtime.timeline import on_timeline

#: Threads per block of every alignment kernel.
BLOCK = 128


@dataclass(frozen=True)
class DeviceSequences:
    """Sequences of one side: device arrays as in `Sequences`.

    Attributes
    ----------
    longest : int
        An upper bound of the lengths; 0 for no sequences.
    given_lengths : ndarray, optional
        The lengths, if known on the host.
    """

    codes: object
    starts: object
    lengths: object
    longest: int
    given_lengths: np.ndarray | None = None

    @property
    def count(self) -> int:
        return self.lengths.size

    @property
    def arrays(self) -> SequenceArrays:
        return SequenceArrays(self.codes, self.starts, self.lengths)

    @cached_property
    def host_lengths(self) -> np.ndarray:
        """Return the lengths on the host, copying them if necessary."""
        return to_host([self.lengths])[0] if self.given_lengths is None else self.given_lengths

    @cached_property
    def is_even(self) -> bool:
        """Whether all sequences are known to have the maximum length."""
        lengths = self.given_lengths
        return lengths is not None and int(lengths.min(initial=self.longest)) == self.longest


def with_host_lengths(codes, starts, lengths, host_lengths: np.ndarray) -> DeviceSequences:
    """Make sequences whose lengths are known on the host too."""
    return DeviceSequences(codes, starts, lengths, int(host_lengths.max(initial=0)), host_lengths)


@dataclass(frozen=True)
class DeviceBatch:
    """Pair i is query i with reference i."""

    queries: DeviceSequences
    references: DeviceSequences

    @property
    def arrays(self) -> PairArrays:
        return PairArrays(self.queries.arrays, self.references.arrays)

    @property
    def count(self) -> int:
        return self.queries.count


@on_timeline("copy pairs to the GPU")
def device_batch(pairs: PairBatch, threads: int = 1) -> DeviceBatch:
    """Copy a batch to the GPU."""
    sides = [in_use(side) for side in (pairs.queries, pairs.references)]
    arrays = to_gpu([a for side in sides for a in (side.codes, side.starts, side.lengths)], threads)
    queries, references = sides
    return DeviceBatch(
        with_host_lengths(*arrays[:3], queries.lengths),
        with_host_lengths(*arrays[3:], references.lengths),
    )


def in_use(sequences: Sequences) -> Sequences:
    """Return contiguous arrays of the sequences, without most unused codes."""
    codes = sequences.codes
    starts = np.ascontiguousarray(sequences.starts, np.int64)
    lengths = np.ascontiguousarray(sequences.lengths, np.int32)
    if codes.size > lengths.size * int(lengths.max(initial=0)):
        # The codes may be those of a whole genome.
        low = int(starts.min(initial=codes.size))
        codes = codes[low : int((starts + lengths).max(initial=0))]
        starts = starts - low
    return Sequences(np.ascontiguousarray(codes), starts, lengths)


def blocks(items: int, threads_an_item: int = 1) -> int:
    """Return the number of blocks that gives every item its threads."""
    return -(-items * threads_an_item // BLOCK)


def free_bytes() -> int:
    """Return the free memory of the GPU."""
    return cuda.current_context().get_memory_info().free


# The order in which kernels process the pairs of a batch; computed on the GPU for large batches.
#
# Each pair belongs to a *bin* by its size. Pairs of a bin are adjacent, in no particular order, so
# that the threads of a warp take the same steps. The result of a pair does not depend on its slot.
#
# Bins form rows of `width`, one row per *class* of pairs that one launch processes:
#
#     bin  =  class * width  +  column bin
#
#     slots   [ class 0: bin 0 | bin 1 | bin 2 ... ][ class 1: bin 0 | ... ]
#
# On the GPU, pairs are sorted by counting. The table of a sort is one array of three parts: the
# number of pairs in each bin, the number of slots already assigned, and the start of each bin (with
# one more entry for the end of the last one).


#: The bin of a pair that gets no slot.
NO_BIN = 0xFFFFFFFF
ALL = 0xFFFFFFFF
#: Below this number of pairs, the host sorts them faster.
FEW_PAIRS = 4096
#: The maximum number of classes of a sort by size.
MOST_CLASSES = 16
#: Longer than any query.
NO_LIMIT = 2**31 - 1
#: Sizes below 2 ** (EXACT_BITS + 1) have a bin each; above, bins span 2 ** -EXACT_BITS of a size.
EXACT_BITS = 5


@dataclass(frozen=True)
class Order:
    """The assignment of pairs to slots.

    Attributes
    ----------
    slots : device array, dtype=int32
        Pairs sorted by bin.
    starts : ndarray, shape=(classes * width + 1,), dtype=int64
        The start of each bin in `slots`.
    width : int
        Bins per class.
    """

    slots: object
    starts: np.ndarray
    width: int

    def part(self, begin: int, end: int):
        """Return the pairs in a range of slots."""
        return cut(self.slots, 4 * begin, end - begin, np.int32)

    def classes(self) -> Iterator[tuple[int, int, int, int]]:
        """Yield for every non-empty class: its number, its slots (from, to), its last used bin."""
        for row in range((self.starts.size - 1) // self.width):
            starts = self.starts[row * self.width : (row + 1) * self.width + 1]
            if starts[-1] > starts[0]:
                last_bin = int(np.flatnonzero(starts[:-1] < starts[-1])[-1])
                yield row, int(starts[0]), int(starts[-1]), last_bin


def size_bins(sizes):
    """Return the bins of sizes up to 2 ** 31: single sizes if small, ranges of a few percent if
    large.
    """
    powers = np.maximum(np.frexp(sizes)[1] - 1, EXACT_BITS).astype(np.int64)
    return ((powers - EXACT_BITS) << EXACT_BITS) + (sizes >> (powers - EXACT_BITS))


def size_bin(size: int) -> int:
    """Return the bin of one size; see `size_bins`."""
    return int(size_bins(size))


def largest_in_bin(number: int) -> int:
    """Return the largest size in a bin of `size_bin`."""
    if number < 2 << EXACT_BITS:
        return number
    power = (number >> EXACT_BITS) - 1
    return (((number & ((1 << EXACT_BITS) - 1)) + (1 << EXACT_BITS) + 1) << power) - 1


@cuda.jit(device=True)
def device_size_bin(size):
    """Compute `size_bin` on the GPU for an int32."""
    if size < 2 << EXACT_BITS:
        return int32(size)
    power = int32(63 - cuda.clz(int64(size)))
    return int32(((power - EXACT_BITS) << EXACT_BITS) + (size >> (power - EXACT_BITS)))


def order_by_size(batch, limits, columns: int, exact: bool, marks=None, wanted: int = 0) -> Order:
    """Sort pairs by the length of the query (class), then of the reference (bin).

    Parameters
    ----------
    batch : DeviceBatch
    limits : sequence of int
        The maximum query length of each class, ascending, at most 16; the last covers all queries.
    columns : int
        Longer references are treated as having this length.
    exact : bool
        Whether every length has its own bin, with an even number of slots (one pair is repeated if
        necessary); otherwise bins are those of `size_bin`.
    marks, wanted : device array of int32, and int
        Take only pairs whose mark has this value.
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
    # Always the same number, as it is part of the kernel's type.
    limits_of_kernel = (*map(int, limits), *[NO_LIMIT] * (MOST_CLASSES - len(limits)))
    bin_by_size[blocks(batch.count), BLOCK](
        rows,
        lengths,
        SizeBins(limits_of_kernel, columns, exact, width),
        Marks(rows if marks is None else marks, wanted, marks is None),
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
    """Keep the order of pairs of equal size."""
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
    """Sort pairs by bin.

    Parameters
    ----------
    bins : device array, dtype=uint32
        The bin of each pair, or `NO_BIN`.
    even : bool
        Whether to give every bin an even number of slots by repeating one of its pairs.
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
    """Clear words. One thread per word."""
    i = cuda.grid(1)
    if i < words.size:
        words[i] = 0


@kernel
def number_slots(slots: int32[::1], count: int):
    """Number the slots; an extra slot repeats the last pair. One thread per slot."""
    slot = cuda.grid(1)
    if slot < slots.size:
        slots[slot] = int32(min(slot, count - 1))


class SizeBins(NamedTuple):
    """How `order_by_size` bins pairs."""

    limits: types.UniTuple(int64, 16)
    columns: int
    exact: bool
    width: int


class Marks(NamedTuple):
    """The mark of each pair, and that of the pairs to take, unless all are."""

    marks: int32[::1]
    wanted: int
    all_pairs: bool


@kernel
def bin_by_size(
    rows: int32[::1], columns: int32[::1], sizes: SizeBins, marked: Marks, bins: uint32[::1]
):
    """Compute the bin of each pair; see `order_by_size`. One thread per pair, which reads two
    lengths.
    """
    i = cuda.grid(1)
    if i >= bins.size:
        return
    if not marked.all_pairs and marked.marks[i] != marked.wanted:
        bins[i] = uint32(NO_BIN)
        return
    row = int32(0)
    for limit in sizes.limits:
        if rows[i] > limit:
            row += int32(1)
    column = int32(min(int64(columns[i]), sizes.columns))
    if not sizes.exact:
        column = device_size_bin(column)
    bins[i] = uint32(row * sizes.width + column)


@cuda.jit(device=True)
def add_to_bin(table, entry, number, in_use):
    """Add 1 to an entry of the table for every thread with a bin; return the previous value.

    Threads with the same bin as the first of the warp are combined.
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
    """Count the pairs of each bin. One thread per pair; one atomic addition per thread or warp."""
    i = cuda.grid(1)
    number = uint32(NO_BIN)
    if i < count:
        number = bins[i]
    add_to_bin(table, int64(number), number, number != uint32(NO_BIN))


@kernel
def size_slots(table: uint32[::1], n_bins: int, even: bool):
    """Compute the number of slots of each bin. One thread per bin."""
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
    """Assign each pair a slot of its bin. One thread per pair, as in `count_bins`."""
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


# Scores and ends in 32 bits, for every mode and for GATK's rules, and their costs.


#: The fraction of free memory that the workspace of one launch may take.
MEMORY_SHARE = 0.4
#: Pairs that fill a large GPU several times with 8 threads each.
MANY_PAIRS = 1 << 16


@dataclass(frozen=True)
class Costs:
    """Parameters of the 32-bit kernels for a scheme and a mode.

    Attributes
    ----------
    matrix : ndarray, shape=(k, k)
    first, extend : int
        Scores of the first and of further positions of a gap, negative or 0.
    opens_on_tie : bool
        Whether a tie between opening and extending a gap opens one.
    free : tuple of bool
        query_start, query_end, reference_start, reference_end.
    local : bool
    ambiguous : int
    overhang : int
        Strategy under GATK's rules (0 INDEL or LEADING_INDEL, 1 SOFTCLIP, 2 IGNORE); -1 otherwise.
    """

    matrix: np.ndarray
    first: int
    extend: int
    opens_on_tie: bool
    free: tuple[bool, bool, bool, bool]
    local: bool = False
    ambiguous: int = -1
    overhang: int = -1

    @property
    def is_gatk(self) -> bool:
        return self.overhang >= 0

    @functools.cached_property
    def device_matrix(self):
        """The matrix as int32_kernel_cuda keeps it in shared memory, with a row for padding."""
        table = np.zeros((PADDING_ROW + 1, MATRIX_STRIDE), np.int32)
        table[: len(self.matrix), : len(self.matrix)] = self.matrix
        # A step along the diagonal above the first row keeps the upper border.
        table[PADDING_ROW] = -(2**20) if self.local else 0 if self.free[2] else self.extend
        return _on_gpu(cuda.get_current_device().id, table.tobytes())

    def of_kernel(self, free: tuple[bool, bool, bool, bool]) -> MatrixCosts:
        """Return the costs as kernels take them, with these free ends."""
        tie = int(self.opens_on_tie)
        return MatrixCosts(self.device_matrix, self.first, self.extend, tie, *map(int, free))

    def trace_rules(self, threads: int, rows: int = ROWS) -> TraceRules:
        """Return the rules of a traceback, given the threads per group and the rows per thread."""
        return TraceRules(
            int(self.free[0]), int(self.free[2]), max(self.overhang, 0), np.int32(self.ambiguous),
            threads, rows,
        )  # fmt: skip


@functools.lru_cache(maxsize=8)
def _on_gpu(device, words: bytes):
    """Keep a few kilobytes on a GPU, so that small batches need not copy them again."""
    return cuda.to_device(np.frombuffer(words, np.int32))


def free_ends(mode: Mode) -> tuple[bool, bool, bool, bool]:
    """Return the four free ends, query start to reference end; all are free in local mode."""
    if mode.local:
        return True, True, True, True
    return mode.query_start, mode.query_end, mode.reference_start, mode.reference_end


def pair_costs(scoring: Scoring, mode: Mode) -> Costs:
    """Return the costs of a scheme by the rules of pairs.py."""
    extend = -scoring.gap_extend
    first = extend - scoring.gap_open
    return Costs(
        scoring.matrix, first, extend, True, free_ends(mode), mode.local, scoring.ambiguous
    )


def find_full(
    batch: DeviceBatch, costs: Costs, ends: EndArrays, marks=None, wanted: int = 0
) -> None:
    """Write scores and ends of pairs.

    Parameters
    ----------
    marks, wanted : device array of int32, and int
        Process only pairs whose mark has this value; without marks, all pairs.
    """
    # For many pairs, groups of 8 threads waste the fewest cells; for few they leave the GPU idle.
    most_threads = 8 if batch.count >= MANY_PAIRS else 32
    strips = (*range(1, 10), *(10 << i for i in range(6)))
    limits = [8 * ROWS * number for number in strips]
    limits = [*(limit for limit in limits if limit < batch.queries.longest), NO_LIMIT]
    with work_space():
        order = order_by_size(batch, limits, batch.references.longest, False, marks, wanted)
        nothing = Directions(*[device_array(1, np.uint32)] * 2)
        for threads, begin, end, columns in _launches(order, most_threads):
            edge_stride = 2 * columns
            wanted = 4 * edge_stride * (end - begin)
            groups = max(1, affordable(wanted, MEMORY_SHARE) // (4 * edge_stride))
            kernel = full_matrix_kernel(threads, costs.local, costs.is_gatk, False)
            edge = device_array(groups * edge_stride, np.int32)
            for first in range(begin, end, groups):
                slots = order.part(first, min(first + groups, end))
                kernel[blocks(slots.size, threads), BLOCK](
                    batch.arrays,
                    slots,
                    batch.queries.lengths,
                    costs.of_kernel(costs.free),
                    edge,
                    edge_stride,
                    nothing,
                    ends,
                )


def _launches(order: Order, most_threads: int) -> list[tuple[int, int, int, int]]:
    """Return the threads per group, range of slots and longest reference of each launch."""
    launches = []
    for number, begin, end, last_bin in order.classes():
        threads = min(most_threads, 8 << min(number, 2))
        columns = largest_in_bin(last_bin)
        if launches and launches[-1][0] == threads:
            _, begin, _, before = launches.pop()
            columns = max(columns, before)
        launches.append((threads, begin, end, columns))
    return launches
