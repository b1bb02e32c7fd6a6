"""FASTA and FASTQ, plain or gzipped, streamed into arrays of codes without an object a record.

A file is read in chunks; each chunk's complete records become one `SequenceBatch`:

    codes    A C G T A C|G G T|            |T T ...      all sequences, end to end
    offsets  0          6     9             9            record i = codes[offsets[i]:offsets[i+1]]

An incomplete record at a chunk's end is carried over to the next one; a record longer than a
chunk makes the chunk grow. Lines may end in LF or CRLF; a FASTA sequence may span lines, a FASTQ
record is four lines, as every sequencer writes it.
"""

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

import numba
import numpy as np
from xopen import xopen

from bwarp.errors import InputError
from bwarp.sequence import CODE_OF_BYTE

__all__ = ["SequenceBatch", "open_text", "read_blocks", "read_sequences"]

CHUNK_BYTES = 8 << 20

# What the record parser reports besides success.
_BAD_LETTER = 1
_NO_HEADER = 2
_NO_PLUS = 3
_UNEQUAL_LENGTHS = 4
_BAD_QUALITY = 5
_PLUS_NAME_DIFFERS = 6


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


@contextmanager
def open_text(path: str | os.PathLike) -> Iterator[IO[bytes]]:
    """Open a plain or compressed file for reading bytes; ``-`` is standard input.

    Damage that shows while reading is reported as an `InputError` that names the file.
    """
    try:
        with xopen(path, "rb", threads=0) as file:
            yield file
    except EOFError as error:
        raise InputError(
            f"{path}: the compressed file ends too early: it was cut off; fetch or write it again"
        ) from error
    except (gzip.BadGzipFile, zlib.error) as error:
        raise InputError(f"{path}: the compressed file is damaged ({error})") from error
    except OSError as error:
        # isal and zlib-ng raise a bare OSError, without errno, for damaged data.
        if error.errno is None:
            raise InputError(f"{path}: the compressed file is damaged ({error})") from error
        raise


def read_blocks(path: str | os.PathLike, block_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
    """The bytes of a plain or compressed file, in blocks; damage becomes an `InputError`."""
    with open_text(path) as file:
        while block := file.read(block_bytes):
            yield block


def read_sequences(
    path: str | os.PathLike,
    code_of_byte: np.ndarray = CODE_OF_BYTE,
    chunk_bytes: int = CHUNK_BYTES,
) -> Iterator[SequenceBatch]:
    """Stream the records of a FASTA or FASTQ file.

    Parameters
    ----------
    path : path-like
        Plain, gzip, bzip2, xz or zstd; ``-`` is standard input. The format is told by content.
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
    blocks = read_blocks(path, chunk_bytes)
    block = next(blocks, b"")
    text = block.lstrip(b"\r\n")
    if not text:
        return
    lines_before = block.count(b"\n") - text.count(b"\n")
    parse = _parser_for(path, text, lines_before)
    first_record = 0
    while True:
        batch, consumed = parse(path, text, code_of_byte, not block, lines_before, first_record)
        if batch.count:
            yield batch
        if not block:
            return
        first_record += batch.count
        lines_before += text.count(b"\n", 0, consumed)
        text = text[consumed:]
        # As much again as is carried over: a record of many chunks costs few tries.
        block = _take(blocks, max(len(text), 1))
        text += block


def _take(blocks: Iterator[bytes], least: int) -> bytes:
    """At least so many bytes of the blocks, or all that is left of them."""
    taken = []
    while least > 0 and (block := next(blocks, b"")):
        taken.append(block)
        least -= len(block)
    return b"".join(taken)


def _parser_for(path, text: bytes, lines_before: int):
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


def _parse_fasta(path, text, code_of_byte, at_end, lines_before, first_record):
    # The last record is complete only when the next one has begun, or at the end of the file.
    stop = len(text) if at_end else text.rfind(b"\n>") + 1
    data = np.frombuffer(text, np.uint8)[:stop]
    n_records = text.count(b"\n>", 0, stop) + 1 if stop else 0
    codes = np.empty(stop, np.uint8)
    offsets = np.zeros(n_records + 1, np.int64)
    headers = np.zeros((n_records, 2), np.int64)
    used, bad = _split_fasta(data, code_of_byte, codes, offsets, headers)
    if bad >= 0:
        raise _letter_error(path, text, bad, lines_before)
    return SequenceBatch(codes[:used], offsets, None, data, headers, first_record), stop


def _parse_fastq(path, text, code_of_byte, at_end, lines_before, first_record):
    consumed_at_end = len(text)
    if at_end:
        text = _without_blank_tail(text)
    data = np.frombuffer(text, np.uint8)
    n_records = text.count(b"\n") // 4
    codes = np.empty(data.size, np.uint8)
    qualities = np.empty(data.size, np.uint8)
    offsets = np.zeros(n_records + 1, np.int64)
    headers = np.zeros((n_records, 2), np.int64)
    used, at, problem = _split_fastq(data, code_of_byte, codes, qualities, offsets, headers)
    if problem:
        raise _fastq_error(path, text, problem, at, lines_before)
    if at_end and at < len(text):
        raise InputError(
            f"{path}, line {lines_before + 4 * n_records + 1}: the last FASTQ record is cut off: "
            "a record is four lines (@name, bases, +, qualities)"
        )
    batch = SequenceBatch(codes[:used], offsets, qualities[:used], data, headers, first_record)
    return batch, consumed_at_end if at_end else at


def _without_blank_tail(text: bytes) -> bytes:
    """Drop blank lines at the end, except the quality line of a last read without bases."""
    kept = text.rstrip(b"\r\n")
    if not kept:
        return b""
    kept += b"\n"
    if kept.count(b"\n") % 4 == 3 and text.count(b"\n") > kept.count(b"\n"):
        kept += b"\n"
    return kept


def _letter_error(path, text: bytes, at: int, lines_before: int) -> InputError:
    line = lines_before + text.count(b"\n", 0, at) + 1
    letter = text[at : at + 1].decode("latin-1")
    if letter in "@+" and (at == 0 or text[at - 1 : at] == b"\n"):
        return InputError(f"{path}, line {line}: a FASTQ record stands in a FASTA file")
    return InputError(f"{path}, line {line}: {letter!r} is not a letter of this kind of sequence")


def _fastq_error(path, text: bytes, problem, at, lines_before) -> InputError:
    line = lines_before + text.count(b"\n", 0, at) + 1
    start = f"{path}, line {line}: "
    if problem == _BAD_LETTER:
        letter = text[at : at + 1].decode("latin-1")
        return InputError(f"{start}{letter!r} is not a letter of this kind of sequence")
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
        return InputError(f"{start}the record has unequal numbers of bases and qualities")
    if problem == _BAD_QUALITY:
        return InputError(
            f"{start}{chr(text[at])!r} is not a quality character: they run from ! to ~"
        )
    return InputError(f"{start}the name after + differs from the one after @")


@numba.njit(cache=True, nogil=True)
def _line_end(data, start):
    """The line feed that ends the line, and where the line's text ends (before a CR)."""
    feed = start
    while feed < data.size and data[feed] != 10:
        feed += 1
    stop = feed
    if stop > start and data[stop - 1] == 13:
        stop -= 1
    return feed, stop


@numba.njit(cache=True, nogil=True)
def _split_fasta(data, code_of_byte, codes, offsets, headers):
    """Split complete FASTA records. Returns how many bases, and where a bad letter is (or -1)."""
    used = 0
    record = 0
    at = 0
    while at < data.size:
        feed, stop = _line_end(data, at)
        if data[at] == 62:
            headers[record, 0] = at + 1
            headers[record, 1] = stop
            offsets[record] = used
            record += 1
        else:
            for i in range(at, stop):
                code = code_of_byte[data[i]]
                if code == 255:
                    # Blanks at a line's end are common and harmless.
                    if data[i] == 32 or data[i] == 9:
                        continue
                    return used, i
                codes[used] = code
                used += 1
        at = feed + 1
    offsets[record] = used
    return used, -1


@numba.njit(cache=True, nogil=True)
def _split_fastq(data, code_of_byte, codes, qualities, offsets, headers):
    """Split complete FASTQ records, as many as `headers` has room for.

    Returns how many bases, where it stopped, and a problem found there (0: none).
    """
    used = 0
    at = 0
    for record in range(len(headers)):
        if data[at] != 64:
            return used, at, _NO_HEADER
        feed, stop = _line_end(data, at)
        name_start, name_stop = at + 1, stop
        headers[record, 0] = name_start
        headers[record, 1] = name_stop
        at = feed + 1
        feed, stop = _line_end(data, at)
        n_bases = stop - at
        for i in range(n_bases):
            code = code_of_byte[data[at + i]]
            if code == 255:
                return used, at + i, _BAD_LETTER
            codes[used + i] = code
        at = feed + 1
        if data[at] != 43:
            return used, at, _NO_PLUS
        feed, stop = _line_end(data, at)
        if stop > at + 1:
            if stop - at - 1 != name_stop - name_start:
                return used, at, _PLUS_NAME_DIFFERS
            for i in range(name_stop - name_start):
                if data[at + 1 + i] != data[name_start + i]:
                    return used, at, _PLUS_NAME_DIFFERS
        at = feed + 1
        feed, stop = _line_end(data, at)
        if stop - at != n_bases:
            return used, at, _UNEQUAL_LENGTHS
        for i in range(n_bases):
            if data[at + i] < 33 or data[at + i] > 126:
                return used, at + i, _BAD_QUALITY
            qualities[used + i] = data[at + i]
        used += n_bases
        offsets[record + 1] = used
        at = feed + 1
    return used, at, 0
