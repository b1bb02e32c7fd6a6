"""Exact local scores of queries against a database on a GPU.

The database goes to the card once, in parts where it is larger than the card's memory, neighbours
by length side by side (profile_cuda). Targets whose scores near the end of 16 bits, and schemes
that do not fit a byte, are computed in 32 bits (full_matrix_cuda). Several cards share the database
by residues, and work on the same query at a time.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numba import cuda

from bwarp.alignment import profile_cuda
from bwarp.alignment.batch_cuda import (
    BLOCK,
    DeviceBatch,
    DeviceSequences,
    blocks,
    free_bytes,
)
from bwarp.alignment.database import Database
from bwarp.alignment.ends_cuda import find_full, pair_costs
from bwarp.alignment.profile_cuda import ALPHABET, GROUP, STRIP_ROWS, interleave_targets
from bwarp.alignment.scheme import LOCAL, Scoring, element_type
from bwarp.errors import InputError

__all__ = ["best_rows", "search_scores"]

#: What a 16-bit lane holds.
LIMIT = 32_767
#: Queries that a part of the database meets before the next part comes to the card.
QUERY_GROUP = 64
#: Bytes on the card a residue: code, half a letter word, half an edge; and some to spare.
BYTES_A_RESIDUE = 12
#: Words of a part are counted in 32 bits.
MOST_WORDS = 2**32 - 1
#: What a thread's step costs beside its rows, in rows.
STEP_COST = 3


@dataclass(frozen=True)
class _Part:
    """A part of the database on the card."""

    first: int
    targets: DeviceSequences
    letters: object
    columns_before: object
    edge: object
    pairs: int


def search_scores(
    queries: Sequence[np.ndarray],
    database: Database,
    scoring: Scoring,
    threads: int = 1,
    cards: int = 1,
) -> Iterator[np.ndarray]:
    """The best local score of each query against each sequence of a database.

    Parameters
    ----------
    queries : sequence of ndarray, dtype=uint8
        Codes of the scoring's alphabet.
    database : Database
        In the same codes.
    cards : int
        Share the database among so many of the cards that CUDA shows.

    Yields
    ------
    scores : ndarray, shape=(database.count,), dtype=int32
        For each query in turn, in the order of the database's arrays.
    """
    for number, query in enumerate(queries, 1):
        if query.size == 0:
            raise InputError(f"query {number} is empty: remove it")
    lengths = np.diff(database.offsets)
    if lengths.size and queries:
        element_type(scoring, LOCAL, max(q.size for q in queries), int(lengths.max()))
    shares = _shares(database.offsets, min(cards, len(cuda.gpus)) if cards > 1 else 1)
    if len(shares) == 1:
        yield from _scores_of_share(queries, database, scoring, *shares[0])
    elif shares:
        yield from _scores_of_cards(queries, database, scoring, shares)


def _shares(offsets: np.ndarray, cards: int) -> list[tuple[int, int]]:
    """Ranges of sequences of about as many residues each, none of them empty."""
    count = offsets.size - 1
    residues = offsets[-1] * np.arange(1, cards) // cards
    edges = np.unique([0, *np.searchsorted(offsets, residues), count])
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


def _scores_of_cards(queries, database, scoring, shares):
    """Each card works on its share in a thread of its own, in which CUDA keeps what it has."""
    pools = [ThreadPoolExecutor(1) for _ in shares]
    searches = [
        _scores_of_card(card, queries, database, scoring, *share)
        for card, share in enumerate(shares)
    ]
    try:
        for _ in queries:
            found = [
                pool.submit(next, search) for pool, search in zip(pools, searches, strict=True)
            ]
            yield np.concatenate([scores.result() for scores in found])
    finally:
        for pool, search in zip(pools, searches, strict=True):
            pool.submit(search.close).result()
            pool.shutdown()


def _scores_of_card(card, queries, database, scoring, first, last):
    with cuda.gpus[card]:
        yield from _scores_of_share(queries, database, scoring, first, last)


def _scores_of_share(queries, database, scoring, first, last):
    """Scores of each query against sequences `first` to `last`, on the current card."""
    # A sequence takes at most as many words as it has residues, and some behind it.
    words = database.offsets + GROUP * np.arange(database.offsets.size)
    most = min(int(0.8 * free_bytes()) // BYTES_A_RESIDUE, MOST_WORDS)
    parts = _part_edges(words, most, first, last)
    resident = _load_part(database, *parts[0]) if len(parts) == 1 else None
    for begin in range(0, len(queries), QUERY_GROUP):
        group = queries[begin : begin + QUERY_GROUP]
        if resident is not None:
            for query in group:
                yield _scores_of_part(query, resident, scoring)
            continue
        scores = np.zeros((len(group), last - first), np.int32)
        for part_first, part_last in parts:
            part = _load_part(database, part_first, part_last)
            for row, query in zip(scores, group, strict=True):
                row[part_first - first : part_last - first] = _scores_of_part(query, part, scoring)
            del part
        yield from scores


def _part_edges(offsets: np.ndarray, most: int, first: int, last: int) -> list[tuple[int, int]]:
    """Ranges of sequences `first` to `last` of at most so much by their offsets, or of one."""
    parts = []
    while first < last:
        stop = int(np.searchsorted(offsets, offsets[first] + most, side="right")) - 1
        stop = min(last, max(stop, first + 1))
        parts.append((first, stop))
        first = stop
    return parts


def _load_part(database: Database, first: int, last: int) -> _Part:
    offsets = database.offsets[first : last + 1].astype(np.int64)
    codes = cuda.to_device(np.ascontiguousarray(database.codes[offsets[0] : offsets[-1]]))
    offsets = offsets - offsets[0]
    lengths = np.diff(offsets).astype(np.int32)
    # Sorted by length: the second of a pair is the longer.
    columns = np.append(lengths[1::2], lengths[-1:] if lengths.size % 2 else lengths[:0])
    columns_before = np.full(columns.size + 1, GROUP, np.int64)
    columns_before[1:] += np.cumsum(columns.astype(np.int64) + GROUP)
    device_columns = cuda.to_device(columns_before)
    # A group may read a step past its last column of padding.
    words = int(columns_before[-1]) + int(columns.max()) + GROUP
    letters = cuda.device_array(words, np.int32)
    interleave_targets[columns.size, BLOCK](codes, cuda.to_device(offsets), device_columns, letters)
    targets = DeviceSequences(codes, cuda.to_device(offsets[:-1]), cuda.to_device(lengths), lengths)
    edge = cuda.device_array(words, np.int64)
    return _Part(first, targets, letters, device_columns, edge, columns.size)


def best_rows(query_length: int) -> int:
    """Rows a thread that leave the least of the strips empty."""
    return min(STRIP_ROWS, key=lambda rows: -(-query_length // (GROUP * rows)) * (rows + STEP_COST))


def _scores_of_part(query: np.ndarray, part: _Part, scoring: Scoring) -> np.ndarray:
    count = part.targets.host_lengths.size
    first = scoring.gap_open + scoring.gap_extend
    highest, lowest = int(scoring.matrix.max()), int(scoring.matrix.min())
    fits = (
        cuda.get_current_device().compute_capability >= (9, 0)
        and len(scoring.matrix) < ALPHABET
        and first >= -lowest
        and highest + first <= 127
    )
    if not fits:
        return _scores_in_32_bits(query, part, scoring, np.arange(count))
    rows = best_rows(query.size)
    profile = cuda.to_device(profile_cuda.query_profile(query, scoring.matrix, first, rows))
    strips = profile.shape[0]
    bias = first + 1
    best = cuda.to_device(np.zeros(part.pairs, np.int32))
    kernel = profile_cuda.strip_kernel(rows)[blocks(part.pairs, GROUP), profile_cuda.BLOCK]
    for strip in range(strips):
        kernel(
            profile[strip],
            part.letters,
            part.columns_before,
            np.int32(-first),
            np.int32(-scoring.gap_extend),
            np.int32(bias),
            np.int32(1),
            strip == 0,
            strip == strips - 1,
            part.edge,
            best,
        )
    # Two 16-bit lanes a word, the first target of each pair in the low one.
    scores = best.copy_to_host().view("<i2")[:count].astype(np.int32)
    over = np.flatnonzero(scores > LIMIT - highest).astype(np.int32)
    scores -= bias
    if over.size:
        scores[over] = _scores_in_32_bits(query, part, scoring, over)
    return scores


def _scores_in_32_bits(query, part, scoring, ids):
    targets = part.targets
    count = targets.host_lengths.size
    lengths = np.full(count, query.size, np.int32)
    starts = cuda.to_device(np.zeros(count, np.int64))
    queries = DeviceSequences(cuda.to_device(query), starts, cuda.to_device(lengths), lengths)
    outputs = tuple(cuda.device_array(count, np.int32) for _ in range(3))
    marks = np.zeros(count, np.int32)
    marks[ids] = 1
    batch = DeviceBatch(queries, targets)
    find_full(batch, pair_costs(scoring, LOCAL), outputs, cuda.to_device(marks), 1)
    return outputs[0].copy_to_host()[ids]
