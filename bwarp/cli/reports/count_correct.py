"""Count how many simulated reads are mapped correctly, by mapping quality.

A read is correct if it is mapped within 20 bases of the origin in its name. Reads must be from
bwarp simulate-reads or dwgsim.
"""

import json
from dataclasses import asdict

from bwarp.cli.program import program_parser
from bwarp.counted import counted
from bwarp.evaluation.agreement import count_correct
from bwarp.io.atomic_output import check_outputs, write_text
from bwarp.options.common import output
from bwarp.runtime.progress import say

EXAMPLES = """
bwarp count-correct sample.bam -o truth.json
"""


def parse_options():
    written = output("OUT.json", "file to write; - is standard output")
    parser = program_parser(__doc__, EXAMPLES, written)
    parser.add_argument("alignments", metavar="IN.bam|IN.sam")
    return parser


def main(options):
    check_outputs([options.output], [options.alignments])
    counts = count_correct(options.alignments)
    write_text(options.output, json.dumps(asdict(counts)) + "\n")
    share = 100 * sum(counts.correct) / max(counts.total, 1)
    say(
        f"{sum(counts.correct):,} of {counted(counts.total, 'read is', 'reads are')} mapped "
        f"correctly: {share:.2f} %"
    )
