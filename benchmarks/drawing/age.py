"""How old a figure is: whether the code that it measures has changed since its commit."""

import ast
import functools
import json
from collections.abc import Iterable
from typing import NamedTuple

from frame import environment
from frame.environment import git
from frame.table import benchmarks

from bwarp.runtime.source_digest import imported_sources
from drawing.figures import Figure, all_figures

__all__ = ["Fall", "age_of", "earlier_figures", "falls", "has_changed_since", "measured_code"]

#: A figure that fell by less than this share did not.
NOISE = 0.05

#: What all GPU code shares, and how modules that run on GPUs only are named.
SHARED_ON_GPU, ON_GPU = "bwarp/gpu", "_cuda.py"


@functools.cache
def measured_code() -> dict[str, tuple[tuple[str, ...], bool]]:
    """Of config.yaml: what the lines of a file of results measure, and whether on a GPU."""
    return {one.results: (tuple(one.measures), one.gpu) for one in benchmarks().values()}


@functools.cache
def has_changed_since(commit: str | None, paths: tuple[str, ...], gpu: bool) -> bool | None:
    """Whether these paths hold other code than at a commit; None where git does not know.

    Comments and docstrings are no code, nor is how it is laid out. For a CPU the code of GPUs does
    not count; for a GPU, of what all GPU code shares, only what the rest of it imports.
    """
    if not commit:
        return None
    commit = commit.rstrip("+")
    changed = git("diff", "--name-only", "--no-renames", commit, "HEAD", "--", *paths)
    if changed is None:
        return None
    counts = functools.partial(_runs_on_gpu, paths) if gpu else _runs_on_cpu
    return any(counts(path) and _differs(commit, path) for path in changed.splitlines())


def _runs_on_cpu(path: str) -> bool:
    return not (path.startswith(f"{SHARED_ON_GPU}/") or path.endswith(ON_GPU))


def _runs_on_gpu(paths: tuple[str, ...], path: str) -> bool:
    return not path.startswith(f"{SHARED_ON_GPU}/") or path in _imported(paths)


@functools.cache
def _imported(paths: tuple[str, ...]) -> set[str]:
    """What the modules in these paths import, but for the shared code of GPUs among them."""
    checkout = environment.CHECKOUT
    listed = git("ls-files", "--", *paths, f":(exclude){SHARED_ON_GPU}") or ""
    modules = [checkout / name for name in listed.splitlines() if name.endswith(".py")]
    found = {path for one in modules for path in imported_sources(one, checkout / "bwarp")}
    return {str(path.relative_to(checkout)) for path in found}


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
    paths, gpu = measured_code()[results]
    # Some lines of a benchmark that runs anywhere are of a GPU.
    is_older = has_changed_since(commit, paths, gpu or "gpu" in line)
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
