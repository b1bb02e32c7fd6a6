#!/usr/bin/env python3
"""Merge the sorted BAM files of a sample's units, and the counts beside them."""

import json
import os
from pathlib import Path

from bwarp.errors import UsageError
from bwarp.mapping.alignment_file import samtools
from bwarp.mapping.statistics import merged_statistics
from bwarp.output import atomic_file, private_folder
from bwarp.program import program_parser, run_program, say

EXAMPLES = """
scripts/merge_alignments.py lane1.bam lane2.bam -o sample.bam
"""


def parse_options():
    parser = program_parser(
        __doc__ + " Beside every X.bam lies X.stats.json, as map_reads.py --stats writes it; "
        "beside the output will lie their sum and an index.",
        EXAMPLES,
    )
    parser.add_argument("units", nargs="+", metavar="UNIT.bam", help="sorted BAM files")
    parser.add_argument("-o", "--output", required=True, metavar="OUT.bam")
    return parser


def main(options):
    output = Path(options.output)
    if output.suffix != ".bam":
        raise UsageError(f"{output}: the output must end in .bam")
    statistics = {}
    for unit in map(Path, options.units):
        with open(unit.with_suffix(".stats.json")) as file:
            statistics[unit.stem] = json.load(file)
    with private_folder(output) as folder:
        made = str(folder / "out.bam")
        more = ["--no-PG", "-c", "-p", "-@", str(options.threads - 1)]
        with samtools(["merge", *more, "-o", made, *options.units], str(output)):
            pass
        with samtools(["index", made, f"{made}.bai"], str(output)):
            pass
        with atomic_file(output.with_suffix(".stats.json"), "w") as file:
            file.write(json.dumps(merged_statistics(statistics), indent=1) + "\n")
        os.replace(f"{made}.bai", f"{output}.bai")
        os.replace(made, output)
    say(f"{output}: {len(statistics)} units merged")


if __name__ == "__main__":
    run_program(parse_options(), main)
