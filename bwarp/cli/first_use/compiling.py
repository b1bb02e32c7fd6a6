"""Compile the listed functions of programs in parallel processes before they are called.

Numba compiles in one thread at a time. Therefore worker processes compile one function after the
other, the slowest first, and store the code (`bwarp.runtime.compiled_code`), where the waiting
program finds it. If no code can be stored, each program compiles what it calls.

With a GPU, kernels are compiled in the same way by workers that do not use the GPU
(`bwarp.gpu.compile_ahead`).
"""

import fcntl
import gc
import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import bwarp
from bwarp.cli.first_use.listed_functions import ListedFunction, functions_of_kind
from bwarp.cli.subcommands import SUBCOMMANDS
from bwarp.counted import counted
from bwarp.gpu.compile_ahead import SECONDS as KERNEL_SECONDS
from bwarp.gpu.compile_ahead import compile_kernel, kernels_of, pretend_to_have
from bwarp.runtime.compiled_code import code_folder, keep, kept, package_state, remove_unused
from bwarp.runtime.lazy_function import LazyFunction
from bwarp.runtime.progress import LONG_TO_COMPILE, compiling_took, duration, say, status_line
from bwarp.runtime.signals import not_ended, undone_if_ended
from bwarp.runtime.type_text import types_of_text

_COMPILING = "compiling for this machine (once)"

#: Below this number of seconds, programs compile on their own: workers take 0.5 s to start.
WORTH_IT = 3.0

Job = tuple[float, list]


def compile_once(kind: str, processes: int, capability: tuple[int, int] | None = None) -> None:
    """Compile what a kind of run needs, unless done already for this version and processor.

    Parameters
    ----------
    kind : str
        The kind of run (`bwarp.cli.first_use.listed_functions`).
    processes : int
        Number of worker processes.
    capability : tuple of int, optional
        Compute capability of the GPU that the run uses.
    """
    words = ("done", package_state(), kind, str(capability))
    if kept(*words) is None and code_folder() is not None:
        program = kind.split()[0]
        compile_missing(functions_of_kind(kind), [program], processes, capability, WORTH_IT)
        keep(b"", *words)


def compile_missing(
    functions: Sequence[ListedFunction],
    programs: Sequence[str],
    processes: int,
    capability: tuple[int, int] | None = None,
    worth: float = 0,
) -> None:
    """Compile functions, and kernels of programs for a GPU, whose code is not stored yet.

    If the functions take fewer seconds in total than `worth`, leave them to their callers.
    """
    start = time.monotonic()
    with _one_at_a_time():
        # Another program may have compiled them in the meantime.
        missing = [one for one in functions if _is_missing(one)]
        jobs = [(one.seconds, ["function", one.function, one.types]) for one in missing]
        notes = [_note_of_kernels(name, capability) for name in programs if capability]
        notes = [words for words in notes if kept(*words) is None]
        for _, _, program, _ in notes:
            for module, number in kernels_of([_source_of(program)], capability):
                job = ["kernel", module, number, capability]
                jobs.append((KERNEL_SECONDS.get(module, 0), job))
        if jobs and (notes or sum(seconds for seconds, _ in jobs) >= worth):
            # Start with the slowest, so that it does not delay the end.
            _compile(sorted(jobs, key=lambda job: -job[0]), processes)
            for words in notes:
                keep(b"", *words)
            remove_unused()
    # Including the time waited for another program that compiles.
    taken = time.monotonic() - start
    if taken > LONG_TO_COMPILE:
        say(compiling_took(taken))


def _note_of_kernels(program: str, capability: tuple[int, int]) -> tuple[str, ...]:
    return "kernels", package_state(), program, str(capability)


def _source_of(program: str) -> Path:
    module = SUBCOMMANDS[program].module.replace(".", "/")
    return Path(bwarp.__file__).parent / "cli" / f"{module}.py"


def _compile(jobs: Sequence[Job], processes: int) -> None:
    """Distribute the jobs among worker processes."""
    # Kernels of several programs are one job.
    seconds = {json.dumps(job): max(taken, 0.1) for taken, job in jobs}
    processes = min(processes, len(seconds))
    say(f"{_COMPILING}: {counted(len(seconds), 'function')}, {processes} at a time")
    left, done = iter(seconds), []
    paths = [str(Path(bwarp.__file__).parent.parent), os.environ.get("PYTHONPATH")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    workers: list[subprocess.Popen] = []

    def end_workers() -> None:
        for worker in workers:
            worker.kill()

    def feed(worker: subprocess.Popen) -> None:
        # If a worker fails or is killed, other workers or the callers compile the rest.
        with suppress(OSError):
            while (line := next(left, None)) is not None:
                worker.stdin.write(f"{line}\n")
                worker.stdin.flush()
                if not worker.stdout.readline():
                    return
                done.append(line)
                show(lambda passed: _progress(seconds, done, passed))

    with undone_if_ended(end_workers), status_line() as show, ThreadPoolExecutor(processes) as pool:
        # End the workers before the threads that wait for them are joined.
        try:
            for _ in range(processes):
                with not_ended():
                    workers.append(_worker(environment))
            list(pool.map(feed, workers))
        finally:
            end_workers()
    for worker in workers:
        worker.communicate()


def _progress(seconds: dict[str, float], done: Sequence[str], passed: float) -> str:
    """Return a line with the number of functions left and the estimated time."""
    taken = sum(seconds[line] for line in done)
    time_left = duration(passed / taken * (sum(seconds.values()) - taken))
    return f"{_COMPILING}: {counted(len(seconds) - len(done), 'function')} left, about {time_left}"


def _worker(environment: dict[str, str]) -> subprocess.Popen:
    """Start a process that compiles the jobs that it reads, until it is killed."""
    return subprocess.Popen(
        [sys.executable, "-m", __spec__.name],
        env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip


@contextmanager
def _one_at_a_time():
    """Wait while another program compiles for the same folder."""
    lock = None
    with suppress(OSError, TypeError):  # no code can be stored
        lock = os.open(code_folder() / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        if lock is not None:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        if lock is not None:
            os.close(lock)


def _function(function: str) -> LazyFunction:
    module, _, name = function.rpartition(".")
    return getattr(importlib.import_module(module), name)


def _is_missing(one: ListedFunction) -> bool:
    """Return whether a function exists and its code is not stored; the table may be outdated."""
    try:
        if _function(one.function).is_stored(one.types):
            return False
        types_of_text(one.types)
    except (AttributeError, ImportError):
        return False
    return True


def _work(lines: Iterable[str]) -> None:
    """Compile the functions read from the input, and print the processor seconds of each."""
    # Compiling allocates much and leaves few cycles: collecting would only take time.
    gc.disable()
    from bwarp.runtime.machine_code import leave_inner_functions_to_callers

    leave_inner_functions_to_callers()
    compilers = {"function": _compile_function, "kernel": _compile_kernel}
    for line in lines:
        what, *words = json.loads(line)
        start = time.process_time()
        with suppress(Exception):  # the program that calls it reports the error
            compilers[what](*words)
        print(time.process_time() - start, flush=True)


def _compile_function(function: str, text: str) -> None:
    dispatcher, types = _function(function).dispatcher, types_of_text(text)
    # Compiled as part of another function, it has no code of its own.
    dispatcher.overloads.pop(types, None)
    dispatcher.compile(types)


def _compile_kernel(module: str, number: int, capability: list[int]) -> None:
    pretend_to_have(tuple(capability))
    compile_kernel(module, number)


if __name__ == "__main__":
    _work(sys.stdin)
