"""FASTA and FASTQ as text, cut into whole records.

text     @r1 \nACGTAC\n+\nFFFFFF\n@r2\nGGT\n+\nFFF\n@r3 ...     cut by its line feeds alone
starts   0                          24                  41
feeds         4       11 13     20      29  33 35  39        of FASTQ alone: four a record

An incomplete record at a block's end is carried over to the next one; a record longer than a
block makes the block grow. Blank lines between records are skipped.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bwarp.errors import InputError
from bwarp.io.file_blocks import take_blocks
from bwarp.io.line_scan import find_byte
from bwarp.runtime.compiled_code import compiled, read_only

__all__ = ["RecordText", "cut_records", "lone_return_error", "not_fasta_error", "shown"]

_BLANK_LINES = re.compile(rb"(?:\r?\n)*")

#: Of a block, to end a record that begins before it.
_FEW_BYTES = 1 << 12

_NOTHING, _LINE_FEED = np.empty(0, np.uint8), np.full(1, 10, np.uint8)

# No record takes fewer bytes: ">" and "@a", each with its line feeds.
_LEAST_FASTA_BYTES, _LEAST_FASTQ_BYTES = 2, 5


@dataclass(frozen=True)
class RecordText:
    """Some consecutive whole records as they stand in a FASTA or FASTQ file.

    Attributes
    ----------
    text : ndarray, dtype=uint8
        The bytes they are part of.
    starts : ndarray, shape=(count + 1,), dtype=int64
        Where each begins in `text`; the last is where they end.
    feeds : ndarray, shape=(count, 4), dtype=int64, or None
        The line feeds of every FASTQ record; None for FASTA.
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
        """The records from `first` to below `stop` of these."""
        feeds = None if self.is_fasta else self.feeds[first:stop]
        return RecordText(
            self.text, self.starts[first : stop + 1], feeds, self.lines_before,
            self.first_record + first,
        )  # fmt: skip


def cut_records(path: str | os.PathLike, blocks: Iterator[bytes]) -> Iterator[RecordText]:
    """The records of a file that someone else reads, those of a block at a time.

    Only line feeds and what a record begins with are looked at: `parse_records` looks at the rest.
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
    # The next block, of which `data` has the first bytes alone, and how many these are.
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
            # The rest begins in this block, or what began before it goes on to its end.
            whole = block[n_taken - rest.size :] if count else _joined(rest, block[n_taken:])
            data, block = whole, _NOTHING
            continue
        # As much again as is carried over: a record of many blocks costs few tries.
        taken = take_blocks(blocks, max(rest.size, 1))
        more = [read_only(np.frombuffer(one, np.uint8)) for one in taken]
        at_end = not more
        if at_end:
            # Ends the last line where nothing does; otherwise it is a blank line more.
            data = _joined(rest, _LINE_FEED)
        elif is_fasta or len(more) > 1:
            data = _joined(rest, *more)
        else:
            # Copying whole blocks takes longer than cutting them.
            [block] = more
            n_taken = min(block.size, max(_FEW_BYTES, 4 * rest.size))
            data = _joined(rest, block[:n_taken])


def _joined(*parts: np.ndarray) -> np.ndarray:
    return read_only(np.concatenate(parts))


class _Marks:
    """Where records begin and their lines end in one text after another."""

    def __init__(self, is_fasta: bool):
        self._is_fasta = is_fasta
        # Used again for every text: fresh memory takes longer than to write there.
        self._starts, self._feeds = np.empty(0, np.int64), np.empty((0, 4), np.int64)

    def of_records(
        self, data: np.ndarray, at_end: bool
    ) -> tuple[np.ndarray, np.ndarray | None, int]:
        """`starts` and `feeds` as of `RecordText`, and the lines of the records."""
        least = _LEAST_FASTA_BYTES if self._is_fasta else _LEAST_FASTQ_BYTES
        room = data.size // least + 2
        # Most of the arrays is not touched, and takes no memory.
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
        raise InputError(f"{path}: these are alignments: make FASTQ of them (samtools fastq)")
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
    """The first line of a text, for a message."""
    return repr(text.split(b"\n")[0].decode("latin-1"))


def _unfinished_error(path, rest: bytes, lines_before: int) -> InputError:
    """The error for a FASTQ file that ends within a record."""
    start = f"{path}, line {lines_before + 1}: "
    if re.search(rb"\r(?!\n)", rest):
        return lone_return_error(start)
    return InputError(
        f"{start}the last FASTQ record is cut off: "
        "a record is four lines (@name, bases, +, qualities)"
    )


def not_fasta_error(start: str) -> InputError:
    """The error for a reference that is FASTQ; `start` says where."""
    return InputError(f"{start}this looks like FASTQ; the reference must be FASTA (>name)")


def lone_return_error(start: str) -> InputError:
    """The error for a carriage return without a line feed; `start` says where."""
    return InputError(
        f"{start}a carriage return without a line feed: turn old Mac line ends into Unix ones "
        "(tr '\\r' '\\n')"
    )


@compiled
def _cut_fasta(data, at_end, starts):
    """Where the FASTA records begin whose end is known, and the rest; how many, of what lines.

    A record is complete when the next one has begun, or at the end of the file.
    """
    count = 0
    lines = 0
    lines_of_records = 0
    at = 0
    while at < data.size:
        if data[at] == 62:
            starts[count] = at
            count += 1
            lines_of_records = lines
        at = find_byte(data, at, data.size, 10) + 1
        lines += 1
    if at_end:
        starts[count] = data.size
        return count, lines
    return count - 1, lines_of_records


@compiled
def _cut_fastq(data, starts, feeds):
    """Where the FASTQ records begin that are there as four lines, their line feeds, and where the
    rest begins; how many, of what lines."""
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
