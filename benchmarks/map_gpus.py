#!/usr/bin/env python3
"""Time mapping on GPUs with little memory, on several at once, and on the CPUs of their host.

    python benchmarks/map_gpus.py --free 24 12 --cpu
    python benchmarks/map_gpus.py --free --gpus 2

Gzipped FASTQ of a simulated genome is mapped to sorted BAM on one GPU with all its memory; then,
for each size, while another process leaves only that many GB free; and on several GPUs. All files
must contain the same uncompressed bytes. Each run writes a line: when the index was loaded and when
chunks were done; the reads per second of the second half, which is limited by inflating two gzip
streams; the same for --copies times as many uncompressed reads; and the seconds of the whole
program. With --cpu, all CPU cores map the same files, and strobealign maps them to SAM with an
existing index if it is on PATH: its seconds are those of the whole program, and of mapping alone as
it reports them.
"""

import gzip
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from frame.environment import gpu_name
from frame.options import add_folder, add_threads, new_parser, read_options, skip_without_gpu
from frame.peers import found, version_of
from frame.results import Results
from frame.simulated import run_script
from frame.timing import Used, run_program
from map_gpu import copies, hash_of, map_reads, reads_of, simulate, timeline
from small_gpus import gpu_with


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("--bases", type=int, default=3_100_000_000)
    parser.add_argument("--contigs", type=int, default=24)
    parser.add_argument("--pairs", type=int, default=4_000_000)
    parser.add_argument("--copies", type=int, default=3, help="of the reads, for a longer run")
    parser.add_argument("--free", type=float, nargs="*", default=[24, 12], metavar="GB")
    parser.add_argument("--gpus", type=int, nargs="*", default=[], metavar="N")
    parser.add_argument("--cpu", action="store_true", help="the CPUs of the host, and strobealign")
    parser.add_argument(
        "--within", type=int, metavar="N",
        help="map what is in --folder on N GPUs, in this process, and print when chunks are done",
    )  # fmt: skip
    parser.add_argument("--reads", default="", help="which of them, by how their files are named")
    add_threads(parser)
    add_folder(parser)
    return read_options(parser, "map_gpus.jsonl", bases=2_000_000, pairs=20_000)


def within(folder: Path, gpus: int, threads: int, reads: str = "") -> dict:
    """Run `map_gpu.timeline` in a separate process, with the GPU memory that is free then."""
    command = [
        sys.executable, __file__, "--within", str(gpus), "--folder", folder, "--threads",
        str(threads), "--reads", reads,
    ]  # fmt: skip
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def measure(folder: Path, gpus: int, threads: int) -> dict:
    """Time the program as a user runs it, check its output, and record the course of a run."""
    first, second = reads_of(folder, "")
    output = folder / "out.bam"
    output.unlink(missing_ok=True)
    used = run_script(
        "map_reads", "--index", folder / "index", "-1", first, "-2", second, "-o", output,
        "--sort", "--backend", "cuda", "--threads", threads, "--gpus", gpus,
    )  # fmt: skip
    longer = within(folder, gpus, threads, "plaincopies")
    return {
        **of_program(used),
        "sha256": hash_of(output, gzip.open),
        **within(folder, gpus, threads),
        "reads_a_second_not_compressed": longer["reads_a_second_in_the_second_half"],
    }


def measure_on_cpu(folder: Path, threads: int) -> dict:
    """Map the same files on the CPUs of the host."""
    used = map_reads(folder, "", "cpu", threads)
    return of_program(used) | {"sha256": hash_of(folder / "cpu.bam", gzip.open)}


def measure_strobealign(folder: Path, threads: int) -> dict:
    genome, reads = folder / "genome.fa", reads_of(folder, "")
    run_program(["strobealign", "--create-index", "-t", threads, "-r", 150, genome])
    said = folder / "strobealign.log"
    command = ["strobealign", "--use-index", "-t", threads, genome, *reads]
    with open(said, "wb") as log:
        start = time.perf_counter()
        subprocess.run([*map(str, command)], check=True, stdout=subprocess.DEVNULL, stderr=log)
    seconds = time.perf_counter() - start
    mapping = re.search(r"Total time mapping: ([\d.]+)", said.read_text())
    return {
        "seconds": round(seconds, 3),
        "mapping_seconds": float(mapping[1]) if mapping else None,
        "version": version_of("strobealign"),
    }


def of_program(used: Used) -> dict:
    return {"seconds": used.wall, "host_gb": round(used.peak / 1e9, 2)}


def main(options):
    skip_without_gpu()
    if options.within:
        print(
            json.dumps(timeline(options.folder, options.threads, options.within, options.reads)),
            flush=True,
        )
        # At exit, Python unloads the second GPU's modules as if they were the first's, and crashes.
        os._exit(0)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        sizes = {"bases": options.bases, "pairs": options.pairs, "threads": options.threads}
        results = Results(options.output, gpu=gpu_name(), **sizes)
        results.add(**simulate(folder, options.bases, options.contigs, options.pairs))
        copies(folder, "plain", options.copies)
        os.sync()
        expected = None
        for free, gpus in [(None, 1), *((free, 1) for free in options.free), *(
            (None, gpus) for gpus in options.gpus
        )]:  # fmt: skip
            with gpu_with(free):
                line = measure(folder, gpus, options.threads)
            expected = expected or line["sha256"]
            same = line.pop("sha256") == expected
            results.add(gb_free=free, gpus=gpus, same_bytes=same, **line)
        if options.cpu:
            line = measure_on_cpu(folder, options.threads)
            results.add(gpus=0, same_bytes=line.pop("sha256") == expected, **line)
            if found("strobealign"):
                line = measure_strobealign(folder, options.threads)
                results.add(what="strobealign, FASTQ.gz to SAM", **line)


if __name__ == "__main__":
    main(parse_options())
