"""The scan as published by Breland et al.: prefix sums, gathered window counts, four differences.

Counts are 32-bit numbers; the histogram of a window is the difference of two prefix sums, computed
once per length and stored for a strip of windows; every query is compared with every window.
Arguments and results are those of `tiles_cpu`, but this module is slower. It serves to measure the
published method, and as an oracle that shares no optimisation with the other algorithms.
"""

from functools import partial

import numpy as np

from bwarp.composition.references import References, prefix_counts
from bwarp.composition.tiles_cpu import PreparedReferences, count_with, find_with
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.uncounted import uncounted

#: Windows whose four counts and distances are stored at a time.
STRIP = 4096
#: A distance beyond any threshold, for positions where no window begins.
_NO_WINDOW = 2**30


def count_type(length: int):
    """Return the type of the prefix sums, which never overflow for any length."""
    return np.int32


def prepare_references(references: References, dtype) -> PreparedReferences:
    """Prepare the references for all lengths; the prefix sums are int32."""
    return PreparedReferences(prefix_counts(references.codes, dtype), references.starts)


@compiled
def _gather_windows(prefix, starts, length, first, stop, windows, begins):
    """Return window counts of a strip (int32[4, STRIP]), and whether a window begins at each
    position.
    """
    begins[:] = False
    stop = min(first + windows.shape[1], stop)
    reference = np.searchsorted(starts, first, side="right") - 1
    for at in range(first, stop):
        while starts[reference + 1] <= at:
            reference += 1
        if at + length <= starts[reference + 1]:
            begins[at - first] = True
            for base in range(4):
                windows[base, at - first] = prefix[base, at + length] - prefix[base, at]


@compiled
def _compare(windows, begins, query, distances):
    """Compute the distance of one query to every window of a strip."""
    for at in range(begins.size):
        distances[at] = (
            abs(query[0] - windows[0, at])
            + abs(query[1] - windows[1, at])
            + abs(query[2] - windows[2, at])
            + abs(query[3] - windows[3, at])
        )
        if not begins[at]:
            distances[at] = _NO_WINDOW


@compiled
def _compare_tile(prepared, queries, tile, cursors, found):
    prefix, starts = prepared
    length, counts, largest, first, stop, tile_windows = queries
    space = uncounted(found)
    windows = np.zeros((4, STRIP), np.int32)
    begins = np.empty(STRIP, np.bool_)
    distances = np.empty(STRIP, np.int32)
    query = np.empty(4, np.int32)
    begin = first + tile * tile_windows
    for at_strip in range(begin, min(begin + tile_windows, stop), STRIP):
        _gather_windows(prefix, starts, length, at_strip, stop, windows, begins)
        for group in range(len(counts)):
            query[:] = counts[group]
            _compare(windows, begins, query, distances)
            for at in range(STRIP):
                if distances[at] <= largest[group]:
                    if found is not None:
                        space[0][cursors[group, tile]] = at_strip + at
                        space[1][cursors[group, tile]] = distances[at]
                    cursors[group, tile] += 1


count_tile_hits = partial(count_with, _compare_tile)
find_tile_hits = partial(find_with, _compare_tile)
