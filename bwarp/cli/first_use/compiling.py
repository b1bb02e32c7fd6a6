"""Compiling the listed functions of programs side by side, in processes, before they are needed.

Numba compiles in one thread at a time. So worker processes each compile one function after
another, first those that take longest, and keep them (`bwarp.runtime.kept_functions`); the program
that waits for them finds them there. Where nothing can be kept, each program compiles what it
needs by itself.

Where there is a GPU, kernels are compiled in the same way, by workers that do not use it
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
from bwarp.cli.first_use.listed_functions import ListedFunction, listed_functions
from bwarp.cli.first_use.type_text import types_of_text
from bwarp.cli.subcommands import SUBCOMMANDS
from bwarp.gpu.compile_ahead import SECONDS as KERNEL_SECONDS
from bwarp.gpu.compile_ahead import compile_kernel, kernels_of, pretend_to_have
from bwarp.runtime.compiled_code import kept_functions
from bwarp.runtime.inner_functions import leave_inner_functions_to_callers
from bwarp.runtime.progress import duration, say, status_line
from bwarp.runtime.signals import not_ended, undone_if_ended

__all__ = ["compile_once"]

#: What takes fewer seconds is compiled when it is called: workers take half a second to begin.
WORTH_IT = 3.0


def compile_once(
    kinds: Sequence[str], processes: int, capability: tuple[int, int] | None = None
) -> None:
    """Compile what these kinds of run need, unless that was done for this version and processor.

    Parameters
    ----------
    kinds : sequence of str
        Kinds of run (`bwarp.cli.first_use.kinds`), or names of subcommands for all of theirs.
    processes : int
        How many to compile in.
    capability : tuple of int, optional
        The compute capability of the GPU that they will use.
    """
    kept = kept_functions()
    gpu = _where_kernels_are(capability)
    words = ("compiled", kept.state, ",".join(kinds), gpu)
    if kept.get(*words) is not None:
        return
    with _one_at_a_time(kept.path):
        # Another program may have done it meanwhile.
        if kept.get(*words) is None and kept.can_be_written():
            missing = [one for one in listed_functions(kinds) if _is_missing(one)]
            jobs = [(one.seconds, ["function", one.function, one.types]) for one in missing]
            kernels = [("kernels", kept.state, name, gpu) for name in _programs(kinds)]
            kernels = [one for one in kernels if capability and kept.get(*one) is None]
            for _, _, program, _ in kernels:
                for module, number in kernels_of([_source_of(program)], capability):
                    job = ["kernel", module, number, capability]
                    jobs.append((KERNEL_SECONDS.get(module, 0), job))
            if kernels or sum(one.seconds for one in missing) > WORTH_IT:
                # What takes longest comes first, or all would wait for it in the end.
                jobs.sort(key=lambda job: -job[0])
                _compile(list(dict.fromkeys(json.dumps(job) for _, job in jobs)), processes)
            for one in [*kernels, words]:
                kept.put(b"done", *one)


def _where_kernels_are(capability: tuple[int, int] | None) -> str:
    """What keeps notes of kernels apart: where the environment names a folder they are there alone;
    functions are found beside the package as well."""
    return f"{capability} {os.environ.get('NUMBA_CACHE_DIR', '')}" if capability else ""


def _programs(kinds: Sequence[str]) -> list[str]:
    return sorted({kind.partition(" ")[0] for kind in kinds})


def _source_of(program: str) -> Path:
    module = SUBCOMMANDS[program].module.replace(".", "/")
    return Path(bwarp.__file__).parent / "cli" / f"{module}.py"


def _compile(lines: Sequence[str], processes: int) -> None:
    """Have workers compile what lines name, one after the other of those that are left."""
    processes = min(processes, len(lines))
    say(f"compiling for this machine, once: {len(lines)} functions, {processes} at a time")
    start = time.monotonic()
    left, done = iter(lines), []
    paths = [str(Path(bwarp.__file__).parent.parent), os.environ.get("PYTHONPATH")]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
    workers: list[subprocess.Popen] = []

    def end_workers() -> None:
        for worker in workers:
            worker.kill()

    def feed(worker: subprocess.Popen) -> None:
        # A worker that fails or is killed leaves the rest to others, or to who calls the function.
        with suppress(OSError):
            while (line := next(left, None)) is not None:
                worker.stdin.write(f"{line}\n")
                worker.stdin.flush()
                if not worker.stdout.readline():
                    return
                done.append(line)
                show(lambda _: f"{len(done)} functions done, {len(lines) - len(done)} left")

    with (
        undone_if_ended(end_workers),
        status_line() as show,
        ThreadPoolExecutor(processes) as pool,
    ):
        # Before the threads are waited for, which wait for the workers.
        try:
            for _ in range(processes):
                with not_ended():
                    workers.append(_worker(environment))
            list(pool.map(feed, workers))
        finally:
            end_workers()
    for worker in workers:
        worker.communicate()
    say(f"compiling for this machine, once: done after {duration(time.monotonic() - start)}")


def _worker(environment: dict[str, str]) -> subprocess.Popen:
    """A process that compiles what it reads of, until it is killed."""
    return subprocess.Popen(
        [sys.executable, "-m", __spec__.name],
        env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip


@contextmanager
def _one_at_a_time(path: Path):
    """Wait while another program compiles for the same file."""
    lock = None
    with suppress(OSError):  # where nothing can be written, nothing is kept
        path.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        if lock is not None:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        if lock is not None:
            os.close(lock)


def _dispatcher(function: str):
    module, _, name = function.rpartition(".")
    return getattr(importlib.import_module(module), name)


def _is_missing(one: ListedFunction) -> bool:
    """Whether a function is not kept. A table that is out of date names some that are not there."""
    try:
        dispatcher = _dispatcher(one.function)
        types = types_of_text(one.types)
    except (AttributeError, ImportError):
        return False
    return not dispatcher._cache.is_kept(types, dispatcher.targetctx.codegen())


def _work(lines: Iterable[str]) -> None:
    """What a worker does: compile what it reads of, and say when each is done."""
    # Much is made, and little of it in circles: collecting takes a fifth of the time.
    gc.set_threshold(1_000_000)
    leave_inner_functions_to_callers()
    compilers = {"function": _compile_function, "kernel": _compile_kernel}
    for line in lines:
        what, *words = json.loads(line)
        with suppress(Exception):  # the program that calls it will say what is wrong
            compilers[what](*words)
        print(flush=True)


def _compile_function(function: str, text: str) -> None:
    dispatcher, types = _dispatcher(function), types_of_text(text)
    # As part of another function it has no code of its own.
    dispatcher.overloads.pop(types, None)
    dispatcher.compile(types)


def _compile_kernel(module: str, number: int, capability: list[int]) -> None:
    pretend_to_have(tuple(capability))
    compile_kernel(module, number)


if __name__ == "__main__":
    _work(sys.stdin)
