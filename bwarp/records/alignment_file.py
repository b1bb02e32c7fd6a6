"""Write mapped reads as SAM, BAM, CRAM or PAF, optionally sorted and with marked duplicates."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from bwarp.bam.compression_engine import WHEN_MAPPED, WHILE_MAPPING
from bwarp.bam.duplicate_metrics import metrics_text
from bwarp.bam.duplicates import DuplicateCounts, DuplicateMarker, tags_with_room
from bwarp.bam.external_sort import RecordSorter
from bwarp.bam.header import BamHeader
from bwarp.bam.records import Records
from bwarp.bam.sorted_file import bam_file, sorted_file
from bwarp.errors import UsageError
from bwarp.io.atomic_output import (
    INDEX_ENDINGS,
    atomic_file,
    name_outputs,
    private_folder,
    write_text,
)
from bwarp.io.bed_regions import read_regions
from bwarp.io.names import Names
from bwarp.mapping.engine import MapEngine
from bwarp.mapping.extension_cpu import Genome
from bwarp.mapping.pipeline import EncodedChunk, Encoder, MappedChunk, chunk_records
from bwarp.options.mapping import CRAM_VERSIONS, check_duplicate_options, counted_distance
from bwarp.reads.read_chunks import ReadChunk
from bwarp.records.alignment_records import (
    AlignmentRecords,
    ReadArrays,
    RecordTables,
    mapped_tables,
    selected_rows,
)
from bwarp.records.bam_records_cpu import bam_records, quality_sums, sam_header, sam_records
from bwarp.records.comment_tags import comment_tags, tags_of_run
from bwarp.records.output_options import (
    AlignmentOutput,
    RecordForm,
    have_tags,
    in_regions,
    is_paf,
    joined_regions,
    mapping_program,
    naming_reference,
    stays_on_gpu,
    write_sequences,
)
from bwarp.records.paf_records import paf_lines
from bwarp.records.statistics import add_counts, counts_of, empty_statistics
from bwarp.reference import Reference

ENDINGS = (".sam", ".bam", ".cram", ".paf", ".paf.gz")


@dataclass(frozen=True)
class RecordWriter:
    """Writes records in two steps, the first of which may run in many threads.

    Attributes
    ----------
    encode : function of (ReadChunk, ndarray, AlignmentRecords)
        Return the records of a chunk in the form of the file; `ndarray` holds both strands.
    write : function of what `encode` returned
        Write the records of the next chunk, in order.
    form : RecordForm
        The form in which a GPU writes records.
    """

    encode: Callable[[ReadChunk, np.ndarray, AlignmentRecords], list]
    write: Callable[[list], None]
    form: RecordForm


def files_of(path: str) -> list[str]:
    """Return the files that a file of alignments may consist of: the file and its indexes.

    An old index of the same name is removed if the new file has none.
    """
    return [path] if path == "-" else [path, *(f"{path}{ending}" for ending in INDEX_ENDINGS)]


def _check(output: AlignmentOutput) -> None:
    ending = Path(output.path).suffix
    if output.path != "-" and not output.path.endswith(ENDINGS):
        raise UsageError(
            f"{output.path}: the output must end in .sam, .bam, .cram, .paf or .paf.gz, or be - "
            "for SAM on standard output"
        )
    if is_paf(output):
        for name, given in (
            ("--sort", output.sort), ("--mark-duplicates", output.mark_duplicates),
            ("--soft-clip", output.soft_clip), ("--read-group", output.read_group),
        ):  # fmt: skip
            if given:
                raise UsageError(f"{output.path}: {name} cannot be combined with PAF output")
    if output.path == "-" and output.sort:
        raise UsageError("--sort requires a file: use -o OUT.bam, OUT.cram or OUT.sam")
    if ending == ".cram" and not output.sort:
        raise UsageError(f"{output.path}: CRAM output requires --sort")
    if output.mark_duplicates and not output.sort:
        raise UsageError("--mark-duplicates requires --sort")
    if output.check_files is not None and not output.sort:
        raise UsageError("--qc requires --sort")
    check_duplicate_options(output)
    for name, given in (
        ("--reference", output.reference_file), ("--cram-version", output.cram_version),
    ):  # fmt: skip
        if given and ending != ".cram":
            raise UsageError(f"{output.path}: {name} requires CRAM output")


@contextmanager
def alignment_file(
    output: AlignmentOutput,
    program: str,
    reference: Reference,
    genome: Genome,
    threads: int,
    count_duplicates: Callable[[DuplicateCounts], None],
) -> Iterator[RecordWriter]:
    """Yield a writer of the records of chunks, under a header with the @PG record `program`.

    Nothing appears under the final names before it is complete. `count_duplicates` is called if
    duplicates are marked.
    """
    _check(output)
    order = "SO:coordinate" if output.sort else "SO:unsorted\tGO:query"
    text = sam_header(reference, program, output.read_group, order)
    is_text = Path(output.path).suffix != ".bam" and not output.sort
    if is_paf(output):
        open_file = _paf(output, reference, genome)
    elif is_text:
        open_file = _unsorted_sam(output, text, reference, genome)
    else:
        open_file = _bam_or_sorted(output, text, reference, genome, threads, count_duplicates)
    with open_file as writer:
        yield writer


@contextmanager
def _unsorted_sam(output, text: bytes, reference, genome) -> Iterator[RecordWriter]:
    """Write SAM in the order of the reads."""
    names = Names.of(reference.names)

    def encode(chunk, both, records) -> list[Records]:
        return sam_records(_text_tables(output, genome, names, chunk, both, records))

    with atomic_file(output.path) as file:
        file.write(text)
        yield _line_writer(output, encode, file, names, "sam")


@contextmanager
def _paf(output, reference, genome) -> Iterator[RecordWriter]:
    names = Names.of(reference.names)

    def encode(chunk, both, records) -> list[Records]:
        return [paf_lines(_text_tables(output, genome, names, chunk, both, records))]

    with atomic_file(output.path) as file:
        yield _line_writer(output, encode, file, names, "paf")


def _line_writer(output, encode, file, names: Names, format: str) -> RecordWriter:
    """Return the writer of lines to an open file."""
    tags = _tags(output, is_binary=False)
    form = RecordForm(names, output.read_group_id, False, False, tags, format=format)
    return RecordWriter(encode, lambda parts: file.writelines(part.data for part in parts), form)


@contextmanager
def _bam_or_sorted(
    output, text: bytes, reference, genome, threads: int, count_duplicates
) -> Iterator[RecordWriter]:
    """Write BAM, or any sorted format."""
    header = bam_header(text, reference)
    names, tags = Names.of(reference.names), _tags(output, is_binary=True)

    def encode(chunk, both, records) -> list[Records]:
        reads, group = ReadArrays.of(chunk, both), output.read_group_id
        further = None if tags is None else tags(chunk)
        sums = quality_sums(chunk) if output.mark_duplicates else None
        return bam_records(mapped_tables(genome, names, reads, records, group, further, sums))

    stay_there = stays_on_gpu(output)
    group, mate_scores = output.read_group_id, output.mark_duplicates
    form = RecordForm(names, group, mate_scores, stay_there, tags, have_tags(output))
    if not stay_there:
        output.compression.begin(WHILE_MAPPING)
    with private_folder(output.path) as folder, ThreadPoolExecutor(1) as background:
        made = folder.absolute() / f"out{Path(output.path).suffix}"
        if output.sort:
            sequences = None
            if made.suffix == ".cram":
                sequences = background.submit(
                    write_sequences, reference, output.reference_file, folder, threads
                )
                header = naming_reference(header, output.reference_file)
            compression = output.compression
            version = output.cram_version or CRAM_VERSIONS[0]
            duplicates = None
            if output.mark_duplicates:
                duplicates = DuplicateMarker(
                    header, output.barcode_tag, counted_distance(output), threads, folder,
                    output.sort_bytes, output.duplicate_tags,
                )  # fmt: skip
            with _sorter(output, folder, header, threads, stay_there, duplicates) as sorter:

                def add(parts: list) -> None:
                    if sequences is not None and sequences.done():
                        # A wrong reference ends the run early.
                        sequences.result()
                    for part in parts:
                        sorter.add(part)

                yield RecordWriter(encode, add, form)
                if not stay_there:
                    compression.begin(WHEN_MAPPED)
                if sequences is not None:
                    sequences.result()
                with sorted_file(
                    made, header, threads, output.path, compression, cram_version=version,
                    check_files=output.check_files,
                ) as writer:  # fmt: skip
                    sorter.finish(writer)
                if duplicates is not None:
                    count_duplicates(duplicates.counts)
        else:
            with (
                open(made, "wb") as file,
                bam_file(file, header, threads, output.compression) as writer,
            ):
                yield RecordWriter(
                    encode,
                    lambda parts: [writer.write(part.data, part.starts) for part in parts],
                    form,
                )
        put_in_place(made, os.path.realpath(output.path))


def _sorter(output, folder: Path, header: BamHeader, threads: int, stay_there: bool, duplicates):
    arguments = folder, header.contig_starts
    if not stay_there:
        return RecordSorter(*arguments, output.sort_bytes, threads, output.compression, duplicates)
    from bwarp.bam.record_sort_cuda import DeviceRecordSorter

    return DeviceRecordSorter(
        *arguments, output.gpu_sort_bytes, threads, output.compression, output.sort_bytes,
        duplicates=duplicates,
    )  # fmt: skip


def _text_tables(output, genome, names, chunk, both, records) -> RecordTables:
    reads, group = ReadArrays.of(chunk, both), output.read_group_id
    further = tags(chunk) if (tags := _tags(output, is_binary=False)) else None
    return mapped_tables(genome, names, reads, records, group, further)


def _tags(
    output: AlignmentOutput, is_binary: bool
) -> Callable[[ReadChunk], tuple[np.ndarray, np.ndarray]] | None:
    """Return the function that converts comments of reads to tags of records, if requested.

    If duplicates get tags, it adds room for these; the records are then binary.
    """
    have_comments = have_tags(output)
    if not have_comments and not output.duplicate_tags:
        return None

    def tags(chunk: ReadChunk) -> tuple[np.ndarray, np.ndarray]:
        further = np.empty(0, np.uint8), np.zeros(chunk.n_reads + 1, np.int64)
        if have_comments:
            found = comment_tags(chunk, tags_of_run(output), is_paf(output))
            further = found.binary if is_binary else found.text
        return tags_with_room(*further) if output.duplicate_tags else further

    return tags


def bam_header(text: bytes, reference: Reference) -> BamHeader:
    """Return the header of BAM, which omits contigs without bases."""
    lengths = np.diff(reference.contig_starts)
    contigs = np.flatnonzero(lengths)
    names = tuple(reference.names[contig].encode() for contig in contigs)
    return BamHeader(text, names, tuple(lengths[contigs].tolist()))


def put_in_place(made: Path, final: str) -> None:
    """Give a file and its index their final names; remove the index of an older file."""
    both = [(Path(f"{made}{ending}"), Path(f"{final}{ending}")) for ending in INDEX_ENDINGS]
    new = [(index, path) for index, path in both if index.exists()]
    gone = [path for index, path in both if not index.exists()]
    name_outputs([*new, (made, Path(final))], gone)


# --------------------------------------------------------------------------------------------------
# The last stage of mapping: encode and count mapped reads in threads, and write them.


def write_mapped(
    engine: MapEngine,
    chunks: Iterator[ReadChunk],
    output: AlignmentOutput,
    reference: Reference,
    report: Callable[[int, str], None],
) -> dict:
    """Map chunks of reads, encode and write them; return the statistics of the reads.

    Parameters
    ----------
    reference : Reference
        With the ALT contigs of this run.
    report : function
        Called after every chunk with the number of reads done and further text.
    """
    statistics = empty_statistics()

    def count_duplicates(counts: DuplicateCounts) -> None:
        statistics["duplicates"] = counts.reads
        if output.duplicate_metrics:
            write_text(output.duplicate_metrics, metrics_text(counts))

    regions = None
    if output.regions_file is not None:
        regions = joined_regions(read_regions(output.regions_file, reference))
    program, genome = mapping_program(engine.parameters, output), engine.genome
    with alignment_file(
        output, program, reference, genome, engine.threads, count_duplicates
    ) as writer:
        encode = partial(_encode, writer, genome, output, regions)
        form = writer.form._replace(eqx=output.eqx, regions=regions)
        for encoded in engine.map(chunks, Encoder(encode, form)):
            writer.write(encoded.records)
            add_counts(statistics, encoded.counts)
            share = 100 * statistics["mapped"] / max(statistics["reads"], 1)
            report(statistics["reads"], f"{share:.1f} % mapped")
    return statistics


def _encode(
    writer: RecordWriter,
    genome: Genome,
    output: AlignmentOutput,
    regions: np.ndarray | None,
    done: MappedChunk,
) -> EncodedChunk:
    records = chunk_records(genome, done, output.soft_clip, output.eqx)
    if regions is not None:
        records = selected_rows(records, in_regions(records, done.chunk.ends, regions))
    encoded = writer.encode(done.chunk, done.both, records)
    return EncodedChunk(encoded, counts_of(done, genome), records.reads)
