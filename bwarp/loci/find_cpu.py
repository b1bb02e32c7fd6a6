"""All loci of a batch of reads on the CPU: cut, search, locate, verify.

    reads -> items -> parts with SA intervals -> rows -> positions -> loci
             strands  exact, or with mismatches           CPU         bound, then edit distances

Where only the best loci are wanted, few edits are allowed first: most reads have their locus with
one or none, and are searched no further.
"""

from typing import NamedTuple

import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.index.locate_cpu import locate
from bwarp.index.reverse import require_reverse
from bwarp.loci.exact_parts_cpu import search_exact_parts
from bwarp.loci.loci_cpu import COUNTS, find_loci
from bwarp.loci.mismatch_parts_cpu import can_search, search_mismatch_parts
from bwarp.loci.options import ALL, FoundLoci, LocusOptions
from bwarp.loci.parts import Items, Parts, rows_of
from bwarp.loci.rare_cuts_cpu import cut_rarer
from bwarp.loci.seeding_rule import best_mismatches, parts_needed
from bwarp.mapping.extension.extension_cpu import genome_of
from bwarp.reference import Reference
from bwarp.runtime.ranges import bounded_ranges

__all__ = ["Segments", "TextAndGenome", "find_batch", "load", "rounds"]

#: Hits that are located and verified at a time: their rows, positions and keys are 16 bytes each.
_HITS_AT_ONCE = 1 << 20


class Segments(NamedTuple):
    """Stretches of the genome without an ambiguous base or a contig's border.

    Attributes
    ----------
    text : ndarray, shape=(n + 1,), dtype=int64
        Where each begins in the indexed text, and where that ends.
    starts, ends : ndarray, shape=(n,), dtype=int64
        In the genome.
    """

    text: np.ndarray
    starts: np.ndarray
    ends: np.ndarray

    @classmethod
    def of(cls, reference: Reference) -> "Segments":
        starts = reference.segment_genome.astype(np.int64)
        return cls(reference.segment_text, starts, starts + np.diff(reference.segment_text) - 1)


class TextAndGenome(NamedTuple):
    """What loci are verified against."""

    blocks: np.ndarray
    segments: Segments


def load(reference: Reference, threads: int = 1) -> TextAndGenome:
    """What loci of a reference are verified against; the pages of one in a file are let go of."""
    return TextAndGenome(genome_of(reference, threads).blocks, Segments.of(reference))


def find_batch(
    index: FMIndex,
    genome: TextAndGenome,
    both: np.ndarray,
    blocks: np.ndarray,
    offsets: np.ndarray,
    options: LocusOptions,
) -> tuple[FoundLoci, np.ndarray]:
    """All loci of some reads, and how many of what it took (`loci_cpu.COUNTS`).

    Parameters
    ----------
    both : ndarray, dtype=uint8
        The reads, then their reverse complements at the same offsets.
    blocks : ndarray, dtype=uint64
        Their blocks.
    offsets : ndarray, shape=(n_reads + 1,), dtype=int64
    """
    lengths = np.diff(offsets)
    edits = options.edits_of(lengths)
    # Every part needs a base.
    searched = np.where(lengths > edits, 0, -1).astype(np.int32)
    counts = np.zeros(len(COUNTS), np.int64)
    found, waiting = [], np.flatnonzero(searched >= 0)
    for allowed in rounds(int(edits[waiting].max(initial=0)), options.strata):
        if not waiting.size:
            break
        limit = np.minimum(edits[waiting], allowed)
        rows = _find(index, genome, both, blocks, offsets, waiting, limit, options, counts)
        searched[waiting] = limit
        best = _best(rows, len(lengths))[waiting]
        # Every locus near the best one is known, or there are no more edits to allow.
        done = limit == edits[waiting]
        if options.strata != ALL:
            done |= best + options.strata <= limit
        found.append(rows[np.isin(rows[:, 0] >> 1, waiting[done])])
        waiting = waiting[~done]
    rows = np.concatenate(found) if found else np.empty((0, 4), np.int64)
    if len(found) > 1:
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
    if options.strata != ALL:
        reads = rows[:, 0] >> 1
        rows = rows[rows[:, 3] <= _best(rows, len(lengths))[reads] + options.strata]
    item, starts, ends, distances = rows.T
    loci = FoundLoci(
        item >> 1, (item & 1).astype(np.uint8), starts.copy(), ends.copy(),
        distances.astype(np.int32), searched,
    )  # fmt: skip
    return loci, counts


def rounds(edits: int, strata: int) -> list[int]:
    """Edits that are allowed one round after the other."""
    if strata == ALL:
        return [edits]
    first = min(edits, strata + 1)
    return [first] if first == edits else [first, edits]


def _best(rows: np.ndarray, n_reads: int) -> np.ndarray:
    """The distance of the best locus of each read; far more than any where there is none."""
    best = np.full(n_reads, 1 << 30, np.int64)
    np.minimum.at(best, rows[:, 0] >> 1, rows[:, 3])
    return best


def _find(index, genome, both, blocks, offsets, reads, edits, options, counts) -> np.ndarray:
    """The loci of some reads with at most so many edits: rows of item, start, end, distance."""
    begins = offsets[reads]
    lengths = offsets[reads + 1] - begins
    gaps = options.gaps_of(edits)
    items = Items(
        np.column_stack([begins, begins + both.size // 2]).reshape(-1),
        *(np.repeat(column, 2) for column in (lengths, edits, gaps)),
    )
    found = []
    mismatches = _mismatches_of(lengths, edits, gaps, options, index)
    for m in np.unique(mismatches):
        some = np.flatnonzero(np.repeat(mismatches, 2) == m)
        chosen = Items(*(column[some] for column in items))
        n_parts = parts_needed(chosen.edits, chosen.gaps, m)
        if m:
            parts = search_mismatch_parts(index, both, chosen, n_parts, int(m))
        else:
            parts = search_exact_parts(index, both, chosen, n_parts)
            cut_rarer(index, both, chosen, parts)
        rows = _verify(index, genome, blocks, chosen, parts, int(m), options.use_filter, counts)
        item = some[rows[:, 0]]
        rows[:, 0] = 2 * reads[item >> 1] + (item & 1)
        found.append(rows)
    if len(found) == 1:
        return found[0]
    rows = np.concatenate(found) if found else np.empty((0, 4), np.int64)
    return rows[np.argsort(rows[:, 0], kind="stable")]


def _mismatches_of(lengths, edits, gaps, options: LocusOptions, index: FMIndex) -> np.ndarray:
    """The mismatches of a part of each read."""
    mismatches = np.zeros(len(lengths), np.int64)
    if options.mismatches == 0 or (options.mismatches is None and not index.has_reverse):
        return mismatches
    kinds, kind_of = np.unique(np.column_stack([lengths, edits, gaps]), axis=0, return_inverse=True)
    for number, (length, e, g) in enumerate(kinds.tolist()):
        m = options.mismatches
        if m is None:
            m = best_mismatches(length, e, g, index.forward.n_rows)
        m = min(m, e)
        # Parts that are too short for search schemes are searched without mismatches.
        if m and can_search(length, parts_needed(e, g, m)):
            mismatches[kind_of.reshape(-1) == number] = m
    if mismatches.any():
        require_reverse(index, "a search of parts with mismatches")
    return mismatches


def _verify(
    index, genome: TextAndGenome, blocks, items: Items, parts: Parts, mismatches: int,
    use_filter: bool, counts,
) -> np.ndarray:  # fmt: skip
    """Locate the rows of parts and verify the hits, as many at a time as fit into memory."""
    before = np.concatenate([[0], np.cumsum(parts.n_rows, dtype=np.int64)])
    of_items = before[parts.interval_offsets[parts.offsets]]
    counts[COUNTS.index("parts")] += parts.offsets[-1]
    found = []
    for first, last in bounded_ranges(of_items, _HITS_AT_ONCE):
        first_part, last_part = parts.offsets[first], parts.offsets[last]
        rows, row_offsets = rows_of(parts, first_part, last_part)
        positions = locate(index, rows)
        loci = find_loci(
            genome.blocks, blocks, Items(*(column[first:last] for column in items)),
            parts.offsets[first : last + 1] - first_part, parts.starts[first_part:last_part],
            parts.ends[first_part:last_part], row_offsets, positions, genome.segments, mismatches,
            use_filter, counts,
        )  # fmt: skip
        loci[:, 0] += first
        found.append(loci)
    return np.concatenate(found) if found else np.empty((0, 4), np.int64)
