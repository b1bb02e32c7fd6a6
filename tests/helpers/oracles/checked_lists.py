"""Counts of records as lists, to be compared."""

from bwarp.checks.checker import CheckedRecords


def as_lists(checked: CheckedRecords) -> list:
    # Tables may have room for longer reads.
    counts = [table[table != 0].tolist() for table in checked.counts]
    depths = [[part.tolist() for part in contig] for contig in checked.depths]
    return [
        counts,
        checked.lengths,
        checked.coverage.tolist(),
        depths,
        checked.region_sums.tolist(),
    ]
