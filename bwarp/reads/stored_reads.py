"""Store reads in a chunk file with one part per chunk. A folder of such files holds a unit.

packed     ACGTACGT ...                bases, 2 bits each; `ambiguous` lists the others
letters    r1 r2 ... | comments of reads 1 | comments of reads 2           with their lengths
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from bwarp.bam.header import LONGEST_READ_NAME
from bwarp.counted import counted
from bwarp.errors import InputError
from bwarp.io.chunk_files import (
    ChunkFileReader,
    Column,
    PackedChunk,
    crc32,
    open_chunk_file,
    packed_chunk,
)
from bwarp.reads.read_chunks import LONGEST_READ, ReadChunk
from bwarp.runtime.threads import joined_stretches
from bwarp.sequence import AMBIGUOUS, pack, unpack

#: The arrays that steps need only to write reads: a searching step opens a file without them.
TEXTS = ("qualities", "letters", "letter_lengths")

#: Maximum length of a name or a comment.
_MOST_LETTERS = (1 << 31) - 1


def packed_reads(chunk: ReadChunk) -> PackedChunk:
    """Pack a chunk of reads for a file."""
    texts = [chunk.text, chunk.text, chunk.text if chunk.mate_text is None else chunk.mate_text]
    spans = [chunk.names]
    if chunk.comments is not None:
        spans += [chunk.comments[end :: chunk.ends] for end in range(chunk.ends)]
    lengths = [part[:, 1] - part[:, 0] for part in spans]
    arrays = {"qualities": chunk.qualities, "orphans": chunk.orphans}
    arrays = {name: array for name, array in arrays.items() if array is not None}
    return packed_chunk(
        "reads",
        numbers=np.array([chunk.ends, chunk.first_template, chunk.n_templates]),
        lengths=np.diff(chunk.offsets).astype(np.int32),
        packed=pack(chunk.codes),
        ambiguous=np.flatnonzero(chunk.codes == AMBIGUOUS),
        letters=np.concatenate(
            [
                joined_stretches(text, part[:, 0], _offsets(own))
                for text, part, own in zip(texts, spans, lengths, strict=False)
            ]
        ),
        letter_lengths=np.concatenate(lengths).astype(np.int32),
        **arrays,
    )


def stored_reads(reader: ChunkFileReader) -> Iterator[ReadChunk]:
    """Yield the chunks of a file of reads.

    If the file was opened without `TEXTS`, reads have neither qualities nor names.

    Raises
    ------
    InputError
        If `packed_reads` did not write the file.
    """
    for kind, arrays in reader:
        _check(reader, kind, arrays)
        ends, first_template, n = arrays["numbers"].tolist()
        offsets = _offsets(arrays["lengths"])
        codes = unpack(arrays["packed"], 0, int(offsets[-1]))
        codes[arrays["ambiguous"]] = AMBIGUOUS
        text, spans = np.empty(0, np.uint8), np.zeros((n, 2), np.int64)
        if "letters" not in reader.without:
            text, bounds = arrays["letters"], _offsets(arrays["letter_lengths"])
            spans = np.column_stack([bounds[:-1], bounds[1:]])
        comments = spans[n:].reshape(-1, n, 2).swapaxes(0, 1).reshape(-1, 2)
        yield ReadChunk(
            codes=codes,
            offsets=offsets,
            qualities=arrays.get("qualities"),
            text=text,
            names=spans[:n],
            ends=ends,
            first_template=first_template,
            comments=comments if comments.size else None,
            orphans=arrays.get("orphans"),
        )


def _check(reader: ChunkFileReader, kind: str, arrays: dict[str, np.ndarray]) -> None:
    """Raise an error for a chunk of reads that would cause indexing beyond the ends of arrays, or
    change lines of text."""
    if kind != "reads":
        raise reader.unlike(f"a chunk of {kind}")
    reader.check(arrays, numbers=Column(np.int64, (3,), most=1 << 40))
    ends, _, n = arrays["numbers"].tolist()
    if not (1 <= ends <= 2 and n):
        raise reader.unlike(f"numbers: {counted(n, 'template')} of {counted(ends, 'read')}")
    reader.check(arrays, lengths=Column(np.int32, (ends * n,), most=LONGEST_READ))
    lengths = arrays["lengths"]
    n_bases = int(lengths.sum(dtype=np.int64))
    reader.check(
        arrays,
        packed=Column(np.uint64, (n_bases // 32 + 2,)),
        ambiguous=Column(np.int64, most=n_bases - 1),
    )
    if "qualities" in arrays:
        reader.check(arrays, qualities=Column(np.uint8, (n_bases,), 33, 126))
    if "orphans" in arrays:
        reader.check(arrays, orphans=Column(np.bool_, (n,), most=1))
        if ends == 1 or lengths[1::2][arrays["orphans"]].any():
            raise reader.unlike("orphans: single reads that have a mate")
    if "letters" not in reader.without:
        _check_letters(reader, arrays, n)


def _check_letters(reader: ChunkFileReader, arrays: dict[str, np.ndarray], n: int) -> None:
    """Raise an error for names and comments that SAM does not allow."""
    lengths = arrays["lengths"]
    reader.check(arrays, letter_lengths=Column(np.int32, most=_MOST_LETTERS))
    letter_lengths = arrays["letter_lengths"]
    letter_count = int(letter_lengths.sum(dtype=np.int64))
    reader.check(arrays, letters=Column(np.uint8, (letter_count,)))
    if letter_lengths.size not in (n, n + lengths.size):
        raise reader.unlike(f"letter_lengths: shape {letter_lengths.shape}")
    bounds = _offsets(letter_lengths[:n])
    names, comments = np.split(arrays["letters"], bounds[-1:])
    firsts = names[bounds[:-1][letter_lengths[:n] > 0]]
    if (
        letter_lengths[:n].max() > LONGEST_READ_NAME
        or ((names < ord("!")) | (names > ord("~"))).any()
        or (firsts == ord("@")).any()
        or (comments == ord("\n")).any()
    ):
        raise reader.unlike("letters: names that SAM does not allow")


def batches_in(folder: str | os.PathLike) -> list[str]:
    """Return the names of the files in a folder of batches, in order; none if it is missing."""
    names = [path.name for path in Path(folder).glob("*.reads")] if Path(folder).is_dir() else []
    numbers = [int(name[:-6]) for name in names if re.fullmatch(r"(0|[1-9][0-9]*)\.reads", name)]
    return [f"{number}.reads" for number in sorted(numbers)]


def part_of_batches(folder: str | os.PathLike, part: int, parts: int) -> list[Path]:
    """Return the files of one of `parts` parts of a folder of batches, about as many in each.

    `part` is from 1 to `parts`. Parts are empty if there are fewer files than parts.

    Raises
    ------
    InputError
        If the folder has no files of reads.
    """
    os.stat(folder)
    names = batches_in(folder)
    if not names:
        raise InputError(f"{folder}: not a folder of reads: make one with bwarp batch-reads")
    first, last = ((part - 1 + end) * len(names) // parts for end in (0, 1))
    return [Path(folder, name) for name in names[first:last]]


def has_tags(folder: str | os.PathLike) -> bool:
    """Return whether the comments of reads in a folder of batches are tags of BAM or CRAM."""
    with open_chunk_file(part_of_batches(folder, 1, 1)[0], "reads") as reader:
        return reader.holds.get("has_tags", False)


def read_groups_in(folder: str | os.PathLike) -> list[str]:
    """Return the @RG lines of the input files of a folder of batches."""
    with open_chunk_file(part_of_batches(folder, 1, 1)[0], "reads") as reader:
        return reader.holds.get("read_groups", [])


def first_template_of(path: str | os.PathLike) -> int:
    """Return the number of the first template of a file of reads in its unit."""
    with open_chunk_file(path, "reads") as reader:
        return next((chunk.first_template for chunk in stored_reads(reader)), 0)


def reads_of_files(paths: Sequence[str | os.PathLike], reads: int) -> Iterator[ReadChunk]:
    """Yield the reads of files in chunks of up to `reads` reads, or in larger stored chunks."""
    waiting: list[ReadChunk] = []
    for path in paths:
        with open_chunk_file(path, "reads") as reader:
            for chunk in stored_reads(reader):
                n_waiting = sum(one.n_reads for one in waiting)
                unlike = waiting and _kind(waiting[0]) != _kind(chunk)
                if waiting and (unlike or n_waiting + chunk.n_reads > reads):
                    yield _joined(waiting)
                    waiting = []
                waiting.append(chunk)
    if waiting:
        yield _joined(waiting)


def _kind(chunk: ReadChunk) -> tuple[int, bool, bool]:
    """Return the properties that joined chunks must share."""
    return chunk.ends, chunk.qualities is None, chunk.comments is None


def _joined(chunks: list[ReadChunk]) -> ReadChunk:
    """Join consecutive chunks."""
    if len(chunks) == 1:
        return chunks[0]
    shifts = _offsets([chunk.text.size for chunk in chunks])[:-1]
    first = chunks[0]
    comments = qualities = orphans = None
    if first.comments is not None:
        comments = np.concatenate(
            [one.comments + at for one, at in zip(chunks, shifts, strict=True)]
        )
    if first.qualities is not None:
        qualities = np.concatenate([chunk.qualities for chunk in chunks])
    if any(chunk.orphans is not None for chunk in chunks):
        none = [np.zeros(chunk.n_templates, bool) for chunk in chunks]
        orphans = [chunk.orphans for chunk in chunks]
        orphans = np.concatenate(
            [a if a is not None else b for a, b in zip(orphans, none, strict=True)]
        )
    return replace(
        first,
        codes=np.concatenate([chunk.codes for chunk in chunks]),
        offsets=_offsets(np.concatenate([np.diff(chunk.offsets) for chunk in chunks])),
        qualities=qualities,
        text=np.concatenate([chunk.text for chunk in chunks]),
        names=np.concatenate([one.names + at for one, at in zip(chunks, shifts, strict=True)]),
        comments=comments,
        orphans=orphans,
    )


def chunk_tag(chunk: ReadChunk) -> np.ndarray:
    """Return the identity of a chunk: its first template, and checksums of bases and lengths."""
    sums = crc32(chunk.codes), crc32(chunk.offsets)
    return np.array([chunk.ends, chunk.first_template, *sums], np.int64)


def _offsets(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
