#!/usr/bin/env python3
"""Time maximal exact matching on one GPU: Drozd et al.'s job, reads of 100 bases.

First, digests of all kinds of matches in a small genome are compared with those of the CPU
(`--write-digests FILE` on any machine, then `--digests FILE` here). Then a million reads are
matched against 250 Mb, and ten million against 3.1 Gb if --seconds allows it. Times are from packed
queries on the host to matches on the host, with transfers. Each writes one JSON line.
"""

import hashlib
import json
import statistics
import time
from pathlib import Path

import numpy as np
from frame.environment import gpu_name
from frame.options import new_parser, read_options, skip_without_gpu
from frame.results import Results
from frame.timing import timed

from bwarp.index.build import build_index
from bwarp.index.parameters import choose_parameters
from bwarp.mems.find import KINDS, find_matches
from bwarp.mems.query_text import join_matches, make_query_text
from bwarp.reference import make_reference

READ_LENGTH = 100
MIN_LENGTH = 20
START = time.perf_counter()


def main():
    parser = new_parser(__doc__)
    parser.add_argument("--write-digests", metavar="FILE", help="matches by the CPU, and no more")
    parser.add_argument("--digests", metavar="FILE", help="what they must be")
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument("--threads", type=int, default=16)
    options = read_options(parser, "mems_h200.jsonl", seconds=0)
    if options.write_digests:
        digests = check_digests("cpu", options.threads)
        Path(options.write_digests).write_text(json.dumps(digests) + "\n")
        return
    skip_without_gpu()
    results = Results(options.output)

    def report(line: dict) -> None:
        results.add(**line, at_s=round(time.perf_counter() - START, 1))

    digests = check_digests("cuda", options.threads)
    if options.digests:
        expected = json.loads(Path(options.digests).read_text())
        report({"what": "digests equal", "equal": digests == expected})
    for n_bases, n_reads, needed in ((250_000_000, 10**6, 20), (3_100_000_000, 10**7, 65)):
        if time.perf_counter() - START + needed > options.seconds:
            report({"what": f"{n_bases:,} bases left out: no time"})
            continue
        for line in time_reads(n_bases, n_reads, options.threads):
            report(line)


def make_genome(n_bases: int, rng) -> np.ndarray:
    """Return random bases; a tenth are copies of 300 families of 300 bases, with 10 % changed."""
    codes = rng.integers(0, 4, n_bases, np.uint8)
    families = rng.integers(0, 4, (300, 300), np.uint8)
    n_copies = n_bases // 3000
    starts = np.sort(rng.integers(0, n_bases - 300, n_copies))
    copies = families[rng.integers(0, 300, n_copies)]
    changed = rng.random(copies.shape, np.float32) < 0.1
    copies[changed] = rng.integers(0, 4, int(changed.sum()), np.uint8)
    for start, copy in zip(starts.tolist(), copies, strict=True):
        codes[start : start + 300] = copy
    return codes


def make_reads(codes: np.ndarray, n_reads: int, rng) -> np.ndarray:
    """Return concatenated reads of both strands with 1 % errors."""
    starts = rng.integers(0, codes.size - READ_LENGTH, n_reads)
    reads = np.empty((n_reads, READ_LENGTH), np.uint8)
    for first in range(0, n_reads, 1 << 18):
        part = starts[first : first + (1 << 18)]
        reads[first : first + part.size] = codes[part[:, None] + np.arange(READ_LENGTH)]
    reads[1::2] = 3 - reads[1::2, ::-1]
    errors = rng.random(reads.shape, np.float32) < 0.01
    reads[errors] ^= rng.integers(1, 4, int(errors.sum()), np.uint8)
    return reads.reshape(-1)


def index_of(codes: np.ndarray, backend: str, threads: int):
    # Checksums of contigs are not part of the job, and take long for billions of bases.
    starts = np.array([0, codes.size])
    reference = make_reference(("chr",), starts, codes, ("0" * 32,), threads)
    parameters = choose_parameters(reference.text_length)
    return build_index(reference, parameters, backend, threads, with_reverse=True)


def check_digests(backend: str, threads: int) -> dict:
    rng = np.random.default_rng(1)
    codes = make_genome(5_000_000, rng)
    reads = make_reads(codes, 3000, rng)
    genome = codes[1_000_000:1_300_000].copy()
    genome[rng.integers(0, genome.size, 3000)] = 0
    queries = np.concatenate([reads, genome])
    lengths = np.append(np.full(3000, READ_LENGTH), genome.size)
    index = index_of(codes, backend, threads)
    if backend == "cuda":
        from bwarp.mems.maximal_cuda import prepare

        index = prepare(index, with_reverse=True)
    digests = {}
    for min_length in (MIN_LENGTH, 50):
        offsets = np.append(0, np.cumsum(lengths))
        text = make_query_text(queries, offsets, (0, 1), min_length, threads)
        for kind in KINDS:
            found = find_matches(index, text, min_length, kind, backend, threads)
            matches = join_matches(list(found))
            digest = hashlib.sha256()
            for array in matches:
                digest.update(np.ascontiguousarray(array, np.uint32).tobytes())
            digests[f"{kind} {min_length}"] = [matches.n, digest.hexdigest()]
    return digests


def time_reads(n_bases: int, n_reads: int, threads: int):
    from bwarp.gpu.cuda import cuda
    from bwarp.mems.maximal_cuda import prepare

    rng = np.random.default_rng(2)
    started = time.perf_counter()
    codes = make_genome(n_bases, rng)
    reads = make_reads(codes, n_reads, rng)
    made = time.perf_counter()
    index = index_of(codes, "cuda", threads)
    indexed = time.perf_counter()
    reference = prepare(index, with_reverse=True)
    cuda.synchronize()
    line = {
        "gpu": gpu_name(),
        "bases": n_bases,
        "reads": n_reads,
        "min_length": MIN_LENGTH,
    }
    yield line | {
        "what": "prepared",
        "simulate_s": round(made - started, 2),
        "index_s": round(indexed - made, 2),
        "upload_s": round(time.perf_counter() - indexed, 2),
        "plan": str(reference.plan),
    }
    texts = {}
    for strands in ((0,), (0, 1)):
        begun = time.perf_counter()
        offsets = np.arange(0, reads.size + 1, READ_LENGTH, dtype=np.int64)
        texts[strands] = make_query_text(reads, offsets, strands, MIN_LENGTH, threads)
        line[f"pack_{len(strands)}_s"] = round(time.perf_counter() - begun, 4)
    for strands, text in texts.items():
        for kind in ("mumreference", "maxmatch"):

            def search(text=text, kind=kind) -> int:
                found = find_matches(reference, text, MIN_LENGTH, kind, "cuda", threads)
                return sum(matches.n for matches in found)

            times, n_matches = timed(search, 3 if kind == "mumreference" else 1)
            words = {"mumreference": "unique", "maxmatch": "all"}[kind]
            ends = "strand" if len(strands) == 1 else "strands"
            yield line | {
                "what": f"{words} matches of {n_reads:,} reads of 100 b, {len(strands)} {ends}",
                "kind": kind,
                "strands": len(strands),
                "seconds": statistics.median(times),
                "times_s": [round(second, 4) for second in times],
                "matches": n_matches,
            }


if __name__ == "__main__":
    main()
