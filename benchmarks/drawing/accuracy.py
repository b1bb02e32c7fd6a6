"""Accuracy of mapping from result lines: ROC curves, and predicted against observed qualities.

Lines of benchmarks/map.py contain correct and incorrect reads by mapping quality; lines of
map_sets.py contain them by bins of quality.
"""

import math
from collections.abc import Iterator
from itertools import pairwise

from drawing.figures import Lines
from drawing.panels import Axis, Panel, panels

__all__ = ["MAPPERS", "calibration_pictures", "map_runs", "roc_pictures", "sets_of"]

MAPPERS = ("bwarp", "bwa mem", "minimap2", "bowtie2", "minibwa", "strobealign")

#: Qualities of benchmarks/map.py are pooled in these bins, to have enough incorrect reads.
STEPS = (0, 1, 3, 6, 10, 15, 20, 25, 30, 40, 50, 60, 61)
#: Bins with fewer reads are not shown.
ENOUGH = 100
#: Rules and parameters were chosen on sets with this seed.
CHOSEN_WITH = 1

_INCORRECT = Axis("incorrect reads in a million", 1, 1e6, (1, 100, 1e4), logarithmic=True)
_CLAIMED = Axis("claimed quality", 0, 60, (0, 20, 40, 60))
_OBSERVED = Axis("observed", 0, 60, (0, 20, 40, 60))


def reads_of(line: dict) -> str:
    """Describe the reads of a line of map.py in words."""
    words = [f"{line['read_length']}" if not line["paired"] else f"2 x {line['read_length']}"]
    if line["variant_rate"] >= 0.01:
        words.append(f"{100 * line['variant_rate']:g} % variants")
    if line["indel_length"] > 1:
        words.append(f"indels of {line['indel_length']} or more")
    words.append("own simulator" if line["simulator"] == "own" else line["simulator"])
    return ", ".join(words)


def runs_of(lines: list[dict]) -> dict[tuple[str, str], dict[str, dict]]:
    """Group lines by reference and reads, and by mapper; later lines replace earlier ones."""
    runs: dict[tuple[str, str], dict[str, dict]] = {}
    for line in lines:
        reference = line["reference"].removesuffix(".fa")
        runs.setdefault((reference, reads_of(line)), {})[line["mapper"]] = line
    return runs


def sets_of(lines: list[dict]) -> dict[tuple, dict[str, dict]]:
    """Group lines by genome, reads, rate and seed, sorted, and by mapper."""
    sets: dict[tuple, dict[str, dict]] = {}
    for line in lines:
        if line["seed"] != CHOSEN_WITH:
            ends, length = map(int, line["reads"].split("x"))
            key = line["genome"], ends, length, line["rate"], line["seed"]
            sets.setdefault(key, {})[line["mapper"]] = line
    return dict(sorted(sets.items()))


def by_step(line: dict) -> list[tuple[int, float, int]]:
    """Return reads, and predicted and actual incorrect reads, by bins of quality."""
    if "calibration" in line:
        return [(step["reads"], step["claimed"], step["wrong"]) for step in line["calibration"]]
    steps = []
    for low, high in pairwise(STEPS):
        both = zip(line["right_by_quality"], line["wrong_by_quality"], strict=True)
        some = list(both)[low:high]
        claimed = sum(sum(pair) * 10 ** (-q / 10) for q, pair in enumerate(some, low))
        steps.append((sum(map(sum, some)), claimed, sum(wrong for _, wrong in some)))
    return steps


def roc(line: dict) -> list[tuple[float, float]]:
    """Return incorrect reads per million and the percentage of correct ones by minimum quality."""
    steps = by_step(line)
    total = sum(reads for reads, _, _ in steps) + line["unmapped"]
    points, correct, incorrect = [], 0, 0
    for reads, _, wrong in reversed(steps):
        correct, incorrect = correct + reads - wrong, incorrect + wrong
        if reads:
            points.append((max(1e6 * incorrect / total, 1), 100 * correct / total))
    return points


def calibration(lines: list[dict]) -> list[tuple[float, float]]:
    """Return the predicted and observed quality of each bin, over all lines."""
    points = []
    for steps in zip(*map(by_step, lines), strict=True):
        reads, claimed, wrong = (sum(column) for column in zip(*steps, strict=True))
        if reads >= ENOUGH and claimed:
            # Half a read is added, so that bins without incorrect reads have a quality, too.
            shares = claimed / reads, (wrong + 0.5) / reads
            points.append(tuple(-10 * math.log10(share) for share in shares))
    return points


def roc_panel(title: str, by_mapper: dict[str, dict]) -> Panel:
    curves = {mapper: roc(line) for mapper, line in in_order(by_mapper).items()}
    least = min(y for points in curves.values() for _, y in points[len(points) // 3 :])
    least = max(0, math.floor(least - 0.5))
    return Panel(title, curves, Axis("correct, %", least, 100, (least, (least + 100) / 2, 100)))


def in_order(by_mapper: dict) -> dict:
    return {mapper: by_mapper[mapper] for mapper in MAPPERS if mapper in by_mapper}


def mappers_of(groups) -> list[str]:
    return [mapper for mapper in MAPPERS if any(mapper in group for group in groups)]


def map_runs(lines: Lines) -> dict[tuple[str, str], dict[str, dict]]:
    """Return the runs of map_accuracy.py."""
    return runs_of(lines("map_accuracy.json"))


def roc_pictures(lines: Lines) -> Iterator[tuple[str, str, str]]:
    """Return name, SVG and caption for the runs of map.py, and for each genome of map_sets.py."""
    runs = map_runs(lines)
    if runs:
        parts = [
            roc_panel(", ".join(key).removesuffix(", dwgsim"), run) for key, run in runs.items()
        ]
        title = "Correct against incorrect reads, for every least mapping quality"
        svg = panels(title, _INCORRECT, parts, 4, mappers_of(runs.values()))
        yield "map", svg, f"{title}; none incorrect is drawn at 1."
    genomes: dict[str, dict] = {}
    for (genome, *rest), by_mapper in sets_of(lines("map_sets.jsonl")).items():
        genomes.setdefault(genome, {})[tuple(rest)] = by_mapper
    for genome, sets in genomes.items():
        parts = [
            roc_panel(f"{ends} x {length}, {rate:g} %, seed {seed}", by_mapper)
            for (ends, length, rate, seed), by_mapper in sets.items()
        ]
        title = f"{genome}: correct against incorrect reads, by reads and rate of differences"
        yield genome, panels(title, _INCORRECT, parts, 4, mappers_of(sets.values())), title


def calibration_pictures(lines: Lines) -> Iterator[tuple[str, str, str]]:
    """Return name, SVG and caption: a panel per reference of map.py, and per genome and reads."""
    groups: dict[str, dict[str, list[dict]]] = {}
    for (reference, _), run in map_runs(lines).items():
        for mapper, line in run.items():
            groups.setdefault(f"{reference}, all reads", {}).setdefault(mapper, []).append(line)
    for (genome, ends, length, *_), by_mapper in sets_of(lines("map_sets.jsonl")).items():
        for mapper, line in by_mapper.items():
            key = f"{genome}, {ends} x {length}"
            groups.setdefault(key, {}).setdefault(mapper, []).append(line)
    if groups:
        parts = [
            Panel(key, {mapper: calibration(some) for mapper, some in in_order(group).items()},
                  _OBSERVED)
            for key, group in groups.items()
        ]  # fmt: skip
        title = "Mapping qualities: claimed against observed"
        svg = panels(title, _CLAIMED, parts, 4, mappers_of(groups.values()), even=True)
        yield "quality", svg, f"{title}; below the dotted line they claim too much."
