#!/usr/bin/env python3
"""Time maximal exact matches on the CPU against MUMmer 3 (and 4), in turns, in one run.

    python benchmarks/mems.py -o benchmarks/results/mems_cpu.jsonl

1. E. coli DH1 against MG1655, all matches of at least 20 bases, both strands: whole programs from
   FASTA to output, so indexing is included for each.
2. Drozd et al.'s figure 2: reads of 100 bases, both strands, matches unique in the reference,
   against increasingly long parts of human chr20, or of a simulated genome if it is missing. mummer
   builds its index in each run; bwarp builds it once, and its time is given separately.

Sorted outputs are compared line by line. Missing data or programs are reported and skipped. mummer4
is used if a program of that name is on PATH. For GPUs see benchmarks/mems_gpu.py.
"""

import gzip
import statistics
import sys
import tempfile
from functools import partial
from pathlib import Path

from frame.options import SHARED, add_folder, add_threads, large_file, new_parser, read_options
from frame.peers import found
from frame.results import overwrite
from frame.simulated import make_genome, run_script, script
from frame.timing import in_turn, run_program

from bwarp.options.option import Whole


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("--repeats", type=Whole(1, 100).parse, default=3)
    parser.add_argument("--reads", type=Whole(1, 10**8).parse, default=1_000_000)
    add_threads(parser)
    parser.add_argument(
        "--sizes", type=int, nargs="*", default=[4, 16, 64], help="Mb of it (default: 4 16 64)"
    )
    add_folder(parser)
    return read_options(parser, "mems_cpu.jsonl", repeats=1, reads=1000, sizes=[1])


def measure(options):
    with tempfile.TemporaryDirectory(dir=options.folder) as work:
        if not options.small:
            yield from time_genomes(Path(work), options)
        yield from time_reads(Path(work), options)


def mummers() -> list[str]:
    return [name for name in ("mummer", "mummer4") if found(name)]


def find_mems(*arguments) -> list:
    return script("find_mems", "--backend", "cpu", *arguments)


def time_genomes(work: Path, options):
    folder = SHARED / "refs_bacteria_mummer" / "ecoli"
    if not folder.is_dir():
        print(f"{folder} is not here: genomes are left out", file=sys.stderr)
        return
    paths = {}
    for name in ("MG1655-K12", "DH1"):
        paths[name] = work / f"{name}.fa"
        paths[name].write_bytes(gzip.decompress((folder / f"{name}.fasta.gz").read_bytes()))
    reference, queries = paths.values()
    common = ["--queries", queries, "-o", "-", "--kind", "maxmatch", "--strands", "both"]
    common += ["--threads", str(options.threads)]
    index = work / "ecoli.index"
    commands = {
        "bwarp": [find_mems("--reference", reference, *common)],
        "bwarp with an FM-index": [
            script("index_reference", reference, "-o", index),
            find_mems("--index", index, *common),
        ],
    }
    for name in mummers():
        commands[name] = [[name, "-maxmatch", "-b", "-l", "20", reference, queries]]
    yield from take_turns(
        "matches of 20 b of E. coli DH1, both strands", "E. coli MG1655", commands, work, options
    )


def time_reads(work: Path, options):
    chromosome, name = large_file("chr20.fa"), "chr20"
    if options.small or chromosome is None:
        print("left out chr20.fa, not in $BWARP_LARGE: a genome is simulated", file=sys.stderr)
        chromosome, name = make_genome(work, 1_000_000 * max(options.sizes)), "a simulated genome"
    lines = chromosome.read_text().splitlines()
    bases = "".join(line for line in lines if line[0] != ">").strip("N")
    for size in options.sizes:
        part = bases[: size * 1_000_000]
        reference, reads = work / f"part_{size}.fa", work / f"reads_{size}"
        reference.write_text(f">{name.replace(' ', '_')}\n{part}\n")
        make_reads(reference, reads, options.reads)
        index = work / f"part_{size}.index"
        indexing = round(
            run_script("index_reference", reference, "-o", index, "--with-reverse").wall, 2
        )
        common = ["--queries", f"{reads}.fa", "-o", "-", "--strands", "both"]
        common += ["--threads", str(options.threads)]
        commands = {"bwarp": [find_mems("--index", index, *common)]}
        for mummer in mummers():
            commands[mummer] = [
                [mummer, "-mumreference", "-n", "-b", "-l", "20", reference, f"{reads}.fa"]
            ]
        what = f"unique matches of {options.reads:,} reads of 100 b, both strands"
        for line in take_turns(
            what, f"{len(part) / 1e6:.0f} Mb of {name}", commands, work, options
        ):
            yield line | {"bwarp_index_s": indexing}


def make_reads(reference: Path, prefix: Path, n_reads: int) -> None:
    fastq = f"{prefix}.fq"
    ends = "-1", fastq, "--reads", n_reads
    run_script("simulate_reads", "--reference", reference, *ends, "--read-length", 100)
    with open(fastq) as file, open(f"{prefix}.fa", "w") as fasta:
        for number, line in enumerate(file):
            if number % 4 == 0:
                fasta.write(">" + line[1:])
            elif number % 4 == 1:
                fasta.write(line)


def take_turns(what: str, reference: str, commands: dict, work: Path, options):
    """Return a line per program: the median wall time, all times, and whether outputs agree."""

    def run(name: str) -> float:
        wall = 0.0
        for command in commands[name]:
            with open(work / name, "wb") as file:
                wall += run_program(command, stdout=file).wall
        return round(wall, 3)

    times = in_turn({name: partial(run, name) for name in commands}, options.repeats + 1)
    outputs = {name: sorted((work / name).read_bytes().splitlines()) for name in commands}
    # The first round compiles and fills the page cache.
    for name, (_, *seconds) in times.items():
        yield {
            "what": what,
            "reference": reference,
            "program": name,
            "seconds": statistics.median(seconds),
            "all_seconds": seconds,
            "equal": outputs[name] == outputs["bwarp"],
            "threads": options.threads,
        }


if __name__ == "__main__":
    options = parse_options()
    overwrite(options.output, measure(options))
