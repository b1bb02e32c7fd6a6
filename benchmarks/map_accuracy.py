#!/usr/bin/env python3
"""Count the correct reads of many read sets with bwarp and bwa mem: one call of map.py per set.

    python benchmarks/map_accuracy.py
    python benchmarks/map_accuracy.py --pairs 100000 -o benchmarks/results/map_accuracy.json

Genomes are E. coli and human chr20 if available, or a simulated one. Reads have 30 to 1,000 bases,
up to 3 % variants or long indels, and are paired or single; they come from dwgsim, or from bwarp's
simulator if dwgsim is not installed. Output lines are those of map.py.
"""

import sys
import tempfile
from pathlib import Path

from frame.options import CHECKOUT, add_threads, large_file, new_parser, read_options
from frame.peers import found
from frame.references import ecoli
from frame.simulated import make_genome
from frame.timing import run_program

#: Options of map.py, and the share of --pairs for each set: more for the first, which README.md
#: shows, and fewer for long reads.
SETS = (
    ({}, 5),
    ({"--read-length": 100}, 1),
    ({"--read-length": 250}, 1),
    ({"--variant-rate": 0.01}, 1),
    ({"--variant-rate": 0.03}, 1),
    ({"--variant-rate": 0.002, "--indel-fraction": 0.5, "--indel-length": 10}, 1),
    ({"--single": None}, 1),
    ({"--read-length": 100, "--single": None}, 1),
    ({"--read-length": 30}, 1),
    ({"--read-length": 40}, 1),
    ({"--read-length": 50}, 1),
    ({"--read-length": 500}, 0.1),
    ({"--read-length": 1000}, 0.1),
)


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("--pairs", type=int, default=20_000, help="of a set")
    parser.add_argument("--bases", type=int, default=20_000_000, help="of the simulated genome")
    parser.add_argument("--sets", type=int, default=len(SETS), help="only the first so many")
    parser.add_argument("--seed", type=int, default=7)
    add_threads(parser)
    return read_options(parser, "map_accuracy.json", pairs=500, bases=200_000, sets=2)


def references(folder: Path, options) -> list[Path]:
    """Return E. coli and chr20 if available, otherwise a simulated genome."""
    fasta = folder / "ecoli.fa"
    here = [fasta] if not options.small and ecoli(fasta) else []
    chromosome = None if options.small else large_file("chr20.fa")
    here += [chromosome] if chromosome else []
    return here or [make_genome(folder, options.bases)]


def main():
    options = parse_options()
    mappers = ["bwarp", *(["bwa mem"] if found("bwa") else [])]
    simulator = "dwgsim" if found("dwgsim") else "own"
    with tempfile.TemporaryDirectory() as name:
        for reference in references(Path(name), options):
            for chosen, share in SETS[: options.sets]:
                words = [str(word) for pair in chosen.items() for word in pair if word is not None]
                run_program([
                    sys.executable, CHECKOUT / "benchmarks/map.py", "--reference", reference,
                    "--folder", Path(name, "indexes"), "--simulator", simulator, "--repeats", 1,
                    "--pairs", max(100, int(options.pairs * share)), "--seed", options.seed,
                    "--threads", options.threads, "--mappers", *mappers, "-o", options.output,
                    *words,
                ], stdout=None)  # fmt: skip


if __name__ == "__main__":
    main()
