#!/usr/bin/env python3
"""Time the start of programs on little data: their first use on a machine, and later ones.

    python benchmarks/start_up.py -o benchmarks/results/start_up.jsonl

Each program runs on 20 pairs of reads of a simulated genome, and on this genome or --genome. The
first use compiles functions: it runs in a copy of the package, with an empty folder for compiled
functions. The time of later uses is the median of --repeats runs. Each writes one JSON line.
"""

import shutil
import statistics
import sys
import tempfile
from pathlib import Path

from frame.options import new_parser, read_options
from frame.results import overwrite
from frame.simulated import make_genome, make_reads
from frame.timing import run_program

import bwarp

#: The programs to time; those that need an index run after the first.
PROGRAMS = {
    "index": "index genome.fa -o index",
    "map to SAM": "map --index index -1 reads_1.fq -2 reads_2.fq -o reads.sam",
    "map to sorted BAM": "map --index index -1 reads_1.fq -2 reads_2.fq -o reads.bam --sort",
    "seeds": "seeds --index index --queries reads_1.fq -o seeds.tsv -k 20 --step 10",
    "scan": "scan --reference genome.fa --queries reads_1.fa -o scan.tsv --similarity 0.9",
}


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("--genome", type=Path, help="FASTA file (default: 50 kb are simulated)")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument(
        "--programs", nargs="*", default=list(PROGRAMS), choices=PROGRAMS, metavar="PROGRAM",
        help="whose later uses are timed (default: all)",
    )  # fmt: skip
    parser.add_argument(
        "--first-use", nargs="*", default=["index", "map to SAM", "map to sorted BAM", "seeds"],
        choices=PROGRAMS, metavar="PROGRAM", help="whose first use is timed (default: %(default)s)",
    )  # fmt: skip
    return read_options(parser, "start_up.jsonl", repeats=1, programs=["scan"], first_use=["scan"])


def measure(options):
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(Path(bwarp.__file__).parent, work / "package" / "bwarp", ignore=ignored)
        write_data(work, options.genome)
        bases = sum(
            len(line.strip()) for line in (work / "genome.fa").open() if not line.startswith(">")
        )

        def seconds(what: str, *settings: str) -> float:
            program = sys.executable, "-m", "bwarp", *PROGRAMS[what].split(), "--backend", "cpu"
            return run_program(["env", *settings, *program], cwd=work).wall

        # Python compiles the modules of the copy, and the system caches their files.
        of_copy = f"PYTHONPATH={work / 'package'}"
        for program in {PROGRAMS[what].split()[0] for what in options.first_use}:
            run_program(["env", of_copy, sys.executable, "-m", "bwarp", program, "--help"])
        seconds("index")
        for what in options.first_use:
            empty = f"NUMBA_CACHE_DIR={work / 'kept' / what}"
            yield result(what, "first use", bases, [seconds(what, of_copy, empty)])
        for what in options.programs:
            seconds(what)
            times = [seconds(what) for _ in range(options.repeats)]
            yield result(what, "later", bases, times)


def result(what: str, use: str, bases: int, times: list[float]) -> dict:
    return {
        "what": what,
        "use": use,
        "bases": bases,
        "seconds": statistics.median(times),
        "least_seconds": min(times),
        "all_seconds": times,
    }


def write_data(work: Path, genome: Path | None) -> None:
    """Write genome.fa, and 20 pairs of reads of a simulated genome as FASTQ and FASTA."""
    simulated = make_genome(work, 50_000)
    make_reads(work, simulated, 20)
    lines = (work / "reads_1.fq").read_text().splitlines()
    records = zip(lines[::4], lines[1::4], strict=True)
    (work / "reads_1.fa").write_text("".join(f">{name[1:]}\n{bases}\n" for name, bases in records))
    (work / "genome.fa").symlink_to((genome or simulated).resolve())


if __name__ == "__main__":
    options = parse_options()
    overwrite(options.output, measure(options))
