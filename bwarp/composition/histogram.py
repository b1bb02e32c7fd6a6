"""Count the bases of sequences, group queries by counts, and convert similarity thresholds.

Queries with the same length and counts hit the same windows at the same distances, so they are
compared once, as one group:

    query      0     1     2     3            group   length  counts (A C G T)
    sequence   ACGT  GGTT  TGCA  ACG          0       3       1 1 1 0     <- query 3
                                              1       4       1 1 1 1     <- queries 0 and 2
                                              2       4       0 0 2 2     <- query 1
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from bwarp.errors import UsageError
from bwarp.runtime.compiled_code import compiled

#: Counts are 16-bit numbers; the largest one marks positions where no window begins.
LONGEST_QUERY = 65534


@dataclass(frozen=True)
class QueryGroups:
    """Queries of one length, and their distinct base counts.

    Attributes
    ----------
    length : int
    queries : ndarray, shape=(n_queries,), dtype=int64
        Numbers of the queries of this length, ascending.
    group_of_query : ndarray, shape=(n_queries,), dtype=int64
        The row of `counts` for each of `queries`.
    counts : ndarray, shape=(n_groups, 4), dtype=uint16
        The distinct counts of A, C, G and T, in order of first appearance.
    """

    length: int
    queries: np.ndarray
    group_of_query: np.ndarray
    counts: np.ndarray


def count_bases(codes: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Count A, C, G and T in each sequence; ambiguous bases are not counted.

    Parameters
    ----------
    codes : ndarray, shape=(total,), dtype=uint8
    offsets : ndarray, shape=(n + 1,), dtype=int64
        Sequence i is ``codes[offsets[i]:offsets[i + 1]]``, of at most 65,534 bases.

    Returns
    -------
    counts : ndarray, shape=(n, 4), dtype=uint16
    """
    counts = np.zeros((len(offsets) - 1, 4), np.uint16)
    _count_bases(codes, offsets, counts)
    return counts


def group_queries(counts: np.ndarray, lengths: np.ndarray) -> list[QueryGroups]:
    """Group queries by length, shortest first; queries without any base are in no group.

    Parameters
    ----------
    counts : ndarray, shape=(n, 4), dtype=uint16
    lengths : ndarray, shape=(n,), dtype=int64
        At least the sum of each row of `counts`; more if a query has ambiguous bases.
    """
    groups = []
    order = np.argsort(lengths, kind="stable")
    found, starts = np.unique(lengths[order], return_index=True)
    edges = [*starts, len(order)]
    for length, start, stop in zip(found, edges, edges[1:], strict=False):
        if length == 0:
            continue
        queries = order[start:stop].astype(np.int64)
        keys = np.ascontiguousarray(counts[queries]).view(np.uint64).ravel()
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        # np.unique sorts by value, but groups are in order of first appearance.
        rank = np.empty(len(first), np.int64)
        rank[np.argsort(first)] = np.arange(len(first))
        groups.append(
            QueryGroups(int(length), queries, rank[inverse], counts[queries[np.sort(first)]])
        )
    return groups


@compiled
def _count_bases(codes, offsets, counts):
    for i in range(len(counts)):
        for at in range(offsets[i], offsets[i + 1]):
            if codes[at] < 4:
                counts[i, codes[at]] += 1


# Similarity thresholds as exact fractions, so that hits at the boundary are exact.
#
# A window of the query's length has the distance D = sum |query count - window count| over the four
# bases, an integer, and the similarity S = 1 - D / length. For a threshold of n / d,
#
#     S >= n / d   <=>   D <= length * (d - n) / d   <=>   D <= floor(length * (d - n) / d)
#
# so one integer per length, the maximum distance, suffices.


_DIGITS = 6


def parse_similarity(text: str) -> Fraction:
    """Parse a decimal or fraction (``0.95``, ``19/20``), above 0 and at most 1.

    >>> parse_similarity("0.95")
    Fraction(19, 20)
    """
    try:
        similarity = Fraction(text)
    except (ValueError, ZeroDivisionError):
        similarity = None
    if similarity is None or not 0 < similarity <= 1:
        raise UsageError(
            f"similarity {text!r} is not a number above 0 and at most 1, such as 0.95 or 19/20"
        )
    return similarity


def largest_distance(similarity: Fraction, length: int) -> int:
    """Return the maximum distance of a hit among windows of `length` bases.

    >>> largest_distance(Fraction("0.95"), 40)
    2
    """
    return length * (similarity.denominator - similarity.numerator) // similarity.denominator


def format_similarity(distance: int, length: int) -> str:
    """Format the similarity of a distance with six decimals, truncated.

    >>> format_similarity(1, 3)
    '0.666666'
    """
    digits = (length - distance) * 10**_DIGITS // length
    return f"{digits // 10**_DIGITS}.{digits % 10**_DIGITS:0{_DIGITS}d}"
