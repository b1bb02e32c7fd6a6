"""Cut a reference into overlapping chunks, each with an index of its own, as Drozd et al. propose.

An index in chunks serves references whose whole index exceeds the memory of a GPU. A chunk is a
stretch of the genome from `start` to `stop`, and is searched together with the bases that follow:

    genome     |----- chunk 1 -----|----- chunk 2 -----|----- chunk 3 -----|
    searched   |--------------------==|
                                   |--------------------==|
                                                       |-------------------|

A hit or match belongs to the chunk in which it starts. `bwarp.mems.reference_chunks` and
`bwarp.seeding.chunk_hits` join those of all chunks, with the same result as one index.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bwarp.counted import counted
from bwarp.errors import InputError
from bwarp.index.description import OVERLAP
from bwarp.index.fm_index import FMIndex
from bwarp.index.store import StoredIndex, StoredReference
from bwarp.reference import Reference, codes_between, make_reference

#: Maximum number of chunks of an index; each has eight files.
MOST_CHUNKS = 1000

#: Chunks do not need the checksums of contigs, which those of the whole reference have.
_NO_MD5 = "0" * 32


@dataclass(frozen=True)
class Chunk:
    """A stretch of a genome, from `start` to `stop`, plus the overlap after it, up to `end`.

    Attributes
    ----------
    start, stop, end : int
        Genome positions.
    """

    start: int
    stop: int
    end: int


def chunks_of(reference: Reference, chunk_bases: int, overlap: int) -> Iterator[Chunk]:
    """Cut a genome into chunks of `chunk_bases`, leaving out those without A, C, G or T."""
    starts = reference.segment_genome.astype(np.int64)
    stops = starts + np.diff(reference.segment_text) - 1
    for start in range(0, reference.n_bases, chunk_bases):
        stop = min(start + chunk_bases, reference.n_bases)
        end = min(stop + overlap, reference.n_bases)
        if np.searchsorted(stops, start, side="right") < np.searchsorted(starts, end):
            yield Chunk(start, stop, end)


def stretch(reference: Reference, start: int, end: int, threads: int = 1) -> Reference:
    """Return the bases between two genome positions as a reference; contigs are cut as well."""
    starts = np.clip(reference.contig_starts, start, end) - start
    md5 = (_NO_MD5,) * len(reference.names)
    codes = codes_between(reference, start, end, threads)
    return make_reference(reference.names, starts, codes, md5, threads)


class ChunkedIndex(StoredReference):
    """An index in chunks, in a folder.

    Attributes
    ----------
    chunks : list of Chunk
    indexes : list of StoredIndex
        The index of each chunk.
    """

    def __init__(
        self,
        folder: Path,
        description: dict,
        files: dict[str, np.ndarray | None],
        types: dict[str, tuple[np.dtype, tuple[int, ...]]],
        indexes: list[StoredIndex],
    ):
        super().__init__(folder, description, files, types)
        n_bases = sum(contig["length"] for contig in description["contigs"])
        self.chunks = [
            Chunk(chunk["start"], chunk["stop"], min(chunk["stop"] + OVERLAP, n_bases))
            for chunk in description["chunks"]
        ]
        self.indexes = indexes

    @property
    def has_reverse(self) -> bool:
        return all(index.has_reverse for index in self.indexes)

    @property
    def chunk_bases(self) -> int:
        """The number of bases per chunk; the last chunk may have fewer."""
        return self.description["chunk_bases"]

    @property
    def longest_text(self) -> int:
        """The text length of the longest chunk."""
        return max(index.description["text_length"] for index in self.indexes)

    def checked(self, number: int) -> StoredIndex:
        """Return the index of a chunk that has the segments of its stretch of the reference.

        All hits in it then lie within segments of the reference.
        """
        chunk, reference = self.chunks[number], self.indexes[number].reference
        starts = self.reference.segment_genome.astype(np.int64)
        stops = starts + np.diff(self.reference.segment_text) - 1
        first = np.searchsorted(stops, chunk.start, side="right")
        last = np.searchsorted(starts, chunk.end)
        starts = np.maximum(starts[first:last], chunk.start) - chunk.start
        stops = np.minimum(stops[first:last], chunk.end) - chunk.start
        if reference.n_bases != chunk.end - chunk.start or not (
            np.array_equal(reference.segment_genome, starts)
            and np.array_equal(np.diff(reference.segment_text) - 1, stops - starts)
        ):
            raise InputError(
                f"{self.indexes[number].folder}: the index is invalid (its contigs are not those "
                "of the chunk): build it again"
            )
        return self.indexes[number]


@dataclass(frozen=True)
class PreparedChunk:
    """A chunk whose index is ready for searches.

    Attributes
    ----------
    chunk : Chunk
    ready : function
        Returns the prepared index; it may have to be copied to the GPU first.
    """

    chunk: Chunk
    ready: Callable[[], Any] = field(repr=False)


@dataclass(frozen=True)
class PreparedChunks:
    """An index in chunks, ready for searches.

    Attributes
    ----------
    reference : Reference
        The whole reference.
    longest_text : int
        The text length of the longest chunk.
    on_each : list of list of PreparedChunk
        The chunks on each GPU, in order; one list on the CPU.
    plan : str
        Describes the use of GPU memory.
    """

    reference: Reference = field(repr=False)
    longest_text: int
    on_each: list[list[PreparedChunk]]
    plan: str


#: Prepares the index of a chunk, on a GPU within a share of its free memory.
Prepare = Callable[[FMIndex, Chunk, float], Any]


def prepare_chunks(
    index: ChunkedIndex, prepare: Prepare, backend: str, gpus: int = 1
) -> PreparedChunks:
    """Prepare all chunks, once for many searches.

    Parameters
    ----------
    gpus : int
        Up to this many GPUs share the chunks; with 1, the current GPU gets all.
    """
    numbers = np.arange(len(index.chunks))
    if backend != "cuda":
        return _prepared(index, [_prepared_here(index, prepare, numbers)], "")
    from bwarp.gpu.several_gpus import on_each_of, visible_gpus

    parts = np.array_split(numbers, min(visible_gpus(gpus), numbers.size))
    on_each = on_each_of([partial(_prepared_here, index, prepare, part) for part in parts])
    first = on_each[0][0].ready()
    chunks = counted(numbers.size, "chunk")
    plan = f"{chunks}, up to {len(on_each[0])} per GPU; the first: {first.plan}"
    return _prepared(index, on_each, plan)


def prepare_in_turn(index: ChunkedIndex, prepare: Prepare) -> PreparedChunks:
    """Prepare each chunk whenever it is searched, so that the GPU holds one at a time."""
    texts = [stored.description["text_length"] for stored in index.indexes]
    chunks = [
        PreparedChunk(chunk, partial(prepare, index.checked(number), chunk, 1.0))
        for number, chunk in enumerate(index.chunks)
    ]
    # Report at once if the largest does not fit.
    largest = chunks[int(np.argmax(texts))].ready()
    plan = f"{counted(len(chunks), 'chunk')}, one at a time; the largest: {largest.plan}"
    return _prepared(index, [chunks], plan)


def _prepared_here(
    index: ChunkedIndex, prepare: Prepare, numbers: np.ndarray
) -> list[PreparedChunk]:
    """Prepare chunks for the current GPU or the CPU; each gets an equal share of the memory."""
    prepared = []
    for waiting, number in zip(range(numbers.size, 0, -1), numbers.tolist(), strict=True):
        chunk = index.chunks[number]
        ready = prepare(index.checked(number), chunk, 1 / waiting)
        prepared.append(PreparedChunk(chunk, lambda ready=ready: ready))
    return prepared


def _prepared(index: ChunkedIndex, on_each: list[list[PreparedChunk]], plan: str) -> PreparedChunks:
    return PreparedChunks(index.reference, index.longest_text, on_each, plan)
