"""Parts of a chunk of reads: chunks of fewer templates, which several threads can map."""

from collections.abc import Iterator
from dataclasses import replace

from bwarp.mapping.reads.read_chunks import ReadChunk

__all__ = ["chunk_parts"]


def chunk_parts(chunk: ReadChunk, most_reads: int) -> Iterator[ReadChunk]:
    """The templates of a chunk in chunks of up to so many reads, which share its memory."""
    step = max(1, most_reads // chunk.ends)
    for first in range(0, chunk.n_templates, step):
        yield _templates(chunk, first, min(first + step, chunk.n_templates))


def _templates(chunk: ReadChunk, first: int, stop: int) -> ReadChunk:
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
    )
