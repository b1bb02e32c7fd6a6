"""Search the first seeds of reads in an index: what scripts/chunk_reads.py wrote.

The second of five stages that together do what scripts/map_reads.py does in one; it runs on the
CPU. The options of alignment are given here and are kept in the output for the stages that follow.
The output is a chunk file with the SA intervals of the seeds; - is standard output.
"""

from dataclasses import asdict

from bwarp.cli.options import (
    add_index_option,
    add_mapping_options,
    add_output_option,
    add_stage_input,
    mapping_options,
)
from bwarp.cli.program import program_parser, say
from bwarp.index.store import load_index
from bwarp.io.chunk_files import open_chunk_file, write_chunk_file
from bwarp.io.output_names import check_outputs
from bwarp.mapping.seeds.seed_selection_cpu import search_seeds
from bwarp.mapping.staged_files import stored_reads, write_rows
from bwarp.runtime.progress import progress
from bwarp.runtime.threads import in_order

EXAMPLES = """
scripts/seed_chunks.py --index genome.index --reads sample.reads -o sample.rows
scripts/seed_chunks.py --index genome.index --reads sample.reads -o sample.rows --mode end-to-end
"""


def parse_options():
    parser = program_parser(__doc__, EXAMPLES)
    add_index_option(parser)
    add_stage_input(parser, "--reads", "chunk_reads.py")
    add_output_option(parser, "ROWS", "file to write")
    add_mapping_options(parser)
    return parser


def main(options):
    check_outputs([options.output], [options.index, options.reads])
    parameters = mapping_options(options)
    index = load_index(options.index)

    def search(chunk):
        return chunk, search_seeds(index, chunk.codes, chunk.offsets, parameters.first)

    carried = {"index": index.checksum, "parameters": asdict(parameters)}
    n_reads = n_hits = 0
    with (
        open_chunk_file(options.reads, "reads") as reader,
        write_chunk_file(options.output, holds="seed rows", **carried) as writer,
        progress("reads", files=[options.reads]) as report,
    ):
        for chunk, rows in in_order(search, stored_reads(reader), options.threads):
            write_rows(writer, chunk, rows)
            n_reads += chunk.n_reads
            n_hits += int(rows.taken.sum())
            report(n_reads, f"{n_hits:,} hits")
    say(f"{n_reads:,} reads searched: {n_hits:,} hits to locate")
