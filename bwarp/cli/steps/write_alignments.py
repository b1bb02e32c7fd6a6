"""Write the loci of a batch, with their CIGARs: BAM, TSV or PAF.

The last step of the chain but for scripts/merge_loci.py, after scripts/extend_candidates.py. The
same bytes as scripts/find_alignments.py writes of these reads.
"""

from contextlib import ExitStack

from bwarp.cli.locus_options import (
    add_locus_output_options,
    open_locus_output,
    outputs_of,
    write_certificate,
)
from bwarp.cli.options import add_index_option, add_output_option, add_stage_input
from bwarp.cli.program import program_parser, say
from bwarp.errors import InputError
from bwarp.index.store import load_index
from bwarp.io.chunk_files import open_chunk_file
from bwarp.io.output_names import check_outputs
from bwarp.loci.chain_files import found_rounds, options_of_file
from bwarp.loci.find import Certificate, finish_chunk
from bwarp.loci.find_cpu import load
from bwarp.loci.read_blocks import blocks_of
from bwarp.loci.rounds import joined_rounds
from bwarp.mapping.extension.extension_cpu import both_strands
from bwarp.runtime.progress import progress
from bwarp.runtime.threads import in_order

EXAMPLES = """
scripts/write_alignments.py --index genome.index --reads batches/0.reads --loci 0.loci -o 0.bam \\
    --stats 0.stats.json
scripts/write_alignments.py --index genome.index --reads batches/0.reads --loci 0.1.loci 0.2.loci \\
    -o 0.tsv
"""


def parse_options():
    parser = program_parser(__doc__, EXAMPLES)
    add_index_option(parser)
    add_stage_input(parser, "--reads", "batch_reads.py", or_input="")
    parser.add_argument(
        "--loci", nargs="+", required=True, metavar="LOCI",
        help="files that extend_candidates.py wrote, one a round",
    )  # fmt: skip
    add_output_option(
        parser, "OUT", "loci to write: .bam, .tsv or .paf (the tables also .gz); - is TSV on "
        "standard output",
    )  # fmt: skip
    add_locus_output_options(parser)
    return parser


def main(options):
    outputs = outputs_of(options.output, options.stats, options.read_group, options.xa)
    check_outputs(outputs, [options.index, options.reads, *options.loci])
    index = load_index(options.index)
    genome = load(index.reference, options.threads)
    certificate = Certificate()
    with ExitStack() as files:
        reads = files.enter_context(open_chunk_file(options.reads, "reads"))
        readers = [files.enter_context(open_chunk_file(path, "loci")) for path in options.loci]
        limits = options_of_file(readers[0])
        for reader in readers:
            reader.check_index(index.checksum, index.folder)
            if options_of_file(reader) != limits:
                raise InputError(
                    f"{reader.path}: was searched with other limits than {readers[0].path}: give "
                    "the rounds of one search"
                )
        encode, write = files.enter_context(
            open_locus_output(options, limits, index.reference, genome.blocks, certificate)
        )
        report = files.enter_context(progress("reads", files=[options.reads]))

        def finish(of_chunk):
            chunk, rounds, counts = of_chunk
            both = both_strands(chunk.codes, chunk.offsets)
            loci = joined_rounds(rounds, chunk.n_reads, limits.strata)
            found = finish_chunk(
                genome, chunk, both, blocks_of(both), loci, counts, limits, options.max_places
            )
            return encode(found), found.certificate

        for texts, counts in in_order(finish, found_rounds(reads, readers), options.threads):
            write(texts)
            certificate.add(counts)
            report(certificate.reads, f"{certificate.loci:,} loci")
    say(certificate.sentence())
    if options.stats:
        write_certificate(options.stats, certificate)
