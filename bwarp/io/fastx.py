"""FASTA and FASTQ, plain or gzipped, streamed into arrays of codes without an object a record.

A file is read in chunks; each chunk's complete records become one `SequenceBatch`:

    codes    A C G T A C|G G T|            |T T ...      all sequences, end to end
    offsets  0          6     9             9            record i = codes[offsets[i]:offsets[i+1]]

An incomplete record at a chunk's end is carried over to the next one; a record longer than a
chunk makes the chunk grow. Lines may end in LF or CRLF; a FASTA sequence may span lines, a FASTQ
record is four lines, as every sequencer writes it. Blank lines between records are skipped.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numba
import numpy as np

from bwarp.errors import InputError
from bwarp.io.file_blocks import CHUNK_BYTES, read_blocks, take_bytes
from bwarp.io.line_scan import (
    SLACK,
    copy_between,
    count_byte,
    encode_line,
    find_byte,
    letter_table,
    line_end,
)
from bwarp.sequence import CODE_OF_BYTE

__all__ = ["SequenceBatch", "lone_return_error", "read_sequences", "split_blocks"]

# What the FASTQ parser reports besides success.
_BAD_LETTER = 1
_NO_HEADER = 2
_NO_PLUS = 3
_UNEQUAL_LENGTHS = 4
_BAD_QUALITY = 5
_PLUS_NAME_DIFFERS = 6
_LONE_RETURN = 7

_BLANK_LINES = re.compile(rb"(?:\r?\n)*")


@dataclass(frozen=True)
class SequenceBatch:
    """Some consecutive records of a FASTA or FASTQ file.

    Attributes
    ----------
    codes : ndarray, shape=(total,), dtype=uint8
        The sequences, end to end, in the codes of the table they were read with.
    offsets : ndarray, shape=(count + 1,), dtype=int64
        Where each record's sequence begins and ends in `codes` (and in `qualities`).
    qualities : ndarray, shape=(total,), dtype=uint8, or None
        FASTQ quality characters as they stand in the file; None for FASTA.
    text : ndarray, dtype=uint8
        The bytes the headers are cut from.
    headers : ndarray, shape=(count, 2), dtype=int64
        Where each header line begins (after > or @) and ends in `text`.
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
        """The whole header line of a record, without its first character."""
        start, stop = self.headers[record]
        return self.text[start:stop].tobytes()

    def name(self, record: int) -> str:
        """The first word of a record's header; empty where the header is."""
        return _first_word(self.header(record))

    def names(self) -> list[str]:
        """The first word of every record's header."""
        return [self.name(record) for record in range(self.count)]


def _first_word(header: bytes) -> str:
    words = header.split(maxsplit=1)
    return words[0].decode("utf-8", "replace") if words else ""


def read_sequences(
    path: str | os.PathLike,
    code_of_byte: np.ndarray = CODE_OF_BYTE,
    chunk_bytes: int = CHUNK_BYTES,
) -> Iterator[SequenceBatch]:
    """Stream the records of a FASTA or FASTQ file.

    Parameters
    ----------
    path : path-like
        Plain, gzip, bzip2, xz or zstd; ``-`` is standard input. The content decides the format.
    code_of_byte : ndarray, shape=(256,), dtype=uint8
        The code of every letter; 255 for a byte that may not stand in a sequence.
    chunk_bytes : int
        About how many bytes of the file make a batch.

    Yields
    ------
    batch : SequenceBatch
        At least one record each. A file without records yields nothing.

    Raises
    ------
    InputError
        With the line number, for anything that is not a record.
    """
    yield from split_blocks(path, read_blocks(path, chunk_bytes), code_of_byte)


def split_blocks(
    path: str | os.PathLike, blocks: Iterator[bytes], code_of_byte: np.ndarray = CODE_OF_BYTE
) -> Iterator[SequenceBatch]:
    """`read_sequences` for bytes that someone else reads; errors name the file `path`."""
    table = letter_table(code_of_byte)
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
    parse = _parser_for(path, text, lines_before)
    first_record = 0
    while True:
        batch, consumed = parse(path, text, table, not block, lines_before, first_record)
        if batch.count:
            yield batch
        if not block:
            return
        first_record += batch.count
        lines_before += _count_lines(text, consumed)
        text = text[consumed:]
        # As much again as is carried over: a record of many chunks costs few tries.
        block = take_bytes(blocks, max(len(text), 1))
        text += block


def _parser_for(path, text: bytes, lines_before: int):
    if text.startswith((b"BAM\x01", b"CRAM", b"@HD\t", b"@SQ\t")):
        raise InputError(f"{path}: these are alignments: make FASTQ of them (samtools fastq)")
    if text.startswith(b"\r"):
        raise lone_return_error(f"{path}, line {lines_before + 1}: ")
    if text.startswith(b">"):
        return _parse_fasta
    if text.startswith(b"@"):
        return _parse_fastq
    raise InputError(
        f"{path}, line {lines_before + 1}: neither FASTA (>name) nor FASTQ (@name): "
        f"the line begins with {_shown(text[:20])}"
    )


def _shown(text: bytes) -> str:
    return repr(text.split(b"\n")[0].decode("latin-1"))


def _parse_fasta(path, text, table, at_end, lines_before, first_record):
    # The last record is complete only when the next one has begun, or at the end of the file.
    stop = len(text) if at_end else text.rfind(b"\n>") + 1
    data = np.frombuffer(text, np.uint8)[:stop]
    n_records = text.count(b"\n>", 0, stop) + 1 if stop else 0
    codes = np.empty(stop + SLACK, np.uint8)
    offsets = np.zeros(n_records + 1, np.int64)
    headers = np.zeros((n_records, 2), np.int64)
    used, bad = _split_fasta(data, table, codes, offsets, headers)
    if bad >= 0:
        raise _fasta_error(path, text, bad, lines_before)
    return SequenceBatch(codes[:used], offsets, None, data, headers, first_record), stop


def _parse_fastq(path, text, table, at_end, lines_before, first_record):
    if at_end:
        # Ends the last line where nothing does; otherwise it is a blank line more.
        text += b"\n"
    data = np.frombuffer(text, np.uint8)
    most_records = _count_lines(text, len(text)) // 4
    codes = np.empty(data.size + SLACK, np.uint8)
    qualities = np.empty(data.size + SLACK, np.uint8)
    offsets = np.zeros(most_records + 1, np.int64)
    headers = np.zeros((most_records, 2), np.int64)
    count, at, problem = _split_fastq(data, table, codes, qualities, offsets, headers)
    if problem:
        raise _fastq_error(path, text, problem, at, lines_before)
    if at_end and at < len(text):
        if re.search(rb"\r(?!\n)", text[at:]):
            raise lone_return_error(f"{path}, line {_line_of(text, at, lines_before)}: ")
        raise InputError(
            f"{path}, line {_line_of(text, at, lines_before)}: the last FASTQ record is cut off: "
            "a record is four lines (@name, bases, +, qualities)"
        )
    offsets, used = offsets[: count + 1], offsets[count]
    batch = SequenceBatch(
        codes[:used], offsets, qualities[:used], data, headers[:count], first_record
    )
    return batch, at


def _line_of(text: bytes, at: int, lines_before: int) -> int:
    return lines_before + _count_lines(text, at) + 1


def _count_lines(text: bytes, stop: int) -> int:
    return int(count_byte(np.frombuffer(text, np.uint8), 0, stop, 10))


def lone_return_error(start: str) -> InputError:
    """The error for a carriage return without a line feed; `start` says where."""
    return InputError(
        f"{start}a carriage return without a line feed: turn old Mac line ends into Unix ones "
        "(tr '\\r' '\\n')"
    )


def _letter_error(start: str, letter: bytes) -> InputError:
    if letter == b"\r":
        return lone_return_error(start)
    return InputError(
        f"{start}{letter.decode('latin-1')!r} is not a letter of this kind of sequence"
    )


def _fasta_error(path, text: bytes, at: int, lines_before: int) -> InputError:
    start = f"{path}, line {_line_of(text, at, lines_before)}: "
    letter = text[at : at + 1]
    if letter in b"@+" and text[at - 1 : at] == b"\n":
        return InputError(f"{start}a FASTQ record stands in a FASTA file")
    return _letter_error(start, letter)


def _fastq_error(path, text: bytes, problem: int, at: int, lines_before: int) -> InputError:
    start = f"{path}, line {_line_of(text, at, lines_before)}: "
    if problem == _BAD_LETTER:
        return _letter_error(start, text[at : at + 1])
    if problem == _NO_HEADER:
        return InputError(
            f"{start}a FASTQ record must begin with @, "
            f"but this line is {_shown(text[at : at + 40])}"
        )
    if problem == _NO_PLUS:
        return InputError(
            f"{start}the third line of a FASTQ record must begin with +, "
            f"but this line is {_shown(text[at : at + 40])}: write each record on four lines"
        )
    if problem == _UNEQUAL_LENGTHS:
        bases = text[:at].split(b"\n")[-3].removesuffix(b"\r")
        qualities = text[at : text.index(b"\n", at)].removesuffix(b"\r")
        return InputError(
            f"{start}the record has {len(bases):,} bases and {len(qualities):,} qualities"
        )
    if problem == _BAD_QUALITY and text[at : at + 1] != b"\r":
        return InputError(
            f"{start}{chr(text[at])!r} is not a quality character: they run from ! to ~"
        )
    if problem == _PLUS_NAME_DIFFERS:
        return InputError(f"{start}the name after + differs from the one after @")
    return lone_return_error(start)


@numba.njit(cache=True, nogil=True)
def _split_fasta(data, table, codes, offsets, headers):
    """Split complete FASTA records. Returns how many bases, and where a bad letter is (or -1)."""
    used = 0
    record = 0
    at = 0
    while at < data.size:
        feed, stop = line_end(data, at)
        if data[at] == 62:
            lone_return = find_byte(data, at, stop, 13)
            if lone_return < stop:
                return used, lone_return
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
                return used, reached
            at = reached + 1
        at = feed + 1
    offsets[record] = used
    return used, -1


@numba.njit(cache=True, nogil=True)
def _split_fastq(data, table, codes, qualities, offsets, headers):
    """Split the complete FASTQ records, of which there are at most as many as `headers`.

    Returns how many there are, where the rest begins, and 0; or an offset and its problem. A record
    is looked at only when all of it is there, so problems do not depend on where chunks end.
    """
    record = 0
    used = 0
    begin = 0
    while True:
        while begin < data.size and (data[begin] == 10 or data[begin] == 13):
            begin += 1
        feed, name_stop = line_end(data, begin)
        bases = feed + 1
        feed, bases_stop = line_end(data, bases)
        plus = feed + 1
        feed, plus_stop = line_end(data, plus)
        quality = feed + 1
        feed, quality_stop = line_end(data, quality)
        if feed >= data.size:
            return record, begin, 0
        if data[begin] != 64:
            return record, begin, _NO_HEADER
        if find_byte(data, begin, name_stop, 13) < name_stop:
            return record, begin, _LONE_RETURN
        bad = encode_line(data, bases, bases_stop, table, codes, used)
        if bad < bases_stop:
            return record, bad, _BAD_LETTER
        if data[plus] != 43:
            return record, plus, _NO_PLUS
        if plus_stop > plus + 1 and not np.array_equal(
            data[begin + 1 : name_stop], data[plus + 1 : plus_stop]
        ):
            return record, plus, _PLUS_NAME_DIFFERS
        bad = copy_between(data, quality, quality_stop, 33, 126, qualities, used)
        if bad < quality_stop:
            return record, bad, _BAD_QUALITY
        if quality_stop - quality != bases_stop - bases:
            return record, quality, _UNEQUAL_LENGTHS
        headers[record, 0] = begin + 1
        headers[record, 1] = name_stop
        record += 1
        used += bases_stop - bases
        offsets[record] = used
        begin = feed + 1
