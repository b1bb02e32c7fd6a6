"""The scan on a GPU as published by Breland et al.: prefix sums, gathered counts, streams.

    codes     A C A T                        one binary row per base, then its prefix sums,
    sums[A]   0 1 1 2 2                      all on the device, of references and of queries
    counts    once per query: four counts, gathered from the sums at its first and last base
    windows   once per length: four counts per window, gathered from the sums
    queries   one launch each, in the next free stream: compare with every window

The paper copies back a flag per window for each query; this module copies the number of hits per
tile (to count) or the distances (to list), so that the three algorithms take the same arguments.
"""

from typing import NamedTuple

import numpy as np

from bwarp.composition.references import References
from bwarp.composition.tiles_cuda import Tiles, refuse_too_large
from bwarp.gpu.cuda import cuda, int32, int64, uint8, uint16, uint32
from bwarp.gpu.device_arrays import columns, zeros
from bwarp.gpu.kernel import kernel
from bwarp.gpu.launch import launch
from bwarp.gpu.sums_and_sorts import exclusive_sum
from bwarp.runtime.threads import bounded_ranges

#: The paper's best number of streams (Figure 5).
STREAMS = 22
_THREADS = 256
#: Bases of queries that are counted at once.
_BASES_AT_ONCE = 1 << 25
#: The distance written for windows that are not hits.
NO_HIT = 0xFFFF
#: The count of A where no window begins: beyond any threshold.
_NO_WINDOW = 1 << 24


class BaseSums(NamedTuple):
    """The number of A, C, G and T before each position."""

    a: uint32[::1]
    c: uint32[::1]
    g: uint32[::1]
    t: uint32[::1]


class WindowCounts(NamedTuple):
    """The counts of all windows of one length."""

    a: int32[::1]
    c: int32[::1]
    g: int32[::1]
    t: int32[::1]


class QueryCounts(NamedTuple):
    """The counts of a query, and the maximum distance of its hits."""

    a: int32
    c: int32
    g: int32
    t: int32
    largest: int32


class SummedReferences(NamedTuple):
    """References on the device: sums, the end of the reference of each position, and space for the
    counts of windows.
    """

    sums: BaseSums
    ends: uint32[::1]
    windows: WindowCounts


def count_bases(codes: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Count A, C, G and T in each sequence on the device; see `histogram.count_bases`.

    The device holds 17 bytes per base of the sequences that are counted at once.
    """
    counts = np.zeros((len(offsets) - 1, 4), np.uint16)
    for first, last in bounded_ranges(offsets, _BASES_AT_ONCE):
        start, stop = int(offsets[first]), int(offsets[last])
        if start == stop:
            continue
        sums = _base_sums(cuda.to_device(codes[start:stop]))
        edges = cuda.to_device(offsets[first : last + 1] - start)
        found = cuda.device_array((last - first, 4), np.uint16)
        gather_counts[launch(last - first, _THREADS)](sums, edges, found)
        counts[first:last] = found.copy_to_host()
    return counts


def count_type(length: int):
    """Return the type of the prefix sums, for any length."""
    return np.uint32


def prepare_references(references: References, dtype) -> SummedReferences:
    """Copy the references to the device and compute prefix sums there (36 bytes per base)."""
    refuse_too_large(references, 36)
    sums = _base_sums(cuda.to_device(references.codes))
    starts = references.starts
    ends = np.repeat(starts[1:], np.diff(starts)).astype(np.uint32)
    windows = columns(WindowCounts, references.codes.size)
    return SummedReferences(sums, cuda.to_device(ends), windows)


def _base_sums(codes) -> BaseSums:
    """Compute the prefix sums of codes on the device."""
    sums = []
    for base in range(4):
        row = cuda.device_array(codes.size + 1, np.uint32)
        mark_base[launch(row.size, _THREADS)](codes, base, row)
        exclusive_sum(row)
        sums.append(row)
    return BaseSums(*sums)


def count_tile_hits(prepared, queries, threads, streams: int = STREAMS):
    """Count the hits of each query in each tile; see `tiles_cpu.count_tile_hits`.

    Queries are distributed over the streams in turn.
    """
    length, counts, largest, first, stop, tile_windows = queries
    n_tiles = -(-(stop - first) // tile_windows)
    _gather(prepared, length)
    hits = zeros(len(counts) * n_tiles + 1, np.int32)
    turns = [cuda.stream() for _ in range(streams)]
    tiles = Tiles(first, stop, tile_windows)
    for i, query in enumerate(counts.astype(np.int32)):
        count_query[*launch(stop - first, _THREADS), turns[i % streams]](
            prepared.windows, QueryCounts(*query, largest[i]), tiles, i * n_tiles, hits
        )
    cuda.synchronize()
    return hits.copy_to_host()[:-1].reshape(len(counts), n_tiles)


def find_tile_hits(prepared, queries, hits, threads, streams: int = STREAMS):
    """List the hits that `count_tile_hits` counted; see `tiles_cpu.find_tile_hits`.

    Each stream has a row of distances, which is copied back before its next query.
    """
    length, counts, largest, first, stop, _ = queries
    _gather(prepared, length)
    positions = np.empty(int(hits.sum()), np.uint32)
    distances = np.empty(positions.size, np.uint16)
    streams = max(1, min(streams, len(counts)))
    turns = [cuda.stream() for _ in range(streams)]
    rows = [cuda.device_array(stop - first, np.uint16) for _ in range(streams)]
    used = 0
    for turn in range(0, len(counts), streams):
        batch = range(turn, min(turn + streams, len(counts)))
        for i in batch:
            query = QueryCounts(*counts[i].astype(np.int32), largest[i])
            compare_query[*launch(stop - first, _THREADS), turns[i - turn]](
                prepared.windows, query, first, rows[i - turn]
            )
        for i in batch:
            row = rows[i - turn].copy_to_host(stream=turns[i - turn])
            turns[i - turn].synchronize()
            found = np.flatnonzero(row != NO_HIT)
            positions[used : used + found.size] = first + found
            distances[used : used + found.size] = row[found]
            used += found.size
    return positions, distances


def _gather(prepared: SummedReferences, length: int) -> None:
    gather_windows[launch(prepared.ends.size, _THREADS)](
        prepared.sums, prepared.ends, length, prepared.windows
    )
    cuda.synchronize()


@kernel
def mark_base(codes: uint8[::1], base: int, row: uint32[::1]):
    """Write 1 where a base occurs, else 0, and a final 0; one thread per position."""
    i = cuda.grid(1)
    if i < row.size:
        row[i] = uint32(0)
        if i < codes.size and codes[i] == base:
            row[i] = uint32(1)


@kernel
def gather_counts(sums: BaseSums, offsets: int64[::1], counts: uint16[:, ::1]):
    """Gather the counts of every sequence: two sums per base; one thread per sequence."""
    i = cuda.grid(1)
    if i < counts.shape[0]:
        first, last = offsets[i], offsets[i + 1]
        counts[i, 0] = sums.a[last] - sums.a[first]
        counts[i, 1] = sums.c[last] - sums.c[first]
        counts[i, 2] = sums.g[last] - sums.g[first]
        counts[i, 3] = sums.t[last] - sums.t[first]


@kernel
def gather_windows(sums: BaseSums, ends: uint32[::1], length: int, windows: WindowCounts):
    """Gather the counts of every window: two sums per base; one thread per window."""
    i = cuda.grid(1)
    if i < ends.size:
        if i + length <= ends[i]:
            windows.a[i] = int32(sums.a[i + length] - sums.a[i])
            windows.c[i] = int32(sums.c[i + length] - sums.c[i])
            windows.g[i] = int32(sums.g[i + length] - sums.g[i])
            windows.t[i] = int32(sums.t[i + length] - sums.t[i])
        else:
            # Uninitialised memory could add up to a small distance.
            windows.a[i] = int32(_NO_WINDOW)
            windows.c[i] = windows.g[i] = windows.t[i] = int32(0)


@cuda.jit(device=True)
def window_distance(windows, at, query):
    """Return the distance of the histograms of a window and a query."""
    return int32(
        int32(abs(int32(windows.a[at] - query.a)))
        + int32(abs(int32(windows.c[at] - query.c)))
        + int32(abs(int32(windows.g[at] - query.g)))
        + int32(abs(int32(windows.t[at] - query.t)))
    )


@kernel
def count_query(
    windows: WindowCounts, query: QueryCounts, tiles: Tiles, row: int, hits: int32[::1]
):
    """Count the hits of one query in each tile; one thread per window, 16 bytes read."""
    i = tiles.first + cuda.grid(1)
    if i < tiles.stop and window_distance(windows, i, query) <= query.largest:
        cuda.atomic.add(hits, int64(row + (i - tiles.first) // tiles.windows), int32(1))


@kernel
def compare_query(windows: WindowCounts, query: QueryCounts, first: int, distances: uint16[::1]):
    """Write the distance of one query to every window that it hits, else `NO_HIT`."""
    i = cuda.grid(1)
    if i < distances.size:
        distance = window_distance(windows, first + i, query)
        distances[i] = distance if distance <= query.largest else int32(NO_HIT)
