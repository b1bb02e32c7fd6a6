"""List the hits of classes window by window, in order.

The matches of queries and classes are transposed, so that each class has a list of its queries. The
references are then scanned again, and each window writes a hit into the slot of every query that
its class matches. The start of each slot follows from the number of windows of a class in each
range, so that threads write in parallel and the hits of a query are in order of position:

    range 0            range 1
    query 0  . . .     . .          positions: | q0 r0 | q0 r1 | q1 r0 | q1 r1 | ...
    query 1  . .       . . . .
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bwarp.composition.classes_cpu import (
    AMBIGUOUS_WINDOW,
    STRIP,
    ClassPlanes,
    WindowClasses,
    Windows,
    base_weights,
    count_class_hits,
    number_of_classes,
    number_windows,
)
from bwarp.composition.count_planes_cpu import N_PLANES, hits_in_planes, list_hits, set_query
from bwarp.composition.references import References
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import VECTOR_BYTES
from bwarp.runtime.threads import for_each_range


class _Lists(NamedTuple):
    """The queries that match every class.

    Attributes
    ----------
    slots : ndarray, shape=(n_classes + n_ambiguous,), dtype=int32
        The slot of a class with hits, -1 for other classes.
    begins, ends : ndarray, shape=(n_slots,), dtype=int64
        The range of each slot's matches in `groups` and `distances`.
    groups : ndarray, shape=(n_matches,), dtype=int32
    distances : ndarray, shape=(n_matches,), dtype=uint16
    """

    slots: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    groups: np.ndarray
    distances: np.ndarray


@dataclass(frozen=True)
class _Matches:
    """The queries that match every class.

    Attributes
    ----------
    lists : _Lists
    per_range : ndarray, shape=(n_groups, n_ranges), dtype=int64
        The number of hits of each query in each range.
    nearer : ndarray, shape=(n_groups, n_ranges), dtype=int64
        The number of these below the largest distance of the query.
    """

    lists: _Lists
    per_range: np.ndarray
    nearer: np.ndarray


def find_class_hits(references, classes, planes, counts, largest, threads):
    """List all hits by query, each in order of position.

    Parameters
    ----------
    references : References
    classes : WindowClasses
    planes : ClassPlanes
    counts : ndarray, shape=(n_groups, 4), dtype=uint16
    largest : ndarray, shape=(n_groups,), dtype=int32

    Returns
    -------
    hits : ndarray, shape=(n_groups,), dtype=int64
        The number of hits of each query.
    positions : ndarray, shape=(hits.sum(),), dtype=uint32
        Where the windows begin in the concatenated references.
    distances : ndarray, shape=(hits.sum(),), dtype=uint16
    """
    matches = _match(classes, planes, counts, largest, threads)
    ends = np.cumsum(matches.per_range).reshape(matches.per_range.shape)
    cursors = np.ascontiguousarray((ends - matches.per_range).T)
    positions = np.empty(matches.per_range.sum(), np.uint32)
    distances = np.empty(positions.size, np.uint16)

    def work(first, last):
        for i in range(first, last):
            scan = _scan_of(references, classes, i)
            _list_range(scan, matches.lists, cursors[i], positions, distances)

    for_each_range(work, len(classes.ranges), threads, smallest=1)
    return matches.per_range.sum(axis=1), positions, distances


def find_nearest(references, classes, planes, counts, limits, nearer, wanted, threads):
    """List the hits of each query below its limit, and enough at the limit to make at least
    `wanted`.

    `limits` and `nearer` come from `classes_cpu.find_limits`. Each range of the references
    contributes its own first hits at the limit, so there may be more than `wanted`, but they
    include the nearest and first ones. The scan of a range ends as soon as every query has enough.

    Returns
    -------
    hits, positions, distances
        As in `find_class_hits`.
    """
    matches = _match(classes, planes, counts, limits, threads)
    missing = np.maximum(wanted - nearer, 0)

    def work(first, last):
        found = []
        for i in range(first, last):
            here = matches.nearer[:, i]
            room = here + np.minimum(matches.per_range[:, i] - here, missing)
            positions, distances = np.empty(room.sum(), np.uint32), np.empty(room.sum(), np.uint16)
            cursors = np.cumsum(room) - room
            _list_nearest(
                _scan_of(references, classes, i), _Lists(*map(np.copy, matches.lists)), limits,
                missing.copy(), cursors, positions, distances,
            )  # fmt: skip
            found.append((np.repeat(np.arange(len(counts)), room), positions, distances))
        return found

    ranges = for_each_range(work, len(classes.ranges), threads, smallest=1)
    parts = [part for found in ranges for part in found]
    groups, positions, distances = (np.concatenate(part) for part in zip(*parts, strict=True))
    order = np.argsort(groups, kind="stable")
    return np.bincount(groups, minlength=len(counts)), positions[order], distances[order]


def _match(classes: WindowClasses, planes: ClassPlanes, counts, largest, threads) -> _Matches:
    ones = np.ones(planes.numbers.size, np.int64)
    n_matches = count_class_hits(planes, ones, counts, largest, threads)
    ends = np.cumsum(n_matches)
    matched = np.empty(n_matches.sum(), np.int64)
    distances = np.empty(matched.size, np.uint16)
    for_each_range(
        lambda first, last: _list_matches(
            planes, counts, largest, first, last, ends - n_matches, matched, distances
        ),
        len(counts),
        threads,
        smallest=8,
    )
    groups = np.repeat(np.arange(len(counts), dtype=np.int32), n_matches)
    per_range = np.zeros((len(counts), len(classes.tables)), np.int64)
    nearer = np.zeros_like(per_range)
    below = distances < largest[groups]
    for i, table in enumerate(classes.tables):
        windows = table[planes.numbers[matched]]
        per_range[:, i] = np.bincount(groups, windows, len(counts))
        nearer[:, i] = np.bincount(groups, windows * below, len(counts))
    order = np.argsort(matched, kind="stable")
    hit, first = np.unique(matched[order], return_index=True)
    slots = np.full(classes.tables.shape[1], -1, np.int32)
    slots[planes.numbers[hit]] = np.arange(hit.size)
    edges = np.append(first, matched.size).astype(np.int64)
    lists = _Lists(slots, edges[:-1], edges[1:], groups[order], distances[order])
    return _Matches(lists, per_range, nearer)


class _Scan(NamedTuple):
    """The data that the functions below scan: range `first` to `stop` of the references."""

    windows: Windows
    first: int
    stop: int
    ambiguous: np.ndarray
    n_classes: int


def _scan_of(references: References, classes: WindowClasses, i: int) -> _Scan:
    length = classes.length
    windows = Windows(
        references.codes, references.starts, length, classes.most_ambiguous, base_weights(length)
    )
    return _Scan(windows, *classes.ranges[i], classes.ambiguous, number_of_classes(length))


@compiled
def _list_matches(classes, counts, largest, start, stop, cursors, matched, distances):
    planes, length = classes.planes, classes.length
    width = planes.size // N_PLANES
    query = np.empty(5, planes.dtype)
    for group in range(start, stop):
        if largest[group] < 0:
            continue
        half = set_query(counts[group], length, largest[group], query)
        used = cursors[group]
        for at in range(0, width, VECTOR_BYTES // planes.itemsize):
            bits = hits_in_planes(planes, width, at, query, half)
            used = list_hits(bits, planes, at, query, at, matched, distances, used)


@compiled
def _slots_of_windows(scan, first, last, slots, numbers, packed):
    """Write the slot of each window that begins in [first, last), or -1, to `numbers`."""
    windows, _, _, ambiguous, n_classes = scan
    number_windows(windows, first, last, numbers, packed)
    for i in range(last - first):
        number = np.int64(numbers[i])
        if number == AMBIGUOUS_WINDOW:
            number = n_classes + np.searchsorted(ambiguous, packed[i])
        if number >= 0:
            numbers[i] = slots[number]


@compiled
def _list_range(scan, lists, cursors, positions, distances):
    """Write the hits of the windows of a range at the cursors."""
    slots, begins, ends, groups, match_distances = lists
    numbers = np.empty(STRIP, np.int32)
    packed = np.empty(STRIP, np.uint64)
    for first in range(scan.first, scan.stop, STRIP):
        last = min(first + STRIP, scan.stop)
        _slots_of_windows(scan, first, last, slots, numbers, packed)
        for i in range(last - first):
            slot = numbers[i]
            if slot < 0:
                continue
            for match in range(begins[slot], ends[slot]):
                cursor = cursors[groups[match]]
                positions[cursor] = first + i
                distances[cursor] = match_distances[match]
                cursors[groups[match]] = cursor + 1


@compiled
def _list_nearest(scan, lists, limits, missing, cursors, positions, distances):
    """Do what `_list_range` does, but remove a query from a list once it has enough hits at its
    limit.

    A list is shortened by moving its last match to the free entry, so a query that has enough costs
    one more visit per class. Ends when all positions are filled.
    """
    slots, begins, ends, groups, match_distances = lists
    left = positions.size
    numbers = np.empty(STRIP, np.int32)
    packed = np.empty(STRIP, np.uint64)
    for first in range(scan.first, scan.stop, STRIP):
        if left == 0:
            break
        last = min(first + STRIP, scan.stop)
        _slots_of_windows(scan, first, last, slots, numbers, packed)
        for i in range(last - first):
            slot = numbers[i]
            if slot < 0:
                continue
            match = begins[slot]
            while match < ends[slot]:
                group = groups[match]
                if match_distances[match] == limits[group]:
                    if missing[group] == 0:
                        ends[slot] -= 1
                        groups[match] = groups[ends[slot]]
                        match_distances[match] = match_distances[ends[slot]]
                        continue
                    missing[group] -= 1
                positions[cursors[group]] = first + i
                distances[cursors[group]] = match_distances[match]
                cursors[group] += 1
                left -= 1
                match += 1
