"""Draw what benchmarks/map.py measured: figures into docs/, tables for docs/map.md to the screen.

    python benchmarks/map_figures.py
    python benchmarks/map_figures.py --here        of results/here/, into it

docs/map-roc.svg     correct against incorrect reads, for every least quality
docs/map-quality.svg the quality that is claimed against the errors that there are
"""

import json
import math
from pathlib import Path

import matplotlib

matplotlib.use("svg")
import matplotlib.pyplot as plt
import numpy as np
from frame.options import CHECKOUT, HERE, new_parser

COLOURS = {"bwarp": "#d62728", "bwa mem": "#1f77b4", "minimap2": "#2ca02c", "bowtie2": "#9467bd"}

#: Qualities are pooled in these steps, so that there are enough incorrect reads to count.
STEPS = (0, 1, 3, 6, 10, 15, 20, 25, 30, 40, 50, 60, 61)


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("--here", action="store_true", help="what this machine measured last")
    return parser.parse_args()


def reads_of(row: dict) -> str:
    """A run's reads in words."""
    words = [f"{row['read_length']}" if not row["paired"] else f"2 x {row['read_length']}"]
    if row["variant_rate"] >= 0.01:
        words.append(f"{100 * row['variant_rate']:g} % variants")
    if row["indel_length"] > 1:
        words.append(f"indels of {row['indel_length']} or more")
    words.append("own simulator" if row["simulator"] == "own" else row["simulator"])
    return ", ".join(words)


def runs_of(rows: list[dict]) -> dict[tuple[str, str], list[dict]]:
    """The rows of each run, by reference and reads; a later one with the same replaces it."""
    runs: dict[tuple[str, str], dict[str, dict]] = {}
    for row in rows:
        run = runs.setdefault((row["reference"], reads_of(row)), {})
        run[row["mapper"]] = row
    return {key: list(run.values()) for key, run in runs.items()}


def print_accuracy(runs) -> None:
    print("| reference | reads | mapper | correct % | Q >= 10 correct % / incorrect ppm "
          "| Q >= 30 correct % / incorrect ppm | random at Q >= 10 |")  # fmt: skip
    print("|---|---|---|---|---|---|---|")
    for (reference, reads), rows in runs.items():
        for i, row in enumerate(rows):
            where = (reference.removesuffix(".fa"), reads) if i == 0 else ("", "")
            print(
                f"| {where[0]} | {where[1]} | {row['mapper']} | {row['right']:.3f} "
                f"| {row['right_q10']:.3f} / {row['wrong_ppm_q10']} "
                f"| {row['right_q30']:.3f} / {row['wrong_ppm_q30']} | {row['random_q10']} |"
            )


def print_ahead(runs) -> None:
    """Points that bwarp is ahead of bwa mem."""
    print("\n| reference | reads | correct | correct at Q >= 10 | correct at Q >= 30 "
          "| incorrect at Q >= 10, bwarp / bwa mem |")  # fmt: skip
    print("|---|---|---|---|---|---|")
    for (reference, reads), rows in runs.items():
        by_mapper = {row["mapper"]: row for row in rows}
        if not {"bwarp", "bwa mem"} <= set(by_mapper):
            continue
        ours, theirs = by_mapper["bwarp"], by_mapper["bwa mem"]
        points = [f"{ours[key] - theirs[key]:+.3f}" for key in ("right", "right_q10", "right_q30")]
        incorrect = [sum(row["wrong_by_quality"][10:]) for row in (ours, theirs)]
        print(f"| {reference.removesuffix('.fa')} | {reads} | {' | '.join(points)} "
              f"| {incorrect[0]} / {incorrect[1]} |")  # fmt: skip


def print_speed(rows: list[dict]) -> None:
    print("\n| mapper | wall seconds | CPU seconds | reads a CPU second | memory, MB |")
    print("|---|---|---|---|---|")
    for row in rows:
        rate = row["reads"] / row["cpu_seconds"]
        print(f"| {row['mapper']} | {row['wall_seconds']:.1f} | {row['cpu_seconds']:.1f} "
              f"| {rate:,.0f} | {row['memory_mb']:,} |")  # fmt: skip


def by_quality(rows: list[dict]) -> tuple[np.ndarray, np.ndarray]:
    """Correct and incorrect reads of all rows together, by mapping quality."""
    return tuple(
        np.sum([row[f"{kind}_by_quality"] for row in rows], axis=0) for kind in ("right", "wrong")
    )


def draw_roc(runs, path: Path) -> None:
    """Of the run with most mappers on each reference."""
    richest: dict[str, list[dict]] = {}
    for (reference, _), rows in runs.items():
        if len(rows) > len(richest.get(reference, [])):
            richest[reference] = rows
    figure, axes = plt.subplots(1, len(richest), figsize=(4.6 * len(richest), 3.6), squeeze=False)
    for axis, (reference, rows) in zip(axes[0], richest.items(), strict=True):
        for row in rows:
            correct, incorrect = by_quality([row])
            total = correct.sum() + incorrect.sum() + row["unmapped"]
            correct, incorrect = (
                counts[::-1].cumsum()[::-1] / total for counts in (correct, incorrect)
            )
            kept = np.append(np.diff(correct + incorrect) != 0, True)
            axis.plot(
                np.maximum(1e6 * incorrect[kept], 1), 100 * correct[kept], marker=".", linewidth=1,
                color=COLOURS.get(row["mapper"]), label=row["mapper"],
            )  # fmt: skip
        axis.set_xscale("log")
        axis.set_xlabel("incorrect reads in a million (0 drawn at 1)")
        axis.set_title(f"{reference.removesuffix('.fa')}, {reads_of(rows[0])}", fontsize=9)
    axes[0, 0].set_ylabel("correct reads, %")
    axes[0, 0].legend(fontsize=8)
    save(figure, path)


def draw_quality(runs, path: Path) -> None:
    """Of all runs together."""
    figure, axis = plt.subplots(figsize=(4.8, 3.8))
    for mapper in ("bwa mem", "bwarp"):
        rows = [row for run in runs.values() for row in run if row["mapper"] == mapper]
        if not rows:
            continue
        correct, incorrect = by_quality(rows)
        claimed, observed = [], []
        for low, high in zip(STEPS, STEPS[1:], strict=False):
            n, n_incorrect = (correct + incorrect)[low:high].sum(), incorrect[low:high].sum()
            if n < 100:
                continue
            share = (correct + incorrect)[low:high] / n
            # The error that the qualities of a step claim together.
            claimed.append(-10 * math.log10((share * 10 ** (-np.arange(low, high) / 10)).sum()))
            observed.append(-10 * math.log10((n_incorrect + 0.5) / n))
        axis.plot(claimed, observed, marker="o", color=COLOURS[mapper], label=mapper)
    axis.plot([0, 60], [0, 60], color="grey", linewidth=0.8, linestyle=":")
    axis.set_xlabel("mapping quality that is claimed")
    axis.set_ylabel("-10 log10 of the share of incorrect reads")
    axis.legend()
    save(figure, path)


def save(figure, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    print(f"\n{path.name} drawn")


def main():
    options = parse_options()
    matplotlib.rcParams["svg.hashsalt"] = "bwarp"
    results, folder = CHECKOUT / "benchmarks/results/map_accuracy.json", CHECKOUT / "docs"
    if options.here:
        results, folder = HERE / "map_cpu.json", HERE
    with open(results) as file:
        runs = runs_of([json.loads(line) for line in file])
    print_accuracy(runs)
    print_ahead(runs)
    timed = [rows for rows in runs.values() if "cpu_seconds" in rows[0]]
    if timed:
        print_speed(max(timed, key=len))
    draw_roc(runs, folder / "map-roc.svg")
    draw_quality(runs, folder / "map-quality.svg")


if __name__ == "__main__":
    main()
