"""Pieces of files of reads: what is known of their records, and their bases written among those of
the other file of pairs.

    lines of R1    1   3   5  -.
                                >-> bases and qualities of reads 1 2 3 4 5 6
    lines of R2    2   4   6  -'

FASTQ is written straight from its text to where it belongs; FASTA, of which lines must be joined to
know how long its sequences are, is parsed before.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from bwarp.errors import InputError
from bwarp.io.fastx import SequenceBatch, fastq_lines, parse_records, put_fastq
from bwarp.io.fastx_text import RecordText
from bwarp.io.line_scan import SLACK
from bwarp.mapping.reads.counted_records import CountedRecords
from bwarp.mapping.reads.read_names import take_headers
from bwarp.runtime.compiled_code import compiled

__all__ = ["Piece", "laid_out", "piece_of"]

#: Records of a file that are parsed before those of the other end of pairs: 5 MB. With fewer a
#: thread has to wait for Python's lock more often, which on a busy host takes longer.
_RECORDS_AT_A_TIME = 1 << 14

#: Headers that say which read of its pair a read is.
_MATE = re.compile(rb"[^ \t]+(?:/([12])(?:[ \t]|$)|[ \t]([12]):[YN]:)")


@dataclass(frozen=True)
class Piece:
    """Some consecutive records of a file.

    Attributes
    ----------
    path : str
        Of the file, for errors.
    parts : list of RecordText, or of SequenceBatch
        Where their bases and qualities are: FASTQ as text, FASTA parsed.
    lengths : ndarray, shape=(count,), dtype=int64
        The bases of every record.
    text : ndarray, dtype=uint8
        Their headers, end to end.
    names, comments : ndarray, shape=(count, 2), dtype=int64
        Start and stop in `text` of every name, without /1 or /2, and of what follows it.
    failure : Exception, optional
        Why there is no more of the file.
    """

    path: str
    parts: list[RecordText] | list[SequenceBatch]
    lengths: np.ndarray
    text: np.ndarray
    names: np.ndarray
    comments: np.ndarray
    failure: Exception | None

    @property
    def count(self) -> int:
        return len(self.lengths)

    @property
    def is_fasta(self) -> bool:
        return any(isinstance(part, SequenceBatch) for part in self.parts)

    def header(self, record: int) -> str:
        """A record's header as it stands there."""
        return self._header(record).decode("utf-8", "replace")

    def mate(self, record: int) -> int | None:
        """1 or 2 for a first or second read, as its header says it: NAME/1, or NAME 1:N:0:ACGT."""
        found = _MATE.match(self._header(record))
        return int(found[1] or found[2]) if found else None

    def first_word(self, record: int) -> bytes:
        """The first word of a record's header."""
        return re.split(rb"[ \t]", self._header(record), maxsplit=1)[0]

    def name(self, record: int) -> str:
        return self.first_word(record).decode("utf-8", "replace")

    def _header(self, record: int) -> bytes:
        return self.text[self.names[record, 0] : self.comments[record, 1]].tobytes()


def piece_of(path, records: CountedRecords) -> Piece:
    """The records of a chunk; whether FASTQ is sound `laid_out` finds out."""
    parts = records.parts
    if parts and parts[0].is_fasta:
        parts = [parse_records(path, part) for part in parts]
        lines = [(np.diff(batch.offsets), batch.headers) for batch in parts]
    else:
        lines = [fastq_lines(part) for part in parts]
    lengths = np.concatenate([np.empty(0, np.int64), *(lengths for lengths, _ in lines)])
    sizes = [int((headers[:, 1] - headers[:, 0]).sum()) for _, headers in lines]
    text = np.empty(sum(sizes), np.uint8)
    names, comments = (np.empty((lengths.size, 2), np.int64) for _ in range(2))
    row, at = 0, 0
    for part, (_, headers), size in zip(parts, lines, sizes, strict=True):
        take_headers(part.text, headers, text, at, names[row:], comments[row:])
        row, at = row + part.count, at + size
    return Piece(path, parts, lengths, text, names, comments, records.failure)


def laid_out(pieces: list[Piece]) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Bases, offsets and qualities of pieces of equally many records, as in `ReadChunk`.

    The records of several are taken in turn.

    Raises
    ------
    InputError
        For the first record that is none of the first piece that has one; or its failure.
    """
    step = len(pieces)
    offsets = np.zeros(step * pieces[0].count + 1, np.int64)
    np.cumsum(np.stack([piece.lengths for piece in pieces], axis=1), out=offsets[1:])
    codes, qualities = np.empty((2, offsets[-1] + SLACK), np.uint8)
    cuts = [(row, number, cut) for number, one in enumerate(pieces) for row, cut in _cuts(one)]
    failures: dict[int, Exception] = {}
    for row, number, cut in sorted(cuts, key=itemgetter(0, 1)):
        of_cut = offsets[step * row + number :]
        if isinstance(cut, SequenceBatch):
            _lay(cut.codes, cut.offsets, codes, of_cut, step)
        elif number not in failures:
            try:
                put_fastq(pieces[number].path, cut, of_cut, step, codes, qualities)
            except InputError as error:
                failures[number] = error
    for number, piece in enumerate(pieces):
        if piece.failure is not None:
            failures.setdefault(number, piece.failure)
    if failures:
        raise failures[min(failures)]
    n_bases = offsets[-1]
    return codes[:n_bases], offsets, None if pieces[0].is_fasta else qualities[:n_bases]


def _cuts(piece: Piece) -> Iterator[tuple[int, RecordText | SequenceBatch]]:
    """The records, and the number of the first: of FASTQ as few at a time as a large cache holds,
    so that those of both ends of pairs are written to the same lines.
    """
    row = 0
    for part in piece.parts:
        if isinstance(part, SequenceBatch):
            yield row, part
        else:
            for first in range(0, part.count, _RECORDS_AT_A_TIME):
                yield row + first, part.part(first, min(first + _RECORDS_AT_A_TIME, part.count))
        row += part.count


@compiled
def _lay(values, starts, out, offsets, step):
    """Copy stretches of values to out[offsets[0]:], out[offsets[step]:], ..."""
    for i in range(starts.size - 1):
        # Only unsigned indexes let LLVM copy in vectors.
        source, to = np.uint64(starts[i]), np.uint64(offsets[step * i])
        for at in range(np.uint64(starts[i + 1] - starts[i])):
            out[to + at] = values[source + at]
