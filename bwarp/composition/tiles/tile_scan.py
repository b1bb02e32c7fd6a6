"""One length of a scan by an engine that meets windows tile by tile (tiles or gather).

An engine is a module with `count_type`, `prepare_references`, `count_tile_hits` and
`find_tile_hits`; `tiles_cpu` documents them.
"""

from dataclasses import dataclass
from types import ModuleType

import numpy as np

from bwarp.composition.hit_blocks import best_hits

__all__ = ["TileScan"]

#: Counts are kept for at most about this many tiles of the references.
_MOST_TILES = 2048
_SMALLEST_TILE = 4096
#: How much longer the references are up to the end of each part than up to the end of the one
#: before, where the best hits are wanted.
_GROWTH = 32
#: Comparisons in the first part, which may all be hits.
_FIRST_COMPARISONS = 1 << 23


@dataclass(frozen=True)
class TileScan:
    """Every query of one length against every window.

    Attributes
    ----------
    engine : module
    prepared : object
        The references as the engine's `prepare_references` made them.
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
        """How many windows each query hits: int64[n_groups]."""
        return self._count(counts, largest, 0, self.n_positions).sum(axis=1, dtype=np.int64)

    def find(self, counts, largest):
        """All hits: how many each query has, and their positions and distances, in order."""
        return self._find(counts, largest, 0, self.n_positions)

    def find_nearest(self, counts, largest, wanted):
        """The `wanted` nearest hits of each query, ties by position; see `find`.

        The references are looked through in parts, each much longer than all before. A query that
        has as many hits as are wanted goes on with only what is nearer than the worst of them,
        since a later one at the same distance loses the tie, and it stops where nothing is nearer.
        So there are few hits in any part, and most queries stop early.
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

    def _tile_windows(self, first: int, stop: int) -> int:
        tiles = -(-(stop - first) // _SMALLEST_TILE)
        return _SMALLEST_TILE * -(-tiles // _MOST_TILES)

    def _count(self, counts, largest, first, stop):
        return self.engine.count_tile_hits(
            self.prepared, self.length, counts, largest, first, stop,
            self._tile_windows(first, stop), self.threads,
        )  # fmt: skip

    def _find(self, counts, largest, first, stop):
        hits = self._count(counts, largest, first, stop)
        positions, distances = self.engine.find_tile_hits(
            self.prepared, self.length, counts, largest, first, stop,
            self._tile_windows(first, stop), hits, self.threads,
        )  # fmt: skip
        return hits.sum(axis=1, dtype=np.int64), positions, distances


def _keep_best(groups, positions, distances, wanted, largest):
    """The best of some hits, and the distance up to which each query can still use more."""
    order = np.argsort(groups, kind="stable")
    hits = np.bincount(groups, minlength=len(largest))
    hits, positions, distances = best_hits(hits, positions[order], distances[order], wanted)
    limits = largest.copy()
    full = hits == wanted
    worst = np.cumsum(hits)[full] - 1
    limits[full] = distances[worst].astype(np.int32) - 1
    return (np.repeat(np.arange(len(hits)), hits), positions, distances), limits
