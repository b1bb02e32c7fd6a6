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

__all__ = [
    "FURTHER_KIND",
    "TABLE",
    "ListedFunction",
    "functions_of_kind",
    "functions_of_programs",
    "listed_functions",
    "programs_of_table",
    "write_table",
]

#: After the name of a program, stands for its runs with options that do not make a kind.
FURTHER_KIND = "further"

TABLE = Path(__file__).parent / "functions.tsv"


class ListedFunction(NamedTuple):
    """A function with the types of its arguments, as text."""

    kinds: tuple[str, ...]
    seconds: float
    function: str
    types: str


def listed_functions() -> list[ListedFunction]:
    """All functions, first what takes longest."""
    rows = [line.rstrip("\n").split("\t") for line in TABLE.read_text().splitlines()[1:]]
    return [
        ListedFunction(tuple(kinds.split(",")), float(seconds), function, types)
        for kinds, seconds, function, types in rows
    ]


def programs_of_table() -> list[str]:
    """The programs that call compiled functions."""
    return sorted({kind.split()[0] for one in listed_functions() for kind in one.kinds})


def functions_of_programs(programs: Iterable[str]) -> list[ListedFunction]:
    """What programs may need, whatever their options."""
    wanted = set(programs)
    return [one for one in listed_functions() if wanted & {kind.split()[0] for kind in one.kinds}]


def functions_of_kind(kind: str) -> list[ListedFunction]:
    """What a kind of run needs; if the table does not know it, what those of its program do."""
    program = kind.split()[0]
    listed = functions_of_programs([program])
    further = f"{program} {FURTHER_KIND}"
    known = {other for one in listed for other in one.kinds if other.split()[0] == program}
    wanted = {kind} if kind in known else known - {further}
    return [one for one in listed if wanted & set(one.kinds)]


def write_table(listed: Iterable[ListedFunction]) -> None:
    """Write the table anew."""
    lines = ["kinds\tseconds\tfunction\ttypes"]
    for one in sorted(listed, key=lambda one: (-one.seconds, one.function, one.types)):
        lines.append(f"{','.join(one.kinds)}\t{one.seconds:.1f}\t{one.function}\t{one.types}")
    TABLE.write_text("\n".join(lines) + "\n")
