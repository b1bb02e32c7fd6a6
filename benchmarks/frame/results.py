"""Result lines: one JSON object per line, to a file and to the screen."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path

from frame.environment import gpu_name, origin
from frame.options import skip_without_gpu

__all__ = ["Results", "overwrite", "results_of_backend"]

#: Longer lists are only written to the file.
LONGEST_SHOWN = 400

#: Marks lines from small data, which do not measure speed.
_SMALL = {"small": True} if "--small" in sys.argv else {}


class Results:
    """Prints results and appends them to a file, with their origin and common fields."""

    def __init__(self, path: Path, **common):
        self.path = path
        self.common = origin() | _SMALL | common

    def add(self, **line) -> None:
        shown = (f"{name}={value}" for name, value in line.items())
        print(*(words for words in shown if len(words) <= LONGEST_SHOWN), flush=True)
        with open(self.path, "a") as file:
            file.write(json.dumps(self.common | line) + "\n")


def results_of_backend(path: Path, backend: str) -> Results:
    """Return the results of an engine, with the name of its GPU; end the program if it has none."""
    if backend != "cuda":
        return Results(path)
    skip_without_gpu()
    return Results(path, gpu=gpu_name())


def overwrite(path: Path, lines: Iterable[dict]) -> None:
    """Replace a file by all lines, each with its origin, after the last measurement."""
    text, about = "", origin() | _SMALL
    for line in lines:
        line = about | line
        print(json.dumps(line), flush=True)
        text += json.dumps(line) + "\n"
    path.write_text(text)
