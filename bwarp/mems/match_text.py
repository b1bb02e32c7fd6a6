"""Format matches as the lines of MUMmer 3, PAF or TSV, or as columns for Parquet and data frames.

MUMmer    > query Reverse  Len = 5000              a header per query strand
          1234567       345       678            reference, query, length; 1-based
            chr1   1234567       345       678
PAF       query length start end strand contig length start end matches bases 255 cg:Z:678=
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from bwarp.io.fastx import SequenceBatch
from bwarp.io.names import MOST_DIGITS, Names, put_field, put_name, put_number, query_names
from bwarp.io.numbered_rows import NumberedRows
from bwarp.io.table_writer import TableWriter
from bwarp.mems.packed_extension import segment_of
from bwarp.mems.query_text import REVERSE, Matches, no_matches, take_matches
from bwarp.reference import Reference
from bwarp.runtime.compiled_code import compiled

# Common to all formats: threads write one line per match.


#: Matches that a thread formats at a time.
RANGE = 1 << 15

#: Matches whose columns a thread makes at a time.
COLUMN_RANGE = 1 << 18


class Named(NamedTuple):
    """Names and lengths of queries and contigs, as lines need them.

    Attributes
    ----------
    queries, contigs : Names
    query_lengths : ndarray, shape=(n_queries,), dtype=int64
    strands : ndarray, dtype=int64
        The strands that were searched.
    contig_starts : ndarray, shape=(n_contigs + 1,), dtype=int64
    """

    queries: Names
    contigs: Names
    query_lengths: np.ndarray
    strands: np.ndarray
    contig_starts: np.ndarray


def names_for(
    batch: SequenceBatch, reference: Reference, contigs: Names, strands: tuple[int, ...]
) -> Named:
    """Return the names for the matches of a batch of queries; `contigs` is the text for each
    contig.
    """
    return Named(
        query_names(batch),
        contigs,
        np.diff(batch.offsets),
        np.array(strands),
        reference.contig_starts,
    )


def _add_lines(
    writer: TableWriter, write_rows: Callable, room: int, named: Named, blocks: Iterator[Matches]
) -> Iterator[Matches]:
    """Write a line per match of a batch, in order, and pass the matches on.

    Parameters
    ----------
    write_rows : function
        Writes the lines of some matches into its last argument, and returns the number of bytes.
    room : int
        The maximum bytes of a line without the names of its query and contig.
    """
    room += named.queries.longest + named.contigs.longest

    def lines_of(matches: Matches, first: int, last: int) -> np.ndarray:
        lines = np.empty((last - first) * room, np.uint8)
        return lines[: write_rows(take_matches(matches, slice(first, last)), named, lines)]

    for matches in blocks:
        writer.add(partial(lines_of, matches), matches.n, RANGE)
        yield matches


@compiled
def row_of(matches, named, i):
    """Return the query, its start and length on the forward strand, whether the strand is reverse,
    the contig and the position in it.
    """
    query = np.int64(matches.queries[i])
    record = query // named.strands.size
    reverse = named.strands[query % named.strands.size] == REVERSE
    length = np.int64(matches.lengths[i])
    start = np.int64(matches.query_starts[i])
    if reverse:
        start = named.query_lengths[record] - start - length
    contig = np.int64(segment_of(named.contig_starts, np.uint64(matches.reference_starts[i])))
    position = np.int64(matches.reference_starts[i]) - named.contig_starts[contig]
    return record, start, length, reverse, contig, position


_BLANK, _NEWLINE, _TAB = 32, 10, 9
_WIDTH = 8  # the columns of MUMmer


@dataclass(frozen=True)
class MummerLayout:
    """Options of `bwarp mems` (`bwarp.options.finding`) for the MUMmer format.

    Attributes
    ----------
    strands : tuple of int
        The strands that were searched.
    lengths : bool
        The option `--show-lengths`.
    """

    strands: tuple[int, ...]
    forward_positions: bool = False
    four_column: bool = False
    lengths: bool = False


def write_mummer(
    writer: TableWriter,
    blocks: Iterator[Matches],
    batch: SequenceBatch,
    reference: Reference,
    layout: MummerLayout,
) -> Iterator[Matches]:
    """Write the matches of a batch, in order, with headers for all query strands; pass them on."""
    named = names_for(batch, reference, _mummer_contigs(reference, layout), layout.strands)
    line_room = named.contigs.longest + 3 * (MOST_DIGITS + 2) + 1
    header_room = named.queries.longest + len(b">  Reverse  Len = \n") + MOST_DIGITS

    def lines_of(matches: Matches, header: int, last_header: int) -> np.ndarray:
        room = matches.n * line_room + max(last_header - header, 0) * header_room
        lines = np.empty(room, np.uint8)
        used = _write_mummer(
            matches, named, layout.forward_positions, layout.lengths, header, last_header, lines
        )
        return lines[:used]

    def matches_and_headers(matches: Matches, headers: np.ndarray, first: int, last: int):
        part = take_matches(matches, slice(first, last))
        return lines_of(part, int(headers[first]), int(headers[last]))

    next_header = 0
    for matches in blocks:
        if matches.n:
            # A range writes the headers after the last query of the previous range, up to its own
            # last one.
            headers = np.append(next_header, matches.queries.astype(np.int64) + 1)
            headers = np.maximum(headers, next_header)
            writer.add(partial(matches_and_headers, matches, headers), matches.n, RANGE)
            next_header = int(headers[-1])
        yield matches
    rest = batch.count * len(layout.strands) - next_header
    writer.add(
        lambda first, last: lines_of(no_matches(), next_header + first, next_header + last),
        rest,
        RANGE,
    )


def _mummer_contigs(reference: Reference, layout: MummerLayout) -> Names:
    """Return the text at the start of each line: nothing, or the name of the contig."""
    if len(reference.names) == 1 and not layout.four_column:
        return Names.of([""])
    sizes = [len(name.encode()) for name in reference.names]
    blanks = [" " * (max(sizes) - size + 2) for size in sizes]
    return Names.of([f"  {n}{rest}" for n, rest in zip(reference.names, blanks, strict=True)])


@compiled
def _put_literal(line, at, text):
    for byte in text:
        line[at] = byte
        at += 1
    return at


@compiled
def _write_mummer(matches, named, forward_positions, show_lengths, header, last_header, lines):
    """Write headers from number `header` on, each before its matches; return the bytes used."""
    at = 0
    contig = 0
    strands, contig_starts = named.strands, named.contig_starts
    contig_start, contig_stop = contig_starts[0], contig_starts[1]
    for i in range(matches.queries.size + 1):
        done = i == matches.queries.size
        stop = last_header if done else np.int64(matches.queries[i]) + 1
        while header < stop:
            record = header // strands.size
            lines[at] = 62
            lines[at + 1] = _BLANK
            at = put_name(lines, at + 2, named.queries, record)
            if strands[header % strands.size] == REVERSE:
                at = _put_literal(lines, at, b" Reverse")
            if show_lengths:
                at = _put_literal(lines, at, b"  Len = ")
                at = put_number(lines, at, named.query_lengths[record])
            lines[at] = _NEWLINE
            at += 1
            header += 1
        if done:
            break
        position = np.int64(matches.reference_starts[i])
        if position < contig_start or position >= contig_stop:
            contig = np.int64(segment_of(contig_starts, np.uint64(position)))
            contig_start, contig_stop = contig_starts[contig], contig_starts[contig + 1]
        start, query = np.int64(matches.query_starts[i]), np.int64(matches.queries[i])
        if forward_positions and strands[query % strands.size] == REVERSE:
            start = named.query_lengths[query // strands.size] - 1 - start
        at = put_name(lines, at, named.contigs, min(contig, len(named.contigs.bounds) - 1))
        at = put_number(lines, at, position - contig_start + 1, _WIDTH)
        lines[at] = lines[at + 1] = _BLANK
        at = put_number(lines, at + 2, start + 1, _WIDTH)
        lines[at] = lines[at + 1] = _BLANK
        at = put_field(lines, at + 2, matches.lengths[i], _NEWLINE, _WIDTH)
    return at


def write_paf(
    writer: TableWriter,
    blocks: Iterator[Matches],
    batch: SequenceBatch,
    reference: Reference,
    strands: tuple[int, ...],
) -> Iterator[Matches]:
    """Write the matches of a batch as PAF, with 0-based positions on the forward strands; pass them
    on.
    """
    contig_lengths = np.diff(reference.contig_starts)
    contigs = Names.of(
        [
            f"{name}\t{length}\t"
            for name, length in zip(reference.names, contig_lengths, strict=True)
        ]
    )
    room = 8 * (MOST_DIGITS + 1) + len("+\t255\tcg:Z:=\n")
    named = names_for(batch, reference, contigs, strands)
    return _add_lines(writer, _write_paf, room, named, blocks)


@compiled
def _write_paf(matches, named, lines):
    at = 0
    for i in range(matches.queries.size):
        record, start, length, reverse, contig, position = row_of(matches, named, i)
        at = put_name(lines, at, named.queries, record)
        lines[at] = _TAB
        at = put_field(lines, at + 1, named.query_lengths[record], _TAB)
        at = put_field(lines, at, start, _TAB)
        at = put_field(lines, at, start + length, _TAB)
        lines[at] = 45 if reverse else 43
        lines[at + 1] = _TAB
        at = put_name(lines, at + 2, named.contigs, contig)
        at = put_field(lines, at, position, _TAB)
        at = put_field(lines, at, position + length, _TAB)
        at = put_field(lines, at, length, _TAB)
        at = put_field(lines, at, length, _TAB)
        at = _put_literal(lines, at, b"255\tcg:Z:")
        at = put_number(lines, at, length)
        lines[at] = 61
        lines[at + 1] = _NEWLINE
        at += 2
    return at


# Matches as columns, for Parquet and data frames.


def match_columns(
    matches: Matches, batch: SequenceBatch, reference: Reference, strands: tuple[int, ...]
) -> NumberedRows:
    """Return the columns of the matches of a batch of queries; `strands` were searched."""
    records = matches.queries.astype(np.int64) // len(strands)
    reverse = np.array(strands)[matches.queries % len(strands)] == REVERSE
    starts, lengths = matches.query_starts.astype(np.int64), matches.lengths.astype(np.int64)
    turned = np.diff(batch.offsets)[records] - starts - lengths
    starts = np.where(reverse, turned, starts)
    hits = starts, reverse.astype(np.int8), matches.reference_starts, lengths
    return NumberedRows.of(query_names(batch), records, hits, reference)


def write_columns(
    writer: TableWriter,
    blocks: Iterator[Matches],
    batch: SequenceBatch,
    reference: Reference,
    strands: tuple[int, ...],
) -> Iterator[Matches]:
    """Write `match_columns` of the matches of a batch, in order, and pass the matches on."""

    def columns_of(matches: Matches, first: int, last: int) -> NumberedRows:
        return match_columns(take_matches(matches, slice(first, last)), batch, reference, strands)

    for matches in blocks:
        writer.add(partial(columns_of, matches), matches.n, COLUMN_RANGE)
        yield matches


# Matches as TSV: one row per match, 0-based positions on the forward strands.


#: The header line.
COLUMNS = b"query\tquery_start\tstrand\tcontig\tposition\tlength\n"


def write_table(
    writer: TableWriter,
    blocks: Iterator[Matches],
    batch: SequenceBatch,
    reference: Reference,
    strands: tuple[int, ...],
) -> Iterator[Matches]:
    """Write the rows of the matches of a batch, in order, and pass the matches on."""
    room = 3 * MOST_DIGITS + len("\t\t+\t\t\t\n")
    named = names_for(batch, reference, Names.of(reference.names), strands)
    return _add_lines(writer, _write_rows, room, named, blocks)


@compiled
def _write_rows(matches, named, lines):
    at = 0
    for i in range(matches.queries.size):
        record, start, length, reverse, contig, position = row_of(matches, named, i)
        at = put_name(lines, at, named.queries, record)
        lines[at] = _TAB
        at = put_field(lines, at + 1, start, _TAB)
        lines[at] = 45 if reverse else 43
        lines[at + 1] = _TAB
        at = put_name(lines, at + 2, named.contigs, contig)
        lines[at] = _TAB
        at = put_field(lines, at + 1, position, _TAB)
        at = put_field(lines, at, length, _NEWLINE)
    return at
