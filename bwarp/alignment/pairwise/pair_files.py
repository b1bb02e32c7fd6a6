"""Pairs from files: two FASTA or FASTQ files read side by side, or a table of sequences.

Records go together by their number: record i of one file with record i of the other. Nothing is
copied: a batch of pairs is a view of what both readers hold at the moment.

    queries      batch 0 ............ | batch 1 ......
    references   batch 0 .... | batch 1 ............ |
    pairs        ------------ | ----- | ------------ |
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bwarp.alignment.pairs import PairBatch, Sequences, sequences_of
from bwarp.counted import counted
from bwarp.errors import InputError
from bwarp.io.fastx import SequenceBatch, read_sequences
from bwarp.io.file_blocks import read_blocks
from bwarp.io.names import refuse_nameless

__all__ = ["NamedPairs", "read_pair_table", "read_paired_files", "side_by_side"]

#: Pairs of a table that are aligned at once.
_TABLE_PAIRS = 1 << 16


_Side = tuple[str | os.PathLike, Iterator[SequenceBatch]]


#: Cells of the matrix of a pair, which take an hour and more on a CPU.
MOST_CELLS = 10**12


@dataclass(frozen=True)
class NamedPairs:
    """Some consecutive pairs of an input.

    Attributes
    ----------
    pairs : PairBatch
    query_names, reference_names : list of str
    qualities : list of bytes, or None
        Of the queries, where they came from FASTQ.
    first : int
        Number of the first pair in the input, from 0.
    """

    pairs: PairBatch
    query_names: list[str]
    reference_names: list[str]
    qualities: list[bytes] | None
    first: int


def read_paired_files(
    queries: str | os.PathLike, references: str | os.PathLike, code_of_byte: np.ndarray
) -> Iterator[NamedPairs]:
    """Read record i of one file with record i of the other."""
    return side_by_side(
        (queries, read_sequences(queries, code_of_byte)),
        (references, read_sequences(references, code_of_byte)),
    )


def side_by_side(queries: _Side, references: _Side) -> Iterator[NamedPairs]:
    """`read_paired_files` for sequences that someone else reads.

    Parameters
    ----------
    queries, references : (path or str, iterator of SequenceBatch)
        Where the sequences are from, which errors name, and the sequences.
    """
    (queries, left), (references, right) = queries, references
    q, r = next(left, None), next(right, None)
    first = at_q = at_r = 0
    while q is not None and r is not None:
        count = min(q.count - at_q, r.count - at_r)
        _refuse_empty(queries, q, at_q, count)
        _refuse_empty(references, r, at_r, count)
        qualities = None
        if q.qualities is not None:
            qualities = [
                q.qualities[q.offsets[i] : q.offsets[i + 1]].tobytes()
                for i in range(at_q, at_q + count)
            ]
        query_names = [q.name(i) for i in range(at_q, at_q + count)]
        reference_names = [r.name(i) for i in range(at_r, at_r + count)]
        refuse_nameless(queries, query_names, q.first_record + at_q)
        refuse_nameless(references, reference_names, r.first_record + at_r)
        yield _named(
            queries,
            PairBatch(_part(q, at_q, count), _part(r, at_r, count)),
            query_names,
            reference_names,
            qualities,
            first,
        )
        first, at_q, at_r = first + count, at_q + count, at_r + count
        if at_q == q.count:
            q, at_q = next(left, None), 0
        if at_r == r.count:
            r, at_r = next(right, None), 0
    if q is not None or r is not None:
        n_queries = first if q is None else _count(q, left)
        n_references = first if r is None else _count(r, right)
        raise InputError(
            f"{queries} has {counted(n_queries, 'record')} but {references} has {n_references:,}: "
            "record i goes with record i, so both must have as many"
        )


def _named(
    where: str | os.PathLike,
    pairs: PairBatch,
    query_names: list[str],
    reference_names: list[str],
    qualities: list[bytes] | None,
    first: int,
) -> NamedPairs:
    """Pairs of which none would keep the aligner busy for hours."""
    lengths = pairs.queries.lengths.astype(np.int64), pairs.references.lengths.astype(np.int64)
    for i in np.flatnonzero(lengths[0] * lengths[1] > MOST_CELLS)[:1]:
        raise InputError(
            f"{where}: pair {first + i + 1:,} ({query_names[i]}) has {lengths[0][i]:,} and "
            f"{lengths[1][i]:,} letters, and the most that are aligned are {MOST_CELLS:,} in their "
            "product: align such sequences with a program made for them, such as minimap2"
        )
    return NamedPairs(pairs, query_names, reference_names, qualities, first)


def _part(batch, begin: int, count: int) -> Sequences:
    offsets = batch.offsets[begin : begin + count + 1]
    return Sequences(batch.codes, offsets[:-1], np.diff(offsets).astype(np.int32))


def _refuse_empty(path, batch, begin: int, count: int) -> None:
    empty = np.flatnonzero(np.diff(batch.offsets[begin : begin + count + 1]) == 0)
    if empty.size:
        record = begin + int(empty[0])
        raise InputError(
            f"{path}: record {batch.first_record + record + 1} ({batch.name(record)}) "
            "has no sequence: remove it and its partner"
        )


def _count(batch, rest) -> int:
    count = batch.first_record + batch.count
    for later in rest:
        count = later.first_record + later.count
    return count


def read_pair_table(path: str | os.PathLike, code_of_byte: np.ndarray) -> Iterator[NamedPairs]:
    """Read a tab-separated table: query, reference; or name, query, name, reference.

    Without names, both sequences of line i (from 0) are called i. Lines that begin with # are
    skipped.
    """
    rows: list[tuple[str, np.ndarray, str, np.ndarray]] = []
    first = 0
    for number, line in _lines(path):
        fields = line.split(b"\t")
        if len(fields) == 2:
            name = str(first + len(rows))
            fields = [name.encode(), fields[0], name.encode(), fields[1]]
        if len(fields) != 4:
            raise InputError(
                f"{path}: line {number} has {counted(len(fields), 'column')}: give query and "
                "reference, "
                "or query name, query, reference name and reference, with tabs between them"
            )
        rows.append(
            (
                fields[0].decode("utf-8", "replace"),
                _encode(path, number, "query", fields[1], code_of_byte),
                fields[2].decode("utf-8", "replace"),
                _encode(path, number, "reference", fields[3], code_of_byte),
            )
        )
        if len(rows) == _TABLE_PAIRS:
            yield _named_rows(path, rows, first)
            first += len(rows)
            rows = []
    if rows:
        yield _named_rows(path, rows, first)


def _lines(path) -> Iterator[tuple[int, bytes]]:
    number, carried = 0, b""
    for block in read_blocks(path):
        *whole, carried = (carried + block).split(b"\n")
        for line in whole:
            number += 1
            if line.strip() and not line.startswith(b"#"):
                yield number, line.rstrip(b"\r")
    if carried.strip() and not carried.startswith(b"#"):
        yield number + 1, carried.rstrip(b"\r")


def _encode(path, number, side, letters, code_of_byte) -> np.ndarray:
    codes = code_of_byte[np.frombuffer(letters, np.uint8)]
    if codes.size == 0:
        raise InputError(f"{path}: line {number}: the {side} is empty: remove that line")
    if codes.max() == 255:
        letter = letters[int(np.argmax(codes == 255))]
        raise InputError(
            f"{path}: line {number}: {chr(letter)!r} in the {side} is not a letter of the "
            "alphabet that the scores are for"
        )
    return codes


def _named_rows(path, rows, first: int) -> NamedPairs:
    query_names, queries, reference_names, references = zip(*rows, strict=True)
    return _named(
        path,
        PairBatch(sequences_of(queries), sequences_of(references)),
        list(query_names),
        list(reference_names),
        None,
        first,
    )
