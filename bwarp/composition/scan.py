"""Run a whole scan: all lengths, counted first and then listed in blocks that fit in memory.

The order of rows does not depend on algorithm, engine or threads: queries by length, shortest
first, then file order; the windows of a query by reference and position, or nearest first if only
the best are wanted.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from types import ModuleType

import numpy as np

from bwarp.composition import classes_cpu, gather_cpu, tiles_cpu
from bwarp.composition.class_hits_cpu import find_class_hits, find_nearest
from bwarp.composition.classes_cpu import (
    ClassPlanes,
    WindowClasses,
    count_class_hits,
    find_limits,
    number_of_classes,
)
from bwarp.composition.histogram import LONGEST_QUERY, QueryGroups, largest_distance
from bwarp.composition.references import (
    HitBlock,
    References,
    best_hits,
    gather_references,
    window_count,
)
from bwarp.composition.tiles_cpu import TileQueries
from bwarp.errors import InputError
from bwarp.io.fastx import SequenceBatch, not_fasta_error
from bwarp.io.names import refuse_nameless
from bwarp.options.finding import SCAN
from bwarp.runtime.threads import bounded_ranges
from bwarp.runtime.timeline import on_timeline

# One length of a scan with an engine that processes windows tile by tile (tiles or gather).
#
# An engine is a module with `count_type`, `prepare_references`, `count_tile_hits` and
# `find_tile_hits`; see `tiles_cpu`.


#: The approximate maximum number of tiles of the references for which counts are stored.
_MOST_TILES = 2048
_SMALLEST_TILE = 4096
#: The growth factor of the parts of the references that are searched for the best hits.
_GROWTH = 32
#: Comparisons in the first part, all of which may be hits.
_FIRST_COMPARISONS = 1 << 23


@dataclass(frozen=True)
class TileScan:
    """Compare every query of one length with every window.

    Attributes
    ----------
    engine : module
    prepared : object
        From `prepare_references` of the engine.
    n_positions : int
        Bases of all references.
    length : int
    threads : int
    """

    engine: ModuleType
    prepared: object
    n_positions: int
    length: int
    threads: int

    def count(self, counts, largest):
        """Count the hits of each query: int64[n_groups]."""
        queries = self._queries(counts, largest, 0, self.n_positions)
        return self._count(queries).sum(axis=1, dtype=np.int64)

    def find(self, counts, largest):
        """Return all hits: their number per query, positions and distances, in order."""
        return self._find(counts, largest, 0, self.n_positions)

    def find_nearest(self, counts, largest, wanted):
        """Return the `wanted` nearest hits of each query, ties by position; see `find`.

        The references are searched in parts, each much longer than all before. A query with enough
        hits continues with hits nearer than the worst of them only, because a later one at the same
        distance loses the tie, and it stops if nothing is nearer. Each part therefore has few hits,
        and most queries stop early.
        """
        limits = largest.copy()
        found = (np.zeros(0, np.int64), np.zeros(0, np.uint32), np.zeros(0, np.uint16))
        tiles = max(1, _FIRST_COMPARISONS // (_SMALLEST_TILE * max(1, len(counts))))
        first, stop = 0, min(_SMALLEST_TILE * tiles, self.n_positions)
        while first < self.n_positions:
            active = np.flatnonzero(limits >= 0)
            if not active.size:
                break
            hits, *rows = self._find(counts[active], limits[active], first, stop)
            new = (np.repeat(active, hits), *rows)
            found = [np.concatenate(pair) for pair in zip(found, new, strict=True)]
            found, limits = _keep_best(*found, wanted, largest)
            first, stop = stop, min(_GROWTH * stop, self.n_positions)
        groups, positions, distances = found
        return np.bincount(groups, minlength=len(counts)), positions, distances

    def _queries(self, counts, largest, first: int, stop: int) -> TileQueries:
        tiles = -(-(stop - first) // _SMALLEST_TILE)
        tile_windows = _SMALLEST_TILE * -(-tiles // _MOST_TILES)
        return TileQueries(self.length, counts, largest, first, stop, tile_windows)

    @on_timeline("count hits")
    def _count(self, queries: TileQueries):
        return self.engine.count_tile_hits(self.prepared, queries, self.threads)

    @on_timeline("find hits")
    def _find(self, counts, largest, first, stop):
        queries = self._queries(counts, largest, first, stop)
        hits = self._count(queries)
        found = self.engine.find_tile_hits(self.prepared, queries, hits, self.threads)
        return hits.sum(axis=1, dtype=np.int64), *found


def _keep_best(groups, positions, distances, wanted, largest):
    """Return the best of the hits, and the distance up to which each query can still use more."""
    order = np.argsort(groups, kind="stable")
    hits = np.bincount(groups, minlength=len(largest))
    hits, positions, distances = best_hits(hits, positions[order], distances[order], wanted)
    limits = largest.copy()
    full = hits == wanted
    worst = np.cumsum(hits)[full] - 1
    limits[full] = distances[worst].astype(np.int32) - 1
    return (np.repeat(np.arange(len(hits)), hits), positions, distances), limits


# One length of a scan by the classes of its windows.


@dataclass(frozen=True)
class ClassScan:
    """Compare queries with classes of windows; a second pass assigns hits to windows."""

    references: References
    classes: WindowClasses
    planes: ClassPlanes
    threads: int

    def count(self, counts, largest):
        """Count the hits of each query: int64[n_groups]."""
        return count_class_hits(self.planes, self.planes.times, counts, largest, self.threads)

    def find(self, counts, largest):
        """Return all hits: their number per query, positions and distances, in order."""
        return find_class_hits(
            self.references, self.classes, self.planes, counts, largest, self.threads
        )

    def find_nearest(self, counts, largest, wanted):
        """Return at least the `wanted` nearest hits per query, if it has that many; see `find`."""
        limits, nearer = find_limits(self.planes, counts, largest, wanted, self.threads)
        return find_nearest(
            self.references, self.classes, self.planes, counts, limits, nearer, wanted,
            self.threads,
        )  # fmt: skip


@dataclass(frozen=True)
class CountedClassScan:
    """Compare queries with classes counted on a GPU, which also lists the hits, tile by tile."""

    planes: ClassPlanes
    tiles: TileScan
    threads: int

    def count(self, counts, largest):
        """Count the hits of each query: int64[n_groups]."""
        return count_class_hits(self.planes, self.planes.times, counts, largest, self.threads)

    def find(self, counts, largest):
        """Return all hits: their number per query, positions and distances, in order."""
        return self.tiles.find(counts, largest)

    def find_nearest(self, counts, largest, wanted):
        """Return the `wanted` nearest hits of each query, ties by position; see `find`."""
        return self.tiles.find_nearest(counts, largest, wanted)


ALGORITHMS = SCAN["algorithm"].value.words

#: Window positions are 32-bit numbers, including those that pad the last tile.
LONGEST_REFERENCES = 2**32 - 2**24

#: The CPU handles longer queries, whose counts do not fit in bytes.
_LONGEST_ON_DEVICE = 255
_MANY_QUERIES = 1000
#: Comparisons between two progress reports: a few seconds on a few CPU cores.
_COMPARISONS_AT_ONCE = 1 << 40
#: Tables of more classes than this (at a length of 256) would be much larger than the caches.
_MOST_CLASSES = 1 << 24
#: Tables this small pay off for any references; larger ones must have fewer entries than there are
#: windows to count.
_FEW_CLASSES = 1 << 16


@dataclass(frozen=True)
class Scan:
    """The data and methods of a scan.

    Attributes
    ----------
    references : References
    similarity : Fraction
    algorithm : str
        One of `ALGORITHMS`. ``auto`` is ``classes``, or ``tiles`` on a GPU for lengths with few
        compositions of queries; ``classes`` becomes ``tiles`` for lengths with more classes than
        windows.
    backend : str
        ``"cpu"`` or ``"cuda"``; the CPU handles lengths above 255 in any case.
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
    """Count the hits of each group of each length: int64 arrays, in the order of `groups`.

    `report` is called regularly with the number of queries compared.
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
    """Return the number of hits of each query (int64), from the result of `count_hits`."""
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
        From `count_hits`.
    block_rows : int
        The approximate maximum number of hits per block; a single query may have more.
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
    """Yield consecutive queries of one length with at most about `most` rows. Rows of a group count
    once per query, so that the pieces bound the output too.
    """
    offsets = np.append(0, np.cumsum(rows[group.group_of_query]))
    for first, last in bounded_ranges(offsets, most):
        used, local = np.unique(group.group_of_query[first:last], return_inverse=True)
        yield QueryGroups(group.length, group.queries[first:last], local, group.counts[used])


def _block(part: QueryGroups, hits, positions, distances) -> HitBlock:
    edges = np.concatenate([[0], np.cumsum(hits)]).astype(np.int64)
    return HitBlock(part.length, part.queries, part.group_of_query, edges, positions, distances)


class _Lengths:
    """Make what a scan of one length needs; data common to several lengths is made once."""

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
        from bwarp.composition import classes_cuda, gather_cuda, tiles_cuda

        if self._scan.algorithm == "gather":
            return self._tiles(gather_cuda, group)
        tiles = self._tiles(tiles_cuda, group)
        # Counting classes and copying them to the host costs as much as this many queries.
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
        """Return the maximum number of ambiguous bases of a window that can be a hit of some query.

        The distance is at least the difference in unambiguous bases.
        """
        fewest = int(group.counts.sum(axis=1, dtype=np.int64).min())
        distance = largest_distance(self._scan.similarity, group.length)
        return min(group.length, group.length - fewest + distance)


# Inputs of a scan, gathered from files or memory, and checked.


def scan_references(where: str | os.PathLike, batches: Iterable[SequenceBatch]) -> References:
    """Gather the references of a scan; errors name their source, `where`."""
    references = gather_references(_fasta(where, batches))
    if references.codes.size > LONGEST_REFERENCES:
        raise InputError(
            f"{where}: {references.codes.size:,} bases exceed the maximum of "
            f"{LONGEST_REFERENCES:,} for one scan: split the file"
        )
    refuse_nameless(where, references.names)
    return references


def _fasta(where: str | os.PathLike, batches: Iterable[SequenceBatch]) -> Iterator[SequenceBatch]:
    for batch in batches:
        if batch.qualities is not None:
            raise not_fasta_error(f"{where}: ")
        yield batch


def scan_queries(
    where: str | os.PathLike, batches: Iterable[SequenceBatch]
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Gather the queries of a scan: names, codes (uint8), and offsets (int64[n + 1]).

    Query i is ``codes[offsets[i]:offsets[i + 1]]``; errors name their source, `where`.
    """
    queries = gather_references(_short_enough(where, batches))
    refuse_nameless(where, queries.names)
    return queries.names, queries.codes, queries.starts


def _short_enough(
    where: str | os.PathLike, batches: Iterable[SequenceBatch]
) -> Iterator[SequenceBatch]:
    for batch in batches:
        lengths = np.diff(batch.offsets)
        if lengths.max() > LONGEST_QUERY:
            longest = int(lengths.argmax())
            raise InputError(
                f"{where}: query {batch.name(longest)!r} has {lengths[longest]:,} bases, but "
                f"the maximum is {LONGEST_QUERY:,}"
            )
        yield batch


def count_queries(codes: np.ndarray, offsets: np.ndarray, backend: str) -> np.ndarray:
    """Count A, C, G and T in each query (uint16[n, 4]), on the GPU if that is the engine."""
    if backend == "cuda":
        from bwarp.composition.gather_cuda import count_bases
    else:
        from bwarp.composition.histogram import count_bases
    return count_bases(codes, offsets)
