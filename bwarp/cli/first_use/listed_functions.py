"""The functions that programs need, in the order of what they take: the table functions.tsv.

    kinds       of run that call it, with commas between: `bwarp.cli.first_use.kinds`
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

    kinds: tuple[str, ...]
    seconds: float
    function: str
    types: str


def listed_functions(wanted: Iterable[str] | None = None) -> list[ListedFunction]:
    """What these kinds of run need, or programs, or all of them, first what takes longest.

    A kind that the table does not know may need all that its program does.
    """
    rows = [line.rstrip("\n").split("\t") for line in TABLE.read_text().splitlines()[1:]]
    listed = [
        ListedFunction(tuple(kinds.split(",")), float(seconds), function, types)
        for kinds, seconds, function, types in rows
    ]
    if wanted is None:
        return listed
    known = {kind for one in listed for kind in one.kinds}
    names = set()
    for kind in wanted:
        program = kind.partition(" ")[0]
        if kind in known and kind != program:
            names.add(kind)
        else:
            names |= {other for other in known if other.partition(" ")[0] == program}
    return [one for one in listed if names & set(one.kinds)]


def write_table(listed: Iterable[ListedFunction]) -> None:
    """Write the table anew."""
    lines = ["kinds\tseconds\tfunction\ttypes"]
    for one in sorted(listed, key=lambda one: (-one.seconds, one.function, one.types)):
        lines.append(f"{','.join(one.kinds)}\t{one.seconds:.1f}\t{one.function}\t{one.types}")
    TABLE.write_text("\n".join(lines) + "\n")
