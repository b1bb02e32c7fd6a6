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
        everywhere = self._everywhere(counts)
        return self._list(counts, largest, everywhere, self._count(counts, largest, everywhere))

    def find_nearest(self, counts, largest, wanted):
        """At least the `wanted` nearest hits of each query, if it has so many; see `find`."""
        limits = self._limits(counts, largest, wanted)
        nearer = self.count(counts, limits - 1)
        return self.find_within(counts, limits, nearer, self.count(counts, limits), wanted)

    def find_within(self, counts, limits, nearer, within, wanted):
        """The hits below each query's limit, and at it in the first tiles until they suffice.

        Parameters
        ----------
        counts : ndarray, shape=(n_groups, 4), dtype=uint16
        limits : ndarray, shape=(n_groups,), dtype=int32
        nearer, within : ndarray, shape=(n_groups,), dtype=int64
            How many hits each query has below its limit, fewer than `wanted`, and up to it.
        """
        everywhere = self._everywhere(counts)
        # Tiles in which chance would give the missing hits eight times over.
        share = 8 * (wanted - nearer + 8) / np.maximum(within - nearer, 1)
        reach = np.ceil(everywhere * np.minimum(share, 1)).astype(np.int32)
        hits = self._count(counts, limits, reach)
        short = hits.sum(axis=1, dtype=np.int64) < np.minimum(wanted, within)
        if short.any():
            reach = np.where(short, everywhere, reach)
            hits = self._count(counts, limits, reach)
        return self._list(counts, limits, reach, hits)

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

    def _list(self, counts, largest, reach, hits):
        positions, distances = self.engine.find_tile_hits(
            self.placed, self.length, counts, largest, reach, self._tile_windows(), hits,
            self.threads,
        )  # fmt: skip
        return hits.sum(axis=1, dtype=np.int64), positions, distances
