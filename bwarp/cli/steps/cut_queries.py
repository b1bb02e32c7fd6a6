"""Cut the queries of a search into parts, a file each, that can be searched on as many machines.

The output is a folder of files 1.fa, 2.fa and so on, with the records in order, as they are, and
about as many bytes in each. merge_tables.py makes one table of what is found of each.
"""

from pathlib import Path

from bwarp.cli.options import SEQUENCES, add_output_option
from bwarp.cli.program import program_parser, say, whole
from bwarp.errors import UsageError
from bwarp.io.atomic_folder import atomic_folder
from bwarp.io.output_names import check_outputs
from bwarp.io.sequence_parts import write_parts

EXAMPLES = """
scripts/cut_queries.py --queries probes.fa.gz -o probes.parts --parts 20
"""

#: Files of a folder.
MOST_PARTS = 10_000


def parse_options():
    parser = program_parser(__doc__, EXAMPLES)
    parser.add_argument("--queries", required=True, metavar="Q.fa", help=SEQUENCES)
    add_output_option(parser, "FOLDER", "folder of parts to make")
    parser.add_argument(
        "--parts", **whole(1, MOST_PARTS), required=True, help="how many parts to make"
    )
    return parser


def main(options):
    # A named pipe would be waited for the second time.
    if options.queries == "-" or Path(options.queries).is_fifo():
        raise UsageError(f"{options.queries}: queries are read twice to be cut: give a file")
    check_outputs([], [options.queries], options.output)
    own = [f"{part}.fa" for part in range(1, MOST_PARTS + 1)]
    with atomic_folder(options.output, own) as folder:
        n_queries = write_parts(options.queries, folder, options.parts, options.threads)
    say(f"{n_queries:,} queries: {options.parts:,} parts")
