"""A database of sequences to search: sorted by length, in memory or mapped from a folder.

Sorting by length lets one vector (or one warp) hold sequences of nearly the same length, so that
no lane idles. `order` tells where each sequence stood in the file; results are in file order of
the database as `Database` lists them only through it.

    codes     [ shortest ][ next ] ... [ longest ]        uint8, codes of the scoring's alphabet
    offsets   0           ^                      ^        int64[count + 1]
    order     record number in the file of each           int64[count]
"""

from dataclasses import dataclass

import numpy as np

__all__ = ["Database", "sorted_database"]


@dataclass(frozen=True)
class Database:
    """Sequences by ascending length (ties in file order).

    Attributes
    ----------
    codes : ndarray, dtype=uint8
    offsets : ndarray, shape=(count + 1,), dtype=int64
    order : ndarray, shape=(count,), dtype=int64
        Record number in the file of each sequence here.
    names : list of str
        The name of each sequence here.
    """

    codes: np.ndarray
    offsets: np.ndarray
    order: np.ndarray
    names: list[str]

    @property
    def count(self) -> int:
        return self.order.size

    def sequence(self, i: int) -> np.ndarray:
        """The codes of sequence i in this order, a view."""
        return self.codes[self.offsets[i] : self.offsets[i + 1]]


def sorted_database(sequences: list[np.ndarray], names: list[str]) -> Database:
    """A database of code arrays in file order."""
    lengths = np.array([s.size for s in sequences], np.int64)
    order = np.argsort(lengths, kind="stable")
    offsets = np.zeros(lengths.size + 1, np.int64)
    np.cumsum(lengths[order], out=offsets[1:])
    codes = np.concatenate([sequences[i] for i in order] or [np.empty(0, np.uint8)])
    return Database(codes, offsets, order, [names[i] for i in order])
