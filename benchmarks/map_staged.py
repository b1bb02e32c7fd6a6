"""Time mapping in stages against mapping in one, FASTQ to sorted BAM, in turn.

    python benchmarks/map_staged.py                reads of a simulated genome
    python benchmarks/map_staged.py --reference genome.fa --pairs 250000

Both write the same records; that is checked. Wall and CPU seconds (user and system) are those of
whole programs, start-up included, of the run whose sum is lowest. One JSON object
a line is printed and appended to --output.
"""

import gzip
import hashlib
import sys
import tempfile
from functools import partial
from pathlib import Path

from frame.environment import machine
from frame.options import add_threads, new_parser, read_options
from frame.results import Results
from frame.simulated import make_genome, run_script, script
from frame.timing import Used, in_turn, run_program

import bwarp


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("--reference", help="FASTA file, plain or gz (default: simulated)")
    parser.add_argument("--bases", type=int, default=20_000_000, help="of the simulated genome")
    parser.add_argument("--index", help="an index of it; made if not given")
    parser.add_argument("--pairs", type=int, default=250_000)
    parser.add_argument("--read-length", type=int, default=150)
    add_threads(parser)
    parser.add_argument("--repeats", type=int, default=2)
    return read_options(parser, "map_staged_cpu.json", bases=200_000, pairs=500, repeats=1)


def executions(index, reads: list, threads: int) -> dict[str, list[list]]:
    """The programs of each execution, with the files they write in the working folder."""
    of_index = ("--index", index, "--threads", threads)
    ends = ("-1", reads[0], "-2", reads[1])
    stages = [
        script("chunk_reads", *ends, "-o", "reads", "--threads", threads),
        script("seed_chunks", *of_index, "--reads", "reads", "-o", "rows"),
        script("locate_chunks", *of_index, "--rows", "rows", "-o", "candidates"),
        script("extend_candidates", *of_index, "--reads", "reads", "--candidates",
               "candidates", "-o", "hits"),
        script("write_alignments", *of_index, "--reads", "reads", "--hits", "hits",
               "-o", "staged.bam", "--sort"),
    ]  # fmt: skip
    fused = script("map_reads", *of_index, *ends, "-o", "fused.bam", "--sort", "--backend", "cpu")
    return {"fused": [fused], "staged": stages}


def run_all(commands: list[list], folder: Path) -> list[Used]:
    return [run_program(command, cwd=folder) for command in commands]


def records_sum(path: Path) -> str:
    """A digest of what a BAM file holds, however it is compressed."""
    with gzip.open(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main():
    options = parse_options()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        reads = [folder / "1.fq", folder / "2.fq"]
        index = Path(options.index or folder / "index").resolve()
        reference = Path(options.reference or make_genome(folder, options.bases)).resolve()
        if not options.index:
            run_script("index_reference", reference, "-o", index)
        run_script(
            "simulate_reads", "--reference", reference, "-1", reads[0], "-2", reads[1],
            "--pairs", options.pairs, "--read-length", options.read_length, "--seed", 1,
        )  # fmt: skip
        commands = executions(index, reads, options.threads)
        jobs = {name: partial(run_all, programs, folder) for name, programs in commands.items()}
        runs = in_turn(jobs, options.repeats)
        if records_sum(folder / "fused.bam") != records_sum(folder / "staged.bam"):
            sys.exit("the executions do not agree")
        sizes = {
            kind: (folder / kind).stat().st_size for kind in ("reads", "rows", "candidates", "hits")
        }
    results = Results(
        options.output,
        reference=reference.name,
        reads=2 * options.pairs,
        read_length=options.read_length,
        threads=options.threads,
        machine=machine(),
        bwarp=bwarp.__version__,
        bytes=sizes,
    )
    for execution, turns in runs.items():
        best = min(turns, key=lambda programs: sum(used.wall for used in programs))
        walls = [round(used.wall, 2) for used in best]
        cpu = round(sum(used.processor for used in best), 2)
        results.add(execution=execution, walls=walls, cpu_seconds=cpu)


if __name__ == "__main__":
    main()
