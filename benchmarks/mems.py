#!/usr/bin/env python3
"""Time maximal exact matches on the CPU beside mummer 3 (and 4), in turns, in one run.

    python benchmarks/mems.py -o benchmarks/results/mems_cpu.jsonl

1. E. coli DH1 against MG1655, all matches of 20 bases, both strands: whole programs from FASTA to
   output, so that indexing counts for every one.
2. Drozd et al.'s figure 2: reads of 100 bases, both strands, matches unique in the reference,
   against ever longer parts of human chr20, or of a simulated genome where that is not here.
   mummer builds its index every time; bwarp's is made once, its time is given beside.

Outputs are compared line by line, sorted. What is not here (data, mummer) is said and left out.
mummer4 is taken where a program of that name is in the path. benchmarks/mems_gpu.py is the GPU's.
"""

import argparse
import gzip
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import processor
from made_up import make_genome
from options import read_options

from bwarp.cli.program import bounded_int

REPOSITORY = Path(__file__).resolve().parent.parent
SHARED = REPOSITORY.parent / "shared" / "data"
SCRIPTS = REPOSITORY / "scripts"


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--repeats", type=bounded_int(1, 100), default=3)
    parser.add_argument("--reads", type=bounded_int(1, 10**8), default=1_000_000)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument(
        "--sizes", type=int, nargs="*", default=[4, 16, 64], help="Mb of it (default: 4 16 64)"
    )
    parser.add_argument("--folder", type=Path, help="where to work (default: a temporary folder)")
    return read_options(parser, "mems_cpu.jsonl", repeats=1, reads=1000, sizes=[1])


def main(options):
    lines = []
    with tempfile.TemporaryDirectory(dir=options.folder) as work:
        genomes = () if options.small else time_genomes(Path(work), options)
        for line in itertools.chain(genomes, time_reads(Path(work), options)):
            print(json.dumps(line), flush=True)
            lines.append(json.dumps(line) + "\n")
    options.output.write_text("".join(lines))


def mummers() -> list[str]:
    found = [name for name in ("mummer", "mummer4") if shutil.which(name)]
    if not found:
        print("mummer is not here: apt install mummer", file=sys.stderr)
    return found


def find_mems(*arguments) -> list:
    return [sys.executable, SCRIPTS / "find_mems.py", "--backend", "cpu", *arguments]


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
            [sys.executable, SCRIPTS / "index_reference.py", reference, "-o", index],
            find_mems("--index", index, *common),
        ],
    }
    for name in mummers():
        commands[name] = [[name, "-maxmatch", "-b", "-l", "20", reference, queries]]
    yield from take_turns(
        "matches of 20 b of E. coli DH1, both strands", "E. coli MG1655", commands, work, options
    )


def time_reads(work: Path, options):
    chromosome = Path(os.environ.get("BWARP_LARGE", SHARED / "large"), "chr20.fa")
    name = "chr20"
    if options.small or not chromosome.is_file():
        print("left out chr20.fa, not in $BWARP_LARGE: a genome is made up", file=sys.stderr)
        chromosome, name = make_genome(work, 1_000_000 * max(options.sizes)), "a simulated genome"
    lines = chromosome.read_text().splitlines()
    bases = "".join(line for line in lines if line[0] != ">").strip("N")
    for size in options.sizes:
        part = bases[: size * 1_000_000]
        reference, reads = work / f"part_{size}.fa", work / f"reads_{size}"
        reference.write_text(f">{name.replace(' ', '_')}\n{part}\n")
        make_reads(reference, reads, options.reads)
        index = work / f"part_{size}.index"
        begun = time.perf_counter()
        build = [sys.executable, SCRIPTS / "index_reference.py", reference, "-o", index]
        subprocess.run(build, check=True, capture_output=True)
        indexing = round(time.perf_counter() - begun, 2)
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
    command = [sys.executable, SCRIPTS / "simulate_reads.py", "--reference", reference]
    command += ["-1", fastq, "--reads", str(n_reads), "--read-length", "100"]
    subprocess.run(command, check=True, capture_output=True)
    with open(fastq) as file, open(f"{prefix}.fa", "w") as fasta:
        for number, line in enumerate(file):
            if number % 4 == 0:
                fasta.write(">" + line[1:])
            elif number % 4 == 1:
                fasta.write(line)


def take_turns(what: str, reference: str, commands: dict, work: Path, options):
    """One line a program: the median of its wall times, all of them, and whether it agrees."""
    times = {name: [] for name in commands}
    outputs = {}
    for repeat in range(options.repeats + 1):
        for name, steps in commands.items():
            output = work / "output"
            begun = time.perf_counter()
            for step in steps:
                with output.open("wb") as file:
                    subprocess.run(step, check=True, stdout=file, stderr=subprocess.DEVNULL)
            # The first round compiles and fills the page cache.
            if repeat:
                times[name].append(round(time.perf_counter() - begun, 3))
            else:
                outputs[name] = sorted(output.read_bytes().splitlines())
    for name, seconds in times.items():
        yield {
            "what": what,
            "reference": reference,
            "program": name,
            "seconds": statistics.median(seconds),
            "all_seconds": seconds,
            "equal": outputs[name] == outputs["bwarp"],
            "machine": f"{processor()}, {options.threads} cores",
        }


if __name__ == "__main__":
    main(parse_options())
