#!/usr/bin/env python3
"""Time indexing a simulated genome of human size, and mapping pairs of 2 x 150 to it on the CPU.

    python benchmarks/index_whole_genome.py --backend cpu --memory 16G

Writes one JSON line for each. The first contains the genome, the seconds and peak memory of
scripts/index_reference.py, the size of the folder, and the seconds of --verify; the others, the
seconds and peak memory of scripts/map_reads.py for a few pairs to SAM, all pairs to SAM, and all
pairs to sorted BAM. Each is first run on little data, so that everything is compiled.
"""

import tempfile
from itertools import islice
from pathlib import Path

from frame.options import add_folder, new_parser, read_options, skip_without_gpu
from frame.results import Results
from frame.simulated import run_script

from bwarp.runtime.backend import choose_backend

#: So few pairs that the run consists almost only of starting.
FEW = 1000


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("--bases", type=int, default=3_100_000_000)
    parser.add_argument("--contigs", type=int, default=24)
    parser.add_argument("--backend", default="auto", help="of indexing (default: %(default)s)")
    parser.add_argument("--memory", help="for indexing on the CPU, such as 16G")
    parser.add_argument("--verify", action="store_true", help="prove the last index")
    parser.add_argument("--pairs", type=int, default=1_000_000, help="to map; 0 for none")
    parser.add_argument("--map-threads", type=int, default=2)
    add_folder(parser)
    return read_options(parser, "index_whole_genome.jsonl", bases=2_000_000, pairs=4000)


def measure(options, folder: Path, bases: int, contigs: int, pairs: int):
    folder.mkdir()
    genome, index = folder / "genome.fa", folder / "index"
    one, two = folder / "1.fq", folder / "2.fq"
    run_script("simulate_genome", "-o", genome, "--length", bases, "--contigs", contigs)
    limit = ("--memory", options.memory) if options.memory else ()
    backend = choose_backend(options.backend)
    used = run_script("index_reference", genome, "-o", index, "--backend", backend, *limit)
    files = {file.name: file.stat().st_size for file in index.iterdir()}
    result = {
        "what": "index_reference.py, FASTA to folder",
        "backend": backend,
        "memory": options.memory,
        "seconds": used.wall,
        "processor_seconds": used.processor,
        "peak_gb": gigabytes(used.peak),
        "folder_gb": gigabytes(sum(files.values())),
        "files_gb": {name: gigabytes(size) for name, size in sorted(files.items())},
    }
    if options.verify:
        result["verify_seconds"] = run_script("index_reference", "--verify", "-o", index).wall
    yield result
    if not pairs:
        return
    run_script("simulate_reads", "--reference", genome, "-1", one, "-2", two, "--pairs", pairs)
    genome.unlink()
    few = [head(path, FEW) for path in (one, two)]
    for n, ends, form in (
        (FEW, few, "SAM"),
        (pairs, (one, two), "SAM"),
        (pairs, (one, two), "BAM"),
    ):
        output = ("-",) if form == "SAM" else (folder / "out.bam", "--sort")
        used = run_script(
            "map_reads", "--index", index, "-1", ends[0], "-2", ends[1], "-o", *output,
            "--backend", "cpu", "--threads", options.map_threads,
        )  # fmt: skip
        yield {
            "what": f"map_reads.py, FASTQ to {'sorted BAM' if form == 'BAM' else form}",
            "pairs": n,
            "threads": options.map_threads,
            "seconds": used.wall,
            "processor_seconds": used.processor,
            "peak_gb": gigabytes(used.peak),
        }


def head(fastq: Path, records: int) -> Path:
    """Write a file of the first records of another."""
    path = fastq.with_suffix(".few.fq")
    with open(fastq) as lines:
        path.write_text("".join(islice(lines, 4 * records)))
    return path


def gigabytes(size: int) -> float:
    return round(size / 1e9, 3)


def main(options):
    if options.backend == "cuda":
        skip_without_gpu()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        little, whole = Path(name, "little"), Path(name, "whole")
        for _ in measure(options, little, 1_000_000, 1, min(options.pairs, 4000)):
            pass
        results = Results(options.output, bases=options.bases, contigs=options.contigs)
        for line in measure(options, whole, options.bases, options.contigs, options.pairs):
            results.add(**line)


if __name__ == "__main__":
    main(parse_options())
