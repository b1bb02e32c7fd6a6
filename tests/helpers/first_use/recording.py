"""Make functions.tsv: run the programs on a small data set, and record what they compile.

python -m tests.helpers.first_use.recording                 all of `RUNS` and `FURTHER`, in minutes
python -m tests.helpers.first_use.recording NOTES LINE...   lines in one process, noted in a file
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba.core.event

import bwarp
from bwarp.cli import program
from bwarp.cli.first_use.listed_functions import (
    FURTHER_KIND,
    ListedFunction,
    listed_functions,
    text_of_types,
    write_table,
)
from bwarp.cli.main import main
from bwarp.runtime.compiled_code import KeptCode
from bwarp.runtime.threads import available_threads
from tests.helpers.first_use.runs import FURTHER, INDEXING, RUNS
from tests.helpers.first_use.small_data import write_data


class _Notes(numba.core.event.Listener):
    """Records functions called from Python, not those compiled into another function.

    A function that was compiled before is recorded with the time to load it.
    """

    def __init__(self):
        self.seconds: dict[tuple[str, str], float] = {}
        self._thread = threading.local()

    def on_start(self, event) -> None:
        self._starts().append(time.thread_time())

    def on_end(self, event) -> None:
        taken = time.thread_time() - self._starts().pop()
        self._note(event.data["dispatcher"].py_func, event.data["args"], taken)

    def noting(self, load: Callable) -> Callable:
        """Wrap `KeptCode.load_overload` to record what it loads."""

        def load_overload(code, signature, context):
            start = time.thread_time()
            loaded = load(code, signature, context)
            if loaded is not None:
                types = getattr(signature, "args", signature)
                self._note(code.function, types, time.thread_time() - start)
            return loaded

        return load_overload

    def _note(self, function, types, taken: float) -> None:
        if not self._starts() and function.__module__.startswith("bwarp."):
            key = f"{function.__module__}.{function.__qualname__}", text_of_types(tuple(types))
            self.seconds[key] = taken

    def _starts(self) -> list[float]:
        return self._thread.__dict__.setdefault("starts", [])


def _record(file: str, lines: Sequence[str]) -> None:
    """Run lines in this process; write the kind of the last one, and the functions called."""
    notes = _Notes()
    numba.core.event.register("numba:compile", notes)
    KeptCode.load_overload = notes.noting(KeptCode.load_overload)
    kinds: list[str] = []
    # Functions in the table are not compiled before they are called.
    program.compile_once = lambda kind, *_: kinds.append(kind)
    for line in lines:
        kinds.append(line.split()[0])
        # With --debug, the program returns.
        sys.argv = ["bwarp", *line.split(), "--debug", "--backend", "cpu"]
        main()
    called = [[*key, taken] for key, taken in notes.seconds.items()]
    Path(file).write_text(json.dumps([kinds[-1], called]))


def record_all() -> None:
    """Run all lines of both lists, and write the table."""
    kinds = defaultdict(set)
    seconds = defaultdict(float)
    # Compiled functions are loaded; their recorded compile times are kept.
    for one in listed_functions():
        seconds[one.function, one.types] = one.seconds
    paths = str(Path(bwarp.__file__).parent.parent)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_data(folder)

        def note(file: str, lines: Sequence[str], kinds_of_all: Iterable[str] = ()) -> None:
            notes = folder / f"{file}.json"
            command = [sys.executable, "-m", __spec__.name, notes, *lines]
            subprocess.run(command, cwd=folder, env=os.environ | {"PYTHONPATH": paths}, check=True)
            ran, called = json.loads(notes.read_text())
            for function, types, taken in called:
                kinds[function, types].update(kinds_of_all or [ran])
                seconds[function, types] = max(taken, seconds[function, types])

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
    write_table(ListedFunction(tuple(sorted(kinds[key])), seconds[key], *key) for key in kinds)


if __name__ == "__main__":
    if sys.argv[1:]:
        _record(sys.argv[1], sys.argv[2:])
    else:
        record_all()
