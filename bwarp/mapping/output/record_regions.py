"""Which records are written where only some regions of the genome are wanted.

A read and its mate stay together: all their records are kept if one of them overlaps a region, so
that flags and mates' positions speak of records that are there.
"""

from collections.abc import Sequence

import numpy as np

from bwarp.mapping.output.alignment_records import UNMAPPED, AlignmentRecords

__all__ = ["in_regions", "joined_regions"]


def joined_regions(regions: Sequence[tuple[int, int]]) -> np.ndarray:
    """Regions in order, those that overlap or touch as one; shape=(n, 2), dtype=int64."""
    table = np.array(sorted(regions), np.int64).reshape(-1, 2)
    reached = np.maximum.accumulate(table[:, 1])
    begins = np.append(True, table[1:, 0] > reached[:-1])
    ends = np.append(begins[1:], True)
    return np.column_stack([table[begins, 0], reached[ends]])


def in_regions(records: AlignmentRecords, ends: int, regions: np.ndarray) -> np.ndarray:
    """Whether a record, or one of its read or of its mate, overlaps a region, a bool a row.

    Parameters
    ----------
    ends : int
        Reads of a template.
    regions : ndarray, shape=(n, 2), dtype=int64
        As of `joined_regions`.
    """
    is_mapped = records.flags & UNMAPPED == 0
    after = np.searchsorted(regions[:, 1], records.positions, side="right")
    starts = np.append(regions[:, 0], np.iinfo(np.int64).max)
    overlaps = is_mapped & (starts[after] < records.positions + records.spans)
    templates = records.reads // ends
    kept = np.zeros(records.first_rows.size, bool)
    kept[templates[overlaps]] = True
    return kept[templates]
