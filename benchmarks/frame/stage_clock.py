"""Seconds in functions of a run, summed over its threads."""

import functools
import inspect
import threading
import time
from collections import defaultdict
from collections.abc import Mapping
from types import ModuleType
from typing import NamedTuple

__all__ = ["Stage", "StageClock"]


class Stage(NamedTuple):
    """The CPU and wall seconds of all calls of a stage, and their number."""

    processor: float
    wall: float
    calls: int


class StageClock:
    """Context that measures functions of modules; for a generator, the making of its items.

    Parameters
    ----------
    functions : mapping of str to (module or class, str)
        The module or class of each stage's function, and its name there.
    """

    def __init__(self, functions: Mapping[str, tuple[ModuleType | type, str]]):
        self._functions = functions
        self._lock = threading.Lock()
        self.stages: dict[str, Stage] = defaultdict(lambda: Stage(0.0, 0.0, 0))

    def __enter__(self) -> "StageClock":
        self._replaced = []
        for stage, (owner, name) in self._functions.items():
            function = getattr(owner, name)
            make = self._of_items if inspect.isgeneratorfunction(function) else self._of_calls
            self._replaced.append((owner, name, function))
            setattr(owner, name, make(stage, function))
        return self

    def __exit__(self, *_) -> None:
        for owner, name, function in reversed(self._replaced):
            setattr(owner, name, function)

    def _timed(self, stage: str, work):
        processor, wall = time.thread_time(), time.perf_counter()
        try:
            return work()
        finally:
            processor, wall = time.thread_time() - processor, time.perf_counter() - wall
            with self._lock:
                before = self.stages[stage]
                self.stages[stage] = Stage(
                    before.processor + processor, before.wall + wall, before.calls + 1
                )

    def _of_calls(self, stage: str, function):
        @functools.wraps(function)
        def timed(*arguments, **options):
            return self._timed(stage, lambda: function(*arguments, **options))

        return timed

    def _of_items(self, stage: str, function):
        @functools.wraps(function)
        def timed(*arguments, **options):
            items, end = function(*arguments, **options), object()
            while (item := self._timed(stage, lambda: next(items, end))) is not end:
                yield item

        return timed
