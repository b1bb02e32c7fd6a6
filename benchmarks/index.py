#!/usr/bin/env python3
"""Time indexing on the CPU, FASTA file to finished index, against bwa index in the same run.

    python benchmarks/index.py -o benchmarks/results/index_cpu.json

References: E. coli K-12 from ../shared/data, and 133 Mb that stand in for a large genome: human
chr20, the same with 2 % of its bases changed, and 7 Mb at random; a simulated one of --bases where
neither is here. The programs take turns;
one JSON line a program and reference holds the median and all of its wall times, processor time
and peak memory, and one line how long a finished index takes to open with every array checked.
What is not here (a reference, bwa) is said and left out.
"""

import argparse
import gzip
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from machine import machine
from made_up import make_genome
from options import read_options

import bwarp
from bwarp.sequence import CODE_OF_BYTE, LETTERS

REPOSITORY = Path(__file__).resolve().parent.parent
SHARED = REPOSITORY.parent / "shared" / "data"
LETTER_OF_CODE = np.frombuffer(LETTERS, np.uint8)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--repeats", type=int, default=3, help="runs of each program")
    parser.add_argument("--large-repeats", type=int, help="runs on 133 Mb (default: as --repeats)")
    parser.add_argument("--large-peer-repeats", type=int, default=1, help="bwa's runs on 133 Mb")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--folder", type=Path, help="where to work (default: a temporary folder)")
    parser.add_argument("--bases", type=int, default=5_000_000, help="of the simulated genome")
    return read_options(parser, "index_cpu.json", bases=100_000, repeats=1)


def main(options):
    lines = []
    with tempfile.TemporaryDirectory(dir=options.folder) as work:
        for name, make, repeats, peer_repeats in (
            ("E. coli K-12", ecoli, options.repeats, options.repeats),
            (
                "133 Mb of human",
                large_stand_in,
                options.large_repeats or options.repeats,
                options.large_peer_repeats,
            ),
        ):
            fasta = Path(work, "reference.fa")
            if options.small or not make(fasta):
                continue
            lines += compare(name, fasta, Path(work), repeats, peer_repeats, options.threads)
        if not lines:
            name, repeats = f"{options.bases / 1e6:g} Mb simulated", options.repeats
            fasta = make_genome(Path(work), options.bases)
            lines = compare(name, fasta, Path(work), repeats, repeats, options.threads)
    text = "".join(json.dumps(line) + "\n" for line in lines)
    options.output.write_text(text)
    print(text, end="")


def ecoli(fasta: Path) -> bool:
    packed = SHARED / "ref_ecoli_k12_mg1655" / "GCF_000005845.2_ASM584v2_genomic.fna.gz"
    if not packed.exists():
        print(f"left out E. coli: {packed} is not here", file=sys.stderr)
        return False
    fasta.write_bytes(gzip.decompress(packed.read_bytes()))
    return True


def large_stand_in(fasta: Path) -> bool:
    chromosome = Path(os.environ.get("BWARP_LARGE") or SHARED / "large") / "chr20.fa"
    if not chromosome.exists():
        print("left out 133 Mb: chr20.fa is not in $BWARP_LARGE", file=sys.stderr)
        return False
    rng = np.random.default_rng(133)
    text = chromosome.read_bytes()
    codes = CODE_OF_BYTE[np.frombuffer(text[text.index(b"\n") :].replace(b"\n", b""), np.uint8)]
    changed = codes.copy()
    at = np.flatnonzero((codes < 4) & (rng.random(codes.size) < 0.02))
    changed[at] = (codes[at] + rng.integers(1, 4, at.size)) % 4
    with open(fasta, "wb") as file:
        for name, contig in (
            (b"chr20", codes),
            (b"chr20_changed", changed),
            (b"random", rng.integers(0, 4, 7_000_000)),
        ):
            whole = contig.size // 100 * 100
            rows = np.full((whole // 100, 101), ord("\n"), np.uint8)
            rows[:, :100] = LETTER_OF_CODE[contig[:whole]].reshape(-1, 100)
            rest = LETTER_OF_CODE[contig[whole:]].tobytes()
            file.write(b">" + name + b"\n" + rows.tobytes() + (rest + b"\n" if rest else b""))
    return True


def compare(name, fasta, work, repeats, peer_repeats, threads) -> list[dict]:
    index = work / "reference.index"
    bwarp_command = [sys.executable, REPOSITORY / "scripts" / "index_reference.py", fasta]
    bwarp_command += ["-o", index, "--threads", threads, "--backend", "cpu"]
    programs = {"bwarp": (bwarp_command, bwarp.__version__, repeats)}
    if shutil.which("bwa"):
        peer = (["bwa", "index", fasta], bwa_version(), peer_repeats)
        programs = {"bwa index": peer} | programs
    else:
        print("left out bwa: it is not on PATH", file=sys.stderr)
    measured = {program: [] for program in programs}
    measure(bwarp_command)  # compiles, where that has not been done
    for turn in range(max(repeats, peer_repeats)):
        for program, (command, _, times) in programs.items():
            if turn < times:
                measured[program].append(measure(command))
    bases = sum(len(line) for line in fasta.read_bytes().split(b"\n") if line[:1] != b">")
    lines = []
    for program, runs in measured.items():
        seconds = round(statistics.median(run[0] for run in runs), 3)
        peak = max(run[2] for run in runs)
        lines.append(
            {
                "what": "index, FASTA to folder",
                "reference": name,
                "bases": bases,
                "program": program,
                "version": programs[program][1],
                "threads": threads if program == "bwarp" else 1,
                "seconds": seconds,
                "all_seconds": [run[0] for run in runs],
                "processor_seconds": round(statistics.median(run[1] for run in runs), 3),
                "peak_mb": round(peak / 1e6, 1),
                "peak_bytes_a_base": round(peak / bases, 2),
                **circumstances(),
            }
        )
    ratio = "" if len(lines) == 1 else f", {lines[0]['seconds'] / lines[-1]['seconds']:.2f} x bwa"
    print(f"{name}: bwarp {lines[-1]['seconds']} s{ratio}", file=sys.stderr, flush=True)
    opened = [open_whole(index) for _ in range(5)]
    print(f"{name}: opened in {statistics.median(opened)} s", file=sys.stderr, flush=True)
    lines.append(
        {
            "what": "open an index, every array checked",
            "reference": name,
            "bases": bases,
            "program": "bwarp",
            "version": bwarp.__version__,
            "threads": threads,
            "seconds": statistics.median(opened),
            "all_seconds": opened,
            **circumstances(),
        }
    )
    return lines


def measure(command) -> tuple[float, float, int]:
    """Wall seconds, processor seconds and peak bytes of a program."""
    start = time.perf_counter()
    with open(os.devnull, "wb") as nowhere:
        process = subprocess.Popen([str(a) for a in command], stdout=nowhere, stderr=nowhere)
        _, status, used = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[0]} ended with {process.returncode}")
    return round(wall, 3), round(used.ru_utime + used.ru_stime, 3), used.ru_maxrss * 1024


def open_whole(index: Path) -> float:
    """Seconds to open an index in a new process and look at every array, imports not counted."""
    program = (
        "import sys, time\n"
        "from bwarp.index.store import load_index\n"
        "start = time.perf_counter()\n"
        "index = load_index(sys.argv[1])\n"
        "index.reference, index.forward, index.reverse, index.prefix_table, index.suffix_array\n"
        "print(time.perf_counter() - start)"
    )
    command = [sys.executable, "-c", program, str(index)]
    return round(float(subprocess.run(command, check=True, capture_output=True).stdout), 3)


def bwa_version() -> str:
    usage = subprocess.run(["bwa"], capture_output=True, text=True, check=False).stderr
    return re.search(r"Version: (\S+)", usage)[1]


def circumstances() -> dict:
    return {
        "machine": machine(),
        "python": platform.python_version(),
        "date": time.strftime("%Y-%m-%d"),
    }


if __name__ == "__main__":
    main(parse_options())
