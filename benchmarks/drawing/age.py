"""How old a figure is: whether the code that it measures has changed since its commit."""

import ast
import functools
import json
from collections.abc import Iterable
from typing import NamedTuple

from frame.environment import git
from frame.table import benchmarks

from drawing.figures import Figure, all_figures

__all__ = ["Fall", "age_of", "earlier_figures", "falls", "has_changed_since", "measured_paths"]

#: A figure that fell by less than this share did not.
NOISE = 0.05


@functools.cache
def measured_paths() -> dict[str, tuple[str, ...]]:
    """The code that the lines of a file of results measure, of config.yaml."""
    return {one.results: tuple(one.measures) for one in benchmarks().values()}


@functools.cache
def has_changed_since(commit: str | None, paths: tuple[str, ...]) -> bool | None:
    """Whether these paths hold other code than at a commit; None where git does not know.

    Comments and docstrings are no code, nor is how it is laid out.
    """
    if not commit:
        return None
    commit = commit.rstrip("+")
    changed = git("diff", "--name-only", "--no-renames", commit, "HEAD", "--", *paths)
    return None if changed is None else any(_differs(commit, path) for path in changed.splitlines())


@functools.cache
def _differs(commit: str, path: str) -> bool:
    before, now = (git("show", f"{one}:{path}") for one in (commit, "HEAD"))
    if not path.endswith(".py") or before is None or now is None:
        return True
    return _code(before) != _code(now)


def _code(text: str) -> str:
    tree = ast.parse(text)
    for node in ast.walk(tree):
        has_docstring = isinstance(
            node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
        )
        if has_docstring and ast.get_docstring(node, clean=False) is not None:
            del node.body[0]
    return ast.dump(tree)


def age_of(line: dict, results: str) -> str:
    """A line's commit in words, and whether the code is newer."""
    commit = line.get("commit")
    if not commit:
        return "unknown"
    is_older = has_changed_since(commit, measured_paths()[results])
    words = commit[:8] + "+" * commit.endswith("+")
    return words if is_older is False else f"{words} ({'older' if is_older else 'age unknown'})"


class Fall(NamedTuple):
    """A figure that is worse than the one before it."""

    before: Figure
    now: Figure

    @property
    def times(self) -> float:
        """How many times as good it was."""
        ratio = self.now.value / self.before.value
        return ratio if self.now.less_is_better else 1 / ratio


def falls(before: Iterable[Figure], now: Iterable[Figure]) -> list[Fall]:
    """Figures of the same job and machine that fell by more than noise, the most first."""
    earlier = {figure.key: figure for figure in before}
    both = [Fall(earlier[figure.key], figure) for figure in now if figure.key in earlier]
    return sorted((fall for fall in both if fall.times > 1 + NOISE), key=lambda fall: -fall.times)


def earlier_figures(figures: list[Figure]) -> list[Figure]:
    """Of figures in git those of the last release, or where there is none, those before them.

    A figure before another is of the last version of its file in which it has another value.
    """
    release = git("describe", "--tags", "--abbrev=0")
    found = []
    for results in {figure.results for figure in figures}:
        wanted = {figure.key: figure for figure in figures if figure.results == results}
        path = f"benchmarks/results/{results}"
        commits = [release] if release else (git("log", "--format=%h", "--", path) or "").split()
        for commit in commits:
            for figure in figures_at(commit, results, path):
                now = wanted.get(figure.key)
                if now and (release or figure.value != now.value):
                    found.append(figure)
                    del wanted[figure.key]
    return found


def figures_at(commit: str, results: str, path: str) -> list[Figure]:
    """The figures of a file as it was; none of one whose lines had other fields."""
    text = git("show", f"{commit}:{path}") or ""
    try:
        lines = [json.loads(line) for line in text.splitlines()]
        return all_figures(lambda name: lines if name == results else [])
    except (KeyError, ValueError):
        return []
