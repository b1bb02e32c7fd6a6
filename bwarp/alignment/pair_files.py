"""Read pairs of sequences: record i of one file with record i of another, or rows of a table.

Two FASTA or FASTQ files are read at the same time, each by several threads. Nothing is copied: a
batch of pairs is a view of the current batches of both readers.

    queries      batch 0 ............ | batch 1 ......
    references   batch 0 .... | batch 1 ............ |
    pairs        ------------ | ----- | ------------ |

A table is cut at its lines by one thread; others parse the parts.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from bwarp.alignment.pairs import PairBatch, Sequences
from bwarp.counted import counted
from bwarp.errors import InputError
from bwarp.io.compressed_files import CHUNK_BYTES, read_blocks, take_blocks
from bwarp.io.fastx import RecordText, SequenceBatch, of_records, parse_records
from bwarp.io.line_scan import SLACK, encode_line, find_byte, letter_table
from bwarp.io.names import MOST_DIGITS, Names, names_of, put_bytes, put_number
from bwarp.runtime.chunks import in_order, read_ahead
from bwarp.runtime.compiled_code import compiled, read_only
from bwarp.runtime.timeline import on_timeline

#: Maximum number of matrix cells of a pair, which take over an hour on a CPU.
MOST_CELLS = 10**12


@dataclass(frozen=True)
class NamedPairs:
    """Consecutive pairs of an input.

    Attributes
    ----------
    pairs : PairBatch
    query_names, reference_names : Names
    qualities : ndarray, dtype=uint8, or None
        The qualities of the queries, at the positions of their codes, if the queries are FASTQ.
    first : int
        The number of the first pair in the input, from 0.
    """

    pairs: PairBatch
    query_names: Names
    reference_names: Names
    qualities: np.ndarray | None
    first: int


def _refuse_huge(where: str | os.PathLike, named: NamedPairs) -> None:
    """Raise an error if a pair would take hours to align."""
    queries, references = named.pairs.queries.lengths, named.pairs.references.lengths
    if int(queries.max(initial=0)) * int(references.max(initial=0)) <= MOST_CELLS:
        return
    cells = queries.astype(np.int64) * references
    for i in np.flatnonzero(cells > MOST_CELLS)[:1]:
        raise InputError(
            f"{where}, pair {named.first + i + 1:,} ({named.query_names.name(i)}): the product of "
            f"the lengths {queries[i]:,} and {references[i]:,} exceeds {MOST_CELLS:,}: use a "
            "program for long sequences, such as minimap2"
        )


@dataclass(frozen=True)
class NamedSequences:
    """Consecutive records of one file; see `NamedPairs`."""

    sequences: Sequences
    names: Names
    qualities: np.ndarray | None
    first: int

    @property
    def count(self) -> int:
        return self.sequences.count

    def part(self, first: int, stop: int) -> "NamedSequences":
        """Return the records in ``[first, stop)``, which share the memory."""
        codes, starts, lengths = (
            self.sequences.codes, self.sequences.starts, self.sequences.lengths,
        )  # fmt: skip
        return NamedSequences(
            Sequences(codes, starts[first:stop], lengths[first:stop]),
            Names(self.names.text, self.names.bounds[first:stop]),
            self.qualities,
            self.first + first,
        )


#: The name of a file or another source, for error messages, and its sequences.
Side = tuple[str | os.PathLike, Iterator[NamedSequences]]


def named_sequences(where: str | os.PathLike, batch: SequenceBatch) -> NamedSequences:
    """Return the records of a batch; raise an error that names `where` if a record has no sequence
    or no name.
    """
    lengths = np.diff(batch.offsets).astype(np.int32)
    for record in np.flatnonzero(lengths == 0)[:1]:
        raise InputError(
            f"{where}, record {batch.first_record + record + 1} ({batch.name(record)}) has no "
            "sequence: remove it and its partner"
        )
    sequences = Sequences(batch.codes, batch.offsets[:-1], lengths)
    return NamedSequences(sequences, names_of(where, batch), batch.qualities, batch.first_record)


def read_paired_files(
    queries: str | os.PathLike,
    references: str | os.PathLike,
    code_of_byte: np.ndarray,
    threads: int = 1,
    chunk_bytes: int = CHUNK_BYTES,
) -> Iterator[NamedPairs]:
    """Read record i of one file with record i of the other.

    Parameters
    ----------
    code_of_byte : ndarray, shape=(256,), dtype=uint8
    threads : int
        The threads that parse each file; with more than one, both files are read ahead.
    chunk_bytes : int
        Approximate number of bytes of a file that are parsed at a time.
    """

    def side(path) -> Side:
        def parsed(records: RecordText) -> NamedSequences:
            return named_sequences(path, parse_records(path, records, code_of_byte))

        batches = of_records(parsed, path, chunk_bytes, threads)
        return path, batches if threads == 1 else read_ahead(batches)

    return side_by_side(side(queries), side(references))


def side_by_side(queries: Side, references: Side) -> Iterator[NamedPairs]:
    """Pair sequences of two sources, as `read_paired_files` does."""
    (queries, left), (references, right) = queries, references
    q, r = next(left, None), next(right, None)
    first = 0
    while q is not None and r is not None:
        count = min(q.count, r.count)
        one, other = q.part(0, count), r.part(0, count)
        pairs = PairBatch(one.sequences, other.sequences)
        named = NamedPairs(pairs, one.names, other.names, one.qualities, first)
        _refuse_huge(queries, named)
        yield named
        first += count
        q = q.part(count, q.count) if count < q.count else next(left, None)
        r = r.part(count, r.count) if count < r.count else next(right, None)
    if q is not None or r is not None:
        n_queries = first if q is None else _count(q, left)
        n_references = first if r is None else _count(r, right)
        raise InputError(
            f"{queries} has {counted(n_queries, 'record')} but {references} has {n_references:,}: "
            "query i is aligned to reference i, so their numbers must be equal"
        )


def _count(batch: NamedSequences, rest: Iterator[NamedSequences]) -> int:
    for later in rest:
        batch = later
    return batch.first + batch.count


# --------------------------------------------------------------------------------------------------
# A table of pairs: query and reference, or query name, query, reference name and reference.
#
# One thread cuts the text into whole lines and counts the rows, that is, lines that are neither
# blank nor a comment, because a pair without names is named by its number.

_NOTHING = np.empty(0, np.uint8)


class _TableText(NamedTuple):
    """Whole lines of a table.

    Attributes
    ----------
    text : ndarray, dtype=uint8
    lines_before : int
        Lines of the file before these.
    first : int
        The number of the first pair, from 0.
    count : int
    """

    text: np.ndarray
    lines_before: int
    first: int
    count: int


def read_pair_table(
    path: str | os.PathLike,
    code_of_byte: np.ndarray,
    threads: int = 1,
    chunk_bytes: int = CHUNK_BYTES,
) -> Iterator[NamedPairs]:
    """Read a tab-separated table: query, reference; or name, query, name, reference.

    Without names, both sequences of pair i (from 0) are named i. Blank lines, and lines that begin
    with #, are skipped.

    Parameters
    ----------
    code_of_byte : ndarray, shape=(256,), dtype=uint8
    threads : int
        The threads that parse; with more than one, another thread reads and cuts the file.
    chunk_bytes : int
        Approximate number of bytes of the file per batch.
    """
    texts = _cut_table(read_blocks(path, chunk_bytes, threads))
    parse = partial(_parse_table, path, code_of_byte)
    return in_order(parse, texts if threads == 1 else read_ahead(texts), threads)


def _cut_table(blocks: Iterator[bytes]) -> Iterator[_TableText]:
    rest, lines_before, first, at_end = _NOTHING, 0, 0, False
    while not at_end:
        # Double the text, so that a line of many blocks takes few attempts.
        taken = take_blocks(blocks, max(rest.size, 1))
        at_end = not taken
        data = np.concatenate([rest, *(np.frombuffer(block, np.uint8) for block in taken)])
        data = read_only(data)
        stop, lines, count = _count_rows(data, at_end)
        if count:
            yield _TableText(data[:stop], lines_before, first, count)
        rest, lines_before, first = data[stop:], lines_before + lines, first + count


@on_timeline("parse sequences")
def _parse_table(path, code_of_byte: np.ndarray, table: _TableText) -> NamedPairs:
    count, size = table.count, table.text.size
    codes = np.empty((2, size + SLACK), np.uint8)
    offsets = np.zeros((2, count + 1), np.int64)
    names = np.empty(size + count * MOST_DIGITS, np.uint8)
    bounds = np.empty((2, count, 2), np.int64)
    used, bad = _split_table(
        table.text, table.first, letter_table(code_of_byte), codes, offsets, names, bounds
    )
    if bad >= 0:
        raise _bad_row(path, table, bad, code_of_byte)
    sides = (
        Sequences(side[: edges[-1]], edges[:-1], np.diff(edges).astype(np.int32))
        for side, edges in zip(codes, offsets, strict=True)
    )
    text = read_only(names[:used])
    query_names, reference_names = Names(text, bounds[0]), Names(text, bounds[1])
    named = NamedPairs(PairBatch(*sides), query_names, reference_names, None, table.first)
    _refuse_huge(path, named)
    return named


def _bad_row(path, table: _TableText, at: int, code_of_byte: np.ndarray) -> InputError:
    """Return the error for the line at a position of the text."""
    text = table.text.tobytes()
    start = f"{path}, line {table.lines_before + text.count(10, 0, at) + 1}: "
    fields = text[at:].partition(b"\n")[0].rstrip(b"\r").split(b"\t")
    if len(fields) not in (2, 4):
        return InputError(
            f"{start}found {counted(len(fields), 'column')}: write query and reference, or query "
            "name, query, reference name and reference, separated by tabs"
        )
    query, reference = fields if len(fields) == 2 else fields[1::2]
    side, letters = "query", query
    if query and (code_of_byte[list(query)] < 255).all():
        side, letters = "reference", reference
    if not letters:
        return InputError(f"{start}the {side} is empty: remove the line")
    letter = next(letter for letter in letters if code_of_byte[letter] == 255)
    return InputError(f"{start}{chr(letter)!r} in the {side} is not in the alphabet of the scores")


@compiled
def _line_of_row(data, start):
    """Return the line feed that ends a line (or the end), the end of its text, and whether it is a
    row.
    """
    feed = find_byte(data, start, data.size, 10)
    stop = feed
    while stop > start and data[stop - 1] == 13:
        stop -= 1
    at = start
    while at < stop and (data[at] == 32 or 9 <= data[at] <= 13):
        at += 1
    return feed, stop, at < stop and data[start] != 35


@compiled
def _count_rows(data, at_end):
    """Return the end of the last whole line, the number of lines, and how many of them are rows."""
    lines, count, at = 0, 0, 0
    while at < data.size:
        feed, _, is_row = _line_of_row(data, at)
        if feed == data.size and not at_end:
            break
        lines += 1
        count += is_row
        at = min(feed + 1, data.size)
    return at, lines, count


@compiled
def _split_table(data, first, table, codes, offsets, names, bounds):
    """Split rows; return the bytes of the names, and the start of the first bad line or -1."""
    used = np.int64(0)
    row = np.int64(0)
    at = np.int64(0)
    while at < data.size:
        start = at
        feed, stop, is_row = _line_of_row(data, start)
        at = feed + 1
        if not is_row:
            continue
        tab_1 = find_byte(data, start, stop, 9)
        tab_2 = find_byte(data, tab_1 + 1, stop, 9)
        tab_3 = find_byte(data, tab_2 + 1, stop, 9)
        tab_4 = find_byte(data, tab_3 + 1, stop, 9)
        has_names = tab_2 < stop
        if tab_1 == stop or (has_names and (tab_3 == stop or tab_4 < stop)):
            return used, start
        for side in range(2):
            begin, end = (start, tab_1) if side == 0 else (tab_1 + 1, stop)
            if has_names:
                begin, end = (tab_1 + 1, tab_2) if side == 0 else (tab_3 + 1, stop)
            to = offsets[side, row]
            if begin == end or encode_line(data, begin, end, table, codes[side], to) < end:
                return used, start
            offsets[side, row + 1] = to + end - begin
            if has_names:
                begin, end = (start, tab_1) if side == 0 else (tab_2 + 1, tab_3)
                bounds[side, row, 0] = used
                used = put_bytes(names, used, data, begin, end)
                bounds[side, row, 1] = used
        if not has_names:
            bounds[0, row, 0] = bounds[1, row, 0] = used
            used = put_number(names, used, first + row)
            bounds[0, row, 1] = bounds[1, row, 1] = used
        row += 1
    return used, np.int64(-1)
