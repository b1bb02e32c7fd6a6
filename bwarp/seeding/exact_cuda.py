"""Exact search on the GPU: a table for the last bases, then rank, then the text itself.

One thread searches one strand of a k-mer. The table gives the rows of its last bases; each step
adds a base on the left and reads one or two memory sectors. If the text is on the GPU, a search
ends as soon as one row is left: its suffix gives the position where the k-mer must begin, and the
remaining bases are compared there. A long k-mer therefore takes no more reads than a short one:

    k-mer     A C G T A C C A T G G A ...... T A
              <-- compared --><- rank -><- table ->      reads of random sectors: about 2 + 2 + 1
"""

import numpy as np

from bwarp.gpu.cuda import cuda, uint32, uint64
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import launch
from bwarp.gpu.ptx import load_uint32x4
from bwarp.gpu.sums_and_sorts import INTERVALS, KEYS, reserve
from bwarp.index.device_index_cuda import DeviceIndex
from bwarp.index.locate_cuda import segment_of
from bwarp.index.rank_cuda import GROUPS, rank_both
from bwarp.sequence import kmer_at, reverse_complement_kmer

# K-mers as search items: both strands of each.
#
# Item 2 i is k-mer i, item 2 i + 1 its reverse complement, packed as in `bwarp.seeding.kmers`, so
# that the same code searches either strand.


_THREADS = 256


def make_items(words: np.ndarray, k: int):
    """Copy k-mers (host, shape=(n, 1 or 2), dtype=uint64) to the GPU and make the items of both
    strands.

    Returns
    -------
    items : device array, shape=(2 * n * words a k-mer + 1,), dtype=uint64
        One word more than the items need, because a window at any base reads two words.
    """
    flat = cuda.to_device(np.append(words.reshape(-1), np.uint64(0)))
    items = cuda.device_array(2 * words.size + 1, np.uint64)
    make_both_strands[launch(2 * len(words) + 1, _THREADS)](
        flat, words.shape[1], k, 2 * len(words), items
    )
    return items


@cuda.jit(device=True)
def base_of(items, words_an_item, item, position):
    """Return a base of an item."""
    word = items[uint64(item) * uint64(words_an_item) + uint64(position >> 5)]
    return uint32((word >> uint64(62 - 2 * (position & 31))) & uint64(3))


@kernel
def make_both_strands(
    flat: uint64[::1], words_a_kmer: int, k: int, n_items: int, items: uint64[::1]
):
    """Write items. One thread per item, and one for the word after the last."""
    item = cuda.grid(1)
    if item > n_items:
        return
    for part in range(words_a_kmer):
        at = item * words_a_kmer + part
        if at < items.size:
            bases = min(32, k - 32 * part)
            bits = uint64(0)
            if item < n_items and bases > 0:
                first = (item >> 1) * words_a_kmer * 32
                if item & 1:
                    window = kmer_at(flat, first + k - 32 * part - bases, bases)
                    bits = uint64(reverse_complement_kmer(window, bases))
                    bits = uint64(bits << uint64(64 - 2 * bases))
                else:
                    bits = flat[(item >> 1) * words_a_kmer + part]
            items[at] = bits


#: The number of rows if `first` is the genome position of the only hit.
LOCATED = 0xFFFFFFFF


def search_exact(device: DeviceIndex, items, n_items: int, words_an_item: int, k: int) -> None:
    """Find the rows of items; append them to the intervals and keys of the workspace.

    Parameters
    ----------
    items : device array
        Both strands of k-mers of length k, from `bwarp.seeding.exact_cuda.make_items`.
    """
    work = device.work
    first, rows = work.nodes[:n_items], work.nodes[work.elements : work.elements + n_items]
    exact_intervals(device, items, n_items, words_an_item, k, first, rows)
    collect[launch(n_items, _THREADS)](
        first, rows, n_items, work.elements, work.intervals, work.keys, work.values, work.counters
    )


def exact_intervals(device, items, n_items: int, words_an_item: int, k: int, first, rows) -> None:
    """Write the first row and number of rows of every item to device arrays of dtype uint32.

    For a hit found in the text, its genome position and `LOCATED` are written instead.
    """
    length = min(k, device.plan.string_length)
    has_text = device.text is not None
    search_items[launch(n_items, _THREADS)](
        *device.forward.arrays,
        device.first_rows,
        device.table(length),
        length,
        items,
        words_an_item,
        k,
        n_items,
        1 if has_text else 0,
        device.suffixes if has_text else device.first_rows,
        device.text if has_text else items,
        device.segment_text,
        device.segment_genome,
        first,
        rows,
    )


@cuda.jit(device=True)
def in_text(text, segment_text, segment_genome, items, words_an_item, item, k, compared, begin):
    """Return the genome position of an item at text position `begin`, or LOCATED if it is not
    there.

    Compares its first `compared` bases; the others are known to match. Reads one or two sectors of
    the text and, for a match, the segments.
    """
    length = segment_text[segment_text.size - 1]
    if begin >= length or uint32(length - begin) <= uint32(k):
        return uint32(LOCATED)
    done = uint32(0)
    while done < compared:
        bases = min(uint32(32), uint32(compared - done))
        here = kmer_at(text, uint64(begin) + uint64(done), bases)
        wanted = kmer_at(items, uint64(item) * uint64(32 * words_an_item) + uint64(done), bases)
        if here != wanted:
            return uint32(LOCATED)
        done = uint32(done + bases)
    segment = segment_of(segment_text, begin)
    if uint32(segment_text[segment + uint32(1)] - begin) <= uint32(k):
        return uint32(LOCATED)
    return uint32(segment_genome[segment] + begin - segment_text[segment])


@kernel
def search_items(
    words: uint32[::1], separator_rows: uint32[::1], groups: GROUPS, first_rows: uint32[::1],
    table: uint32[::1], length: int, items: uint64[::1], words_an_item: int, k: int, n_items: int,
    few: int, suffixes: uint32[::1], text: uint64[::1], segment_text: uint32[::1],
    segment_genome: uint32[::1], firsts: uint32[::1], n_rows: uint32[::1],
):  # fmt: skip
    """Search items as described at the top. One thread per item; `few` is 1 if there is a text.

    Both strands of a k-mer are neighbours, so one pair of threads searches both.
    """
    item = cuda.grid(1)
    if item >= n_items:
        return
    string = kmer_at(items, uint64(item) * uint64(32 * words_an_item) + uint64(k - length), length)
    first, _, rows, _ = load_uint32x4(table, uint64(4) * uint64(string))
    left = uint32(k - length)
    while rows > few and left > uint32(0):
        left = uint32(left - uint32(1))
        code = base_of(items, words_an_item, item, left)
        start, stop = rank_both(words, separator_rows, groups, code, first, uint32(first + rows))
        first = uint32(first_rows[code] + start)
        rows = uint32(stop - start)
    if rows == uint32(1) and few:
        first = in_text(
            text,
            segment_text,
            segment_genome,
            items,
            words_an_item,
            item,
            k,
            left,
            uint32(suffixes[first] - left),
        )
        rows = uint32(0) if first == uint32(LOCATED) else uint32(LOCATED)
    firsts[item] = first
    n_rows[item] = rows


@kernel
def collect(
    firsts: uint32[::1], n_rows: uint32[::1], n_items: int, capacity: int, intervals: uint32[::1],
    keys: uint64[::1], values: uint32[::1], counters: uint32[::1],
):  # fmt: skip
    """Append the results to the lists. One thread per item; the lists keep the order of items."""
    item = cuda.grid(1)
    first = rows = uint32(0)
    if item < n_items:
        first, rows = firsts[item], n_rows[item]
    is_located = rows == uint32(LOCATED)
    slot = reserve(counters, KEYS, uint32(1) if is_located else uint32(0))
    if is_located and slot < capacity:
        keys[slot] = uint64(item) << uint64(32) | uint64(first)
        values[slot] = uint32(0)
    is_interval = rows != uint32(0) and not is_located
    slot = uint64(reserve(counters, INTERVALS, uint32(1) if is_interval else uint32(0)))
    if is_interval and slot < uint64(capacity):
        intervals[slot] = uint32(item)
        intervals[uint64(capacity) + slot] = first
        intervals[uint64(2 * capacity) + slot] = rows
        intervals[uint64(3 * capacity) + slot] = uint32(0)


INLINE_PTX = {search_items: ("ld.global.nc.v4.u32",)}
