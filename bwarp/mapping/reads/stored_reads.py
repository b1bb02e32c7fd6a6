"""Reads in a chunk file: one part for every chunk of them.

packed     ACGTACGT ...                bases, 2 bits each; `ambiguous` lists the others
letters    r1 r2 ... | comments of reads 1 | comments of reads 2           and their lengths
"""

from collections.abc import Iterator

import numba
import numpy as np

from bwarp.io.checksum import crc32
from bwarp.io.chunk_files import ChunkFileReader, ChunkFileWriter
from bwarp.mapping.reads.read_chunks import ReadChunk
from bwarp.sequence import AMBIGUOUS, pack, unpack

__all__ = ["chunk_tag", "stored_reads", "write_reads"]


def write_reads(writer: ChunkFileWriter, chunk: ReadChunk) -> None:
    """Write a chunk of reads."""
    texts = [chunk.text, chunk.text, chunk.text if chunk.mate_text is None else chunk.mate_text]
    spans = [chunk.names]
    if chunk.comments is not None:
        spans += [chunk.comments[end :: chunk.ends] for end in range(chunk.ends)]
    arrays = {} if chunk.qualities is None else {"qualities": chunk.qualities}
    writer.write(
        "reads",
        numbers=np.array([chunk.ends, chunk.first_template, chunk.n_templates]),
        lengths=np.diff(chunk.offsets).astype(np.int32),
        packed=pack(chunk.codes),
        ambiguous=np.flatnonzero(chunk.codes == AMBIGUOUS),
        letters=np.concatenate([_cut(*pair) for pair in zip(texts, spans, strict=False)]),
        letter_lengths=np.concatenate([np.diff(part)[:, 0] for part in spans]).astype(np.int32),
        **arrays,
    )


def stored_reads(reader: ChunkFileReader) -> Iterator[ReadChunk]:
    """The chunks of a file of reads."""
    for _, arrays in reader:
        ends, first_template, n = arrays["numbers"].tolist()
        offsets = _offsets(arrays["lengths"])
        codes = unpack(arrays["packed"], 0, int(offsets[-1]))
        codes[arrays["ambiguous"]] = AMBIGUOUS
        bounds = _offsets(arrays["letter_lengths"])
        spans = np.column_stack([bounds[:-1], bounds[1:]])
        comments = spans[n:].reshape(-1, n, 2).swapaxes(0, 1).reshape(-1, 2)
        yield ReadChunk(
            codes=codes,
            offsets=offsets,
            qualities=arrays.get("qualities"),
            text=arrays["letters"],
            names=spans[:n],
            ends=ends,
            first_template=first_template,
            comments=comments if comments.size else None,
        )


def chunk_tag(chunk: ReadChunk) -> np.ndarray:
    """What identifies a chunk: its first template, and checksums of its bases and lengths."""
    sums = crc32(chunk.codes), crc32(chunk.offsets)
    return np.array([chunk.ends, chunk.first_template, *sums], np.int64)


def _offsets(lengths: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])


@numba.njit(cache=True, nogil=True)
def _cut(text, spans):
    """Pieces of a text, one after another."""
    pieces = np.empty((spans[:, 1] - spans[:, 0]).sum(), np.uint8)
    out = 0
    for i in range(len(spans)):
        for at in range(spans[i, 0], spans[i, 1]):
            pieces[out] = text[at]
            out += 1
    return pieces
