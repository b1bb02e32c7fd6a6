"""Tables that are dataclasses of columns: some rows of one, and several joined."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

__all__ = ["joined", "taken", "with_kmers"]

Table = TypeVar("Table")


def taken(table: Table, rows: np.ndarray | slice) -> Table:
    """Some rows of a table, by mask, numbers or slice."""
    return type(table)(*(column[rows] for column in vars(table).values()))


def joined(tables: Sequence[Table]) -> Table:
    """The rows of one table after the other; there is at least one table."""
    if len(tables) == 1:
        return tables[0]
    columns = zip(*(vars(table).values() for table in tables), strict=True)
    return type(tables[0])(*map(np.concatenate, columns))


def with_kmers(table: Table, numbers: np.ndarray) -> Table:
    """A table whose k-mer i is called numbers[i]; `kmers` is its first column."""
    _, *others = vars(table).values()
    return type(table)(numbers.astype(np.uint32)[table.kmers], *others)
