"""The steps of the chain on a GPU, each alone, from arrays on the host to such on the host.

    search_parts, step_to_sampled     the index is on the GPU
    may_have_loci, find_loci          the genome is

They are called by several threads, and take turns. What does not fit into the memory of the GPU is
done in pieces.
"""

import threading
from collections.abc import Callable

import numpy as np

from bwarp.gpu.cuda import cuda
from bwarp.gpu.pinned_memory import PinnedBuffer
from bwarp.gpu.radix_sort import pair_sorter
from bwarp.index.device_index_cuda import make_device_index
from bwarp.index.fm_index import FMIndex
from bwarp.index.locate_cuda import step_to_sampled
from bwarp.index.memory_plan import MemoryNeeds
from bwarp.loci.find_cuda import (
    BYTES_A_READ,
    ENOUGH_READS,
    FEWEST_READS,
    READS_A_CHUNK,
    pieces_of,
    rows_of,
)
from bwarp.loci.searching.device_parts_cuda import (
    items_on_gpu,
    parts_on_host,
)
from bwarp.loci.searching.exact_parts_cuda import search_exact_parts
from bwarp.loci.searching.parts import Items, PartHits, Parts, merge_parts, some_items
from bwarp.loci.searching.rare_cuts_cuda import cut_rarer
from bwarp.loci.searching.search_cpu import search_by_mismatches
from bwarp.loci.verifying.device_text_cuda import blocks_on_gpu, text_on_gpu
from bwarp.loci.verifying.hits_cuda import hits_on_gpu, keys_of_hits, mark_hits
from bwarp.loci.verifying.loci_cpu import COUNTS
from bwarp.loci.verifying.loci_cuda import loci_of_keys, sorted_loci
from bwarp.reference import Reference

__all__ = ["SeedingSteps", "VerifyingSteps"]


class SeedingSteps:
    """Searches parts, and takes their rows to sampled ones: as the functions of the CPU do.

    Parameters
    ----------
    index : FMIndex
    """

    def __init__(self, index: FMIndex):
        needs = MemoryNeeds(
            with_reverse=False,
            with_suffixes="no",
            bytes_an_element=BYTES_A_READ,
            fewest=FEWEST_READS,
            enough=ENOUGH_READS,
            most=READS_A_CHUNK,
            beside=16 * 4**index.prefix_length,
        )
        self._index, self._device = index, make_device_index(index, needs, with_lists=False)
        self._turn = threading.Lock()

    def search_parts(self, both: np.ndarray, items: Items) -> Parts:
        """As `search_cpu.search_parts`; parts with mismatches are searched there."""
        return search_by_mismatches(self._index, both, items, self._search_exact)

    def _search_exact(self, both: np.ndarray, items: Items, n_parts: np.ndarray) -> Parts:
        def search(first: int, last: int) -> Parts:
            some = items_on_gpu(some_items(items, slice(first, last)))
            codes = cuda.to_device(both)
            parts, rows = search_exact_parts(self._device, codes, some, n_parts[first:last])
            cut_rarer(self._device, codes, some, parts, rows)
            return parts_on_host(parts)

        found = _in_pieces(search, len(n_parts), self._turn)
        if len(found) == 1:
            return found[0]
        sizes = [len(parts.offsets) - 1 for parts in found]
        return merge_parts(np.split(np.arange(len(n_parts)), np.cumsum(sizes)[:-1]), found)

    def step_to_sampled(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As `bwarp.index.locate_cpu.step_to_sampled`."""

        def walk(first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
            sampled = cuda.to_device(rows[first:last])
            steps = cuda.device_array(last - first, np.uint32)
            step_to_sampled(
                self._device.forward, self._device.first_rows, self._index.sa_rate, sampled, steps,
                last - first,
            )  # fmt: skip
            return sampled.copy_to_host(), steps.copy_to_host()

        found = _in_pieces(walk, rows.size, self._turn)
        columns = zip(np.empty((2, 0), np.uint32), *found, strict=True)
        sampled, steps = (np.concatenate(column) for column in columns)
        return sampled, steps


class VerifyingSteps:
    """Drops hits that a bound proves to have no locus, and finds the loci of hits: as the CPU does.

    Parameters
    ----------
    reference : Reference
    """

    def __init__(self, reference: Reference, threads: int = 1):
        self._text = text_on_gpu(reference, pair_sorter(), threads)
        self._turn = threading.Lock()
        self._pinned = PinnedBuffer()
        self._reads = self._blocks = None

    def may_have_loci(
        self, reads: np.ndarray, items: Items, hits: PartHits, positions: np.ndarray
    ) -> np.ndarray:
        """As `bwarp.loci.verifying.candidates_cpu.may_have_loci`, without the genome."""

        def bound(first: int, last: int) -> np.ndarray:
            on_gpu = items_on_gpu(some_items(items, slice(first, last)))
            parts, some = hits_on_gpu(hits, positions, first, last)
            kept = mark_hits(self._text, self._blocks_of(reads), on_gpu, parts, some)
            return kept.copy_to_host()[: some.count].astype(bool)

        found = _in_pieces(bound, len(items.begins), self._turn)
        return np.concatenate([np.empty(0, bool), *found])

    def find_loci(
        self,
        reads: np.ndarray,
        items: Items,
        hits: PartHits,
        positions: np.ndarray,
        use_filter: bool,
        counts: np.ndarray,
    ) -> np.ndarray:
        """As `bwarp.loci.verifying.loci_cpu.find_loci`, without the genome."""

        def find(first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
            on_gpu = items_on_gpu(some_items(items, slice(first, last)))
            parts, some = hits_on_gpu(hits, positions, first, last)
            blocks = self._blocks_of(reads)
            keys = keys_of_hits(self._text, blocks, on_gpu, parts, some, use_filter)
            loci = loci_of_keys(self._text, blocks, on_gpu, parts, keys)
            loci = sorted_loci(self._text, on_gpu.count, loci)
            rows = rows_of(loci, on_gpu.on_host.lengths, self._pinned)
            rows[:, 0] += first
            return rows, np.array([some.count - keys.count, loci.verified, loci.confirmed])

        found = _in_pieces(find, len(items.begins), self._turn)
        for _, of_piece in found:
            counts[COUNTS.index("dropped") :] += of_piece
        return np.concatenate([np.empty((0, 4), np.int64), *(rows for rows, _ in found)])

    def _blocks_of(self, reads: np.ndarray):
        """The reads of a chunk on the GPU, where they stay for all frames of its hits."""
        if reads is not self._reads:
            # Those of two chunks may be too much.
            self._reads = self._blocks = None
            self._reads, self._blocks = reads, blocks_on_gpu(reads)
        return self._blocks


def _in_pieces(work: Callable, count: int, turn: threading.Lock) -> list:
    """``work(first, last)`` of ranges of items, as few as fit into the memory of the GPU."""
    with turn:
        return pieces_of(count).each(work, count) if count else []
