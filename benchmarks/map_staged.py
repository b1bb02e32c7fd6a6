"""Time mapping in stages against mapping in one, FASTQ to sorted BAM, in turn.

    python benchmarks/map_staged.py                reads of a genome made up
    python benchmarks/map_staged.py --reference genome.fa --pairs 250000

Both write the same records; that is checked. Wall and CPU seconds (user and system) are those of
whole programs, start-up included, of the run whose sum is lowest. The table is printed; one JSON
object a line is appended to --output.
"""

import argparse
import gzip
import hashlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import machine
from made_up import make_genome
from options import read_options

import bwarp
from bwarp.runtime.threads import available_threads

CHECKOUT = Path(__file__).resolve().parent.parent


def parse_options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--reference", help="FASTA file, plain or gz (default: made up)")
    parser.add_argument("--bases", type=int, default=20_000_000, help="of the genome made up")
    parser.add_argument("--index", help="an index of it; made if not given")
    parser.add_argument("--pairs", type=int, default=250_000)
    parser.add_argument("--read-length", type=int, default=150)
    parser.add_argument("--threads", type=int, default=available_threads())
    parser.add_argument("--repeats", type=int, default=2)
    return read_options(parser, "map_staged_cpu.json", bases=200_000, pairs=500, repeats=1)


def program(name: str, *arguments) -> list[str]:
    return [sys.executable, str(CHECKOUT / "scripts" / name), *map(str, arguments)]


def executions(index, reads: list, threads: int) -> dict[str, list[list[str]]]:
    """The programs of each execution, with the files they write in the working folder."""
    of_index = ("--index", index, "--threads", threads)
    ends = ("-1", reads[0], "-2", reads[1])
    stages = [
        program("chunk_reads.py", *ends, "-o", "reads", "--threads", threads),
        program("seed_chunks.py", *of_index, "--reads", "reads", "-o", "rows"),
        program("locate_chunks.py", *of_index, "--rows", "rows", "-o", "candidates"),
        program("extend_candidates.py", *of_index, "--reads", "reads", "--candidates",
                "candidates", "-o", "hits"),
        program("write_alignments.py", *of_index, "--reads", "reads", "--hits", "hits",
                "-o", "staged.bam", "--sort"),
    ]  # fmt: skip
    fused = ("map_reads.py", *of_index, *ends, "-o", "fused.bam", "--sort", "--backend", "cpu")
    return {"fused": [program(*fused)], "staged": stages}


def seconds_of(command: list[str], folder: Path) -> tuple[float, float]:
    """Wall and CPU seconds of a program."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, stderr=subprocess.DEVNULL)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def records_sum(path: Path) -> str:
    """A digest of what a BAM file holds, however it is compressed."""
    with gzip.open(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main():
    options = parse_options()
    os.environ["PYTHONPATH"] = str(CHECKOUT)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        reads = [folder / "1.fq", folder / "2.fq"]
        index = Path(options.index or folder / "index").resolve()
        reference = Path(options.reference or make_genome(folder, options.bases)).resolve()
        if not options.index:
            seconds_of(program("index_reference.py", reference, "-o", index), folder)
        simulate = program(
            "simulate_reads.py", "--reference", reference, "-1", reads[0], "-2", reads[1],
            "--pairs", options.pairs, "--read-length", options.read_length, "--seed", 1,
        )  # fmt: skip
        seconds_of(simulate, folder)
        best = {}
        for _ in range(options.repeats):
            for execution, commands in executions(index, reads, options.threads).items():
                times = [seconds_of(command, folder) for command in commands]
                wall = sum(wall for wall, _ in times)
                if execution not in best or wall < sum(wall for wall, _ in best[execution]):
                    best[execution] = times
        if records_sum(folder / "fused.bam") != records_sum(folder / "staged.bam"):
            sys.exit("the executions do not agree")
        sizes = {
            kind: (folder / kind).stat().st_size for kind in ("reads", "rows", "candidates", "hits")
        }
    about = {
        "reference": reference.name,
        "reads": 2 * options.pairs,
        "read_length": options.read_length,
        "threads": options.threads,
        "machine": machine(),
        "bwarp": bwarp.__version__,
        "bytes": sizes,
    }
    print("execution\twall seconds\tCPU seconds\twall seconds of every program")
    with open(options.output, "a") as file:
        for execution, times in best.items():
            walls = [round(wall, 2) for wall, _ in times]
            cpu = round(sum(cpu for _, cpu in times), 2)
            print(execution, round(sum(walls), 2), cpu, walls, sep="\t")
            result = {"execution": execution, "walls": walls, "cpu_seconds": cpu}
            file.write(json.dumps(about | result) + "\n")


if __name__ == "__main__":
    main()
