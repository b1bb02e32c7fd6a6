"""Split the queries of a search into parts, one file each, to search them on many machines.

The output is a folder of files 1.fa, 2.fa and so on, with unchanged records and about the same
number of bytes in each. bwarp merge-tables merges the resulting tables into one. Records are in the
order of the rows of that table: for scan the shortest first, for other searches unchanged. Queries
that the search would reject are rejected here, before any part is searched.
"""

from functools import partial
from pathlib import Path

from bwarp.cli.program import program_parser
from bwarp.composition.scan import scan_queries
from bwarp.counted import counted
from bwarp.database_search.best_hits import search_scoring
from bwarp.database_search.database import gather_sequences
from bwarp.errors import UsageError
from bwarp.io.atomic_output import atomic_folder, check_outputs
from bwarp.io.names import names_of
from bwarp.io.sequence_parts import write_parts, write_parts_by_length
from bwarp.options.aligning import SEARCH
from bwarp.options.common import PARTS, output, sequence_file
from bwarp.runtime.progress import say
from bwarp.sequence import CODE_OF_BYTE

EXAMPLES = """
bwarp cut-queries --queries probes.fa.gz -o probes.parts --parts 20 --for seeds
bwarp cut-queries --queries proteins.fa -o proteins.parts --parts 4 --for search
"""


def check_names(path, batches):
    for batch in batches:
        names_of(path, batch)


#: Functions per search that check queries and that cut them.
SEARCHES = {
    "seeds": (check_names, write_parts),
    "mems": (check_names, write_parts),
    "scan": (scan_queries, write_parts_by_length),
    "search": (gather_sequences, write_parts),
}


def parse_options():
    parser = program_parser(
        __doc__,
        EXAMPLES,
        sequence_file("queries", "Q.fa", required=True),
        output("FOLDER", "folder of parts to make"),
        PARTS._replace(help="number of parts to make", default=None, required=True),
        SEARCH["matrix"]._replace(help="for search: the substitution matrix", unset=""),
        SEARCH["match"]._replace(help="for search: the score of a match", unset=""),
    )
    parser.add_argument(
        "--for", dest="search", choices=SEARCHES, required=True, help="the search program"
    )
    return parser


def main(options):
    # The second read of a named pipe would block.
    if options.queries == "-" or Path(options.queries).is_fifo():
        raise UsageError(
            f"{options.queries}: the queries are read twice: use a file, not standard input"
        )
    if options.search != "search" and (options.matrix or options.match is not None):
        raise UsageError("--matrix and --match require --for search")
    code_of_byte = CODE_OF_BYTE
    if options.search == "search":
        code_of_byte = search_scoring(options.matrix, options.match, None, 0, 1).code_of_byte
    check_outputs([], [options.queries], options.output)
    check, write = SEARCHES[options.search]
    own = [f"{part}.fa" for part in range(1, PARTS.value.most + 1)]
    with atomic_folder(options.output, own) as folder:
        n_queries = write(
            options.queries, folder, options.parts, partial(check, options.queries),
            code_of_byte, options.threads,
        )  # fmt: skip
    say(f"{counted(n_queries, 'query')}: {counted(options.parts, 'part')}")
