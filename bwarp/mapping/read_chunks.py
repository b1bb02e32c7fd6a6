"""Reads as they are mapped: chunks of single reads, or of pairs with the two ends side by side.

pairs      reads 0 and 1 are the ends of template 0, 2 and 3 of template 1, ...
single     read i is template i
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass

import numba
import numpy as np

from bwarp.errors import InputError, UsageError
from bwarp.fastx import SequenceBatch, read_sequences
from bwarp.threads import read_ahead

__all__ = ["ReadChunk", "interleaved_chunks", "paired_chunks", "read_chunks", "single_chunks"]

#: What a thread maps at a time: enough to share among threads, and little to keep.
READS_A_CHUNK = 1 << 14

#: A record of BAM keeps the length of its name, and a zero at the end, in one byte.
LONGEST_NAME = 254


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

    @property
    def n_reads(self) -> int:
        return len(self.offsets) - 1

    @property
    def n_templates(self) -> int:
        return len(self.names)

    def name(self, template: int) -> str:
        start, stop = self.names[template]
        return self.text[start:stop].tobytes().decode("utf-8", "replace")


def read_chunks(
    path, mates: str | None, interleaved: bool, reads: int = READS_A_CHUNK
) -> Iterator[ReadChunk]:
    """The reads of one file, or the pairs of one or two, in chunks of so many reads."""
    if mates and interleaved:
        raise UsageError("give either -2 or --interleaved, not both")
    if mates and os.path.realpath(path) == os.path.realpath(mates):
        raise UsageError(
            f"{mates} is given as both ends: with pairs in one file, use --interleaved"
        )
    if mates:
        return paired_chunks(path, mates, reads)
    return interleaved_chunks(path, reads) if interleaved else single_chunks(path, reads)


def single_chunks(path, reads: int = READS_A_CHUNK) -> Iterator[ReadChunk]:
    """The reads of one file, in chunks of so many."""
    first = 0
    for batch in _in_pieces(path, reads):
        names = _names(path, batch, first)
        yield ReadChunk(
            batch.codes, batch.offsets, batch.qualities, batch.text, names, 1, first,
            _comments(batch),
        )  # fmt: skip
        first += batch.count


def paired_chunks(path_1, path_2, reads: int = READS_A_CHUNK) -> Iterator[ReadChunk]:
    """The pairs of two files with equally many reads in the same order."""
    second = read_ahead(_in_pieces(path_2, reads // 2))
    first = 0
    for one in read_ahead(_in_pieces(path_1, reads // 2)):
        two = next(second, None)
        if two is None or two.count < one.count:
            found = first + (two.count if two else 0)
            raise InputError(
                f"{path_2}: the file ends after {found:,} reads, but {path_1} has more: "
                "both files of a pair need the same reads in the same order"
            )
        if one.count < two.count:
            raise _longer(path_1, path_2, first + one.count)
        yield _interleave(path_1, path_2, one, two, first)
        first += one.count
    if next(second, None) is not None:
        raise _longer(path_1, path_2, first)


def interleaved_chunks(path, reads: int = READS_A_CHUNK) -> Iterator[ReadChunk]:
    """The pairs of one file in which both ends stand one after the other."""
    first = 0
    for batch in _in_pieces(path, reads):
        if batch.count % 2:
            raise InputError(
                f"{path}: {2 * first + batch.count:,} reads are an odd number, so they are not "
                "pairs one after the other: leave --interleaved out, or mend the file"
            )
        names = _names(path, batch, 2 * first)
        differing = _first_difference(batch.text, names[0::2], batch.text, names[1::2])
        if differing >= 0:
            one, two = batch.name(2 * differing), batch.name(2 * differing + 1)
            raise InputError(
                f"{path}, read {2 * (first + differing) + 1:,}: the names {one!r} and {two!r} "
                "differ: with --interleaved both ends of a pair stand one after the other"
            )
        yield ReadChunk(
            batch.codes, batch.offsets, batch.qualities, batch.text, names[0::2].copy(), 2, first,
            _comments(batch),
        )  # fmt: skip
        first += batch.count // 2


def _longer(path_1, path_2, count: int) -> InputError:
    return InputError(
        f"{path_1}: the file ends after {count:,} reads, but {path_2} has more: "
        "both files of a pair need the same reads in the same order"
    )


def _in_pieces(path, count: int) -> Iterator[SequenceBatch]:
    """The records of a file in batches of exactly `count`, but for the last."""
    waiting: list[SequenceBatch] = []
    n_waiting = 0
    for batch in read_sequences(path):
        while n_waiting + batch.count >= count:
            cut = count - n_waiting
            yield _join([*waiting, _slice(batch, 0, cut)])
            batch = _slice(batch, cut, batch.count)
            waiting, n_waiting = [], 0
        if batch.count:
            waiting.append(batch)
            n_waiting += batch.count
    if waiting:
        yield _join(waiting)


def _slice(batch: SequenceBatch, start: int, stop: int) -> SequenceBatch:
    first, last = batch.offsets[start], batch.offsets[stop]
    return SequenceBatch(
        codes=batch.codes[first:last],
        offsets=batch.offsets[start : stop + 1] - first,
        qualities=None if batch.qualities is None else batch.qualities[first:last],
        text=batch.text,
        headers=batch.headers[start:stop],
        first_record=batch.first_record + start,
    )


def _join(batches: list[SequenceBatch]) -> SequenceBatch:
    if len(batches) == 1:
        return batches[0]
    base_shift = np.cumsum([0] + [batch.offsets[-1] for batch in batches])
    text_shift = np.cumsum([0] + [batch.text.size for batch in batches])
    qualities = [batch.qualities for batch in batches]
    return SequenceBatch(
        codes=np.concatenate([batch.codes for batch in batches]),
        offsets=np.concatenate(
            [[0], *(b.offsets[1:] + s for b, s in zip(batches, base_shift, strict=False))]
        ),
        qualities=None if qualities[0] is None else np.concatenate(qualities),
        text=np.concatenate([batch.text for batch in batches]),
        headers=np.concatenate(
            [batch.headers + s for batch, s in zip(batches, text_shift, strict=False)]
        ),
        first_record=batches[0].first_record,
    )


def _interleave(path_1, path_2, one: SequenceBatch, two: SequenceBatch, first: int) -> ReadChunk:
    if (one.qualities is None) != (two.qualities is None):
        raise InputError(f"{path_1} and {path_2}: one is FASTA and the other FASTQ")
    lengths = np.column_stack([np.diff(one.offsets), np.diff(two.offsets)]).reshape(-1)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    names, mates = _names(path_1, one, first), _names(path_2, two, first)
    differing = _first_difference(one.text, names, two.text, mates)
    if differing >= 0:
        raise InputError(
            f"{path_1} and {path_2}, read {first + differing + 1:,}: the names "
            f"{one.name(differing)!r} and {two.name(differing)!r} differ: both files of a pair "
            "need the same reads in the same order"
        )
    codes = np.empty(offsets[-1], np.uint8)
    _weave(one.codes, one.offsets, two.codes, two.offsets, offsets, codes)
    qualities = None
    if one.qualities is not None:
        qualities = np.empty(offsets[-1], np.uint8)
        _weave(one.qualities, one.offsets, two.qualities, two.offsets, offsets, qualities)
    comments = np.stack([_comments(one), _comments(two)], axis=1).reshape(-1, 2)
    return ReadChunk(codes, offsets, qualities, one.text, names, 2, first, comments, two.text)


def _names(path, batch: SequenceBatch, first_read: int) -> np.ndarray:
    """Where the name of every read begins and ends in the batch's text."""
    names = np.empty_like(batch.headers)
    _name_spans(batch.text, batch.headers, names)
    lengths = names[:, 1] - names[:, 0]
    for i in np.flatnonzero(lengths > LONGEST_NAME)[:1]:
        raise InputError(
            f"{path}, read {first_read + i + 1:,}: its name has {lengths[i]:,} characters, and SAM "
            f"allows {LONGEST_NAME}: shorten it"
        )
    return names


def _comments(batch: SequenceBatch) -> np.ndarray:
    spans = np.empty_like(batch.headers)
    _comment_spans(batch.text, batch.headers, spans)
    return spans


@numba.njit(cache=True, nogil=True)
def _comment_spans(text, headers, spans):
    """What follows the first blank or tab of every header; nothing where there is none."""
    for i in range(len(headers)):
        start, stop = headers[i, 0], headers[i, 1]
        while start < stop and text[start] != 32 and text[start] != 9:
            start += 1
        spans[i, 0] = min(start + 1, stop)
        spans[i, 1] = stop


@numba.njit(cache=True, nogil=True)
def _name_spans(text, headers, names):
    """The first word of every header, without a /1 or /2 at its end."""
    for i in range(len(headers)):
        start, stop = headers[i, 0], headers[i, 1]
        at = start
        while at < stop and text[at] != 32 and text[at] != 9:
            at += 1
        if at - start > 2 and text[at - 2] == 47 and (text[at - 1] == 49 or text[at - 1] == 50):
            at -= 2
        names[i, 0] = start
        names[i, 1] = at


@numba.njit(cache=True, nogil=True)
def _first_difference(text_1, names_1, text_2, names_2):
    for i in range(len(names_1)):
        length = names_1[i, 1] - names_1[i, 0]
        if names_2[i, 1] - names_2[i, 0] != length:
            return i
        for at in range(length):
            if text_1[names_1[i, 0] + at] != text_2[names_2[i, 0] + at]:
                return i
    return -1


@numba.njit(cache=True, nogil=True)
def _weave(values_1, offsets_1, values_2, offsets_2, offsets, out):
    for i in range(offsets_1.size - 1):
        at = offsets[2 * i]
        for source in range(offsets_1[i], offsets_1[i + 1]):
            out[at] = values_1[source]
            at += 1
        for source in range(offsets_2[i], offsets_2[i + 1]):
            out[at] = values_2[source]
            at += 1
