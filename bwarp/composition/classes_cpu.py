"""Scan by classes: compare distinct queries with distinct window histograms, not with windows.

A short window has few possible histograms: (length + 1) (length + 2) (length + 3) / 6, which is
2,300 for 22 bases. All windows of one length are counted by histogram first; then the distinct
queries are compared with the histograms that occur:

    windows of length 3     ACC CCA CAT ATG TGC ...      one pass: windows per class
    classes                 {1,2,0,0}: 2   {1,1,0,1}: 1   {1,0,1,1}: 1   {0,1,1,1}: 1 ...
    queries x classes       {1,1,0,1} within 2 of {1,2,0,0}, {1,0,1,1} and {0,1,1,1}: 4 hits

A window with ambiguous bases has no class number. Those that can be hits at all (the distance is at
least the difference in unambiguous bases) are sorted by their four counts, and their distinct
histograms follow the numbered classes.
"""

import itertools
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bwarp.composition.count_planes_cpu import (
    N_PLANES,
    count_type,
    hits_in_planes,
    list_hits,
    set_query,
)
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import VECTOR_BYTES, population_count
from bwarp.runtime.threads import for_each_range

# The number of every window's histogram, updated while sliding over the references.
#
# The number of a histogram (a, c, g, t) with a + c + g + t = length is
#
#     number = (a * (length + 1) + c) * (length + 1) + g          0 .. (length + 1)**3 - 1
#
# Five in six of these numbers represent no histogram (a + c + g exceeds the length), but sliding by
# one base takes one addition and one subtraction, and the histograms that occur are close together
# in a table. An ambiguous base adds one to the bits from 40 on.


#: No window that can be a hit begins here.
NO_WINDOW = -1
#: The window has ambiguous bases and is represented by its counts.
AMBIGUOUS_WINDOW = -2

_AMBIGUOUS_BIT = 40


def number_of_classes(length: int) -> int:
    """Return the end of the numbers of windows of `length` unambiguous bases."""
    return (length + 1) ** 3


def base_weights(length: int) -> np.ndarray:
    """Return what each base adds to the number of a window (shape=(5,), dtype=int64)."""
    side = length + 1
    return np.array([side * side, side, 1, 0, 1 << _AMBIGUOUS_BIT], np.int64)


class Windows(NamedTuple):
    """The windows of one length.

    Attributes
    ----------
    codes : ndarray, shape=(total,), dtype=uint8
    starts : ndarray, shape=(n_references + 1,), dtype=int64
    length : int
    most_ambiguous : int
        Windows with more ambiguous bases are ignored.
    weights : ndarray, shape=(5,), dtype=int64
        From `base_weights`.
    """

    codes: np.ndarray
    starts: np.ndarray
    length: int
    most_ambiguous: int
    weights: np.ndarray


@compiled
def number_windows(windows, first, stop, numbers, packed):
    """Number the windows that begin in [first, stop).

    Parameters
    ----------
    windows : Windows
    numbers : ndarray, shape=(at least stop - first,), dtype=int32
        Filled with numbers, `NO_WINDOW` or `AMBIGUOUS_WINDOW`.
    packed : ndarray, of the same shape, dtype=uint64
        The four counts, 16 bits each, A lowest, if the number is `AMBIGUOUS_WINDOW`.
    """
    codes, starts, length, most_ambiguous, weights = windows
    side = length + 1
    numbers[: stop - first] = NO_WINDOW
    reference = np.searchsorted(starts, first, side="right") - 1
    while reference < len(starts) - 1 and starts[reference] < stop:
        begin = max(first, starts[reference])
        end = min(stop, starts[reference + 1] - length + 1)
        if begin < end:
            number = 0
            for at in range(begin, begin + length - 1):
                number += weights[codes[at]]
            # Slices counted from 0 avoid the check for negative indices.
            coming = codes[begin + length - 1 : end + length - 1]
            going = codes[begin:end]
            here = numbers[begin - first : end - first]
            for i in range(here.size):
                number += weights[coming[i]]
                here[i] = number
                if number >> _AMBIGUOUS_BIT:
                    here[i] = NO_WINDOW
                    ambiguous = number >> _AMBIGUOUS_BIT
                    if ambiguous <= most_ambiguous:
                        here[i] = AMBIGUOUS_WINDOW
                        rest = number - (ambiguous << _AMBIGUOUS_BIT)
                        a, c, g = rest // (side * side), rest // side % side, rest % side
                        t = length - ambiguous - a - c - g
                        packed[begin - first + i] = a | c << 16 | g << 32 | t << 48
                number -= weights[going[i]]
        reference += 1


#: Windows numbered at a time.
STRIP = 4096
#: Smaller pieces of the references are not worth a separate thread and table.
_SMALLEST_RANGE = 1 << 18


@dataclass(frozen=True)
class WindowClasses:
    """The histograms of all windows of one length, and their counts.

    Attributes
    ----------
    length : int
    ranges : ndarray, shape=(n_ranges, 2), dtype=int64
        The positions scanned by each thread.
    tables : ndarray, shape=(n_ranges, n_classes + n_ambiguous), dtype=uint32
        Windows of each class that begin in each range; ambiguous classes are last.
    ambiguous : ndarray, shape=(n_ambiguous,), dtype=uint64
        The distinct counts (16 bits each, A lowest) of windows with ambiguous bases, ascending.
    most_ambiguous : int
        Windows with more ambiguous bases cannot be hits, and are in no class.
    """

    length: int
    ranges: np.ndarray
    tables: np.ndarray
    ambiguous: np.ndarray
    most_ambiguous: int


class ClassPlanes(NamedTuple):
    """The classes that occur, as planes for comparison (see `count_planes_cpu`).

    Attributes
    ----------
    length : int
    planes : ndarray, shape=(N_PLANES * width,), dtype=uint8 or uint16
    numbers : ndarray, shape=(n_present,), dtype=int64
        The column of `WindowClasses.tables` of each class.
    times : ndarray, shape=(n_present,), dtype=int64
        The number of windows of each class.
    """

    length: int
    planes: np.ndarray
    numbers: np.ndarray
    times: np.ndarray


def count_windows(codes, starts, length, most_ambiguous, threads) -> WindowClasses:
    """Count all windows of one length by histogram, with the parameters of `Windows`."""
    n_classes = number_of_classes(length)
    smallest = max(_SMALLEST_RANGE, 2 * n_classes)
    n_ranges = max(1, min(threads, codes.size // smallest))
    edges = [codes.size * i // n_ranges for i in range(n_ranges + 1)]
    ranges = np.array(list(itertools.pairwise(edges)), np.int64)
    tables = np.zeros((n_ranges, n_classes), np.uint32)
    windows = Windows(codes, starts, length, most_ambiguous, base_weights(length))

    def work(first, last):
        found = []
        for i in range(first, last):
            n_ambiguous = _count_range(windows, *ranges[i], tables[i])
            packed = np.empty(n_ambiguous, np.uint64)
            if n_ambiguous:
                _list_ambiguous(windows, *ranges[i], packed)
            found.append(np.unique(packed, return_counts=True))
        return found

    found = [part for parts in for_each_range(work, n_ranges, threads, 1) for part in parts]
    ambiguous = np.unique(np.concatenate([packed for packed, _ in found]))
    if ambiguous.size:
        more = np.zeros((n_ranges, ambiguous.size), np.uint32)
        for i, (packed, times) in enumerate(found):
            more[i, np.searchsorted(ambiguous, packed)] = times
        tables = np.concatenate([tables, more], axis=1)
    return WindowClasses(length, ranges, tables, ambiguous, most_ambiguous)


def class_planes(classes: WindowClasses) -> ClassPlanes:
    """Return the histograms that occur, ready to be compared with queries."""
    numbers = np.flatnonzero(classes.tables.any(axis=0))
    times = classes.tables[:, numbers].sum(axis=0, dtype=np.int64)
    width = -(-max(numbers.size, 1) // VECTOR_BYTES) * VECTOR_BYTES
    planes = np.zeros((N_PLANES, width), count_type(classes.length))
    side, length = classes.length + 1, classes.length
    numbered = numbers[: np.searchsorted(numbers, number_of_classes(length))]
    a, rest = np.divmod(numbered, side * side)
    c, g = np.divmod(rest, side)
    planes[:4, : numbered.size] = a, c, g, length - a - c - g
    # The ambiguous bases of a window are divided between two planes.
    counts = [classes.ambiguous.astype(np.int64) >> 16 * base & 0xFFFF for base in range(4)]
    ambiguous = length - np.sum(counts, axis=0)
    of_ambiguous = planes[:, numbered.size : numbered.size + ambiguous.size]
    of_ambiguous[:] = *counts, ambiguous // 2, (ambiguous + 1) // 2
    return ClassPlanes(length, planes.reshape(-1), numbers, times)


def count_class_hits(classes: ClassPlanes, times, counts, largest, threads):
    """Count the hits of each query.

    Parameters
    ----------
    classes : ClassPlanes
    times : ndarray, shape=(n_present,), dtype=int64
        ``classes.times`` to count windows, ones to count classes.
    counts : ndarray, shape=(n_groups, 4), dtype=uint16
        Base counts of the queries.
    largest : ndarray, shape=(n_groups,), dtype=int32
        The maximum distance of a hit; negative for none.

    Returns
    -------
    hits : ndarray, shape=(n_groups,), dtype=int64
    """
    hits = np.zeros(len(counts), np.int64)
    for_each_range(
        lambda first, last: _count_hits(classes, times, counts, largest, first, last, hits),
        len(counts),
        threads,
        smallest=8,
    )
    return hits


def find_limits(classes: ClassPlanes, counts, largest, wanted, threads):
    """Return the distance within which each query has at least `wanted` hits, or its `largest`.

    Returns
    -------
    limits : ndarray, shape=(n_groups,), dtype=int32
    nearer : ndarray, shape=(n_groups,), dtype=int64
        The number of hits below the limit, fewer than `wanted`.
    """
    limits = np.empty(len(counts), np.int32)
    nearer = np.zeros(len(counts), np.int64)
    for_each_range(
        lambda first, last: _find_limits(
            classes, counts, largest, wanted, first, last, limits, nearer
        ),
        len(counts),
        threads,
        smallest=8,
    )
    return limits, nearer


@compiled
def _count_range(windows, start, stop, table):
    """Count the windows that begin in [start, stop); return the number of ambiguous ones."""
    numbers = np.empty(STRIP, np.int32)
    packed = np.empty(STRIP, np.uint64)
    n_ambiguous = 0
    for first in range(start, stop, STRIP):
        last = min(first + STRIP, stop)
        number_windows(windows, first, last, numbers, packed)
        for number in numbers[: last - first]:
            if number >= 0:
                table[number] += np.uint32(1)
            elif number == AMBIGUOUS_WINDOW:
                n_ambiguous += 1
    return n_ambiguous


@compiled
def _list_ambiguous(windows, start, stop, found):
    """List the packed counts of the ambiguous windows that `_count_range` counted."""
    numbers = np.empty(STRIP, np.int32)
    packed = np.empty(STRIP, np.uint64)
    used = 0
    for first in range(start, stop, STRIP):
        last = min(first + STRIP, stop)
        number_windows(windows, first, last, numbers, packed)
        for i in range(last - first):
            if numbers[i] == AMBIGUOUS_WINDOW:
                found[used] = packed[i]
                used += 1


@compiled
def _count_hits(classes, times, counts, largest, start, stop, hits):
    planes, length = classes.planes, classes.length
    width = planes.size // N_PLANES
    query = np.empty(5, planes.dtype)
    for group in range(start, stop):
        if largest[group] < 0:
            continue
        half = set_query(counts[group], length, largest[group], query)
        for at in range(0, width, VECTOR_BYTES // planes.itemsize):
            bits = hits_in_planes(planes, width, at, query, half)
            while bits != np.uint64(0):
                hits[group] += times[
                    at + np.int64(population_count(bits ^ (bits - np.uint64(1)))) - 1
                ]
                bits &= bits - np.uint64(1)


@compiled
def _find_limits(classes, counts, largest, wanted, start, stop, limits, nearer):
    length, planes, _, times = classes
    width = planes.size // N_PLANES
    query = np.empty(5, planes.dtype)
    numbers = np.empty(VECTOR_BYTES, np.int64)
    distances = np.empty(VECTOR_BYTES, np.int64)
    for group in range(start, stop):
        limits[group] = largest[group]
        if largest[group] < 0:
            continue
        at_distance = np.zeros(largest[group] + 1, np.int64)
        half = set_query(counts[group], length, largest[group], query)
        for at in range(0, width, VECTOR_BYTES // planes.itemsize):
            bits = hits_in_planes(planes, width, at, query, half)
            used = list_hits(bits, planes, at, query, at, numbers, distances, 0)
            for i in range(used):
                at_distance[distances[i]] += times[numbers[i]]
        for distance in range(largest[group] + 1):
            if nearer[group] + at_distance[distance] >= wanted or distance == largest[group]:
                limits[group] = distance
                break
            nearer[group] += at_distance[distance]
