"""Alignment on a GPU: checks every kernel against the CPU engine, then times it.

    python benchmarks/alignment_gpu.py -o benchmarks/results/alignment_gpu.json

Checks come first, and a kernel that fails its check or breaks is reported and costs the others
nothing. Times are of the kernels (CUDA events around every launch) and of whole calls, transfers
included; medians of several runs over fresh random data that fills the card.
"""

import argparse
import json
import statistics
import time
import traceback
from collections import defaultdict
from pathlib import Path

import numba
import numpy as np
from made_up import make_proteins
from numba import cuda
from options import read_options, skip_without_gpu

from bwarp.alignment.gatk.gatk_rules import GATK_PARAMETERS, OVERHANGS
from bwarp.alignment.pairs import PairBatch, Sequences, sequences_of
from bwarp.alignment.scoring import (
    FITTING,
    GLOBAL,
    LOCAL,
    SEMIGLOBAL,
    matrix_scoring,
    nucleotide_scoring,
)
from bwarp.alignment.search.database import Database, sorted_database
from bwarp.runtime.threads import available_threads

ABOUT = (
    "Alignment on one GPU: TCUPS and GCUPS of kernels and of whole calls (wall), those marked host "
    "to host and gatk with all transfers, after checks of every kernel against the CPU engine"
)
MODES = {"local": LOCAL, "fitting": FITTING, "semiglobal": SEMIGLOBAL, "global": GLOBAL}
LETTERS = np.frombuffer(b"ACGT", np.uint8)
#: Threads that bring batches to the card.
THREADS = available_threads()


class KernelClock:
    """Adds up the time of every kernel launched inside it, by name."""

    def __enter__(self):
        from numba.cuda.dispatcher import _LaunchConfiguration

        self.events, self.kind, self.call = [], _LaunchConfiguration, _LaunchConfiguration.__call__
        clock = self

        def timed(configuration, *arguments):
            before, after = cuda.event(), cuda.event()
            before.record()
            clock.call(configuration, *arguments)
            after.record()
            clock.events.append((configuration.dispatcher.py_func.__name__, before, after))

        _LaunchConfiguration.__call__ = timed
        return self

    def __exit__(self, *_):
        self.kind.__call__ = self.call
        cuda.synchronize()
        self.seconds = defaultdict(float)
        for name, before, after in self.events:
            self.seconds[name] += cuda.event_elapsed_time(before, after) / 1000

    @property
    def total(self):
        return sum(self.seconds.values())


def timed(function, repeats=3):
    """Medians of the time of kernels and of the whole call, and the kernels of the last run.

    Whole calls are timed without events, which take a small batch as long as the work itself.
    """
    function()
    cuda.synchronize()
    kernels, walls = [], []
    for _ in range(repeats):
        begin = time.perf_counter()
        function()
        cuda.synchronize()
        walls.append(time.perf_counter() - begin)
        with KernelClock() as clock:
            function()
        kernels.append(clock.total)
    by_name = {name: round(seconds * 1e3, 4) for name, seconds in clock.seconds.items()}
    return statistics.median(kernels), statistics.median(walls), by_name


def random_pairs(count, query_length, reference_length, seed, gapped=0.3, substituted=0.01):
    """Reads cut out of their reference windows, with substitutions and, some of them, an indel."""
    rng = np.random.default_rng(seed)
    references = rng.integers(0, 4, (count, reference_length), dtype=np.uint8)
    slack = reference_length - query_length
    places = rng.integers(0, max(slack - 8, 1), count)
    columns = places[:, None] + np.arange(query_length)
    has_gap = rng.random(count) < gapped
    shift = rng.integers(-4, 5, count) * has_gap
    columns[:, query_length // 2 :] += shift[:, None]
    np.clip(columns, 0, reference_length - 1, out=columns)
    queries = np.take_along_axis(references, columns, 1)
    changed = rng.random(queries.shape, dtype=np.float32) < substituted
    queries[changed] = (queries[changed] + rng.integers(1, 4, int(changed.sum()))) % 4
    return PairBatch(_rows(queries), _rows(references))


def _rows(matrix):
    count, length = matrix.shape
    return Sequences(
        matrix.ravel(), np.arange(count, dtype=np.int64) * length, np.full(count, length, np.int32)
    )


def mixed_pairs(count, query_range, reference_range, seed, letters=None):
    """Pairs of random lengths, queries related to their references; some ambiguous letters."""
    rng = np.random.default_rng(seed)
    queries, references = [], []
    for _ in range(count):
        reference = rng.integers(0, 4, rng.integers(*reference_range)).astype(np.uint8)
        start = rng.integers(0, reference.size)
        length = rng.integers(*query_range)
        query = np.resize(reference[start:], length).copy()
        changed = rng.random(length) < rng.choice([0, 0.02, 0.1])
        query[changed] = rng.integers(0, 4, int(changed.sum()))
        if rng.random() < 0.5 and length > 10:
            at = rng.integers(1, length - 5)
            query = np.delete(query, slice(at, at + rng.integers(1, 5)))
        if letters is None and rng.random() < 0.05:
            reference[rng.integers(0, reference.size)] = 4
            query[rng.integers(0, query.size)] = 4
        queries.append(query if letters is None else letters[query])
        references.append(reference if letters is None else letters[reference])
    return PairBatch(sequences_of(queries), sequences_of(references))


class Report:
    """Runs parts one by one, saves what they say, and goes on when one breaks."""

    def __init__(self, path):
        self.rows, self.failures, self.path = [], [], Path(path)

    def save(self):
        device = cuda.get_current_device()
        result = {
            "about": ABOUT,
            "device": device.name.decode() if isinstance(device.name, bytes) else str(device.name),
            "versions": {"numba": numba.__version__, "numpy": np.__version__},
            "rows": self.rows,
            "failures": self.failures,
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(result, indent=1))

    def run(self, name, function, *arguments):
        begin = time.perf_counter()
        try:
            rows = function(*arguments) or []
        except Exception:
            self.failures.append((name, traceback.format_exc()))
            print(f"BROKE {name}", flush=True)
            traceback.print_exc()
            return
        for row in rows:
            self.rows.append({"part": name, **row})
            print(name, json.dumps(row), flush=True)
        print(f"  [{name}: {time.perf_counter() - begin:.1f} s]", flush=True)
        self.save()


# --- Checks -------------------------------------------------------------------------------------


def check_cases():
    """Small batches that reach every kernel: name, pairs, scoring, mode."""
    bwa, wide = nucleotide_scoring(1, -4, 6, 1), nucleotide_scoring(200, -150, 249, 11)
    linear, other = nucleotide_scoring(2, -3, 0, 2), nucleotide_scoring(10, -15, 25, 5)
    short = mixed_pairs(600, (1, 150), (1, 300), 1)
    long = mixed_pairs(12, (300, 900), (300, 1200), 2)
    many = random_pairs(20_000, 150, 200, 3)
    for mode in MODES:
        yield f"short bwa {mode}", short, bwa, MODES[mode]
        yield f"short linear {mode}", short, linear, MODES[mode]
        yield f"long bwa {mode}", long, bwa, MODES[mode]
        yield f"many other {mode}", many, other, MODES[mode]
    yield "short wide local", short, wide, LOCAL
    yield "short wide semiglobal", short, wide, SEMIGLOBAL
    blosum = matrix_scoring("BLOSUM62", 11, 1)
    yield "protein local", mixed_pairs(200, (1, 150), (1, 300), 4), blosum, LOCAL


def gatk_cases():
    for number, (name, parameters) in enumerate(GATK_PARAMETERS.items()):
        for overhang in OVERHANGS:
            yield (
                f"gatk {name} {overhang}",
                mixed_pairs(400, (1, 120), (1, 350), 10 + number, LETTERS),
                parameters,
                overhang,
            )


def search_case():
    database = make_proteins(60_000, 5)
    rng = np.random.default_rng(6)
    queries = [rng.integers(0, 20, n).astype(np.uint8) for n in (1, 60, 144, 375, 1100)]
    database += [np.tile(queries[4], 7), queries[3], queries[4]]
    names = [str(i) for i in range(len(database))]
    return queries, sorted_database(database, names), matrix_scoring("BLOSUM62", 11, 1)


def expected_answers(path):
    """The CPU engine's answers to all checks; from the file where it is there already."""
    if path and Path(path).exists():
        return dict(np.load(path))
    from bwarp.alignment.gatk.gatk_cpu import gatk_alignments
    from bwarp.alignment.pairwise.pairs_cpu import pair_alignments
    from bwarp.alignment.search.search_cpu import search_scores

    answers = {}
    for name, pairs, scoring, mode in check_cases():
        for field, array in vars(pair_alignments(pairs, scoring, mode, 2)).items():
            answers[f"{name}/{field}"] = array
    for name, pairs, parameters, overhang in gatk_cases():
        for field, array in vars(gatk_alignments(pairs, parameters, overhang, 2)).items():
            answers[f"{name}/{field}"] = array
    queries, database, scoring = search_case()
    answers["search"] = np.array(list(search_scores(queries, database, scoring, 2)))
    if path:
        np.savez_compressed(path, **answers)
    return answers


def differing(expected, name, answer):
    wrong = [
        field
        for field, array in vars(answer).items()
        if not np.array_equal(array, expected[f"{name}/{field}"])
    ]
    return [{"check": name, "equal": not wrong, **({"differ": wrong} if wrong else {})}]


def check_pairs_case(expected, name, pairs, scoring, mode):
    from bwarp.alignment.pairwise.pairs_cuda import pair_alignments, pair_scores

    scores = pair_scores(pairs, scoring, mode)
    alignments = pair_alignments(pairs, scoring, mode)
    rows = differing(expected, name, alignments)
    if not rows[0]["equal"]:
        starts = alignments.query_starts != expected[f"{name}/query_starts"]
        rows[0]["first"] = np.flatnonzero(starts)[:10].tolist()
    rows[0]["scores_equal"] = bool(np.array_equal(scores, expected[f"{name}/scores"]))
    return rows


def check_gatk_case(expected, engine, name, pairs, parameters, overhang):
    return differing(expected, name, engine.gatk_alignments(pairs, parameters, overhang))


def check_search(expected, engine, name):
    queries, database, scoring = search_case()
    scores = np.array(list(engine.search_scores(queries, database, scoring)))
    return [{"check": name, "equal": bool(np.array_equal(scores, expected["search"]))}]


# --- Times --------------------------------------------------------------------------------------


def time_tile(tile, registers, mode, with_ends, columns, count):
    """One shape of the packed kernel, pairs on the card."""
    from bwarp.alignment.matrix import packed_int16_kernel_cuda
    from bwarp.alignment.matrix.device_batch_cuda import device_batch
    from bwarp.alignment.pairwise import pairs_cuda

    threads, rows = tile
    query_length = min(threads * rows, 150)
    batch = device_batch(random_pairs(count, query_length, columns, 7))
    kernel = packed_int16_kernel_cuda.packed_kernel(
        threads, rows, mode.local, with_ends, False, True
    )
    kernel = cuda.jit(max_registers=registers)(kernel.py_func)
    whole, tiles = packed_int16_kernel_cuda.packed_kernel, pairs_cuda.MANY_TILES
    packed_int16_kernel_cuda.packed_kernel, pairs_cuda.MANY_TILES = lambda *_: kernel, (tile,)
    try:
        scoring = nucleotide_scoring(1, -4, 6, 1)
        kernels, _, names = timed(lambda: pairs_cuda.find_ends(batch, scoring, mode, with_ends))
    finally:
        packed_int16_kernel_cuda.packed_kernel, pairs_cuda.MANY_TILES = whole, tiles
    cells = count * query_length * columns
    return [
        {
            "tile": f"{threads}x{rows}",
            "registers": registers,
            "mode": "local" if mode.local else "fitting",
            "ends": with_ends,
            "cells": f"{query_length}x{columns}",
            "tcups": round(cells / kernels / 1e12, 3),
            "tcups_main": round(cells / names["align_packed"] / 1e9, 3),
        }
    ]


def time_pairs(columns, mode_name, count, gapped):
    """Score, ends and alignments of reads of 150 bases; on the card, and with transfers."""
    from bwarp.alignment.matrix.device_batch_cuda import device_batch
    from bwarp.alignment.matrix.scores_and_ends_cuda import pair_costs
    from bwarp.alignment.pairwise import pairs_cuda
    from bwarp.alignment.traceback.traceback_cuda import trace_alignments
    from bwarp.gpu.workspace import work_space

    pairs = random_pairs(count, 150, columns, 8, gapped)
    mode, scoring = MODES[mode_name], nucleotide_scoring(1, -4, 6, 1)
    batch = device_batch(pairs)
    costs = pair_costs(scoring, mode)
    cells = count * 150 * columns

    def aligned():
        with work_space():
            trace_alignments(batch, costs, *pairs_cuda.find_ends(batch, scoring, mode), THREADS)

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
    """Ren's shapes with transfers: situation 2 (reads) and 3 (haplotypes)."""
    base = mixed_pairs(2000, query_range, reference_range, 12, LETTERS)
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
    """Ren's Figure 8: equal lengths from 64 to 576; 25, 100 and 1000 pairs; transfers included."""
    for length in (64, 128, 256, 448, 576):
        for count in (25, 100, 1000):
            rng = np.random.default_rng(length)
            references = rng.integers(0, 4, (count, length))
            queries = references.copy()
            changed = rng.random(queries.shape) < 0.02
            queries[changed] = rng.integers(0, 4, int(changed.sum()))
            pairs = PairBatch(*(_rows(LETTERS[side]) for side in (queries, references)))
            best = GATK_PARAMETERS["alignment-to-best-haplotype"]
            kernels, wall, _ = timed(
                lambda pairs=pairs, best=best: engine.gatk_alignments(pairs, best, "softclip"), 5
            )
            yield {
                "what": f"{name} {length}",
                "pairs": count,
                "gcups_kernels": round(count * length**2 / kernels / 1e9, 1),
                "gcups_wall": round(count * length**2 / wall / 1e9, 1),
            }


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
        # Alone, and together with another of its length.
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
    # The second time: the first one compiles kernels for lengths not met above.
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


def repeated_database(codes, lengths, residues):
    """Every sequence several times, sorted by length still."""
    copies = max(1, -(-residues // int(lengths.sum())))
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    pieces = [np.tile(codes[offsets[i] : offsets[i + 1]], copies) for i in range(lengths.size)]
    all_offsets = np.concatenate([[0], np.cumsum(np.repeat(lengths, copies))])
    count = all_offsets.size - 1
    return Database(np.concatenate(pieces), all_offsets, np.arange(count), [])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--expected", help="answers of the CPU engine (.npz), made when absent")
    parser.add_argument("--proteins", help=".npz with codes, lengths, queries, query_lengths")
    parser.add_argument("--only", default="", help="parts whose names contain one of these, by ,")
    arguments = read_options(parser, "alignment_gpu.json", only="check search")
    skip_without_gpu()
    wanted = arguments.only.split(",")
    numba.config.CUDA_LOW_OCCUPANCY_WARNINGS = 0

    from bwarp.alignment.gatk import gatk_cuda, gatk_run_lengths_cuda
    from bwarp.alignment.pairwise import pairs_cuda
    from bwarp.alignment.search import prefix_scan_cuda, search_cuda

    report = Report(arguments.output)

    def part(name, function, *values):
        if any(word in name for word in wanted):
            report.run(name, function, *values)

    expected = expected_answers(arguments.expected)
    for case in check_cases():
        part("check pairs", check_pairs_case, expected, *case)
    for case in gatk_cases():
        part("check gatk", check_gatk_case, expected, gatk_cuda, *case)
        part("check run lengths", check_gatk_case, expected, gatk_run_lengths_cuda, *case)
    part("check search", check_search, expected, search_cuda, "profile")
    part("check search", check_search, expected, prefix_scan_cuda, "prefix scan")

    million = 1 << 20
    for tile, registers, mode, ends in (
        ((8, 19), 128, FITTING, False),
        ((8, 19), 128, LOCAL, False),
    ):
        part("time tile", time_tile, tile, registers, mode, ends, 300, million)
    for columns in (200, 300, 500):
        part("time pairs", time_pairs, columns, "local", million, 0.3)
    part("time pairs", time_pairs, 300, "fitting", million, 0.3)
    blosum = matrix_scoring("BLOSUM62", 11, 1)
    if arguments.proteins:
        proteins = np.load(arguments.proteins)
        queries = np.split(proteins["queries"], np.cumsum(proteins["query_lengths"])[:-1])
        database = repeated_database(proteins["codes"], proteins["lengths"], 200_000_000)
    else:
        rng = np.random.default_rng(20)
        queries = [rng.integers(0, 20, n).astype(np.uint8) for n in (144, 375, 1000, 5478)]
        sequences = make_proteins(50_000_000, 21)
        database = sorted_database(sequences, [""] * len(sequences))
    part("time search", time_search, search_cuda, "profile", queries, database, blosum)
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

    for length in (128, 512, 2048, 8192):
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
                print("WRONG", row)
        else:
            print({k: v for k, v in row.items() if k != "part"})
    checks = [row for row in report.rows if "check" in row]
    good = sum(row["equal"] and row.get("scores_equal", True) for row in checks)
    print(f"{good} of {len(checks)} checks equal; {len(report.failures)} parts broke")
    for name, text in report.failures:
        print(name, text.strip().splitlines()[-1])


if __name__ == "__main__":
    main()
