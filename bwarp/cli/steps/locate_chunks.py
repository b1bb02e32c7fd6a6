"""Turn the SA rows of scripts/seed_chunks.py into candidates: where reads may align.

The third of five stages that together do what scripts/map_reads.py does in one: the suffix array is
looked up, on the CPU, and seeds are grouped by strand and diagonal. The output is a chunk file;
- is standard output.
"""

from bwarp.cli.options import add_index_option, add_output_option, add_stage_input
from bwarp.cli.program import program_parser, say
from bwarp.index.store import load_index
from bwarp.io.chunk_files import open_chunk_file, write_chunk_file
from bwarp.io.output_names import check_outputs
from bwarp.mapping.seeds.candidates_cpu import locate_candidates
from bwarp.mapping.staged_files import read_parameters, stored_rows, write_candidates
from bwarp.runtime.progress import progress
from bwarp.runtime.threads import in_order

EXAMPLES = """
scripts/locate_chunks.py --index genome.index --rows sample.rows -o sample.candidates
"""


def parse_options():
    parser = program_parser(__doc__, EXAMPLES)
    add_index_option(parser)
    add_stage_input(parser, "--rows", "seed_chunks.py")
    add_output_option(parser, "CANDIDATES", "file to write")
    return parser


def main(options):
    check_outputs([options.output], [options.index, options.rows])
    index = load_index(options.index)
    n_reads = n_candidates = 0
    with open_chunk_file(options.rows, "seed rows") as reader:
        reader.check_index(index.checksum, index.folder)
        parameters = read_parameters(reader)

        def locate(chunk):
            tag, offsets, rows = chunk
            return tag, locate_candidates(index, offsets, rows, parameters.first, parameters)

        carried = {name: reader.holds[name] for name in ("index", "parameters")}
        with (
            write_chunk_file(options.output, holds="candidates", **carried) as writer,
            progress("reads", files=[options.rows]) as report,
        ):
            for tag, candidates in in_order(locate, stored_rows(reader), options.threads):
                write_candidates(writer, tag, candidates)
                n_reads += candidates.unlocated.size
                n_candidates += candidates.reads.size
                report(n_reads, f"{n_candidates:,} candidates")
    say(f"{n_reads:,} reads: {n_candidates:,} candidates")
