"""Timing of calls, of programs, and of jobs in turn."""

import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Hashable, Mapping
from typing import NamedTuple

__all__ = ["Used", "in_turn", "median_seconds", "run_program", "timed"]


class Used(NamedTuple):
    """Resources that a program used: wall seconds, CPU seconds, bytes of memory; its messages."""

    wall: float
    processor: float
    peak: int
    said: str


def timed(function: Callable, repeats: int) -> tuple[list[float], object]:
    """Return the seconds of some calls, after one that is not counted, and the last result."""
    result = function()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        result = function()
        seconds.append(time.perf_counter() - start)
    return seconds, result


def median_seconds(function: Callable, repeats: int) -> float:
    """Return the median of the seconds that `timed` measures."""
    return statistics.median(timed(function, repeats)[0])


def in_turn(jobs: Mapping[Hashable, Callable], rounds: int) -> dict[Hashable, list]:
    """Run each job once per round, so that disturbances affect all; return their results.

    Every other round runs them in reverse, so that a machine that becomes faster or slower favours
    none.
    """
    returned = {name: [] for name in jobs}
    names = list(jobs)
    for _ in range(rounds):
        for name in names:
            returned[name].append(jobs[name]())
        names.reverse()
    return returned


def run_program(command: list, stdout=subprocess.DEVNULL, cwd=None) -> Used:
    """Run a program and measure it; if it fails, exit with its error message."""
    command = list(map(str, command))
    with tempfile.TemporaryFile() as said:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=stdout, stderr=said, cwd=cwd)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        words = said.read().decode(errors="replace")
        if process.returncode:
            raise SystemExit(f"{' '.join(command)} ended with {process.returncode}:\n{words}")
    processor = used.ru_utime + used.ru_stime
    return Used(round(wall, 3), round(processor, 3), used.ru_maxrss * 1024, words)
