"""Reads as they are mapped: chunks of single reads, or of pairs with mates next to each other.

pairs      reads 0 and 1 are the ends of template 0, 2 and 3 of template 1, ...
single     read i is template i
orphans    among interleaved pairs: read 2 i + 1 has no bases, and there are no records of it

Of every file one thread inflates, or several where it is BGZF, and one cuts what has been into the
records of chunks, by their line feeds. All else is done by several threads, each on a chunk:

    R1.fq.gz -> bytes -> records -.   .-> bases, qualities, names -> chunk
                                   >--+-> bases, qualities, names -> chunk
    R2.fq.gz -> bytes -> records -'   '-> bases, qualities, names -> chunk
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, zip_longest

import numpy as np

from bwarp.counted import counted
from bwarp.errors import InputError, UsageError
from bwarp.io.bam.sam_names import LONGEST_READ_NAME
from bwarp.mapping.reads.counted_records import (
    CountedRecords,
    counted_records,
    threads_that_read,
    whole_pairs,
)
from bwarp.mapping.reads.file_pieces import Piece, laid_out, piece_of
from bwarp.mapping.reads.read_names import first_bad_name, first_difference, pair_up
from bwarp.mapping.reads.record_files import has_pairs, holds_records
from bwarp.runtime.threads import in_order, read_ahead
from bwarp.runtime.timeline import on_timeline

__all__ = [
    "LONGEST_READ",
    "ReadChunk",
    "interleaved_chunks",
    "paired_chunks",
    "pairs_alone",
    "read_chunks",
    "single_chunks",
]

#: What a thread maps at a time: little to keep, and enough that Python, whose lock only one thread
#: has at a time, takes a small part of it: half as many take as much of Python's time each.
READS_A_CHUNK = 1 << 15

#: Bases of a read. A gap is looked for in as many cells as the square of that: 50 ms.
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
        What the templates' names are cut from.
    names : ndarray, shape=(n_templates, 2), dtype=int64
        Start and stop of every template's name in `text`.
    ends : int
        Reads of a template: 1 or 2.
    first_template : int
        The number, within the run, of the chunk's first template.
    comments : ndarray, shape=(n_reads, 2), dtype=int64, or None
        Start and stop, in `text`, of what stands behind the name of every read.
    mate_text : ndarray, dtype=uint8, or None
        What the comments of second ends are cut from instead, where they are of another file.
    orphans : ndarray, shape=(n_templates,), dtype=bool, or None
        Templates of pairs that have a first read alone; None where there is none.
    templates : ndarray, shape=(n_templates,), dtype=int64, or None
        The number of each, where they do not follow one another from `first_template` on.
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
    """The reads of one file, or the pairs of one or two, in chunks of `reads` reads.

    Of an interleaved file, and of BAM and CRAM, there may be orphans. The comments of the latter
    hold the read group as well, `with_groups`.
    """
    for given in filter(None, [path, mates]):
        if (mates or interleaved) and holds_records(given):
            raise UsageError(
                f"{given}: flags of BAM and CRAM tell the ends of pairs: give it with -1, and "
                "neither -2 nor --interleaved"
            )
    if mates and interleaved:
        raise UsageError("give either -2 or --interleaved, not both")
    if mates and os.path.realpath(path) == os.path.realpath(mates):
        raise UsageError(
            f"{mates} is given as both ends: with pairs in one file, use --interleaved"
        )
    if mates:
        return paired_chunks(path, mates, reads, threads)
    pairs = has_pairs(path) if holds_records(path) else interleaved
    return (interleaved_chunks if pairs else single_chunks)(path, reads, threads, with_groups)


def single_chunks(
    path, reads: int = READS_A_CHUNK, threads: int = 1, with_groups: bool = False
) -> Iterator[ReadChunk]:
    """The reads of one file, in chunks of `reads`."""
    counted = counted_records(path, reads, threads, with_groups)
    return _made(partial(_single, path), _numbered(reads, counted), threads)


def paired_chunks(
    path_1, path_2, reads: int = READS_A_CHUNK, threads: int = 1
) -> Iterator[ReadChunk]:
    """The pairs of two files with equally many reads in the same order."""
    ends = [counted_records(path, reads // 2, threads) for path in (path_1, path_2)]
    if threads > 1:
        # Each is cut by a thread of its own.
        ends = [read_ahead(records, 1) for records in ends]
    both = zip_longest(*ends)
    return _made(partial(_paired, path_1, path_2), _numbered(reads // 2, both), threads)


def interleaved_chunks(
    path, reads: int = READS_A_CHUNK, threads: int = 1, with_groups: bool = False
) -> Iterator[ReadChunk]:
    """The pairs of one file in which both ends stand one after the other, and orphans.

    Two reads in a row that have one name are a pair, as for bwa mem -p. A chunk has a read more or
    less than `reads` where a pair would be cut.
    """
    counted = counted_records(path, reads, threads, with_groups)
    items = ((records,) for records in whole_pairs(counted))
    first = 0
    for chunk in _made(partial(_interleaved, path), items, threads):
        yield replace(chunk, first_template=first)
        first += chunk.n_templates


def pairs_alone(path, chunks: Iterator[ReadChunk]) -> Iterator[ReadChunk]:
    """The chunks of a file, of which none may have orphans."""
    for chunk in chunks:
        if chunk.orphans is not None:
            template = int(np.flatnonzero(chunk.orphans)[0])
            raise InputError(
                f"{path}, read {2 * (chunk.first_template + template) + 1:,}: "
                f"{chunk.name(template)!r} has no mate beside it: map pairs and single reads "
                "from files of their own"
            )
        yield chunk


def _numbered(templates: int, items: Iterator) -> Iterator[tuple[int, object]]:
    """Items and the number of the first of the templates that each holds."""
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
        # What is wrong within a file is said first.
        for piece in filter(None, (one, two)):
            laid_out([piece])
    if n_two < n_one:
        raise _shorter(path_2, path_1, first + n_two)
    if n_one < n_two:
        raise _shorter(path_1, path_2, first + n_one)
    if one.is_fasta != two.is_fasta:
        raise InputError(f"{path_1} and {path_2}: one is FASTA and the other FASTQ")
    laid = laid_out([one, two])
    _check_reads(path_1, one, first)
    _check_reads(path_2, two, first)
    differing = first_difference(one.text, one.names, two.text, two.names)
    if differing >= 0:
        raise InputError(
            f"{path_1} and {path_2}, read {first + differing + 1:,}: the names "
            f"{one.name(differing)!r} and {two.name(differing)!r} differ: both files of a pair "
            "need the same reads in the same order"
        )
    if first == 0 and one.count and (one.mate(0), two.mate(0)) == (2, 1):
        raise InputError(
            f"{path_1} begins with a second read of a pair ({one.header(0)!r}), and {path_2} with "
            f"a first read ({two.header(0)!r}): exchange the two files"
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
    # What stands before is of other chunks.
    begins_with_pair = piece.parts[0].first_record == 0 and piece.count > 1 and 1 not in firsts[:2]
    if begins_with_pair and (piece.mate(0), piece.mate(1)) == (2, 1):
        raise InputError(
            f"{path}: begins with the second read of a pair ({piece.header(0)!r}), and its first "
            f"read ({piece.header(1)!r}) follows: write first reads first"
        )
    names, comments, orphans = piece.names[firsts], piece.comments, None
    if 2 * firsts.size > piece.count:
        orphans = np.diff(firsts, append=piece.count) == 1
        # The rows of the reads, where every template has two.
        rows = np.delete(np.arange(2 * firsts.size), 2 * np.flatnonzero(orphans) + 1)
        lengths = np.zeros(2 * firsts.size, np.int64)
        lengths[rows] = piece.lengths
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        comments = np.zeros((2 * firsts.size, 2), np.int64)
        comments[rows] = piece.comments
    return ReadChunk(codes, offsets, qualities, piece.text, names, 2, 0, comments, orphans=orphans)


def _shorter(path, other, count: int) -> InputError:
    return InputError(
        f"{path}: the file ends after {counted(count, 'read')}, but {other} has more: "
        "both files of a pair need the same reads in the same order"
    )


def _check_reads(path, piece: Piece, first_read: int) -> None:
    """Refuse what SAM has no way to write, and what would take minutes a read."""
    lengths = piece.names[:, 1] - piece.names[:, 0]
    for i in np.flatnonzero(lengths > LONGEST_READ_NAME)[:1]:
        raise InputError(
            f"{path}, read {first_read + i + 1:,}: its name has {lengths[i]:,} characters, and SAM "
            f"allows {LONGEST_READ_NAME}: shorten it"
        )
    bad = first_bad_name(piece.text, piece.names)
    if bad >= 0:
        # As bytes are shown, but without the b.
        shown = repr(piece.first_word(bad))[1:]
        raise InputError(
            f"{path}, read {first_read + bad + 1:,}: SAM allows no read name like {shown} "
            "(printable ASCII, no @ at its start): rename it"
        )
    for i in np.flatnonzero(piece.lengths > LONGEST_READ)[:1]:
        raise InputError(
            f"{path}, read {first_read + i + 1:,} ({piece.name(i)!r}): it has "
            f"{counted(piece.lengths[i], 'base')}, and the longest that are mapped have "
            f"{LONGEST_READ:,}: "
            "map longer reads with a mapper made for them, such as minimap2"
        )
