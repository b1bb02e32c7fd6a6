"""Write --timeline: a JSON file of what ran when, per thread and GPU.

The format is Chrome's trace format; ui.perfetto.dev and chrome://tracing open it.
"""

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bwarp.errors import UsageError
from bwarp.io.atomic_output import atomic_file
from bwarp.runtime.timeline import Span, record

_BEGINNING = '{"traceEvents": ['


@contextmanager
def timeline_to(path: str | None) -> Iterator[None]:
    """Record a run to a file, written when the block ends without an error; None records nothing.

    Raises
    ------
    UsageError
        If the name does not end in .json, or an existing file is not a timeline.
    """
    if path is None:
        yield
        return
    if not path.endswith(".json"):
        raise UsageError(f"--timeline {path}: the name must end in .json")
    _refuse_other_file(path)
    with atomic_file(path) as file:
        with record() as spans:
            main = threading.get_native_id()
            yield
        # The run itself may have written it.
        _refuse_other_file(path)
        file.write(_text(spans, main).encode())


def _refuse_other_file(path: str) -> None:
    if not Path(path).is_file():
        return
    with open(path, "rb") as file:
        if file.read(len(_BEGINNING)) != _BEGINNING.encode():
            raise UsageError(
                f"--timeline {path}: the existing file is not a timeline: choose another name"
            )


def _text(spans: list[Span], main: int) -> str:
    """Return one event per line: the main thread first, then the others by their work."""
    process = os.getpid()
    threads = sorted(
        {one.thread for one in spans},
        key=lambda thread: (
            thread != main,
            min(one.start for one in spans if one.thread == thread),
        ),
    )
    numbers = {thread: number for number, thread in enumerate(threads)}
    events = [
        {
            "name": "thread_name", "ph": "M", "pid": process, "tid": number,
            "args": {"name": _thread_name(thread, number, main)},
        }
        for thread, number in numbers.items()
    ]  # fmt: skip
    events += [
        {
            "name": one.name, "ph": "X", "pid": process, "tid": numbers[one.thread],
            "ts": one.start / 1000, "dur": (one.end - one.start) / 1000,
        }
        for one in sorted(spans, key=lambda one: (one.start, -one.end))
    ]  # fmt: skip
    lines = ",\n".join(map(json.dumps, events))
    return f"{_BEGINNING}\n{lines}\n]}}\n"


def _thread_name(thread: int, number: int, main: int) -> str:
    if thread < 0:
        return f"kernels on GPU {-1 - thread}"
    return "main" if thread == main else f"thread {number}"
