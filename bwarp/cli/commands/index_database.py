"""Write a database of sequences to a folder, which bwarp search maps into memory.

The sequences are sorted by length and stored as codes, so searches do not parse and sort FASTA. A
folder works with every substitution matrix that has the same letters, by default proteins.
"""

from bwarp.cli.program import program_parser
from bwarp.counted import counted
from bwarp.database_search.best_hits import search_scoring
from bwarp.database_search.database import read_database, save_database
from bwarp.io.atomic_output import check_outputs
from bwarp.options.aligning import SEARCH
from bwarp.options.common import output
from bwarp.runtime.progress import say

EXAMPLES = """
bwarp search-index proteins.fa.gz -o proteins.search
bwarp search-index contigs.fa -o contigs.search --match 1    nucleotides
"""


def parse_options():
    parser = program_parser(
        __doc__,
        EXAMPLES,
        output("FOLDER", "folder to write"),
        SEARCH["matrix"]._replace(help="a matrix that has the letters of the sequences"),
        SEARCH["match"]._replace(help="the sequences are nucleotides, for searches with --match"),
    )
    parser.add_argument("database", metavar="D.fa[.gz]", help="FASTA or FASTQ file")
    return parser


def main(options):
    scoring = search_scoring(options.matrix, options.match, None, 0, 1)
    check_outputs([], [options.database], options.output)
    database = read_database(options.database, scoring.code_of_byte, options.threads)
    save_database(database, scoring.letters, options.output, options.threads)
    say(
        f"{counted(database.count, 'sequence')} of "
        f"{counted(int(database.offsets[-1]), 'residue')}: {options.output}"
    )
