"""Map simulated reads with bwarp and with other mappers, in turn, and count what is right.

    python benchmarks/map.py --reference genome.fa --pairs 50000

Reads are of our simulator, with the truth in their names. bwa mem, minimap2 and bowtie2 run where
they are on PATH, each with an index of its own that is built before and not timed. Times are CPU
seconds of the whole program, user and system, from FASTQ to SAM, the fastest of --repeats runs.

A table is printed; one JSON object a line is appended to --output.
"""

import argparse
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import bwarp
from bwarp.mapping.truth import TruthCounts, count_right
from bwarp.threads import available_threads

CHECKOUT = Path(__file__).resolve().parent.parent


def parse_options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--reference", required=True, help="FASTA file, plain")
    parser.add_argument("--pairs", type=int, default=50_000)
    parser.add_argument("--read-length", type=int, default=150)
    parser.add_argument("--variant-rate", type=float, default=0.001)
    parser.add_argument("--single", action="store_true", help="map read 1 of every pair alone")
    parser.add_argument("--threads", type=int, default=available_threads())
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", default=CHECKOUT / "benchmarks/results/map_cpu.json")
    return parser.parse_args()


def commands(folder: Path, reads: list[Path], threads: int) -> dict[str, tuple[list, list]]:
    """For every mapper on PATH, what builds its index and what writes SAM to standard output."""
    fasta, n = str(folder / "genome.fa"), str(threads)
    names = [str(read) for read in reads]
    ends = [word for pair in zip(("-1", "-2"), names, strict=False) for word in pair]
    scripts, index = CHECKOUT / "scripts", folder / "bwarp.index"
    found = {
        "bwa mem": (["bwa", "index", fasta], ["bwa", "mem", "-t", n, fasta, *names]),
        "minimap2": (
            ["minimap2", "-x", "sr", "-d", f"{fasta}.mmi", fasta],
            ["minimap2", "-ax", "sr", "-t", n, f"{fasta}.mmi", *names],
        ),
        "bowtie2": (
            ["bowtie2-build", "-q", fasta, fasta],
            ["bowtie2", "-p", n, "-x", fasta, *(ends if len(reads) == 2 else ["-U", names[0]])],
        ),
    }
    found = {name: pair for name, pair in found.items() if shutil.which(pair[0][0])}
    found["bwarp"] = (
        [sys.executable, scripts / "index_reference.py", fasta, "-o", index],
        [
            *(sys.executable, scripts / "map_reads.py", "--index", index, *ends, "-o", "-"),
            *("--threads", n, "--backend", "cpu"),
        ],
    )
    return found


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(command: list, sam: Path, log: Path) -> float:
    """CPU seconds of a mapper."""
    before = cpu_seconds()
    with open(sam, "wb") as out, open(log, "ab") as err:
        subprocess.run(command, stdout=out, stderr=err, check=True)
    return cpu_seconds() - before


def row(mapper: str, seconds: float, counts: TruthCounts, n_reads: int) -> dict:
    """One result as it is written."""
    result = {
        "mapper": mapper,
        "cpu_seconds": round(seconds, 2),
        "reads_a_cpu_second": round(n_reads / seconds),
        "right": round(100 * sum(counts.right) / counts.total, 3),
    }
    for least in (10, 30):
        right, wrong = sum(counts.right[least:]), sum(counts.wrong[least:])
        result[f"right_q{least}"] = round(100 * right / counts.total, 3)
        result[f"wrong_ppm_q{least}"] = round(1e6 * wrong / counts.total)
    result["random_q10"] = sum(counts.random[10:])
    return result


def main():
    options = parse_options()
    os.environ["PYTHONPATH"] = str(CHECKOUT)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copy(options.reference, folder / "genome.fa")
        reads = [folder / "1.fq", folder / "2.fq"]
        simulate = [
            *(sys.executable, CHECKOUT / "scripts/simulate_reads.py"),
            *("--reference", folder / "genome.fa", "-1", reads[0], "-2", reads[1]),
            *("--pairs", options.pairs, "--read-length", options.read_length),
            *("--variant-rate", options.variant_rate, "--seed", options.seed),
        ]
        subprocess.run([str(word) for word in simulate], check=True)
        reads = reads[:1] if options.single else reads
        n_reads = options.pairs * len(reads)
        mappers = commands(folder, reads, options.threads)
        times = {mapper: [] for mapper in mappers}
        counts = {}
        for mapper, (build, _) in mappers.items():
            run(build, folder / "index.out", folder / f"{mapper}.log")
        for _ in range(options.repeats):
            for mapper, (_, command) in mappers.items():
                sam = folder / f"{mapper}.sam"
                times[mapper].append(run(command, sam, folder / f"{mapper}.log"))
                counts[mapper] = counts.get(mapper) or count_right(str(sam))
        rows = [row(mapper, min(times[mapper]), counts[mapper], n_reads) for mapper in mappers]
    about = {
        "reference": Path(options.reference).name,
        "reads": n_reads,
        "read_length": options.read_length,
        "paired": not options.single,
        "variant_rate": options.variant_rate,
        "threads": options.threads,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "bwarp": bwarp.__version__,
    }
    print("\t".join(rows[0]))
    for result in rows:
        print("\t".join(str(value) for value in result.values()))
    with open(options.output, "a") as file:
        for result in rows:
            file.write(json.dumps(about | result) + "\n")


if __name__ == "__main__":
    main()
