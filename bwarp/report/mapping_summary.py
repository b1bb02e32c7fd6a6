"""Summarise the mapping statistics of samples."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bwarp.records.statistics import INSERT_BIN, few_mapped

#: A mapping quality that variant callers trust.
CONFIDENT = 30


#: Depths whose breadth is in tables: the share of the reference with at least this depth.
BREADTHS = (1, 10, 20, 30)


class Column(NamedTuple):
    """A number of a sample in tables, with this many digits after the point."""

    title: str
    unit: str
    digits: int
    description: str


COLUMNS = {
    "reads": Column("Reads", "", 0, "reads in the FASTQ files"),
    "mapped": Column("Mapped", "%", 2, "reads that are aligned"),
    "paired": Column(
        "Proper pairs",
        "%",
        2,
        "reads aligned in a proper pair, with their mate at a usual insert size",
    ),
    "duplicates": Column("Duplicates", "%", 2, "reads marked as duplicates"),
    "confident": Column(
        f"Quality >= {CONFIDENT}",
        "%",
        2,
        f"reads with a mapping quality of {CONFIDENT} or more: at most one in a thousand is "
        "incorrect",
    ),
    "errors": Column(
        "Errors", "%", 2, "mismatched, inserted and deleted bases, of all aligned bases"
    ),
    "split": Column("Split", "%", 2, "reads with a supplementary record"),
    "depth": Column("Mean depth", "X", 2, "mean depth of the bases of the reference"),
    **{
        f"breadth_{depth}": Column(
            f">= {depth}\u00a0X", "%", 0, "bases of the reference with at least this depth"
        )
        for depth in BREADTHS
    },
    "insert_size": Column(
        "Insert size", "bases", 0, "median distance from the first base of a pair to its last"
    ),
    "correct": Column("Correct", "%", 2, "simulated reads within 20 bases of their origin"),
}

#: Columns that are not in the table on the terminal, which has to be narrow.
_ONLY_ON_PAGES = (*(f"breadth_{depth}" for depth in BREADTHS), "insert_size")


def summarise(statistics: Mapping, truth: Mapping | None = None) -> dict[str, float]:
    """Return the numbers of a sample that are known, by their names in `COLUMNS`.

    Parameters
    ----------
    statistics : mapping
        From `bwarp.records.statistics` or `bwarp.checks.check_numbers`.
    truth : mapping, optional
        The fields of a `bwarp.evaluation.agreement.TruthCounts`.
    """
    reads, sizes, shares = statistics["reads"], insert_quartiles(statistics), breadth(statistics)
    known = {
        "mapped": statistics["mapped"],
        "paired": statistics["properly_paired"] if statistics["paired"] else None,
        "duplicates": statistics.get("duplicates"),
        "confident": sum(statistics["mapping_qualities"][CONFIDENT:]),
        "split": statistics["split_reads"],
    }
    summary = {name: _percent(n, reads) for name, n in known.items() if n is not None}
    summary["reads"] = reads
    # As in `samtools stats`.
    summary["errors"] = _percent(
        statistics["edits"], statistics["aligned_bases"] + statistics["inserted_bases"]
    )
    if statistics["reference_bases"]:
        depth = statistics["aligned_bases"] / statistics["reference_bases"]
        summary["depth"] = statistics.get("mean_depth", depth)
    if shares.size:
        summary |= {
            f"breadth_{depth}": float(shares[depth]) if depth < shares.size else 0.0
            for depth in BREADTHS
        }
    if sizes is not None:
        summary["insert_size"] = sizes[1]
    if truth is not None:
        total = sum(truth["correct"]) + sum(truth["incorrect"]) + truth["unmapped"]
        summary["correct"] = _percent(sum(truth["correct"]), total)
    return summary


def _percent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


def share_at_least(counts) -> np.ndarray:
    """Return percentages with at least each value, from counts by value.

    >>> share_at_least([1, 0, 3]).tolist()
    [100.0, 75.0, 75.0]
    """
    counts = np.asarray(counts, np.float64)
    above = np.cumsum(counts[::-1])[::-1]
    return 100 * above / max(above[0], 1)


def breadth(statistics: Mapping) -> np.ndarray:
    """Return percentages of bases with at least each depth from 0; empty if no depth is known.

    Without the files of --qc, they are estimated from evenly spaced positions.

    >>> breadth({"depths": [0, 1, 1, 3]}).tolist()
    [100.0, 75.0, 25.0, 25.0]
    """
    if "breadth" in statistics:
        return statistics["breadth"]
    counts = np.bincount(np.asarray(statistics.get("depths", ()), np.int64))
    return share_at_least(counts) if counts.size else np.empty(0)


def depth_curve(statistics: Mapping) -> dict[int, float]:
    """Return the breadth by depth, for a plot.

    Ends where one base in a thousand is left, and has at most a few hundred points.

    >>> depth_curve({"depths": [0, 1, 1, 3]})
    {0: 100.0, 1: 75.0, 2: 25.0, 3: 25.0}
    """
    shares = breadth(statistics)
    most = np.count_nonzero(shares >= 0.1)
    at = range(0, most, max(1, most // 300))
    return dict(zip(at, shares[at].round(3).tolist(), strict=True))


def insert_size_curve(statistics: Mapping) -> dict[int, float]:
    """Return percentages of pairs by the middle of their bin; empty without pairs."""
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


def summary_lines(samples: Mapping[str, Mapping[str, float]]) -> list[str]:
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


def columns_of(samples: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return the names of the columns that any sample has."""
    return [name for name in COLUMNS if any(name in sample for sample in samples.values())]


def summary_rows(
    samples: Mapping[str, Mapping[str, float]], columns: Sequence[str]
) -> list[list[str]]:
    """Return the name and the numbers of each sample as texts."""
    return [
        [
            name,
            *(f"{row[one]:,.{COLUMNS[one].digits}f}" if one in row else "-" for one in columns),
        ]
        for name, row in samples.items()
    ]


def mapping_warnings(samples: Mapping[str, Mapping]) -> list[str]:
    """Return a sentence for each sample without reads, or with few mapped reads."""
    warnings = []
    for name, counts in samples.items():
        few = few_mapped(counts["reads"], counts["mapped"])
        if not counts["reads"] or few:
            warnings.append(f"{name}: {few or 'there are no reads'}.")
    return warnings
