"""Simulate a genome with repeats and gaps like those of a real one.

It has several contigs of uneven length with dispersed repeat families, segmental duplications,
microsatellites, satellite arrays and runs of N. The same options and seed give the same file.
"""

from dataclasses import fields

import numpy as np

from bwarp.cli.program import program_parser
from bwarp.counted import counted
from bwarp.io.atomic_output import atomic_file
from bwarp.options.common import output
from bwarp.options.option import Whole
from bwarp.runtime.progress import say
from bwarp.simulation.genome import GenomeParameters, fasta_pieces, simulate_genome

EXAMPLES = """
bwarp simulate-genome -o demo.fa --length 1000000 --contigs 4 --seed 7
bwarp simulate-genome -o human_like.fa.gz --length 3100000000 --contigs 24
bwarp simulate-genome -o plain.fa --length 50000 --repeat-fraction 0 --tandem-fraction 0 \\
    --duplication-fraction 0 --n-fraction 0
"""

FRACTIONS = {
    "gc": "fraction of G and C in the unique sequence",
    "repeat-fraction": "fraction of transposons: families of 300 b, 1.5 kb and 6 kb",
    "tandem-fraction": "fraction of microsatellites and satellite arrays",
    "duplication-fraction": "fraction of segmental duplications",
    "n-fraction": "fraction of runs of N",
}


def parse_options():
    parser = program_parser(__doc__, EXAMPLES, output("OUT.fa[.gz]", "FASTA file to write"))
    for flag, least, most, meaning in (
        ("--length", 1, 2**40, "total length of all contigs"),
        ("--contigs", 1, 10**7, "number of contigs; the first is five times as long as the last"),
        ("--seed", 0, 2**63 - 1, "seed of the random numbers"),
        ("--iupac-letters", 0, 2**40, "number of bases replaced by ambiguous letters such as R"),
        ("--line-width", 1, 10**6, "bases per line"),
    ):
        parser.add_argument(flag, **Whole(least, most).argument(), help=meaning)
    for name, meaning in FRACTIONS.items():
        parser.add_argument(f"--{name}", type=float, metavar="F", help=meaning)
    parser.set_defaults(**vars(GenomeParameters(length=1_000_000, contigs=4)), line_width=80)
    parser.add_argument(
        "--lower-case-repeats", action="store_true", help="write repeats in lower case"
    )
    return parser


def main(options):
    parameters = GenomeParameters(
        **{field.name: getattr(options, field.name) for field in fields(GenomeParameters)}
    )
    with atomic_file(options.output) as file:
        genome = simulate_genome(parameters, options.threads)
        masked = genome.repeats if options.lower_case_repeats else np.empty((0, 2), np.int64)
        for piece in fasta_pieces(genome, options.line_width, masked):
            file.write(piece)
    say(
        f"{options.output}: {counted(options.length, 'base')} in "
        f"{counted(options.contigs, 'contig')}"
    )
