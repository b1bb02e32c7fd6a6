"""The table functions.tsv: the compiled functions of each kind of run, the slowest first.

    kinds       comma-separated kinds of run that call the function
    seconds     processor time to compile the function, where the table was made
    function    module and name
    types       types of its arguments

A kind is the name of a program and the options that decide which functions it calls, such as ``map
pairs sorted``. `python -m tests.helpers.first_use.recording` writes the table; a test says when
that is due.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

#: Kind of the runs of a program with other options, after the program's name.
FURTHER_KIND = "further"

TABLE = Path(__file__).parent / "functions.tsv"


class ListedFunction(NamedTuple):
    """A function with the types of its arguments, as text."""

    kinds: tuple[str, ...]
    seconds: float
    function: str
    types: str


def listed_functions() -> list[ListedFunction]:
    """Return all functions, the slowest first."""
    rows = [line.rstrip("\n").split("\t") for line in TABLE.read_text().splitlines()[1:]]
    return [
        ListedFunction(tuple(kinds.split(",")), float(seconds), function, types)
        for kinds, seconds, function, types in rows
    ]


def programs_of_table() -> list[str]:
    """Return the programs that call compiled functions."""
    return sorted({kind.split()[0] for one in listed_functions() for kind in one.kinds})


def functions_of_programs(programs: Iterable[str]) -> list[ListedFunction]:
    """Return the functions that programs may call, with any options."""
    wanted = set(programs)
    return [one for one in listed_functions() if wanted & {kind.split()[0] for kind in one.kinds}]


def functions_of_kind(kind: str) -> list[ListedFunction]:
    """Return the functions of a kind of run, or those of its program if the kind is unknown."""
    program = kind.split()[0]
    listed = functions_of_programs([program])
    further = f"{program} {FURTHER_KIND}"
    known = {other for one in listed for other in one.kinds if other.split()[0] == program}
    wanted = {kind} if kind in known else known - {further}
    return [one for one in listed if wanted & set(one.kinds)]


def write_table(listed: Iterable[ListedFunction]) -> None:
    """Write the table."""
    lines = ["kinds\tseconds\tfunction\ttypes"]
    for one in sorted(listed, key=lambda one: (-one.seconds, one.function, one.types)):
        lines.append(f"{','.join(one.kinds)}\t{one.seconds:.1f}\t{one.function}\t{one.types}")
    TABLE.write_text("\n".join(lines) + "\n")


# --------------------------------------------------------------------------------------------------
# Kinds of run.


#: Formats that compile their own functions; others are SAM or compile the same functions.
_ENDINGS = ("bam", "bed", "cram", "paf", "parquet", "sam", "tsv")


#: Programs that run another program, with options of that program.
_RUNS = {"fq2bam": "map"}


def kind_of(program: str, options: argparse.Namespace) -> str:
    """Return the kind of a run of a program with these options."""
    program = _RUNS.get(program, program)
    words = _WORDS.get(program)
    return " ".join([program, *(words(options) if words else ())])


def _format(output: str) -> str:
    ending = output.removesuffix(".gz").rpartition(".")[2]
    return ending if ending in _ENDINGS else "text"


def _of_index(options) -> Iterator[str]:
    yield "both" if options.with_reverse else "forward"
    if options.verify:
        yield "verify"


def _of_map(options) -> Iterator[str]:
    records = [path for path in options.first if _format(path) in ("bam", "cram")]
    is_pairs = options.second or options.interleaved or options.batches or records
    yield "pairs" if is_pairs else "single"
    yield options.mode
    if options.mark_duplicates:
        yield "marked"
    elif options.sort:
        yield "sorted"
    else:
        yield "bam" if _format(options.output) in ("bam", "cram") else "sam"
    if options.qc:
        yield "checked"


def _of_allmap(options) -> Iterator[str]:
    is_pairs = (options.second or options.interleaved) and not options.unpaired
    yield "pairs" if is_pairs else "single"
    yield options.extension
    yield "bam" if _format(options.output) == "bam" else "tsv"


def _of_scan(options) -> Iterator[str]:
    if options.align:
        yield "align"


def _of_seeds(options) -> Iterator[str]:
    yield "mismatches" if options.mismatches else "exact"
    yield "count" if options.count_only else _format(options.output)


def _of_mems(options) -> Iterator[str]:
    yield "index" if options.index else "reference"
    yield options.kind
    yield _format(options.output)


def _of_pairs(options) -> Iterator[str]:
    yield options.mode
    yield _format(options.output)


_WORDS: dict[str, Callable[[argparse.Namespace], Iterator[str]]] = {
    "allmap": _of_allmap,
    "index": _of_index,
    "map": _of_map,
    "mems": _of_mems,
    "pairs": _of_pairs,
    "scan": _of_scan,
    "seeds": _of_seeds,
}
