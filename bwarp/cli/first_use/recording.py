"""Make functions.tsv: run the programs on a small data set, and note what they compile.

python -m bwarp.cli.first_use.recording                 all of `RUNS` and `MORE_KINDS`, in minutes
python -m bwarp.cli.first_use.recording NOTES LINE...   one line of them, noted in a file
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numba.core.event

import bwarp
from bwarp.cli import program
from bwarp.cli.first_use.listed_functions import ListedFunction, write_table
from bwarp.cli.first_use.runs import INDEXING, MORE_KINDS, RUNS
from bwarp.cli.first_use.small_data import write_data
from bwarp.cli.first_use.type_text import text_of_types
from bwarp.cli.main import main
from bwarp.runtime.kept_functions import Overloads
from bwarp.runtime.threads import available_threads

__all__ = ["record_all"]


class _Notes(numba.core.event.Listener):
    """Notes what is called from Python, not what is compiled into another function.

    A function that was compiled before is noted with the time to load it.
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
        """`Overloads.load_overload`, noted where it loads."""

        def load_overload(overloads, signature, context):
            start = time.thread_time()
            loaded = load(overloads, signature, context)
            if loaded is not None:
                types = getattr(signature, "args", signature)
                self._note(overloads.function, types, time.thread_time() - start)
            return loaded

        return load_overload

    def _note(self, function, types, taken: float) -> None:
        if self._starts() or not function.__module__.startswith("bwarp."):
            return
        # Arrays of records have no text: simulated reads, whose functions are small.
        with suppress(ValueError):
            key = f"{function.__module__}.{function.__qualname__}", text_of_types(tuple(types))
            self.seconds[key] = taken

    def _starts(self) -> list[float]:
        return self._thread.__dict__.setdefault("starts", [])


def _record(file: str, line: list[str]) -> None:
    """Run a subcommand in this process, and write its kind of run and what it called to a file."""
    notes = _Notes()
    numba.core.event.register("numba:compile", notes)
    Overloads.load_overload = notes.noting(Overloads.load_overload)
    kinds = [line[0]]
    # What the table has is not compiled before it is called.
    program.compile_once = lambda said, *_: kinds.extend(said)
    # With --debug the program returns.
    sys.argv = ["bwarp", *line, "--debug", "--backend", "cpu"]
    main()
    called = [[*key, taken] for key, taken in notes.seconds.items()]
    Path(file).write_text(json.dumps([kinds[-1], called]))


def record_all() -> None:
    """Run all of both, with nothing compiled before, and write the table."""
    # What lies beside the package would be loaded.
    shutil.rmtree(Path(bwarp.__file__).parent / "__pycache__" / "compiled", ignore_errors=True)
    kinds, seconds = defaultdict(set), defaultdict(float)
    paths = str(Path(bwarp.__file__).parent.parent)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_data(folder)

        def run(number: int, line: str) -> list:
            kept = {"NUMBA_CACHE_DIR": str(folder / "kept")}
            notes = folder / f"{number}.json"
            subprocess.run(
                [sys.executable, "-m", __spec__.name, notes, *line.split()],
                cwd=folder, env=os.environ | kept | {"PYTHONPATH": paths}, check=True,
            )  # fmt: skip
            kind, called = json.loads(notes.read_text())
            return [(kind, *note) for note in called]

        lines_of = {name: (*lines, *MORE_KINDS.get(name, ())) for name, lines in RUNS.items()}
        first = [run(0, line) for line in lines_of.pop(INDEXING)]
        groups = list(lines_of.values())

        def run_group(number: int, lines: tuple[str, ...]) -> list:
            return [
                note for i, line in enumerate(lines) for note in run(100 * number + i + 1, line)
            ]

        with ThreadPoolExecutor(available_threads()) as pool:
            for notes in [*first, *pool.map(run_group, range(len(groups)), groups)]:
                for kind, function, types, taken in notes:
                    kinds[function, types].add(kind)
                    # It is compiled once, and loaded from then on.
                    seconds[function, types] = max(taken, seconds[function, types])
    write_table(ListedFunction(tuple(sorted(kinds[key])), seconds[key], *key) for key in kinds)


if __name__ == "__main__":
    if sys.argv[1:]:
        _record(sys.argv[1], sys.argv[2:])
    else:
        record_all()
