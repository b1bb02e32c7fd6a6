#!/usr/bin/env python3
"""Time the filters of allmap and the verification of what they keep, on a CPU core or on a GPU.

    python benchmarks/filters.py -o benchmarks/results/filters.jsonl
    python benchmarks/filters.py -o benchmarks/results/filters.jsonl --backend cuda \\
        --reads 100000 --data chr20 at-rich repeats repeats:3100000000

Each of --data is a genome: human chr20; a simulated one with 80 % A and T, as that of Plasmodium
falciparum; a simulated one with repeats; each simulated one with its number of bases after a colon.
A genome and its index are made in --folder, and used again if they are there.

All hits of the parts of some reads are located: these are the candidates. Each filter drops some,
and the others are verified; the loci must be the same. One thread of the CPU is timed by its CPU
time, a GPU by the time of its kernels.

One JSON object per line is appended to --output: seconds of the filter and of the verification, and
those that the filter saves in the verification.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from frame.options import add_folder, large_file, new_parser, read_options
from frame.results import results_of_backend
from frame.simulated import run_script

from bwarp.allmap import find_cpu
from bwarp.allmap.candidates_cpu import DROPPED, blocks_of
from bwarp.allmap.find import steps_of
from bwarp.allmap.options import LocusOptions
from bwarp.allmap.parts_cpu import hits_of, items_of, kept_hits, seed_mismatches, some_items
from bwarp.allmap.verify_cpu import COUNTS
from bwarp.index.locate_cpu import locate
from bwarp.index.store import load_index
from bwarp.mapping.extension_cpu import both_strands
from bwarp.options.option import Whole
from bwarp.reads.read_chunks import read_chunks

#: Bases of a read, edits, and gap letters among them.
SETS = ((100, 4, 4), (100, 4, 0), (150, 6, 6))
FILTERS = ("off", "histogram", "kmers", "both")

#: Bases of the simulated genomes, and options of bwarp simulate-genome.
SIMULATED = {
    "at-rich": (23_000_000, ("--gc", "0.2", "--contigs", "14")),
    "repeats": (50_000_000, ("--contigs", "4")),
}


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("--backend", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--data", nargs="+", default=["chr20", *SIMULATED], metavar="NAME[:BASES]")
    parser.add_argument("--reads", type=Whole(20, 10**8).parse, default=20_000)
    parser.add_argument("--repeats", type=Whole(1, 100).parse, default=3)
    add_folder(parser)
    small = {"repeats": 1, "reads": 200, "data": ["at-rich:100000", "repeats:100000"]}
    return read_options(parser, "filters.jsonl", **small)


def genome_of(name: str, folder: Path) -> Path | None:
    """Return the FASTA of a data set, simulated if need be; None for a missing one."""
    name, _, bases = name.partition(":")
    if name not in SIMULATED:
        return large_file(f"{name}.fa")
    size, options = SIMULATED[name]
    size = int(bases or size)
    genome = folder / f"{name}_{size}.fa"
    if not genome.exists():
        run_script("simulate_genome", "-o", genome, "--length", size, *options)
    return genome


def measure(options):
    with tempfile.TemporaryDirectory() as work:
        folder = options.folder or Path(work)
        folder.mkdir(exist_ok=True, parents=True)
        for name in options.data:
            genome = genome_of(name, folder)
            if genome is None:
                print(f"left out {name}: not in $BWARP_LARGE", file=sys.stderr)
                continue
            folder_of_index = folder / f"{genome.stem}.index"
            if not folder_of_index.exists():
                engine = "--backend", options.backend
                run_script("index_reference", genome, "-o", folder_of_index, *engine)
            index = load_index(folder_of_index)
            steps = {
                name: steps_of(options.backend).VerifyingSteps(index.reference, 1, name)
                for name in FILTERS
            }
            for length, edits, gaps in SETS:
                reads = folder / f"{genome.stem}_{length}_{options.reads}.fq"
                if not reads.exists():
                    size = "--reads", options.reads, "--read-length", length
                    run_script("simulate_reads", "--reference", genome, "-1", reads, *size)
                about = {
                    "genome": name.partition(":")[0],
                    "text_bases": index.reference.n_bases,
                    "backend": options.backend,
                    "reads": options.reads,
                    "length": length,
                    "edits": edits,
                    "gaps": gaps,
                }
                limits = LocusOptions(edits, gaps=gaps, mismatches=0)
                for line in compared(index, steps, reads, limits, options):
                    yield about | line


def compared(index, steps: dict, reads: Path, limits: LocusOptions, options) -> list[dict]:
    """Return a line per filter for the candidates of a file of reads."""
    clock = clock_of(options.backend)
    (chunk,) = read_chunks(str(reads), None, False, options.reads)
    blocks = blocks_of(both_strands(chunk.codes, chunk.offsets))
    given = list(candidates(index, chunk, limits))
    lines, expected = [], None
    for name, verifying in steps.items():
        seconds: dict[str, list[float]] = {"filter": [], "verify": []}
        for _ in range(options.repeats + 1):
            dropped, found = np.zeros(len(DROPPED) + 1, np.int64), []
            counts, sums = np.zeros(len(COUNTS), np.int64), dict.fromkeys(seconds, 0.0)
            for items, hits, positions in given:
                kept = hits, positions
                if name != "off":
                    by, took = clock(verifying.dropped_by, blocks, items, hits, positions)
                    kept = kept_hits(hits, positions, by == 0)
                    dropped += np.bincount(by, minlength=dropped.size)
                    sums["filter"] += took
                loci, took = clock(verifying.find_loci, blocks, items, *kept, counts)
                sums["verify"] += took
                found.append(loci)
            for what, taken in seconds.items():
                taken.append(sums[what])
        if expected is None:
            expected = found
        if not all(map(np.array_equal, found, expected)):
            sys.exit(f"the loci with --filter {name} differ from those without a filter")
        # The first round compiles.
        medians = {what: statistics.median(taken[1:]) for what, taken in seconds.items()}
        lines.append(
            {
                "filter": name,
                "candidates": sum(positions.size for _, _, positions in given),
                **{DROPPED[number]: int(dropped[number]) for number in DROPPED},
                "verified": int(counts[COUNTS.index("verified")]),
                "loci": sum(map(len, found)),
                "filter_seconds": medians["filter"],
                "verify_seconds": medians["verify"],
            }
        )
        lines[-1]["saved_seconds"] = lines[0]["verify_seconds"] - medians["verify"]
    return lines


def candidates(index, chunk, limits: LocusOptions):
    """Yield the items, parts and positions of all hits, some items at a time, found on the CPU."""
    numbers, lengths = np.arange(chunk.n_reads), np.diff(chunk.offsets)
    edits = limits.edits_of(lengths)
    gaps = limits.gaps_of(edits)
    mismatches = seed_mismatches(index, lengths, edits, gaps, limits)
    items = items_of(chunk.offsets, numbers, edits, gaps, mismatches)
    both = both_strands(chunk.codes, chunk.offsets)
    parts = find_cpu.SeedingSteps(index, limits).search_parts(both, items)
    for first, last in find_cpu.hit_ranges(parts):
        hits, rows = hits_of(parts, first, last)
        yield some_items(items, slice(first, last)), hits, locate(index, rows)


def clock_of(backend: str) -> Callable:
    """Return a function that calls another one, and returns its result and seconds."""

    def on_cpu(work, *arguments):
        start = time.thread_time()
        result = work(*arguments)
        return result, time.thread_time() - start

    def on_gpu(work, *arguments):
        from frame.gpu_timing import KernelClock

        with KernelClock() as kernels:
            result = work(*arguments)
        return result, kernels.total

    return on_gpu if backend == "cuda" else on_cpu


if __name__ == "__main__":
    options = parse_options()
    results = results_of_backend(options.output, options.backend)
    for line in measure(options):
        results.add(**line)
