"""Cut reads into k-mers, packed in 2 bits a base, for scripts/seed_reads.py.

The first of three stages that together do what scripts/find_seeds.py does in one. The output is a
chunk file with the k-mers of reads and the names of these; - is standard output.
"""

from bwarp.cli.options import (
    add_kmer_options,
    add_output_option,
    add_queries_option,
    kmer_options,
)
from bwarp.cli.program import program_parser, say
from bwarp.io.chunk_files import write_chunk_file
from bwarp.io.output_names import check_outputs
from bwarp.seeding.queries import read_kmers
from bwarp.seeding.staged_files import write_kmers

EXAMPLES = """
scripts/batch_reads.py --queries reads.fq.gz -o reads.kmers -k 20 --step 10
scripts/batch_reads.py --queries guides.fa -o guides.kmers
"""


def parse_options():
    parser = program_parser(__doc__, EXAMPLES)
    add_queries_option(parser)
    add_output_option(parser, "KMERS", "file to write")
    add_kmer_options(parser)
    return parser


def main(options):
    batches = read_kmers(options.queries, *kmer_options(options))
    check_outputs([options.output], [options.queries])
    n_kmers = n_skipped = 0
    with write_chunk_file(options.output, holds="k-mers") as writer:
        for kmers, queries in batches:
            write_kmers(writer, kmers, queries)
            n_kmers += kmers.count
            n_skipped += len(kmers.skipped)
    say(f"{n_kmers:,} k-mers; {n_skipped:,} skipped")
