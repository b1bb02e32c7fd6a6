"""Result lines: one JSON object a line, to a file and to the screen."""

import json
from collections.abc import Iterable
from pathlib import Path

__all__ = ["Results", "overwrite"]

#: Longer lists go to the file only.
LONGEST_SHOWN = 400


class Results:
    """Prints what is measured and appends it to a file, with what all lines have in common."""

    def __init__(self, path: Path, **common):
        self.path = path
        self.common = common

    def add(self, **line) -> None:
        shown = (f"{name}={value}" for name, value in line.items())
        print(*(words for words in shown if len(words) <= LONGEST_SHOWN), flush=True)
        with open(self.path, "a") as file:
            file.write(json.dumps(self.common | line) + "\n")


def overwrite(path: Path, lines: Iterable[dict]) -> None:
    """Write all lines anew, once the last one is measured."""
    text = ""
    for line in lines:
        print(json.dumps(line), flush=True)
        text += json.dumps(line) + "\n"
    path.write_text(text)
