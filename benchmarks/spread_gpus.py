#!/usr/bin/env python3
"""Time searches of an index in chunks that is spread over several GPUs (Drozd et al.'s chunks).

    python benchmarks/spread_gpus.py --gpus 1 2 4
    python benchmarks/spread_gpus.py --bases 1000000000 --chunks 4 --gpus 1 2

A simulated genome is indexed as a whole, and in chunks. Reads of 100 bases are matched (`mems`),
and one k-mer of each is searched (`seeds`), in

- the whole index on one GPU, for comparison;
- the chunks one after the other on one GPU, each copied there when it is searched (`mems` only);
- the chunks distributed over each number of GPUs, where they stay.

Times are from packed queries on the host to results on the host; `program_s` is that of `bwarp
mems` from FASTA to MUMmer's format. Each measurement is a process of its own and writes a line,
which states whether its results are those of the whole index.
"""

import gc
import hashlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from frame.environment import gpu_name
from frame.options import add_folder, add_threads, new_parser, read_options, skip_without_gpu
from frame.results import Results
from frame.simulated import run_script
from frame.timing import timed
from mems_gpu import MIN_LENGTH, READ_LENGTH, make_genome, make_reads

from bwarp.index.build import build_index
from bwarp.index.chunk_store import open_index, write_chunks
from bwarp.index.chunks import chunks_of, stretch
from bwarp.index.description import OVERLAP
from bwarp.index.parameters import choose_parameters
from bwarp.index.store import new_index_folder, write_index
from bwarp.io.fastx import SequenceBatch
from bwarp.mems import find as mems
from bwarp.mems.query_text import make_query_text
from bwarp.reference import make_reference
from bwarp.seeding import find as seeds
from bwarp.seeding.hits import SeedOptions
from bwarp.sequence import decode

#: k and mismatches of Liu & Schmidt's data sets.
SEEDS = {"S15": (15, 0), "S20": (20, 1), "S30": (30, 2)}
MAX_HITS = 128
KINDS = ("mumreference", "maxmatch")


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("--bases", type=int, default=3_100_000_000)
    parser.add_argument("--chunks", type=int, default=4)
    parser.add_argument("--reads", type=int, default=1_000_000)
    parser.add_argument("--gpus", type=int, nargs="+", default=[1, 2, 4], metavar="N")
    parser.add_argument("--step", help="one of those below, on what is in --folder")
    add_threads(parser)
    add_folder(parser)
    return read_options(parser, "spread_gpus.jsonl", bases=3_000_000, reads=20_000)


def make(options) -> dict:
    """Write reads, the whole index and the index in chunks; return seconds."""
    rng = np.random.default_rng(2)
    codes, threads, folder = make_genome(options.bases, rng), options.threads, options.folder
    reads = make_reads(codes, options.reads, rng)
    np.save(folder / "reads.npy", reads)
    with open(folder / "reads.fa", "wb") as file:
        letters = decode(reads)
        for start in range(0, len(letters), READ_LENGTH):
            file.write(b">r\n" + letters[start : start + READ_LENGTH] + b"\n")
    # Checksums of contigs are not part of the job, and take long for billions of bases.
    reference = make_reference(("chr",), np.array([0, codes.size]), codes, ("0" * 32,), threads)
    del codes, reads, letters

    def index_of(bases):
        parameters = choose_parameters(bases.text_length)
        return build_index(bases, parameters, "cuda", threads, with_reverse=True)

    def indexes():
        for chunk in chunks_of(reference, chunk_bases, OVERLAP):
            yield chunk, index_of(stretch(reference, chunk.start, chunk.end, threads))

    chunk_bases = -(-options.bases // options.chunks)
    begun = time.perf_counter()
    with new_index_folder(folder / "whole") as part:
        write_index(index_of(reference), part, threads)
    gc.collect()
    whole = time.perf_counter()
    with new_index_folder(folder / "chunks") as part:
        write_chunks(reference, chunk_bases, indexes(), part, threads)
    return {
        "what": "made",
        "whole_s": round(whole - begun, 2),
        "chunks_s": round(time.perf_counter() - whole, 2),
    }


def measure(options, index: str, gpus: int) -> list[dict]:
    """Time all searches; ``gpus`` 0 copies one chunk at a time to a GPU."""
    folder, threads = options.folder, options.threads
    reads = np.load(folder / "reads.npy")
    offsets = np.arange(0, reads.size + 1, READ_LENGTH, dtype=np.int64)
    stored = open_index(folder / index)
    lines = []
    text = make_query_text(reads, offsets, (0,), MIN_LENGTH, threads)
    for kind in KINDS:
        # Only an index in chunks has GPUs to choose.
        chosen = (gpus,) if index == "chunks" else ()
        begun = time.perf_counter()
        ready = mems.prepare(stored, kind, "cuda", *chosen)
        line = {"task": "mems", "kind": kind, "prepare_s": round(time.perf_counter() - begun, 2)}
        digest = hashlib.sha256()

        def match(ready=ready, kind=kind) -> list:
            return list(mems.find_matches(ready, text, MIN_LENGTH, kind, "cuda", threads))

        times, blocks = timed(match, 3)
        for column in zip(*blocks, strict=True):
            digest.update(np.concatenate(column).tobytes())
        found = sum(block.n for block in blocks)
        lines.append(line | measured(times, found, digest) | {"plan": str(ready.plan)})
        del ready, blocks, match
        gc.collect()
    if not gpus:
        return lines
    batch = SequenceBatch(
        reads, offsets, None, np.empty(0, np.uint8), np.zeros((offsets.size - 1, 2), np.int64), 0
    )
    chosen = (gpus,) if index == "chunks" else ()
    begun = time.perf_counter()
    ready = seeds.prepare(stored, SeedOptions(2, MAX_HITS), "cuda", *chosen)
    prepared = round(time.perf_counter() - begun, 2)
    for name, (k, mismatches) in SEEDS.items():
        kmers = list(seeds.kmer_batches(batch, k, READ_LENGTH))
        seed_options = SeedOptions(mismatches, MAX_HITS)

        def search(ready=ready, kmers=kmers, seed_options=seed_options) -> tuple[int, list]:
            parts, over = [], 0
            for one in kmers:
                for found in seeds.find_in_passes(ready, one, seed_options, "cuda", threads):
                    over += found.over_kmers.size + int(found.over_counts.sum())
                    parts += found.hits
            return over, parts

        times, (over, parts) = timed(search, 3)
        digest = hashlib.sha256(str(over).encode())
        for column in ("kmers", "strands", "positions", "mismatches"):
            digest.update(np.concatenate([getattr(part, column) for part in parts]).tobytes())
        line = {"task": "seeds", "set": name, "prepare_s": prepared}
        lines.append(line | measured(times, sum(part.count for part in parts), digest))
    return lines


def measured(times: list[float], found: int, digest) -> dict:
    return {
        "seconds": statistics.median(times),
        "times_s": [round(second, 4) for second in times],
        "found": found,
        "sha256": digest.hexdigest(),
    }


def run_program(options, index: str, gpus: int) -> dict:
    """Time bwarp mems as a user runs it; the second run compiles nothing."""
    folder = options.folder
    spread = ["--spread"] if index == "chunks" and gpus else []
    for _ in range(2):
        used = run_script(
            "find_mems", "--index", folder / index, "--queries", folder / "reads.fa", "-o",
            folder / "found.mums", "--backend", "cuda", "--threads", options.threads,
            "--gpus", max(gpus, 1), *spread,
        )  # fmt: skip
    digest = hashlib.sha256((folder / "found.mums").read_bytes())
    return {"task": "mems", "program_s": used.wall, "sha256": digest.hexdigest()}


def in_own_process(options, step: str) -> list[dict]:
    """Run a step in a process of its own, with all GPU memory."""
    command = [
        sys.executable, __file__, "--step", step, "--folder", options.folder,
        "--bases", options.bases, "--chunks", options.chunks, "--reads", options.reads,
        "--threads", options.threads,
    ]  # fmt: skip
    done = subprocess.run([*map(str, command)], check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout.splitlines()[-1])


def main(options):
    skip_without_gpu()
    if options.step:
        if options.step == "make":
            lines = [make(options)]
        else:
            index, gpus = options.step.split()
            lines = measure(options, index, int(gpus))
        print(json.dumps(lines), flush=True)
        # At exit, Python unloads the second GPU's modules as if they were the first's, and crashes.
        os._exit(0)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        options.folder = Path(name)
        sizes = {"bases": options.bases, "chunks": options.chunks, "reads": options.reads}
        results = Results(options.output, gpu=gpu_name(), **sizes, threads=options.threads)
        results.add(**in_own_process(options, "make")[0])
        expected: dict[tuple, str] = {}
        for index, gpus in [("whole", 1), ("chunks", 0), *(("chunks", n) for n in options.gpus)]:
            lines = in_own_process(options, f"{index} {gpus}")
            for line in [*lines, run_program(options, index, gpus)]:
                key = tuple(line.get(name) for name in ("task", "kind", "set"))
                digest = line.pop("sha256")
                same = digest == expected.setdefault(key, digest)
                results.add(index=index, gpus=gpus, same_results=same, **line)


if __name__ == "__main__":
    main(parse_options())
