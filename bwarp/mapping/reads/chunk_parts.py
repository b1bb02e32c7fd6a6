"""Parts of chunks of reads, which several threads can map, and chunks joined for a GPU."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from bwarp.mapping.reads.read_chunks import ReadChunk
from bwarp.runtime.ranges import joined_stretches

__all__ = ["chunk_parts", "go_together", "joined_chunks", "part_of_chunk", "parts_between"]


def chunk_parts(chunk: ReadChunk, most_reads: int) -> Iterator[ReadChunk]:
    """The templates of a chunk in chunks of up to so many reads, which share its memory."""
    step = max(1, most_reads // chunk.ends)
    for first in range(0, chunk.n_templates, step):
        yield part_of_chunk(chunk, first, min(first + step, chunk.n_templates))


def part_of_chunk(chunk: ReadChunk, first: int, stop: int) -> ReadChunk:
    """Templates `first` to `stop` of a chunk, which share its memory."""
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
    """The parts of chunks that hold reads `first` to `stop` of all, whole templates."""
    begin = 0
    for chunk in chunks:
        low, high = max(first - begin, 0), min(stop - begin, chunk.n_reads)
        if low < high:
            yield part_of_chunk(chunk, low // chunk.ends, high // chunk.ends)
        begin += chunk.n_reads


def go_together(one: ReadChunk, following: ReadChunk) -> bool:
    """Whether a chunk and the one after it can be joined: FASTA has no qualities, and parts of
    reads that are missing leave gaps between the numbers of templates.
    """
    return (
        one.ends == following.ends
        and (one.qualities is None) == (following.qualities is None)
        and one.first_template + one.n_templates == following.first_template
    )


def joined_chunks(
    chunks: Sequence[ReadChunk], codes: np.ndarray, qualities: np.ndarray
) -> ReadChunk:
    """Consecutive chunks that are alike (`go_together`) as one, without comments.

    Parameters
    ----------
    codes, qualities : ndarray, dtype=uint8
        Memory for theirs.
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
    return replace(
        chunks[0],
        codes=codes,
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        qualities=qualities if has_qualities else None,
        text=np.concatenate(texts),
        names=np.column_stack([ends[:-1], ends[1:]]),
        comments=None,
        mate_text=None,
    )
