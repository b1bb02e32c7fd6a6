#!/usr/bin/env python3
"""Time the search for all loci by the mismatches within parts, on a CPU core or on a GPU.

    python benchmarks/seed_mismatches.py -o benchmarks/results/seed_mismatches.jsonl
    python benchmarks/seed_mismatches.py -o benchmarks/results/seed_mismatches.jsonl \\
        --backend cuda --reads 400000

Probes of 20 bases and reads of 36 and 100 bases come from human chr20, or from a simulated genome
if it is missing, with as many substitutions as are allowed, or fewer. All loci are found with parts
searched with 0 to 4 mismatches, if parts are long enough for it; alignments and records are not
made. One thread of the CPU is timed by its CPU time, a GPU by wall time.

One JSON object per line is appended to --output; `chosen` marks what `--seed-mismatches auto`
chooses.
"""

import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from frame.options import add_folder, large_file, new_parser, read_options
from frame.results import results_of_backend
from frame.simulated import make_genome, make_index

from bwarp.allmap import find_cpu
from bwarp.allmap.candidates_cpu import blocks_of
from bwarp.allmap.options import LocusOptions
from bwarp.allmap.parts_cpu import best_mismatches, seed_mismatches
from bwarp.index.store import load_index
from bwarp.mapping.extension_cpu import both_strands
from bwarp.options.option import Whole
from bwarp.reference import text_of

#: Bases of a read, edits, gap letters among them, and the share of --reads.
SETS = ((20, 3, 0, 1 / 20), (36, 3, 0, 1), (100, 6, 0, 1), (100, 6, 2, 1))


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("--backend", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--reads", type=Whole(20, 10**8).parse, default=20_000)
    parser.add_argument("--repeats", type=Whole(1, 100).parse, default=3)
    parser.add_argument("--index", type=Path, help="an index with the reverse BWT (default: made)")
    add_folder(parser)
    return read_options(parser, "seed_mismatches.jsonl", repeats=1, reads=200)


def reads_like(text: np.ndarray, n_reads: int, length: int, edits: int) -> np.ndarray:
    """Return reads of the text with up to `edits` substitutions, shape=(n_reads, length)."""
    rng = np.random.default_rng(length + edits)
    starts = rng.integers(0, text.size - length, 2 * n_reads)
    reads = text[starts[:, None] + np.arange(length)]
    reads = reads[(reads > 0).all(axis=1)][:n_reads] - 1
    for _ in range(edits):
        changed, at = rng.random(len(reads)) < 0.5, rng.integers(0, length, len(reads))
        reads[changed, at[changed]] = rng.integers(0, 4, np.count_nonzero(changed))
    return reads.astype(np.uint8)


def measure(options):
    with tempfile.TemporaryDirectory(dir=options.folder) as work:
        folder = options.index
        if folder is None:
            genome = None if options.small else large_file("chr20.fa")
            genome = genome or make_genome(Path(work), 200_000 if options.small else 20_000_000)
            folder = make_index(Path(work), genome, "--with-reverse")
        index = load_index(folder)
        text, host = text_of(index.reference), find_cpu.load(index.reference)
        for length, edits, gaps, share in SETS:
            n_reads = max(20, int(options.reads * share))
            reads = reads_like(text, n_reads, length, edits)
            offsets = np.arange(len(reads) + 1) * length
            limits = [LocusOptions(edits, gaps=gaps, mismatches=m) for m in range(5)]
            chosen = best_mismatches(length, edits, gaps, index.forward.n_rows)
            for m, limit in enumerate(limits):
                sizes = np.array([length]), np.array([edits]), np.array([gaps])
                if seed_mismatches(index, *sizes, limit)[0] != m:
                    continue  # the parts are too short
                finder = finder_of(index, host, limit, options.backend)
                yield {
                    "what": "all loci by mismatches within parts",
                    "text_bases": int(text.size),
                    "backend": options.backend,
                    "length": length,
                    "edits": edits,
                    "gaps": gaps,
                    "mismatches": m,
                    "chosen": m == chosen,
                } | timed_batches(finder, reads.reshape(-1), offsets, options.repeats)


def finder_of(index, host, limits: LocusOptions, backend: str):
    if backend == "cpu":
        return find_cpu.LociFinder(index, host, limits)
    from bwarp.allmap import find_cuda

    return find_cuda.LociFinder(index, host, find_cuda.prepare(index, limits), limits)


def timed_batches(finder, codes: np.ndarray, offsets: np.ndarray, repeats: int) -> dict:
    """Find the loci of a batch some times, after a few reads that compile the functions."""
    both = both_strands(codes, offsets)
    few = both_strands(codes[: offsets[20]], offsets[:21])
    finder.find_batch(few, blocks_of(few), offsets[:21])
    blocks, seconds, processor = blocks_of(both), [], []
    for _ in range(repeats):
        start, processor_start = time.perf_counter(), time.process_time()
        loci, counts = finder.find_batch(both, blocks, offsets)
        seconds.append(time.perf_counter() - start)
        processor.append(time.process_time() - processor_start)
    return {
        "reads": len(offsets) - 1,
        "parts": int(counts[0]),
        "located": int(counts[1]),
        "loci": len(loci.reads),
        "seconds": statistics.median(seconds),
        "processor_seconds": statistics.median(processor),
        "all_seconds": seconds,
    }


if __name__ == "__main__":
    options = parse_options()
    results = results_of_backend(options.output, options.backend)
    for line in measure(options):
        results.add(**line)
