"""Map reads of up to 10,000 bases to an indexed reference: FASTQ or BAM in; SAM, BAM or PAF out."""

from dataclasses import replace
from functools import partial

from bwarp.cli.options import (
    add_gpus_option,
    add_index_option,
    add_mapping_options,
    add_output_options,
    add_read_options,
    mapping_options,
    output_options,
    read_files,
    warn_of_names_like_alt,
)
from bwarp.cli.program import choose_engine, compile_first, program_parser, say
from bwarp.errors import UsageError
from bwarp.index.alt_contigs import chosen_alt_contigs
from bwarp.index.store import load_index
from bwarp.io.bam.compression import compression_for
from bwarp.io.output_names import check_outputs
from bwarp.mapping.engine import load, map_chunks, reads_a_chunk
from bwarp.mapping.output.alignment_file import files_of
from bwarp.mapping.output.chunk_writer import write_mapped
from bwarp.mapping.output.platform_unit import AUTO, with_platform_unit
from bwarp.mapping.output.statistics import statistics_sentence, write_statistics
from bwarp.mapping.output.tags_of_input import with_tags_of
from bwarp.mapping.reads.read_files import chunks_of_files, holds_pairs
from bwarp.mapping.reads.unaligned_records import holds_records
from bwarp.runtime.backend import or_on_cpu
from bwarp.runtime.progress import progress
from bwarp.runtime.threads import read_ahead

EXAMPLES = """
scripts/map_reads.py --index genome.index -1 R1.fq.gz -2 R2.fq.gz -o sample.bam --sort
scripts/map_reads.py --index genome.index -1 reads.fq.gz -o sample.sam
scripts/map_reads.py --index genome.index -1 reads.fq.gz -o sample.paf --all --eqx
scripts/map_reads.py --index genome.index -1 both.fq --interleaved -o sample.bam \\
    --read-group '@RG\\tID:1\\tSM:sample'
scripts/map_reads.py --index genome.index -1 unaligned.bam -o sample.bam --sort
scripts/map_reads.py --index genome.index -1 L1_R1.fq.gz L2_R1.fq.gz -2 L1_R2.fq.gz L2_R2.fq.gz \\
    -U merged.fq.gz -o sample.bam --sort
"""


def parse_options():
    parser = program_parser(__doc__, EXAMPLES)
    add_index_option(parser)
    add_read_options(parser)
    add_output_options(parser)
    add_mapping_options(parser)
    add_gpus_option(parser, "reads")
    return parser


def main(options):
    output = output_options(options)
    files = read_files(options)
    if records := list(filter(holds_records, files.first)):
        output = with_tags_of(records, output)
    inputs = [options.index, *files.names, options.reference, options.alt, options.regions]
    check_outputs([*files_of(options.output), options.stats], inputs)
    if options.regions == "-" and "-" in files.names:
        raise UsageError("- is given for reads and for --regions: give one of them as a file")
    backend = choose_engine(options.backend, options.gpus)
    output = replace(output, compression=compression_for(options.compress, backend))
    parameters = mapping_options(options)
    size = reads_a_chunk(backend, options.threads)
    chunks = chunks_of_files(files, size, options.threads)
    index = load_index(options.index)
    # Before anything else compiles what it calls.
    compile_first(backend, options, *files.names)
    # The first chunks are read while the genome is loaded.
    chunks = read_ahead(chunks)
    if output.read_group and AUTO in output.read_group.split("\t"):
        group, chunks = with_platform_unit(output.read_group, chunks)
        output = replace(output, read_group=group)
    backend, (genome, kept) = or_on_cpu(
        options.backend,
        backend,
        lambda engine: load(index, engine, options.threads, options.gpus),
        say,
    )
    reference = replace(index.reference, alt=chosen_alt_contigs(options.alt, index.reference))
    parameters = replace(parameters, alt=reference.alt)
    if options.alt is None:
        warn_of_names_like_alt(reference)
    with progress("reads", files=files.names) as report:
        mapped_chunks = partial(
            map_chunks, index, genome, chunks, parameters, backend, options.threads, kept
        )
        statistics = write_mapped(
            output, parameters, reference, genome, mapped_chunks, report, options.threads
        )
    say(statistics_sentence(statistics))
    orphans = statistics["reads"] - statistics["paired"]
    if orphans and holds_pairs(files):
        say(f"{orphans:,} reads have no mate beside them, and were mapped as single reads")
    if options.stats:
        write_statistics(options.stats, statistics)
