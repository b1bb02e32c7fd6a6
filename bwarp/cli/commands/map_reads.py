"""Map reads of up to 10,000 bases to an indexed reference: FASTQ or BAM to SAM, BAM or PAF."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from bwarp.bam.compression_engine import compression_for
from bwarp.cli.index_options import warn_of_names_like_alt
from bwarp.cli.options import (
    mapping_options,
    output_options,
    read_files,
    say_without_effect,
    warn_of_unmapped_reads,
    warn_of_unnamed_reference,
    with_read_groups,
)
from bwarp.cli.program import choose_engine, compile_first, program_parser
from bwarp.counted import counted
from bwarp.errors import UsageError
from bwarp.index.alt_contigs import chosen_alt_contigs
from bwarp.index.store import load_index
from bwarp.io.atomic_output import check_outputs, named_together, write_text
from bwarp.mapping.engine import load, reads_a_chunk
from bwarp.mapping.insert_size import InsertSize, read_insert_size
from bwarp.options.common import ORIENTATIONS
from bwarp.options.mapping import MAP, WITHOUT_EFFECT
from bwarp.reads.read_chunks import ReadChunk
from bwarp.reads.read_files import ReadFiles, chunks_of_files, holds_pairs
from bwarp.reads.record_files import holds_records
from bwarp.reads.stored_reads import has_tags, part_of_batches, reads_of_files
from bwarp.records.alignment_file import files_of, write_mapped
from bwarp.records.comment_tags import with_tags_of, with_tags_of_batches
from bwarp.records.output_options import AUTO, with_platform_unit
from bwarp.records.statistics import statistics_sentence, statistics_text
from bwarp.runtime.backend import or_on_cpu
from bwarp.runtime.chunks import read_ahead
from bwarp.runtime.progress import progress, say

EXAMPLES = """
bwarp map --index genome.index -1 R1.fq.gz -2 R2.fq.gz -o sample.bam --sort
bwarp map --index genome.index -1 reads.fq.gz -o sample.sam
bwarp map --index genome.index -1 reads.fq.gz -o sample.paf --all --eqx
bwarp map --index genome.index -1 both.fq --interleaved -o sample.bam \\
    --read-group '@RG\\tID:1\\tSM:sample'
bwarp map --index genome.index -1 unaligned.bam -o sample.bam --sort
bwarp map --index genome.index -1 L1_R1.fq.gz L2_R1.fq.gz -2 L1_R2.fq.gz L2_R2.fq.gz \\
    -U merged.fq.gz -o sample.bam --sort
bwarp map --index genome.index -1 L1_R1.fq.gz L2_R1.fq.gz -2 L1_R2.fq.gz L2_R2.fq.gz \\
    --read-group '@RG\\tID:L1\\tSM:sample' '@RG\\tID:L2\\tSM:sample' -o sample.bam --sort
bwarp map --index genome.index --batches batches --part 3/20 -o 3.bam --sort \\
    --estimated-insert-size insert_size.json --stats 3.stats.json
"""


def parse_options():
    return program_parser(__doc__, EXAMPLES, MAP)


def main(options):
    say_without_effect(options, WITHOUT_EFFECT)
    files, output = with_read_groups(options, read_files(options), output_options(options))
    if any(map(holds_records, files.first)):
        files, output = with_tags_of(files, output)
    are_pairs = bool(files.first) and holds_pairs(files)
    output = replace(output, paired=are_pairs)
    inputs = [
        options.index, *files.names, options.batches, options.estimated_insert_size,
        options.reference, options.alt, options.regions, options.qc_regions,
    ]  # fmt: skip
    outputs = [*files_of(options.output), options.stats, options.duplicate_metrics]
    outputs += output.check_files.outputs if output.check_files is not None else []
    check_outputs(outputs, inputs)
    if options.regions == "-" and "-" in files.names:
        raise UsageError(
            "-: standard input is given for both reads and --regions: use a file for one of them"
        )
    backend = choose_engine(options.backend, options.gpus)
    output = replace(output, compression=compression_for(options.compress, backend))
    parameters = mapping_options(options)
    parameters = replace(parameters, estimated_insert_size=estimated_insert_size(options))
    size = reads_a_chunk(backend, options.threads)
    chunks, names = reads_to_map(options, files, size)
    if options.batches is not None:
        # The first read of all parts decides.
        first = next(reads_of_files(part_of_batches(options.batches, 1, 1)[:1], 1), None)
        output = replace(output, paired=first is not None and first.ends == 2)
        if has_tags(options.batches):
            output = with_tags_of_batches(options.batches, output)
    index = load_index(options.index)
    # Compile in parallel before anything compiles on its own.
    compile_first(backend, options, *names)
    # Read the first chunks while the genome is loaded.
    chunks = read_ahead(chunks)
    if output.read_group_id and AUTO in output.read_group.split("\t"):
        if options.batches is None:
            group, chunks = with_platform_unit(output.read_group, chunks)
        else:
            # The first read of all parts decides.
            first = reads_of_files(part_of_batches(options.batches, 1, 1)[:1], 1)
            group, _ = with_platform_unit(output.read_group, first)
        output = replace(output, read_group=group)
    reference = replace(index.reference, alt=chosen_alt_contigs(options.alt, index.reference))
    parameters = replace(parameters, alt=reference.alt)
    load_on = partial(load, index, parameters, threads=options.threads, gpus=options.gpus)
    _, engine = or_on_cpu(options.backend, backend, load_on, say)
    output = replace(output, gpu_sort_bytes=engine.sort_bytes)
    if options.alt is None:
        warn_of_names_like_alt(reference)
    warn_of_unnamed_reference(options.output, options.reference)
    with named_together():
        with progress("read", files=names) as report:
            statistics = write_mapped(engine, chunks, output, reference, report)
        if options.stats:
            write_text(options.stats, statistics_text(statistics))
    say(statistics_sentence(statistics))
    warn_of_unmapped_reads(statistics["reads"], statistics["mapped"], names)
    orphans = statistics["reads"] - statistics["paired"]
    if orphans and (statistics["paired"] or are_pairs):
        say(
            counted(
                orphans,
                "read has no mate and was mapped as a single read",
                "reads have no mate and were mapped as single reads",
            )
        )


def reads_to_map(options, files: ReadFiles, size: int) -> tuple[Iterator[ReadChunk], list]:
    """Return chunks of the reads of files or of a part of the batches, and the file names."""
    if options.batches is None:
        if not files.first:
            raise UsageError("no reads are given: use -1 or --batches")
        if options.part:
            raise UsageError("--part requires --batches")
        return chunks_of_files(files, size, options.threads), files.names
    if files.names or options.interleaved:
        raise UsageError("--batches cannot be combined with -1, -2, --single or --interleaved")
    names = part_of_batches(options.batches, *(options.part or (1, 1)))
    return reads_of_files(names, size), names


def estimated_insert_size(options) -> InsertSize | None:
    """Return the insert size estimated earlier, or None."""
    if options.estimated_insert_size is None:
        return None
    if options.insert_size or options.hic:
        raise UsageError("--estimated-insert-size cannot be combined with --insert-size or --hic")
    insert = read_insert_size(options.estimated_insert_size)
    if options.orientation not in (None, ORIENTATIONS[insert.orientation]):
        raise UsageError(
            f"{options.estimated_insert_size}: estimated for the orientation "
            f"{ORIENTATIONS[insert.orientation]}, not {options.orientation}: use the same "
            "--orientation"
        )
    return insert
