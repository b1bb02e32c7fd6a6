"""Time seeds on one GPU: kernels against the memory's throughput, and whole runs, host to host.

Simulates a genome with human-like repeats on the GPU, indexes it there, and then times

- reads of random 32-byte sectors: the upper bound for any search in an index;
- exact search, kernel only, by k, by the length of the table and with or without the text;
- search with mismatches, kernels only, by the maximum number of rows that are compared directly;
- whole runs of the five data sets in Liu & Schmidt's tables: a million k-mers from reads with
  errors, hits on both strands, at most 128 hits per k-mer, host memory to host memory;
- S11 again without that limit: in a genome of 3.1 Gb each 11-mer has more than 128 hits, so with
  the limit none is located. All positions, billions in total, are copied to the host in parts and
  dropped there.

Results are checked by comparing k-mers with every window of the genome. The output is one JSON
line.
"""

import json
import statistics
import time
import traceback

from frame.environment import gpu_name, origin
from frame.options import new_parser, read_options, skip_without_gpu
from parts.seed_data_on_gpu import hits_by_comparing, is_correct, simulated_index, simulated_kmers
from parts.seed_kernels import (
    measure_backtracking,
    measure_exact,
    measure_schemes,
    sector_ceiling,
)

from bwarp.gpu.available_memory import free_memory
from bwarp.gpu.cuda import cuda
from bwarp.index.device_index_cuda import Workspace
from bwarp.index.fm_index import FMIndex
from bwarp.runtime.backend import choose_backend
from bwarp.runtime.threads import available_threads
from bwarp.seeding import find_cuda
from bwarp.seeding.hits import SeedOptions

#: k, mismatches, and seconds on the paper's GPU: the whole run, and the search alone.
DATASETS = {
    "S11": (11, 0, 10.6, 6.8),
    "S15": (15, 0, 12.4, 7.2),
    "S20": (20, 1, 17.6, 14.9),
    "S24": (24, 1, 15.8, 13.4),
    "S30": (30, 2, 80.9, 78.6),
}
MAX_HITS = 128

#: The paper has no run that locates all of these.
ALL_LOCATED = {"S11": (11, 0, None, None)}

#: K-mers that are compared with every window.
CHECKED = 96


def wall_seconds(work, repeats: int = 3) -> list[float]:
    times = []
    for _ in range(repeats):
        cuda.synchronize()
        start = time.perf_counter()
        work()
        times.append(round(time.perf_counter() - start, 4))
    return times


def measure_whole_runs(
    index: FMIndex, threads: int, kmers: dict, mode: str, datasets: dict, max_hits: int
) -> list[dict]:
    """Time runs from host k-mers to host positions, with hits located according to `mode`."""
    device = find_cuda.prepare(index, SeedOptions(1, locate=mode))
    lines = []
    for name, (k, mismatches, paper, _) in datasets.items():
        words = kmers[name]
        options = SeedOptions(mismatches, max_hits, locate=mode)
        outcome = {}
        marks = []

        def run(words=words, k=k, options=options, outcome=outcome, marks=marks):
            start = time.perf_counter()
            found = find_cuda.find_seeds(device, words, k, options, threads)
            marks.append(time.perf_counter() - start)
            outcome["hits"] = sum(part.count for part in found.hits)
            outcome["over"] = len(found.over_kmers)

        checked = words[:CHECKED]
        expected = hits_by_comparing(index.reference, checked, k, mismatches)
        correct = is_correct(expected, device, checked, k, options, threads)
        run()
        seconds = wall_seconds(run)
        times_the_paper = round(paper / statistics.median(seconds), 1) if paper else None
        lines.append(
            {
                "dataset": name,
                "k": k,
                "mismatches": mismatches,
                "max_hits": max_hits,
                "locate": mode,
                "seconds": seconds,
                "search_seconds": round(statistics.median(marks[1:]), 4),
                "times_the_papers_gpu": times_the_paper,
                "right": correct,
                **outcome,
            }
        )
    return lines


def main() -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--bases", type=int, default=3_100_000_000)
    parser.add_argument("--kmers", type=int, default=1_000_000)
    parser.add_argument("--exact-kmers", type=int, default=1 << 24)
    parser.add_argument("--sa-rate", type=int, default=4)
    parser.add_argument("--modes", nargs="+", default=["auto", "hybrid", "cpu"])
    small = {"bases": 5_000_000, "kmers": 10_000, "exact_kmers": 1 << 16}
    arguments = read_options(parser, "seeds_gpu.jsonl", **small)
    skip_without_gpu()
    choose_backend("cuda")
    threads = available_threads()

    start = time.perf_counter()
    index = simulated_index(arguments.bases, arguments.sa_rate, threads)
    result = {
        "benchmark": "seeds_gpu",
        "gpu": gpu_name(),
        "threads": threads,
        "bases": arguments.bases,
        "seconds_to_simulate_and_index": round(time.perf_counter() - start, 2),
    }
    before = free_memory()
    start = time.perf_counter()
    device = find_cuda.prepare(index, SeedOptions(mismatches=1))
    cuda.synchronize()
    result["seconds_to_prepare"] = round(time.perf_counter() - start, 2)
    planned = device.plan.index_bytes + device.plan.elements * Workspace.BYTES
    result["plan"] = str(device.plan)
    result["used_of_planned_memory"] = round((before - free_memory()) / planned, 4)
    print(result, flush=True)
    steps = {
        "ceiling_sectors_a_second": lambda: sector_ceiling(device.forward.words),
        "ceiling_in_table": lambda: sector_ceiling(device.table(device.plan.string_length)),
        "exact": lambda: measure_exact(device, arguments.exact_kmers),
        "schemes": lambda: measure_schemes(device, arguments.kmers),
        "backtracking": lambda: measure_backtracking(device, min(50_000, arguments.kmers)),
    }
    kmers = {
        name: simulated_kmers(device, arguments.kmers, k, 10, True)
        for name, (k, *_) in DATASETS.items()
    }
    for mode in arguments.modes:
        steps[f"whole_runs_{mode}"] = lambda mode=mode: measure_whole_runs(
            index, threads, kmers, mode, DATASETS, MAX_HITS
        )
    steps["whole_runs_all_located"] = lambda: measure_whole_runs(
        index, threads, kmers, "auto", ALL_LOCATED, 0
    )
    for name, step in steps.items():
        start = time.perf_counter()
        if name.startswith("whole_runs"):
            device = None  # each mode has its own parts of the index on the GPU
        try:
            result[name] = step()
        except Exception:  # noqa: BLE001
            traceback.print_exc()
            result[name] = None
        print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)
    with arguments.output.open("a") as file:
        file.write(json.dumps(origin() | result) + "\n")
    print_tables(result)


def print_tables(result: dict) -> None:
    ceiling = result["ceiling_sectors_a_second"]
    print(f"{result['plan']}; used / planned {result['used_of_planned_memory']}")
    print(f"ceiling {ceiling / 1e9:.1f} G sectors/s, table {result['ceiling_in_table'] / 1e9:.1f}")
    for line in result["exact"] or ():
        rate = line["searches_a_second"]
        print(
            f"exact k={line['k']} table={line['table']} text={line['text']:d}: {rate / 1e9:.2f} G/s"
            f", both strands {line['both_strands_kmers_a_second'] / 1e9:.2f} G/s, "
            f"{line['sectors_a_search']:.2f} sectors, "
            f"{rate * line['sectors_a_search'] / ceiling:.0%} of the ceiling, "
            f"{line['not_found']} not found"
        )
    for line in result["schemes"] or ():
        print(
            f"schemes k={line['k']} m={line['mismatches']} table={line['table']} "
            f"few={line['few_rows']}: {line['kmers_a_second'] / 1e6:.1f} M/s, "
            f"{line['batches']} batches, fullest list {line['fullest_list']:.2f}"
            f"{' (too short)' if line['fullest_list'] > 1 else ''}"
        )
    for line in result["backtracking"] or ():
        print(
            f"backtracking k={line['k']} m={line['mismatches']}: "
            f"{line['kmers_a_second'] / 1e6:.2f} M/s"
        )
    for line in (line for name in result if "whole_runs" in name for line in result[name] or ()):
        print(
            f"{line['dataset']} {line['locate']}, limit {line['max_hits']}: {line['seconds']} s "
            f"(search {line['search_seconds']}), {line['times_the_papers_gpu'] or '-'} x, "
            f"hits {line['hits']}, over {line['over']}, right {line['right']}"
        )


if __name__ == "__main__":
    main()
