"""Scan by brute force on a GPU: compare every distinct query with every window.

The references are on the device as prefix counts of the four bases, one byte each, in one word per
position, plus a byte with the number of bases left in the reference:

    prefix[i]   T | G | C | A    counts before position i, modulo 256 each
    room[i]     bases from position i to the end of its reference, 255 for more

The counts of the window [i, i + length) are the difference of two words, byte by byte. A block
computes the windows of a piece of a tile in shared memory and holds queries in registers, four per
thread; all its threads read the same window at once, which shared memory broadcasts:

    shared     w0 w1 w2 ...                          one read
    thread 0   q0 q1 q2 q3     |w0 - q0| w0 - q1| ...   one instruction per comparison,
    thread 1   q4 q5 q6 q7                              and one to count

Where no window begins, all counts are 255, which is beyond any threshold. Lengths are limited to
255; `tiles_cpu` handles longer ones.
"""

from typing import NamedTuple

import numpy as np

from bwarp.composition.references import References
from bwarp.errors import TooLittleMemoryError
from bwarp.gpu.cuda import cuda, int32, int64, uint8, uint16, uint32
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import WARP
from bwarp.gpu.ptx import add_byte_differences
from bwarp.gpu.transfers import to_host
from bwarp.runtime.compiled_code import compiled

#: The maximum length of windows whose counts fit in bytes.
LONGEST = 255

#: Windows in shared memory at a time (4 kB).
PIECE = 1024
QUERIES_A_THREAD = 4
#: Device memory to leave for counts, cursors and hits.
_ROOM_FOR_HITS = 500_000_000
_MOST_THREADS = 128


class DeviceReferences(NamedTuple):
    """References on the device.

    prefix : device array, shape=(total + 1,), dtype=uint32
    room : device array, shape=(total,), dtype=uint8
    """

    prefix: uint32[::1]
    room: uint8[::1]


class DeviceQueries(NamedTuple):
    """The counts of each query, one byte each in a word, and the maximum distance of its hits."""

    words: int32[::1]
    limits: int32[::1]


class Tiles(NamedTuple):
    """Windows that begin from `first` up to, but excluding, `stop`; so many per tile."""

    first: int
    stop: int
    windows: int


def count_type(length: int):
    """Return the type of the counts of a window; see `count_planes_cpu.count_type`."""
    return np.uint8


def prepare_references(references: References, dtype) -> DeviceReferences:
    """Prepare the references for all lengths up to `LONGEST` and copy them to the device.

    Takes five bytes of device memory per base.
    """
    refuse_too_large(references, 5)
    prefix = np.empty(references.codes.size + 1, np.uint32)
    room = np.empty(references.codes.size, np.uint8)
    _pack_prefix(references.codes, prefix)
    _measure_room(references.starts, room)
    return DeviceReferences(cuda.to_device(prefix), cuda.to_device(room))


def refuse_too_large(references: References, bytes_a_base: int) -> None:
    """Reject references that leave too little GPU memory for the hits."""
    needed = references.codes.size * bytes_a_base
    free = cuda.current_context().get_memory_info().free
    if needed + _ROOM_FOR_HITS > free:
        raise TooLittleMemoryError(
            f"the references require {needed / 1e9:.1f} GB of GPU memory and their hits "
            f"{_ROOM_FOR_HITS / 1e9:.1f} GB, but only {free / 1e9:.1f} GB are free: split the "
            "references, or use --backend cpu"
        )


@compiled
def _pack_prefix(codes, prefix):
    word = np.uint32(0)
    prefix[0] = word
    for i in range(codes.size):
        if codes[i] < 4:
            # A byte that exceeds 255 wraps to 0 without affecting its neighbour.
            one = np.uint32(1 << (8 * codes[i]))
            word = np.uint32(
                ((word & np.uint32(0x7F7F7F7F)) + one) ^ (word & np.uint32(0x80808080))
            )
        prefix[i + 1] = word


@compiled
def _measure_room(starts, room):
    for reference in range(len(starts) - 1):
        for i in range(starts[reference], starts[reference + 1]):
            room[i] = min(255, starts[reference + 1] - i)


def count_tile_hits(prepared, queries, threads):
    """Count the hits of each query in each tile; see `tiles_cpu.count_tile_hits`."""
    length, counts, largest, first, stop, tile_windows = queries
    n_tiles = -(-(stop - first) // tile_windows)
    hits = cuda.device_array((len(counts), n_tiles), np.int32)
    block, n_blocks = _blocks(len(counts))
    count_tiles[n_blocks * n_tiles, block](
        prepared, uint32(length), queries_on_gpu(counts, largest), Tiles(first, stop, tile_windows),
        hits.reshape(hits.size),
    )  # fmt: skip
    return hits.copy_to_host()


def find_tile_hits(prepared, queries, hits, threads):
    """List the hits that `count_tile_hits` counted; see `tiles_cpu.find_tile_hits`."""
    length, counts, largest, first, stop, tile_windows = queries
    ends = np.cumsum(hits, dtype=np.int64)
    total = int(ends[-1]) if ends.size else 0
    if total == 0:
        return np.zeros(0, np.uint32), np.zeros(0, np.uint16)
    cursors = cuda.to_device(ends - hits.ravel())
    positions = cuda.device_array(total, np.uint32)
    distances = cuda.device_array(total, np.uint16)
    block, n_blocks = _blocks(len(counts))
    list_tiles[n_blocks * hits.shape[1], block](
        prepared, uint32(length), queries_on_gpu(counts, largest), Tiles(first, stop, tile_windows),
        cursors, positions, distances,
    )  # fmt: skip
    return tuple(to_host([positions, distances], threads))


def queries_on_gpu(counts, largest) -> DeviceQueries:
    """Copy queries to the GPU."""
    words = np.ascontiguousarray(counts.astype(np.uint8)).view(np.int32).ravel()
    return DeviceQueries(cuda.to_device(words), cuda.to_device(largest.astype(np.int32)))


def _blocks(n_queries: int) -> tuple[int, int]:
    """Return the threads per block, and the blocks per tile."""
    threads = -(-n_queries // QUERIES_A_THREAD)
    block = min(_MOST_THREADS, -(-threads // WARP) * WARP)
    return block, -(-n_queries // (block * QUERIES_A_THREAD))


@cuda.jit(device=True)
def window_word(references, at, length):
    """Return the four counts of a window, one byte each; 255 each where none begins.

    The subtraction keeps bytes separate: the top bit of each is masked and corrected afterwards.
    """
    if uint32(references.room[at]) < length:
        return uint32(-1)
    end = uint32(references.prefix[uint32(at + length)])
    start = uint32(references.prefix[at])
    top = uint32(0x80808080)
    low = uint32((end | top) - (start & ~top))
    return uint32(low ^ ((end ^ ~start) & top))


@kernel
def count_tiles(
    references: DeviceReferences, length: uint32, queries: DeviceQueries, tiles: Tiles,
    hits: int32[::1],
):  # fmt: skip
    """Count hits. One block per tile and up to 4 x blockDim queries; four queries per thread.

    Device memory: two words and a byte per window and block; one store per query.
    """
    piece = cuda.shared.array(PIECE, int32)
    query = cuda.local.array(QUERIES_A_THREAD, int32)
    below = cuda.local.array(QUERIES_A_THREAD, int32)
    found = cuda.local.array(QUERIES_A_THREAD, int32)
    n_queries = queries.words.size
    a_block = cuda.blockDim.x * QUERIES_A_THREAD
    n_blocks = (n_queries + a_block - 1) // a_block
    n_tiles = cuda.gridDim.x // n_blocks
    tile = cuda.blockIdx.x // n_blocks
    own = (cuda.blockIdx.x % n_blocks) * a_block + cuda.threadIdx.x
    for k in range(QUERIES_A_THREAD):
        number = own + k * cuda.blockDim.x
        query[k] = int32(0)
        # Added to a distance, this makes the sum negative for hits only.
        below[k] = int32(0)
        found[k] = int32(0)
        if number < n_queries:
            query[k] = queries.words[number]
            below[k] = int32(-1 - queries.limits[number])
    begin = uint32(tiles.first + tile * tiles.windows)
    for start in range(0, tiles.windows, PIECE):
        cuda.syncthreads()
        for j in range(cuda.threadIdx.x, PIECE, cuda.blockDim.x):
            at = uint32(begin + uint32(start) + uint32(j))
            piece[j] = int32(-1)
            if at < tiles.stop:
                piece[j] = int32(window_word(references, at, length))
        cuda.syncthreads()
        # A loop over range() would count in 64 bits, which costs more than the comparisons.
        i = uint32(0)
        while i < uint32(PIECE):
            word = piece[i]
            for k in range(QUERIES_A_THREAD):
                distance = add_byte_differences(word, query[k], below[k])
                found[k] = int32(found[k] - (distance >> int32(31)))
            i = uint32(i + uint32(1))
    for k in range(QUERIES_A_THREAD):
        number = own + k * cuda.blockDim.x
        if number < n_queries:
            hits[number * n_tiles + tile] = found[k]


@kernel
def list_tiles(
    references: DeviceReferences, length: uint32, queries: DeviceQueries, tiles: Tiles,
    cursors: int64[::1], positions: uint32[::1], distances: uint16[::1],
):  # fmt: skip
    """Write the hits at the cursors. Blocks and threads as in `count_tiles`.

    Each thread writes the hits of its own queries in order of position; cursors are not shared.
    """
    piece = cuda.shared.array(PIECE, int32)
    query = cuda.local.array(QUERIES_A_THREAD, int32)
    below = cuda.local.array(QUERIES_A_THREAD, int32)
    cursor = cuda.local.array(QUERIES_A_THREAD, uint32)
    n_queries = queries.words.size
    a_block = cuda.blockDim.x * QUERIES_A_THREAD
    n_blocks = (n_queries + a_block - 1) // a_block
    n_tiles = cuda.gridDim.x // n_blocks
    tile = cuda.blockIdx.x // n_blocks
    own = (cuda.blockIdx.x % n_blocks) * a_block + cuda.threadIdx.x
    for k in range(QUERIES_A_THREAD):
        number = own + k * cuda.blockDim.x
        query[k] = int32(0)
        below[k] = int32(0)
        cursor[k] = uint32(0)
        if number < n_queries:
            query[k] = queries.words[number]
            cursor[k] = uint32(cursors[number * n_tiles + tile])
            below[k] = int32(-1 - queries.limits[number])
    begin = uint32(tiles.first + tile * tiles.windows)
    for start in range(0, tiles.windows, PIECE):
        cuda.syncthreads()
        for j in range(cuda.threadIdx.x, PIECE, cuda.blockDim.x):
            at = uint32(begin + uint32(start) + uint32(j))
            piece[j] = int32(-1)
            if at < tiles.stop:
                piece[j] = int32(window_word(references, at, length))
        cuda.syncthreads()
        i = uint32(0)
        while i < uint32(PIECE):
            word = piece[i]
            for k in range(QUERIES_A_THREAD):
                distance = add_byte_differences(word, query[k], below[k])
                if distance < int32(0):
                    positions[cursor[k]] = uint32(begin + uint32(start) + i)
                    distances[cursor[k]] = int32(distance - below[k])
                    cursor[k] = uint32(cursor[k] + uint32(1))
            i = uint32(i + uint32(1))


INLINE_PTX = {count_tiles: ("vabsdiff4",), list_tiles: ("vabsdiff4",)}
