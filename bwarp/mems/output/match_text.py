"""Matches as lines of text: what MUMmer 3 prints, byte for byte, or PAF.

MUMmer    > query Reverse  Len = 5000              a header for every query strand
          1234567       345       678            reference, query, length; 1-based
            chr1   1234567       345       678
PAF       query length start end strand contig length start end matches bases 255 cg:Z:678=
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numba
import numpy as np

from bwarp.io.fastx import SequenceBatch
from bwarp.io.put_text import MOST_DIGITS, put_field, put_number
from bwarp.mems.matches import Matches
from bwarp.mems.output.labels import Labels, labels_of, put_label, query_names
from bwarp.mems.output.match_rows import RANGE, match_rows
from bwarp.mems.packed_extension import segment_of
from bwarp.mems.query_text import REVERSE
from bwarp.reference import Reference
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
    names = query_names(batch)
    contigs = _mummer_contigs(reference, layout)
    strands = np.array(layout.strands)
    query_lengths = np.diff(batch.offsets)
    line_room = contigs.longest + 3 * (MOST_DIGITS + 2) + 1
    header_room = names.longest + len(b">  Reverse  Len = \n") + MOST_DIGITS

    def write(matches: Matches, first: int, header: int, last: int, last_header: int):
        room = (last - first) * line_room + max(last_header - header, 0) * header_room
        lines = np.empty(room, np.uint8)
        used = _write_mummer(
            matches.queries[first:last],
            matches.query_starts[first:last],
            matches.reference_starts[first:last],
            matches.lengths[first:last],
            names.text,
            names.edges,
            query_lengths,
            strands,
            contigs.text,
            contigs.edges,
            reference.contig_starts,
            layout.forward_positions,
            layout.lengths,
            header,
            last_header,
            lines,
        )
        return lines[:used]

    next_header = 0
    for matches in blocks:
        if not len(matches):
            continue
        # A range writes the headers after the previous range's last query, up to its own last.
        headers = np.append(next_header, matches.queries.astype(np.int64) + 1)
        headers = np.maximum(headers, next_header)

        def write_range(first: int, last: int, matches=matches, headers=headers):
            return write(matches, first, int(headers[first]), last, int(headers[last]))

        yield from for_each_range(write_range, len(matches), threads, smallest=RANGE)
        next_header = int(headers[-1])
    nothing = Matches(*(np.empty(0, np.uint32) for _ in range(4)))
    n_queries = batch.count * len(layout.strands)

    def write_headers(first: int, last: int):
        return write(nothing, 0, next_header + first, 0, next_header + last)

    yield from for_each_range(write_headers, n_queries - next_header, threads, smallest=RANGE)


def _mummer_contigs(reference: Reference, layout: MummerLayout) -> Labels:
    """What each line begins with: nothing, or the name of its contig."""
    if len(reference.names) == 1 and not layout.four_column:
        return labels_of([b""])
    names = [name.encode() for name in reference.names]
    width = max(map(len, names)) + 1
    return labels_of([b"  " + name.ljust(width) + b" " for name in names])


@numba.njit(cache=True, nogil=True)
def _write_mummer(
    queries,
    query_starts,
    reference_starts,
    lengths,
    names,
    name_edges,
    query_lengths,
    strands,
    contigs,
    contig_edges,
    contig_starts,
    forward_positions,
    show_lengths,
    header,
    last_header,
    lines,
):
    """Write headers from number `header` on, each before its matches; return the bytes used."""
    at = 0
    contig = 0
    contig_start, contig_stop = contig_starts[0], contig_starts[1]
    for i in range(queries.size + 1):
        stop = last_header if i == queries.size else np.int64(queries[i]) + 1
        while header < stop:
            record = header // strands.size
            lines[at] = 62
            lines[at + 1] = _BLANK
            at = put_label(lines, at + 2, names, name_edges, record)
            if strands[header % strands.size] == REVERSE:
                for byte in b" Reverse":
                    lines[at] = byte
                    at += 1
            if show_lengths:
                for byte in b"  Len = ":
                    lines[at] = byte
                    at += 1
                at = put_number(lines, at, query_lengths[record])
            lines[at] = _NEWLINE
            at += 1
            header += 1
        if i == queries.size:
            break
        position = np.int64(reference_starts[i])
        if position < contig_start or position >= contig_stop:
            contig = np.int64(segment_of(contig_starts, np.uint64(position)))
            contig_start, contig_stop = contig_starts[contig], contig_starts[contig + 1]
        start = np.int64(query_starts[i])
        if forward_positions and strands[np.int64(queries[i]) % strands.size] == REVERSE:
            start = query_lengths[np.int64(queries[i]) // strands.size] - 1 - start
        at = put_label(lines, at, contigs, contig_edges, min(contig, len(contig_edges) - 1))
        at = put_number(lines, at, position - contig_start + 1, _WIDTH)
        lines[at] = lines[at + 1] = _BLANK
        at = put_number(lines, at + 2, start + 1, _WIDTH)
        lines[at] = lines[at + 1] = _BLANK
        at = put_field(lines, at + 2, lengths[i], _NEWLINE, _WIDTH)
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
    contigs = labels_of(
        [
            f"{name}\t{length}\t".encode()
            for name, length in zip(reference.names, contig_lengths, strict=True)
        ]
    )
    room = 8 * (MOST_DIGITS + 1) + len("+\t255\tcg:Z:=\n")
    return match_rows(_write_paf, room, blocks, batch, reference, contigs, strands, threads)


@numba.njit(cache=True, nogil=True)
def _write_paf(
    queries,
    query_starts,
    reference_starts,
    lengths,
    names,
    name_edges,
    query_lengths,
    strands,
    contigs,
    contig_edges,
    contig_starts,
    lines,
):
    at = 0
    for i in range(queries.size):
        record = np.int64(queries[i]) // strands.size
        reverse = strands[np.int64(queries[i]) % strands.size] == REVERSE
        length = np.int64(lengths[i])
        start = np.int64(query_starts[i])
        if reverse:
            start = query_lengths[record] - start - length
        contig = np.int64(segment_of(contig_starts, np.uint64(reference_starts[i])))
        position = np.int64(reference_starts[i]) - contig_starts[contig]
        at = put_label(lines, at, names, name_edges, record)
        lines[at] = _TAB
        at = put_field(lines, at + 1, query_lengths[record], _TAB)
        at = put_field(lines, at, start, _TAB)
        at = put_field(lines, at, start + length, _TAB)
        lines[at] = 45 if reverse else 43
        lines[at + 1] = _TAB
        at = put_label(lines, at + 2, contigs, contig_edges, contig)
        at = put_field(lines, at, position, _TAB)
        at = put_field(lines, at, position + length, _TAB)
        at = put_field(lines, at, length, _TAB)
        at = put_field(lines, at, length, _TAB)
        for byte in b"255\tcg:Z:":
            lines[at] = byte
            at += 1
        at = put_number(lines, at, length)
        lines[at] = 61
        lines[at + 1] = _NEWLINE
        at += 2
    return at
