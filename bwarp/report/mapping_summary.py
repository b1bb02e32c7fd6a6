"""Mapping statistics of samples in a few numbers."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

__all__ = [
    "CONFIDENT",
    "SampleSummary",
    "current_names",
    "share_at_least",
    "summarise",
    "summary_lines",
    "truth_curve",
]

#: A mapping quality that variant callers trust.
CONFIDENT = 30


#: What version 0.1 called the counts in files of the truth.
_OLD_NAMES = {"right": "correct", "wrong": "incorrect"}


@dataclass(frozen=True)
class SampleSummary:
    """Counts and shares of one sample; shares are percentages of its reads.

    Attributes
    ----------
    reads : int
    mapped, confident : float
        Reads that are mapped, and whose quality is at least `CONFIDENT`.
    paired : float or None
        Reads that are mapped as a proper pair; None for single reads.
    duplicates : float or None
        Reads that are marked as duplicates; None where these were not looked for.
    correct : float or None
        Simulated reads of the reference that are mapped to their origin.
    """

    reads: int
    mapped: float
    paired: float | None
    duplicates: float | None
    confident: float
    correct: float | None


def summarise(statistics: Mapping, truth: Mapping | None = None) -> SampleSummary:
    """The summary of a sample from its statistics, and from the truth where it is known.

    Parameters
    ----------
    statistics : mapping
        As `bwarp.mapping.output.statistics` makes them.
    truth : mapping, optional
        The fields of a `bwarp.evaluation.truth.TruthCounts`.
    """
    reads = statistics["reads"]
    # Counts of a run before these were counted may lie beside new ones.
    paired, duplicates = statistics.get("paired", reads), statistics.get("duplicates")
    correct = None
    if truth is not None:
        total = sum(truth["correct"]) + sum(truth["incorrect"]) + truth["unmapped"]
        correct = _percent(sum(truth["correct"]), total)
    return SampleSummary(
        reads=reads,
        mapped=_percent(statistics["mapped"], reads),
        paired=_percent(statistics["properly_paired"], reads) if paired else None,
        duplicates=None if duplicates is None else _percent(duplicates, reads),
        confident=_percent(sum(statistics["mapping_qualities"][CONFIDENT:]), reads),
        correct=correct,
    )


def current_names(counts: Mapping) -> dict:
    """Counts of a file under the names that they have today."""
    return {_OLD_NAMES.get(name, name): count for name, count in counts.items()}


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


def share_at_least(counts) -> np.ndarray:
    """Percentages of reads with at least each quality, from counts of reads by quality.

    >>> share_at_least([1, 0, 3]).tolist()
    [100.0, 75.0, 75.0]
    """
    counts = np.asarray(counts, np.float64)
    above = np.cumsum(counts[::-1])[::-1]
    return 100 * above / max(above[0], 1)


def truth_curve(truth: Mapping) -> tuple[np.ndarray, np.ndarray]:
    """Correct and incorrect reads of at least each mapping quality.

    Returns
    -------
    correct : ndarray, shape=(61,), dtype=float64
        Correct reads of that quality, as percentages of all simulated reads of the reference.
    incorrect : ndarray, shape=(61,), dtype=float64
        Incorrect reads per million mapped reads of that quality; NaN where there are none.
    """
    correct, incorrect = (np.cumsum(truth[key][::-1])[::-1] for key in ("correct", "incorrect"))
    total = correct[0] + incorrect[0] + truth["unmapped"]
    mapped = correct + incorrect
    ppm = np.full(mapped.size, np.nan)
    np.divide(1e6 * incorrect, mapped, out=ppm, where=mapped > 0)
    return 100 * correct / max(total, 1), ppm


def summary_lines(samples: Mapping[str, SampleSummary]) -> list[str]:
    """A table for a terminal, a line a sample; columns that no sample has are left out."""
    columns = {
        "mapped %": "mapped",
        "proper pairs %": "paired",
        "duplicates %": "duplicates",
        f"quality >= {CONFIDENT} %": "confident",
        "correct %": "correct",
    }
    shares = {
        title: [getattr(sample, name) for sample in samples.values()]
        for title, name in columns.items()
    }
    shares = {title: column for title, column in shares.items() if set(column) != {None}}
    rows = [["sample", "reads", *shares]]
    for i, (name, sample) in enumerate(samples.items()):
        cells = ["-" if column[i] is None else f"{column[i]:.2f}" for column in shares.values()]
        rows.append([name, f"{sample.reads:,}", *cells])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
