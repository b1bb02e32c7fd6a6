"""Short texts that lines are put together from: names of queries and contigs."""

import os
from collections.abc import Sequence
from typing import NamedTuple

import numba
import numpy as np

from bwarp.errors import InputError
from bwarp.io.fastx import SequenceBatch

__all__ = ["Labels", "labels_of", "put_bytes", "put_label", "query_names", "refuse_nameless"]


class Labels(NamedTuple):
    """Texts cut from an array: label i is ``text[edges[i, 0]:edges[i, 1]]``.

    Attributes
    ----------
    text : ndarray, dtype=uint8
    edges : ndarray, shape=(n, 2), dtype=int64
    """

    text: np.ndarray
    edges: np.ndarray

    @property
    def longest(self) -> int:
        return int(np.diff(self.edges).max(initial=0))

    def label(self, number: int) -> bytes:
        return self.text[self.edges[number, 0] : self.edges[number, 1]].tobytes()


def labels_of(texts: Sequence[bytes]) -> Labels:
    """Labels of given texts."""
    stops = np.cumsum([len(text) for text in texts], dtype=np.int64)
    starts = np.append(0, stops)[: stops.size]
    return Labels(np.frombuffer(b"".join(texts), np.uint8), np.column_stack([starts, stops]))


def query_names(batch: SequenceBatch) -> Labels:
    """The first words of a batch's headers."""
    edges = batch.headers.copy()
    _keep_first_words(batch.text, edges)
    return Labels(batch.text, edges)


def refuse_nameless(where: str | os.PathLike, batch: SequenceBatch) -> None:
    """Refuse a query without a name; the error names `where` it is from."""
    for record in np.flatnonzero(np.diff(batch.headers) == 0)[:1]:
        raise InputError(
            f"{where}: record {batch.first_record + record + 1} has no name: write one after its "
            "> or @"
        )


@numba.njit(cache=True, nogil=True)
def _keep_first_words(text, edges):
    for i in range(len(edges)):
        at, stop = edges[i]
        while at < stop and (text[at] == 32 or 9 <= text[at] <= 13):
            at += 1
        edges[i, 0] = at
        while at < stop and not (text[at] == 32 or 9 <= text[at] <= 13):
            at += 1
        edges[i, 1] = at


@numba.njit(cache=True, nogil=True)
def put_label(line, at, labels, number):
    """Write a label; return where it ends."""
    for i in range(labels.edges[number, 0], labels.edges[number, 1]):
        line[at] = labels.text[i]
        at += 1
    return at


@numba.njit(cache=True, nogil=True)
def put_bytes(line, at, text):
    """Write some bytes; return where they end."""
    for byte in text:
        line[at] = byte
        at += 1
    return at
