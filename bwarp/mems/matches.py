"""What a search for maximal exact matches finds, as arrays."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

__all__ = ["Matches", "join_matches", "no_matches", "sorted_matches", "take_matches"]


class Matches(NamedTuple):
    """Matches in the order of their queries, then of where they begin in query and reference.

    Attributes
    ----------
    queries : ndarray, shape=(n,), dtype=uint32
        Numbers of the query strands (see `bwarp.mems.query_text`).
    query_starts : ndarray, shape=(n,), dtype=uint32
        Where each match begins on its query strand, 0-based.
    reference_starts : ndarray, shape=(n,), dtype=uint32
        Where it begins in the genome, 0-based.
    lengths : ndarray, shape=(n,), dtype=uint32
    """

    queries: np.ndarray
    query_starts: np.ndarray
    reference_starts: np.ndarray
    lengths: np.ndarray

    @property
    def n(self) -> int:
        return self.queries.size


def no_matches(n: int = 0) -> Matches:
    """Arrays for `n` matches, not filled."""
    return Matches(*(np.empty(n, np.uint32) for _ in Matches._fields))


def take_matches(matches: Matches, selected) -> Matches:
    """The matches that a slice, a mask or numbers select."""
    return Matches(*(array[selected] for array in matches))


def join_matches(parts: Sequence[Matches]) -> Matches:
    """All matches of some parts, one part after the other."""
    if len(parts) == 1:
        return parts[0]
    return Matches(*map(np.concatenate, zip(no_matches(), *parts, strict=True)))


def sorted_matches(matches: Matches) -> Matches:
    """The matches by query, then by where they begin in the query, then in the reference."""
    order = np.lexsort((matches.reference_starts, matches.query_starts, matches.queries))
    return take_matches(matches, order)
