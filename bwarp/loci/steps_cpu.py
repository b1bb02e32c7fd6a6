"""The steps of the chain on the CPU, each alone, from arrays to arrays."""

import numpy as np

from bwarp.index import locate_cpu
from bwarp.index.fm_index import FMIndex
from bwarp.loci.find_cpu import load
from bwarp.loci.searching import search_cpu
from bwarp.loci.searching.parts import Items, PartHits, Parts
from bwarp.loci.verifying import candidates_cpu, loci_cpu
from bwarp.reference import Reference

__all__ = ["SeedingSteps", "VerifyingSteps"]


class SeedingSteps:
    """Searches parts, and takes their rows to sampled ones."""

    def __init__(self, index: FMIndex):
        self._index = index

    def search_parts(self, both: np.ndarray, items: Items) -> Parts:
        """See `bwarp.loci.searching.search_cpu.search_parts`."""
        return search_cpu.search_parts(self._index, both, items)

    def step_to_sampled(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """See `bwarp.index.locate_cpu.step_to_sampled`."""
        return locate_cpu.step_to_sampled(self._index, rows)


class VerifyingSteps:
    """Drops hits that a bound proves to have no locus, and finds the loci of hits."""

    def __init__(self, reference: Reference, threads: int = 1):
        self._genome = load(reference, threads)

    def may_have_loci(
        self, reads: np.ndarray, items: Items, hits: PartHits, positions: np.ndarray
    ) -> np.ndarray:
        """See `bwarp.loci.verifying.candidates_cpu.may_have_loci`."""
        genome = self._genome
        return candidates_cpu.may_have_loci(
            genome.blocks, reads, items, hits, positions, genome.segments
        )

    def find_loci(
        self,
        reads: np.ndarray,
        items: Items,
        hits: PartHits,
        positions: np.ndarray,
        use_filter: bool,
        counts: np.ndarray,
    ) -> np.ndarray:
        """See `bwarp.loci.verifying.loci_cpu.find_loci`."""
        genome = self._genome
        return loci_cpu.find_loci(
            genome.blocks, reads, items, hits, positions, genome.segments, use_filter, counts
        )
