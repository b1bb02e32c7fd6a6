#!/usr/bin/env python3
"""Time the search for all loci on a GPU: gzipped FASTQ to sorted BAM, on a simulated genome.

    python benchmarks/allmap_gpu.py -o benchmarks/results/allmap_h200.jsonl
    python benchmarks/allmap_gpu.py --genome-bases 200000000 --reads 1000000 --parts best profile

A genome with repeats, its index and reads are made first. Then the parts in --parts run:

    compare   search some of the reads on the CPU and on the GPU, for every locus and for the best
              ones: BAM files and counts must be equal
    best      run scripts/find_alignments.py --report best as a user does, twice
    all       the same for every locus of --all-reads reads
    profile   process some chunks step by step with the time of each kernel, for both

Each writes one JSON line.
"""

import contextlib
import cProfile
import gzip
import json
import os
import sys
import tempfile
import time
from pathlib import Path

from frame.environment import gpu_name
from frame.options import add_folder, new_parser, read_options, skip_without_gpu
from frame.results import Results
from frame.simulated import run_script
from map_gpu import hash_of

PARTS = ("compare", "best", "all", "profile")


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("--genome-bases", type=int, default=3_100_000_000)
    parser.add_argument("--contigs", type=int, default=24)
    parser.add_argument("--reads", type=int, default=10_000_000)
    parser.add_argument("--all-reads", type=int, default=50_000, help="of which all loci are found")
    parser.add_argument("--compared-reads", type=int, default=20_000, help="searched on CPUs too")
    parser.add_argument("--edits", type=int, default=4)
    parser.add_argument(
        "--max-places", type=int, default=0, help="loci of a read that are written; 0: all"
    )
    parser.add_argument("--sort-memory", type=int, default=24_000, help="megabytes")
    parser.add_argument("--chunks", type=int, default=3, help="profiled step by step")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    add_folder(parser)
    small = {
        "genome_bases": 2_000_000, "contigs": 3, "reads": 20_000, "all_reads": 5_000,
        "compared_reads": 5_000, "sort_memory": 500,
    }  # fmt: skip
    return read_options(parser, "allmap_h200.jsonl", **small)


def reads_of(folder: Path, number: int) -> Path:
    return folder / f"reads_{number}.fq.gz"


def simulate(folder: Path, options) -> dict:
    """Make a genome, its index and reads unless they exist in a folder; return their seconds."""
    genome, index = folder / "genome.fa", folder / "index"
    folder.mkdir(exist_ok=True, parents=True)
    seconds = {}
    if not index.exists():
        size = "--length", options.genome_bases, "--contigs", options.contigs
        seconds["genome_seconds"] = run_script("simulate_genome", "-o", genome, *size).wall
        made = run_script("index_reference", genome, "-o", index, "--backend", "cuda")
        seconds["index_seconds"] = made.wall
    wanted = {"compare": options.compared_reads, "best": options.reads, "all": options.all_reads}
    for number in sorted({n for part, n in wanted.items() if part in options.parts} or {10_000}):
        if not reads_of(folder, number).exists():
            of_genome = "--reference", genome, "-1", reads_of(folder, number)
            made = run_script("simulate_reads", *of_genome, "--reads", number)
            seconds[f"reads_{number}_seconds"] = made.wall
    return seconds


def find(folder: Path, number: int, report: str, backend: str, options) -> tuple[float, dict, Path]:
    """Run a search; return its seconds, its counts, and its BAM."""
    output = folder / f"{number}.{report}.{backend}.bam"
    # Removing a file of gigabytes takes time that would count for the program.
    output.unlink(missing_ok=True)
    counts = output.with_suffix(".json")
    used = run_script(
        "find_alignments", "--index", folder / "index", "-1", reads_of(folder, number), "-o",
        output, "--edits", options.edits, "--report", report, "--backend", backend, "--threads",
        options.threads, "--stats", counts, "--max-places", options.max_places,
        "--sort-memory", options.sort_memory,
    )  # fmt: skip
    return used.wall, json.loads(counts.read_text()), output


def compare(folder: Path, report: str, options) -> dict:
    """Search with both engines; their output must be equal."""
    number, found = options.compared_reads, {}
    for backend in ("cpu", "cuda"):
        found[backend] = find(folder, number, report, backend, options)
    (cpu_seconds, counts, cpu_bam), (cuda_seconds, cuda_counts, cuda_bam) = found.values()
    if counts != cuda_counts:
        sys.exit(f"counts differ: {counts} and {cuda_counts}")
    if hash_of(cpu_bam, gzip.open) != hash_of(cuda_bam, gzip.open):
        sys.exit(f"{cpu_bam} and {cuda_bam} differ")
    return {"cpu_seconds": cpu_seconds, "cuda_seconds": cuda_seconds} | counts


def whole_run(folder: Path, number: int, report: str, options) -> dict:
    seconds, counts, output = find(folder, number, report, "cuda", options)
    return {
        "seconds": seconds,
        "reads_a_second": round(counts["reads"] / seconds),
        "loci_a_second": round(counts["loci"] / seconds),
        "bam_bytes": output.stat().st_size,
    } | counts


def timeline(folder: Path, number: int, report: str, options) -> dict:
    """Return the times at which chunks of a run in this process are done."""
    from bwarp.allmap.find import LociTask, load, reads_a_chunk
    from bwarp.allmap.locus_bam import locus_tables
    from bwarp.index.store import load_index
    from bwarp.io.names import Names
    from bwarp.mapping.extension_cpu import Genome
    from bwarp.reads.read_chunks import read_chunks
    from bwarp.records.bam_records_cpu import bam_records
    from bwarp.runtime.chunks import read_ahead

    start, marks = time.perf_counter(), []
    task = LociTask(loci_options(report, options), options.max_places)
    size = reads_a_chunk("cuda", task)
    path = str(reads_of(folder, number))
    chunks = read_ahead(read_chunks(path, None, False, size, options.threads))
    index = load_index(folder / "index")
    engine = load(index, task, "cuda", options.threads)
    loaded, n_reads, n_loci = time.perf_counter() - start, 0, 0
    contigs = Names.of(index.reference.names)
    bases = Genome(engine.genome.blocks, index.reference.contig_starts)

    def records(found):
        return bam_records(locus_tables(found, bases, contigs))

    for _, counts in engine.find_loci(chunks, records):
        n_reads, n_loci = n_reads + counts.reads, n_loci + counts.loci
        marks.append((time.perf_counter() - start, n_reads, n_loci))
    half = marks[len(marks) // 2]
    seconds = marks[-1][0] - half[0]
    # Small data is a single chunk without a second half.
    of_half = {
        "reads_a_second_in_the_second_half": round((n_reads - half[1]) / seconds),
        "loci_a_second_in_the_second_half": round((n_loci - half[2]) / seconds),
    }
    return {
        "index_and_genome_there": round(loaded, 2),
        "first_chunk": round(marks[0][0], 2),
        "last_chunk": round(marks[-1][0], 2),
    } | (of_half if seconds else {})


def loci_options(report: str, options):
    from bwarp.allmap.options import LocusOptions
    from bwarp.options.mapping import ALL

    return LocusOptions(options.edits, strata=ALL if report == "all" else 0)


def profile(folder: Path, number: int, report: str, options) -> list[dict]:
    """Return the seconds of each step of some chunks, one after the other, and of each kernel."""
    import numpy as np
    from frame.gpu_timing import KernelClock, StepClock, microseconds_each

    from bwarp.allmap.alignments_cpu import align
    from bwarp.allmap.candidates_cpu import blocks_of
    from bwarp.allmap.find import FoundChunk, LociTask, load, reads_a_chunk
    from bwarp.allmap.locus_bam import locus_tables
    from bwarp.index.store import load_index
    from bwarp.io.names import Names
    from bwarp.mapping.extension_cpu import Genome, both_strands
    from bwarp.reads.read_chunks import read_chunks
    from bwarp.records.bam_records_cpu import bam_records

    step = StepClock()
    index = step("load the index", load_index, folder / "index")
    task = LociTask(loci_options(report, options))
    engine = step("genome and GPU", load, index, task, "cuda", options.threads)
    genome, find_loci = engine.genome, engine.finder.find_batch
    preparing = {name: round(value, 3) for name, value in step.seconds.items()}
    contigs = Names.of(index.reference.names)
    bases = Genome(genome.blocks, index.reference.contig_starts)
    lines = []
    calls = cProfile.Profile()
    for what, context in (
        ("steps", contextlib.nullcontext()),
        ("kernels", KernelClock()),
        ("calls", contextlib.nullcontext()),
    ):
        n_reads = n_loci = 0
        path, size = str(reads_of(folder, number)), reads_a_chunk("cuda", task)
        chunks = read_chunks(path, None, False, size)
        with context as kernels:
            for turn in range(options.chunks + 1):
                chunk = step("inflate and parse", next, chunks, None)
                if chunk is None:
                    break
                if turn == 1:
                    # The first chunk loads compiled code.
                    n_reads = n_loci = 0
                    for clock in filter(None, (step, kernels)):
                        clock.clear()
                both = step("turn reads", both_strands, chunk.codes, chunk.offsets)
                blocks = step("make bits of reads", blocks_of, both)
                with calls if what == "calls" and turn else contextlib.nullcontext():
                    loci, counts = step("find loci", find_loci, both, blocks, chunk.offsets)
                given = chunk.offsets, loci, task.limits, None
                step("align, a thread", align, genome.blocks, both, blocks, *given)
                given = both, blocks, chunk.offsets, None, loci
                alignments = step("align", engine.finder.align_batch, *given)
                n_of_reads = np.bincount(loci.reads, minlength=chunk.n_reads)
                found = FoundChunk(chunk, both, loci, alignments, n_of_reads, n_of_reads[:0])
                tables = step("lay out records", locus_tables, found, bases, contigs)
                step("write records", bam_records, tables)
                n_reads, n_loci = n_reads + chunk.n_reads, n_loci + len(loci.reads)
        times = step.seconds if kernels is None else kernels.seconds
        if what == "calls":
            # Python's functions for finding loci, without the functions that they call.
            calls.create_stats()
            times = {
                f"{Path(file).name}:{line} {name} x{n}": own
                for (file, line, name), (_, n, own, *_) in calls.stats.items()
            }
        line = {
            "what": what,
            "report": report,
            "reads": n_reads,
            "loci_a_read": round(n_loci / n_reads, 2),
            "counts_of_the_last_chunk": counts.tolist(),
        }
        if what == "steps":
            line["preparing_seconds"] = preparing
        elif what == "kernels":
            line["million_reads_a_second"] = round(n_reads / sum(times.values()) / 1e6, 2)
        line["microseconds_a_read"] = microseconds_each(times, n_reads)
        lines.append(line)
    return lines


def main(options):
    skip_without_gpu()
    from bwarp.runtime.backend import choose_backend

    with contextlib.ExitStack() as stack:
        folder = options.folder
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        results = Results(options.output, gpu=gpu_name(), threads=options.threads)
        sizes = {
            "bases": options.genome_bases,
            "edits": options.edits,
            "max_places": options.max_places,
        }
        results.add(what="made", **sizes, **simulate(folder, options))
        if "compare" in options.parts:
            for report in ("best", "all"):
                both = compare(folder, report, options)
                results.add(what="both engines", report=report, **sizes, **both)
        if "best" in options.parts:
            for _ in range(2):
                run = whole_run(folder, options.reads, "best", options)
                results.add(what="gzipped FASTQ to sorted BAM", report="best", **sizes, **run)
        if "all" in options.parts:
            run = whole_run(folder, options.all_reads, "all", options)
            results.add(what="gzipped FASTQ to sorted BAM", report="all", **sizes, **run)
        if "profile" in options.parts:
            choose_backend("cuda")
            made = {int(path.name.split("_")[1].split(".")[0]) for path in folder.glob("reads_*")}
            for report, wanted in (("best", options.reads), ("all", options.all_reads)):
                number = wanted if wanted in made else max(made)
                for line in profile(folder, number, report, options):
                    results.add(**line, **sizes)
                seconds = timeline(folder, number, report, options)
                results.add(what="seconds within a run", report=report, **sizes, **seconds)


if __name__ == "__main__":
    main(parse_options())
