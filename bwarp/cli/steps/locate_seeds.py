"""Turn what scripts/seed_reads.py found into positions: the tables of scripts/find_seeds.py.

The last of three stages that together do what find_seeds.py does in one, with the same bytes in
OUT.tsv, OUT.over.tsv and OUT.skipped.tsv. It runs on the CPU.
"""

from bwarp.cli.options import add_index_option, add_stage_input, add_table_option
from bwarp.cli.program import program_parser, say
from bwarp.index.store import load_index
from bwarp.io.chunk_files import open_chunk_file
from bwarp.io.output_names import check_outputs, table_format
from bwarp.runtime.progress import progress
from bwarp.seeding.output.seed_tables import open_seed_tables, tables_at
from bwarp.seeding.staged_files import read_found

EXAMPLES = """
scripts/locate_seeds.py --index genome.index --seeds reads.seeds -o hits.tsv
scripts/locate_seeds.py --index genome.index --seeds reads.seeds -o hits.parquet
"""


def parse_options():
    parser = program_parser(__doc__, EXAMPLES)
    add_index_option(parser)
    add_stage_input(parser, "--seeds", "seed_reads.py")
    add_table_option(parser)
    return parser


def main(options):
    table_format(options.output)
    check_outputs(tables_at(options.output), [options.index, options.seeds])
    index = load_index(options.index)
    with (
        open_chunk_file(options.seeds, "seeds") as reader,
        open_seed_tables(options.output, index.reference, options.threads) as tables,
        progress("k-mers", files=[options.seeds]) as report,
    ):
        reader.check_index(index.checksum, index.folder)
        counts = tables.counts
        for kmers, queries, found in read_found(reader, index, options.threads):
            if found is None:
                tables.add_kmers(kmers, queries)
                continue
            for _ in tables.add_found(found, kmers, queries):
                report(counts.searched, f"{counts.hits:,} hits")
    say(counts.sentence())
