"""A whole scan: all lengths, counted first and then listed in blocks that fit in memory.

Rows come in one order whatever the algorithm, engine and number of threads: queries from the
shortest length to the longest, of one length in the order of the file; each query's windows by
reference and position, or nearest first where only the best are wanted.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from bwarp.composition.classes import classes_cpu
from bwarp.composition.classes.class_numbers_cpu import number_of_classes
from bwarp.composition.classes.class_scan import ClassScan, CountedClassScan
from bwarp.composition.histogram import QueryGroups
from bwarp.composition.hit_blocks import HitBlock, best_hits
from bwarp.composition.references import References, window_count
from bwarp.composition.similarity import largest_distance
from bwarp.composition.tiles import gather_cpu, tiles_cpu
from bwarp.composition.tiles.tile_scan import TileScan
from bwarp.options.finding import SCAN
from bwarp.runtime.ranges import bounded_ranges

__all__ = [
    "ALGORITHMS",
    "LONGEST_REFERENCES",
    "Scan",
    "count_hits",
    "hits_of_queries",
    "scan_best",
    "scan_hits",
]

ALGORITHMS = SCAN["algorithm"].value.words

#: Window positions are 32-bit numbers, also those of the positions that fill up the last tile.
LONGEST_REFERENCES = 2**32 - 2**24

#: The CPU takes longer queries, whose counts do not fit in bytes.
_LONGEST_ON_DEVICE = 255
_MANY_QUERIES = 1000
#: Comparisons between two reports: some seconds of a few CPU cores.
_COMPARISONS_AT_ONCE = 1 << 40
#: Tables of more classes than this (of a length of 256) would leave the caches far behind.
_MOST_CLASSES = 1 << 24
#: Tables this small are worth it for any references; larger ones must have fewer entries than
#: there are windows to count.
_FEW_CLASSES = 1 << 16


@dataclass(frozen=True)
class Scan:
    """What to compare with what, and how.

    Attributes
    ----------
    references : References
    similarity : Fraction
    algorithm : str
        One of `ALGORITHMS`. ``auto`` is ``classes``, or ``tiles`` on a GPU for lengths with few
        compositions of queries; ``classes`` turns to ``tiles`` for lengths with more classes than
        windows.
    backend : str
        ``"cpu"`` or ``"cuda"``; the CPU takes lengths above 255 in any case.
    threads : int
    """

    references: References
    similarity: Fraction
    algorithm: str
    backend: str
    threads: int


def count_hits(
    scan: Scan, groups: list[QueryGroups], report: Callable[[int], None] = lambda queries: None
) -> list[np.ndarray]:
    """How many windows each group of each length hits: int64 arrays, in the order of `groups`.

    `report` is called now and then with how many queries have been compared.
    """
    lengths = _Lengths(scan)
    done = 0
    hits = []
    for group in groups:
        of_group = np.zeros(len(group.counts), np.int64)
        windows = window_count(scan.references, group.length)
        if windows:
            length, largest = lengths.of(group), _largest(scan, group)
            at_once = max(_MANY_QUERIES, _COMPARISONS_AT_ONCE // windows)
            for first in range(0, of_group.size, at_once):
                part = slice(first, first + at_once)
                of_group[part] = length.count(group.counts[part], largest[part])
                report(done + len(group.queries) * min(part.stop, of_group.size) // of_group.size)
        done += len(group.queries)
        hits.append(of_group)
    return hits


def hits_of_queries(
    groups: list[QueryGroups], hits: list[np.ndarray], n_queries: int
) -> np.ndarray:
    """How many windows each query hits (int64), from what `count_hits` returned."""
    of_query = np.zeros(n_queries, np.int64)
    for group, group_hits in zip(groups, hits, strict=True):
        of_query[group.queries] = group_hits[group.group_of_query]
    return of_query


def scan_hits(
    scan: Scan, groups: list[QueryGroups], hits: list[np.ndarray], block_rows: int = 1 << 24
) -> Iterator[HitBlock]:
    """List all hits.

    Parameters
    ----------
    scan : Scan
    groups : list of QueryGroups
    hits : list of ndarray
        As `count_hits` returned them.
    block_rows : int
        About how many hits a block may have; a single query may have more.
    """
    lengths = _Lengths(scan)
    for group, group_hits in zip(groups, hits, strict=True):
        if not group_hits.any():
            continue
        length = lengths.of(group)
        for part in _parts(group, group_hits, block_rows):
            found = length.find(part.counts, _largest(scan, part))
            yield _block(part, *found)


def scan_best(
    scan: Scan, groups: list[QueryGroups], wanted: int, block_rows: int = 1 << 22
) -> Iterator[HitBlock]:
    """List the `wanted` nearest hits of each query, ties by position."""
    lengths = _Lengths(scan)
    for group in groups:
        if not window_count(scan.references, group.length):
            continue
        length = lengths.of(group)
        rows = np.full(len(group.counts), wanted)
        for part in _parts(group, rows, block_rows):
            found = length.find_nearest(part.counts, _largest(scan, part), wanted)
            yield _block(part, *best_hits(*found, wanted))


def _largest(scan: Scan, group: QueryGroups) -> np.ndarray:
    return np.full(len(group.counts), largest_distance(scan.similarity, group.length), np.int32)


def _parts(group: QueryGroups, rows: np.ndarray, most: int) -> Iterator[QueryGroups]:
    """Consecutive queries of one length with at most about `most` rows, group rows counted once
    for every query so that the pieces bound what is written, too."""
    offsets = np.append(0, np.cumsum(rows[group.group_of_query]))
    for first, last in bounded_ranges(offsets, most):
        used, local = np.unique(group.group_of_query[first:last], return_inverse=True)
        yield QueryGroups(group.length, group.queries[first:last], local, group.counts[used])


def _block(part: QueryGroups, hits, positions, distances) -> HitBlock:
    edges = np.concatenate([[0], np.cumsum(hits)]).astype(np.int64)
    return HitBlock(part.length, part.queries, part.group_of_query, edges, positions, distances)


class _Lengths:
    """Makes what is needed to scan one length; what serves several lengths is made once."""

    def __init__(self, scan: Scan):
        self._scan = scan
        self._prepared = {}

    def of(self, group: QueryGroups) -> ClassScan | CountedClassScan | TileScan:
        by_classes = self._scan.algorithm in ("auto", "classes")
        by_classes = by_classes and self._few_classes(group.length)
        if self._scan.backend == "cuda" and group.length <= _LONGEST_ON_DEVICE:
            return self._of_cuda(group, by_classes)
        if not by_classes:
            return self._tiles(gather_cpu if self._scan.algorithm == "gather" else tiles_cpu, group)
        references, threads = self._scan.references, self._scan.threads
        classes = classes_cpu.count_windows(
            references.codes, references.starts, group.length, self._most_ambiguous(group), threads
        )
        return ClassScan(references, classes, classes_cpu.class_planes(classes), threads)

    def _of_cuda(self, group: QueryGroups, by_classes: bool) -> CountedClassScan | TileScan:
        from bwarp.composition.classes import classes_cuda
        from bwarp.composition.tiles import gather_cuda, tiles_cuda

        if self._scan.algorithm == "gather":
            return self._tiles(gather_cuda, group)
        tiles = self._tiles(tiles_cuda, group)
        # Counting classes and taking them to the host costs as much as so many queries do.
        few = self._scan.algorithm == "auto" and len(group.counts) < _MANY_QUERIES
        if few or not by_classes:
            return tiles
        classes = classes_cuda.count_windows(
            tiles.prepared, group.length, self._most_ambiguous(group)
        )
        return CountedClassScan(classes_cpu.class_planes(classes), tiles, self._scan.threads)

    def _few_classes(self, length: int) -> bool:
        n_positions = self._scan.references.codes.size
        most = min(_MOST_CLASSES, max(_FEW_CLASSES, n_positions))
        return number_of_classes(length) <= most

    def _tiles(self, engine, group: QueryGroups) -> TileScan:
        references = self._scan.references
        key = (engine, engine.count_type(group.length))
        if key not in self._prepared:
            self._prepared[key] = engine.prepare_references(references, key[1])
        return TileScan(
            engine, self._prepared[key], references.codes.size, group.length, self._scan.threads
        )

    def _most_ambiguous(self, group: QueryGroups) -> int:
        """The most ambiguous bases of a window that some query may be near enough to.

        The distance is at least the difference of the numbers of unambiguous bases.
        """
        fewest = int(group.counts.sum(axis=1, dtype=np.int64).min())
        distance = largest_distance(self._scan.similarity, group.length)
        return min(group.length, group.length - fewest + distance)
