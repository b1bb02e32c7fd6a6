#!/usr/bin/env python3
"""Run the programs on a large GPU that another process makes small, and compare their results.

    python benchmarks/small_cards.py -o benchmarks/results/small_cards.jsonl

For every size a process takes the GPU's memory but for so many GB; then reads are mapped, k-mers
searched with a mismatch, maximal matches found and, at some sizes, the genome indexed. What a
program writes must be what it writes on the whole GPU; one that has too little memory must say so
in a sentence. A line a program and size: seconds, and what it said of memory. Without a GPU nothing
is done.
"""

import argparse
import contextlib
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from options import read_options, skip_without_gpu

REPOSITORY = Path(__file__).resolve().parent.parent

#: What another process runs, to leave so many GB.
HOLD = """
import sys, time
from numba import cuda
context = cuda.current_context()
leave = int(float(sys.argv[1]) * 2**30)
kept = cuda.device_array(max(1, context.get_memory_info().free - leave), "u1")
print(context.get_memory_info().free, flush=True)
time.sleep(3600)
"""


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--bases", type=int, default=3_100_000_000)
    parser.add_argument("--pairs", type=int, default=200_000)
    parser.add_argument(
        "--sizes", type=float, nargs="+", default=[6, 8, 10, 12, 16, 20, 24, 32, 40, 80],
        metavar="GB", help="memory left free",
    )  # fmt: skip
    parser.add_argument("--index-sizes", type=float, nargs="*", default=[24, 80], metavar="GB")
    parser.add_argument("--folder", type=Path, help="where to work (default: a temporary folder)")
    return read_options(parser, "small_cards.jsonl", bases=5_000_000, pairs=1000)


@contextlib.contextmanager
def card_of(gigabytes: float | None) -> Iterator[None]:
    """The GPU with so much memory free, or the whole one."""
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


def run(*arguments) -> tuple[float, int, list[str]]:
    """Run a program of scripts/: seconds, exit code, and what it said."""
    start = time.perf_counter()
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True)
    return round(time.perf_counter() - start, 2), done.returncode, done.stderr.splitlines()


def programs(folder: Path) -> dict[str, tuple[list, Path]]:
    """The arguments of each program, and the file it writes."""
    index, first, second = (folder / name for name in ("index", "1.fq.gz", "2.fq.gz"))
    outputs = {name: folder / f"out{ending}" for name, ending in
               (("map_reads", ".bam"), ("find_seeds", ".tsv"), ("find_mems", ".mums"))}  # fmt: skip
    return {
        "map_reads": (
            ["--index", index, "-1", first, "-2", second, "-o", outputs["map_reads"], "--sort"],
            outputs["map_reads"],
        ),
        "find_seeds": (
            ["--index", index, "--queries", first, "-o", outputs["find_seeds"]]
            + ["-k", 30, "--step", 60, "--mismatches", 1],
            outputs["find_seeds"],
        ),
        "find_mems": (
            ["--index", index, "--queries", first, "-o", outputs["find_mems"]]
            + ["--min-length", 31, "--strands", "both"],
            outputs["find_mems"],
        ),
        "index_reference": (
            [folder / "genome.fa", "-o", folder / "again.index"],
            folder / "again.index" / "index.json",
        ),
    }


def hash_of(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def measure(folder: Path, options, report) -> None:
    expected = {"index_reference": hash_of(folder / "index" / "index.json")}
    for size in [None, *options.sizes]:
        with card_of(size):
            for program, (arguments, output) in programs(folder).items():
                if program == "index_reference" and size not in options.index_sizes:
                    continue
                output.unlink(missing_ok=True)
                script = f"scripts/{program}.py"
                seconds, code, said = run(script, *arguments, "--backend", "cuda")
                line = {"program": program, "gb_free": size, "seconds": seconds}
                if code == 0:
                    found = hash_of(output)
                    line["same_bytes"] = found == expected.setdefault(program, found)
                else:
                    line["refused"] = said[-1] if said else ""
                line |= {"said": [words for words in said if "GPU memory" in words][:1]}
                report(line)


def main(options):
    skip_without_gpu()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        genome, index = folder / "genome.fa", folder / "index"
        reads = ["-1", folder / "1.fq.gz", "-2", folder / "2.fq.gz", "--pairs", options.pairs]
        for arguments in (
            ["simulate_genome.py", "-o", genome, "--length", options.bases, "--contigs", 24],
            ["index_reference.py", genome, "-o", index, "--backend", "cuda"],
            ["simulate_reads.py", "--reference", genome, *reads],
        ):
            arguments[0] = f"scripts/{arguments[0]}"
            seconds, code, said = run(*arguments)
            if code:
                sys.exit("\n".join(said))
            print(f"{arguments[0]}: {seconds} s", flush=True)

        def report(line: dict) -> None:
            text = json.dumps(line | {"bases": options.bases, "pairs": options.pairs})
            print(text, flush=True)
            with open(options.output, "a") as file:
                file.write(text + "\n")

        measure(folder, options, report)


if __name__ == "__main__":
    main(parse_options())
