"""Read FASTQ into chunks of packed reads, for scripts/seed_chunks.py.

The first of five stages that together do what scripts/map_reads.py does in one. The output is a
chunk file; - is standard output.
"""

from bwarp.cli.options import add_output_option, add_read_options
from bwarp.cli.program import program_parser, say
from bwarp.io.chunk_files import write_chunk_file
from bwarp.io.output_names import check_outputs
from bwarp.mapping.reads.read_chunks import read_chunks
from bwarp.mapping.staged_files import write_reads
from bwarp.runtime.progress import progress

EXAMPLES = """
scripts/chunk_reads.py -1 R1.fq.gz -2 R2.fq.gz -o sample.reads
"""


def parse_options():
    parser = program_parser(__doc__, EXAMPLES)
    add_read_options(parser)
    add_output_option(parser, "READS", "file to write")
    return parser


def main(options):
    check_outputs([options.output], [options.first, options.second])
    chunks = read_chunks(
        options.first, options.second, options.interleaved, threads=options.threads
    )
    n_reads = 0
    with (
        write_chunk_file(options.output, holds="reads") as writer,
        progress("reads", files=[options.first, *filter(None, [options.second])]) as report,
    ):
        for chunk in chunks:
            write_reads(writer, chunk)
            n_reads += chunk.n_reads
            report(n_reads)
    say(f"{n_reads:,} reads")
