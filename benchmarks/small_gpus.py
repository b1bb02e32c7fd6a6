#!/usr/bin/env python3
"""Run the programs on a GPU whose memory another process occupies, and compare their results.

    python benchmarks/small_gpus.py -o benchmarks/results/small_gpus.jsonl

For each size, a process occupies all but that many GB of the GPU's memory; then reads are mapped,
k-mers searched with a mismatch, maximal matches found and, at some sizes, the genome indexed.
Output must be the same as with all the memory; a program with too little memory must say so in one
sentence. There is one line per program and size: seconds, and its message about memory. Without a
GPU the program does nothing.
"""

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from frame.options import add_folder, new_parser, read_options, skip_without_gpu
from frame.results import Results
from frame.simulated import run_script, script

#: The code of another process that leaves this many GB free.
HOLD = """
import sys, time
from bwarp.gpu.cuda import cuda
context = cuda.current_context()
leave = int(float(sys.argv[1]) * 2**30)
kept = cuda.device_array(max(1, context.get_memory_info().free - leave), "u1")
print(context.get_memory_info().free, flush=True)
time.sleep(3600)
"""


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("--bases", type=int, default=3_100_000_000)
    parser.add_argument("--pairs", type=int, default=200_000)
    parser.add_argument(
        "--sizes", type=float, nargs="+", default=[6, 8, 10, 12, 16, 20, 24, 32, 40, 80],
        metavar="GB", help="memory left free",
    )  # fmt: skip
    parser.add_argument(
        "--programs", nargs="+", default=list(programs(Path())), choices=list(programs(Path())),
        metavar="PROGRAM", help="the programs to run (default: all)",
    )  # fmt: skip
    parser.add_argument("--index-sizes", type=float, nargs="*", default=[8, 12, 24, 80])
    add_folder(parser)
    return read_options(parser, "small_gpus.jsonl", bases=5_000_000, pairs=1000)


@contextlib.contextmanager
def gpu_with(gigabytes: float | None) -> Iterator[None]:
    """Leave only this much GPU memory free, or all of it."""
    if gigabytes is None:
        yield
        return
    command = [sys.executable, "-c", HOLD, str(gigabytes)]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE)
    try:
        if not holder.stdout.readline():
            sys.exit(f"the GPU's memory could not be taken to leave {gigabytes} GB")
        yield
    finally:
        holder.kill()
        holder.wait()


def run(*arguments) -> tuple[float, float, int, list[str]]:
    """Run a program of scripts/, which may fail; return seconds, GB of the host, exit code,
    messages.
    """
    start = time.perf_counter()
    command = list(map(str, script(*arguments)))
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        seconds = round(time.perf_counter() - start, 2)
        said.seek(0)
        lines = said.read().splitlines()
    return seconds, round(1024 * used.ru_maxrss / 1e9, 2), os.waitstatus_to_exitcode(status), lines


def programs(folder: Path) -> dict[str, tuple[list, Path]]:
    """Return the arguments of each program, and the file it writes."""
    index, first, second = (folder / name for name in ("index", "1.fq.gz", "2.fq.gz"))
    bam, seeds, mems = (folder / f"out.{ending}" for ending in ("bam", "tsv", "mums"))
    again = folder / "again.index"
    queries = ["--index", index, "--queries", first]
    return {
        "map_reads": (["--index", index, "-1", first, "-2", second, "-o", bam, "--sort"], bam),
        "find_seeds": (
            [*queries, "-o", seeds, "-k", 30, "--step", 60, "--mismatches", 1],
            seeds,
        ),
        "find_mems": ([*queries, "-o", mems, "--min-length", 31, "--strands", "both"], mems),
        "index_reference": ([folder / "genome.fa", "-o", again], again / "index.json"),
    }


def hash_of(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def measure(folder: Path, options, results: Results) -> None:
    expected = {}
    for size in [None, *options.sizes]:
        with gpu_with(size):
            for program, (arguments, output) in programs(folder).items():
                if program not in options.programs or (
                    program == "index_reference" and size not in [None, *options.index_sizes]
                ):
                    continue
                if program == "index_reference":
                    # An index does not overwrite a folder that is not an index.
                    shutil.rmtree(output.parent, ignore_errors=True)
                output.unlink(missing_ok=True)
                seconds, peak, code, said = run(program, *arguments, "--backend", "cuda")
                line = {"program": program, "gb_free": size, "seconds": seconds, "host_gb": peak}
                if code == 0:
                    found = hash_of(output)
                    line["same_bytes"] = found == expected.setdefault(program, found)
                else:
                    line["refused"] = said[-1] if said else ""
                results.add(**line, said=[words for words in said if "GPU memory" in words][:1])


def main(options):
    skip_without_gpu()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        genome, index = folder / "genome.fa", folder / "index"
        ends = "-1", folder / "1.fq.gz", "-2", folder / "2.fq.gz", "--pairs", options.pairs
        size = "--length", options.bases, "--contigs", 24
        run_script("simulate_genome", "-o", genome, *size)
        run_script("index_reference", genome, "-o", index, "--with-reverse", "--backend", "cuda")
        run_script("simulate_reads", "--reference", genome, *ends)
        results = Results(options.output, bases=options.bases, pairs=options.pairs)
        measure(folder, options, results)


if __name__ == "__main__":
    main(parse_options())
