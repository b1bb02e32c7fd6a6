"""One length of a scan by an engine that meets windows tile by tile (tiles or gather).

An engine is a module with `count_type`, `place_references`, `count_tile_hits` and
`find_tile_hits`; `tiles_cpu` documents them.
"""

from dataclasses import dataclass
from types import ModuleType

import numpy as np

__all__ = ["TileScan"]

#: Counts are kept for at most about this many tiles of the references.
_MOST_TILES = 2048
_SMALLEST_TILE = 4096


@dataclass(frozen=True)
class TileScan:
    """Every query of one length against every window.

    Attributes
    ----------
    engine : module
    placed : object
        The references as the engine's `place_references` made them.
    n_positions : int
        Letters of all references.
    length : int
    threads : int
    """

    engine: ModuleType
    placed: object
    n_positions: int
    length: int
    threads: int

    def count(self, counts, largest):
        """How many windows each query hits: int64[n_groups]."""
        return self._count(counts, largest, self._everywhere(counts)).sum(axis=1, dtype=np.int64)

    def find(self, counts, largest):
        """All hits: how many each query has, and their positions and distances, in order."""
        return self._find(counts, largest, self._everywhere(counts))

    def find_nearest(self, counts, largest, wanted):
        """At least the `wanted` nearest hits of each query, if it has so many; see `find`."""
        return self.find_within(counts, self._limits(counts, largest, wanted), wanted)

    def find_within(self, counts, limits, wanted):
        """The hits below each query's limit, and at it in the first tiles until they suffice."""
        everywhere = self._everywhere(counts)
        nearer = self._count(counts, limits - 1, everywhere)
        at_limit = self._count(counts, limits, everywhere) - nearer
        missing = wanted - nearer.sum(axis=1, dtype=np.int64)
        short = np.cumsum(at_limit, axis=1, dtype=np.int64) < missing[:, None]
        reach = np.minimum(short.sum(axis=1) + 1, short.shape[1])
        return self._find(counts, limits, reach.astype(np.int32))

    def _limits(self, counts, largest, wanted):
        """The smallest distance within which each query has `wanted` hits, by halving."""
        low, high = np.zeros_like(largest), largest.copy()
        while (low < high).any():
            middle = (low + high) // 2
            enough = self.count(counts, middle) >= wanted
            high = np.where(enough & (low < high), middle, high)
            low = np.where(~enough & (low < high), middle + 1, low)
        return high

    def _tile_windows(self) -> int:
        tiles = max(1, -(-self.n_positions // _SMALLEST_TILE))
        return _SMALLEST_TILE * -(-tiles // _MOST_TILES)

    def _everywhere(self, counts):
        return np.full(len(counts), -(-self.n_positions // self._tile_windows()), np.int32)

    def _count(self, counts, largest, reach):
        return self.engine.count_tile_hits(
            self.placed, self.length, counts, largest, reach, self._tile_windows(), self.threads
        )

    def _find(self, counts, largest, reach):
        hits = self._count(counts, largest, reach)
        positions, distances = self.engine.find_tile_hits(
            self.placed, self.length, counts, largest, reach, self._tile_windows(), hits,
            self.threads,
        )  # fmt: skip
        return hits.sum(axis=1, dtype=np.int64), positions, distances
