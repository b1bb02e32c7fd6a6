"""Score the candidates of scripts/locate_chunks.py, and search unresolved reads again.

The fourth of five stages that together do what scripts/map_reads.py does in one; it runs on the
CPU. The output is a chunk file with scored hits; - is standard output.
"""

from bwarp.cli.options import add_index_option, add_output_option, add_stage_input
from bwarp.cli.program import program_parser, say
from bwarp.index.store import load_index
from bwarp.io.chunk_files import open_chunk_file, write_chunk_file
from bwarp.io.output_names import check_outputs
from bwarp.mapping.extension.extension_cpu import genome_of
from bwarp.mapping.pipeline import score_chunk
from bwarp.mapping.staged_files import read_parameters, stored_candidates, write_hits
from bwarp.runtime.progress import progress
from bwarp.runtime.threads import in_order

EXAMPLES = """
scripts/extend_candidates.py --index genome.index --reads sample.reads \\
    --candidates sample.candidates -o sample.hits
"""


def parse_options():
    parser = program_parser(__doc__, EXAMPLES)
    add_index_option(parser)
    add_stage_input(parser, "--reads", "chunk_reads.py", or_input="")
    add_stage_input(parser, "--candidates", "locate_chunks.py")
    add_output_option(parser, "HITS", "file to write")
    return parser


def main(options):
    check_outputs([options.output], [options.index, options.reads, options.candidates])
    index = load_index(options.index)
    n_reads = n_hits = 0
    with (
        open_chunk_file(options.reads, "reads") as reads,
        open_chunk_file(options.candidates, "candidates") as reader,
    ):
        reader.check_index(index.checksum, index.folder)
        parameters = read_parameters(reader)
        genome = genome_of(index.reference, options.threads)

        def score(chunk_and_candidates):
            return score_chunk(index, genome, *chunk_and_candidates, parameters)

        carried = {name: reader.holds[name] for name in ("index", "parameters")}
        with (
            write_chunk_file(options.output, holds="scored hits", **carried) as writer,
            progress("reads", files=[options.candidates]) as report,
        ):
            for scored in in_order(score, stored_candidates(reads, reader), options.threads):
                write_hits(writer, scored)
                n_reads += scored.chunk.n_reads
                n_hits += scored.hits.reads.size
                report(n_reads, f"{n_hits:,} scored hits")
    say(f"{n_reads:,} reads: {n_hits:,} scored hits")
