#!/usr/bin/env python3
"""Replace older lines in benchmarks/results with those of a new run of the benchmarks.

    make bench
    python benchmarks/keep.py
    python benchmarks/draw_docs.py

config.yaml lists the fields of a line that identify its job. All lines of a job come from one run:
those in git are replaced if the run has every program that they have. If it lacks one, such as a
peer that is not installed, the old lines stay and new jobs are added. Runs with little data are
rejected, as are lines whose code differs from their commit.
"""

import json
import re
import sys
from collections.abc import Callable, Hashable
from pathlib import Path

from frame.options import CHECKOUT, HERE, new_parser
from frame.table import Benchmark, benchmarks

KEPT = CHECKOUT / "benchmarks" / "results"


def programs_of(lines: list[dict]) -> set[str]:
    """Return the programs in lines; figures of libraries are in the lines of bwarp."""
    named = {line.get("program") or line.get("mapper") for line in lines} - {None}
    libraries = ("parasail", "edlib")
    return named | {name for name in libraries for line in lines if f"{name}_gcups" in line}


def job_of(fields: list[str]) -> Callable[[dict], Hashable]:
    """Return a function from a line to its job; without fields, all lines have the same job."""

    def job(line: dict) -> Hashable:
        values = [str(line.get(field)) for field in fields]
        # A reference may be identified by the folder of its index.
        return tuple(re.sub(r"\.(ix|index)$", "", value) for value in values)

    return job


def by_job(lines: list[dict], job: Callable[[dict], Hashable]) -> dict[Hashable, list[dict]]:
    jobs: dict[Hashable, list[dict]] = {}
    for line in lines:
        jobs.setdefault(job(line), []).append(line)
    return jobs


def merged(before: list[dict], now: list[dict], fields: list[str]) -> tuple[list[dict], list]:
    """Return the lines of jobs in their order, new ones last, and the programs missing in the run.

    Returns
    -------
    lines : list of dict
    lacking : list of (job, set of str)
        Jobs whose older lines are kept.
    """
    job = job_of(fields)
    older, newer = by_job(before, job), by_job(now, job)
    lacking = [
        (name, missing)
        for name in older.keys() & newer.keys()
        if (missing := programs_of(older[name]) - programs_of(newer[name]))
    ]
    return sum((older | newer | {name: older[name] for name, _ in lacking}).values(), []), lacking


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.open()] if path.exists() else []


def check(path: Path) -> None:
    """Reject lines from runs with little data, or with uncommitted code."""
    lines = lines_of(path)
    if any(line.get("small") for line in lines):
        sys.exit(f"{path}: its lines are of little data")
    if any(str(line.get("commit")).endswith(("+", "None")) for line in lines):
        sys.exit(f"{path}: the code of its lines is not that of a commit")


def keep(benchmark: Benchmark, folder: Path, kept: Path) -> None:
    """Update the results file of a benchmark, and return a message about it."""
    now = lines_of(folder / benchmark.results)
    if not now:
        return
    before = lines_of(kept / benchmark.results)
    lines, lacking = merged(before, now, benchmark.job)
    (kept / benchmark.results).write_text("".join(json.dumps(line) + "\n" for line in lines))
    print(f"{benchmark.results}: {sum(line in now for line in lines)} new lines of {len(lines)}")
    for job, missing in lacking:
        print(f"  {', '.join(job)} stays, for the run has no {', '.join(sorted(missing))}")


def main() -> None:
    parser = new_parser(__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=HERE, help="default: %(default)s")
    parser.add_argument("--kept", type=Path, default=KEPT, help="default: %(default)s")
    options = parser.parse_args()
    described = options.folder / "config.json"
    if not described.exists():
        sys.exit(f"{described} is not there: only a run of make bench can be kept")
    config = json.loads(described.read_text())
    if config["small"]:
        sys.exit(f"{options.folder} has a run of little data")
    # Other files in the folder are from an unknown earlier run.
    chosen = [one for name, one in benchmarks().items() if name in (config["only"] or [name])]
    for benchmark in chosen:
        check(options.folder / benchmark.results)
    for benchmark in chosen:
        keep(benchmark, options.folder, options.kept)


if __name__ == "__main__":
    main()
