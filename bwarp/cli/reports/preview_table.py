"""Write the first rows of a table of results, and its number of rows, as a small HTML page."""

import gzip
import os

from bwarp.cli.program import program_parser
from bwarp.io.atomic_output import check_outputs, write_text
from bwarp.options.common import output
from bwarp.report.manifest import preview_page

EXAMPLES = """
bwarp preview-table results/seeds/primers.tsv -o primers.html
bwarp preview-table results/mems/reads.mums -o reads.html --no-header
"""


def parse_options():
    parser = program_parser(__doc__, EXAMPLES, output("OUT.html", "page to write"))
    parser.add_argument("table", metavar="TABLE", help="table, plain or gz")
    parser.add_argument("--no-header", action="store_true", help="the table has no header")
    return parser


def main(options):
    check_outputs([options.output], [options.table])
    opened = gzip.open if options.table.endswith(".gz") else open
    with opened(options.table, "rb") as table:
        name = os.fsencode(options.table).decode(errors="replace")
        page = preview_page(name, table, header=not options.no_header)
    write_text(options.output, page)
