"""Scan by brute force: compare every distinct query with every window, a vector at a time.

The references are cut into tiles. The window counts of a tile are computed from prefix counts,
stored in planes that fit in the first-level cache, and compared with all queries of the length
before the next tile follows:

    references   |---- tile 0 ----|---- tile 1 ----|-- ...
                       planes: A C G T counts of the windows that begin in the tile
                       x all queries of this length
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from bwarp.composition.count_planes_cpu import N_PLANES, hits_in_planes, list_hits, set_query
from bwarp.composition.count_planes_cpu import (
    count_type as count_type,  # part of every scan engine
)
from bwarp.composition.references import References, prefix_counts
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import VECTOR_BYTES, population_count
from bwarp.runtime.threads import for_each_range
from bwarp.runtime.uncounted import uncounted

#: Windows whose planes fit in the first-level cache together.
STRIP = 4096


class PreparedReferences(NamedTuple):
    """References ready to be scanned.

    prefix : ndarray, shape=(4, total + 1), dtype=uint8 or uint16
    starts : ndarray, shape=(n_references + 1,), dtype=int64
    """

    prefix: np.ndarray
    starts: np.ndarray


class TileQueries(NamedTuple):
    """Queries of one length, and the part of the references that is cut into tiles for them.

    Attributes
    ----------
    length : int
    counts : ndarray, shape=(n_groups, 4), dtype=uint16
        Base counts of the queries.
    largest : ndarray, shape=(n_groups,), dtype=int32
        The maximum distance of a hit; negative for none.
    first, stop : int
        Only windows that begin from position `first` up to, but excluding, `stop` are compared.
    tile_windows : int
        Window positions per tile; a multiple of 4,096.
    """

    length: int
    counts: np.ndarray
    largest: np.ndarray
    first: int
    stop: int
    tile_windows: int


def prepare_references(references: References, dtype) -> PreparedReferences:
    """Prepare the references for all lengths of one `count_type`."""
    return PreparedReferences(prefix_counts(references.codes, dtype), references.starts)


def count_with(
    compare: Callable, prepared: PreparedReferences, queries: TileQueries, threads: int
) -> np.ndarray:
    """Count the hits of each query in each tile of a part of the references.

    Parameters
    ----------
    compare : function of prepared, queries, tile, cursors, found
        Adds the hits of a tile to the cursors. If `found` is not None, it holds arrays of positions
        and distances, and the hits are written there at the cursors.

    Returns
    -------
    hits : ndarray, shape=(n_groups, n_tiles), dtype=int32
    """
    hits = np.zeros(
        (len(queries.counts), -(-(queries.stop - queries.first) // queries.tile_windows)), np.int32
    )
    _each_tile(compare, prepared, queries, hits, None, threads)
    return hits


def find_with(
    compare: Callable,
    prepared: PreparedReferences,
    queries: TileQueries,
    hits: np.ndarray,
    threads: int,
) -> tuple[np.ndarray, np.ndarray]:
    """List the hits that `count_with` counted, by query, each in order of position.

    Returns
    -------
    positions : ndarray, shape=(hits.sum(),), dtype=uint32
        Where the windows begin in the concatenated references.
    distances : ndarray, shape=(hits.sum(),), dtype=uint16
    """
    cursors = np.cumsum(hits, dtype=np.int64).reshape(hits.shape) - hits
    total = int(hits.sum(dtype=np.int64))
    found = np.empty(total, np.uint32), np.empty(total, np.uint16)
    _each_tile(compare, prepared, queries, cursors, found, threads)
    return found


def _each_tile(compare, prepared, queries, cursors, found, threads) -> None:
    def work(first, last):
        for tile in range(first, last):
            compare(prepared, queries, tile, cursors, found)

    for_each_range(work, cursors.shape[1], threads, smallest=1)


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
def _compare_tile(prepared, queries, tile, cursors, found):
    prefix, starts = prepared
    length, counts, largest, first, stop, tile_windows = queries
    # Taken out of a tuple in the loop, its arrays would be counted there.
    space = uncounted(found)
    planes = np.empty(N_PLANES * STRIP, prefix.dtype)
    query = np.empty(5, prefix.dtype)
    begin = first + tile * tile_windows
    for at_strip in range(begin, min(begin + tile_windows, stop), STRIP):
        _fill_planes(prefix, starts, length, at_strip, stop, STRIP, planes)
        for group in range(len(counts)):
            if largest[group] < 0:
                continue
            half = set_query(counts[group], length, largest[group], query)
            used = np.int64(cursors[group, tile])
            for at in range(0, STRIP, VECTOR_BYTES // planes.itemsize):
                bits = hits_in_planes(planes, STRIP, at, query, half)
                # Numba compiles one of the branches.
                if found is None:
                    used += np.int64(population_count(bits))
                else:
                    used = list_hits(
                        bits, planes, at, query, at_strip + at, space[0], space[1], used
                    )
            cursors[group, tile] = used


count_tile_hits = partial(count_with, _compare_tile)
find_tile_hits = partial(find_with, _compare_tile)
