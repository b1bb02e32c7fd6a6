"""Find all loci of a batch of reads on the CPU: cut, search, locate, verify.

    reads -> items -> parts with SA intervals -> rows -> positions -> loci
             strands  exact, or with mismatches           CPU         bounds, then edit distances

The programs of the chain call the same functions, one each, with files in between.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from bwarp.allmap.alignments_cpu import LocusAlignments, align
from bwarp.allmap.candidates_cpu import BLOCK_LETTERS, Bounds, dropped_by
from bwarp.allmap.options import Extension, FoundLoci, LocusOptions
from bwarp.allmap.parts_cpu import (
    Items,
    PartHits,
    Parts,
    hits_of,
    items_of,
    search_parts,
    seed_mismatches,
    some_items,
)
from bwarp.allmap.rounds import search_rounds
from bwarp.allmap.verify_cpu import COUNTS, find_loci
from bwarp.index.fm_index import FMIndex
from bwarp.index.locate_cpu import locate, step_to_sampled
from bwarp.mapping.extension_cpu import genome_of
from bwarp.reference import Reference
from bwarp.runtime.threads import bounded_ranges

#: Hits located and verified at a time; each takes 16 bytes for its row, position and key.
_HITS_AT_ONCE = 1 << 20


class Segments(NamedTuple):
    """Stretches of the genome without ambiguous bases or contig borders.

    Attributes
    ----------
    text : ndarray, shape=(n + 1,), dtype=int64
        The start of each in the indexed text, and the end of the text.
    starts, ends : ndarray, shape=(n,), dtype=int64
        In the genome.
    of_blocks : ndarray, dtype=int32
        The segment of each block of `BLOCK_LETTERS` of the text; -1 for a block with several.
    """

    text: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    of_blocks: np.ndarray

    @classmethod
    def of(cls, reference: Reference) -> "Segments":
        text, starts = reference.segment_text, reference.segment_genome.astype(np.int64)
        begins = np.arange(0, reference.text_length, BLOCK_LETTERS)
        first, last = (
            np.searchsorted(text, at, side="right") - 1
            for at in (begins, np.minimum(begins + BLOCK_LETTERS, reference.text_length) - 1)
        )
        of_blocks = np.where(first == last, first, -1).astype(np.int32)
        return cls(text, starts, starts + np.diff(text) - 1, of_blocks)


class TextAndGenome(NamedTuple):
    """What hits are verified against, and where contigs start."""

    blocks: np.ndarray
    segments: Segments
    contig_starts: np.ndarray


def load(reference: Reference, threads: int = 1) -> TextAndGenome:
    """Load what hits are verified against; releases the pages of a memory-mapped reference."""
    genome = genome_of(reference, threads)
    return TextAndGenome(genome.blocks, Segments.of(reference), genome.contig_starts)


class LociFinder:
    """Finds all loci of batches of reads; several threads may call it."""

    def __init__(self, index: FMIndex, genome: TextAndGenome, options: LocusOptions):
        self._index, self._genome, self._options = index, genome, options
        self._bounds = Bounds.of(options.filter, genome.blocks)

    def find_batch(
        self, both: np.ndarray, blocks: np.ndarray, offsets: np.ndarray
    ) -> tuple[FoundLoci, np.ndarray]:
        """Find all loci of the reads; return them with the counters (`verify_cpu.COUNTS`).

        Parameters
        ----------
        both : ndarray, dtype=uint8
            The reads, followed by their reverse complements at the same offsets.
        blocks : ndarray, dtype=uint64
            Their blocks.
        offsets : ndarray, shape=(n_reads + 1,), dtype=int64
        """
        counts = np.zeros(len(COUNTS), np.int64)
        find = partial(self.find_round, both, blocks, offsets, counts)
        return search_rounds(find, np.diff(offsets), self._options), counts

    def align_batch(
        self,
        both: np.ndarray,
        blocks: np.ndarray,
        offsets: np.ndarray,
        extension: Extension | None,
        loci: FoundLoci,
    ) -> LocusAlignments:
        """Align the reads of a batch at their loci; see `bwarp.allmap.alignments_cpu.align`."""
        genome = self._genome.blocks
        return align(genome, both, blocks, offsets, loci, self._options, extension)

    def find_round(self, both, blocks, offsets, counts, reads, edits) -> np.ndarray:
        """Find the loci of reads with up to `edits` edits: rows of item, start, end, distance."""
        index, genome = self._index, self._genome
        gaps = self._options.gaps_of(edits)
        mismatches = seed_mismatches(index, np.diff(offsets)[reads], edits, gaps, self._options)
        items = items_of(offsets, reads, edits, gaps, mismatches)
        parts = search_parts(index, both, items)
        counts[COUNTS.index("parts")] += parts.offsets[-1]
        found = []
        for first, last in hit_ranges(parts):
            hits, rows = hits_of(parts, first, last)
            counts[COUNTS.index("located")] += rows.size
            loci = find_loci(
                genome.blocks, blocks, some_items(items, slice(first, last)), hits,
                locate(index, rows), genome.segments, self._bounds, counts,
            )  # fmt: skip
            loci[:, 0] += first
            found.append(loci)
        rows = np.concatenate(found) if found else np.empty((0, 4), np.int64)
        rows[:, 0] = 2 * reads[rows[:, 0] >> 1] + (rows[:, 0] & 1)
        return rows


def hit_ranges(parts: Parts):
    """Yield ranges of items with as many hits as are processed at a time, or of single reads.

    Both strands of a read are in the same range.
    """
    before = np.concatenate([[0], np.cumsum(parts.n_rows, dtype=np.int64)])
    of_reads = before[parts.interval_offsets[parts.offsets[::2]]]
    for first, last in bounded_ranges(of_reads, _HITS_AT_ONCE):
        yield 2 * first, 2 * last


# The steps of the chain on the CPU, each from arrays to arrays.


class SeedingSteps:
    """Search parts, and step from their rows to sampled ones."""

    def __init__(self, index: FMIndex, _options: LocusOptions):
        self.search_parts = partial(search_parts, index)
        self.step_to_sampled = partial(step_to_sampled, index)


class VerifyingSteps:
    """Drop hits that bounds rule out, find the loci of the others, and align reads there.

    Parameters
    ----------
    reference : Reference
    threads : int
    filter : str
        The bounds that drop hits (`LocusOptions`).
    """

    def __init__(self, reference: Reference, threads: int = 1, filter: str = "off"):
        self._genome = genome = load(reference, threads)
        self._no_bounds = Bounds.of("off", genome.blocks)
        self.dropped_by = partial(
            dropped_by, genome.blocks, segments=genome.segments,
            bounds=Bounds.of(filter, genome.blocks),
        )  # fmt: skip
        self.align = partial(align, genome.blocks)

    def find_loci(
        self,
        reads: np.ndarray,
        items: Items,
        hits: PartHits,
        positions: np.ndarray,
        counts: np.ndarray,
    ) -> np.ndarray:
        """Find the loci of all hits: see `bwarp.allmap.verify_cpu.find_loci`."""
        genome = self._genome
        return find_loci(
            genome.blocks, reads, items, hits, positions, genome.segments, self._no_bounds, counts
        )
