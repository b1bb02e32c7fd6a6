#!/usr/bin/env python3
"""Time mapping on many cores, in total and by stage.

    python benchmarks/map_cores.py -o benchmarks/results/map_cores.jsonl

Simulates a genome, its index, and pairs of 2 x 150: plain, as BGZF and as gzip (--forms fq: only
plain, less than four minutes on 16 cores). Only the CPU engine is used. A run with little data
compiles what is needed. Then these are timed: reading alone; scripts/map_reads.py as a user runs
it, from each form of reads to sorted BAM and to SAM; strobealign to SAM if it is on PATH; and a run
in this process, with the length of its phases, the number of busy cores in each, and the seconds of
each stage. Each result is one JSON line.
"""

import os
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from deflate import gzip_compress
from frame.options import add_folder, add_threads, new_parser, read_options
from frame.peers import found
from frame.results import Results
from frame.simulated import run_script
from frame.stage_clock import StageClock
from frame.timing import run_program

from bwarp.bam import bgzf as bgzf_blocks
from bwarp.bam import block_writer, external_sort
from bwarp.bam.bgzf import END_OF_FILE, compressed_blocks
from bwarp.index.store import load_index
from bwarp.mapping import pipeline
from bwarp.mapping.engine import load
from bwarp.mapping.parameters import MappingParameters
from bwarp.reads import read_chunks
from bwarp.reads import read_chunks as counted_records
from bwarp.records import alignment_file
from bwarp.records import alignment_file as chunk_writer
from bwarp.records.output_options import AlignmentOutput, default_sort_bytes
from bwarp.runtime.chunks import read_ahead

FORMS = ("fq", "bgzf.gz", "gzip.gz")
PIECE = 1 << 20

#: Stages, and their functions.
STAGES = {
    "inflate or read (a thread a file)": (counted_records, "read_blocks"),
    "cut into records (one thread)": (counted_records, "cut_records"),
    "find lines, names": (read_chunks, "piece_of"),
    "lay out reads": (read_chunks, "laid_out"),
    "seed and score": (pipeline.CpuMapEngine, "find"),
    "insert size": (pipeline, "estimate_insert_size"),
    "rescue mates": (pipeline, "add_mates"),
    "primary hits, final alignments": (pipeline, "finish_chunk"),
    "records: which": (chunk_writer, "chunk_records"),
    "records: bytes": (alignment_file, "bam_records"),
    "count": (chunk_writer, "counts_of"),
    "store to be sorted (one thread)": (external_sort.RecordSorter, "add"),
    "order of records": (external_sort, "sorted_order"),
    "gather records in order": (block_writer, "_fill"),
    "compress": (bgzf_blocks, "_write_blocks"),
    "loci for the index": (block_writer, "record_loci"),
    "write blocks (one thread)": (block_writer.BlockWriter, "_write_blocks"),
    "all from the last read on (one thread waits)": (external_sort.RecordSorter, "finish"),
}


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("--bases", type=int, default=500_000_000)
    parser.add_argument("--contigs", type=int, default=24)
    parser.add_argument("--pairs", type=int, default=4_000_000)
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=FORMS, help="of the reads")
    add_threads(parser)
    add_folder(parser)
    return read_options(parser, "map_cores.jsonl", bases=1_000_000, contigs=2, pairs=4000)


def simulate(folder: Path, bases: int, contigs: int, pairs: int, threads: int, forms) -> dict:
    """Make a genome, its index and reads in a folder; return the seconds of each."""
    genome, (first, second) = folder / "genome.fa", reads_of(folder, "fq")
    folder.mkdir()
    size = "--length", bases, "--contigs", contigs
    with_threads = "--threads", threads
    seconds = {
        "genome_seconds": run_script("simulate_genome", "-o", genome, *size, *with_threads).wall,
        "index_seconds": run_script(
            "index_reference", genome, "-o", folder / "index", "--backend", "cpu", *with_threads
        ).wall,
        "reads_seconds": run_script(
            "simulate_reads", "--reference", genome, "-1", first, "-2", second,
            "--pairs", pairs, *with_threads,
        ).wall,
    }  # fmt: skip
    start = time.perf_counter()
    for number, plain in enumerate((first, second)):
        for form, pieces_of in (("gzip.gz", gzip_pieces), ("bgzf.gz", bgzf_pieces)):
            if form in forms:
                pack(plain, reads_of(folder, form)[number], threads, pieces_of)
    return seconds | {"packing_seconds": round(time.perf_counter() - start, 3)}


def reads_of(folder: Path, form: str) -> tuple[Path, Path]:
    return folder / f"1.{form}", folder / f"2.{form}"


def gzip_pieces(data: np.ndarray) -> list[bytes]:
    return [gzip_compress(data[at : at + PIECE], 1) for at in range(0, data.size, PIECE)]


def bgzf_pieces(data: np.ndarray) -> list[np.ndarray]:
    return [compressed_blocks(data)[0]]


def pack(plain: Path, packed: Path, threads: int, pieces_of) -> None:
    """Compress a file with several threads, each 16 pieces at a time."""
    data = np.memmap(plain, np.uint8, "r")
    parts = (data[at : at + 16 * PIECE] for at in range(0, data.size, 16 * PIECE))
    with open(packed, "wb") as file, ThreadPoolExecutor(threads) as pool:
        for pieces in pool.map(pieces_of, parts):
            file.writelines(pieces)
        if pieces_of is bgzf_pieces:
            file.write(END_OF_FILE)


def read_alone(folder: Path, form: str, threads: int) -> dict:
    start, before = time.perf_counter(), os.times()
    first, second = reads_of(folder, form)
    chunks = read_ahead(read_chunks.paired_chunks(first, second, threads=threads))
    n_reads = sum(chunk.n_reads for chunk in chunks)
    return {"reads": n_reads} | seconds_since(start, before)


def seconds_since(start: float, before: os.times_result) -> dict:
    now = os.times()
    wall = time.perf_counter() - start
    user, system = now.user - before.user, now.system - before.system
    return {
        "wall_seconds": round(wall, 2),
        "user_seconds": round(user, 2),
        "system_seconds": round(system, 2),
        "busy_cores": round((user + system) / wall, 1),
    }


def map_reads(folder: Path, form: str, output: str, threads: int) -> dict:
    first, second = reads_of(folder, form)
    path = "-" if output == "-" else folder / output
    if path != "-":
        # Removing a file of gigabytes takes time that would count for the mapper.
        path.unlink(missing_ok=True)
    used = run_script(
        "map_reads", "--index", folder / "index", "-1", first, "-2", second, "-o", path,
        *(["--sort"] if output.endswith(".bam") else []), "--backend", "cpu", "--threads", threads,
    )  # fmt: skip
    return of_program(used)


def of_program(used) -> dict:
    return {
        "wall_seconds": used.wall,
        "cpu_seconds": used.processor,
        "busy_cores": round(used.processor / used.wall, 1),
        "memory_mb": round(used.peak / 2**20),
    }


def strobealign(folder: Path, threads: int) -> dict:
    genome, reads = folder / "genome.fa", reads_of(folder, "fq")
    run_program(["strobealign", "--create-index", "-t", threads, "-r", 150, genome])
    index_used = ["strobealign", "--use-index", "-t", threads, genome, *reads]
    return of_program(run_program(index_used))


def staged(folder: Path, form: str, threads: int):
    """Return the phases of a run in this process, and the seconds per stage over all threads."""
    first, second = map(str, reads_of(folder, form))
    output = folder / "stages.bam"
    sorted_bam = AlignmentOutput(str(output), default_sort_bytes(threads), sort=True)
    marks = [(time.perf_counter(), os.times(), 0)]

    def mark(n_reads: int, _=None) -> None:
        marks.append((time.perf_counter(), os.times(), n_reads))

    with StageClock(STAGES) as clock:
        chunks = read_ahead(read_chunks.paired_chunks(first, second, threads=threads))
        index = load_index(folder / "index")
        engine = load(index, MappingParameters(), "cpu", threads)
        mark(0)
        chunk_writer.write_mapped(engine, chunks, sorted_bam, index.reference, mark)
        mark(marks[-1][2])
    names = ("load", "until the first chunk", "map", "sort, compress, write")
    bounds = [marks[0], marks[1], marks[2], marks[-2], marks[-1]]
    for name, (start, before, n_before), (end, after, n_after) in zip(
        names, bounds, bounds[1:], strict=False
    ):
        wall = max(end - start, 1e-9)
        user, system = after.user - before.user, after.system - before.system
        yield {
            "what": f"phase: {name}",
            "wall_seconds": round(wall, 2),
            "user_seconds": round(user, 2),
            "system_seconds": round(system, 2),
            "busy_cores": round((user + system) / wall, 1),
            "reads_a_second": round((n_after - n_before) / wall),
        }
    millions = marks[-1][2] / 1e6
    for name, stage in clock.stages.items():
        yield {
            "what": f"stage: {name}",
            "cpu_seconds": round(stage.processor, 2),
            "cpu_seconds_a_million_reads": round(stage.processor / millions, 3),
            "wall_seconds_of_all_threads": round(stage.wall, 2),
            "calls": stage.calls,
        }


def measure(folder: Path, bases: int, contigs: int, pairs: int, threads: int, forms):
    yield {"what": "data"} | simulate(folder, bases, contigs, pairs, threads, forms)
    for form in forms:
        yield {"what": f"read {form}"} | read_alone(folder, form, threads)
    for form in forms:
        used = map_reads(folder, form, "out.bam", threads)
        yield {"what": f"map {form} to sorted BAM"} | used
    yield {"what": "map fq to SAM"} | map_reads(folder, "fq", "-", threads)
    if found("strobealign"):
        yield {"what": "strobealign fq to SAM"} | strobealign(folder, threads)
    yield from staged(folder, forms[0], threads)


def main():
    options = parse_options()
    options.output.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        for _ in measure(Path(name, "little"), 1_000_000, 2, 4000, options.threads, options.forms):
            pass
        size = options.bases, options.contigs, options.pairs
        results = Results(
            options.output,
            **dict(zip(("bases", "contigs", "pairs"), size, strict=True)),
            threads=options.threads,
        )
        for line in measure(Path(name, "data"), *size, options.threads, options.forms):
            results.add(**line)


if __name__ == "__main__":
    main()
