"""Counts of duplicates as the text that Picard MarkDuplicates writes, which MultiQC reads."""

import math
from collections.abc import Iterator

from bwarp.bam.duplicates import DuplicateCounts

_COLUMNS = (
    "LIBRARY", "UNPAIRED_READS_EXAMINED", "READ_PAIRS_EXAMINED", "SECONDARY_OR_SUPPLEMENTARY_RDS",
    "UNMAPPED_READS", "UNPAIRED_READ_DUPLICATES", "READ_PAIR_DUPLICATES",
    "READ_PAIR_OPTICAL_DUPLICATES", "PERCENT_DUPLICATION", "ESTIMATED_LIBRARY_SIZE",
)  # fmt: skip

#: The histogram gives the expected unique pairs for 1 to this number of times as many pairs.
_MOST_TIMES = 100


def metrics_text(counts: DuplicateCounts) -> str:
    """Return the metrics of each library, and the histogram of a single one.

    Optical duplicates are not molecules of a library, so its size is estimated without them.
    """
    lines = ["## METRICS CLASS\tpicard.sam.DuplicationMetrics", "\t".join(_COLUMNS)]
    rows = list(_libraries(counts))
    for name, numbers in rows:
        singles, pairs, not_primary, unmapped, duplicate_singles, duplicate_pairs, optical = numbers
        reads = singles + 2 * pairs
        share = (duplicate_singles + 2 * duplicate_pairs) / reads if reads else 0.0
        size = library_size(pairs - optical, pairs - duplicate_pairs)
        values = (
            name, singles, pairs, not_primary, unmapped, duplicate_singles, duplicate_pairs,
            optical, _decimal(share), "" if size is None else size,
        )  # fmt: skip
        lines.append("\t".join(map(str, values)))
    lines.append("")
    if len(rows) == 1:
        _, pairs, *_, duplicate_pairs, optical = rows[0][1]
        lines += _histogram(pairs, pairs - duplicate_pairs, optical)
    return "\n".join(lines) + "\n"


def _libraries(counts: DuplicateCounts) -> Iterator[tuple[str, list[int]]]:
    """Yield the counts of each library; reads without one are listed only if there are any."""
    columns = (
        counts.singles, counts.pairs, counts.not_primary, counts.unmapped,
        counts.duplicate_singles, counts.duplicate_pairs, counts.optical_pairs,
    )  # fmt: skip
    for number, name in enumerate(counts.libraries):
        numbers = [int(column[number]) for column in columns]
        if number + 1 < len(counts.libraries) or any(numbers) or number == 0:
            yield name, numbers


def _histogram(pairs: int, unique: int, optical: int) -> Iterator[str]:
    """Yield the lines of a histogram: unique pairs expected of more sequencing, per one now."""
    size = library_size(pairs - optical, unique)
    if size is not None:
        yield "## HISTOGRAM\tjava.lang.Double"
        yield "BIN\tCoverageMult"
        for times in range(1, _MOST_TIMES + 1):
            expected = size * (1 - math.exp(-times * pairs / size)) / unique
            yield f"{times}.0\t{_decimal(expected)}"
        yield ""


def library_size(pairs: int, unique: int) -> int | None:
    """Return the estimated number of distinct pairs in a library; None if there are no duplicates.

    It is the x with ``unique / x = 1 - exp(-pairs / x)``, found by bisection as Picard does.
    """
    if unique >= pairs:
        return None

    def excess(times: float) -> float:
        x = times * unique
        return unique / x - 1 + math.exp(-pairs / x)

    low, high = 1.0, 100.0
    while excess(high) > 0:
        high *= 10
    for _ in range(40):
        middle = (low + high) / 2
        if excess(middle) > 0:
            low = middle
        else:
            high = middle
    return int(unique * (low + high) / 2)


def _decimal(number: float) -> str:
    """Return a number with at most six decimals, without final zeros."""
    return f"{number:.6f}".rstrip("0").rstrip(".")
