"""Counts of what became of the reads; they add up."""

import numpy as np

from bwarp.mapping.choice_cpu import Choice
from bwarp.mapping.final_alignments import MappedReads
from bwarp.mapping.read_chunks import ReadChunk

__all__ = ["add_chunk", "empty_statistics"]


def empty_statistics() -> dict:
    """Counts of no reads; `mapping_qualities` has one count a quality from 0 to 60."""
    return {
        "reads": 0,
        "bases": 0,
        "mapped": 0,
        "unmapped": 0,
        "properly_paired": 0,
        "mapping_qualities": [0] * 61,
    }


def add_chunk(statistics: dict, chunk: ReadChunk, mapped: MappedReads, choice: Choice) -> None:
    """Add the counts of a chunk, in place."""
    has_place = mapped.positions >= 0
    n_mapped = int(np.count_nonzero(has_place))
    statistics["reads"] += chunk.n_reads
    statistics["bases"] += int(chunk.offsets[-1])
    statistics["mapped"] += n_mapped
    statistics["unmapped"] += chunk.n_reads - n_mapped
    statistics["properly_paired"] += int(np.count_nonzero(choice.proper))
    counts = np.bincount(choice.qualities[has_place], minlength=61)
    statistics["mapping_qualities"] = [
        int(old + new) for old, new in zip(statistics["mapping_qualities"], counts, strict=True)
    ]
