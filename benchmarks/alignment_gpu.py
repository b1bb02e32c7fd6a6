"""Alignment on a GPU: checks every kernel against the CPU engine, then times it.

    python benchmarks/alignment_gpu.py -o benchmarks/results/alignment_gpu.jsonl
    python benchmarks/alignment_gpu.py --only "check gatk,time figure 8,time table III"

Checks come first; a kernel that fails is reported, and the others still run. Times are those of the
kernels (CUDA events around each launch) and of whole calls with transfers: medians of several runs
over fresh random data that fills the GPU.
"""

import functools
import json
import statistics
import time
import traceback
from pathlib import Path

import numba
import numpy as np
from frame.environment import gpu_name, origin
from frame.gpu_timing import KernelClock
from frame.options import new_parser, read_options, skip_without_gpu
from frame.simulated import make_proteins
from parts.alignment_checks import (
    MODES,
    check_cases,
    check_gatk_case,
    check_pairs_case,
    check_search,
    expected_answers,
    gatk_cases,
)
from parts.alignment_pairs import BASES, mixed_pairs, random_pairs, rows_of

from bwarp.alignment.gatk_cpu import GATK_PARAMETERS
from bwarp.alignment.pairs import PairBatch, Sequences
from bwarp.alignment.scoring import FITTING, matrix_scoring, nucleotide_scoring
from bwarp.database_search.database import Database, sorted_database
from bwarp.gpu.cuda import cuda
from bwarp.io.names import Names
from bwarp.runtime.backend import choose_backend
from bwarp.runtime.threads import available_threads

#: The largest batch of Ren's Figure 8.
MOST_OF_REN = 125
#: Threads that send batches to the GPU.
THREADS = available_threads()


def timed(function, repeats=3):
    """Return median times of the kernels and of the whole call, and the kernels of the last run.

    Whole calls are timed without events and one after another, because for a small batch events
    take as long as the work, and slow down the next call too.
    """
    function()
    cuda.synchronize()
    kernels, walls = [], []
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        cuda.synchronize()
        walls.append(time.perf_counter() - begin)
    for _ in range(repeats):
        with KernelClock() as clock:
            function()
        kernels.append(clock.total)
    by_name = {name: round(seconds * 1e3, 4) for name, seconds in clock.seconds.items()}
    return statistics.median(kernels), statistics.median(walls), by_name


class Report:
    """Runs parts one by one, saves their results, and continues after a failure."""

    def __init__(self, path):
        self.rows, self.failures, self.path = [], [], Path(path)

    def save(self):
        about = origin() | {"gpu": gpu_name(), "numba": numba.__version__}
        failures = ({"part": name, "failed": said} for name, said in self.failures)
        lines = (about | line for line in (*self.rows, *failures))
        self.path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def run(self, name, function, *arguments):
        begin = time.perf_counter()
        try:
            rows = list(function(*arguments) or [])
        except Exception:  # noqa: BLE001
            self.failures.append((name, traceback.format_exc()))
            print(f"BROKE {name}", flush=True)
            traceback.print_exc()
            return
        for row in rows:
            self.rows.append({"part": name, **row})
            print(name, json.dumps(row), flush=True)
        print(f"  [{name}: {time.perf_counter() - begin:.1f} s]", flush=True)
        self.save()


# --- Times --------------------------------------------------------------------------------------


def time_pairs(columns, mode_name, count, gapped):
    """Time scores, ends and alignments of 150-base reads, on the GPU alone and with transfers."""
    from bwarp.alignment import pair_ends_cuda as pairs_cuda
    from bwarp.alignment.device_batch_cuda import device_batch, pair_costs
    from bwarp.alignment.traceback_cuda import trace_alignments
    from bwarp.gpu.memory_pool import work_space

    pairs = random_pairs(count, 150, columns, 8, gapped)
    mode, scoring = MODES[mode_name], nucleotide_scoring(1, -4, 6, 1)
    batch = device_batch(pairs)
    costs = pair_costs(scoring, mode)
    cells = count * 150 * columns

    def aligned():
        with work_space():
            trace_alignments(batch, costs, pairs_cuda.find_ends(batch, scoring, mode), THREADS)

    parts = {
        "score": lambda: pairs_cuda.find_ends(batch, scoring, mode, with_ends=False),
        "ends": lambda: pairs_cuda.find_ends(batch, scoring, mode),
        "cigar": aligned,
        "cigar, host to host": lambda: pairs_cuda.pair_alignments(pairs, scoring, mode, THREADS),
    }
    for what, function in parts.items():
        kernels, wall, names = timed(function)
        yield {
            "what": what,
            "mode": mode_name,
            "cells": f"150x{columns}",
            "gapped": gapped,
            "tcups_kernels": round(cells / kernels / 1e12, 3),
            "tcups_wall": round(cells / wall / 1e12, 3),
            "ms": names,
        }


def time_small(engine_name, call, query_length, columns):
    for count in (1, 10, 100, 300, 1000, 10_000):
        pairs = random_pairs(count, query_length, columns, 9)
        kernels, wall, names = timed(lambda pairs=pairs: call(pairs), 9)
        yield {
            "what": engine_name,
            "pairs": count,
            "cells": f"{query_length}x{columns}",
            "us_kernels": round(kernels * 1e6, 1),
            "us_wall": round(wall * 1e6, 1),
            "gcups_wall": round(count * query_length * columns / wall / 1e9, 2),
            "ms": names,
        }


def time_gatk(engine, name, query_range, reference_range, count, parameters):
    """Time Ren's situations 2 (reads) and 3 (haplotypes) with transfers."""
    base = mixed_pairs(2000, query_range, reference_range, 12, BASES)
    copies = -(-count // 2000)
    pairs = PairBatch(*(_repeated(side, copies) for side in (base.queries, base.references)))
    lengths = pairs.queries.lengths.astype(np.int64) * pairs.references.lengths
    parameters = GATK_PARAMETERS[parameters]
    function = lambda: engine.gatk_alignments(pairs, parameters, "softclip", THREADS)  # noqa: E731
    kernels, wall, names = timed(function, 9)
    return [
        {
            "what": name,
            "pairs": pairs.count,
            "gcups_kernels": round(float(lengths.sum()) / kernels / 1e9, 1),
            "gcups_wall": round(float(lengths.sum()) / wall / 1e9, 1),
            "ms": names,
        }
    ]


def time_figure_8(engine, name):
    """Time Ren's Figure 8: equal lengths from 64 to 576, batches of his sizes, with transfers."""
    for length in range(64, 577, 64):
        for count in (25, 50, 75, 100, MOST_OF_REN, 1000):
            rng = np.random.default_rng(length)
            references = rng.integers(0, 4, (count, length))
            queries = references.copy()
            changed = rng.random(queries.shape) < 0.02
            queries[changed] = rng.integers(0, 4, int(changed.sum()))
            pairs = PairBatch(*(rows_of(BASES[side]) for side in (queries, references)))
            best = GATK_PARAMETERS["alignment-to-best-haplotype"]
            kernels, wall, names = timed(
                lambda pairs=pairs, best=best: engine.gatk_alignments(pairs, best, "softclip"),
                9 if count > MOST_OF_REN else 41,
            )
            row = {"what": f"{name} {length}", "pairs": count, "us_wall": round(wall * 1e6, 1)}
            row["gcups_wall"] = round(count * length**2 / wall / 1e9, 2)
            if names:
                row["gcups_kernels"] = round(count * length**2 / kernels / 1e9, 2)
                row["ms"] = names
            yield row


def _repeated(side, copies):
    size = side.codes.size
    return Sequences(
        np.tile(side.codes, copies),
        np.concatenate([side.starts + size * i for i in range(copies)]),
        np.tile(side.lengths, copies),
    )


def time_search(engine, name, queries, database, scoring, repeats=1):
    residues = int(database.offsets[-1])
    for query in queries[::3]:
        # One query alone, and with another of the same length.
        for together in ([query], [query, query[::-1].copy()]):
            kernels, wall, names = timed(
                lambda group=together: list(engine.search_scores(group, database, scoring)), repeats
            )
            yield {
                "what": name,
                "queries": len(together),
                "query": int(query.size),
                "residues": residues,
                "tcups_kernels": round(len(together) * query.size * residues / kernels / 1e12, 3),
                "ms": names,
            }
    # Time the second call: the first compiles kernels for new lengths.
    for _ in range(2):
        begin = time.perf_counter()
        for _ in engine.search_scores(queries, database, scoring):
            pass
        wall = time.perf_counter() - begin
    cells = sum(q.size for q in queries) * residues
    yield {
        "what": f"{name}, all queries",
        "residues": residues,
        "tcups_wall": round(cells / wall / 1e12, 3),
        "seconds": round(wall, 3),
    }


def time_large_search(engine, proteins_file):
    """Time queries against a database of proteins that fills the GPU."""
    if proteins_file:
        proteins = np.load(proteins_file)
        queries = np.split(proteins["queries"], np.cumsum(proteins["query_lengths"])[:-1])
        database = repeated_database(proteins["codes"], proteins["lengths"], 200_000_000)
    else:
        rng = np.random.default_rng(20)
        queries = [rng.integers(0, 20, n).astype(np.uint8) for n in (144, 375, 1000, 5478)]
        sequences = make_proteins(50_000_000, 21)
        database = sorted_database(sequences, [""] * len(sequences))
    yield from time_search(engine, "profile", queries, database, matrix_scoring("BLOSUM62", 11, 1))


def repeated_database(codes, lengths, residues):
    """Return a database with each sequence several times, still sorted by length."""
    copies = max(1, -(-residues // int(lengths.sum())))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    pieces = [np.tile(codes[offsets[i] : offsets[i + 1]], copies) for i in range(lengths.size)]
    all_offsets = np.concatenate([[0], np.cumsum(np.repeat(lengths, copies))])
    count = all_offsets.size - 1
    return Database(np.concatenate(pieces), all_offsets, np.arange(count), Names.of([""] * count))


def main():
    parser = new_parser(__doc__)
    parser.add_argument("--expected", help="answers of the CPU engine (.npz), made when absent")
    parser.add_argument("--proteins", help=".npz with codes, lengths, queries, query_lengths")
    parser.add_argument("--only", default="", help="parts whose names contain one of these, by ,")
    arguments = read_options(parser, "alignment_gpu.jsonl", only="check search")
    skip_without_gpu()
    choose_backend("cuda")
    wanted = arguments.only.split(",")
    numba.config.CUDA_LOW_OCCUPANCY_WARNINGS = 0

    from bwarp.alignment import gatk_cpu, gatk_cuda, gatk_run_lengths_cuda
    from bwarp.alignment import pair_ends_cuda as pairs_cuda
    from bwarp.database_search import prefix_scan_cuda, search_cuda

    report = Report(arguments.output)

    def part(name, function, *values):
        if any(word in name for word in wanted):
            report.run(name, function, *values)

    expected = functools.cache(lambda: expected_answers(arguments.expected))
    for case in check_cases():
        part("check pairs", lambda *case: check_pairs_case(expected(), *case), *case)
    for case in gatk_cases():
        for name, engine in (("gatk", gatk_cuda), ("run lengths", gatk_run_lengths_cuda)):
            check = lambda engine, *case: check_gatk_case(expected(), engine, *case)  # noqa: E731
            part(f"check {name}", check, engine, *case)
    for name, engine in (("profile", search_cuda), ("prefix scan", prefix_scan_cuda)):
        check = lambda engine, name: check_search(expected(), engine, name)  # noqa: E731
        part("check search", check, engine, name)

    million = 1 << 20
    for columns in (200, 300, 500):
        part("time pairs", time_pairs, columns, "local", million, 0.3)
    part("time pairs", time_pairs, 300, "fitting", million, 0.3)
    part("time search", time_large_search, search_cuda, arguments.proteins)
    scoring = nucleotide_scoring(1, -4, 6, 1)
    part(
        "time small",
        time_small,
        "cigar",
        lambda pairs: pairs_cuda.pair_alignments(pairs, scoring, FITTING),
        150,
        300,
    )
    best, new = "alignment-to-best-haplotype", "new-sw-parameters"
    for engine, name in ((gatk_cuda, "band"), (gatk_run_lengths_cuda, "run lengths")):
        part("time gatk", time_gatk, engine, f"S2 {name}", (40, 120), (40, 350), 200_000, best)
        part("time gatk", time_gatk, engine, f"S3 {name}", (300, 520), (300, 520), 20_000, new)
        part("time figure 8", time_figure_8, engine, name)
    part("time figure 8", time_figure_8, gatk_cpu, "one core")

    for length in (128, 256, 512, 1024, 2048, 4096, 8192):
        rng = np.random.default_rng(length)
        hundred = [rng.integers(0, 20, length).astype(np.uint8) for _ in range(100)]
        table = sorted_database(hundred, [""] * 100)
        linear = matrix_scoring("BLOSUM62", 0, 4)
        query = [rng.integers(0, 20, 128).astype(np.uint8)]
        for engine, name in ((prefix_scan_cuda, "prefix scan"), (search_cuda, "profile")):
            part("time table III", time_search, engine, f"{name} {length}", query, table, linear, 5)

    report.save()
    print("\n--- summary")
    for row in report.rows:
        if "check" in row:
            if not (row["equal"] and row.get("scores_equal", True)):
                print("DIFFERS", row)
        else:
            print({k: v for k, v in row.items() if k != "part"})
    checks = [row for row in report.rows if "check" in row]
    good = sum(row["equal"] and row.get("scores_equal", True) for row in checks)
    print(f"{good} of {len(checks)} checks equal; {len(report.failures)} parts broke")
    for name, text in report.failures:
        print(name, text.strip().splitlines()[-1])


if __name__ == "__main__":
    main()
