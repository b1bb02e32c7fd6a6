"""Read the sample sheet, a table from editors or spreadsheets, and report all problems at once.

Columns may be separated by tabs, commas or semicolons; cells may be quoted. A byte order mark, the
line ends of any system, comments, and empty lines and columns are accepted. A cell may hold several
files separated by ;.

    bytes --read_sheet--> rows --+--> sheet_problems -----.
    schema ----------------------+--> sheet_file_problems +--> list of Problem
"""

import csv
import io
import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

from bwarp.counted import counted
from bwarp_configuration import (
    Problem,
    explain,
    file_message,
    in_reading_order,
    printable,
    unknown_message,
    validator,
)

__all__ = [
    "FILES_OF_SAMPLES",
    "Row",
    "files_of_cell",
    "read_sheet",
    "sheet_file_problems",
    "sheet_problems",
]

#: Characters that spreadsheets and web pages leave around a cell, besides all kinds of blanks.
_INVISIBLE = "\ufeff\u200b"

#: Tables of a sample are named a.over.tsv and so on, next to a.tsv, its loci.
FILES_OF_SAMPLES = ("over", "skipped", "steps")

_SAVE = "save the sheet as CSV or tab-separated text (UTF-8)"


@dataclass(frozen=True)
class Row:
    """One row of a sample sheet: its line number and its non-empty cells."""

    line: int
    cells: Mapping[str, str]


def files_of_cell(cell: str | None) -> list[str]:
    """Return the files that a cell names."""
    return [name.strip() for name in (cell or "").split(";") if name.strip()]


def read_sheet(name: str, content: bytes, schema: Mapping) -> tuple[list[Row], list[Problem]]:
    """Return the rows of a sheet, and the problems of its structure.

    Lines that are empty or begin with ``#`` are skipped. If the header is invalid, there are
    problems and no rows.
    """
    text = _text(content)
    if text is None:
        what = "is an Excel workbook" if content.startswith(b"PK\3\4") else "is not plain text"
        return [], [Problem(name, None, "content", f"{what}: {_SAVE}")]
    lines = [
        (number, line)
        for number, line in enumerate(io.StringIO(text, newline=None), 1)
        if not re.fullmatch(r'[\s,;"]*', line) and not line.startswith(("#", '"#'))
    ]
    separator = None
    if lines and (said := re.fullmatch(r'"?sep=([,;\t])"?\s*', lines[0][1])):
        separator = said[1]
        del lines[0]
    if not lines:
        columns = "  ".join(schema["properties"])
        return [], [Problem(name, None, "header", f"is missing: begin with the line {columns}")]
    separator = separator or _separator(lines[0][1])
    table, problems = [], []
    for number, line in lines:
        try:
            table.append((number, _cells(line, separator)))
        except csv.Error:
            message = 'unmatched ": close the quotes, or remove them'
            problems.append(Problem(name, number, "quotes", message))
    if problems:
        return [], problems
    (header_line, header), *body = table
    problems = list(_header_problems(name, header_line, header, schema))
    if problems:
        return [], problems
    rows = []
    for number, cells in body:
        if len(cells) > len(header):
            problems.append(
                Problem(
                    name,
                    number,
                    f"column {len(header) + 1}",
                    f"found {counted(len(cells), 'column')} instead of {len(header)}: "
                    f"remove the extra {_NAMES[separator]}",
                )
            )
        named = zip(header, cells, strict=False)
        rows.append(Row(number, {column: cell for column, cell in named if cell}))
    if not rows and not problems:
        problems.append(Problem(name, None, "rows", "there are none: write one line per sample"))
    return rows, problems


_NAMES = {"\t": "tabs", ",": "commas", ";": "semicolons"}


def _text(content: bytes) -> str | None:
    """Return the text of a sheet; Excel's "Unicode text" is UTF-16. None if it is not text."""
    encoding = "utf-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _separator(header: str) -> str:
    """Return the separator of the columns of a header."""
    return next((mark for mark in _NAMES if mark in header), "\t")


def _cells(line: str, separator: str) -> list[str]:
    (cells,) = csv.reader([line.rstrip("\n")], delimiter=separator, strict=True)
    cells = [re.sub(rf"^[\s{_INVISIBLE}]+|[\s{_INVISIBLE}]+$", "", cell) for cell in cells]
    while cells and not cells[-1]:
        cells.pop()
    return cells


def _header_problems(name: str, line: int, header: list[str], schema: Mapping) -> Iterator[Problem]:
    known = schema["properties"]
    if len(header) == 1 and len(header[0].split()) > 1:
        yield Problem(name, line, "header", "has no tabs: separate columns by one tab")
        return
    for number, column in enumerate(header, 1):
        if column not in known:
            message = unknown_message(column, known) if column else "has no name: remove the column"
            yield Problem(name, line, f"column {number} {column!r}", message)
        elif column in header[: number - 1]:
            yield Problem(name, line, f"column {number} {column!r}", "is given twice: remove one")
    for column in schema["required"]:
        if column not in header:
            yield Problem(
                name, line, f"column {column}", f"is missing: write {known[column]['write']}"
            )


def sheet_problems(
    name: str, rows: list[Row], schema: Mapping, unique: tuple[str, ...]
) -> list[Problem]:
    """Return everything in the rows of a sheet that `schema` does not allow, and colliding names.

    The columns `unique` together name a row and must differ between rows.
    """
    problems = []
    check = validator(schema)
    line_of_key = {}
    for row in rows:
        for error in check.iter_errors(row.cells):
            for path, message in explain(error, schema):
                problems.append(Problem(name, row.line, f"column {path[0]}", message))
        for column, message in _problems_of_pairs(row.cells):
            problems.append(Problem(name, row.line, f"column {column}", message))
        key = tuple(
            row.cells.get(column, schema["properties"][column].get("default")) for column in unique
        )
        if None not in key and line_of_key.setdefault(key, row.line) != row.line:
            columns = " and ".join(unique)
            problems.append(
                Problem(
                    name,
                    row.line,
                    f"column {unique[-1]}",
                    f"{' '.join(key)} is also in line {line_of_key[key]}: "
                    f"give each line its own {columns}",
                )
            )
    problems += _problems_of_names(name, rows)
    return in_reading_order(problems)


def _problems_of_names(name: str, rows: Iterable[Row]) -> Iterator[Problem]:
    """Yield samples that have the name of a file of another sample."""
    line_of_sample = {}
    for row in rows:
        line_of_sample.setdefault(row.cells.get("sample"), row.line)
    for sample, line in line_of_sample.items():
        other, _, kind = (sample or "").rpartition(".")
        if kind in FILES_OF_SAMPLES and other in line_of_sample:
            message = (
                f"{sample}.tsv would be a file of both {sample} and {other}: "
                "rename one of the samples"
            )
            yield Problem(name, line, "column sample", message)


def _problems_of_pairs(cells: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield contradictions in a row about its pairs: the column, and a message."""
    first, second = (files_of_cell(cells.get(column)) for column in ("fq1", "fq2"))
    if second and cells.get("interleaved") == "yes":
        yield "interleaved", "yes means that both ends are in fq1: leave fq2 empty, or write no"
    elif second and len(first) != len(second):
        yield (
            "fq2",
            f"{counted(len(second), 'file')} here, but {len(first)} in fq1: give the same number "
            "in both, in the same order",
        )


def sheet_file_problems(
    name: str, rows: Iterable[Row], schema: Mapping, made: Container[str] = ()
) -> list[Problem]:
    """Return the input files of a sheet that do not exist, or are given twice."""
    problems = []
    first_use = {}
    columns = [column for column, rule in schema["properties"].items() if rule.get("file")]
    for row in rows:
        for column in columns:
            where, used = f"column {column}", set()
            for path in files_of_cell(row.cells.get(column)):
                message = file_message(path, made)
                file = os.path.normpath(path)
                line, earlier = first_use.setdefault(file, (row.line, where))
                if (line, earlier) != (row.line, where) or file in used:
                    other = earlier if line == row.line else f"line {line}, {earlier}"
                    message = f"{printable(path)} is also in {other}: give each file once"
                used.add(file)
                if message:
                    problems.append(Problem(name, row.line, where, message))
    return problems
