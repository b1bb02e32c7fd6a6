"""Parts searched with mismatches on the GPU: search schemes, batch by batch.

    items -> parts of equal length -> k-mers of one length -> intervals -> sorted by part and row
    host     host                     one thread each         search_schemes_cuda

Layouts and results are those of `bwarp.allmap.parts_cpu`. A search writes intervals in any order,
and sorting them gives the order of the CPU. Its lists have a fixed number of elements. If one
overflows, the batch is halved; a single k-mer that overflows them is searched with longer lists.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bwarp.allmap.parts_cpu import Parts, cut_evenly, forward_parts, item_parts
from bwarp.allmap.parts_cuda import DeviceItems, DeviceParts, ItemArrays, PartArrays, parts_on_gpu
from bwarp.gpu.cuda import cuda, uint8, uint32, uint64
from bwarp.gpu.device_arrays import zeros
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import launch
from bwarp.gpu.sums_and_sorts import INTERVALS
from bwarp.index.device_index_cuda import DeviceIndex, Workspace, make_workspace
from bwarp.seeding.exact_cuda import both_strands
from bwarp.seeding.kmers import kmer_words
from bwarp.seeding.search_schemes_cuda import kmers_at_once, search_schemes

#: The minimum number of elements of the lists of a search.
FEWEST_ELEMENTS = 1 << 10


class PartKmers(NamedTuple):
    """Parts to search as k-mers of one length.

    Attributes
    ----------
    numbers : device array, shape=(n,), dtype=uint32
        The parts, all of forward items.
    words_a_kmer, k : int
    """

    numbers: uint32[::1]
    words_a_kmer: int
    k: int


class FoundIntervals(NamedTuple):
    """Intervals in any order: the part and the first row as one number, and the number of rows."""

    keys: uint64[::1]
    n_rows: uint32[::1]


def list_elements(work_bytes: int) -> int:
    """Return the number of elements of the lists of a search in the memory of a batch of reads.

    The lists take half of it, and leave the other half to the intervals that are found.
    """
    return max(work_bytes // (2 * Workspace.BYTES), FEWEST_ELEMENTS)


def search_mismatch_parts(
    device: DeviceIndex, both, items: DeviceItems, n_parts: np.ndarray, mismatches: int,
    elements: int,
) -> DeviceParts:  # fmt: skip
    """Do what `parts_cpu.search_mismatch_parts` does.

    Parameters
    ----------
    device : DeviceIndex
        With the reverse BWT.
    both : device array, dtype=uint8
        The reads on both strands.
    elements : int
        The elements of the lists of a search, from `list_elements`.
    """
    offsets, starts, ends = cut_evenly(items.on_host.lengths, n_parts)
    no_intervals = np.zeros(len(starts) + 1, np.int64), *np.empty((2, 0), np.uint32)
    parts = parts_on_gpu(Parts(offsets, starts, ends, *no_intervals))
    # With the text, a search would list the positions of its last rows.
    searching = replace(device, work=make_workspace(elements), text=None)
    found = []
    for k, numbers in forward_parts(offsets, starts, ends):
        size, first = kmers_at_once(searching, k, mismatches), 0
        while first < numbers.size:
            some = cuda.to_device(numbers[first : first + size].astype(np.uint32))
            kmers = PartKmers(some, kmer_words(k), k)
            intervals = _search_kmers(searching, both, items, parts, kmers, mismatches)
            if intervals is not None:
                found.append(intervals)
                first += some.size
            elif some.size > 1:
                size = some.size // 2
            else:
                elements *= 2
                searching.work = None  # its memory is needed
                searching.work = make_workspace(elements)
    del searching
    return _in_order(device, found, parts)


def _search_kmers(
    device: DeviceIndex, both, items: DeviceItems, parts: DeviceParts, kmers: PartKmers,
    mismatches: int,
) -> FoundIntervals | None:  # fmt: skip
    """Return the intervals of both strands of k-mers; None if a list overflowed."""
    work, n_kmers = device.work, kmers.numbers.size
    words = cuda.device_array(n_kmers * kmers.words_a_kmer + 1, np.uint64)
    pack_parts[launch(n_kmers + 1)](both, items.arrays, parts.arrays, kmers, words)
    work.counters.copy_to_device(np.zeros(work.counters.size, np.uint32))
    search_schemes(device, both_strands(words, kmers.words_a_kmer, kmers.k), mismatches)
    counters = work.counters.copy_to_host()
    if counters.max() > work.elements:
        return None
    count = int(counters[INTERVALS])
    found = FoundIntervals(
        cuda.device_array(max(1, count), np.uint64), cuda.device_array(max(1, count), np.uint32)
    )
    key_intervals[launch(count)](work, count, kmers, parts.arrays, found)
    return FoundIntervals(found.keys[:count], found.n_rows[:count])


def _in_order(device: DeviceIndex, found: list[FoundIntervals], parts: DeviceParts) -> DeviceParts:
    """Return parts with the intervals that were found, sorted by part and row."""
    n_parts, count = len(parts.interval_offsets) - 1, sum(one.keys.size for one in found)
    keys, spare_keys = (cuda.device_array(max(1, count), np.uint64) for _ in range(2))
    n_rows, spare = (cuda.device_array(max(1, count), np.uint32) for _ in range(2))
    first = 0
    while found:
        one = found.pop()
        last = first + one.keys.size
        if last > first:
            keys[first:last].copy_to_device(one.keys)
            n_rows[first:last].copy_to_device(one.n_rows)
        first = last
    if count > 1:
        key_bits = 32 + max(1, (n_parts - 1).bit_length())
        (keys, _), (n_rows, _) = device.sort_pairs(
            (keys, spare_keys), (n_rows, spare), count, key_bits
        )
    first_rows, of_parts = (cuda.device_array(max(1, count), np.uint32) for _ in range(2))
    counts = zeros(n_parts, np.uint32)
    read_intervals[launch(count)](keys, count, first_rows, of_parts, counts)
    arrays = parts.arrays._replace(first_rows=first_rows, n_rows=n_rows, intervals=of_parts)
    return parts._replace(interval_offsets=item_parts(counts.copy_to_host()), arrays=arrays)


@kernel
def pack_parts(
    both: uint8[::1], items: ItemArrays, parts: PartArrays, kmers: PartKmers, words: uint64[::1]
):
    """Pack the bases of a part, and A for an ambiguous base, as in `bwarp.seeding.kmers`.

    One thread per part, and one for the word after the last. Reads up to 64 adjacent bytes.
    """
    i = cuda.grid(1)
    if i == kmers.numbers.size:
        words[words.size - 1] = uint64(0)
    if i >= kmers.numbers.size:
        return
    part = kmers.numbers[i]
    begin = items.begins[parts.items[part]] + parts.starts[part]
    for word in range(kmers.words_a_kmer):
        bits = uint64(0)
        for base in range(32 * word, 32 * word + 32):
            code = uint32(0)
            if base < kmers.k:
                code = uint32(both[begin + base])
            bits = bits << uint64(2) | uint64(code if code < 4 else 0)
        words[i * kmers.words_a_kmer + word] = bits


@kernel
def key_intervals(
    work: Workspace, count: int, kmers: PartKmers, parts: PartArrays, found: FoundIntervals
):
    """Copy the intervals of a search, with their parts. One thread each.

    The same part of the reverse complement is numbered from the other end.
    """
    i = cuda.grid(1)
    if i < count:
        item = work.intervals[i]
        part = kmers.numbers[item >> uint32(1)]
        if item & uint32(1):
            between = parts.offsets[parts.items[part] + uint32(1)]
            part = uint32(uint32(2) * between - uint32(1) - part)
        column = uint64(work.elements)
        first_row = work.intervals[uint64(i) + column]
        found.keys[i] = uint64(part) << uint64(32) | uint64(first_row)
        found.n_rows[i] = work.intervals[uint64(i) + uint64(2) * column]


@kernel
def read_intervals(
    keys: uint64[::1], count: int, first_rows: uint32[::1], of_parts: uint32[::1],
    counts: uint32[::1],
):  # fmt: skip
    """Split sorted keys, and count the intervals of every part. One thread per interval."""
    i = cuda.grid(1)
    if i < count:
        part = uint32(keys[i] >> uint64(32))
        first_rows[i], of_parts[i] = uint32(keys[i]), part
        cuda.atomic.add(counts, part, uint32(1))
