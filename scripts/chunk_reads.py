#!/usr/bin/env python3
"""Read FASTQ into chunks of packed reads, for scripts/seed_chunks.py.

The first of five stages that together do what scripts/map_reads.py does in one. The output is a
file of frames, one a chunk; - is standard output.
"""

import _environment  # noqa: F401

from bwarp.frames import write_frames
from bwarp.mapping.read_chunks import read_chunks
from bwarp.mapping.stages import write_reads
from bwarp.output_names import check_outputs
from bwarp.program import add_read_options, program_parser, run_program, say
from bwarp.progress import progress

EXAMPLES = """
scripts/chunk_reads.py -1 R1.fq.gz -2 R2.fq.gz -o sample.reads
"""


def parse_options():
    parser = program_parser(__doc__, EXAMPLES)
    add_read_options(parser)
    parser.add_argument("-o", "--output", required=True, metavar="READS", help="file to write")
    return parser


def main(options):
    check_outputs([options.output], [options.first, options.second])
    chunks = read_chunks(options.first, options.second, options.interleaved)
    n_reads = 0
    with (
        write_frames(options.output, holds="reads") as writer,
        progress("reads", files=[options.first, *filter(None, [options.second])]) as report,
    ):
        for chunk in chunks:
            write_reads(writer, chunk)
            n_reads += chunk.n_reads
            report(n_reads)
    say(f"{n_reads:,} reads")


if __name__ == "__main__":
    run_program(parse_options(), main)
