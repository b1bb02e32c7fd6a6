"""Simulate a genome with the repeats and gaps of a real one."""

import numpy as np

from bwarp.cli.program import bounded_int, program_parser, say
from bwarp.io.atomic_output import atomic_file
from bwarp.simulation.fasta_text import fasta_pieces
from bwarp.simulation.genome import GenomeParameters, simulate_genome


def parse_options():
    parser = program_parser(
        __doc__ + " Several contigs of uneven length with dispersed repeat families, segmental "
        "duplications, microsatellites, satellite arrays and runs of N. The same options and "
        "seed give the same file.",
        """
        simulate_genome.py -o demo.fa --length 1000000 --contigs 4 --seed 7
        simulate_genome.py -o human_like.fa.gz --length 3100000000 --contigs 24
        simulate_genome.py -o plain.fa --length 50000 --repeat-fraction 0 --tandem-fraction 0 \\
            --duplication-fraction 0 --n-fraction 0
        """,
    )
    defaults = GenomeParameters(length=1)
    add = parser.add_argument
    add("-o", "--output", required=True, metavar="OUT.fa[.gz]", help="FASTA file to write")
    add(
        "--length",
        type=bounded_int(1, 2**40),
        default=1_000_000,
        metavar="N",
        help="bases of all contigs together (default: %(default)s)",
    )
    add(
        "--contigs",
        type=bounded_int(1, 10**7),
        default=4,
        metavar="N",
        help="number of contigs; the first is five times as long as the last "
        "(default: %(default)s)",
    )
    add(
        "--seed",
        type=bounded_int(0, 2**63 - 1),
        default=defaults.seed,
        metavar="N",
        help="another seed makes another genome (default: %(default)s)",
    )
    for option, what in (
        ("gc", "the part of the unique sequence that is G or C"),
        ("repeat-fraction", "the part that is transposons: 300 b, 1.5 kb and 6 kb families"),
        ("tandem-fraction", "the part that is microsatellites and satellite arrays"),
        ("duplication-fraction", "the part that is segmental duplications"),
        ("n-fraction", "the part that is runs of N"),
    ):
        default = getattr(defaults, option.replace("-", "_"))
        add(
            f"--{option}",
            type=float,
            default=default,
            metavar="F",
            help=f"{what} (default: {default})",
        )
    add(
        "--iupac-letters",
        type=bounded_int(0, 2**40),
        default=0,
        metavar="N",
        help="single bases that become ambiguous letters like R (default: %(default)s)",
    )
    add("--lower-case-repeats", action="store_true", help="write repeats in lower case")
    add(
        "--line-width",
        type=bounded_int(1, 10**6),
        default=80,
        metavar="N",
        help="bases a line (default: %(default)s)",
    )
    return parser


def main(arguments):
    parameters = GenomeParameters(
        length=arguments.length,
        contigs=arguments.contigs,
        seed=arguments.seed,
        gc=arguments.gc,
        repeat_fraction=arguments.repeat_fraction,
        tandem_fraction=arguments.tandem_fraction,
        duplication_fraction=arguments.duplication_fraction,
        n_fraction=arguments.n_fraction,
        iupac_letters=arguments.iupac_letters,
    )
    with atomic_file(arguments.output) as file:
        genome = simulate_genome(parameters, arguments.threads)
        masked = genome.repeats if arguments.lower_case_repeats else np.empty((0, 2), np.int64)
        for piece in fasta_pieces(genome, arguments.line_width, masked):
            file.write(piece)
    say(f"{arguments.output}: {arguments.length:,} bases in {arguments.contigs} contigs")
