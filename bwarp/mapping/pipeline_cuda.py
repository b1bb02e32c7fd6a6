"""Map chunks of reads to alignments with a GPU.

If possible, a GPU finishes the reads and writes the records of the file (plain_reads_cuda):

    read ahead    chunks 9, 8, 7
    GPU           chunks 6, 5: hits, primary hits, alignments    chunks 2, 1: records
    threads       chunks 4, 3: the few reads that the GPU leaves to the host

Otherwise threads do so, with the hits found by the GPU:

    read ahead    chunks 9, 8
    GPU           chunks 7, 6, 5, 4: scored hits of reads and of their mates
    threads       chunks 3, 2, 1: primary hits, alignments, records          chunk 0: yielded

The GPU takes all chunks that are ready when it becomes free: launching a kernel takes the host
about as long as the GPU needs for thousands of reads. One group of chunks at a time uses the GPU:
two would need more memory and, as measured, save no time. Meanwhile other threads copy reads to
pinned memory and hits from there; copies between pinned memory and the GPU take a tenth of the
time.

With several GPUs, each has its own queue and pinned memory, and a group goes to the GPU with the
fewest groups.

If the GPU's memory is too small for a group, the group is mapped in parts, and so are later ones:
reads are independent, except for the two of a pair.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import chain
from typing import NamedTuple

import numpy as np

from bwarp.bam.sorted_blocks_cuda import records_on_host
from bwarp.errors import GpuMemoryError
from bwarp.gpu.pieces import Pieces
from bwarp.gpu.several_gpus import LeastBusy
from bwarp.gpu.transfers import PinnedBuffer, PinnedBuffers
from bwarp.index.fm_index import FMIndex
from bwarp.mapping.extension_cpu import Genome, both_strands
from bwarp.mapping.first_pairs import first_chunks
from bwarp.mapping.insert_size import InsertSize, given_insert_size
from bwarp.mapping.parameters import MappingParameters, of_ends
from bwarp.mapping.pipeline import (
    EncodedChunk,
    Encoder,
    MappedChunk,
    ScoredChunk,
    estimate_insert_size,
    finish_chunk,
)
from bwarp.mapping.plain_reads_cuda import (
    MOST_BASES_OF_GROUP,
    NO_RECORDS,
    PlainReads,
    are_plain,
    finish_reads,
    hits_of_marked,
    longest_read,
    marked_reads,
    records_of_host,
    texts_of,
    write_records,
)
from bwarp.mapping.scored_hits_cpu import ScoredHits, joined, part_of
from bwarp.mapping.scored_hits_cuda import hits_on_host
from bwarp.mapping.seeding_rounds_cuda import (
    DeviceData,
    add_mates,
    score_reads,
)
from bwarp.reads.read_chunks import (
    ReadChunk,
    chunk_parts,
    go_together,
    joined_chunks,
    parts_between,
)
from bwarp.records.bam_records_cuda import (
    RecordConstants,
    record_constants,
    record_numbers,
)
from bwarp.records.output_options import RecordForm
from bwarp.records.statistics import add_counts
from bwarp.records.statistics_cuda import counts_of_plain
from bwarp.runtime.chunks import in_order, read_ahead_in_lists
from bwarp.runtime.threads import copied
from bwarp.runtime.timeline import on_timeline, span

#: Reads that a thread maps at a time; with fewer, sixteen threads wait for the GIL.
READS_A_CHUNK = 1 << 18

#: Maximum number of chunks in work, for any number of threads, to limit memory.
MOST_IN_WORK = 12

#: Reads of the first and the last chunks.
FEW_READS = 1 << 16

#: Groups in work per GPU: one on the GPU, and one being copied.
GROUPS = 2

#: Groups in work per GPU if it finishes them: one on the GPU, one being copied, and one of which
#: the host finishes some reads.
FINISHED_GROUPS = 3

#: Maximum number of chunks in such a group. A group takes at least 50 ms on the GPU, so waiting
#: chunks are joined; if none waits, a group is one chunk.
MOST_FINISHED = 3

#: Reads per part finished on the host: about 10,000 reads of a group, which waits for them.
FEW_MARKED = 1 << 12

#: The fraction of the GPU memory left by mapping that may hold records, and the minimum and maximum
#: of that memory, which is allocated at once and freed at the end.
SORT_SHARE = 0.75
LEAST_SORT_BYTES, MOST_SORT_BYTES = 2 << 30, 32 << 30

#: Approximate bytes on the GPU of a finished read of 150 bases, and of its record.
BYTES_A_FINISHED_READ, BYTES_A_RECORD = 850, 400

#: Groups of records in addition to those in work: one being stored, and one spare.
WAITING_GROUPS = 2

_NO_BASES = np.empty(0, np.uint8)


@dataclass(frozen=True)
class GpuMapEngine:
    """Maps chunks on GPUs, as `bwarp.mapping.engine.MapEngine` says.

    Attributes
    ----------
    devices : sequence of DeviceData
        Results of `bwarp.mapping.seeding_rounds_cuda.prepare` on each GPU.
    """

    index: FMIndex
    genome: Genome
    parameters: MappingParameters
    threads: int
    devices: Sequence[DeviceData]

    @property
    def sort_bytes(self) -> int:
        """Memory to store and sort records: most of what mapping leaves free.

        With several GPUs, the first sorts all records. 0 if the memory is too small to be useful.
        """
        plan = self.devices[0].index.plan
        # The plan counts the group in work; add the other groups and their records.
        finished = (FINISHED_GROUPS - 1) * BYTES_A_FINISHED_READ
        records = (FINISHED_GROUPS + WAITING_GROUPS) * BYTES_A_RECORD
        beside = min(MOST_FINISHED * READS_A_CHUNK, plan.elements) * (finished + records)
        left = plan.free_bytes - plan.index_bytes - plan.work_bytes - beside
        shared = int(SORT_SHARE * left)
        return min(shared, MOST_SORT_BYTES) if shared >= LEAST_SORT_BYTES else 0

    def map(self, chunks: Iterator[ReadChunk], encoder: Encoder | None = None) -> Iterator:
        """Map every chunk, in order."""
        return _Run(self, encoder).map(chunks)


class _Run:
    """Chunks on their way through the GPUs and through threads of the host."""

    def __init__(self, engine: GpuMapEngine, encoder: Encoder | None):
        self._engine, self._encoder = engine, encoder
        form = None if encoder is None else encoder.form
        self._gpu_finishes = form is not None
        self._with_comments = self._gpu_finishes and form.with_comments
        scorers = [
            _Scorer(device, engine.parameters, form, engine.threads) for device in engine.devices
        ]
        self._scorers = LeastBusy(scorers)
        self._most_at_once = min(scorer.chunks_a_group for scorer in scorers)
        if self._gpu_finishes:
            self._most_at_once = min(self._most_at_once, MOST_FINISHED)
        self._insert = given_insert_size(engine.parameters)
        self._ended = threading.Event()

    def map(self, chunks: Iterator[ReadChunk]) -> Iterator:
        """Yield the chunks as `GpuMapEngine.map` does."""
        engine, n_gpus = self._engine, len(self._engine.devices)
        chunks = _until(self._ended, chunks)
        first = []
        if self._insert is None:
            # These are scored again with their mates, which needs less than keeping their hits on
            # the GPU.
            first = list(first_chunks(chunks))
            self._insert = estimate_insert_size(
                self._score(first) if first else (), engine.genome, engine.parameters
            )
        groups = chain([first] if first else [], read_ahead_in_lists(chunks, self._most_at_once))
        if self._gpu_finishes:
            in_work = min(engine.threads, FINISHED_GROUPS * n_gpus)
            # A group formed before a thread is free would have fewer chunks, and take memory.
            encoded = in_order(self._finish_group, groups, in_work, waiting=0)
            yield from chain.from_iterable(encoded)
        else:
            scored = in_order(self._score, groups, min(engine.threads, GROUPS * n_gpus))
            scored = chain.from_iterable(scored)
            yield from in_order(self._finish, scored, min(engine.threads, MOST_IN_WORK))

    def _score(
        self, group: list[ReadChunk], in_parts: Callable[[], bool] | None = None
    ) -> list[ScoredChunk]:
        with self._scorers.lent() as scorer:
            return scorer.score(group, self._insert, in_parts or self._ended.is_set)

    def _finish(self, scored: ScoredChunk) -> MappedChunk | EncodedChunk:
        """Do what is left on the host."""
        engine, chunk = self._engine, scored.chunk
        scored = replace(scored, both=both_strands(chunk.codes, chunk.offsets))
        mapped = finish_chunk(engine.index, engine.genome, scored, self._insert, engine.parameters)
        return mapped if self._encoder is None else self._encoder.encode(mapped)

    def _finish_parts(self, parts: list[ScoredChunk]) -> list[EncodedChunk]:
        share = max(1, min(self._engine.threads, MOST_IN_WORK) // FINISHED_GROUPS)
        return list(in_order(self._finish, iter(parts), min(share, len(parts))))

    def _finish_group(self, group: list[ReadChunk]) -> list[EncodedChunk]:
        """Return the records of a group that the GPU finishes, but for some reads."""
        encoded = []
        for run, is_plain in self._runs(group):
            if is_plain:
                with self._scorers.lent() as scorer:
                    encoded += scorer.finish(run, self._insert, self._finish_parts)
            else:
                encoded += self._finish_parts(self._score(run, lambda: True))
        return encoded

    def _runs(self, chunks: list[ReadChunk]) -> Iterator[tuple[list[ReadChunk], bool]]:
        """Yield runs of chunks, or parts of them, that are finished together, and whether the GPU
        finishes them."""
        run, is_plain, bases = [], False, 0
        for chunk in chain.from_iterable(map(_parts_for_gpu, chunks)):
            part_is_plain = are_plain(chunk, self._with_comments)
            part_bases = chunk.n_reads * longest_read(chunk)
            if run and not (
                go_together(run[-1], chunk)
                and is_plain == part_is_plain
                and bases + part_bases <= MOST_BASES_OF_GROUP
            ):
                yield run, is_plain
                run, bases = [], 0
            run.append(chunk)
            is_plain, bases = part_is_plain, bases + part_bases
        if run:
            yield run, is_plain


def _parts_for_gpu(chunk: ReadChunk) -> Iterator[ReadChunk]:
    """Split a chunk of long reads, which may be too large for one group."""
    return chunk_parts(chunk, MOST_BASES_OF_GROUP // max(longest_read(chunk), 1))


def _until(ended: threading.Event, chunks: Iterable[ReadChunk]) -> Iterator[ReadChunk]:
    """Yield the chunks, then set `ended`."""
    yield from chunks
    ended.set()


class _OnHost(NamedTuple):
    """Results of the GPU for some reads; `hits` may be views of pinned memory."""

    hits: ScoredHits
    unlocated: np.ndarray
    searched: np.ndarray


class _Scorer:
    """Scores groups of chunks on the GPU, one at a time, with as many reads at once as fit, and
    finishes plain reads.
    """

    def __init__(
        self,
        device: DeviceData,
        parameters: MappingParameters,
        form: RecordForm | None,
        threads: int,
    ):
        self._device, self._parameters, self._form = device, parameters, form
        self._threads = threads
        #: Created on this GPU when it finishes the first reads.
        self._constants: RecordConstants | None = None
        self._turn = threading.Lock()
        # Of both kinds, one is being copied while the GPU uses the other.
        self._pinned_reads, self._pinned_hits = PinnedBuffers(2), PinnedBuffers(2)
        self._pinned_records = PinnedBuffers(2)
        refusal = GpuMemoryError("mapping a read requires more GPU memory than is free")
        self._pieces = Pieces(device.index.plan.elements, refusal)

    @property
    def chunks_a_group(self) -> int:
        return max(1, self._pieces.at_once // READS_A_CHUNK)

    def score(
        self,
        chunks: list[ReadChunk],
        insert: InsertSize | None,
        in_parts: Callable[[], bool],
    ) -> list[ScoredChunk]:
        """Return the hits of the chunks' reads and, if the insert size is known, of their mates.

        Reverse complements of reads are not returned. The first chunks, for which all threads wait,
        are returned as small ones, so that all threads share them; and so are chunks for which
        `in_parts` returns true when they are scored, such as the last.
        """
        lengths = [np.diff(chunk.offsets) for chunk in chunks]
        offsets = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
        with self._pinned_reads.lent() as pinned_reads, self._pinned_hits.lent() as pinned_hits:
            (codes,) = pinned_reads.arrays(int(offsets[-1]), [np.uint8])
            np.concatenate([chunk.codes for chunk in chunks], out=codes)

            def work(first: int, stop: int) -> _OnHost:
                part = offsets[first : stop + 1]
                return self._score_part(
                    codes[part[0] : part[-1]], part - part[0], chunks[0].ends, insert, pinned_hits,
                    is_copied=len(part) < len(offsets),
                )  # fmt: skip

            with self._on_gpu():
                found = self._pieces.each(work, len(offsets) - 1, chunks[0].ends)
            if in_parts() or chunks[0].first_template == 0:
                chunks = [part for chunk in chunks for part in chunk_parts(chunk, FEW_READS)]
            return _divided(chunks, found)

    def finish(
        self,
        chunks: list[ReadChunk],
        insert: InsertSize,
        finish_parts: Callable[[list[ScoredChunk]], list[EncodedChunk]],
    ) -> list[EncodedChunk]:
        """Return the records of consecutive chunks of plain reads, as many at once as fit.

        Parameters
        ----------
        finish_parts : function
            Function that finishes reads on the host that the GPU leaves to it.
        """
        ends = chunks[0].ends

        def work(first: int, stop: int) -> EncodedChunk:
            parts = list(parts_between(chunks, first, stop))
            plain, offsets, marked = self._finish_plain(parts, insert)
            by_host, encoded = NO_RECORDS, []
            if marked is not None:
                of_parts = _divided(list(chunk_parts(marked.chunk, FEW_MARKED)), [marked])
                encoded = finish_parts(of_parts)
                by_host = records_of_host(encoded, of_parts, np.flatnonzero(plain.marks))
            numbers = record_numbers(by_host, plain.skipped)
            with self._pinned_records.lent() as pinned:
                with self._on_gpu():
                    if self._constants is None:
                        genome, form = self._device.genome, self._form
                        self._constants = record_constants(genome, form.contigs, form.group)
                    records, counted = write_records(
                        self._device, self._constants, plain, by_host, numbers, ends, self._form
                    )
                    if not self._form.stay_there:
                        records = records_on_host(records, pinned)
                if not self._form.stay_there:
                    records = replace(records, data=copied(records.data, self._threads))
            counts = counts_of_plain(
                counted, self._device.genome.n_bases, offsets, plain.marks, insert, ends,
                plain.scored.searched, plain.orphans,
            )  # fmt: skip
            for one in encoded:
                add_counts(counts, one.counts)
            return EncodedChunk([records], counts, np.empty(0, np.int64))

        return self._pieces.each(work, sum(chunk.n_reads for chunk in chunks), ends)

    def _finish_plain(
        self, parts: list[ReadChunk], insert: InsertSize
    ) -> tuple[PlainReads, np.ndarray, ScoredChunk | None]:
        """Return plain reads on the GPU, the offsets of the reads, and the work for the host."""
        parameters = of_ends(self._parameters, parts[0].ends)
        size = sum(part.codes.size for part in parts)
        with self._pinned_reads.lent() as pinned_reads, self._pinned_hits.lent() as pinned_hits:
            with span("join chunks"):
                codes, qualities = pinned_reads.arrays(_room_for(parts, size), [np.uint8] * 2)
                arrays = codes[:size], qualities[:size]
                chunk = joined_chunks(parts, *arrays, with_comments=self._form.with_comments)
            tags = self._tags(chunk)
            with self._on_gpu():
                scored = score_reads(self._device, chunk.codes, chunk.offsets, parameters)
                if chunk.ends == 2:
                    hits = add_mates(self._device, scored, insert, self._parameters)
                    scored = replace(scored, hits=hits)
                texts = texts_of(chunk, tags)
                plain = finish_reads(
                    self._device, scored, texts, insert, chunk, self._parameters, self._form
                )
                hits, unlocated = hits_of_marked(plain, pinned_hits)
            if not plain.marks.any():
                return plain, chunk.offsets, None
            return plain, chunk.offsets, marked_reads(chunk, hits, unlocated, plain.marks)

    @on_timeline("convert comments")
    def _tags(self, chunk: ReadChunk) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the further tags of a chunk's reads, and their offsets, if there are any."""
        if self._form.tags is None:
            return None
        parts = chunk_parts(chunk, FEW_READS)
        found = list(in_order(self._form.tags, parts, min(self._threads, MOST_FINISHED)))
        sizes = np.concatenate([np.diff(offsets) for _, offsets in found])
        return np.concatenate([tags for tags, _ in found]), np.concatenate([[0], np.cumsum(sizes)])

    @contextmanager
    def _on_gpu(self) -> Iterator[None]:
        """Use the GPU exclusively."""
        with span("wait for the GPU"):
            self._turn.acquire()
        try:
            yield
        finally:
            self._turn.release()

    def _score_part(
        self,
        codes: np.ndarray,
        offsets: np.ndarray,
        ends: int,
        insert: InsertSize | None,
        pinned: PinnedBuffer,
        is_copied: bool,
    ) -> _OnHost:
        """Score a part; `is_copied` copies hits whose pinned memory is reused before they are."""
        scored = score_reads(self._device, codes, offsets, of_ends(self._parameters, ends))
        hits = scored.hits
        if ends == 2 and insert is not None:
            hits = add_mates(self._device, scored, insert, self._parameters)
        with span("copy hits from the GPU"):
            on_host = hits_on_host(hits, pinned)
            unlocated = scored.unlocated.copy_to_host()
        if is_copied:
            on_host = ScoredHits(*map(np.array, on_host))
        return _OnHost(on_host, unlocated, scored.searched)


def _room_for(parts: list[ReadChunk], n_bases: int) -> int:
    """Return the size of pinned memory, in bases, for parts of chunks: the maximum of a long run,
    because pinning memory again takes longer than mapping its contents.
    """
    n_reads = sum(part.n_reads for part in parts)
    if n_reads < READS_A_CHUNK:
        return n_bases
    return max(n_bases, n_bases * MOST_FINISHED * READS_A_CHUNK // n_reads)


@on_timeline("divide hits among chunks")
def _divided(chunks: list[ReadChunk], found: Sequence[_OnHost | ScoredChunk]) -> list[ScoredChunk]:
    """Copy the hits of every chunk to its own memory, so that pinned memory can be reused.

    Counts of the search are assigned to the first chunk.
    """
    hits = joined([one.hits for one in found]) if len(found) > 1 else found[0].hits
    unlocated = np.concatenate([one.unlocated for one in found])
    searched = sum(one.searched for one in found)
    scored, first = [], 0
    for chunk in chunks:
        stop = first + chunk.n_reads
        own = part_of(hits, first, stop)
        scored.append(ScoredChunk(chunk, _NO_BASES, own, unlocated[first:stop].copy(), searched))
        first, searched = stop, np.zeros_like(searched)
    return scored
