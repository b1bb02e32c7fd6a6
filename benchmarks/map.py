"""Map simulated reads with bwarp and with other mappers, in turn, and count what is right.

    python benchmarks/map.py                       reads of a genome made up
    python benchmarks/map.py --reference genome.fa --pairs 50000
    python benchmarks/map.py --reference genome.fa --simulator dwgsim --variant-rate 0.03 \
        --mappers 'bwa mem' bwarp --folder kept --output benchmarks/results/map_accuracy.json

Reads are of our simulator, or of dwgsim, with the truth in their names. bwa mem, minimap2, bowtie2,
minibwa and strobealign run where they are on PATH, each with an index of its own that is built
before and not timed; --folder keeps the indexes for the next run. Wall and CPU seconds (user and
system) and the largest memory are of the whole program, from FASTQ to SAM, the fastest of --repeats
runs.

A table is printed; one JSON object a mapper is appended to --output. benchmarks/map_figures.py
draws the tables and figures of docs/map.md from it.
"""

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import machine
from made_up import make_genome
from options import read_options

import bwarp
from bwarp.evaluation.truth import TruthCounts, count_correct
from bwarp.runtime.threads import available_threads

CHECKOUT = Path(__file__).resolve().parent.parent


def parse_options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--reference", type=Path, help="FASTA file, plain (default: made up)")
    parser.add_argument("--bases", type=int, default=20_000_000, help="of the genome made up")
    parser.add_argument("--simulator", choices=("own", "dwgsim"), default="own")
    parser.add_argument("--pairs", type=int, default=50_000)
    parser.add_argument("--read-length", type=int, default=150)
    parser.add_argument("--variant-rate", type=float, default=0.001)
    parser.add_argument("--indel-fraction", type=float, default=0.15)
    parser.add_argument("--indel-length", type=int, default=1, help="the least (dwgsim only)")
    parser.add_argument("--single", action="store_true", help="map read 1 of every pair alone")
    parser.add_argument("--mappers", nargs="+", help="only these (default: all there are)")
    parser.add_argument("--threads", type=int, default=available_threads())
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="where to keep indexes, one folder a genome")
    return read_options(parser, "map_cpu.json", bases=200_000, pairs=500, repeats=1)


def simulate(options, fasta: Path, folder: Path) -> list[Path]:
    """The two files of reads."""
    reads = [folder / "1.fq", folder / "2.fq"]
    # Fragments have room for both reads.
    insert = max(400, 12 * options.read_length // 5)
    if options.simulator == "own":
        command = [
            *(sys.executable, CHECKOUT / "scripts/simulate_reads.py", "--reference", fasta),
            *("-1", reads[0], "-2", reads[1], "--pairs", options.pairs, "--seed", options.seed),
            *("--read-length", options.read_length, "--insert-mean", insert),
            *("--variant-rate", options.variant_rate, "--indel-fraction", options.indel_fraction),
        ]
        subprocess.run([str(word) for word in command], check=True)
        return reads
    length = options.read_length
    command = [
        *("dwgsim", "-N", options.pairs, "-1", length, "-2", length, "-z", options.seed),
        *("-e", "0.002-0.012", "-E", "0.004-0.02", "-r", options.variant_rate, "-y", 0.02),
        *("-R", options.indel_fraction, "-I", options.indel_length, "-d", insert, "-s", 60),
        *("-o", 1, fasta, folder / "dwgsim"),
    ]
    subprocess.run([str(word) for word in command], check=True, stderr=subprocess.DEVNULL)
    for number, path in enumerate(reads, 1):
        with gzip.open(f"{folder}/dwgsim.bwa.read{number}.fastq.gz") as packed:
            path.write_bytes(packed.read())
    return reads


def commands(fasta: Path, reads: list[Path], threads: int) -> dict[str, tuple[list, list]]:
    """For every mapper on PATH, what builds its index and what writes SAM to standard output."""
    genome, n = str(fasta), str(threads)
    names = [str(read) for read in reads]
    ends = [word for pair in zip(("-1", "-2"), names, strict=False) for word in pair]
    scripts, index = CHECKOUT / "scripts", f"{genome}.bwarp"
    found = {
        "bwa mem": (["bwa", "index", genome], ["bwa", "mem", "-t", n, genome, *names]),
        "minimap2": (
            ["minimap2", "-x", "sr", "-d", f"{genome}.mmi", genome],
            ["minimap2", "-ax", "sr", "-t", n, f"{genome}.mmi", *names],
        ),
        "bowtie2": (
            ["bowtie2-build", "-q", genome, genome],
            ["bowtie2", "-p", n, "-x", genome, *(ends if len(reads) == 2 else ["-U", names[0]])],
        ),
        "minibwa": (
            ["minibwa", "index", genome, f"{genome}.minibwa"],
            ["minibwa", "map", "-t", n, f"{genome}.minibwa", *names],
        ),
        "strobealign": (["true"], ["strobealign", "-t", n, genome, *names]),
        "bwarp": (
            [sys.executable, scripts / "index_reference.py", genome, "-o", index],
            [
                *(sys.executable, scripts / "map_reads.py", "--index", index, *ends, "-o", "-"),
                *("--threads", n, "--backend", "cpu"),
            ],
        ),
    }
    here = {name: pair for name, pair in found.items() if shutil.which(pair[1][0])}
    if len(here) < len(found):
        print("left out, not on PATH:", ", ".join(found.keys() - here), file=sys.stderr)
    return here


def run(command: list, sam: Path, log: Path) -> dict[str, float]:
    """Wall and CPU seconds, and the largest memory, of a program."""
    started = time.perf_counter()
    with open(sam, "wb") as out, open(log, "ab") as err:
        process = subprocess.Popen([str(word) for word in command], stdout=out, stderr=err)
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command[0]} failed:\n{log.read_text()[-2000:]}")
    return {
        "wall_seconds": round(time.perf_counter() - started, 2),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 2),
        "memory_mb": round(used.ru_maxrss / 1024),
    }


def row(counts: TruthCounts) -> dict:
    """What is right, in percent, and wrong, in a million, by the least mapping quality."""
    result = {"right": round(100 * sum(counts.right) / counts.total, 3)}
    for least in (10, 30):
        right, wrong = sum(counts.right[least:]), sum(counts.wrong[least:])
        result[f"right_q{least}"] = round(100 * right / counts.total, 3)
        result[f"wrong_ppm_q{least}"] = round(1e6 * wrong / counts.total)
    result["random_q10"] = sum(counts.random[10:])
    result["unmapped"] = counts.unmapped
    return result


def main():
    options = parse_options()
    os.environ["PYTHONPATH"] = str(CHECKOUT)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        kept = options.folder or folder
        kept.mkdir(exist_ok=True)
        reference = options.reference or make_genome(folder, options.bases)
        fasta = kept / reference.name
        if not fasta.exists():
            shutil.copy(reference, fasta)
        reads = simulate(options, fasta, folder)
        reads = reads[:1] if options.single else reads
        n_reads = options.pairs * len(reads)
        mappers = commands(fasta, reads, options.threads)
        if options.mappers:
            mappers = {mapper: mappers[mapper] for mapper in options.mappers}
        for mapper, (build, _) in mappers.items():
            built = kept / f"{fasta.name}.{mapper.replace(' ', '-')}.built"
            if not built.exists():
                run(build, folder / "index.out", folder / f"{mapper}.log")
                built.touch()
        best, counts = {}, {}
        for _ in range(options.repeats):
            for mapper, (_, command) in mappers.items():
                sam = folder / f"{mapper}.sam"
                used = run(command, sam, folder / f"{mapper}.log")
                if mapper not in best or used["cpu_seconds"] < best[mapper]["cpu_seconds"]:
                    best[mapper] = used
                counts[mapper] = counts.get(mapper) or count_correct(str(sam))
    about = {
        "reference": reference.name,
        "simulator": options.simulator,
        "reads": n_reads,
        "read_length": options.read_length,
        "paired": not options.single,
        "variant_rate": options.variant_rate,
        "indel_fraction": options.indel_fraction,
        "indel_length": options.indel_length,
        "seed": options.seed,
        "threads": options.threads,
        "machine": machine(),
        "bwarp": bwarp.__version__,
    }
    rows = [{"mapper": mapper} | best[mapper] | row(counts[mapper]) for mapper in mappers]
    print("\t".join(rows[0]))
    for result in rows:
        print("\t".join(str(value) for value in result.values()))
    with open(options.output, "a") as file:
        for result in rows:
            found = counts[result["mapper"]]
            by_quality = {"right_by_quality": found.right, "wrong_by_quality": found.wrong}
            file.write(json.dumps(about | result | by_quality) + "\n")


if __name__ == "__main__":
    main()
