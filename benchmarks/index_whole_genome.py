#!/usr/bin/env python3
"""Time indexing a simulated genome of human size on a GPU, FASTA file to folder, in one command.

Writes one JSON line: the genome, seconds of scripts/index_reference.py, peak memory, the size of
the folder, and the seconds of --verify. A small genome is indexed first, so that everything is
compiled.
"""

import argparse
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from options import read_options, skip_without_gpu

REPOSITORY = Path(__file__).resolve().parent.parent


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bases", type=int, default=3_100_000_000)
    parser.add_argument("--contigs", type=int, default=24)
    parser.add_argument("--backend", default="cuda")
    parser.add_argument("--verify", action="store_true", help="prove the last index")
    parser.add_argument("--folder", type=Path, help="where to work (default: a temporary folder)")
    return read_options(parser, "index_whole_genome.jsonl", bases=2_000_000)


def run(*arguments) -> tuple[float, str]:
    """Run a program of scripts/; return its wall time and what it printed."""
    start = time.perf_counter()
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, check=True, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True)
    return round(time.perf_counter() - start, 2), done.stdout


def main(options):
    if options.backend == "cuda":
        skip_without_gpu()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        genome, index = Path(folder, "genome.fa"), Path(folder, "index")
        small = Path(folder, "small.fa")
        run("scripts/simulate_genome.py", "-o", small, "--length", 1_000_000)
        run("scripts/index_reference.py", small, "-o", index, "--backend", options.backend)
        run("scripts/index_reference.py", "--verify", "-o", index)
        simulated, _ = run(
            "scripts/simulate_genome.py", "-o", genome,
            "--length", options.bases, "--contigs", options.contigs,
        )  # fmt: skip
        print(f"simulated {options.bases:,} bases in {simulated} s", flush=True)
        seconds, table = run(
            "scripts/index_reference.py", genome, "-o", index, "--backend", options.backend
        )
        print(f"indexed in {seconds} s\n{table}", flush=True)
        result = {
            "what": "index_reference.py, FASTA to folder",
            "bases": options.bases,
            "contigs": options.contigs,
            "backend": options.backend,
            "seconds": seconds,
            "peak_gb": round(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1e6, 1),
            "folder_gb": round(sum(f.stat().st_size for f in index.iterdir()) / 1e9, 2),
            "cores": os.cpu_count(),
            "machine": platform.machine(),
        }
        if options.verify:
            result["verify_seconds"], _ = run("scripts/index_reference.py", "--verify", "-o", index)
    line = json.dumps(result)
    print(line)
    with open(options.output, "a") as file:
        file.write(line + "\n")


if __name__ == "__main__":
    main(parse_options())
