"""Tables in Markdown or HTML that name the commits of their lines."""

from collections.abc import Iterable
from typing import NamedTuple

from drawing import html
from drawing.age import age_of

__all__ = ["Table", "as_html", "as_markdown"]


class Table(NamedTuple):
    """Column heads, rows of text, and their lines of results."""

    heads: list[str]
    rows: list[tuple]
    lines: list[dict]
    results: str


def origin_of(table: Table) -> str:
    """Return the file and the commits of a table."""
    ages = sorted({age_of(line, table.results) for line in table.lines})
    return f"{table.results}, {'commit' if len(ages) == 1 else 'commits'} {', '.join(ages)}"


def row_of(cells: Iterable) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def as_markdown(table: Table) -> str:
    lines = [row_of(table.heads), "|" + "---|" * len(table.heads), *map(row_of, table.rows)]
    return "\n".join([*lines, "", f"*benchmarks/results/{origin_of(table)}.*"]) + "\n"


def as_html(table: Table) -> str:
    origin = html.paragraphs(f"From {origin_of(table)}.")
    return html.table(table.heads, table.rows) + origin
