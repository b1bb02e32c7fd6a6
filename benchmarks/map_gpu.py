#!/usr/bin/env python3
"""Time mapping on a GPU: gzipped FASTQ to sorted BAM on a simulated genome, in one command.

    python benchmarks/map_gpu.py -o benchmarks/results/map_h200.jsonl
    python benchmarks/map_gpu.py --parts duplicates

First, to compile everything, reads of a small genome are mapped on the CPU and on the GPU, with and
without --mark-duplicates; the two BAM files must contain the same bytes. On the large genome the
parts in --parts follow:

compare     some reads with both engines, compared again
runs        scripts/map_reads.py as a user runs it, twice, with input in BGZF and uncompressed, and
            with five times as many reads
duplicates  reads of which some are copies, without and with --mark-duplicates in turn
steps       runs in this process, with the times when chunks are done; and the first chunks step by
            step, with the time of each kernel

Each writes one or more JSON lines. --timeline keeps the timeline of the last run, made once more.
At the start, nothing is compiled.

Reads are compressed with the defaults of gzip and pigz: level 6, one stream.
"""

import contextlib
import gzip
import hashlib
import json
import os
import shutil
import sys
import tempfile
import time
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

import numpy as np
from frame.environment import gpu_name
from frame.options import add_folder, new_parser, read_options, skip_without_gpu
from frame.results import Results
from frame.simulated import Used, run_script
from zlib_ng import gzip_ng_threaded

from bwarp.runtime.threads import available_threads, run_together

#: The format of reads by the prefix of their file names.
FORMS = {
    "": "gzipped",
    "bgzf": "bgzf",
    "plain": "plain",
    "copies": "gzipped",
    "duplicates": "with duplicates, gzipped",
}

PARTS = ["compare", "runs", "duplicates", "steps"]
MARKED = "--mark-duplicates"


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("--bases", type=int, default=3_100_000_000)
    parser.add_argument("--contigs", type=int, default=24)
    parser.add_argument("--pairs", type=int, default=5_000_000)
    parser.add_argument("--compared-pairs", type=int, default=500_000, help="mapped on the CPU too")
    parser.add_argument("--copies", type=int, default=5, help="of the reads, for a longer run")
    parser.add_argument("--duplicates", type=float, default=0.15, help="fraction of copied pairs")
    parser.add_argument("--chunks", type=int, default=4, help="profiled step by step")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--threads", type=int, default=available_threads())
    parser.add_argument("--timeline", metavar="OUT.json", help="the timeline of one more run")
    add_folder(parser)
    small = {"bases": 2_000_000, "pairs": 20_000, "compared_pairs": 5_000}
    return read_options(parser, "map_h200.jsonl", **small)


def simulate(folder: Path, bases: int, contigs: int, pairs: int) -> dict:
    """Make a genome, its index and reads in a folder; return the seconds of each."""
    genome, index = folder / "genome.fa", folder / "index"
    folder.mkdir(exist_ok=True)
    size = "--length", bases, "--contigs", contigs
    return {
        "genome_seconds": run_script("simulate_genome", "-o", genome, *size).wall,
        "index_seconds": run_script(
            "index_reference", genome, "-o", index, "--backend", "cuda"
        ).wall,
        "reads_seconds": make_reads(folder, "", pairs),
    }


def make_reads(folder: Path, name: str, pairs: int) -> float:
    """Write reads as gzip, and as text in a file whose name begins with "plain"."""
    texts = reads_of(folder, f"plain{name}")
    ends = "-1", texts[0], "-2", texts[1], "--pairs", pairs
    start = time.perf_counter()
    run_script("simulate_reads", "--reference", folder / "genome.fa", *ends)
    files = zip(texts, reads_of(folder, name), strict=True)
    run_together([partial(compress, *pair) for pair in files], 2)
    return round(time.perf_counter() - start, 3)


def compress(path: Path, packed: Path) -> None:
    """Write a gzip file of one stream with several threads, like pigz."""
    threads = available_threads() // 2
    with open(path, "rb") as text, gzip_ng_threaded.open(packed, "wb", 6, threads=threads) as out:
        shutil.copyfileobj(text, out, 1 << 22)


def reads_of(folder: Path, name: str) -> tuple[Path, Path]:
    ending = "fq" if name.startswith("plain") else "fq.gz"
    return folder / f"{name}1.{ending}", folder / f"{name}2.{ending}"


def repack(folder: Path) -> None:
    """Write the reads as BGZF."""
    from bwarp.bam.bgzf import BLOCK_BYTES, END_OF_FILE, compressed_blocks

    def one(path: Path, packed: Path) -> None:
        with open(path, "rb") as text, open(packed, "wb") as blocks:
            while piece := text.read(128 * BLOCK_BYTES):
                blocks.write(compressed_blocks(np.frombuffer(bytearray(piece), np.uint8))[0])
            blocks.write(END_OF_FILE)

    ends = zip(reads_of(folder, "plain"), reads_of(folder, "bgzf"), strict=True)
    run_together([partial(one, *paths) for paths in ends], 2)


def copies(folder: Path, name: str, times: int) -> None:
    """Repeat the reads several times in files with "copies" in their names."""
    for path, many in zip(reads_of(folder, name), reads_of(folder, f"{name}copies"), strict=True):
        with open(many, "wb") as out:
            for _ in range(times):
                with open(path, "rb") as file:
                    shutil.copyfileobj(file, out, 1 << 24)


def add_duplicates(folder: Path, name: str, count: int) -> None:
    """Write the reads, and the first pairs again under other names, as gzip."""

    def one(plain: Path, text: Path, packed: Path) -> None:
        shutil.copyfile(plain, text)
        with open(plain, "rb") as source, open(text, "ab") as out:
            for number, line in enumerate(islice(source, 4 * count)):
                out.write(line if number % 4 else b"@copy." + line[1:])
        compress(text, packed)

    files = (reads_of(folder, form) for form in ("plain", f"plain{name}", name))
    run_together([partial(one, *paths) for paths in zip(*files, strict=True)], 2)


def map_reads(folder: Path, name: str, backend: str, threads: int, *more) -> Used:
    first, second = reads_of(folder, name)
    output = folder / f"{name}{backend}.bam"
    # Removing a file of gigabytes takes time that would count for the mapper.
    output.unlink(missing_ok=True)
    return run_script(
        "map_reads", "--index", folder / "index", "-1", first, "-2", second,
        "-o", output, "--sort", "--backend", backend,
        "--threads", threads, "--stats", folder / f"{name}{backend}.json", *more,
    )  # fmt: skip


def timed_run(folder: Path, name: str, options, *more) -> dict:
    """Return the time of a run as a user starts it."""
    used = map_reads(folder, name, "cuda", options.threads, *more)
    statistics = json.loads((folder / f"{name}cuda.json").read_text())
    pairs = statistics["reads"] // 2
    marked = {"duplicates": statistics["duplicates"]} if more else {}
    return marked | {
        "what": " ".join([FORMS[name], "FASTQ to sorted BAM", *more]),
        "pairs": pairs,
        "seconds": used.wall,
        "reads_a_second": round(2 * pairs / used.wall),
        "host_gb": round(used.peak / 1e9, 1),
    }


def hash_of(path: Path, opened) -> str:
    """Return the hash of a file's content; for BAM, of the uncompressed content."""
    with opened(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def compare(folder: Path, name: str, threads: int, *more) -> dict:
    """Map with both engines; their output must be equal."""
    seconds = {
        f"{backend}_seconds": map_reads(folder, name, backend, threads, *more).wall
        for backend in ("cpu", "cuda")
    }
    for ending, opened in (("bam", gzip.open), ("json", open)):
        files = [folder / f"{name}{backend}.{ending}" for backend in ("cpu", "cuda")]
        if hash_of(files[0], opened) != hash_of(files[1], opened):
            sys.exit(f"{files[0]} and {files[1]} differ")
    statistics = json.loads((folder / f"{name}cuda.json").read_text())
    return seconds | {"reads": statistics["reads"], "mapped": statistics["mapped"]}


def timeline(folder: Path, threads: int, gpus: int = 1, name: str = "") -> dict:
    """Return the times at which chunks of a run are done, and the speed of its second half."""
    from bwarp.bam.compression_engine import compression_for
    from bwarp.index.store import load_index
    from bwarp.mapping.engine import load, reads_a_chunk
    from bwarp.mapping.parameters import MappingParameters
    from bwarp.reads.read_chunks import read_chunks
    from bwarp.records.alignment_file import write_mapped
    from bwarp.records.output_options import AlignmentOutput, default_sort_bytes
    from bwarp.runtime.backend import choose_backend
    from bwarp.runtime.chunks import read_ahead

    backend = choose_backend("cuda")
    first, second = map(str, reads_of(folder, name))
    output = folder / "timeline.bam"
    output.unlink(missing_ok=True)
    compression = compression_for("auto", "cuda")
    start, marks = time.perf_counter(), []

    def now() -> float:
        return round(time.perf_counter() - start, 2)

    size = reads_a_chunk(backend, threads)
    chunks = read_ahead(read_chunks(first, second, False, size, threads))
    index = load_index(folder / "index")
    engine = load(index, MappingParameters(), backend, threads, gpus)
    loaded = now()
    form = AlignmentOutput(
        str(output),
        default_sort_bytes(threads),
        sort=True,
        compression=compression,
        gpu_sort_bytes=engine.sort_bytes,
    )
    write_mapped(engine, chunks, form, index.reference, lambda n, _: marks.append((now(), n)))
    (last, n_reads), end = marks[-1], now()
    half, n_half = next(mark for mark in marks if 2 * mark[1] >= n_reads)
    # Small data is a single chunk without a second half.
    rate = round((n_reads - n_half) / (last - half)) if last > half else None
    return {
        "index_and_genome_there": loaded,
        "first_chunk": marks[0][0],
        "last_chunk": last,
        "sorted_and_written": end,
        "reads_a_second_in_the_second_half": rate,
    }


def profile(folder: Path, n_chunks: int, threads: int) -> list[dict]:
    """Return the seconds of each step of the first chunks, one after the other, and each kernel."""
    from frame.gpu_timing import KernelClock, StepClock, microseconds_each

    from bwarp.gpu.transfers import PinnedBuffer
    from bwarp.index.store import load_index
    from bwarp.io.names import Names
    from bwarp.mapping import pipeline, pipeline_cuda, plain_reads_cuda, seeding_rounds_cuda
    from bwarp.mapping.extension_cpu import both_strands, genome_of
    from bwarp.mapping.parameters import MappingParameters, of_ends
    from bwarp.mapping.pipeline import chunk_records
    from bwarp.mapping.scored_hits_cuda import hits_on_host
    from bwarp.reads.read_chunks import joined_chunks, paired_chunks
    from bwarp.records.alignment_records import ReadArrays, mapped_tables
    from bwarp.records.bam_records_cpu import bam_records
    from bwarp.records.bam_records_cuda import record_constants, record_numbers
    from bwarp.records.output_options import RecordForm
    from bwarp.runtime.backend import choose_backend

    choose_backend("cuda")
    step = StepClock()
    index = step("load the index", load_index, folder / "index")
    reference = index.reference
    genome = step("make bits of the genome", genome_of, reference, threads)
    device = step("bring both to the GPU", seeding_rounds_cuda.prepare, index, threads)
    pinned, pinned_hits = PinnedBuffer(), PinnedBuffer()
    parameters, names = MappingParameters(), Names.of(reference.names)
    constants = record_constants(device.genome, names, b"")
    form = RecordForm(names, b"", mate_scores=False, stay_there=True)
    preparing = {name: round(value, 3) for name, value in step.seconds.items()}

    def on_host(scored: pipeline.ScoredChunk) -> pipeline.EncodedChunk:
        """Finish the reads that the GPU leaves to the host."""
        done = pipeline.finish_chunk(
            index,
            genome,
            replace(scored, both=both_strands(scored.chunk.codes, scored.chunk.offsets)),
            insert,
            parameters,
        )
        table, reads = chunk_records(genome, done), ReadArrays.of(done.chunk, done.both)
        records = bam_records(mapped_tables(genome, names, reads, table))
        return pipeline.EncodedChunk(records, {}, table.reads)

    lines = []
    for what, context in (("steps", contextlib.nullcontext()), ("kernels", KernelClock())):
        n_reads, n_hits, n_marked, insert = 0, 0, 0, None
        chunks = paired_chunks(*reads_of(folder, ""), pipeline_cuda.READS_A_CHUNK)
        with context as kernels:
            for number in range(n_chunks + 1):
                if number == 1:
                    # The first chunk loads compiled code.
                    n_reads, n_hits, n_marked = 0, 0, 0
                    for clock in filter(None, (step, kernels)):
                        clock.clear()
                chunk = step("inflate and parse", next, chunks)
                memory = pinned.arrays(chunk.codes.size, [np.uint8] * 2)
                chunk = step("to pinned memory", joined_chunks, [chunk], *memory)
                scored = step(
                    "find and score hits", seeding_rounds_cuda.score_reads, device, chunk.codes,
                    chunk.offsets, of_ends(parameters, 2),
                )  # fmt: skip
                if insert is None:
                    first = pipeline.ScoredChunk(
                        chunk, None, hits_on_host(scored.hits, pinned_hits),
                        scored.unlocated.copy_to_host(),
                        scored.searched,
                    )  # fmt: skip
                    insert = pipeline.estimate_insert_size([first], genome, parameters)
                hits = step(
                    "look for mates", seeding_rounds_cuda.add_mates, device, scored, insert,
                    parameters,
                )  # fmt: skip
                scored = replace(scored, hits=hits)
                texts = step("names and qualities there", plain_reads_cuda.texts_of, chunk)
                plain = step(
                    "select and align", plain_reads_cuda.finish_reads, device, scored, texts,
                    insert, chunk, parameters, form,
                )  # fmt: skip
                found = step(
                    "hits of marked reads to the host", plain_reads_cuda.hits_of_marked, plain,
                    pinned_hits,
                )  # fmt: skip
                marked = plain_reads_cuda.marked_reads(chunk, *found, plain.marks)
                encoded = step("marked reads, one thread", on_host, marked)
                reads = np.flatnonzero(plain.marks)
                by_host = plain_reads_cuda.records_of_host([encoded], [marked], reads)
                numbers = record_numbers(by_host, plain.skipped)
                step(
                    "write records", plain_reads_cuda.write_records, device, constants, plain,
                    by_host, numbers, 2, form,
                )  # fmt: skip
                n_reads += chunk.n_reads
                n_hits += hits.count
                n_marked += reads.size
        times = step.seconds if kernels is None else kernels.seconds
        line = {"what": what, "reads": n_reads, "places_a_read": round(n_hits / n_reads, 2)}
        if kernels is None:
            line["preparing_seconds"] = preparing
            line["marked_percent"] = round(100 * n_marked / n_reads, 2)
        else:
            line["million_reads_a_second"] = round(n_reads / sum(times.values()) / 1e6, 2)
        line["microseconds_a_read"] = microseconds_each(times, n_reads)
        lines.append(line)
    return lines


def main(options):
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        # A new cache of compiled code; Numba reads this variable when it is imported.
        os.environ["NUMBA_CACHE_DIR"] = str(Path(name, "kept"))
        skip_without_gpu()
        small, large = Path(name, "small"), Path(name, "large")
        results = Results(options.output, gpu=gpu_name(), threads=options.threads)
        simulate(small, 4_600_000, 3, 30_000)
        first, again = (map_reads(small, "", "cuda", options.threads).wall for _ in range(2))
        results.add(what="small, first use of map", seconds=first, seconds_again=again)
        add_duplicates(small, "duplicates", 10_000)
        for name, more in (("", ()), ("duplicates", (MARKED,))):
            both = compare(small, name, options.threads, *more)
            results.add(what=" ".join(["small, both engines", *more]), **both)
        sizes = {"bases": options.bases, "pairs": options.pairs}
        results.add(**sizes, **simulate(large, options.bases, options.contigs, options.pairs))
        if "compare" in options.parts:
            make_reads(large, "part", options.compared_pairs)
            both = compare(large, "part", options.threads)
            results.add(what="large, both engines", **sizes, **both)
        runs = []
        if "runs" in options.parts:
            repack(large)
            copies(large, "", options.copies)
            runs += [(name, ()) for name in ("", "", "bgzf", "plain", "copies")]
        if "duplicates" in options.parts:
            add_duplicates(large, "duplicates", int(options.duplicates * options.pairs))
            runs += 3 * [("duplicates", ()), ("duplicates", (MARKED,))]
        # Writing simulated data keeps the disk and processors busy for a while.
        os.sync()
        for name, more in runs:
            results.add(bases=options.bases, **timed_run(large, name, options, *more))
        if options.timeline:
            name, more = runs[-1] if runs else ("", ())
            more = *more, "--timeline", options.timeline
            map_reads(large, name, "cuda", options.threads, *more)
        if "steps" in options.parts:
            results.add(what="seconds within a run", **timeline(large, options.threads), **sizes)
            for line in profile(large, options.chunks, options.threads):
                results.add(**line, **sizes)


if __name__ == "__main__":
    main(parse_options())
