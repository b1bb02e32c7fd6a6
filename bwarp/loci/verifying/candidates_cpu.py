"""Which hits of parts may have a locus: those that a lower bound of their edits does not drop."""

import numpy as np

from bwarp.index.locate_cpu import check_hit
from bwarp.loci.verifying.kmer_bound_cpu import cannot_align
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.uncounted import uncounted

__all__ = ["may_have_loci"]


def may_have_loci(genome, reads, items, hits, positions, segments) -> np.ndarray:
    """Which hits may have a locus, dtype bool; the parameters are those of `loci_cpu.find_loci`."""
    kept = np.empty(positions.size, np.bool_)
    _bound(genome, reads, items, hits, positions, segments, kept)
    return kept


@compiled
def _bound(genome, reads, items, hits, positions, segments, kept):
    genome, reads, positions, kept = uncounted((genome, reads, positions, kept))
    part_offsets, part_starts, part_ends, row_offsets = uncounted(hits)
    begins, lengths, all_edits, all_gaps, _ = uncounted(items)
    segment_text, segment_genome, _ = uncounted(segments)
    segment = 0
    for item in range(begins.size):
        begin, length, e, g = begins[item], lengths[item], all_edits[item], all_gaps[item]
        for part in range(part_offsets[item], part_offsets[item + 1]):
            for hit in range(row_offsets[part], row_offsets[part + 1]):
                position = np.int64(positions[hit])
                if position < segment_text[segment] or position >= segment_text[segment + 1]:
                    segment = np.searchsorted(segment_text, position, side="right") - 1
                check_hit(position, part_ends[part] - part_starts[part], segment_text[segment + 1])
                diagonal = segment_genome[segment] + position - segment_text[segment]
                diagonal -= part_starts[part]
                kept[hit] = not cannot_align(genome, diagonal, reads, begin, length, g, e)
