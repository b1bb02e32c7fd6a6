"""The list of benchmarks: benchmarks/config.yaml as records."""

import shlex
from pathlib import Path
from typing import NamedTuple

import yaml

from frame.environment import CHECKOUT, git

__all__ = ["Benchmark", "benchmarks", "last_change"]


class Benchmark(NamedTuple):
    """One program with its options; config.yaml explains the fields."""

    title: str
    results: str
    measures: list[str]
    program: Path
    data: str = ""
    options: str = ""
    job: list[str] = []
    after: str = ""
    gpu: bool = False

    def command(self, data: dict[str, str], small: bool) -> list:
        """Return the program with its options; `data` gives the paths of named data."""
        options = f"{self.data.format(**data)} {'--small' if small else self.options}"
        return [self.program, *shlex.split(options)]


def benchmarks(config: dict | None = None) -> dict[str, Benchmark]:
    """Return all benchmarks in config.yaml by name."""
    folder = CHECKOUT / "benchmarks"
    config = config or yaml.safe_load((folder / "config.yaml").read_text())
    return {
        name: Benchmark(**fields | {"program": folder / fields.get("program", f"{name}.py")})
        for name, fields in config["benchmarks"].items()
    }


def last_change(paths: list[str]) -> str:
    """Return the last commit that changed these paths, and their uncommitted changes."""
    last = git("log", "-1", "--format=%h", "--", *paths)
    changed = git("diff", "HEAD", "--stat", "--", *paths)
    return f"{last} {changed or ''}".strip()
