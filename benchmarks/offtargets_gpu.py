#!/usr/bin/env python3
"""Time the search for off-targets on a GPU: from an index of 3.1 Gb to tables, in one command.

    python benchmarks/offtargets_gpu.py -o benchmarks/results/offtargets_h200.jsonl

Simulates a genome and its index. Guides are drawn from it, each with a PAM: 61 from anywhere,
including repeats, and 10,000 from outside repeats, like those of a library. Then

    compare    search a small genome on the CPU and on the GPU, for several limits: the same bytes
    whole      run the program from the index to tables on disk, after one run that compiles
    inside     the same search in this process, until all hits are on the host, and each kernel

The large genome is also searched on the CPU, for 61 guides: the same bytes. Each writes one JSON
line.
"""

import hashlib
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from frame.environment import gpu_name
from frame.options import add_folder, new_parser, read_options, skip_without_gpu
from frame.results import Results
from frame.simulated import run_script

LENGTH = 20
FEW, MANY = 61, 10_000

#: Mismatches, bases in DNA bulges and in RNA bulges; all for a small genome, these for the large.
COMPARED = ((3, 0, 0), (4, 1, 1), (6, 0, 0), (2, 2, 2))
WHOLE = {FEW: ((4, 0, 0), (4, 1, 1)), MANY: ((4, 0, 0),)}


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("--genome-bases", type=int, default=3_100_000_000)
    parser.add_argument("--compared-bases", type=int, default=20_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    add_folder(parser)
    small = {"genome_bases": 2_000_000, "compared_bases": 500_000, "rounds": 1}
    return read_options(parser, "offtargets_h200.jsonl", **small)


def simulate(folder: Path, bases: int, contigs: int) -> dict:
    """Make a genome, its index and guides in a folder; return the seconds of the first two."""
    genome, index = folder / "genome.fa", folder / "index"
    folder.mkdir()
    size = "--length", bases, "--contigs", contigs, "--lower-case-repeats"
    seconds = {
        "genome_seconds": run_script("simulate_genome", "-o", genome, *size).wall,
        "index_seconds": run_script(
            "index_reference", genome, "-o", index, "--backend", "cuda"
        ).wall,
    }
    for count, with_repeats in ((FEW, True), (MANY, False)):
        guides = guides_with_pam(genome, count, with_repeats)
        guides_in(folder, count).write_text(
            "".join(f">guide{i}\n{guide}\n" for i, guide in enumerate(guides))
        )
    genome.unlink()
    return seconds


def guides_in(folder: Path, count: int) -> Path:
    return folder / f"guides{count}.fa"


def guides_with_pam(fasta: Path, count: int, with_repeats: bool) -> list[str]:
    """Return protospacers before NGG from anywhere in the genome, where repeats are lower-case."""
    text = np.memmap(fasta, np.uint8, "r")
    rng = np.random.default_rng(7)
    found = {}
    while len(found) < count:
        at = int(rng.integers(0, text.size - 2 * LENGTH))
        piece = text[at : at + 2 * LENGTH].tobytes().replace(b"\n", b"").decode()[: LENGTH + 3]
        if with_repeats:
            piece = piece.upper()
        if piece.upper().endswith("GG") and set(piece) <= set("ACGT"):
            found[piece[:LENGTH]] = at
    return list(found)


def search(folder: Path, count: int, limits: tuple, backend: str, threads: int) -> float:
    mismatches, dna, rna = limits
    output = folder / f"{backend}.tsv"
    output.unlink(missing_ok=True)
    return run_script(
        "find_offtargets", "--index", folder / "index", "--guides", guides_in(folder, count),
        "-o", output, "--mismatches", mismatches, "--dna-bulges", dna, "--rna-bulges", rna,
        "--backend", backend, "--threads", threads,
    ).wall  # fmt: skip


def hash_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def compare(folder: Path, count: int, limits: tuple, threads: int) -> dict:
    """Search with both engines; their output must be equal."""
    seconds = {
        f"{backend}_seconds": search(folder, count, limits, backend, threads)
        for backend in ("cpu", "cuda")
    }
    for ending in ("tsv", "guides.tsv"):
        if hash_of(folder / f"cpu.{ending}") != hash_of(folder / f"cuda.{ending}"):
            sys.exit(f"{limits}: {folder}/cpu.{ending} and cuda.{ending} differ")
    return {"limits": limits, "guides": count, "equal": True, **seconds}


def inside(folder: Path, count: int, limits: tuple, threads: int) -> dict:
    """Time the second of two searches in this process, and each kernel in a third."""
    from frame.gpu_timing import KernelClock

    from bwarp.index.store import load_index
    from bwarp.offtargets.find import find_sites
    from bwarp.offtargets.guides import parse_pam, read_guides
    from bwarp.offtargets.hits import SiteOptions
    from bwarp.runtime.backend import choose_backend

    backend = choose_backend("cuda")
    reference = load_index(folder / "index").reference
    guides = read_guides(guides_in(folder, count))

    def run() -> tuple[float, int]:
        start = time.perf_counter()
        found = find_sites(
            reference, guides, parse_pam("NGG"), SiteOptions(*limits), threads, backend
        )
        n_hits = sum(hits.count for _, hits in found)
        return round(time.perf_counter() - start, 3), n_hits

    run()
    seconds, n_hits = run()
    with KernelClock() as clock:
        run()
    kernels = {name: round(value, 4) for name, value in clock.seconds.items()}
    return {
        "limits": limits, "guides": count, "sites": n_hits, "seconds": seconds,
        "kernel_seconds": kernels,
    }  # fmt: skip


def main(options):
    skip_without_gpu()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        small, large = Path(name, "small"), Path(name, "large")
        results = Results(options.output, gpu=gpu_name(), threads=options.threads)
        simulate(small, options.compared_bases, 3)
        for limits in COMPARED:
            both = compare(small, FEW, limits, options.threads)
            results.add(part="compare", bases=options.compared_bases, **both)
        both = compare(small, MANY, (4, 0, 0), options.threads)
        results.add(part="compare", bases=options.compared_bases, **both)
        size = {"bases": options.genome_bases}
        results.add(part="simulate", **size, **simulate(large, options.genome_bases, 24))
        for count, all_limits in WHOLE.items():
            for limits in all_limits:
                search(large, count, limits, "cuda", options.threads)
                seconds = [
                    search(large, count, limits, "cuda", options.threads)
                    for _ in range(options.rounds)
                ]
                results.add(part="whole", **size, limits=limits, guides=count, seconds=seconds)
                results.add(part="inside", **size, **inside(large, count, limits, options.threads))
        results.add(part="compare", **size, **compare(large, FEW, (4, 0, 0), options.threads))


if __name__ == "__main__":
    main(parse_options())
