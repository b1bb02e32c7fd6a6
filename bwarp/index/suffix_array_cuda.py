"""Sort the suffixes of a text on a GPU, one part at a time, in bounded memory.

Suffixes are counted by their first 10 symbols, which form buckets. A part is as many buckets as fit
in memory: a pass over the text gathers its suffixes with their first 27 symbols, each packed into a
64-bit number, and sorts them. Suffixes that share these symbols form a group; from then on only
groups of at least two are sorted again, by 13 more symbols each time:

    key of a suffix   [ its first 27 symbols ]          then   [ its group ][ the next 13 symbols ]

Suffixes that agree in a thousand symbols are sorted on the host, where a sample of suffixes with
known order decides between any two of them (`suffix_array_cpu`).

    parts     AAAAAAAAAA ... CCTAGGAACG | CCTAGGAACT ... GTTACATTAA | GTTACATTAC ... TTTTTTTTTT
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from bwarp.gpu.available_memory import require_memory
from bwarp.gpu.cuda import cuda, uint8, uint32, uint64
from bwarp.gpu.device_arrays import zeros
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import ALL_LANES, WARP, launch
from bwarp.gpu.sums_and_sorts import add_up, pair_sorter, slot_in_list
from bwarp.gpu.transfers import to_host
from bwarp.index.build import BUCKET_SYMBOLS, BYTES_A_ROW
from bwarp.index.packed_text_cpu import PackedText
from bwarp.index.packed_text_cuda import symbols_at
from bwarp.index.suffix_array_cpu import PERIOD, SuffixSample, sort_groups
from bwarp.runtime.threads import bounded_ranges

#: Symbols of a first key: the most of an alphabet of five that fit in 64 bits.
FIRST_SYMBOLS = 27

#: Symbols of a later key, and its bits; the bits above it hold the group.
NEXT_SYMBOLS = 13
NEXT_BITS = (5**NEXT_SYMBOLS - 1).bit_length()

#: Suffixes that share this many symbols are sorted on the host without comparing symbols.
DEEPEST = PERIOD

#: Elements that one warp counts or gathers; a multiple of 32.
TILE = 2048

_THREADS = 256


class Part(NamedTuple):
    """Consecutive rows of a suffix array.

    Attributes
    ----------
    first : int
        The first row.
    suffixes : device array, shape=(n,), dtype=uint32
        Start positions in the order of the suffixes.
    room : pair of device arrays, shape=(n,), dtype=uint32
        Memory that is free until the next part is requested.
    """

    first: int
    suffixes: object
    room: tuple


class Unsorted(NamedTuple):
    """Suffixes to sort: their keys, start positions and target rows; no `rows` stand for 0, 1, 2,
    ...
    """

    keys: uint64[::1]
    positions: uint32[::1]
    rows: uint32[::1]


def suffixes_in_parts(
    text: PackedText, codes, sample: Callable[[], SuffixSample], most: int, threads: int = 1
) -> Iterator[Part]:
    """Yield all suffixes of a text in order, part by part.

    Parameters
    ----------
    text : PackedText
        On the host, for suffixes that are sorted there.
    codes : device array, dtype=uint8
        The same text, from `packed_text_cuda.text_on_gpu`.
    sample : function
        Called if needed: `suffix_array_cpu.sample_suffixes` of the text.
    most : int
        Maximum suffixes per part.
    threads : int

    Yields
    ------
    part : Part
        Overwritten by the next part.
    """
    starts = _bucket_starts(codes)
    largest = int(np.diff(starts).max())
    if largest > most:
        require_memory(BYTES_A_ROW * largest, f"sorting {largest:,} suffixes that begin alike")
    ranges = [
        (first, last)
        for first, last in bounded_ranges(starts, max(most, largest))
        if starts[first] < starts[last]
    ]
    size = max(int(starts[last] - starts[first]) for first, last in ranges)
    keys = tuple(cuda.device_array(size, np.uint64) for _ in range(2))
    positions = tuple(cuda.device_array(size, np.uint32) for _ in range(3))
    rows = tuple(cuda.device_array(size, np.uint32) for _ in range(2))
    sort_pairs = pair_sorter()
    below = 5 ** (FIRST_SYMBOLS - BUCKET_SYMBOLS)
    for first, last in ranges:
        count = int(starts[last] - starts[first])
        taken = zeros(1, np.uint32)
        take_part[launch(codes.size, _THREADS)](
            codes, np.uint64(first * below), np.uint64(last * below), keys[0], positions[0], taken
        )
        key_bits = max(1, ((last - first) * below - 1).bit_length())
        keys, in_order = sort_pairs(keys, positions[:2], count, key_bits)
        # Memory that the sort leaves free is used for the later rounds.
        positions = *in_order, positions[2]
        _sort_alike(text, codes, sample, count, keys, positions, rows, sort_pairs, threads)
        yield Part(int(starts[first]), positions[0][:count], tuple(half[:count] for half in rows))


def _bucket_starts(codes) -> np.ndarray:
    """Return the row of the first suffix of every bucket, and the number of rows, on the host."""
    counts = zeros(5**BUCKET_SYMBOLS, np.uint32)
    count_buckets[launch(codes.size, _THREADS)](codes, counts)
    starts = np.zeros(counts.size + 1, np.int64)
    np.cumsum(counts.copy_to_host(), out=starts[1:])
    return starts


def _sort_alike(text, codes, sample, count, keys, positions, rows, sort_pairs, threads) -> None:
    """Sort the suffixes that share their first key again, in place.

    Parameters
    ----------
    keys : pair of device arrays
        The sorted first keys of `count` suffixes, and a second buffer.
    positions : tuple of three device arrays
        These suffixes, and two more buffers.
    rows : pair of device arrays
        Buffers.
    """
    suffixes, *positions = positions
    # The first `count` are in use, and the first buffer of each pair.
    now = Unsorted(keys[0], suffixes, cuda.device_array(0, np.uint32))
    depth = FIRST_SYMBOLS
    while True:
        starts = cuda.device_array(-(-count // TILE) + 1, np.uint32)
        count_unsorted[launch(WARP * starts.size, _THREADS)](now.keys, count, starts)
        unsorted = add_up(starts)
        if unsorted == 0:
            return
        keys, positions, rows = keys[::-1], positions[::-1], rows[::-1]
        gather_unsorted[launch(WARP * (starts.size - 1), _THREADS)](
            now, count, starts, codes, depth, Unsorted(keys[0], positions[0], rows[0])
        )
        count = unsorted
        if depth >= DEEPEST:
            _sort_on_host(text, sample(), count, keys[0], positions[0], depth, threads)
        else:
            key_bits = NEXT_BITS + (count - 1).bit_length()
            keys, positions = sort_pairs(keys, positions, count, key_bits)
        put_in_rows[launch(count, _THREADS)](positions[0], rows[0], count, suffixes)
        if depth >= DEEPEST:
            return
        now, depth = Unsorted(keys[0], positions[0], rows[0]), depth + NEXT_SYMBOLS


def _sort_on_host(text, sample, count, keys, positions, depth, threads) -> None:
    """Sort groups of suffixes that share their first `depth` symbols; `keys` name the groups."""
    on_host, group_keys = to_host([positions[:count], keys[:count]], threads)
    group_keys >>= np.uint64(NEXT_BITS)
    starts = np.concatenate([[0], np.flatnonzero(np.diff(group_keys)) + 1, [count]])
    sort_groups(text, sample, on_host, starts, depth, threads)
    positions[:count].copy_to_device(on_host)


@kernel
def count_buckets(codes: uint8[::1], counts: uint32[::1]):
    """Count suffixes by their first symbols. One thread and one atomic addition per suffix."""
    i = cuda.grid(1)
    if i < codes.size:
        cuda.atomic.add(counts, np.int64(symbols_at(codes, i, BUCKET_SYMBOLS)), 1)


@kernel
def take_part(
    codes: uint8[::1], low: uint64, high: uint64, keys: uint64[::1], positions: uint32[::1],
    taken: uint32[::1],
):  # fmt: skip
    """Gather the suffixes with first keys from `low` on and below `high`, in any order.

    One thread per suffix; one atomic addition per warp that has some.
    """
    i = cuda.grid(1)
    key = np.uint64(0)
    is_inside = False
    if i < codes.size:
        key = symbols_at(codes, i, FIRST_SYMBOLS)
        is_inside = low <= key < high
    at = slot_in_list(taken, is_inside)
    if is_inside:
        keys[at] = key - low
        positions[at] = i


@cuda.jit(device=True)
def first_equal(keys, j):
    """Return the first index of the run of equal keys that contains j, by strides of 1, 2, 4, ...
    and then bisection. Most runs are short, so most calls read one or two keys besides keys[j].
    """
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
    """Return whether element j shares its key with a neighbour."""
    key = keys[j]
    return (j > 0 and keys[j - 1] == key) or (j + 1 < count and keys[j + 1] == key)


@kernel
def count_unsorted(keys: uint64[::1], count: int, counts: uint32[::1]):
    """Count the unsorted elements in every tile of keys, followed by a 0.

    One warp per tile, 32 elements per step.
    """
    tile = cuda.grid(1) // WARP
    lane = cuda.laneid
    if tile < counts.size:
        found = 0
        for step in range(tile * TILE, min((tile + 1) * TILE, count), WARP):
            j = step + lane
            unsorted = j < count and is_unsorted(keys, count, j)
            found += cuda.popc(np.uint32(cuda.ballot_sync(ALL_LANES, unsorted)))
        if lane == 0:
            counts[tile] = found


@kernel
def gather_unsorted(
    now: Unsorted, count: int, starts: uint32[::1], codes: uint8[::1], depth: int,
    following: Unsorted,
):  # fmt: skip
    """Gather the unsorted elements, with their keys for the next round:

        [ where their group begins among the gathered ][ the symbols `depth` on ]

    One warp per tile, 32 elements per step; each lane reads the text once, at random.
    """
    tile = cuda.grid(1) // WARP
    lane = cuda.laneid
    lanes_before = np.uint32((1 << lane) - 1)
    if tile < starts.size - 1:
        gathered = np.int64(starts[tile])
        for step in range(tile * TILE, min((tile + 1) * TILE, count), WARP):
            j = step + lane
            unsorted = j < count and is_unsorted(now.keys, count, j)
            votes = np.uint32(cuda.ballot_sync(ALL_LANES, unsorted))
            if unsorted:
                at = gathered + cuda.popc(votes & lanes_before)
                group = at - (j - first_equal(now.keys, j))
                position = np.int64(now.positions[j])
                symbols = symbols_at(codes, position + depth, NEXT_SYMBOLS)
                following.keys[at] = (np.uint64(group) << np.uint64(NEXT_BITS)) | symbols
                following.positions[at] = position
                following.rows[at] = np.int64(now.rows[j]) if now.rows.size else j
            gathered += cuda.popc(votes)


@kernel
def put_in_rows(positions: uint32[::1], rows: uint32[::1], count: int, suffixes: uint32[::1]):
    """Write sorted elements to the rows of their groups. One thread per element."""
    j = cuda.grid(1)
    if j < count:
        suffixes[rows[j]] = positions[j]
