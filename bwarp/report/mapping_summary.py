"""Summarise the mapping statistics of samples."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from bwarp.records.statistics import few_mapped

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
    correct: float | None


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
    rows = _rows(samples)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def summary_table(samples: Mapping[str, SampleSummary]) -> str:
    """Return the same table in reStructuredText."""
    rows = (",".join(f'"{_escaped(cell)}"' for cell in row) for row in _rows(samples))
    return "".join([".. csv-table::\n   :header-rows: 1\n\n", *(f"   {row}\n" for row in rows)])


def mapping_warnings(samples: Mapping[str, Mapping]) -> str:
    """Return a paragraph of reStructuredText for each sample with few mapped reads."""
    warnings = {
        name: few_mapped(counts["reads"], counts["mapped"]) for name, counts in samples.items()
    }
    return "".join(
        f"\n**Warning:** {_escaped(f'{name}: {warning}')}.\n"
        for name, warning in warnings.items()
        if warning
    )


def _escaped(cell: str) -> str:
    """Return a cell without markup, with quotes doubled."""
    return re.sub(r"([\\*_`|:])", r"\\\1", cell).replace('"', '""')


def _rows(samples: Mapping[str, SampleSummary]) -> list[list[str]]:
    columns = {
        "mapped %": "mapped",
        "proper pairs %": "paired",
        "duplicates %": "duplicates",
        f"quality >= {CONFIDENT} %": "confident",
        "errors %": "errors",
        "split %": "split",
        "mean depth": "depth",
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
    return rows
