"""Merge the tables of parts of queries, in order: tables of bwarp seeds, bwarp mems,
bwarp scan, bwarp search and bwarp offtargets, as .tsv or in MUMmer's format.

The output is byte-identical to that of a single run with all queries.
"""

import shutil
from pathlib import Path

from bwarp.cli.program import program_parser
from bwarp.counted import counted
from bwarp.errors import InputError, UsageError
from bwarp.io.atomic_output import atomic_file, check_outputs
from bwarp.options.common import output
from bwarp.runtime.progress import say

EXAMPLES = """
bwarp merge-tables 1.tsv 2.tsv 3.tsv -o probes.tsv
"""

#: Whether tables with this ending begin with a header line.
HAS_HEADER = {".tsv": True, ".mums": False}


def parse_options():
    parser = program_parser(
        __doc__, EXAMPLES, output("OUT", "table to write, with the ending of the parts")
    )
    parser.add_argument(
        "--no-header", action="store_true", help="the tables have no header line, as BED"
    )
    parser.add_argument("parts", nargs="+", metavar="PART", help="tables, in order")
    return parser


def main(options):
    ending = Path(options.output).suffix
    if ending not in HAS_HEADER:
        raise UsageError(f"{options.output}: the output must end in .tsv or .mums")
    for part in options.parts:
        if Path(part).suffix != ending:
            raise UsageError(f"{part}: all tables must end in {ending}, like the output")
    check_outputs([options.output], options.parts)
    has_header = HAS_HEADER[ending] and not options.no_header
    header = None
    with atomic_file(options.output) as file:
        for path in options.parts:
            with open(path, "rb") as part:
                if has_header:
                    line = part.readline()
                    if header is None:
                        header = line
                        file.write(header)
                    if line != header or not line.endswith(b"\n"):
                        raise InputError(
                            f"{path}: the header differs from that of {options.parts[0]}: make it "
                            "again"
                        )
                shutil.copyfileobj(part, file, 1 << 20)
    say(f"{options.output}: {counted(len(options.parts), 'table')} merged")
