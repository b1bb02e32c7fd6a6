"""The tables of docs/accuracy.md."""

import math
import re

from drawing.accuracy import map_runs, sets_of
from drawing.figures import Lines
from drawing.tables import Table

__all__ = ["TABLES"]

BOTH = ("bwarp", "bwa mem")
SETS = "map_sets.jsonl"

#: Kinds of difference in bwarp.evaluation.agreement, and their names in tables.
KINDS = {
    "same": "same",
    "same locus, equal score": "same locus, equal score",
    "same locus, here better": "same locus, bwarp better",
    "same locus, there better": "same locus, other better",
    "elsewhere, equal score": "other locus, equal score",
    "elsewhere, here better": "other locus, bwarp better",
    "elsewhere, there better": "other locus, other better",
    "mapped here only": "mapped by bwarp only",
    "mapped there only": "mapped by the other only",
}


def accuracy(lines: Lines) -> Table:
    """Draw the runs of map.py, one row per mapper."""
    rows, used = [], []
    for (reference, reads), run in map_runs(lines).items():
        for at, (mapper, line) in enumerate(run.items()):
            where = (reference, reads) if at == 0 else ("", "")
            rows.append((
                *where, f"{mapper} {line.get('version', '')}".strip(), f"{line['right']:.3f}",
                f"{line['right_q10']:.3f} / {line['wrong_ppm_q10']}",
                f"{line['right_q30']:.3f} / {line['wrong_ppm_q30']}", line["random_q10"],
            ))  # fmt: skip
            used.append(line)
    heads = ["reference", "reads", "mapper", "correct %", "Q >= 10 correct % / incorrect ppm",
             "Q >= 30 correct % / incorrect ppm", "random at Q >= 10"]  # fmt: skip
    return Table(heads, rows, used, "map_accuracy.json")


def ahead(lines: Lines) -> Table:
    """Return the percentage points by which bwarp is ahead of bwa mem."""
    rows, used = [], []
    for (reference, reads), run in map_runs(lines).items():
        if not set(BOTH) <= set(run):
            continue
        ours, theirs = (run[mapper] for mapper in BOTH)
        points = [f"{ours[key] - theirs[key]:+.3f}" for key in ("right", "right_q10", "right_q30")]
        incorrect = " / ".join(str(sum(line["wrong_by_quality"][10:])) for line in (ours, theirs))
        rows.append((reference, reads, *points, incorrect))
        used += [ours, theirs]
    heads = ["reference", "reads", "correct", "correct at Q >= 10", "correct at Q >= 30",
             "incorrect at Q >= 10, bwarp / bwa mem"]  # fmt: skip
    return Table(heads, rows, used, "map_accuracy.json")


def mean(some: list[dict], key: str) -> float:
    """Return the mean over all lines."""
    return sum(line[key] * line["total"] for line in some) / sum(line["total"] for line in some)


def cells_of(by_mapper: dict[str, list[dict]]) -> list[str]:
    """Return correct and incorrect reads of each mapper present."""
    both = [by_mapper[mapper] for mapper in BOTH if by_mapper.get(mapper)]
    forms = {"right": "{:.2f}", "wrong_ppm_q10": "{:.0f}", "right_q30": "{:.2f}",
             "wrong_ppm_q30": "{:.0f}"}  # fmt: skip
    return [
        " / ".join(form.format(mean(some, key)) for some in both) for key, form in forms.items()
    ]


SET_HEADS = ["correct %, bwarp / bwa mem", "Q >= 10 incorrect ppm", "Q >= 30 correct %",
             "Q >= 30 incorrect ppm"]  # fmt: skip


def sets(lines: Lines) -> Table:
    """Draw a row per genome and kind of reads, over sets of all rates and seeds."""
    kinds: dict[tuple, list[dict]] = {}
    for (genome, ends, length, *_), by_mapper in sets_of(lines(SETS)).items():
        kinds.setdefault((genome, ends, length), []).append(by_mapper)
    rows, used = [], []
    for (genome, ends, length), members in kinds.items():
        together = {
            mapper: [member[mapper] for member in members]
            for mapper in BOTH
            if all(mapper in member for member in members)
        }
        rows.append((genome, f"{ends} x {length}", len(members), *cells_of(together)))
        used += sum(together.values(), [])
    return Table(["genome", "reads", "sets", *SET_HEADS], rows, used, SETS)


def worse(lines: Lines) -> Table:
    """Draw a row per set in which bwa mem is better at a quality of 10 or 30."""
    rows, used = [], []
    for (genome, ends, length, rate, seed), by_mapper in sets_of(lines(SETS)).items():
        if not set(BOTH) <= set(by_mapper):
            continue
        ours, other = (by_mapper[mapper] for mapper in BOTH)
        fewer = ours["right_q30"] < other["right_q30"]
        if fewer or any(ours[key] > other[key] for key in ("wrong_ppm_q10", "wrong_ppm_q30")):
            cells = cells_of({mapper: [by_mapper[mapper]] for mapper in BOTH})
            rows.append((genome, f"{ends} x {length}", f"{rate:g} %", seed, *cells))
            used += [ours, other]
    return Table(["genome", "reads", "differences", "seed", *SET_HEADS], rows, used, SETS)


def qualities(lines: Lines) -> Table:
    """Draw predicted and observed qualities of each genome over all its sets, by bins."""
    steps: dict[str, dict[int, dict[str, list]]] = {}
    used = [line for by_mapper in sets_of(lines(SETS)).values() for line in by_mapper.values()]
    for line in used:
        for step in line["calibration"]:
            by_mapper = steps.setdefault(line["genome"], {}).setdefault(step["least"], {})
            found = by_mapper.setdefault(line["mapper"], [0, 0.0, 0])
            for at, key in enumerate(("reads", "claimed", "wrong")):
                found[at] += step[key]
    rows = []
    for genome, by_step in sorted(steps.items()):
        lows = sorted(by_step)
        for low, high in zip(lows, [*lows[1:], 61], strict=True):
            cells = []
            for mapper in BOTH:
                n, claimed, wrong = by_step[low].get(mapper, (0, 0.0, 0))
                # Half a read is added, so that bins without incorrect reads have a quality, too.
                pair = (claimed, wrong + 0.5) if n and claimed else ()
                cells += [f"{-10 * math.log10(share / n):.1f}" for share in pair] or ["", ""]
            n = by_step[low].get("bwarp", (0,))[0]
            rows.append((genome, f"{low} to {high - 1}", f"{n:,}", *cells))
    heads = ["genome", "quality", "reads", "claimed, bwarp", "observed, bwarp",
             "claimed, bwa mem", "observed, bwa mem"]  # fmt: skip
    return Table(heads, rows, used, SETS)


def gap_pairs(lines: Lines) -> Table:
    """Draw the percentage of reads aligned with both gaps of a pair, by mapper."""
    used = [line for line in lines(SETS) if "both_gaps" in line]
    rows = [
        (f"{line['reads'].replace('x', ' x ')}", f"{line['mapper']} {line['version']}",
         f"{line['right']:.2f}", f"{line['both_gaps']:.2f}")
        for line in used
    ]  # fmt: skip
    return Table(["reads", "mapper", "correct %", "aligned with both gaps, %"], rows, used, SETS)


def real(lines: Lines) -> Table:
    """Draw real reads by kind of difference, if one side has a high mapping quality."""
    used, rows = lines("map_real.json"), []
    for line in used:
        beside = line["beside"].replace("as they came", "published")
        rows.append((line["reads"], beside, *(line["sure"].get(kind, 0) for kind in KINDS)))
    return Table(["reads", "compared with", *KINDS.values()], rows, used, "map_real.json")


def breakpoints(lines: Lines) -> Table:
    """Draw the percentage of reads over breakpoints with all parts correct, by mapper."""
    used = lines("map_breakpoints.jsonl")
    groups: dict[str, list[str]] = {}
    for kind in used[0]["right"] if used else ():
        name = kind.replace(", small", ", up to 100 bases").replace(", large", ", more")
        name = re.sub("parts of (.*)", r"shortest part of \1 bases or more", name)
        name = re.sub("translocation.*", "translocation", name)
        groups.setdefault(name.replace("duplication", "tandem duplication"), []).append(kind)
    rows = []
    for name, kinds in groups.items():
        weights = [used[0]["reads"][kind] for kind in kinds]
        shares = (
            sum(line["right"][kind] * n for kind, n in zip(kinds, weights, strict=True))
            for line in used
        )
        rows.append((name, f"{sum(weights):,}", *(f"{s / sum(weights):.1f}" for s in shares)))
    for name, key in (
        ("incorrect at Q >= 30, ppm", "wrong_ppm_q30"),
        ("correct primary records at Q 0, %", "primary_q0"),
        ("correct supplementary records at Q >= 20, %", "supplementary_q20"),
    ):
        # Older lines lack the last two.
        if any(key in line for line in used):
            rows.append((name, "", *(line.get(key, "") for line in used)))
    heads = ["reads over", "reads", *(line["mapper"] for line in used)]
    return Table(heads, rows, used, "map_breakpoints.jsonl")


def calls(lines: Lines) -> Table:
    """Draw the recall and precision of calls of SNVs and indels, by mapper and caller."""
    kinds = {"SNVs": "SNVs", "indels": "indels"}
    return _calls([line for line in lines("calls.jsonl") if line["what"] == "calls"], kinds)


def structural_calls(lines: Lines) -> Table:
    """Draw the recall and precision of calls of structural variants, by mapper and caller."""
    kinds = {"DEL": "deletions", "DUP": "duplications", "INV": "inversions"}
    used = [line for line in lines("calls.jsonl") if line["what"] == "structural calls"]
    return _calls(used, kinds)


def _calls(used: list[dict], kinds: dict[str, str]) -> Table:
    rows = []
    for line in used:
        cells = []
        for kind in kinds:
            true, correct, incorrect = (
                line[kind][part] for part in ("true", "correct", "incorrect")
            )
            score = 200 * correct / max(1, true + correct + incorrect)
            precision = 100 * correct / max(1, correct + incorrect)
            cells += [f"{100 * correct / max(1, true):.2f}", f"{precision:.2f}", f"{score:.2f}"]
        genome = line["reference"].removesuffix(".fa").replace("_", " ")
        caller = f"{line['caller']} {line['caller_version']}"
        absent = "".join(f"; {name} absent" for name in line.get("absent", ()))
        rows.append((genome, f"{line['mapper']} {line['version']}", caller + absent, *cells))
    heads = ["genome", "mapper", "caller"]
    for name in kinds.values():
        heads += [f"recall of {name}, %", "precision, %", "F1, %"]
    return Table(heads, rows, used, "calls.jsonl")


TABLES = {
    "accuracy": accuracy,
    "ahead of bwa mem": ahead,
    "sets": sets,
    "sets with more incorrect reads": worse,
    "qualities": qualities,
    "gap pairs": gap_pairs,
    "real reads": real,
    "breakpoints": breakpoints,
    "calls of variants": calls,
    "calls of structural variants": structural_calls,
}
