"""Summarise the mapping statistics of samples."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bwarp.records.statistics import INSERT_BIN, few_mapped

#: A mapping quality that variant callers trust.
CONFIDENT = 30


@dataclass(frozen=True)
class SampleSummary:
    """Counts and percentages of one sample; percentages are of its reads.

    Attributes
    ----------
    reads : int
    mapped, confident : float
        Mapped reads, and those with a quality of at least `CONFIDENT`.
    paired : float or None
        Reads mapped as a proper pair; None for single reads.
    duplicates : float or None
        Reads marked as duplicates; None if duplicates were not marked.
    errors : float
        Mismatches, inserted and deleted bases of alignments, as a percentage of aligned bases.
    split : float
        Reads with a supplementary record.
    depth : float or None
        Aligned bases per base of the reference.
    covered : float or None
        Bases of the reference with a depth of at least 1, as a percentage.
    insert_size : float or None
        The median of proper pairs, in bases; None without pairs.
    correct : float or None
        Simulated reads of the reference that are mapped to their origin.
    """

    reads: int
    mapped: float
    paired: float | None
    duplicates: float | None
    confident: float
    errors: float
    split: float
    depth: float | None
    covered: float | None
    insert_size: float | None
    correct: float | None


class Column(NamedTuple):
    """A number of a sample in tables."""

    title: str
    unit: str
    description: str


COLUMNS = {
    "reads": Column("Reads", "", "reads in the FASTQ files"),
    "mapped": Column("Mapped", "%", "reads that are aligned"),
    "paired": Column(
        "Proper pairs",
        "%",
        "reads aligned in a proper pair, with their mate at a usual insert size",
    ),
    "duplicates": Column("Duplicates", "%", "reads marked as duplicates"),
    "confident": Column(
        f"Quality >= {CONFIDENT}",
        "%",
        f"reads with a mapping quality of {CONFIDENT} or more: at most one in a thousand is "
        "incorrect",
    ),
    "errors": Column("Errors", "%", "mismatched, inserted and deleted bases, of all aligned bases"),
    "split": Column("Split", "%", "reads with a supplementary record"),
    "depth": Column(
        "Mean depth", "X", "aligned bases per base of the reference, duplicates included"
    ),
    "covered": Column(
        "Covered", "%", "bases of the reference with a depth of at least 1, duplicates included"
    ),
    "insert_size": Column(
        "Insert size", "bases", "median distance from the first base of a proper pair to its last"
    ),
    "correct": Column("Correct", "%", "simulated reads within 20 bases of their origin"),
}

#: Columns that are not in the table on the terminal, which has to be narrow.
_ONLY_ON_PAGES = ("covered", "insert_size")


def summarise(statistics: Mapping, truth: Mapping | None = None) -> SampleSummary:
    """Return the summary of a sample from its statistics and, if known, the truth.

    Parameters
    ----------
    statistics : mapping
        From `bwarp.records.statistics`.
    truth : mapping, optional
        The fields of a `bwarp.evaluation.agreement.TruthCounts`.
    """
    reads = statistics["reads"]
    duplicates = statistics.get("duplicates")
    correct = None
    if truth is not None:
        total = sum(truth["correct"]) + sum(truth["incorrect"]) + truth["unmapped"]
        correct = _percent(sum(truth["correct"]), total)
    return SampleSummary(
        reads=reads,
        mapped=_percent(statistics["mapped"], reads),
        paired=_percent(statistics["properly_paired"], reads) if statistics["paired"] else None,
        duplicates=None if duplicates is None else _percent(duplicates, reads),
        confident=_percent(sum(statistics["mapping_qualities"][CONFIDENT:]), reads),
        # As in `samtools stats`.
        errors=_percent(
            statistics["edits"], statistics["aligned_bases"] + statistics["inserted_bases"]
        ),
        split=_percent(statistics["split_reads"], reads),
        depth=_depth(statistics),
        covered=share_of_depth(statistics.get("depths", ()), 1),
        insert_size=None if (sizes := insert_quartiles(statistics)) is None else sizes[1],
        correct=correct,
    )


def _depth(statistics: Mapping) -> float | None:
    if not statistics["reference_bases"]:
        return None
    return statistics["aligned_bases"] / statistics["reference_bases"]


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


def share_at_least(counts) -> np.ndarray:
    """Return percentages of reads with at least each quality, from counts of reads by quality.

    >>> share_at_least([1, 0, 3]).tolist()
    [100.0, 75.0, 75.0]
    """
    counts = np.asarray(counts, np.float64)
    above = np.cumsum(counts[::-1])[::-1]
    return 100 * above / max(above[0], 1)


def depth_curve(depths) -> dict[int, float]:
    """Return percentages of bases with at least each depth, from a sample of depths.

    Ends where one base in a thousand is left, and has at most a few hundred points.

    >>> depth_curve([0, 1, 1, 3])
    {0: 100.0, 1: 75.0, 2: 25.0, 3: 25.0}
    """
    depths = np.sort(np.asarray(depths, np.int64))
    if not depths.size:
        return {}
    most = int(depths[-1 - depths.size // 1000])
    at = range(0, most + 1, max(1, most // 300))
    left = depths.size - np.searchsorted(depths, at)
    return dict(zip(at, (100 * left / depths.size).round(3).tolist(), strict=True))


def share_of_depth(depths: Sequence[int], least: int) -> float | None:
    """Return the percentage of bases with at least this depth; None if no depth is known."""
    return 100 * float(np.mean(np.asarray(depths) >= least)) if len(depths) else None


def insert_size_curve(statistics: Mapping) -> dict[int, float]:
    """Return percentages of proper pairs by the middle of their bin; empty without pairs."""
    counts: Sequence[int] = statistics.get("insert_sizes") or []
    total = sum(counts)
    # The last bin holds all longer ones and would look like a peak.
    used = [i for i, count in enumerate(counts[:-1]) if count]
    if not used:
        return {}
    return {
        i * INSERT_BIN + INSERT_BIN // 2: round(100 * counts[i] / total, 4)
        for i in range(max(0, used[0] - 1), min(used[-1] + 2, len(counts) - 1))
    }


def insert_quartiles(statistics: Mapping) -> tuple[float, float, float] | None:
    """Return the quartiles of insert sizes, interpolated within bins; None without pairs."""
    counts = np.asarray(statistics.get("insert_sizes") or [0])
    ends = np.cumsum(counts)
    if not ends[-1]:
        return None
    low, middle, high = np.interp(
        ends[-1] * np.array([0.25, 0.5, 0.75]),
        np.concatenate([[0], ends]),
        INSERT_BIN * np.arange(counts.size + 1),
    ).tolist()
    return low, middle, high


def truth_curve(truth: Mapping) -> tuple[np.ndarray, np.ndarray]:
    """Count correct and incorrect reads for each minimum mapping quality.

    Returns
    -------
    correct : ndarray, shape=(61,), dtype=float64
        Correct reads of that quality, as percentages of all simulated reads of the reference.
    incorrect : ndarray, shape=(61,), dtype=float64
        Incorrect reads per million mapped reads of that quality; NaN if there are none.
    """
    correct, incorrect = (np.cumsum(truth[key][::-1])[::-1] for key in ("correct", "incorrect"))
    total = correct[0] + incorrect[0] + truth["unmapped"]
    mapped = correct + incorrect
    ppm = np.full(mapped.size, np.nan)
    np.divide(1e6 * incorrect, mapped, out=ppm, where=mapped > 0)
    return 100 * correct / max(total, 1), ppm


def summary_lines(samples: Mapping[str, SampleSummary]) -> list[str]:
    """Return a table for a terminal, one line per sample, omitting columns that no sample has."""
    columns = [name for name in columns_of(samples) if name not in _ONLY_ON_PAGES]
    titles = (COLUMNS[name].title.lower() + " %" * (COLUMNS[name].unit == "%") for name in columns)
    rows = [["sample", *titles], *summary_rows(samples, columns)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def columns_of(samples: Mapping[str, SampleSummary]) -> list[str]:
    """Return the names of the columns that any sample has."""
    return [
        name
        for name in COLUMNS
        if any(getattr(sample, name) is not None for sample in samples.values())
    ]


def summary_rows(samples: Mapping[str, SampleSummary], columns: Sequence[str]) -> list[list[str]]:
    """Return the name and the numbers of each sample as texts."""
    return [
        [name, *(_cell(column, getattr(sample, column)) for column in columns)]
        for name, sample in samples.items()
    ]


def _cell(column: str, value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if column in ("reads", "insert_size") else f"{value:,.2f}"


def mapping_warnings(samples: Mapping[str, Mapping]) -> list[str]:
    """Return a sentence for each sample without reads, or with few mapped reads."""
    warnings = []
    for name, counts in samples.items():
        few = few_mapped(counts["reads"], counts["mapped"])
        if not counts["reads"] or few:
            warnings.append(f"{name}: {few or 'there are no reads'}.")
    return warnings
