"""Make functions.tsv: run the programs on a small data set, and record what they compile.

python -m tests.helpers.first_use.recording                 all of `RUNS` and `FURTHER`, in minutes
python -m tests.helpers.first_use.recording NOTES LINE...   lines in one process, noted in a file
python -m tests.helpers.first_use.recording --time          time functions read from the input
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba.core.event

import bwarp
from bwarp.cli import program
from bwarp.cli.first_use import compiling
from bwarp.cli.first_use.listed_functions import (
    FURTHER_KIND,
    ListedFunction,
    write_table,
)
from bwarp.cli.main import main
from bwarp.runtime.compiled_code import KeptFunction
from bwarp.runtime.threads import available_threads
from bwarp.runtime.type_text import text_of_types
from tests.helpers.first_use.runs import FURTHER, INDEXING, RUNS
from tests.helpers.first_use.small_data import write_data


class _Notes(numba.core.event.Listener):
    """Records functions called from Python, not those compiled into another function."""

    def __init__(self):
        self.called: set[tuple[str, str]] = set()
        # How many functions a thread is compiling, each for the one before.
        self._thread = threading.local()

    def on_start(self, event) -> None:
        self._thread.depth = self._depth() + 1

    def on_end(self, event) -> None:
        self._thread.depth -= 1
        self._note(event.data["dispatcher"].py_func, event.data["args"])

    def noting(self, load: Callable) -> Callable:
        """Wrap `KeptFunction.load_overload` to record what Numba loads."""

        def load_overload(code, signature, context):
            loaded = load(code, signature, context)
            if loaded is not None:
                self._note(code.function, getattr(signature, "args", signature))
            return loaded

        return load_overload

    def linking(self, link: Callable) -> Callable:
        """Wrap `KeptFunction.linked` to record what is loaded without Numba."""

        def linked(code, types):
            found = link(code, types)
            if found is not None:
                self._note(code.function, types)
            return found

        return linked

    def _note(self, function, types: str | tuple) -> None:
        if not self._depth() and function.__module__.startswith("bwarp."):
            text = types if isinstance(types, str) else text_of_types(tuple(types))
            self.called.add((f"{function.__module__}.{function.__qualname__}", text))

    def _depth(self) -> int:
        return getattr(self._thread, "depth", 0)


def _record(file: str, lines: Sequence[str]) -> None:
    """Run lines in this process; write the kind of the last one, and the functions called."""
    notes = _Notes()
    numba.core.event.register("numba:compile", notes)
    KeptFunction.load_overload = notes.noting(KeptFunction.load_overload)
    KeptFunction.linked = notes.linking(KeptFunction.linked)
    kinds: list[str] = []
    # Functions in the table are not compiled before they are called.
    program.compile_once = lambda kind, *_: kinds.append(kind)
    for line in lines:
        kinds.append(line.split()[0])
        # With --debug, the program returns.
        sys.argv = ["bwarp", *line.split(), "--debug", "--backend", "cpu"]
        main()
    Path(file).write_text(json.dumps([kinds[-1], sorted(notes.called)]))


def _time() -> None:
    """Compile functions like a worker, whether or not their code is stored."""
    KeptFunction.load_overload = KeptFunction.save_overload = lambda *_: None
    compiling._work(sys.stdin)


def _seconds_of(functions: Sequence[tuple[str, str]]) -> list[float]:
    """Return the processor time that a worker takes for each function."""
    jobs = "".join(f"{json.dumps(['function', *one])}\n" for one in functions)
    command = [sys.executable, "-m", __spec__.name, "--time"]
    timed = subprocess.run(command, input=jobs, capture_output=True, text=True, check=True)
    return [float(line) for line in timed.stdout.split()]


def record_all() -> None:
    """Run all lines of both lists, and write the table."""
    kinds = defaultdict(set)
    paths = str(Path(bwarp.__file__).parent.parent)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_data(folder)

        def note(file: str, lines: Sequence[str], kinds_of_all: Iterable[str] = ()) -> None:
            notes = folder / f"{file}.json"
            command = [sys.executable, "-m", __spec__.name, notes, *lines]
            subprocess.run(command, cwd=folder, env=os.environ | {"PYTHONPATH": paths}, check=True)
            ran, called = json.loads(notes.read_text())
            for function, types in called:
                kinds[function, types].update(kinds_of_all or [ran])

        def note_each(group: str) -> None:
            for number, line in enumerate(RUNS[group]):
                note(f"{group} {number}", [line])

        def note_further(group: str) -> None:
            programs = {line.split()[0] for line in FURTHER[group]}
            of_all = [f"{name} {FURTHER_KIND}" for name in programs]
            note(f"further {group}", FURTHER[group], of_all)

        note_each(INDEXING)
        with ThreadPoolExecutor(available_threads()) as pool:
            list(pool.map(note_each, [group for group in RUNS if group != INDEXING]))
            # Some runs read the outputs of others.
            note_further("indexes")
            list(pool.map(note_further, [group for group in FURTHER if group != "indexes"]))
            write_table(_listed(kinds, pool))


def _listed(kinds: Mapping[tuple[str, str], set[str]], pool) -> Iterator[ListedFunction]:
    """Time the functions called in runs of these kinds."""
    threads = available_threads()
    parts = [sorted(kinds)[first::threads] for first in range(threads)]
    for part, seconds in zip(parts, pool.map(_seconds_of, parts), strict=True):
        for one, taken in zip(part, seconds, strict=True):
            yield ListedFunction(tuple(sorted(kinds[one])), taken, *one)


if __name__ == "__main__":
    if sys.argv[1:] == ["--time"]:
        _time()
    elif sys.argv[1:]:
        _record(sys.argv[1], sys.argv[2:])
    else:
        record_all()
