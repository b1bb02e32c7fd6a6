"""Exact search on the GPU: a table for the last bases, then rank, then the text itself.

One thread searches one strand of a k-mer. The table gives the rows of its last bases; each step
adds a base on the left and reads one or two memory sectors. If the text is on the GPU, a search
ends as soon as one row is left: its suffix gives the position where the k-mer must begin, and the
remaining bases are compared there. A long k-mer therefore takes no more reads than a short one:

    k-mer     A C G T A C C A T G G A ...... T A
              <-- compared --><- rank -><- table ->      reads of random sectors: about 2 + 2 + 1
"""

from typing import NamedTuple

import numpy as np

from bwarp.gpu.cuda import cuda, uint32, uint64
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import launch
from bwarp.gpu.ptx import load_uint32x4
from bwarp.gpu.sums_and_sorts import INTERVALS, KEYS, reserve
from bwarp.index.device_index_cuda import DeviceIndex, IndexText, StringTable, Workspace
from bwarp.index.locate_cuda import segment_of
from bwarp.index.rank_cuda import DeviceBWT, rank_both
from bwarp.sequence import kmer_at, reverse_complement_kmer

# K-mers as search items: both strands of each.
#
# Item 2 i is k-mer i, item 2 i + 1 its reverse complement, packed as in `bwarp.seeding.kmers`, so
# that the same code searches either strand.


_THREADS = 256


class SearchItems(NamedTuple):
    """K-mers of length k to search.

    Attributes
    ----------
    words : device array, shape=(count * words_an_item + 1,), dtype=uint64
        One word more than the items need, because a window at any base reads two words.
    words_an_item, k, count : int
    """

    words: uint64[::1]
    words_an_item: int
    k: int
    count: int


def make_items(words: np.ndarray, k: int) -> SearchItems:
    """Copy k-mers (host, shape=(n, 1 or 2), dtype=uint64) to the GPU; return both strands."""
    kmers = cuda.to_device(np.append(words.reshape(-1), np.uint64(0)))
    return both_strands(kmers, words.shape[1], k)


def both_strands(kmers, words_a_kmer: int, k: int) -> SearchItems:
    """Return both strands of k-mers on the GPU, followed by one more word."""
    count = 2 * ((kmers.size - 1) // words_a_kmer)
    both = cuda.device_array(count * words_a_kmer + 1, np.uint64)
    items = SearchItems(both, words_a_kmer, k, count)
    make_both_strands[launch(items.count + 1, _THREADS)](kmers, items)
    return items


@cuda.jit(device=True)
def first_base(items, item):
    """Return where an item begins among the bases of all."""
    return uint64(item) * uint64(32 * items.words_an_item)


@cuda.jit(device=True)
def base_of(items, item, position):
    """Return a base of an item."""
    word = items.words[uint64(item) * uint64(items.words_an_item) + uint64(position >> 5)]
    return uint32((word >> uint64(62 - 2 * (position & 31))) & uint64(3))


@kernel
def make_both_strands(kmers: uint64[::1], items: SearchItems):
    """Write items. One thread per item, and one for the word after the last."""
    item = cuda.grid(1)
    if item > items.count:
        return
    for part in range(items.words_an_item):
        at = item * items.words_an_item + part
        if at < items.words.size:
            bases = min(32, items.k - 32 * part)
            bits = uint64(0)
            if item < items.count and bases > 0:
                first = (item >> 1) * items.words_an_item * 32
                if item & 1:
                    window = kmer_at(kmers, first + items.k - 32 * part - bases, bases)
                    bits = uint64(reverse_complement_kmer(window, bases))
                    bits = uint64(bits << uint64(64 - 2 * bases))
                else:
                    bits = kmers[(item >> 1) * items.words_an_item + part]
            items.words[at] = bits


#: The number of rows if `first` is the genome position of the only hit.
LOCATED = 0xFFFFFFFF


def search_exact(device: DeviceIndex, items: SearchItems) -> None:
    """Find the rows of items; append them to the intervals and keys of the workspace."""
    work, count = device.work, items.count
    first, rows = work.nodes[:count], work.nodes[work.elements : work.elements + count]
    exact_intervals(device, items, first, rows)
    collect[launch(count, _THREADS)](first, rows, work)


def exact_intervals(device: DeviceIndex, items: SearchItems, first, rows) -> None:
    """Write the first row and number of rows of every item to device arrays of dtype uint32.

    For a hit found in the text, its genome position and `LOCATED` are written instead.
    """
    text = device.text or IndexText(device.forward.first_rows, items.words, device.segments)
    search_items[launch(items.count, _THREADS)](
        device.forward,
        device.table(min(items.k, device.plan.string_length)),
        items,
        0 if device.text is None else 1,
        text,
        first,
        rows,
    )


@cuda.jit(device=True)
def in_text(text, items, item, compared, begin):
    """Return the genome position of an item at text position `begin`, or LOCATED if it is not
    there.

    Compares its first `compared` bases; the others are known to match. Reads one or two sectors of
    the text and, for a match, the segments.
    """
    segments = text.segments
    length = segments.text[segments.text.size - 1]
    if begin >= length or uint32(length - begin) <= uint32(items.k):
        return uint32(LOCATED)
    done = uint32(0)
    while done < compared:
        bases = min(uint32(32), uint32(compared - done))
        here = kmer_at(text.bases, uint64(begin) + uint64(done), bases)
        wanted = kmer_at(items.words, first_base(items, item) + uint64(done), bases)
        if here != wanted:
            return uint32(LOCATED)
        done = uint32(done + bases)
    segment = segment_of(segments.text, begin)
    if uint32(segments.text[segment + uint32(1)] - begin) <= uint32(items.k):
        return uint32(LOCATED)
    return uint32(segments.genome[segment] + begin - segments.text[segment])


@kernel
def search_items(
    bwt: DeviceBWT, strings: StringTable, items: SearchItems, few: int, text: IndexText,
    firsts: uint32[::1], n_rows: uint32[::1],
):  # fmt: skip
    """Search items as described at the top. One thread per item; `few` is 1 if there is a text.

    Both strands of a k-mer are neighbours, so one pair of threads searches both.
    """
    item = cuda.grid(1)
    if item >= items.count:
        return
    left = uint32(items.k - strings.length)
    string = kmer_at(items.words, first_base(items, item) + uint64(left), strings.length)
    first, _, rows, _ = load_uint32x4(strings.rows, uint64(4) * uint64(string))
    while rows > few and left > uint32(0):
        left = uint32(left - uint32(1))
        code = base_of(items, item, left)
        start, stop = rank_both(bwt, code, first, uint32(first + rows))
        first = uint32(bwt.first_rows[code] + start)
        rows = uint32(stop - start)
    if rows == uint32(1) and few:
        first = in_text(text, items, item, left, uint32(text.suffixes[first] - left))
        rows = uint32(0) if first == uint32(LOCATED) else uint32(LOCATED)
    firsts[item] = first
    n_rows[item] = rows


@kernel
def collect(firsts: uint32[::1], n_rows: uint32[::1], work: Workspace):
    """Append the results to the lists. One thread per item; the lists keep the order of items."""
    item = cuda.grid(1)
    first = rows = uint32(0)
    capacity = work.elements
    if item < firsts.size:
        first, rows = firsts[item], n_rows[item]
    is_located = rows == uint32(LOCATED)
    slot = reserve(work.counters, KEYS, uint32(1) if is_located else uint32(0))
    if is_located and slot < capacity:
        work.keys[slot] = uint64(item) << uint64(32) | uint64(first)
        work.values[slot] = uint32(0)
    is_interval = rows != uint32(0) and not is_located
    slot = uint64(reserve(work.counters, INTERVALS, uint32(1) if is_interval else uint32(0)))
    if is_interval and slot < uint64(capacity):
        work.intervals[slot] = uint32(item)
        work.intervals[uint64(capacity) + slot] = first
        work.intervals[uint64(2 * capacity) + slot] = rows
        work.intervals[uint64(3 * capacity) + slot] = uint32(0)


INLINE_PTX = {search_items: ("ld.global.nc.v4.u32",)}
