"""The seconds of the jobs of steps, from Snakemake's benchmark files and the logs next to them."""

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from bwarp.counted import counted
from bwarp.report.charts import GREEN, Bar, bar_chart
from bwarp.report.page import section
from bwarp.runtime.progress import engine_in, seconds_of_compiling


class Jobs(NamedTuple):
    """The number of jobs of a step, their seconds without compilation, and their engines."""

    number: int
    seconds: float
    engines: frozenset[str]


def jobs_of(paths: Sequence[str | os.PathLike], steps: Collection[str]) -> dict[str, Jobs]:
    """Return the jobs of each step; their files are in a folder of that name."""
    found: dict[str, Jobs] = {}
    for path in map(Path, paths):
        # A sample may have the same name as a step.
        step = next((part for part in path.parts if part in steps), None)
        if step is None:
            continue
        # Even a job of less than a second has a line; an interrupted one has none.
        rows = path.read_text().splitlines()[1:]
        seconds = sum(float(row.split("\t")[0]) for row in rows)
        log = path.with_name(path.name.replace(".benchmark.tsv", ".log"))
        engine = ""
        if log.exists():
            said = log.read_text(errors="replace")
            seconds = max(0.0, seconds - seconds_of_compiling(said))
            engine = engine_in(said)
        before = found.get(step, Jobs(0, 0.0, frozenset()))
        engines = before.engines | {engine} - {""}
        found[step] = Jobs(before.number + 1, before.seconds + seconds, engines)
    return found


def times_section(jobs: Mapping[str, Jobs], steps: Collection[str]) -> str:
    """Return the section of a page with the seconds of steps, in their order."""
    bars = [
        Bar(step, [one.seconds], f"{one.seconds:,.1f} s, {counted(one.number, 'job')}")
        for step, one in ((step, jobs[step]) for step in steps if step in jobs)
    ]
    return section(
        "Times of the steps",
        bar_chart(bars, {"": GREEN}),
        f"The jobs took {sum(one.seconds for one in jobs.values()):,.1f} s in total.",
        "The seconds of all jobs of a step, as measured by Snakemake, without compilation, which "
        "only happens when a program is first used on a machine.",
    )
