"""Find all loci of a batch of reads on a GPU; results and counters equal those of find_cpu.

    reads -> items -> parts with SA intervals -> rows -> positions -> keys -> clusters -> loci
    host     host     one thread/item, or         one thread/hit               one thread/cluster
                      search schemes

Several threads submit batches and take turns on the GPU; data needed for more than one round stays
on the GPU between turns. Reads and loci pass through pinned memory. The CPU searches reads with
more hits than the GPU takes at once. After the host has paired loci, reads are aligned on the GPU
in a turn of their own (`alignments_cuda`). If a batch does not fit into the memory of the GPU, this
batch and all later ones are split.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bwarp.allmap import alignments_cuda, find_cpu
from bwarp.allmap.alignments_cpu import LocusAlignments, joined_alignments
from bwarp.allmap.candidates_cpu import BOUNDS, HISTOGRAM
from bwarp.allmap.clusters_cuda import LONGER
from bwarp.allmap.device_text_cuda import DeviceText, device_blocks, text_on_gpu
from bwarp.allmap.histogram_cuda import sum_bases
from bwarp.allmap.hits_cuda import SomeHits, dropped_by, keys_of_hits, located_hits
from bwarp.allmap.mismatch_parts_cuda import list_elements, search_mismatch_parts
from bwarp.allmap.near_best_cuda import loci_near_best
from bwarp.allmap.options import Extension, FoundLoci, LocusOptions, parts_needed
from bwarp.allmap.parts_cpu import (
    Items,
    PartHits,
    Parts,
    item_parts,
    items_of,
    merge_parts,
    search_by_mismatches,
    seed_mismatches,
    some_items,
)
from bwarp.allmap.parts_cuda import (
    DeviceItems,
    DeviceParts,
    ItemArrays,
    cut_rarer,
    item_columns,
    items_on_gpu,
    parts_on_host,
    rows_of_items,
    search_exact_parts,
)
from bwarp.allmap.rounds import search_rounds
from bwarp.allmap.verify_cpu import COUNTS
from bwarp.allmap.verify_cuda import FoundOnGpu, loci_of_keys, sorted_loci
from bwarp.errors import GpuMemoryError
from bwarp.gpu.cuda import cuda
from bwarp.gpu.pieces import Pieces
from bwarp.gpu.several_gpus import LeastBusy
from bwarp.gpu.sums_and_sorts import pair_sorter
from bwarp.gpu.transfers import PinnedBuffer, PinnedBuffers
from bwarp.index.device_index_cuda import DeviceIndex, make_device_index
from bwarp.index.fm_index import FMIndex
from bwarp.index.locate_cuda import step_to_sampled
from bwarp.index.memory_plan import MemoryNeeds
from bwarp.mapping.extension_cuda import genome_bytes
from bwarp.options.mapping import ALL
from bwarp.reads.device_reads_cuda import DeviceReads, both_strands
from bwarp.reference import Reference
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.threads import bounded_ranges

#: Reads per GPU batch: enough to make launching dozens of kernels cheap, few enough to give many
#: threads work; then a size nearly as fast; and a size for small GPUs.
READS_A_CHUNK = 1 << 17
ENOUGH_READS = 1 << 14
FEWEST_READS = 1 << 12

#: Approximate GPU memory per read with `_HITS_A_READ` hits; more in genomes of low complexity.
BYTES_A_READ = 16384
_HITS_A_READ = 64

#: Batches with pinned memory: one on the GPU, one before it and one after it.
_PINNED = 3

_PARTS, _LOCATED, _BY_HISTOGRAM, _BY_KMERS, _VERIFIED, _CONFIRMED = range(len(COUNTS))


@dataclass(frozen=True)
class DeviceData:
    """What stays on the GPU for all batches; `index.plan.elements` reads fit next to it.

    Attributes
    ----------
    index : DeviceIndex
    text : DeviceText
    """

    index: DeviceIndex
    text: DeviceText


def prepare(index: FMIndex, options: LocusOptions, threads: int = 1) -> DeviceData:
    """Copy an index and its genome to the GPU, to be kept for all batches with these options."""
    needs = MemoryNeeds(
        with_reverse=_needs_reverse(index, options),
        with_suffixes="yes",
        bytes_an_element=BYTES_A_READ,
        fewest=FEWEST_READS,
        enough=ENOUGH_READS,
        most=READS_A_CHUNK,
        # Includes the prefix table of the index.
        beside=genome_bytes(index.reference) + 16 * 4**index.prefix_length,
    )
    device = make_device_index(index, needs, with_lists=False, threads=threads)
    return DeviceData(device, text_on_gpu(index.reference, device.sort_pairs, threads))


def _needs_reverse(index: FMIndex, options: LocusOptions) -> bool:
    """Return whether a search may use the reverse BWT; `seed_mismatches` rejects one that needs it
    if there is none.
    """
    return index.has_reverse and options.may_search_mismatches


class LociFinder:
    """Find the loci of batches of reads, taking turns on a GPU.

    Parameters
    ----------
    genome : TextAndGenome
        On the host, for reads that the CPU searches.
    """

    def __init__(
        self,
        index: FMIndex,
        genome: find_cpu.TextAndGenome,
        device: DeviceData,
        options: LocusOptions,
    ):
        self._index, self._device, self._options = index, device, options
        self._bounds = BOUNDS[options.filter]
        self._on_host = find_cpu.LociFinder(index, genome, options)
        self._turn = threading.Lock()
        self._pinned = PinnedBuffers(_PINNED)
        self._pieces = pieces_of(device.index.plan.elements)
        self._most_hits = _HITS_A_READ * device.index.plan.elements

    def find_batch(
        self, both: np.ndarray, blocks: np.ndarray, offsets: np.ndarray
    ) -> tuple[FoundLoci, np.ndarray]:
        """Find all loci of the reads, as `bwarp.allmap.find_cpu.LociFinder.find_batch`."""

        def find(first: int, stop: int) -> tuple[int, FoundLoci, np.ndarray]:
            return first, *self._find_part(both, blocks, offsets, first, stop)

        found = self._pieces.each(find, len(offsets) - 1)
        return _joined([(first, loci) for first, loci, _ in found]), sum(one[2] for one in found)

    def align_batch(
        self,
        both: np.ndarray,
        blocks: np.ndarray,
        offsets: np.ndarray,
        extension: Extension | None,
        loci: FoundLoci,
    ) -> LocusAlignments:
        """Align the reads of a batch at their loci; alignments as on the CPU.

        The reads are copied to the GPU once more, a byte per base: keeping them there between turns
        would take memory for every chunk under way.
        """

        def align(first: int, last: int) -> LocusAlignments:
            some, genome = some_loci(loci, first, last), self._device.text.arrays.blocks
            one, stop = int(some.reads[0]), int(some.reads[-1]) + 1
            here = offsets[one : stop + 1] - offsets[one]
            reads = self._on_gpu(both[offsets[one] : offsets[stop]], here)
            some = replace(some, reads=some.reads - one)
            return alignments_cuda.align(
                genome, reads.blocks, here, some, self._options, extension, self._turn
            )

        return joined_alignments(_in_pieces(align, len(loci.reads)))

    def _on_gpu(self, codes: np.ndarray, offsets: np.ndarray) -> DeviceReads:
        """Copy reads to the GPU."""
        with self._pinned.lent() as pinned:
            (on_way,) = pinned.arrays(codes.size, [np.uint8])
            on_way[:] = codes
            with self._turn:
                return both_strands(on_way, offsets)

    def _find_part(self, both, blocks, offsets, first: int, stop: int):
        """Find loci of reads `first` to `stop`, numbered from `first`, and the counters."""
        here = offsets[first : stop + 1] - offsets[first]
        reads = self._on_gpu(both[offsets[first] : offsets[stop]], here)
        if self._bounds & HISTOGRAM:
            with self._turn:
                sum_bases(reads.blocks)
        counts = np.zeros(len(COUNTS), np.int64)

        def find(numbers: np.ndarray, edits: np.ndarray) -> np.ndarray:
            gaps = self._options.gaps_of(edits)
            lengths = np.diff(here)[numbers]
            mismatches = seed_mismatches(self._index, lengths, edits, gaps, self._options)
            items = items_of(here, numbers, edits, gaps, mismatches)
            if not mismatches.any():
                rows, is_crowded = self._find_items(reads, items, counts)
            else:
                is_crowded = np.zeros(len(items.begins), bool)
                found = []
                for m in np.unique(mismatches):
                    some = np.flatnonzero(items.mismatches == m)
                    of_these = some_items(items, some)
                    rows, is_crowded[some] = self._find_items(reads, of_these, counts)
                    rows[:, 0] = some[rows[:, 0]]
                    found.append(rows)
                rows = _in_order(found)
            rows[:, 0] = 2 * numbers[rows[:, 0] >> 1] + (rows[:, 0] & 1)
            crowded = np.flatnonzero(is_crowded[::2])
            if crowded.size:
                more = self._on_host.find_round(
                    both, blocks, offsets, counts, first + numbers[crowded], edits[crowded]
                )
                more[:, 0] -= 2 * first
                rows = _in_order([rows, more])
            return rows

        return search_rounds(find, np.diff(here), self._options), counts

    def _find_items(
        self, reads: DeviceReads, items: Items, counts: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Find the loci of items searched with the same mismatches: rows as in find_cpu.

        Returns
        -------
        rows : ndarray, shape=(n, 4), dtype=int64
        is_crowded : ndarray, shape=(n_items,), dtype=bool
            Items of reads with more hits than are processed at once; they are left out.
        """
        mismatches = int(items.mismatches[0])
        n_parts = parts_needed(items.edits, items.gaps, mismatches)
        index, halvings = self._device.index, self._pieces.halvings
        with self._pinned.lent() as pinned, self._turn:
            on_gpu = items_on_gpu(items)
            parts, n_rows = search_group(index, reads.both, on_gpu, n_parts, mismatches, halvings)
            hits_at_once = max(self._most_hits >> halvings, 1)
            is_crowded = (n_rows > hits_at_once).reshape(-1, 2).any(axis=1).repeat(2)
            counts[_PARTS] += n_parts[~is_crowded].sum()
            counts[_LOCATED] += n_rows[~is_crowded].sum()
            # A crowded item forms a range of its own.
            sizes = np.where(is_crowded, hits_at_once + 1, n_rows)
            found = [
                self._find_range(reads, on_gpu, parts, *bounds, pinned, counts)
                for bounds in bounded_ranges(item_parts(sizes), hits_at_once)
                if not is_crowded[bounds[0]]
            ]
        # Ranges of items are consecutive.
        return np.concatenate([np.empty((0, 4), np.int64), *found]), is_crowded

    def _find_range(
        self, reads: DeviceReads, items: DeviceItems, parts: DeviceParts, first: int, last: int,
        pinned: PinnedBuffer, counts,
    ) -> np.ndarray:  # fmt: skip
        """Find the loci of the items from `first` to `last`."""
        text = self._device.text
        hits = located_hits(self._device.index, parts, first, last)
        keys, by_histogram, by_kmers = keys_of_hits(
            text, reads.blocks, items, parts, hits, self._bounds
        )
        found = loci_of_keys(text, reads.blocks, items, parts, keys)
        counts[_BY_HISTOGRAM] += by_histogram
        counts[_BY_KMERS] += by_kmers
        counts[_VERIFIED] += found.verified
        counts[_CONFIRMED] += found.confirmed
        if self._options.strata != ALL:
            found = loci_near_best(found, items.count, self._options.strata)
        found = sorted_loci(text, items.count, found)
        return rows_of(found, items.on_host.lengths, pinned)


def search_group(
    device: DeviceIndex,
    both,
    items: DeviceItems,
    n_parts: np.ndarray,
    mismatches: int,
    halvings: int = 0,
) -> tuple[DeviceParts, np.ndarray]:
    """Cut and search items with the same mismatches; return their parts, and the rows of each.

    Parameters
    ----------
    both : device array, dtype=uint8
        The reads on both strands.
    halvings : int
        How many times the batches were halved for lack of memory.
    """
    if mismatches:
        elements = list_elements(device.plan.work_bytes >> halvings)
        parts = search_mismatch_parts(device, both, items, n_parts, mismatches, elements)
        return parts, rows_of_items(parts)
    parts, n_rows = search_exact_parts(device, both, items, n_parts)
    if cut_rarer(device, both, items, parts, n_rows):
        n_rows = rows_of_items(parts)
    return parts, n_rows


class FinderOnGpus:
    """Finds the loci of a batch as the finder of the least busy GPU does."""

    def __init__(self, finders: Sequence[LociFinder]):
        self._finders = LeastBusy(finders)

    def find_batch(
        self, both: np.ndarray, blocks: np.ndarray, offsets: np.ndarray
    ) -> tuple[FoundLoci, np.ndarray]:
        with self._finders.lent() as finder:
            return finder.find_batch(both, blocks, offsets)

    def align_batch(
        self,
        both: np.ndarray,
        blocks: np.ndarray,
        offsets: np.ndarray,
        extension: Extension | None,
        loci: FoundLoci,
    ) -> LocusAlignments:
        with self._finders.lent() as finder:
            return finder.align_batch(both, blocks, offsets, extension, loci)


def pieces_of(at_once: int) -> Pieces:
    """Return pieces that start with `at_once` reads or items."""
    return Pieces(
        at_once, GpuMemoryError("finding the loci of a read requires more GPU memory than is free")
    )


def rows_of(found: FoundOnGpu, lengths: np.ndarray, pinned: PinnedBuffer) -> np.ndarray:
    """Copy loci to the host as rows of item, start, end and distance, shape=(n, 4), dtype=int64."""
    rows = np.empty((found.count, 4), np.int64)
    if found.count:
        loci, shapes = pinned.arrays(found.count, [np.uint64, np.uint32])
        found.loci[: found.count].copy_to_host(loci)
        found.shapes[: found.count].copy_to_host(shapes)
        _part_bits(loci, shapes, lengths, rows)
    return rows


# One pass: there may be a hundred loci per read, and the GPU waits.
@compiled
def _part_bits(loci, shapes, lengths, rows):
    for i in range(loci.size):
        item, start = np.int64(loci[i] >> np.uint64(32)), np.int64(loci[i] & np.uint64(0xFFFFFFFF))
        shape = np.int64(shapes[i])
        rows[i, 0] = item
        rows[i, 1] = start
        rows[i, 2] = start + np.int64(lengths[item]) + (shape >> 8) - LONGER
        rows[i, 3] = shape & 0xFF


def _in_order(found: list[np.ndarray]) -> np.ndarray:
    """Merge the rows of several lists in the order of items."""
    rows = np.concatenate(found)
    return rows[np.argsort(rows[:, 0], kind="stable")]


def some_loci(loci: FoundLoci, first: int, last: int) -> FoundLoci:
    """Return a range of loci."""
    *columns, searched = vars(loci).values()
    return FoundLoci(*(column[first:last] for column in columns), searched)


def _joined(found: list[tuple[int, FoundLoci]]) -> FoundLoci:
    """Join the loci of batches of reads; each comes with the number of its first read."""
    if len(found) == 1:
        return found[0][1]
    columns = zip(*(vars(loci).values() for _, loci in found), strict=True)
    reads = np.concatenate([first + loci.reads for first, loci in found])
    _, *others = map(np.concatenate, columns)
    return FoundLoci(reads, *others)


# The steps of the chain on a GPU, each from host arrays to host arrays.
#
#     search_parts, step_to_sampled     with the index on the GPU
#     dropped_by, find_loci, align      with the genome on the GPU
#
# Several threads call them and take turns on the GPU. Before its turn, a thread copies its input to
# pinned memory. Work that does not fit into the memory of the GPU is done in pieces.


class SeedingSteps:
    """Search parts, and step from their rows to sampled ones; results as on the CPU.

    Parameters
    ----------
    index : FMIndex
    options : LocusOptions
        Of all searches.
    """

    def __init__(self, index: FMIndex, options: LocusOptions):
        needs = MemoryNeeds(
            with_reverse=_needs_reverse(index, options),
            with_suffixes="no",
            bytes_an_element=BYTES_A_READ,
            fewest=FEWEST_READS,
            enough=ENOUGH_READS,
            most=READS_A_CHUNK,
            beside=16 * 4**index.prefix_length,
        )
        self._index, self._device = index, make_device_index(index, needs, with_lists=False)
        self._turn, self._pinned = threading.Lock(), PinnedBuffers(_PINNED)

    def search_parts(self, both: np.ndarray, items: Items) -> Parts:
        """Do what `parts_cpu.search_parts` does."""

        def search_items(of_these: Items, n_parts: np.ndarray, mismatches: int) -> Parts:
            def search(first: int, last: int) -> Parts:
                some = some_items(of_these, slice(first, last))
                with self._pinned.lent() as pinned:
                    filled = pinned.filled([both, *item_columns(some)])
                    with self._turn:
                        codes, *columns = filled.to_gpu()
                        on_gpu = DeviceItems(ItemArrays(*columns), some)
                        parts, _ = search_group(
                            self._device, codes, on_gpu, n_parts[first:last], mismatches
                        )
                        return parts_on_host(parts)

            # Both items of a read are searched together.
            found = _in_pieces(search, len(n_parts), step=2)
            if len(found) == 1:
                return found[0]
            sizes = [len(parts.offsets) - 1 for parts in found]
            return merge_parts(np.split(np.arange(len(n_parts)), np.cumsum(sizes)[:-1]), found)

        return search_by_mismatches(items, search_items)

    def step_to_sampled(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Do what `bwarp.index.locate_cpu.step_to_sampled` does."""

        def walk(first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
            with self._pinned.lent() as pinned:
                filled = pinned.filled([rows[first:last]])
                with self._turn:
                    (sampled,) = filled.to_gpu()
                    steps = cuda.device_array(last - first, np.uint32)
                    rate = self._index.sa_rate
                    step_to_sampled(self._device.forward, rate, sampled, steps, last - first)
                    return sampled.copy_to_host(), steps.copy_to_host()

        found = _in_pieces(walk, rows.size)
        columns = zip(np.empty((2, 0), np.uint32), *found, strict=True)
        sampled, steps = (np.concatenate(column) for column in columns)
        return sampled, steps


class VerifyingSteps:
    """Drop hits that bounds rule out, find the loci of the others, and align reads there;
    parameters and results are those of the CPU.
    """

    def __init__(self, reference: Reference, threads: int = 1, filter: str = "off"):
        self._text = text_on_gpu(reference, pair_sorter(), threads)
        self._bounds = BOUNDS[filter]
        self._turn, self._pinned = threading.Lock(), PinnedBuffers(_PINNED)

    def dropped_by(
        self, reads: np.ndarray, items: Items, hits: PartHits, positions: np.ndarray
    ) -> np.ndarray:
        """Do what `bwarp.allmap.candidates_cpu.dropped_by` does, without the genome."""

        def bound(first: int, last: int) -> np.ndarray:
            some = SomeHits.of(items, hits, positions, first, last)
            with self._pinned.lent() as pinned:
                filled = pinned.filled([layout, *some.columns])
                with self._turn:
                    blocks, *columns = filled.to_gpu()
                    if self._bounds & HISTOGRAM:
                        sum_bases(blocks)
                    of_items, parts, there = some.on_gpu(columns)
                    by = dropped_by(self._text, blocks, of_items, parts, there, self._bounds)
                    return by.copy_to_host()[: there.count]

        layout = device_blocks(reads)
        found = _in_pieces(bound, len(items.begins))
        return np.concatenate([np.empty(0, np.uint8), *found])

    def find_loci(
        self,
        reads: np.ndarray,
        items: Items,
        hits: PartHits,
        positions: np.ndarray,
        counts: np.ndarray,
    ) -> np.ndarray:
        """Find the loci of all hits, as `VerifyingSteps.find_loci` of find_cpu does."""

        def find(first: int, last: int) -> tuple[np.ndarray, np.ndarray]:
            some = SomeHits.of(items, hits, positions, first, last)
            with self._pinned.lent() as pinned:
                filled = pinned.filled([layout, *some.columns])
                with self._turn:
                    blocks, *columns = filled.to_gpu()
                    of_items, parts, there = some.on_gpu(columns)
                    keys, _, _ = keys_of_hits(self._text, blocks, of_items, parts, there)
                    loci = loci_of_keys(self._text, blocks, of_items, parts, keys)
                    loci = sorted_loci(self._text, of_items.count, loci)
                    rows = rows_of(loci, some.items.lengths, pinned)
            rows[:, 0] += first
            return rows, np.array([loci.verified, loci.confirmed])

        layout = device_blocks(reads)
        found = _in_pieces(find, len(items.begins))
        for _, of_piece in found:
            counts[_VERIFIED:] += of_piece
        return np.concatenate([np.empty((0, 4), np.int64), *(rows for rows, _ in found)])

    def align(
        self,
        both: np.ndarray,
        blocks: np.ndarray,
        offsets: np.ndarray,
        loci: FoundLoci,
        limits: LocusOptions,
        extension: Extension | None,
    ) -> LocusAlignments:
        """Do what `bwarp.allmap.alignments_cpu.align` does, without the genome."""

        def align(first: int, last: int) -> LocusAlignments:
            some, genome = some_loci(loci, first, last), self._text.arrays.blocks
            with self._pinned.lent() as pinned:
                filled = pinned.filled([layout])
                with self._turn:
                    (on_gpu,) = filled.to_gpu()
            return alignments_cuda.align(
                genome, on_gpu, offsets, some, limits, extension, self._turn
            )

        layout = device_blocks(blocks)
        return joined_alignments(_in_pieces(align, len(loci.reads)))


def _in_pieces(work: Callable, count: int, step: int = 1) -> list:
    """Call ``work(first, last)`` on as few ranges of items as the memory of the GPU allows; ranges
    start at multiples of `step`.
    """
    return pieces_of(count).each(work, count, step) if count else []
