"""Result lines: one JSON object a line, to a file and to the screen."""

import json
import sys
from collections.abc import Iterable
from pathlib import Path

from frame.environment import origin

__all__ = ["Results", "overwrite"]

#: Longer lists go to the file only.
LONGEST_SHOWN = 400

#: Marks lines of little data, which say nothing of speed.
_SMALL = {"small": True} if "--small" in sys.argv else {}


class Results:
    """Prints what is measured and appends it to a file, with its origin and what is common."""

    def __init__(self, path: Path, **common):
        self.path = path
        self.common = origin() | _SMALL | common

    def add(self, **line) -> None:
        shown = (f"{name}={value}" for name, value in line.items())
        print(*(words for words in shown if len(words) <= LONGEST_SHOWN), flush=True)
        with open(self.path, "a") as file:
            file.write(json.dumps(self.common | line) + "\n")


def overwrite(path: Path, lines: Iterable[dict]) -> None:
    """Write all lines anew, each with its origin, once the last one is measured."""
    text, about = "", origin() | _SMALL
    for line in lines:
        line = about | line
        print(json.dumps(line), flush=True)
        text += json.dumps(line) + "\n"
    path.write_text(text)
