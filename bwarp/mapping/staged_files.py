"""The chunk files between the stages of mapping: one part for every chunk of reads.

    chunk_reads         reads         bases, qualities, names and comments
    seed_chunks         seed rows     SA rows of the seeds of the first round
    locate_chunks       candidates    their positions, grouped by strand and diagonal
    extend_candidates   scored hits   after all seeding rounds
    write_alignments    alignments, as by `bwarp.mapping.pipeline`

A part names its chunk by the number of its first template and a checksum of its bases. The
parameters are options of seed_chunks and are stored in the header of the later files, so that all
stages have the same.

    packed     ACGTACGT ...                bases, 2 bits each; `ambiguous` lists the others
    letters    r1 r2 ... | comments of reads 1 | comments of reads 2           and their lengths
"""

from collections.abc import Iterator
from functools import partial
from itertools import zip_longest

import numba
import numpy as np

from bwarp.errors import InputError
from bwarp.io.checksum import crc32
from bwarp.io.chunk_files import ChunkFileReader, ChunkFileWriter
from bwarp.mapping.extension.extension_cpu import both_strands
from bwarp.mapping.extension.scored_hits_cpu import ScoredHits
from bwarp.mapping.parameters import MappingParameters, SeedRound
from bwarp.mapping.pipeline import ScoredChunk, UnscoredChunk
from bwarp.mapping.reads.read_chunks import ReadChunk
from bwarp.mapping.seeds.candidates_cpu import Candidates
from bwarp.mapping.seeds.seed_selection_cpu import SeedRows
from bwarp.sequence import AMBIGUOUS, pack, unpack

__all__ = [
    "read_parameters",
    "stored_candidates",
    "stored_hits",
    "stored_reads",
    "stored_rows",
    "write_candidates",
    "write_hits",
    "write_reads",
    "write_rows",
]


def read_parameters(reader: ChunkFileReader) -> MappingParameters:
    """The parameters in a file's header."""
    try:
        return MappingParameters(
            **{name: _value(stored) for name, stored in reader.holds["parameters"].items()}
        )
    except (KeyError, TypeError, AttributeError):
        raise InputError(
            f"{reader.path}: was written by another version of bwarp: make it again"
        ) from None


def _value(stored):
    if isinstance(stored, dict):
        return SeedRound(**stored)
    return tuple(stored) if isinstance(stored, list) else stored


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


def write_rows(writer: ChunkFileWriter, chunk: ReadChunk, rows: SeedRows) -> None:
    """Write the SA rows of a chunk's seeds."""
    lengths = np.diff(chunk.offsets).astype(np.int32)
    writer.write("rows", chunk=_tag(chunk), lengths=lengths, **rows._asdict())


def stored_rows(reader: ChunkFileReader) -> Iterator[tuple[np.ndarray, np.ndarray, SeedRows]]:
    """Of every chunk its tag, the offsets of its reads (int64), and the rows of their seeds."""
    for _, arrays in reader:
        yield arrays.pop("chunk"), _offsets(arrays.pop("lengths")), SeedRows(**arrays)


def write_candidates(writer: ChunkFileWriter, tag: np.ndarray, candidates: Candidates) -> None:
    """Write the candidates of the chunk that has this tag."""
    writer.write("candidates", chunk=tag, **candidates._asdict())


def stored_candidates(
    reads: ChunkFileReader, reader: ChunkFileReader
) -> Iterator[tuple[ReadChunk, Candidates]]:
    """The chunks of a file of reads, with their candidates from another file."""
    for chunk, arrays in _beside(reads, reader):
        yield chunk, Candidates(**arrays)


def write_hits(writer: ChunkFileWriter, scored: ScoredChunk) -> None:
    """Write the scored hits of a chunk's reads."""
    more = {"unlocated": scored.unlocated, "searched": scored.searched}
    writer.write("scored hits", chunk=_tag(scored.chunk), **more, **scored.hits._asdict())


def stored_hits(reads: ChunkFileReader, reader: ChunkFileReader) -> Iterator[UnscoredChunk]:
    """The chunks of a file of reads, and functions that add their hits from another file."""

    def with_hits(chunk: ReadChunk, arrays: dict[str, np.ndarray]) -> ScoredChunk:
        both = both_strands(chunk.codes, chunk.offsets)
        more = {name: arrays.pop(name) for name in ("unlocated", "searched")}
        return ScoredChunk(chunk, both, ScoredHits(**arrays), **more)

    for chunk, arrays in _beside(reads, reader):
        yield chunk, partial(with_hits, chunk, arrays)


def _beside(
    reads: ChunkFileReader, reader: ChunkFileReader
) -> Iterator[tuple[ReadChunk, dict[str, np.ndarray]]]:
    """The chunks of a file of reads and the frames of another file, which must belong to them."""
    for chunk, frame in zip_longest(stored_reads(reads), reader):
        if not (chunk and frame and np.array_equal(frame[1].pop("chunk"), _tag(chunk))):
            raise InputError(
                f"{reader.path}: these {reader.holds['holds']} are of other reads than those of "
                f"{reads.path}: give the file of reads that was searched"
            )
        yield chunk, frame[1]


def _tag(chunk: ReadChunk) -> np.ndarray:
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
