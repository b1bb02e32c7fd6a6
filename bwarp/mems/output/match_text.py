"""Matches as lines of text: the lines that MUMmer 3 prints, or PAF.

MUMmer    > query Reverse  Len = 5000              a header for every query strand
          1234567       345       678            reference, query, length; 1-based
            chr1   1234567       345       678
PAF       query length start end strand contig length start end matches bases 255 cg:Z:678=
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bwarp.io.fastx import SequenceBatch
from bwarp.io.names import Names, put_name
from bwarp.io.put_text import MOST_DIGITS, put_field, put_number
from bwarp.mems.matches import Matches, no_matches, take_matches
from bwarp.mems.output.match_rows import RANGE, match_rows, names_for, row_of
from bwarp.mems.packed_extension import segment_of
from bwarp.mems.query_text import REVERSE
from bwarp.reference import Reference
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.threads import for_each_range

__all__ = ["MummerLayout", "mummer_lines", "paf_lines"]

_BLANK, _NEWLINE, _TAB = 32, 10, 9
_WIDTH = 8  # MUMmer's columns


@dataclass(frozen=True)
class MummerLayout:
    """What MUMmer's options choose of its output.

    Attributes
    ----------
    strands : tuple of int
        Those that were searched (-b, -r).
    forward_positions : bool
        Positions on the reverse strand count from the forward strand's first base (-c).
    four_column : bool
        Name the contig in every line (-F; MUMmer does so by itself for several contigs).
    lengths : bool
        Queries' lengths stand in the headers (-L).
    """

    strands: tuple[int, ...]
    forward_positions: bool = False
    four_column: bool = False
    lengths: bool = False


def mummer_lines(
    blocks: Iterator[Matches],
    batch: SequenceBatch,
    reference: Reference,
    layout: MummerLayout,
    threads: int = 1,
) -> Iterator[np.ndarray]:
    """The lines of a batch's matches, in order, and the headers of all its query strands.

    Yields
    ------
    lines : ndarray, dtype=uint8
        To be written one after the other.
    """
    named = names_for(batch, reference, _mummer_contigs(reference, layout), layout.strands)
    line_room = named.contigs.longest + 3 * (MOST_DIGITS + 2) + 1
    header_room = named.queries.longest + len(b">  Reverse  Len = \n") + MOST_DIGITS

    def write(matches: Matches, header: int, last_header: int):
        room = matches.n * line_room + max(last_header - header, 0) * header_room
        lines = np.empty(room, np.uint8)
        used = _write_mummer(
            matches, named, layout.forward_positions, layout.lengths, header, last_header, lines
        )
        return lines[:used]

    next_header = 0
    for matches in blocks:
        if not matches.n:
            continue
        # A range writes the headers after the previous range's last query, up to its own last.
        headers = np.append(next_header, matches.queries.astype(np.int64) + 1)
        headers = np.maximum(headers, next_header)

        def write_range(first: int, last: int, matches=matches, headers=headers):
            part = take_matches(matches, slice(first, last))
            return write(part, int(headers[first]), int(headers[last]))

        yield from for_each_range(write_range, matches.n, threads, smallest=RANGE)
        next_header = int(headers[-1])
    n_queries = batch.count * len(layout.strands)

    def write_headers(first: int, last: int):
        return write(no_matches(), next_header + first, next_header + last)

    yield from for_each_range(write_headers, n_queries - next_header, threads, smallest=RANGE)


def _mummer_contigs(reference: Reference, layout: MummerLayout) -> Names:
    """What each line begins with: nothing, or the name of its contig."""
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


def paf_lines(
    blocks: Iterator[Matches],
    batch: SequenceBatch,
    reference: Reference,
    strands: tuple[int, ...],
    threads: int = 1,
) -> Iterator[np.ndarray]:
    """The matches as PAF, positions 0-based and on the forward strands, as PAF has it.

    Yields
    ------
    lines : ndarray, dtype=uint8
    """
    contig_lengths = np.diff(reference.contig_starts)
    contigs = Names.of(
        [
            f"{name}\t{length}\t"
            for name, length in zip(reference.names, contig_lengths, strict=True)
        ]
    )
    room = 8 * (MOST_DIGITS + 1) + len("+\t255\tcg:Z:=\n")
    return match_rows(
        _write_paf, room, blocks, names_for(batch, reference, contigs, strands), threads
    )


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
