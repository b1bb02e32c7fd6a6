"""Histograms of depths: the number of bases with each depth, per contig and in its regions.

    events, sorted   1+    5+      9-     20+    20-      12+: a stretch begins at position 12
    depth          0  1     2       1      0      0
    histogram      1: 4 + ..., 2: 4, ...                   bases with each depth

Events come in groups, in the order of the file. No event of a later record lies before the start of
that record, so events before its position are final, and only the others are kept.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bwarp.runtime.compiled_code import compiled


class RegionPoints(NamedTuple):
    """Starts and ends of regions in order, coded as events (see `record_counts`).

    Attributes
    ----------
    events : ndarray, shape=(2 * n_regions,), dtype=int64
    sums : ndarray, shape=(2 * n_regions,), dtype=int64
        Sum of the depths of all bases before each.
    """

    events: np.ndarray
    sums: np.ndarray


class ContigDepths(NamedTuple):
    """Numbers of bases with each depth from 0, of a contig and of the regions in it."""

    bases: np.ndarray
    of_regions: np.ndarray


class DepthHistograms:
    """Takes events in the order of the file, and finally returns the histograms.

    Parameters
    ----------
    offsets : ndarray, shape=(n_contigs + 1,), dtype=int64
        Starts of the contigs in positions of events, and the end of the last.
    regions : sequence of (start, stop)
        In the positions of events.
    """

    def __init__(self, offsets: np.ndarray, regions: Sequence[tuple[int, int]] = ()):
        self._offsets = offsets
        begins = np.array([start << 1 | 1 for start, _ in regions], np.int64)
        ends = np.array([stop << 1 for _, stop in regions], np.int64)
        events = np.concatenate([begins, ends])
        order = np.argsort(events, kind="stable")
        self._points = RegionPoints(events[order], np.zeros(order.size, np.int64))
        # Where the start and the end of each region are among the sorted points.
        self._ranks = np.argsort(order).reshape(2, -1)
        self._region_bases = np.bincount(
            np.searchsorted(offsets, begins >> 1, side="right") - 1,
            weights=(ends >> 1) - (begins >> 1), minlength=offsets.size - 1,
        ).astype(np.int64)  # fmt: skip
        self._events = np.empty(0, np.int64)
        #: Depth and position of the last event, the number of regions at it, the next point, and
        #: the sum of all depths before it.
        self._state = np.zeros(5, np.int64)
        self._contig = 0
        #: More than any depth of this contig so far.
        self._most = 0
        self._bases, self._of_regions = np.zeros((2, 1024), np.int64)
        self._contigs: list[ContigDepths] = []

    def add(self, events: np.ndarray, first: int) -> None:
        """Add the sorted events of a group of records, the first of which begins at `first`."""
        self._count_before(first)
        if self._events.size:
            # Two sorted arrays, which this kind of sort merges.
            events = np.sort(np.concatenate([self._events, events]), kind="stable")
        self._events = events

    def finish(self) -> tuple[list[ContigDepths], np.ndarray]:
        """Return the histograms of all contigs, and the sum of the depths of each region."""
        self._count_before(int(self._offsets[-1]))
        while self._contig < self._offsets.size - 1:
            self._finish_contig()
        # The regions after the last event.
        points = self._points
        points.sums[self._state[3] :] = self._state[4]
        begins, ends = self._ranks
        return self._contigs, points.sums[ends] - points.sums[begins]

    def _count_before(self, position: int) -> None:
        """Count all events before a position."""
        count = int(np.searchsorted(self._events, position << 1))
        events, self._events = self._events[:count], self._events[count:]
        while events.size:
            contig = int(np.searchsorted(self._offsets, int(events[0] >> 1), side="right")) - 1
            while self._contig < contig:
                self._finish_contig()
            # The end of the contig is a position of its own.
            stop = int(np.searchsorted(events, int(self._offsets[contig + 1]) << 1))
            self._most = max(self._most, int(self._state[0]) + stop + 1)
            if self._most > self._bases.size:
                more = np.zeros(2 * self._most - self._bases.size, np.int64)
                self._bases = np.concatenate([self._bases, more])
                self._of_regions = np.concatenate([self._of_regions, more])
            _count_depths(events[:stop], self._state, self._bases, self._points, self._of_regions)
            events = events[stop:]

    def _finish_contig(self) -> None:
        contig = self._contig
        length = int(self._offsets[contig + 1] - self._offsets[contig]) - 1
        used, in_regions = slice(0, self._most), int(self._region_bases[contig])
        self._contigs.append(
            ContigDepths(
                _taken(self._bases[used], length), _taken(self._of_regions[used], in_regions)
            )
        )
        self._contig += 1
        self._most = 0


def _taken(counts: np.ndarray, total: int) -> np.ndarray:
    """Return counts up to the last that is not 0, with the bases of depth 0, and clear them."""
    used = int(np.flatnonzero(counts)[-1]) + 1 if counts.any() else 0
    taken = np.zeros(max(1, used), np.int64)
    taken[:used] = counts[:used]
    counts[:used] = 0
    taken[0] = total - taken.sum()
    return taken


@compiled
def _count_depths(events, state, bases, points, of_regions):
    """Add the bases between events to histograms of depths.

    Parameters
    ----------
    events : ndarray, dtype=int64
        Sorted, and all after those of earlier calls.
    state : ndarray, shape=(5,), dtype=int64
        See `DepthHistograms`; changed.
    bases, of_regions : ndarray, dtype=int64
        Added to. Depth 0 is not counted.
    points : RegionPoints
    """
    borders, sums = points
    depth, position, regions, point, total = state
    for event in events:
        here = event >> 1
        if depth > 0 and here > position:
            bases[depth] += here - position
            while position < here:
                # Continue up to the next border of a region.
                while point < borders.size and borders[point] >> 1 <= position:
                    sums[point] = total
                    regions += 1 if borders[point] & 1 else -1
                    point += 1
                stop = here
                if point < borders.size:
                    stop = min(here, borders[point] >> 1)
                of_regions[depth] += regions * (stop - position)
                total += depth * (stop - position)
                position = stop
        position = here
        depth += 1 if event & 1 else -1
    state[0], state[1], state[2], state[3], state[4] = depth, position, regions, point, total
