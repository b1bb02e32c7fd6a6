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
import ast
import importlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bwarp.runtime.compiler import as_dtype, from_dtype, types

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


# --------------------------------------------------------------------------------------------------
# Numba types as readable text.
#
# uint8[::1]                          an array, contiguous as in C
# uint8[:]                            an array with any strides
# readonly(uint8[::1])                a read-only array
# records([('start', '<i8'), ...], 1) a one-dimensional array of records
# (int64, float64)                    a tuple
# named('bwarp.io.names.Names', ...)  a named tuple with the types of its fields


def text_of_types(found: tuple[types.Type, ...]) -> str:
    """Return the types of a function's arguments as text; raise ValueError if unsupported."""
    return f"({''.join(f'{_text(one)}, ' for one in found)})"


def types_of_text(text: str) -> tuple[types.Type, ...]:
    """Parse the types that `text_of_types` wrote."""
    return tuple(map(_type, ast.parse(text, mode="eval").body.elts))


def _text(one: types.Type) -> str:
    if isinstance(one, types.Array):
        if isinstance(one.dtype, types.Record):
            text = f"records({as_dtype(one.dtype).descr!r}, {one.ndim})"
            if _type(ast.parse(text, mode="eval").body) == one:
                return text
        if not one.aligned or one.layout == "F" or isinstance(one.dtype, types.Record):
            raise ValueError(f"no text for {one}")
        last = "::1" if one.layout == "C" else ":"
        text = f"{_text(one.dtype)}[{', '.join([':'] * (one.ndim - 1) + [last])}]"
        return text if one.mutable else f"readonly({text})"
    if isinstance(one, types.NamedTuple | types.NamedUniTuple):
        name = f"{one.instance_class.__module__}.{one.instance_class.__qualname__}"
        return f"named({name!r}, {', '.join(map(_text, one.types))})"
    if isinstance(one, types.BaseTuple):
        return text_of_types(one.types)
    if isinstance(one, types.Omitted):
        return f"omitted({one.value!r})"
    if one is types.none or isinstance(one, types.Number | types.Boolean):
        return one.name if one.name != "bool" else "boolean"
    raise ValueError(f"no text for {one}")


def _type(node: ast.expr) -> types.Type:
    """Return the type that an expression describes."""
    match node:
        case ast.Name(name):
            return getattr(types, name)
        case ast.Tuple(parts):
            return types.BaseTuple.from_types(list(map(_type, parts)))
        case ast.Subscript(element, index):
            axes = index.elts if isinstance(index, ast.Tuple) else [index]
            layout = "C" if axes[-1].step else "A"
            return types.Array(_type(element), len(axes), layout)
        case ast.Call(ast.Name("readonly"), [array]):
            return _type(array).copy(readonly=True)
        case ast.Call(ast.Name("records"), [fields, ast.Constant(axes)]):
            return types.Array(from_dtype(np.dtype(ast.literal_eval(fields))), axes, "C")
        case ast.Call(ast.Name("omitted"), [value]):
            return types.Omitted(ast.literal_eval(value))
        case ast.Call(ast.Name("named"), [ast.Constant(name), *fields]):
            module, _, class_name = name.rpartition(".")
            kind = getattr(importlib.import_module(module), class_name)
            return types.BaseTuple.from_types(list(map(_type, fields)), kind)
    raise ValueError(f"no type is written as {ast.unparse(node)}")
