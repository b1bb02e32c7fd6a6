"""One length of a scan by the classes of its windows."""

from dataclasses import dataclass

from bwarp.composition.classes.class_hits_cpu import find_class_hits, find_nearest
from bwarp.composition.classes.classes_cpu import (
    ClassPlanes,
    WindowClasses,
    count_class_hits,
    find_limits,
)
from bwarp.composition.references import References
from bwarp.composition.tiles.tile_scan import TileScan

__all__ = ["ClassScan", "CountedClassScan"]


@dataclass(frozen=True)
class ClassScan:
    """Queries against classes of windows; hits are handed on to windows in a second pass."""

    references: References
    classes: WindowClasses
    planes: ClassPlanes
    threads: int

    def count(self, counts, largest):
        """How many windows each query hits: int64[n_groups]."""
        return count_class_hits(self.planes, self.planes.times, counts, largest, self.threads)

    def find(self, counts, largest):
        """All hits: how many each query has, and their positions and distances, in order."""
        return find_class_hits(
            self.references.codes, self.references.starts, self.classes, self.planes, counts,
            largest, self.threads,
        )  # fmt: skip

    def find_nearest(self, counts, largest, wanted):
        """At least the `wanted` nearest hits of each query, if it has so many; see `find`."""
        limits, nearer = find_limits(self.planes, counts, largest, wanted, self.threads)
        return find_nearest(
            self.references.codes, self.references.starts, self.classes, self.planes, counts,
            limits, nearer, wanted, self.threads,
        )  # fmt: skip


@dataclass(frozen=True)
class CountedClassScan:
    """Queries against classes that a GPU counted, which also lists the hits, tile by tile."""

    planes: ClassPlanes
    tiles: TileScan
    threads: int

    def count(self, counts, largest):
        """How many windows each query hits: int64[n_groups]."""
        return count_class_hits(self.planes, self.planes.times, counts, largest, self.threads)

    def find(self, counts, largest):
        """All hits: how many each query has, and their positions and distances, in order."""
        return self.tiles.find(counts, largest)

    def find_nearest(self, counts, largest, wanted):
        """The `wanted` nearest hits of each query, ties by position; see `find`."""
        return self.tiles.find_nearest(counts, largest, wanted)
