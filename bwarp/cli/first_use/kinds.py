"""Kinds of run: what of a program's options decides which functions it calls.

A kind is the program's name and a few words, such as ``map pairs sorted``. The table of functions
(`bwarp.cli.first_use.listed_functions`) says which kinds call a function.
"""

import argparse
from collections.abc import Callable, Iterator

__all__ = ["kind_of"]

#: An output in none of these formats is SAM, or a text that differs in nothing of weight.
_ENDINGS = ("bam", "bed", "cram", "paf", "parquet", "sam", "tsv")


def kind_of(program: str, options: argparse.Namespace) -> str:
    """The kind of a run of a program with these options."""
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


def _of_allmap(options) -> Iterator[str]:
    is_pairs = (options.second or options.interleaved) and not options.unpaired
    yield "pairs" if is_pairs else "single"
    yield options.extension
    yield "bam" if _format(options.output) == "bam" else "tsv"


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
    "seeds": _of_seeds,
}
