"""The seconds of the jobs of steps, from Snakemake's benchmark files and the logs next to them."""

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

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
