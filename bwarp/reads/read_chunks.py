"""Read files into chunks of single reads, or of pairs with adjacent mates, for mapping.

pairs      reads 0 and 1 are the ends of template 0, 2 and 3 of template 1, ...
single     read i is template i
orphans    among interleaved pairs: read 2 i + 1 has no bases and gets no records

Per file, one thread inflates (or several for BGZF), and one splits the text into the records of
chunks at line feeds. Several threads do the rest, each on one chunk:

    R1.fq.gz -> bytes -> records -.   .-> bases, qualities, names -> chunk
                                   >--+-> bases, qualities, names -> chunk
    R2.fq.gz -> bytes -> records -'   '-> bases, qualities, names -> chunk
"""

import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, takewhile, zip_longest
from operator import itemgetter

import numpy as np

from bwarp.bam.header import LONGEST_READ_NAME
from bwarp.counted import counted
from bwarp.errors import InputError, UsageError
from bwarp.io.compressed_files import CHUNK_BYTES, read_blocks
from bwarp.io.fastx import (
    RecordText,
    SequenceBatch,
    cut_records,
    fastq_lines,
    parse_records,
    put_fastq,
)
from bwarp.io.line_scan import SLACK, find_blank
from bwarp.io.names import first_bad_name, put_bytes
from bwarp.reads.record_files import has_pairs, holds_records, read_unaligned
from bwarp.runtime.chunks import in_order, read_ahead
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.threads import joined_stretches, put_stretches
from bwarp.runtime.timeline import on_timeline

# --------------------------------------------------------------------------------------------------
# The records of a file of reads, in portions of the size of a chunk.
#
# FASTQ and FASTA are read directly. samtools converts BAM and CRAM to lines, which are converted
# to FASTQ.


#: Reading threads for up to sixteen mapping threads; this number keeps up with a GPU.
_READING = 4


@dataclass(frozen=True)
class CountedRecords:
    """The text of the records of a file for one chunk, or of the last records.

    Attributes
    ----------
    parts : list of RecordText
    failure : Exception, optional
        Why the file ends here; errors in the records are reported first.
    """

    parts: list[RecordText]
    failure: Exception | None = None


def threads_that_read(threads: int) -> int:
    """Return the number of threads that make chunks, and that inflate each BGZF file."""
    return min(threads, max(_READING, threads // 4))


def counted_records(
    path, count: int, threads: int, with_groups: bool = False
) -> Iterator[CountedRecords]:
    """Yield the records of a file, `count` at a time; a failure comes with the last records.

    `with_groups` adds the read group to the comments of BAM and CRAM.
    """
    read = partial(read_unaligned, with_groups=with_groups)
    read = read if holds_records(path) else read_blocks
    blocks = read(path, _block_bytes(count), threads_that_read(threads))
    texts = cut_records(path, read_ahead(blocks))
    waiting: list[RecordText] = []
    n_waiting = 0
    while True:
        try:
            records = next(texts, None)
        except Exception as error:  # noqa: BLE001
            yield CountedRecords(waiting, error)
            return
        if records is None:
            break
        while n_waiting + records.count >= count:
            cut = count - n_waiting
            yield CountedRecords([*waiting, records.part(0, cut)])
            records = records.part(cut, records.count)
            waiting, n_waiting = [], 0
        if records.count:
            waiting.append(records)
            n_waiting += records.count
    if waiting:
        yield CountedRecords(waiting)


def _block_bytes(count: int) -> int:
    """Return the number of bytes to read at a time, for about `count` records."""
    return min(CHUNK_BYTES, max(count << 9, 1 << 20))


def whole_pairs(counted: Iterator[CountedRecords]) -> Iterator[CountedRecords]:
    """Yield the same records, with a last read whose mate may follow moved to the next portion."""
    moved: list[RecordText] = []
    for records in counted:
        parts = [*moved, *records.parts]
        moved = []
        if records.failure is None and parts and _is_odd(parts):
            last = parts.pop()
            if last.count > 1:
                parts.append(last.part(0, last.count - 1))
            moved = [last.part(last.count - 1, last.count)]
        if parts or records.failure is not None:
            yield CountedRecords(parts, records.failure)
    if moved:
        yield CountedRecords(moved)


def _is_odd(parts: list[RecordText]) -> bool:
    """Return whether an odd number of records at the end have the same name."""
    names = (_name_in(part, i) for part in reversed(parts) for i in reversed(range(part.count)))
    last = next(names)
    return sum(1 for _ in takewhile(lambda name: name == last, names)) % 2 == 0


def _name_in(records: RecordText, record: int) -> bytes:
    start, stop = records.starts[record : record + 2]
    header = records.text[start:stop].tobytes().partition(b"\n")[0]
    return re.sub(rb"(?<=.)/[12]$", b"", re.split(rb"[ \t\r]", header[1:], maxsplit=1)[0])


# --------------------------------------------------------------------------------------------------
# Names of reads as bytes: found in headers, and compared between ends of pairs.


@compiled
def take_headers(text, headers, taken, at, names, comments):
    """Copy headers to `taken`, from `at` on, and find the name and the comment of each.

    The name is the first word, without a final /1 or /2; the comment follows the first
    blank or tab.
    """
    for i in range(len(headers)):
        begin, first, last = at, headers[i, 0], headers[i, 1]
        space = find_blank(text, first, last)
        at = put_bytes(taken, at, text, first, last)
        stop = begin + space - first
        comments[i, 0] = min(stop + 1, at)
        comments[i, 1] = at
        if stop - begin > 2 and taken[stop - 2] == 47 and 49 <= taken[stop - 1] <= 50:
            stop -= 2
        names[i, 0] = begin
        names[i, 1] = stop


@compiled
def pair_up(text, names, firsts):
    """List the first read of every template; return the number of templates."""
    n, read = 0, 0
    while read < len(names):
        firsts[n] = read
        n += 1
        start, length = names[read, 0], names[read, 1] - names[read, 0]
        read += 1
        if read < len(names) and names[read, 1] - names[read, 0] == length:
            same = True
            for at in range(length):
                same &= text[start + at] == text[names[read, 0] + at]
            read += same
    return n


@compiled
def first_difference(text_1, names_1, text_2, names_2):
    """Return the first name that differs between the lists, or -1."""
    for i in range(len(names_1)):
        length = names_1[i, 1] - names_1[i, 0]
        if names_2[i, 1] - names_2[i, 0] != length:
            return i
        start_1, start_2 = np.uint64(names_1[i, 0]), np.uint64(names_2[i, 0])
        # Without an early exit, the loop is vectorised.
        same = True
        for at in range(np.uint64(length)):
            same &= text_1[start_1 + at] == text_2[start_2 + at]
        if not same:
            return i
    return -1


# --------------------------------------------------------------------------------------------------
# Pieces of files of reads, and their bases interleaved with those of the other file of pairs.
#
#     lines of R1    1   3   5  -.
#                                 >-> bases and qualities of reads 1 2 3 4 5 6
#     lines of R2    2   4   6  -'
#
# FASTQ is written from its text directly to the target; FASTA is parsed first, because the lengths
# of its sequences are known only after joining lines.


#: Records of a file that are parsed before those of the other file of pairs: 5 MB. With fewer,
#: threads wait for the GIL more often, which takes longer on a busy host.
_RECORDS_AT_A_TIME = 1 << 14

#: Headers that state whether a read is the first or second of its pair.
_MATE = re.compile(rb"[^ \t]+(?:/([12])(?:[ \t]|$)|[ \t]([12]):[YN]:)")


@dataclass(frozen=True)
class Piece:
    """Consecutive records of a file.

    Attributes
    ----------
    path : str
        Path of the file, for errors.
    parts : list of RecordText, or of SequenceBatch
        The bases and qualities: FASTQ as text, FASTA parsed.
    lengths : ndarray, shape=(count,), dtype=int64
        Length of each record.
    text : ndarray, dtype=uint8
        Concatenated headers.
    names, comments : ndarray, shape=(count, 2), dtype=int64
        Start and stop in `text` of each name, without /1 or /2, and of each comment.
    failure : Exception, optional
        Why the file ends here.
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
        """Return a record's header as in the file."""
        return self._header(record).decode("utf-8", "replace")

    def mate(self, record: int) -> int | None:
        """Return 1 or 2 if the header states it, as in NAME/1 or NAME 1:N:0:ACGT, else None."""
        found = _MATE.match(self._header(record))
        return int(found[1] or found[2]) if found else None

    def first_word(self, record: int) -> bytes:
        """Return the first word of a record's header."""
        return re.split(rb"[ \t]", self._header(record), maxsplit=1)[0]

    def name(self, record: int) -> str:
        return self.first_word(record).decode("utf-8", "replace")

    def _header(self, record: int) -> bytes:
        return self.text[self.names[record, 0] : self.comments[record, 1]].tobytes()


def piece_of(path, records: CountedRecords) -> Piece:
    """Return the records of a chunk as a piece; `laid_out` validates FASTQ."""
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
    """Return bases, offsets and qualities of pieces with equal numbers of records, for `ReadChunk`.

    The records of several pieces are interleaved.

    Raises
    ------
    InputError
        For the first invalid record of the first piece with one, or for its failure.
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
            put_stretches(cut.codes, cut.offsets, codes, of_cut, step)
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
    """Yield the records with the number of the first: for FASTQ few enough at a time for a large
    cache, because those of both ends of pairs are written to the same cache lines.
    """
    row = 0
    for part in piece.parts:
        if isinstance(part, SequenceBatch):
            yield row, part
        else:
            for first in range(0, part.count, _RECORDS_AT_A_TIME):
                yield row + first, part.part(first, min(first + _RECORDS_AT_A_TIME, part.count))
        row += part.count


#: Reads that a thread maps at a time: little memory, but enough work per chunk that Python, which
#: holds the GIL, is a small part of it; with half as many, its part doubles.
READS_A_CHUNK = 1 << 15

#: Maximum length of a read. Alignment with gaps takes the square of it in cells: 50 ms.
LONGEST_READ = 10_000


@dataclass(frozen=True)
class ReadChunk:
    """Consecutive templates of one run of a sequencer.

    Attributes
    ----------
    codes : ndarray, shape=(total,), dtype=uint8
    offsets : ndarray, shape=(n_reads + 1,), dtype=int64
    qualities : ndarray, shape=(total,), dtype=uint8, or None
    text : ndarray, dtype=uint8
        The text that contains the names of the templates.
    names : ndarray, shape=(n_templates, 2), dtype=int64
        Start and stop of the name of each template in `text`.
    ends : int
        Reads per template: 1 or 2.
    first_template : int
        Number of the chunk's first template in the run.
    comments : ndarray, shape=(n_reads, 2), dtype=int64, or None
        Start and stop in `text` of the comment of each read.
    mate_text : ndarray, dtype=uint8, or None
        The text that contains the comments of second ends, if they are from another file.
    orphans : ndarray, shape=(n_templates,), dtype=bool, or None
        Templates that have only a first read; None if there are none.
    templates : ndarray, shape=(n_templates,), dtype=int64, or None
        Number of each template, if they are not consecutive from `first_template` on.
    """

    codes: np.ndarray
    offsets: np.ndarray
    qualities: np.ndarray | None
    text: np.ndarray
    names: np.ndarray
    ends: int
    first_template: int
    comments: np.ndarray | None = None
    mate_text: np.ndarray | None = None
    orphans: np.ndarray | None = None
    templates: np.ndarray | None = None

    @property
    def n_reads(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_templates(self) -> int:
        return len(self.names)

    @property
    def n_orphans(self) -> int:
        return 0 if self.orphans is None else int(np.count_nonzero(self.orphans))

    def name(self, template: int) -> str:
        start, stop = self.names[template]
        return self.text[start:stop].tobytes().decode("utf-8", "replace")


def read_chunks(
    path,
    mates: str | None,
    interleaved: bool,
    reads: int = READS_A_CHUNK,
    threads: int = 1,
    with_groups: bool = False,
) -> Iterator[ReadChunk]:
    """Yield the reads of one file, or the pairs of one or two, in chunks of `reads` reads.

    Interleaved files, and BAM and CRAM, may contain orphans. `with_groups` adds the read group to
    the comments of BAM and CRAM.
    """
    for given in filter(None, [path, mates]):
        if (mates or interleaved) and holds_records(given):
            raise UsageError(
                f"{given}: BAM and CRAM may contain pairs: give the file with -1, without -2 or "
                "--interleaved"
            )
    if mates and interleaved:
        raise UsageError("-2 cannot be combined with --interleaved")
    if mates and os.path.realpath(path) == os.path.realpath(mates):
        raise UsageError(
            f"{mates}: given with both -1 and -2: for pairs in one file, use --interleaved"
        )
    if mates:
        return paired_chunks(path, mates, reads, threads)
    pairs = has_pairs(path) if holds_records(path) else interleaved
    return (interleaved_chunks if pairs else single_chunks)(path, reads, threads, with_groups)


def single_chunks(
    path, reads: int = READS_A_CHUNK, threads: int = 1, with_groups: bool = False
) -> Iterator[ReadChunk]:
    """Yield the reads of one file in chunks of `reads`."""
    counted = counted_records(path, reads, threads, with_groups)
    return _made(partial(_single, path), _numbered(reads, counted), threads)


def paired_chunks(
    path_1, path_2, reads: int = READS_A_CHUNK, threads: int = 1
) -> Iterator[ReadChunk]:
    """Yield the pairs of two files with the same number of reads in the same order."""
    ends = [counted_records(path, reads // 2, threads) for path in (path_1, path_2)]
    if threads > 1:
        # Each file is split by its own thread.
        ends = [read_ahead(records, 1) for records in ends]
    both = zip_longest(*ends)
    return _made(partial(_paired, path_1, path_2), _numbered(reads // 2, both), threads)


def interleaved_chunks(
    path, reads: int = READS_A_CHUNK, threads: int = 1, with_groups: bool = False
) -> Iterator[ReadChunk]:
    """Yield the pairs and orphans of one file in which the ends of each pair are adjacent.

    Two adjacent reads with the same name are a pair, as in bwa mem -p. A chunk has one read more or
    less than `reads` if a pair would be split.
    """
    counted = counted_records(path, reads, threads, with_groups)
    items = ((records,) for records in whole_pairs(counted))
    first = 0
    for chunk in _made(partial(_interleaved, path), items, threads):
        yield replace(chunk, first_template=first)
        first += chunk.n_templates


def pairs_alone(path, chunks: Iterator[ReadChunk]) -> Iterator[ReadChunk]:
    """Yield the chunks of a file; raise an error if there are orphans."""
    for chunk in chunks:
        if chunk.orphans is not None:
            template = int(np.flatnonzero(chunk.orphans)[0])
            raise InputError(
                f"{path}, read {2 * (chunk.first_template + template) + 1:,}: "
                f"{chunk.name(template)!r} has no mate next to it: put pairs and single reads in "
                "separate files"
            )
        yield chunk


def _numbered(templates: int, items: Iterator) -> Iterator[tuple[int, object]]:
    """Yield items with the number of the first template of each."""
    return zip(count(0, templates), items, strict=False)


def _made(make: Callable, numbered: Iterator, threads: int) -> Iterator[ReadChunk]:
    return in_order(lambda item: make(*item), numbered, threads_that_read(threads))


@on_timeline("parse reads")
def _single(path, first: int, records: CountedRecords) -> ReadChunk:
    piece = piece_of(path, records)
    laid = laid_out([piece])
    _check_reads(path, piece, first)
    return ReadChunk(*laid, piece.text, piece.names, 1, first, piece.comments)


@on_timeline("parse reads")
def _paired(
    path_1, path_2, first: int, ends: tuple[CountedRecords | None, CountedRecords | None]
) -> ReadChunk:
    one, two = (
        records and piece_of(path, records)
        for path, records in zip((path_1, path_2), ends, strict=True)
    )
    n_one, n_two = one.count if one else 0, two.count if two else 0
    if not (one and two) or n_one != n_two or one.is_fasta != two.is_fasta:
        # Report errors within a file first.
        for piece in filter(None, (one, two)):
            laid_out([piece])
    if n_two < n_one:
        raise _shorter(path_2, path_1, first + n_two)
    if n_one < n_two:
        raise _shorter(path_1, path_2, first + n_one)
    if one.is_fasta != two.is_fasta:
        raise InputError(
            f"{path_1} and {path_2}: one file is FASTA, the other FASTQ: use the same format"
        )
    laid = laid_out([one, two])
    _check_reads(path_1, one, first)
    _check_reads(path_2, two, first)
    differing = first_difference(one.text, one.names, two.text, two.names)
    if differing >= 0:
        raise InputError(
            f"read {first + differing + 1:,} is {one.name(differing)!r} in {path_1}, but "
            f"{two.name(differing)!r} in {path_2}: both files must contain the same reads in the "
            "same order"
        )
    if first == 0 and one.count and (one.mate(0), two.mate(0)) == (2, 1):
        raise InputError(
            f"{path_1} begins with the second read of a pair ({one.header(0)!r}), and {path_2} "
            f"with the first ({two.header(0)!r}): swap the two files"
        )
    comments = np.stack([one.comments, two.comments], axis=1).reshape(-1, 2)
    return ReadChunk(*laid, one.text, one.names, 2, first, comments, two.text)


@on_timeline("parse reads")
def _interleaved(path, records: CountedRecords) -> ReadChunk:
    piece = piece_of(path, records)
    codes, offsets, qualities = laid_out([piece])
    _check_reads(path, piece, piece.parts[0].first_record)
    firsts = np.empty(piece.count, np.int64)
    firsts = firsts[: pair_up(piece.text, piece.names, firsts)]
    # Only the first chunk starts the file.
    begins_with_pair = piece.parts[0].first_record == 0 and piece.count > 1 and 1 not in firsts[:2]
    if begins_with_pair and (piece.mate(0), piece.mate(1)) == (2, 1):
        raise InputError(
            f"{path}: the second read of a pair ({piece.header(0)!r}) precedes the first "
            f"({piece.header(1)!r}): write the first read of each pair first"
        )
    names, comments, orphans = piece.names[firsts], piece.comments, None
    if 2 * firsts.size > piece.count:
        orphans = np.diff(firsts, append=piece.count) == 1
        # The rows of the reads if every template has two.
        rows = np.delete(np.arange(2 * firsts.size), 2 * np.flatnonzero(orphans) + 1)
        lengths = np.zeros(2 * firsts.size, np.int64)
        lengths[rows] = piece.lengths
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        comments = np.zeros((2 * firsts.size, 2), np.int64)
        comments[rows] = piece.comments
    return ReadChunk(codes, offsets, qualities, piece.text, names, 2, 0, comments, orphans=orphans)


def _shorter(path, other, count: int) -> InputError:
    return InputError(
        f"{path}: the file ends after {counted(count, 'read')}, but {other} has more: both files "
        "must contain the same reads in the same order"
    )


def _check_reads(path, piece: Piece, first_read: int) -> None:
    """Reject reads that SAM cannot represent, and reads that would take minutes each."""
    lengths = piece.names[:, 1] - piece.names[:, 0]
    for i in np.flatnonzero(lengths > LONGEST_READ_NAME)[:1]:
        raise InputError(
            f"{path}, read {first_read + i + 1:,}: the name has {lengths[i]:,} characters, but SAM "
            f"allows at most {LONGEST_READ_NAME}: shorten it"
        )
    bad = first_bad_name(piece.text, piece.names)
    if bad >= 0:
        # As the repr of bytes, without the b.
        shown = repr(piece.first_word(bad))[1:]
        raise InputError(
            f"{path}, read {first_read + bad + 1:,}: SAM does not allow the read name {shown} "
            "(printable ASCII, no @ at the start): rename it"
        )
    for i in np.flatnonzero(piece.lengths > LONGEST_READ)[:1]:
        raise InputError(
            f"{path}, read {first_read + i + 1:,} ({piece.name(i)!r}) has "
            f"{counted(piece.lengths[i], 'base')}, but the maximum is {LONGEST_READ:,}: use a "
            "mapper for long reads, such as minimap2"
        )


# --------------------------------------------------------------------------------------------------
# Parts of chunks of reads for several threads, and joined chunks for a GPU.


def chunk_parts(chunk: ReadChunk, most_reads: int) -> Iterator[ReadChunk]:
    """Split a chunk into chunks of up to `most_reads` reads, which share its memory."""
    step = max(1, most_reads // chunk.ends)
    for first in range(0, chunk.n_templates, step):
        yield part_of_chunk(chunk, first, min(first + step, chunk.n_templates))


def part_of_chunk(chunk: ReadChunk, first: int, stop: int) -> ReadChunk:
    """Return templates `first` to `stop` of a chunk, sharing its memory."""
    reads = slice(first * chunk.ends, stop * chunk.ends)
    begin, end = chunk.offsets[reads.start], chunk.offsets[reads.stop]
    orphans = None if chunk.orphans is None else chunk.orphans[first:stop]
    return replace(
        chunk,
        codes=chunk.codes[begin:end],
        offsets=chunk.offsets[reads.start : reads.stop + 1] - begin,
        qualities=None if chunk.qualities is None else chunk.qualities[begin:end],
        names=chunk.names[first:stop],
        first_template=chunk.first_template + first,
        comments=None if chunk.comments is None else chunk.comments[reads],
        orphans=orphans if orphans is not None and orphans.any() else None,
        templates=None if chunk.templates is None else chunk.templates[first:stop],
    )


def parts_between(chunks: Sequence[ReadChunk], first: int, stop: int) -> Iterator[ReadChunk]:
    """Yield the parts of chunks with reads `first` to `stop` of all, in whole templates."""
    begin = 0
    for chunk in chunks:
        low, high = max(first - begin, 0), min(stop - begin, chunk.n_reads)
        if low < high:
            yield part_of_chunk(chunk, low // chunk.ends, high // chunk.ends)
        begin += chunk.n_reads


def go_together(one: ReadChunk, following: ReadChunk) -> bool:
    """Return whether a chunk and the next one can be joined; they may differ in qualities (FASTA),
    or have gaps between the numbers of templates, if parts of the reads are missing.
    """
    return (
        one.ends == following.ends
        and (one.qualities is None) == (following.qualities is None)
        and one.first_template + one.n_templates == following.first_template
    )


def comment_text(chunk: ReadChunk) -> tuple[np.ndarray, np.ndarray]:
    """Return the comments of a chunk's reads one after another, uint8, and where each starts."""
    offsets = np.concatenate([[0], np.cumsum(chunk.comments[:, 1] - chunk.comments[:, 0])])
    text = np.empty(offsets[-1], np.uint8)
    second = chunk.text if chunk.mate_text is None else chunk.mate_text
    _take_comments(chunk.text, second, chunk.ends, chunk.comments, offsets, text)
    return text, offsets


@compiled
def _take_comments(text, mate_text, ends, spans, offsets, out):
    for read in range(len(spans)):
        source = mate_text if ends == 2 and read % 2 else text
        # LLVM vectorises the copy only for unsigned indices.
        to, begin = np.uint64(offsets[read]), np.uint64(spans[read, 0])
        for i in range(np.uint64(spans[read, 1] - spans[read, 0])):
            out[to + i] = source[begin + i]


def joined_chunks(
    chunks: Sequence[ReadChunk],
    codes: np.ndarray,
    qualities: np.ndarray,
    with_comments: bool = False,
) -> ReadChunk:
    """Join consecutive chunks (`go_together`) into one, whose text begins with the names.

    Parameters
    ----------
    codes, qualities : ndarray, dtype=uint8
        Memory for the codes and qualities.
    with_comments : bool
        Keep the comments, after the names.
    """
    np.concatenate([chunk.codes for chunk in chunks], out=codes)
    has_qualities = chunks[0].qualities is not None
    if has_qualities:
        np.concatenate([chunk.qualities for chunk in chunks], out=qualities)
    lengths = np.concatenate([np.diff(chunk.offsets) for chunk in chunks])
    bounds = np.concatenate([chunk.names for chunk in chunks])
    ends = np.concatenate([[0], np.cumsum(bounds[:, 1] - bounds[:, 0])])
    texts, first = [], 0
    for chunk in chunks:
        own = ends[first : first + chunk.n_templates + 1]
        texts.append(joined_stretches(chunk.text, chunk.names[:, 0], own - own[0]))
        first += chunk.n_templates
    comments = orphans = None
    if with_comments:
        parts = [comment_text(chunk) for chunk in chunks]
        texts += [text for text, _ in parts]
        sizes = np.concatenate([np.diff(offsets) for _, offsets in parts])
        starts = np.concatenate([[0], np.cumsum(sizes)]) + ends[-1]
        comments = np.column_stack([starts[:-1], starts[1:]])
    if any(chunk.orphans is not None for chunk in chunks):
        orphans = np.concatenate(
            [
                np.zeros(chunk.n_templates, bool) if chunk.orphans is None else chunk.orphans
                for chunk in chunks
            ]
        )
    return replace(
        chunks[0],
        codes=codes,
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        qualities=qualities if has_qualities else None,
        text=np.concatenate(texts),
        names=np.column_stack([ends[:-1], ends[1:]]),
        comments=comments,
        mate_text=None,
        orphans=orphans,
    )
