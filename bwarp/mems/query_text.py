"""Prepare queries for a search: the wanted strands, packed, and their runs of unambiguous bases.

    records    A C N T G            strands wanted: both
    text       A C A T G | C A A G T         packed in 2 bits; reverse complement after it
    runs       0-2  3-5    5-7  8-10         all records; no match contains the N between runs

Query strands are numbered ``record * strands + strand``: the forward strand of a record directly
precedes its reverse strand, as in MUMmer's output.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bwarp.io.line_scan import find_byte
from bwarp.runtime.compiled_code import compiled, read_only
from bwarp.runtime.threads import for_each_range
from bwarp.runtime.timeline import on_timeline
from bwarp.sequence import AMBIGUOUS, pack, reverse_complement

FORWARD, REVERSE = 0, 1

#: The strands that can be requested.
STRANDS = {"forward": (FORWARD,), "reverse": (REVERSE,), "both": (FORWARD, REVERSE)}


class QueryText(NamedTuple):
    """Strands of queries, ready to be searched.

    Attributes
    ----------
    words : ndarray, dtype=uint64
        The text of all strands, packed (`bwarp.sequence.pack`).
    text_starts : ndarray, shape=(n_queries,), dtype=int64
        Where each query strand begins in the text.
    run_queries, run_starts, run_stops : ndarray, shape=(n_runs,), dtype=int64
        The query strand and text positions of every maximal stretch of A, C, G and T that is long
        enough, in the order of the query strands.
    """

    words: np.ndarray
    text_starts: np.ndarray
    run_queries: np.ndarray
    run_starts: np.ndarray
    run_stops: np.ndarray


@on_timeline("prepare queries")
def make_query_text(
    codes: np.ndarray,
    offsets: np.ndarray,
    strands: tuple[int, ...],
    min_length: int,
    threads: int = 1,
) -> QueryText:
    """Prepare records for a search.

    Parameters
    ----------
    codes : ndarray, shape=(total,), dtype=uint8
        The concatenated records, as in `bwarp.io.fastx.SequenceBatch`.
    offsets : ndarray, shape=(n_records + 1,), dtype=int64
    strands : tuple of int
        `FORWARD`, `REVERSE` or both.
    min_length : int
        Shorter runs are left out.
    """
    n_bases = codes.size
    text = np.empty(n_bases * len(strands), np.uint8)

    def put(first: int, last: int) -> None:
        for number, strand in enumerate(strands):
            stretch = codes[first:last]
            if strand == REVERSE:
                stretch = reverse_complement(codes[n_bases - last : n_bases - first])
            text[number * n_bases + first : number * n_bases + last] = stretch

    for_each_range(put, n_bases, threads, smallest=1 << 20)
    starts = [
        number * n_bases + (offsets[:-1] if strand == FORWARD else n_bases - offsets[1:])
        for number, strand in enumerate(strands)
    ]
    text_starts = np.column_stack(starts).reshape(-1)
    lengths = np.repeat(np.diff(offsets), len(strands))
    # Each run takes at least min_length bases.
    runs = np.empty((text.size // min_length + 1, 3), np.int64)
    n_runs = _find_runs(read_only(text), text_starts, lengths, min_length, runs)
    queries, run_starts, run_stops = runs[:n_runs].T.copy()
    return QueryText(pack(text, threads), text_starts, queries, run_starts, run_stops)


@compiled
def _find_runs(text, text_starts, lengths, min_length, runs):
    """Write query, start and stop of every run of at least `min_length`; return their number."""
    n_runs = 0
    for query in range(text_starts.size):
        start = text_starts[query]
        stop = start + lengths[query]
        while start < stop:
            at = find_byte(text, start, stop, AMBIGUOUS)
            if at - start >= min_length:
                runs[n_runs, 0] = query
                runs[n_runs, 1] = start
                runs[n_runs, 2] = at
                n_runs += 1
            start = at + 1
    return n_runs


# The results of a search for maximal exact matches, as arrays.


class Matches(NamedTuple):
    """Matches ordered by query, then by start in the query and in the reference.

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
    """Allocate arrays for `n` matches."""
    return Matches(*(np.empty(n, np.uint32) for _ in Matches._fields))


def take_matches(matches: Matches, selected) -> Matches:
    """Select matches by slice, mask or numbers."""
    return Matches(*(array[selected] for array in matches))


def join_matches(parts: Sequence[Matches]) -> Matches:
    """Concatenate matches."""
    if len(parts) == 1:
        return parts[0]
    return Matches(*map(np.concatenate, zip(no_matches(), *parts, strict=True)))


def merge_matches(parts: Sequence[Matches]) -> Matches:
    """Merge matches of several stretches of the reference, each in order, in the same order.

    Parts are in the order of their stretches, so a stable sort of queries and starts is enough; it
    takes advantage of the order within parts.
    """
    matches = join_matches(parts)
    starts = matches.queries.astype(np.uint64) << np.uint64(32) | matches.query_starts
    return take_matches(matches, np.argsort(starts, kind="stable"))
