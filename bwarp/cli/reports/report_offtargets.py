"""Write the tables of bwarp offtargets as a web page: guides by rank, each with its worst sites.

The page is that of bwarp offtargets --report. OUT.guides.tsv must lie next to OUT.tsv.
"""

from bwarp.cli.program import program_parser
from bwarp.io.atomic_output import atomic_file, check_outputs
from bwarp.options.common import output
from bwarp.options.finding import OFFTARGETS
from bwarp.report.offtarget_page import offtarget_page
from bwarp.seeding.seed_tables import sibling

EXAMPLES = """
bwarp report-offtargets sites.tsv -o sites.html
bwarp report-offtargets sites.tsv -o sites.html \\
    --report-link 'https://igv.org/app/?genome=hg38&locus={contig}:{start}-{end}'
"""


def parse_options():
    parser = program_parser(
        __doc__, EXAMPLES, output("OUT.html", "page to write"),
        *OFFTARGETS.only("report_sites", "report_link"),
    )  # fmt: skip
    parser.add_argument("table", metavar="OUT.tsv", help="table of sites, plain or gz")
    return parser


def main(options):
    guides = sibling(options.table, "guides")
    check_outputs([options.output], [options.table, guides])
    page = offtarget_page(options.table, guides, options.report_sites, options.report_link)
    with atomic_file(options.output) as file:
        file.write(page.encode())
