"""Convert scored hits to records on the GPU, for plain reads.

    hits of all reads -> primary hits -> alignments -> secondary hits -> records, counts
              '-> hits of marked reads -> finish_chunk on the host -> records -'

A read and its mate are marked if they may need more work than the GPU does: the best hit clips
bases that may lie across a long gap or elsewhere, a hit is on an ALT contig, or another hit may get
a record. Marked reads are few; the host finishes them as it does all reads without a GPU
(`bwarp.mapping.pipeline.finish_chunk`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from bwarp.bam.sorted_blocks_cuda import DeviceRecords
from bwarp.gpu.cuda import cuda
from bwarp.gpu.transfers import PinnedBuffer
from bwarp.mapping.final_alignments_cuda import (
    DeviceAlignments,
    align_hits,
    mark_clipped,
)
from bwarp.mapping.further_records_cuda import mark_further_records
from bwarp.mapping.insert_size import InsertSize
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.pipeline import EncodedChunk, ScoredChunk
from bwarp.mapping.primary_hits_cuda import DevicePrimary, lower_tandem_repeats, select_primary
from bwarp.mapping.scored_hits_cpu import ScoredHits
from bwarp.mapping.scored_hits_cuda import hits_on_host, without
from bwarp.mapping.secondary_hits_cuda import secondary_rows
from bwarp.mapping.seeding_rounds_cuda import DeviceData, ScoredReads
from bwarp.mapping.split_reads_cuda import mark_split_reads
from bwarp.reads.read_chunks import ReadChunk
from bwarp.records.bam_records_cuda import (
    HostRecords,
    PlainTables,
    ReadTexts,
    RecordConstants,
    RecordNumbers,
    SecondaryOfReads,
    array_on_gpu,
    count_all_edits,
    encode_bam,
    plain_records,
    quality_sums,
    read_tables,
)
from bwarp.records.output_options import RecordForm
from bwarp.records.paf_records_cuda import encode_paf
from bwarp.records.sam_records_cuda import encode_sam
from bwarp.records.selected_records_cuda import marks_outside, with_mismatches
from bwarp.records.statistics_cuda import count_plain
from bwarp.runtime.threads import joined_stretches
from bwarp.runtime.timeline import on_timeline

#: The host handles all chunks with longer reads: aligning one with gaps may need 4 MB on the GPU.
MOST_BASES = 2000

#: The host also handles chunks with more characters of comments per read. A group has at most this
#: number of bases, counted as if all reads of a chunk had the length of its longest: the records of
#: a group must be less than 4 GB.
MOST_CHARACTERS, MOST_BASES_OF_GROUP = 500, 1500 << 18

_ENCODERS = {"bam": encode_bam, "sam": encode_sam, "paf": encode_paf}

NO_RECORDS = HostRecords(
    np.empty(0, np.uint8), np.zeros(1, np.int64), np.empty(0, np.uint64), np.empty(0, np.int64)
)


@dataclass(frozen=True)
class PlainReads:
    """Reads on the GPU before their records are written.

    Attributes
    ----------
    scored : ScoredReads
        Reads with hits, including rescued mates.
    texts : ReadTexts
    primary : DevicePrimary
    alignments : DeviceAlignments
        One row per read.
    secondary : SecondaryOfReads
    marks : ndarray, shape=(n_reads,), dtype=uint8
        1 for reads that the host finishes.
    marks_there : device array
    skipped : ndarray, shape=(n_reads,), dtype=uint8
        1 for reads whose records the GPU does not write: reads that the host finishes, reads
        outside of the regions of the output, and missing mates.
    skipped_there : device array
    orphans : ndarray, shape=(n_templates,), dtype=bool, or None
        As in `ReadChunk`.
    """

    scored: ScoredReads
    texts: ReadTexts
    primary: DevicePrimary
    alignments: DeviceAlignments
    secondary: SecondaryOfReads
    marks: np.ndarray
    marks_there: object
    skipped: np.ndarray
    skipped_there: object
    orphans: np.ndarray | None


def are_plain(chunk: ReadChunk, with_comments: bool) -> bool:
    """Return whether the GPU may finish reads of a chunk, with or without their comments."""
    has_long_comments = (
        with_comments and np.diff(chunk.comments).sum() > MOST_CHARACTERS * chunk.n_reads
    )
    return longest_read(chunk) <= MOST_BASES and not has_long_comments


def longest_read(chunk: ReadChunk) -> int:
    return int(np.diff(chunk.offsets).max(initial=0))


@on_timeline("select and align on the GPU")
def finish_reads(
    device: DeviceData,
    scored: ScoredReads,
    texts: ReadTexts,
    insert: InsertSize,
    chunk: ReadChunk,
    parameters: MappingParameters,
    form: RecordForm,
) -> PlainReads:
    """Select primary hits of a chunk's reads and align the reads; mark reads for the host.

    Parameters
    ----------
    scored : ScoredReads
        Reads with hits, including rescued mates.
    form : RecordForm
        For `eqx` and `regions`.
    """
    genome, reads, hits, ends = device.genome, scored.reads, scored.hits, chunk.ends
    marks_there = mark_split_reads(reads, hits, parameters)
    primary = select_primary(
        genome, reads, hits, scored.unlocated, insert, ends, chunk.first_template, parameters
    )
    lower_tandem_repeats(genome, reads, hits, primary, parameters)
    alignments = align_hits(genome, reads, hits, primary.hits, reads.numbers, parameters)
    mark_clipped(reads, hits, primary, alignments, parameters, marks_there)
    mark_further_records(genome, reads, hits, primary, parameters, marks_there)
    marks = marks_there.copy_to_host()
    if ends == 2:
        marks = np.repeat(marks[::2] | marks[1::2], 2)
        marks_there.copy_to_device(marks)
    if parameters.secondary_records:
        # Secondary hits get records instead of XA.
        parameters = replace(parameters, most_secondary=0)
    offsets, rows, reads_of_rows = secondary_rows(reads, hits, primary, marks_there, parameters)
    others = align_hits(genome, reads, hits, rows, reads_of_rows, parameters)
    if form.eqx:
        alignments = with_mismatches(genome, reads, alignments, reads.numbers)
        others = with_mismatches(genome, reads, others, reads_of_rows)
    secondary = SecondaryOfReads(offsets, others)
    skipped, skipped_there = marks, marks_there
    if chunk.orphans is not None:
        skipped = marks.copy()
        skipped[1::2] |= chunk.orphans
        skipped_there = cuda.to_device(skipped)
    if form.regions is not None:
        skipped_there = marks_outside(alignments, ends, form.regions, skipped_there)
        skipped = skipped_there.copy_to_host()
    return PlainReads(
        scored, texts, primary, alignments, secondary, marks, marks_there, skipped, skipped_there,
        chunk.orphans,
    )  # fmt: skip


def texts_of(chunk: ReadChunk, tags: tuple[np.ndarray, np.ndarray] | None = None) -> ReadTexts:
    """Copy the names and qualities of a chunk of `joined_chunks`, and further tags, to the GPU."""
    offsets = np.append(chunk.names[:, 0], chunk.names[-1:, 1].sum())
    qualities = chunk.codes[:0] if chunk.qualities is None else chunk.qualities
    further, tag_offsets = tags or (np.empty(0, np.uint8), np.empty(0, np.int64))
    return ReadTexts(
        array_on_gpu(chunk.text[: offsets[-1]]), cuda.to_device(offsets), array_on_gpu(qualities),
        array_on_gpu(further), array_on_gpu(tag_offsets),
    )  # fmt: skip


def hits_of_marked(plain: PlainReads, pinned: PinnedBuffer) -> tuple[ScoredHits, np.ndarray]:
    """Return the hits of marked reads on the host, as `hits_on_host`, and `unlocated` of all."""
    scored = plain.scored
    hits = hits_on_host(without(scored.hits, cuda.to_device(plain.marks ^ 1)), pinned)
    return hits, scored.unlocated.copy_to_host()


def marked_reads(
    chunk: ReadChunk, hits: ScoredHits, unlocated: np.ndarray, marks: np.ndarray
) -> ScoredChunk:
    """Return the marked reads of a chunk of `joined_chunks` as a chunk with hits, in new memory,
    without reverse complements.

    Parameters
    ----------
    hits : ScoredHits
        Hits of the marked reads only, with the reads' numbers in the chunk.
    unlocated : ndarray, shape=(n_reads,), dtype=int32
    """
    reads = np.flatnonzero(marks)
    templates = reads[:: chunk.ends] // chunk.ends
    offsets = np.concatenate([[0], np.cumsum(np.diff(chunk.offsets)[reads])])
    starts, qualities = chunk.offsets[reads], chunk.qualities
    marked = replace(
        chunk,
        codes=joined_stretches(chunk.codes, starts, offsets),
        offsets=offsets,
        qualities=None if qualities is None else joined_stretches(qualities, starts, offsets),
        names=chunk.names[templates],
        comments=None if chunk.comments is None else chunk.comments[reads],
        orphans=None if chunk.orphans is None else chunk.orphans[templates],
        templates=templates + chunk.first_template,
    )
    numbers = np.cumsum(marks, dtype=np.int32) - np.int32(1)
    own = ScoredHits(*map(np.array, hits))._replace(
        reads=numbers[hits.reads], offsets=np.append(hits.offsets[reads], hits.offsets[-1])
    )
    return ScoredChunk(marked, chunk.codes[:0], own, unlocated[reads], np.zeros(3, np.int64))


def records_of_host(
    encoded: Sequence[EncodedChunk], parts: Sequence[ScoredChunk], reads: np.ndarray
) -> HostRecords:
    """Return the host's records of the parts of marked reads with these numbers."""
    made = [records for one in encoded for records in one.records]
    if not made:
        # None of the reads overlaps the regions of the output.
        return NO_RECORDS
    sizes = np.concatenate([np.diff(records.starts) for records in made])
    firsts = np.cumsum([0, *(part.chunk.n_reads for part in parts)])
    numbers = [one.reads + first for one, first in zip(encoded, firsts, strict=False)]
    return HostRecords(
        np.concatenate([records.data for records in made]),
        np.concatenate([[0], np.cumsum(sizes)]),
        np.concatenate([records.keys for records in made]),
        reads[np.concatenate(numbers)],
    )


@on_timeline("write records on the GPU")
def write_records(
    device: DeviceData,
    constants: RecordConstants,
    plain: PlainReads,
    by_host: HostRecords,
    numbers: RecordNumbers,
    ends: int,
    form: RecordForm,
) -> tuple[DeviceRecords, np.ndarray]:
    """Return all records of a chunk, including those of the host, and the counts of the other
    reads, as from `count_plain`.
    """
    scored = plain.scored
    tables = read_tables(scored.reads, plain.texts, plain.primary)
    orphans = np.empty(0, np.uint8) if plain.orphans is None else plain.orphans.view(np.uint8)
    plain_tables = PlainTables(
        constants, tables, plain.alignments, plain.secondary, plain.skipped_there, ends,
        cuda.to_device(numbers.firsts), quality_sums(tables, form.mate_scores),
        array_on_gpu(orphans),
    )  # fmt: skip
    records, edits = plain_records(plain_tables, by_host, numbers, _ENCODERS[form.format])
    if form.regions is not None:
        # The statistics include reads without records.
        count_all_edits(plain_tables, edits)
    counted = count_plain(
        device.genome, scored.hits, plain.alignments, plain.primary, edits, plain.marks_there, ends
    )
    return records, counted
