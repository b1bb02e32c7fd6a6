"""The age of a figure: whether the code that it measures has changed since its commit."""

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

#: A figure that fell by a smaller share counts as unchanged.
NOISE = 0.05

#: The folder of shared GPU code, and the ending of modules that run only on GPUs.
SHARED_ON_GPU, ON_GPU = "bwarp/gpu", "_cuda.py"


@functools.cache
def measured_code() -> dict[str, tuple[tuple[str, ...], bool]]:
    """Return the code that a file of results measures, by config.yaml, and whether on a GPU."""
    return {one.results: (tuple(one.measures), one.gpu) for one in benchmarks().values()}


@functools.cache
def has_changed_since(commit: str | None, paths: tuple[str, ...], gpu: bool) -> bool | None:
    """Return whether the code in these paths differs from a commit; None if git does not know.

    Comments, docstrings and formatting are not code. For a CPU, GPU code is ignored; for a GPU,
    shared GPU code counts only if the rest imports it.
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
    """Return imports of the modules in these paths, except those of shared GPU code."""
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
    """Return a line's commit in words, and whether the code is newer."""
    commit = line.get("commit")
    if not commit:
        return "unknown"
    paths, gpu = measured_code()[results]
    # Benchmarks that run anywhere have some lines from a GPU.
    is_older = has_changed_since(commit, paths, gpu or "gpu" in line)
    words = commit[:8] + "+" * commit.endswith("+")
    return words if is_older is False else f"{words} ({'older' if is_older else 'age unknown'})"


class Fall(NamedTuple):
    """A figure that is worse than the one before it."""

    before: Figure
    now: Figure

    @property
    def times(self) -> float:
        """Return how many times as good it was."""
        ratio = self.now.value / self.before.value
        return ratio if self.now.less_is_better else 1 / ratio


def falls(before: Iterable[Figure], now: Iterable[Figure]) -> list[Fall]:
    """Return figures of the same job and machine that fell by more than noise, largest first."""
    earlier = {figure.key: figure for figure in before}
    both = [Fall(earlier[figure.key], figure) for figure in now if figure.key in earlier]
    return sorted((fall for fall in both if fall.times > 1 + NOISE), key=lambda fall: -fall.times)


def earlier_figures(figures: list[Figure]) -> list[Figure]:
    """Return the figures at the last release in git, or the previous figures without a release.

    A previous figure is from the last version of its file in which its value differs.
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
    """Return the figures in an old version of a file; none if its lines had other fields."""
    text = git("show", f"{commit}:{path}") or ""
    try:
        lines = [json.loads(line) for line in text.splitlines()]
        return all_figures(lambda name: lines if name == results else [])
    except (KeyError, ValueError):
        return []
