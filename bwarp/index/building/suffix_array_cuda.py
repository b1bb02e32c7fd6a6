"""The suffix array on a GPU, by prefix doubling.

All suffixes are sorted by their first 27 bases, packed into one 64-bit number each. Suffixes
that share these stay in one group; a suffix's rank is the row of its group's first member. From
then on only the groups of two or more are sorted again, each time by the rank of the suffix that
begins where the bases compared so far end, which doubles their number:

    suffix at p   [ compared already: 27 ][ the rank of the suffix at p + 27: 27 more ]

Device memory, for n bases: the text (n bytes), two buffers of keys (16 n) and two of positions
(8 n). The sorted positions become the suffix array, the other buffer of positions the ranks, and
the buffers of keys serve all later rounds. Only where m suffixes, more than half of all, share
their first 27 bases with another one, the later rounds take 16 m bytes more.
"""

import numpy as np
from numba import cuda
from numba.cuda import types

from bwarp.gpu.available_memory import require_memory
from bwarp.gpu.prefix_sum import exclusive_sum
from bwarp.gpu.radix_sort import pair_sorter

__all__ = [
    "KERNEL_SIGNATURES",
    "suffix_array",
    "suffix_array_bytes",
    "suffix_array_on_device",
]

#: Bases in a first key: the most of an alphabet of five that 64 bits hold.
FIRST_BASES = 27
FIRST_KEY_BITS = (5**FIRST_BASES - 1).bit_length()

#: Elements one warp counts or gathers; a multiple of 32.
TILE = 2048

_WARP = 32
_THREADS = 256
_ALL_LANES = 0xFFFFFFFF


def suffix_array(text: np.ndarray) -> np.ndarray:
    """The start positions of all suffixes of a text, in the order of the suffixes.

    Parameters
    ----------
    text : ndarray, shape=(n,), dtype=uint8
        0 is a separator, 1 to 4 are A C G T. The text ends with a separator, does not begin with
        one and has no two side by side; n is at most 2**32 - 2.

    Returns
    -------
    suffixes : ndarray, shape=(n,), dtype=uint32
        Of two suffixes where one begins with the other, the shorter comes first.
    """
    return suffix_array_on_device(cuda.to_device(text)).copy_to_host()


def suffix_array_bytes(n: int) -> int:
    """The device memory that the suffix array of n bases takes at its peak, text included.

    True of texts where at most half of the suffixes share their first 27 bases with another
    one; a text of nothing but repeats takes 16 bytes a base more.
    """
    sort_scratch = n // 4 + (64 << 20)
    return 25 * n + sort_scratch


def suffix_array_on_device(text):
    """Like `suffix_array`, from a device array to a device array."""
    n = text.size
    require_memory(suffix_array_bytes(n) - n, f"sorting the suffixes of {n:,} bases")
    keys = cuda.device_array(n, np.uint64), cuda.device_array(n, np.uint64)
    positions = cuda.device_array(n, np.uint32), cuda.device_array(n, np.uint32)
    sort_pairs = pair_sorter()
    first_keys[_blocks(n), _THREADS](text, keys[0], positions[0])
    keys, positions = sort_pairs(keys, positions, n, FIRST_KEY_BITS)
    suffixes, ranks = positions

    # What is being sorted: `count` suffixes, their keys and the rows they go to; no `rows` stand
    # for 0, 1, 2, ... In every pair of buffers the one in use is the first.
    count, bases, rank_bits = n, FIRST_BASES, n.bit_length()
    now = keys[0], suffixes, cuda.device_array(0, np.uint32)
    while True:
        write_ranks[_blocks(count), _THREADS](*now, count, suffixes, ranks)
        starts = _starts_of_unsorted(now[0], count)
        unsorted = int(starts[starts.size - 1])
        if unsorted == 0:
            return suffixes
        if count == n:
            keys, positions, rows = _buffers_for_later_rounds(keys, unsorted)
        keys, positions, rows = keys[::-1], positions[::-1], rows[::-1]
        gather_unsorted[_blocks(_WARP * (starts.size - 1)), _THREADS](
            *now, count, starts, ranks, bases, rank_bits, keys[0], positions[0], rows[0]
        )
        count, bases = unsorted, 2 * bases
        key_bits = rank_bits + (count - 1).bit_length()
        keys, positions = sort_pairs(keys, positions, count, key_bits)
        now = keys[0], positions[0], rows[0]


def _blocks(threads: int) -> int:
    return -(-threads // _THREADS)


def _starts_of_unsorted(keys, count):
    """Where each tile's unsorted elements go when all are gathered, and last their number."""
    tiles = -(-count // TILE)
    starts = cuda.device_array(tiles + 1, np.uint32)
    count_unsorted[_blocks(_WARP * (tiles + 1)), _THREADS](keys, count, starts)
    exclusive_sum(starts)
    return starts


def _buffers_for_later_rounds(keys, m):
    """Pairs of buffers for m keys, positions and rows, in the two buffers of the first keys.

    The second of each pair lies where no keys are in use yet.

        buffer of n first keys   [ m keys ][ m positions ][ m rows ]          2 m <= n
    """
    if 2 * m <= keys[0].size:
        words = [buffer.view(np.uint32) for buffer in keys]
        positions = tuple(half[2 * m : 3 * m] for half in words)
        rows = tuple(half[3 * m : 4 * m] for half in words)
    else:
        require_memory(16 * m, f"sorting again {m:,} suffixes that begin alike")
        positions = cuda.device_array(m, np.uint32), cuda.device_array(m, np.uint32)
        rows = cuda.device_array(m, np.uint32), cuda.device_array(m, np.uint32)
    return tuple(half[:m] for half in keys), positions, rows


@cuda.jit(cache=True)
def first_keys(text, keys, positions):
    """The first 27 bases of every suffix as a number to base 5; past the end lie zeros.

    One thread a suffix. Neighbours read the same bases, so they come from the cache.
    """
    i = cuda.grid(1)
    if i < keys.size:
        key = np.uint64(0)
        for j in range(i, i + FIRST_BASES):
            base = np.uint64(0)
            if j < text.size:
                base = np.uint64(text[j])
            key = key * np.uint64(5) + base
        keys[i] = key
        positions[i] = i


@cuda.jit(device=True)
def first_equal(keys, j):
    """The first index of the run of equal keys that j lies in: strides of 1, 2, 4, ..., then
    bisection. Most runs are short, so most calls read one or two keys beside keys[j]."""
    key = keys[j]
    inside = j
    outside = j - 1
    while outside >= 0 and keys[outside] == key:
        inside = outside
        outside = max(2 * outside - j, -1)
    while inside - outside > 1:
        middle = (inside + outside) // 2
        if keys[middle] == key:
            inside = middle
        else:
            outside = middle
    return inside


@cuda.jit(device=True)
def is_unsorted(keys, count, j):
    """Whether element j shares its key with a neighbour."""
    key = keys[j]
    return (j > 0 and keys[j - 1] == key) or (j + 1 < count and keys[j + 1] == key)


@cuda.jit(device=True)
def row_of(rows, j):
    """The row of element j; no rows stand for 0, 1, 2, ..."""
    if rows.size:
        return np.int64(rows[j])
    return j


@cuda.jit(cache=True)
def write_ranks(keys, positions, rows, count, suffixes, ranks):
    """Put every element in its row, and give it the row of its group's first as rank.

    One thread an element; one write to an element of `ranks` that no neighbour shares.
    """
    j = cuda.grid(1)
    if j < count:
        ranks[positions[j]] = row_of(rows, first_equal(keys, j))
        if rows.size:
            suffixes[rows[j]] = positions[j]


@cuda.jit(cache=True)
def count_unsorted(keys, count, counts):
    """The number of unsorted elements in every tile of keys, and after the last tile 0.

    One warp a tile, 32 elements a step.
    """
    tile = cuda.grid(1) // _WARP
    lane = cuda.laneid
    if tile < counts.size:
        found = 0
        for step in range(tile * TILE, min((tile + 1) * TILE, count), _WARP):
            j = step + lane
            unsorted = j < count and is_unsorted(keys, count, j)
            found += cuda.popc(np.uint32(cuda.ballot_sync(_ALL_LANES, unsorted)))
        if lane == 0:
            counts[tile] = found


@cuda.jit(cache=True)
def gather_unsorted(
    keys,
    positions,
    rows,
    count,
    starts,
    ranks,
    bases,
    rank_bits,
    next_keys,
    next_positions,
    next_rows,
):
    """Gather the unsorted elements, with the keys of the next round:

        [ where their group begins among the gathered ][ rank of the suffix `bases` on, + 1 ]

    and 0 for the suffix that ends there. One warp a tile, 32 elements a step; one read of a rank
    that no neighbour shares. A suffix that ends sooner shares its bases with no
    other one, because only the last separator is followed by nothing.
    """
    tile = cuda.grid(1) // _WARP
    lane = cuda.laneid
    lanes_before = np.uint32((1 << lane) - 1)
    if tile < starts.size - 1:
        gathered = np.int64(starts[tile])
        for step in range(tile * TILE, min((tile + 1) * TILE, count), _WARP):
            j = step + lane
            unsorted = j < count and is_unsorted(keys, count, j)
            votes = np.uint32(cuda.ballot_sync(_ALL_LANES, unsorted))
            if unsorted:
                at = gathered + cuda.popc(votes & lanes_before)
                group = at - (j - first_equal(keys, j))
                position = np.int64(positions[j])
                rank = np.uint64(0)
                if position + bases < ranks.size:
                    rank = np.uint64(ranks[position + bases]) + np.uint64(1)
                next_keys[at] = (np.uint64(group) << np.uint64(rank_bits)) | rank
                next_positions[at] = position
                next_rows[at] = row_of(rows, j)
            gathered += cuda.popc(votes)


_KEYS, _NUMBERS, _INTEGER = types.uint64[::1], types.uint32[::1], types.int64
_ELEMENTS = (_KEYS, _NUMBERS, _NUMBERS, _INTEGER)

#: The argument types that every kernel is compiled with.
KERNEL_SIGNATURES = {
    first_keys: (types.uint8[::1], _KEYS, _NUMBERS),
    write_ranks: (*_ELEMENTS, _NUMBERS, _NUMBERS),
    count_unsorted: (_KEYS, _INTEGER, _NUMBERS),
    gather_unsorted: (
        *_ELEMENTS, _NUMBERS, _NUMBERS, _INTEGER, _INTEGER, _KEYS, _NUMBERS, _NUMBERS
    ),
}  # fmt: skip
