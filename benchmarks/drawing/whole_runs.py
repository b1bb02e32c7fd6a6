"""Whole runs of mappers, from FASTQ to SAM or BAM: seconds, memory, price, scaling, options."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from drawing.figures import Lines, machine_of
from drawing.speed_tables import table
from drawing.tables import Table

__all__ = [
    "TABLES",
    "WholeRun",
    "options_of_mapping",
    "price_of",
    "scaling",
    "whole_run_rows",
    "whole_runs",
]


class WholeRun(NamedTuple):
    """A run of one program; `reads` includes both mates."""

    what: str
    of: str
    program: str
    reads: int
    seconds: float
    memory_mb: float
    line: dict


def whole_runs(lines: Lines) -> Iterator[WholeRun]:
    """Return mapping runs from file to file."""
    for line in lines("map_cpu.json"):
        yield WholeRun(
            "FASTQ to SAM", line["reference"], line["mapper"], line["reads"],
            line["wall_seconds"], line["memory_mb"], line,
        )  # fmt: skip
    for line in lines("map_cores.jsonl"):
        if "memory_mb" in line:
            program = "strobealign" if "strobealign" in line["what"] else "bwarp"
            form = line["what"].removeprefix("strobealign ").removeprefix("map ")
            yield WholeRun(
                form.replace("fq", "FASTQ", 1), simulated(line), program, 2 * line["pairs"],
                line["wall_seconds"], line["memory_mb"], line,
            )  # fmt: skip
    for line in lines("map_h200.jsonl"):
        if line.get("what") == "gzipped FASTQ to sorted BAM":
            yield WholeRun(
                "FASTQ.gz to sorted BAM", simulated(line), "bwarp", 2 * line["pairs"],
                line["seconds"], 1e3 * line["host_gb"], line,
            )  # fmt: skip


def simulated(line: dict) -> str:
    return f"{line['bases'] / 1e6:,.0f} Mb simulated"


def price_of(run: WholeRun, an_hour: Mapping[str, float]) -> str:
    """Return the cost of a million reads; empty if the price of the machine is unknown."""
    price = an_hour.get("gpu" if "gpu" in run.line else "cpu")
    return f"{price * run.seconds / 3600 / run.reads * 1e6:.2g}" if price else ""


def whole_run_rows(lines: Lines, an_hour: Mapping[str, float]) -> tuple[list[str], list[tuple]]:
    """Return heads and rows, with the price of a million reads if the price of an hour is known."""
    heads = ["what", "data", "reads", "program", "machine", "seconds", "reads per second",
             "memory, MB"]  # fmt: skip
    rows = []
    for run in whole_runs(lines):
        row = (
            run.what, run.of, f"{run.reads:,}", run.program, machine_of(run.line),
            f"{run.seconds:.1f}", f"{run.reads / run.seconds:,.0f}", f"{run.memory_mb:,.0f}",
        )  # fmt: skip
        rows.append((*row, price_of(run, an_hour)) if an_hour else row)
    return [*heads, "price of a million reads"] if an_hour else heads, rows


def scaling(lines: Lines) -> Table:
    """Draw a row per job of map_scaling.py: reads per second and memory by mapper."""
    results = "map_scaling.jsonl"
    jobs: dict[tuple, dict[str, dict]] = {}
    for line in lines(results):
        key = line["part"], line["reads"], line["threads"], line["bases"]
        jobs.setdefault(key, {})[line["mapper"]] = line
    mappers = list(dict.fromkeys(mapper for job in jobs.values() for mapper in job))

    def rows():
        for (part, reads, threads, bases), job in jobs.items():
            cells = (
                f"{reads / job[mapper]['wall_seconds']:,.0f}; {job[mapper]['memory_mb']:,} MB"
                if mapper in job else "" for mapper in mappers
            )  # fmt: skip
            size = f"{bases / 1e6:,.0f} Mb"
            yield (part, f"{reads:,}", threads, size, *cells), list(job.values())

    return table(["by", "reads", "threads", "genome", *mappers], results, rows())


def options_of_mapping(lines: Lines) -> Table:
    """Draw a row per option of map_options.py: the seconds of each engine, and their ratio to those
    of the run without the option; likewise of the records, if there are many more."""
    results = "map_options.jsonl"
    # Later lines replace earlier ones.
    latest = {(line["option"], machine_of(line)): line for line in lines(results)}
    machines = list(dict.fromkeys(machine for _, machine in latest))

    def cell(line: dict | None) -> str:
        if line is None:
            return ""
        without = line["seconds_without"]
        times = f", {line['seconds'] / without:.2f} x" if without else ""
        # Older lines do not have them.
        records, without = line.get("records"), line.get("records_without")
        if records and without and records > 1.05 * without:
            times += f" for {records / without:.2f} x the records"
        return f"{line['seconds']:.2f}{times}"

    def rows():
        for option in dict.fromkeys(option for option, _ in latest):
            found = [latest.get((option, machine)) for machine in machines]
            there = [line for line in found if line is not None]
            yield (option, there[0]["beside"] or "", *map(cell, found)), there

    reads = [next(line for (_, on), line in latest.items() if on == one) for one in machines]
    heads = [
        f"{machine}: seconds, {line['reads']:,} reads"
        for machine, line in zip(machines, reads, strict=True)
    ]
    return table(["run", "beside", *heads], results, rows())


TABLES = {"scaling": scaling, "options of mapping": options_of_mapping}
