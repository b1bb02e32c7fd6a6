"""Write out degenerate primers: every sequence that IUPAC letters such as R, Y and N stand for.

find_seeds.py searches plain bases and skips queries with any other letter. Here a primer with M and
Y becomes four records, named by what those letters became: 16S_AC, 16S_AT, 16S_CC and 16S_CT. A
primer of plain bases keeps its name.
"""

from bwarp.cli.options import add_output_option
from bwarp.cli.program import program_parser, say, whole
from bwarp.errors import InputError
from bwarp.io.atomic_output import atomic_file
from bwarp.io.fastx import read_sequences
from bwarp.io.output_names import check_outputs
from bwarp.seeding.degenerate_primers import LETTER_OF_BYTE, count_forms, forms

EXAMPLES = """
scripts/expand_primers.py primers.fa -o plain.fa
scripts/find_seeds.py --index genome.index --queries plain.fa -o hits.tsv --mismatches 2
"""


def parse_options():
    parser = program_parser(__doc__, EXAMPLES)
    parser.add_argument("primers", metavar="PRIMERS.fa", help="FASTA or FASTQ; - is standard input")
    add_output_option(parser, "OUT.fa", "FASTA to write")
    parser.add_argument(
        "--most", **whole(1, 10**6), default=4096,
        help="refuse a primer that stands for more sequences than this",
    )  # fmt: skip
    return parser


def main(options):
    check_outputs([options.output], [options.primers])
    n_primers = n_forms = 0
    with atomic_file(options.output, "w") as file:
        for batch in read_sequences(options.primers, LETTER_OF_BYTE):
            for record, name in enumerate(batch.names()):
                letters = batch.codes[batch.offsets[record] : batch.offsets[record + 1]]
                letters = letters.tobytes().decode()
                check(options, name, batch.first_record + record + 1, letters)
                for became, bases in forms(letters):
                    file.write(f">{name}_{became}\n" if became else f">{name}\n")
                    file.write(f"{bases}\n")
                    n_forms += 1
            n_primers += batch.count
    say(f"{n_primers:,} primers written out as {n_forms:,} sequences")


def check(options, name: str, record: int, letters: str) -> None:
    if not name:
        raise InputError(
            f"{options.primers}: record {record} has no name: write one after its > or @"
        )
    if count_forms(letters) > options.most:
        raise InputError(
            f"{options.primers}: record {record} ({name}) stands for {count_forms(letters):,} "
            f"sequences, and {options.most:,} are the most: raise --most, or take fewer of N"
        )
