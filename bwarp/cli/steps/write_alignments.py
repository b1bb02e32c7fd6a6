"""Select primary alignments from the hits of scripts/extend_candidates.py: SAM, BAM or CRAM out.

The last of five stages that together do what scripts/map_reads.py does in one, with the same bytes
in the output and the statistics: the insert size is estimated, mates are rescued, and primary hits
are selected and aligned.
"""

from functools import partial

from bwarp.cli.options import add_index_option, add_output_options, add_stage_input, output_options
from bwarp.cli.program import program_parser, say
from bwarp.index.store import load_index
from bwarp.io.chunk_files import open_chunk_file
from bwarp.io.output_names import check_outputs
from bwarp.mapping.extension.extension_cpu import genome_of
from bwarp.mapping.output.alignment_file import files_of
from bwarp.mapping.output.chunk_writer import write_mapped
from bwarp.mapping.output.statistics import statistics_sentence, write_statistics
from bwarp.mapping.pipeline import finish_chunks
from bwarp.mapping.staged_files import read_parameters, stored_hits
from bwarp.runtime.progress import progress

EXAMPLES = """
scripts/write_alignments.py --index genome.index --reads sample.reads --hits sample.hits \\
    -o sample.bam --sort --read-group '@RG\\tID:1\\tSM:sample'
"""


def parse_options():
    parser = program_parser(__doc__, EXAMPLES)
    add_index_option(parser)
    add_stage_input(parser, "--reads", "chunk_reads.py", or_input="")
    add_stage_input(parser, "--hits", "extend_candidates.py")
    add_output_options(parser)
    return parser


def main(options):
    output = output_options(options)
    inputs = [options.index, options.reads, options.hits, options.reference]
    check_outputs([*files_of(options.output), options.stats], inputs)
    index = load_index(options.index)
    with (
        open_chunk_file(options.reads, "reads") as reads,
        open_chunk_file(options.hits, "scored hits") as reader,
        progress("reads", files=[options.hits]) as report,
    ):
        reader.check_index(index.checksum, index.folder)
        parameters = read_parameters(reader)
        genome = genome_of(index.reference, options.threads)
        unscored = stored_hits(reads, reader)
        mapped_chunks = partial(finish_chunks, genome, unscored, parameters, options.threads)
        statistics = write_mapped(
            output, parameters, index.reference, genome, mapped_chunks, report, options.threads
        )
    say(statistics_sentence(statistics))
    if options.stats:
        write_statistics(options.stats, statistics)
