"""Scan by brute force: compare every distinct query with every window, a vector at a time.

The references are cut into tiles. The window counts of a tile are computed from prefix counts,
stored in planes that fit in the first-level cache, and compared with all queries of the length
before the next tile follows:

    references   |---- tile 0 ----|---- tile 1 ----|-- ...
                       planes: A C G T counts of the windows that begin in the tile
                       x all queries of this length
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bwarp.composition.count_planes_cpu import (
    N_PLANES,
    hits_in_planes,
    list_hits,
    set_query,
)
from bwarp.composition.count_planes_cpu import (
    count_type as count_type,  # part of every scan engine
)
from bwarp.composition.references import References, prefix_counts
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import VECTOR_BYTES, population_count
from bwarp.runtime.threads import for_each_range

#: Windows whose planes fit in the first-level cache together.
STRIP = 4096


class PreparedReferences(NamedTuple):
    """References ready to be scanned.

    prefix : ndarray, shape=(4, total + 1), dtype=uint8 or uint16
    starts : ndarray, shape=(n_references + 1,), dtype=int64
    """

    prefix: np.ndarray
    starts: np.ndarray


def prepare_references(references: References, dtype) -> PreparedReferences:
    """Prepare the references for all lengths of one `count_type`."""
    return PreparedReferences(prefix_counts(references.codes, dtype), references.starts)


def count_tile_hits(prepared, length, counts, largest, first, stop, tile_windows, threads):
    """Count the hits of each query in each tile of a part of the references.

    Parameters
    ----------
    prepared : PreparedReferences
    length : int
    counts : ndarray, shape=(n_groups, 4), dtype=uint16
        Base counts of the queries.
    largest : ndarray, shape=(n_groups,), dtype=int32
        The maximum distance of a hit; negative for none.
    first, stop : int
        Only windows that begin from position `first` up to, but excluding, `stop` are compared.
    tile_windows : int
        Window positions per tile; a multiple of 4,096.

    Returns
    -------
    hits : ndarray, shape=(n_groups, n_tiles), dtype=int32
    """
    hits = np.zeros((len(counts), -(-(stop - first) // tile_windows)), np.int32)
    what = (*prepared, length, counts, largest, first, stop, tile_windows)
    each_tile(lambda tile: _count_tile(*what, tile, hits), hits.shape[1], threads)
    return hits


def find_tile_hits(prepared, length, counts, largest, first, stop, tile_windows, hits, threads):
    """List the hits that `count_tile_hits` counted, by query, each in order of position.

    Returns
    -------
    positions : ndarray, shape=(hits.sum(),), dtype=uint32
        Where the windows begin in the concatenated references.
    distances : ndarray, shape=(hits.sum(),), dtype=uint16
    """
    cursors, positions, distances = room_for_hits(hits)
    what = (*prepared, length, counts, largest, first, stop, tile_windows)
    each_tile(
        lambda tile: _list_tile(*what, tile, cursors, positions, distances), hits.shape[1], threads
    )
    return positions, distances


def each_tile(function: Callable[[int], None], n_tiles: int, threads: int) -> None:
    """Call a function with the number of each tile, in threads."""

    def work(first, last):
        for tile in range(first, last):
            function(tile)

    for_each_range(work, n_tiles, threads, smallest=1)


def room_for_hits(hits: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return where hits of each query and tile begin, and arrays for positions and distances."""
    ends = np.cumsum(hits, dtype=np.int64).reshape(hits.shape)
    total = int(hits.sum(dtype=np.int64))
    return ends - hits, np.empty(total, np.uint32), np.empty(total, np.uint16)


@compiled
def _fill_planes(prefix, starts, length, first, total, width, planes):
    """Make the planes of the `width` windows from `first` on, up to `total`.

    Writes zeros where no window begins.
    """
    planes[:] = 0
    reference = np.searchsorted(starts, first, side="right") - 1
    while reference < len(starts) - 1 and starts[reference] < first + width:
        start = max(first, starts[reference])
        stop = min(first + width, starts[reference + 1] - length + 1, total)
        if start < stop:
            for base in range(4):
                plane = planes[base * width : (base + 1) * width]
                row = prefix[base]
                for at in range(start, stop):
                    plane[at - first] = row[at + length] - row[at]
            for at in range(start - first, stop - first):
                ambiguous = length
                for base in range(4):
                    ambiguous -= np.int64(planes[base * width + at])
                planes[4 * width + at] = ambiguous // 2
                planes[5 * width + at] = (ambiguous + 1) // 2
        reference += 1


@compiled
def _count_tile(prefix, starts, length, counts, largest, first, stop, tile_windows, tile, hits):
    planes = np.empty(N_PLANES * STRIP, prefix.dtype)
    query = np.empty(5, prefix.dtype)
    begin = first + tile * tile_windows
    for at_strip in range(begin, min(begin + tile_windows, stop), STRIP):
        _fill_planes(prefix, starts, length, at_strip, stop, STRIP, planes)
        for group in range(len(counts)):
            if largest[group] < 0:
                continue
            half = set_query(counts[group], length, largest[group], query)
            found = 0
            for at in range(0, STRIP, VECTOR_BYTES // planes.itemsize):
                found += np.int64(population_count(hits_in_planes(planes, STRIP, at, query, half)))
            hits[group, tile] += found


@compiled
def _list_tile(
    prefix, starts, length, counts, largest, first, stop, tile_windows, tile, cursors, positions,
    distances,
):  # fmt: skip
    planes = np.empty(N_PLANES * STRIP, prefix.dtype)
    query = np.empty(5, prefix.dtype)
    begin = first + tile * tile_windows
    for at_strip in range(begin, min(begin + tile_windows, stop), STRIP):
        _fill_planes(prefix, starts, length, at_strip, stop, STRIP, planes)
        for group in range(len(counts)):
            if largest[group] < 0:
                continue
            half = set_query(counts[group], length, largest[group], query)
            used = cursors[group, tile]
            for at in range(0, STRIP, VECTOR_BYTES // planes.itemsize):
                bits = hits_in_planes(planes, STRIP, at, query, half)
                used = list_hits(
                    bits,
                    planes,
                    STRIP,
                    at,
                    query,
                    length,
                    at_strip + at,
                    positions,
                    distances,
                    used,
                )
            cursors[group, tile] = used
