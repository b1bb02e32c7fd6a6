"""The functions that programs need, in the order of what they take: the table functions.tsv.

    programs    such as map,seeds: names of subcommands
    seconds     that compiling took, by itself, where the table was made
    function    module and name
    types       of its arguments (`bwarp.cli.first_use.type_text`)

`python -m bwarp.cli.first_use.recording` makes it; a test says when that is due.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

__all__ = ["TABLE", "ListedFunction", "listed_functions", "write_table"]

TABLE = Path(__file__).parent / "functions.tsv"


class ListedFunction(NamedTuple):
    """A function with the types of its arguments, as text."""

    programs: tuple[str, ...]
    seconds: float
    function: str
    types: str


def listed_functions(programs: Iterable[str] | None = None) -> list[ListedFunction]:
    """What these programs need, or all of them, first what takes longest."""
    rows = [line.rstrip("\n").split("\t") for line in TABLE.read_text().splitlines()[1:]]
    listed = [
        ListedFunction(tuple(names.split(",")), float(seconds), function, types)
        for names, seconds, function, types in rows
    ]
    wanted = None if programs is None else set(programs)
    return [one for one in listed if wanted is None or wanted & set(one.programs)]


def write_table(listed: Iterable[ListedFunction]) -> None:
    """Write the table anew."""
    lines = ["programs\tseconds\tfunction\ttypes"]
    for one in sorted(listed, key=lambda one: (-one.seconds, one.function, one.types)):
        lines.append(f"{','.join(one.programs)}\t{one.seconds:.1f}\t{one.function}\t{one.types}")
    TABLE.write_text("\n".join(lines) + "\n")
