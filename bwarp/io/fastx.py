"""FASTA and FASTQ, plain or gzipped, streamed into arrays of codes without an object per record.

A file is read in consecutive blocks. The complete records of a block form a `RecordText`, which any
thread can convert to a `SequenceBatch`:

    codes    A C G T A C|G G T|            |T T ...      all sequences, end to end
    offsets  0          6     9             9            record i = codes[offsets[i]:offsets[i+1]]

Lines may end in LF or CRLF; a FASTA sequence may span lines, a FASTQ record is four lines, as every
sequencer writes it.
"""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from bwarp.counted import counted
from bwarp.errors import InputError
from bwarp.io.compressed_files import CHUNK_BYTES, read_blocks, take_blocks
from bwarp.io.line_scan import (
    SLACK,
    copy_between,
    count_byte,
    encode_line,
    find_byte,
    letter_table,
    line_end,
)
from bwarp.runtime.chunks import in_order, read_ahead
from bwarp.runtime.compiled_code import compiled, read_only
from bwarp.runtime.simd import load, store
from bwarp.runtime.timeline import on_timeline
from bwarp.sequence import CODE_OF_BYTE

Result = TypeVar("Result")

# --------------------------------------------------------------------------------------------------
# FASTA and FASTQ as text, cut into whole records.
#
# text     @r1
#          ACGTAC
#          +
#          FFFFFF
#          @r2
#          GGT
#          +
#          FFF
#          @r3 ...     cut by its line feeds alone
# starts   0                          24                  41
# feeds         4       11 13     20      29  33 35  39        for FASTQ only: four per record
#
# An incomplete record at the end of a block is carried over to the next; a record longer than a
# block makes the block grow. Blank lines between records are skipped.


_BLANK_LINES = re.compile(rb"(?:\r?\n)*")

#: First bytes read of the next block, to end a record that begins before it.
_FEW_BYTES = 1 << 12

_NOTHING, _LINE_FEED = np.empty(0, np.uint8), np.full(1, 10, np.uint8)

# Minimum bytes per record: ">" and "@a", each with its line feeds.
_LEAST_FASTA_BYTES, _LEAST_FASTQ_BYTES = 2, 5


@dataclass(frozen=True)
class RecordText:
    """Consecutive complete records of a FASTA or FASTQ file, as text.

    Attributes
    ----------
    text : ndarray, dtype=uint8
        The bytes that contain the records.
    starts : ndarray, shape=(count + 1,), dtype=int64
        Start of each record in `text`, and the end of the last.
    feeds : ndarray, shape=(count, 4), dtype=int64, or None
        The line feeds of each FASTQ record; None for FASTA.
    lines_before : int
        Lines of the file before `text`.
    first_record : int
        Number of the first record in its file, from 0.
    """

    text: np.ndarray
    starts: np.ndarray
    feeds: np.ndarray | None
    lines_before: int
    first_record: int

    @property
    def count(self) -> int:
        return len(self.starts) - 1

    @property
    def is_fasta(self) -> bool:
        return self.feeds is None

    def part(self, first: int, stop: int) -> "RecordText":
        """Return the records in ``[first, stop)``."""
        feeds = None if self.is_fasta else self.feeds[first:stop]
        return RecordText(
            self.text, self.starts[first : stop + 1], feeds, self.lines_before,
            self.first_record + first,
        )  # fmt: skip


def cut_records(path: str | os.PathLike, blocks: Iterator[bytes]) -> Iterator[RecordText]:
    """Yield the records of a file, given as blocks, one block at a time.

    This checks only line feeds and first characters of records; `parse_records` checks the rest.
    Errors name the file `path`.
    """
    text, lines_before = b"", 0
    # A carriage return may have its line feed in the next block.
    while text in (b"", b"\r"):
        block = next(blocks, b"")
        if not block:
            return
        text += block
        blank = _BLANK_LINES.match(text).end()
        lines_before += text.count(b"\n", 0, blank)
        text = text[blank:]
    is_fasta = _is_fasta(path, text, lines_before)
    first_record = 0
    data = np.frombuffer(text, np.uint8)
    marks = _Marks(is_fasta)
    # The next block, and how many of its first bytes are in `data` already.
    block, n_taken = _NOTHING, 0
    at_end = False
    while True:
        starts, feeds, lines = marks.of_records(data, at_end)
        count = len(starts) - 1
        if count:
            yield RecordText(data, starts, feeds, lines_before, first_record)
        rest = data[starts[-1] :]
        lines_before += lines
        first_record += count
        if at_end:
            if rest.size:
                raise _unfinished_error(path, rest.tobytes(), lines_before)
            return
        if block.size:
            # The rest begins in this block, unless one record began before it and is not complete.
            whole = block[n_taken - rest.size :] if count else _joined(rest, block[n_taken:])
            data, block = whole, _NOTHING
            continue
        # Double the text, so that a record of many blocks takes few attempts.
        taken = take_blocks(blocks, max(rest.size, 1))
        more = [read_only(np.frombuffer(one, np.uint8)) for one in taken]
        at_end = not more
        if at_end:
            # End the last line if nothing does; otherwise this adds a blank line.
            data = _joined(rest, _LINE_FEED)
        elif len(more) > 1:
            data = _joined(rest, *more)
        else:
            # Copying whole blocks is slower than cutting them.
            [block] = more
            n_taken = min(block.size, max(_FEW_BYTES, 4 * rest.size))
            data = _joined(rest, block[:n_taken])


def _joined(*parts: np.ndarray) -> np.ndarray:
    return read_only(np.concatenate(parts))


class _Marks:
    """Finds the starts of records and the ends of their lines in successive texts."""

    def __init__(self, is_fasta: bool):
        self._is_fasta = is_fasta
        # Reused for each text, because allocating memory takes longer than writing to it.
        self._starts, self._feeds = np.empty(0, np.int64), np.empty((0, 4), np.int64)

    def of_records(
        self, data: np.ndarray, at_end: bool
    ) -> tuple[np.ndarray, np.ndarray | None, int]:
        """Return `starts` and `feeds` as in `RecordText`, and the number of lines."""
        least = _LEAST_FASTA_BYTES if self._is_fasta else _LEAST_FASTQ_BYTES
        room = data.size // least + 2
        # Most of the arrays is never touched, so it takes no memory.
        if self._starts.size < room:
            self._starts = np.empty(room, np.int64)
            self._feeds = np.empty((0 if self._is_fasta else room, 4), np.int64)
        if self._is_fasta:
            count, lines = _cut_fasta(data, at_end, self._starts)
            return self._starts[: count + 1].copy(), None, lines
        count, lines = _cut_fastq(data, self._starts, self._feeds)
        return self._starts[: count + 1].copy(), self._feeds[:count].copy(), lines


def _is_fasta(path, text: bytes, lines_before: int) -> bool:
    if text.startswith((b"BAM\x01", b"CRAM", b"@HD\t", b"@SQ\t")):
        raise InputError(
            f"{path}: the file contains alignments: convert it to FASTQ (samtools fastq)"
        )
    if text.startswith(b"\r"):
        raise lone_return_error(f"{path}, line {lines_before + 1}: ")
    if text.startswith(b">"):
        return True
    if text.startswith(b"@"):
        return False
    raise InputError(
        f"{path}, line {lines_before + 1}: neither FASTA (>name) nor FASTQ (@name): "
        f"the line begins with {shown(text[:20])}"
    )


def shown(text: bytes) -> str:
    """Return the first line of a text, for a message."""
    return repr(text.split(b"\n")[0].decode("latin-1"))


def _unfinished_error(path, rest: bytes, lines_before: int) -> InputError:
    """Return the error for a FASTQ file that ends inside a record."""
    start = f"{path}, line {lines_before + 1}: "
    if re.search(rb"\r(?!\n)", rest):
        return lone_return_error(start)
    return InputError(
        f"{start}the last FASTQ record is truncated: a record has four lines (@name, bases, +, "
        "qualities)"
    )


def not_fasta_error(start: str) -> InputError:
    """Return the error for a reference in FASTQ; `start` is the location."""
    return InputError(f"{start}this looks like FASTQ, but the reference must be FASTA (>name)")


def lone_return_error(start: str) -> InputError:
    """Return the error for a carriage return without a line feed; `start` is the location."""
    return InputError(
        f"{start}a carriage return without a line feed: convert old Mac line endings to Unix ones "
        "(tr '\\r' '\\n')"
    )


@compiled
def _cut_fasta(data, at_end, starts):
    """Find the starts of complete FASTA records and of the rest; return their count and lines.

    A record is complete when the next one has begun, or at the end of the file. `data` begins with
    a record.
    """
    count = 0
    at = find_byte(data, 0, data.size, 62)
    while at < data.size:
        if at == 0 or data[at - 1] == 10:
            starts[count] = at
            count += 1
        at = find_byte(data, at + 1, data.size, 62)
    if at_end:
        starts[count] = data.size
    else:
        count -= 1
    return count, count_byte(data, 0, starts[count], 10)


@compiled
def _cut_fastq(data, starts, feeds):
    """Find the starts and line feeds of complete FASTQ records (four lines), and the rest's start.

    Returns the number of records and of lines.
    """
    count = 0
    lines = 0
    begin = 0
    while True:
        while begin < data.size and (data[begin] == 10 or data[begin] == 13):
            lines += data[begin] == 10
            begin += 1
        starts[count] = begin
        for line in range(4):
            feeds[count, line] = find_byte(data, begin, data.size, 10)
            begin = feeds[count, line] + 1
        if begin > data.size:
            return count, lines
        count += 1
        lines += 4


# Error codes of the FASTQ parser.
_BAD_LETTER = 1
_NO_HEADER = 2
_NO_PLUS = 3
_UNEQUAL_LENGTHS = 4
_BAD_QUALITY = 5
_PLUS_NAME_DIFFERS = 6
_LONE_RETURN = 7


@dataclass(frozen=True)
class SequenceBatch:
    """Some consecutive records of a FASTA or FASTQ file.

    Attributes
    ----------
    codes : ndarray, shape=(total,), dtype=uint8
        The sequences, end to end, in the codes of the table they were read with.
    offsets : ndarray, shape=(count + 1,), dtype=int64
        Start and end of the sequence of each record in `codes` (and in `qualities`).
    qualities : ndarray, shape=(total,), dtype=uint8, or None
        FASTQ quality characters as in the file; None for FASTA.
    text : ndarray, dtype=uint8
        The bytes that contain the headers.
    headers : ndarray, shape=(count, 2), dtype=int64
        Start (after > or @) and end of each header line in `text`.
    first_record : int
        Number of the batch's first record in its file, from 0.
    """

    codes: np.ndarray
    offsets: np.ndarray
    qualities: np.ndarray | None
    text: np.ndarray
    headers: np.ndarray
    first_record: int

    @property
    def count(self) -> int:
        return len(self.offsets) - 1

    def header(self, record: int) -> bytes:
        """Return the header line of a record without its first character."""
        start, stop = self.headers[record]
        return self.text[start:stop].tobytes()

    def name(self, record: int) -> str:
        """Return the first word of a record's header; empty if the header is empty."""
        return _first_word(self.header(record))

    def names(self) -> list[str]:
        """Return the first word of the header of each record."""
        return [self.name(record) for record in range(self.count)]


def _first_word(header: bytes) -> str:
    words = header.split(maxsplit=1)
    return words[0].decode("utf-8", "replace") if words else ""


def read_sequences(
    path: str | os.PathLike,
    code_of_byte: np.ndarray = CODE_OF_BYTE,
    chunk_bytes: int = CHUNK_BYTES,
    threads: int = 1,
) -> Iterator[SequenceBatch]:
    """Stream the records of a FASTA or FASTQ file.

    Parameters
    ----------
    path : path-like
        Plain, gzip, bzip2, xz or zstd; ``-`` is standard input. The content decides the format.
    code_of_byte : ndarray, shape=(256,), dtype=uint8
        The code of each letter; 255 for a byte that is not allowed in a sequence.
    chunk_bytes : int
        Approximate number of bytes of the file per batch.
    threads : int
        Threads that parse; with more than one, two others read the file and cut it.

    Yields
    ------
    batch : SequenceBatch
        At least one record per batch. A file without records yields nothing.

    Raises
    ------
    InputError
        With the line number, for anything that is not a record.
    """
    parse = partial(parse_records, path, code_of_byte=code_of_byte)
    return of_records(parse, path, chunk_bytes, threads)


def of_records(
    function: Callable[[RecordText], Result],
    path: str | os.PathLike,
    chunk_bytes: int = CHUNK_BYTES,
    threads: int = 1,
) -> Iterator[Result]:
    """Yield ``function(records)`` for the records of a file, about `chunk_bytes` at a time.

    The function runs in several threads; results are in the order of the file. If there are several
    errors, the first in the file is raised.
    """
    ahead = read_ahead if threads > 1 else iter
    texts = cut_records(path, ahead(read_blocks(path, chunk_bytes, threads)))
    return in_order(function, ahead(texts), threads)


@on_timeline("parse sequences")
def parse_records(
    path: str | os.PathLike, records: RecordText, code_of_byte: np.ndarray = CODE_OF_BYTE
) -> SequenceBatch:
    """Return the sequences of records; errors name the file `path`, as in `read_sequences`."""
    if records.is_fasta:
        return _parse_fasta(path, records, code_of_byte)
    lengths, headers = fastq_lines(records)
    offsets = np.zeros(records.count + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    codes, qualities = np.empty((2, offsets[-1] + SLACK), np.uint8)
    put_fastq(path, records, offsets, 1, codes, qualities, code_of_byte)
    return SequenceBatch(
        codes[: offsets[-1]], offsets, qualities[: offsets[-1]], records.text, headers,
        records.first_record,
    )  # fmt: skip


def fastq_lines(records: RecordText) -> tuple[np.ndarray, np.ndarray]:
    """Return the length of each FASTQ record, dtype int64, and its header as in `SequenceBatch`.

    This only looks at line feeds: `put_fastq` checks the records.
    """
    lengths, headers = np.empty(records.count, np.int64), np.empty((records.count, 2), np.int64)
    _measure_fastq(records.text, records.starts, records.feeds, lengths, headers)
    return lengths, headers


def put_fastq(
    path: str | os.PathLike,
    records: RecordText,
    offsets: np.ndarray,
    step: int,
    codes: np.ndarray,
    qualities: np.ndarray,
    code_of_byte: np.ndarray = CODE_OF_BYTE,
) -> None:
    """Write the bases of FASTQ records to `codes`, and their qualities to `qualities`.

    Those of record i begin at ``offsets[step * i]``. Both arrays must have room for `SLACK` more
    bytes than are written; the bytes after a record do not change.

    Raises
    ------
    InputError
        As in `read_sequences`.
    """
    at, problem = _split_fastq(
        records.text, records.starts, records.feeds, letter_table(code_of_byte), offsets, step,
        codes, qualities,
    )  # fmt: skip
    if problem:
        raise _fastq_error(path, records.text.tobytes(), problem, at, records.lines_before)


def _parse_fasta(path, records: RecordText, code_of_byte: np.ndarray) -> SequenceBatch:
    data = records.text[records.starts[0] : records.starts[-1]]
    codes = np.empty(data.size + SLACK, np.uint8)
    offsets = np.zeros(records.count + 1, np.int64)
    headers = np.empty((records.count, 2), np.int64)
    at = _split_fasta(data, letter_table(code_of_byte), codes, offsets, headers)
    if at >= 0:
        raise _fasta_error(path, data.tobytes(), at, _lines_before(records))
    return SequenceBatch(codes[: offsets[-1]], offsets, None, data, headers, records.first_record)


def _lines_before(records: RecordText) -> int:
    """Return the number of lines of the file before the records."""
    return records.lines_before + int(count_byte(records.text, 0, records.starts[0], 10))


def _line_of(text: bytes, at: int, lines_before: int) -> int:
    return lines_before + text.count(b"\n", 0, at) + 1


def _letter_error(start: str, letter: bytes) -> InputError:
    if letter == b"\r":
        return lone_return_error(start)
    return InputError(f"{start}{letter.decode('latin-1')!r} is not a valid sequence letter")


def _fasta_error(path, text: bytes, at: int, lines_before: int) -> InputError:
    start = f"{path}, line {_line_of(text, at, lines_before)}: "
    letter = text[at : at + 1]
    if letter in b"@+" and text[at - 1 : at] == b"\n":
        return InputError(f"{start}FASTQ record in a FASTA file")
    return _letter_error(start, letter)


def _fastq_error(path, text: bytes, problem: int, at: int, lines_before: int) -> InputError:
    start = f"{path}, line {_line_of(text, at, lines_before)}: "
    if problem == _BAD_LETTER:
        return _letter_error(start, text[at : at + 1])
    if problem == _NO_HEADER:
        return InputError(
            f"{start}a FASTQ record must begin with @, but this line is {shown(text[at : at + 40])}"
        )
    if problem == _NO_PLUS:
        return InputError(
            f"{start}the third line of a FASTQ record must begin with +, "
            f"but this line is {shown(text[at : at + 40])}: write each record on four lines"
        )
    if problem == _UNEQUAL_LENGTHS:
        bases = text[:at].split(b"\n")[-3].removesuffix(b"\r")
        qualities = text[at : text.index(b"\n", at)].removesuffix(b"\r")
        return InputError(
            f"{start}the record has {counted(len(bases), 'base')} and "
            f"{counted(len(qualities), 'quality')}"
        )
    if problem == _BAD_QUALITY and text[at : at + 1] != b"\r":
        return InputError(f"{start}{chr(text[at])!r} is not a quality character (! to ~)")
    if problem == _PLUS_NAME_DIFFERS:
        return InputError(f"{start}the name after + differs from the one after @")
    return lone_return_error(start)


@compiled
def _split_fasta(data, table, codes, offsets, headers):
    """Split complete FASTA records; return the position of an invalid letter, or -1."""
    used = 0
    record = 0
    at = 0
    while at < data.size:
        feed, stop = line_end(data, at)
        if data[at] == 62:
            lone_return = find_byte(data, at, stop, 13)
            if lone_return < stop:
                return lone_return
            headers[record, 0] = at + 1
            headers[record, 1] = stop
            offsets[record] = used
            record += 1
            at = stop
        while at < stop:
            reached = encode_line(data, at, stop, table, codes, used)
            used += reached - at
            # Blanks at a line's end are common and harmless.
            if reached < stop and data[reached] != 32 and data[reached] != 9:
                return reached
            at = reached + 1
        at = feed + 1
    offsets[record] = used
    return -1


@compiled(forceinline=True)
def _line_stop(data, start, feed):
    """Return the end of the text of a line: before its line feed, and before a CR."""
    return feed - 1 if feed > start and data[feed - 1] == 13 else feed


@compiled
def _measure_fastq(data, starts, feeds, lengths, headers):
    for record in range(lengths.size):
        begin, bases = starts[record], feeds[record, 0] + 1
        lengths[record] = _line_stop(data, bases, feeds[record, 1]) - bases
        headers[record, 0] = begin + 1
        headers[record, 1] = _line_stop(data, begin, feeds[record, 0])


@compiled
def _split_fastq(data, starts, feeds, table, offsets, step, codes, qualities):
    """Split FASTQ records, whose lines are known. Returns an offset and its problem, or 0."""
    for record in range(len(feeds)):
        begin, to = starts[record], offsets[step * record]
        bases, plus, quality = feeds[record, 0] + 1, feeds[record, 1] + 1, feeds[record, 2] + 1
        name_stop = _line_stop(data, begin, feeds[record, 0])
        bases_stop = _line_stop(data, bases, feeds[record, 1])
        plus_stop = _line_stop(data, plus, feeds[record, 2])
        quality_stop = _line_stop(data, quality, feeds[record, 3])
        if data[begin] != 64:
            return begin, _NO_HEADER
        if find_byte(data, begin, name_stop, 13) < name_stop:
            return begin, _LONE_RETURN
        # Vectors overwrite the bytes after the record, which are restored.
        end = to + bases_stop - bases
        behind = load(codes, end)
        bad = encode_line(data, bases, bases_stop, table, codes, to)
        store(codes, end, behind)
        if bad < bases_stop:
            return bad, _BAD_LETTER
        if data[plus] != 43:
            return plus, _NO_PLUS
        if plus_stop > plus + 1:
            differs = plus_stop - plus != name_stop - begin
            for i in range(1, 1 if differs else plus_stop - plus):
                differs = differs or data[begin + i] != data[plus + i]
            if differs:
                return plus, _PLUS_NAME_DIFFERS
        # There is room for as many qualities as bases.
        room = min(quality_stop, quality + bases_stop - bases)
        behind = load(qualities, end)
        bad = copy_between(data, quality, room, 33, 126, qualities, to)
        store(qualities, end, behind)
        while room <= bad < quality_stop and 33 <= data[bad] <= 126:
            bad += 1
        if bad < quality_stop:
            return bad, _BAD_QUALITY
        if quality_stop - quality != bases_stop - bases:
            return quality, _UNEQUAL_LENGTHS
    return 0, 0
