"""Seeds on one GPU: the kernels against the memory's ceiling, and whole runs from host to host.

Simulates a genome with human-like repeats on the GPU, indexes it there, and then times

- reads of random 32-byte sectors: the ceiling of any search in an index;
- exact search, kernel only, by k, by the length of the table and with or without the text;
- search with mismatches, kernels only, by how many rows are few enough to be compared;
- whole runs of the five datasets of Liu & Schmidt's tables: a million k-mers from reads with
  errors, hits of both strands, at most 128 hits a k-mer, host memory to host memory;
- S11 once more without that limit: in a genome of 3.1 Gb each of its 11-mers has more than 128
  hits, so that with the limit they are counted and none is located. All positions, some thousand
  million, come to the host a part at a time, and are dropped there.

Answers are checked by comparing k-mers with every window of the genome. One JSON line in all.
"""

import argparse
import json
import platform
import statistics
import time
import traceback
from itertools import pairwise

import numpy as np
from numba import cuda, uint32, uint64
from options import read_options, skip_without_gpu
from suffix_array import blocks, random_bits, simulated_genome

import bwarp
from bwarp.gpu.available_memory import free_memory
from bwarp.gpu.ptx import load_uint32x4
from bwarp.index.building.build_cuda import build_bwts
from bwarp.index.device_index_cuda import DeviceIndex, Workspace
from bwarp.index.fm_index import FMIndex
from bwarp.index.parameters import IndexParameters
from bwarp.index.rank_cuda import block_of, rank_both
from bwarp.reference import Reference
from bwarp.runtime.backend import choose_backend
from bwarp.runtime.threads import available_threads
from bwarp.seeding import find_cuda
from bwarp.seeding.algorithms import exact_cuda, search_schemes_cuda
from bwarp.seeding.algorithms.both_strands_cuda import base_of, make_items
from bwarp.seeding.hits import SeedOptions
from bwarp.sequence import kmer_at, pack

THREADS = 256

#: k, mismatches, and seconds of the paper's GPU: the whole run, and the search alone.
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


# --- Genome, index, k-mers -----------------------------------------------------------------------


def reference_of_text(text: np.ndarray, threads: int) -> Reference:
    """The reference whose text this is: every separator ends a contig."""
    ends = np.flatnonzero(text == 0)
    starts = np.append(0, ends[:-1] + 1)
    codes = np.concatenate([text[a:b] for a, b in zip(starts, ends, strict=True)])
    codes -= 1
    contig_starts = np.append(0, np.cumsum(ends - starts))
    return Reference(
        names=tuple(f"contig{i}" for i in range(len(ends))),
        contig_starts=contig_starts,
        md5=("",) * len(ends),
        segment_genome=contig_starts[:-1].astype(np.uint32),
        segment_text=np.append(starts, text.size).astype(np.int64),
        packed=pack(codes, threads),
    )


def simulated_index(n: int, sa_rate: int, threads: int) -> FMIndex:
    text = simulated_genome(n).copy_to_host()
    reference = reference_of_text(text, threads)
    parameters = IndexParameters(64, sa_rate, 4)
    forward, reverse, suffixes, table = build_bwts(text, parameters, threads)
    return FMIndex(reference, forward, reverse, table, suffixes, sa_rate)


@cuda.jit
def cut_kmers(text, text_length, k, error_per_mille, both_strands, seed, words):
    """A k-mer at a random place, some bases changed. One thread a k-mer."""
    i = cuda.grid(1)
    if i < words.size:
        place = random_bits(seed, i) % uint64(text_length - k)
        word = uint64(0)
        for base in range(k):
            code = kmer_at(text, place + uint64(base), 1)
            bits = random_bits(seed + 1, i * 64 + base)
            if (bits >> uint64(8)) % uint64(1000) < uint64(error_per_mille):
                code = bits & uint64(3)
            word |= uint64(code) << uint64(62 - 2 * base)
        if both_strands and random_bits(seed + 2, i) & uint64(1):
            turned = uint64(0)
            for base in range(k):
                code = uint64(3) - ((word >> uint64(62 - 2 * base)) & uint64(3))
                turned |= code << uint64(62 - 2 * (k - 1 - base))
            word = turned
        words[i] = word


def simulated_kmers(device, count: int, k: int, error_per_mille: int, both_strands: bool):
    words = cuda.device_array(count, np.uint64)
    cut_kmers[blocks(count), THREADS](
        device.text, device.forward.n_rows, k, error_per_mille, both_strands, 7 * k, words
    )
    return words.copy_to_host().reshape(-1, 1)


# --- Proof ---------------------------------------------------------------------------------------


@cuda.jit
def compare_windows(genome, starts, items, n_items, k, mismatches, found, n_found):
    """Compare every window of the genome with every item. One thread a window."""
    place = cuda.grid(1)
    contig = 0
    while contig < starts.size - 1 and place >= starts[contig + 1]:
        contig += 1
    if contig < starts.size - 1 and place + k <= starts[contig + 1]:
        window = kmer_at(genome, place, k)
        for item in range(n_items):
            wrong = window ^ (items[item] >> uint64(64 - 2 * k))
            errors = uint32(cuda.popc((wrong | wrong >> uint64(1)) & uint64(0x5555555555555555)))
            if errors <= uint32(mismatches):
                at = cuda.atomic.add(n_found, 0, 1)
                if at < found.size:
                    found[at] = (
                        uint64(item) << uint64(35) | uint64(place) << uint64(3) | uint64(errors)
                    )


def hits_by_comparing(reference: Reference, words: np.ndarray, k: int, mismatches: int):
    """Item, position and mismatches of every hit of k-mers, as sorted numbers."""
    genome, starts = cuda.to_device(reference.packed), cuda.to_device(reference.contig_starts)
    items = make_items(words, k)
    n_found = cuda.to_device(np.zeros(1, np.int64))
    found = cuda.device_array(1 << 26, np.uint64)
    compare_windows[blocks(reference.n_bases), THREADS](
        genome, starts, items, 2 * len(words), k, mismatches, found, n_found
    )
    count = int(n_found.copy_to_host()[0])
    assert count <= found.size
    return np.sort(found[:count].copy_to_host()) if count else np.empty(0, np.uint64)


def is_right(
    expected, device: DeviceIndex, words, k: int, options: SeedOptions, threads: int
) -> bool:
    """Whether a search finds and counts what comparing with every window does."""
    kmers = (expected >> np.uint64(36)).astype(np.int64)
    counts = np.bincount(kmers, minlength=len(words))
    found = find_cuda.find_seeds(device, words, k, options, threads)
    limit = options.max_hits or len(expected)
    over = np.flatnonzero(counts > limit)
    parts = [
        (2 * part.kmers.astype(np.uint64) + part.strands) << np.uint64(35)
        | part.positions.astype(np.uint64) << np.uint64(3)
        | part.mismatches.astype(np.uint64)
        for part in found.hits
    ]
    mine = np.concatenate(parts) if parts else np.empty(0, np.uint64)
    return (
        np.array_equal(found.over_kmers, over)
        and np.array_equal(found.over_counts, counts[over])
        and np.array_equal(mine, expected[counts[kmers] <= limit])
    )


# --- Time ----------------------------------------------------------------------------------------


def kernel_seconds(work, repeats: int = 5) -> float:
    work()
    cuda.synchronize()
    times = []
    for _ in range(repeats):
        start, stop = cuda.event(), cuda.event()
        start.record()
        work()
        stop.record()
        stop.synchronize()
        times.append(cuda.event_elapsed_time(start, stop) / 1e3)
    return statistics.median(times)


def wall_seconds(work, repeats: int = 3) -> list[float]:
    times = []
    for _ in range(repeats):
        cuda.synchronize()
        start = time.perf_counter()
        work()
        times.append(round(time.perf_counter() - start, 4))
    return times


@cuda.jit
def read_sectors(words, n_sectors, times, sums):
    """Read random sectors by two 16-byte loads, as a rank does, each place known beforehand."""
    i = cuda.grid(1)
    bits = uint64(i) * uint64(0x9E3779B97F4A7C15) + uint64(12345)
    total = uint32(0)
    for _ in range(times):
        bits ^= bits >> uint64(29)
        bits *= uint64(0xBF58476D1CE4E5B9)
        bits ^= bits >> uint64(32)
        sector = ((bits >> uint64(32)) * uint64(n_sectors)) >> uint64(32)
        a, b, c, d = load_uint32x4(words, sector * uint64(8))
        e, f, g, h = load_uint32x4(words, sector * uint64(8) + uint64(4))
        total = uint32(total ^ a ^ b ^ c ^ d ^ e ^ f ^ g ^ h)
    sums[i] = total


def sector_ceiling(words) -> float:
    threads, times = 1 << 20, 64
    sums = cuda.device_array(threads, np.uint32)
    seconds = kernel_seconds(
        lambda: read_sectors[threads // THREADS, THREADS](words, words.size // 8, times, sums)
    )
    return threads * times / seconds


@cuda.jit
def count_sectors(
    words, separator_rows, groups, first_rows, table, length, items, k, n_items, few, sectors
):
    """How many sectors `exact_cuda.search_items` reads: the table, blocks, and for a single row
    the suffix array and, by the number of bases, the text."""
    item = cuda.grid(1)
    if item >= n_items:
        return
    string = kmer_at(items, uint64(item) * uint64(32) + uint64(k - length), length)
    first, _, rows, _ = load_uint32x4(table, uint64(4) * uint64(string))
    left = k - length
    read = uint32(1)
    while rows > few and left > 0:
        left -= 1
        code = base_of(items, 1, item, left)
        read += 1 if block_of(groups, first) == block_of(groups, uint32(first + rows)) else 2
        start, stop = rank_both(words, separator_rows, groups, code, first, uint32(first + rows))
        first = uint32(first_rows[code] + start)
        rows = uint32(stop - start)
    if rows == 1 and few:
        # 128 bases of text are a sector, read in words of 32.
        read += 1 if left == 0 else 2
    cuda.atomic.add(sectors, 0, uint64(read))


def measure_exact(device: DeviceIndex, count: int) -> list[dict]:
    """Exact search, kernel only: k-mers that occur, one strand; then both strands."""
    lines = []
    rows = [cuda.device_array(2 * count, np.uint32) for _ in range(2)]
    plan, text = device.plan, device.text
    for k in (11, 15, 20, 24, 30):
        words = simulated_kmers(device, count, k, 0, False)
        one_strand = cuda.to_device(np.append(words.reshape(-1), np.uint64(0)))
        both = make_items(words, k)
        for length in (13, 14, 15):
            for few in (0, 1):
                if length > plan.string_length or length > k:
                    continue
                device.plan = type(plan)(**(vars(plan) | {"string_length": length}))
                device.text = text if few else None
                sectors = cuda.to_device(np.zeros(1, np.uint64))
                count_sectors[blocks(count), THREADS](
                    device.forward.words, device.forward.separator_rows, device.forward.groups,
                    device.first_rows, device.table(length), length, one_strand, k, count, few,
                    sectors,
                )  # fmt: skip
                seconds = kernel_seconds(
                    lambda items=one_strand, k=k: exact_cuda.exact_intervals(
                        device, items, count, 1, k, *rows
                    )
                )
                found = int((rows[1][:count].copy_to_host() > 0).sum())
                seconds_both = kernel_seconds(
                    lambda items=both, k=k: exact_cuda.exact_intervals(
                        device, items, 2 * count, 1, k, *rows
                    )
                )
                lines.append(
                    {
                        "k": k,
                        "table": length,
                        "text": bool(few),
                        "searches_a_second": count / seconds,
                        "both_strands_kmers_a_second": count / seconds_both,
                        "sectors_a_search": int(sectors.copy_to_host()[0]) / count,
                        "not_found": count - found,
                    }
                )
        device.plan, device.text = plan, text
    for length in (13, 14):
        if length != plan.string_length:
            device.tables.pop(length, None)
    return lines


def measure_schemes(device: DeviceIndex, count: int) -> list[dict]:
    """Search with mismatches, kernels only, both strands."""
    lines = []
    few_rows = search_schemes_cuda.FEW_ROWS
    plan = device.plan
    for k, mismatches in ((20, 1), (24, 1), (30, 2)):
        words = simulated_kmers(device, count, k, 10, True)
        for length in (14, 15):
            if length > plan.string_length:
                continue
            device.plan = type(plan)(**(vars(plan) | {"string_length": length}))
            for few in (1, 2, 4, 8):
                search_schemes_cuda.FEW_ROWS = few
                elements = search_schemes_cuda.elements_an_item(device, k, mismatches)
                size = min(count, device.work.elements // elements // 2)
                edges = [*range(0, count, size), count]
                batches = [make_items(words[a:b], k) for a, b in pairwise(edges)]
                most = np.zeros(device.work.counters.size, np.uint32)
                zeros = cuda.to_device(most)

                def run(k=k, mismatches=mismatches, edges=edges, batches=batches, zeros=zeros):
                    for (a, b), items in zip(pairwise(edges), batches, strict=True):
                        device.work.counters.copy_to_device(zeros)
                        search_schemes_cuda.search_schemes(
                            device, items, 2 * (b - a), 1, k, mismatches
                        )

                seconds = kernel_seconds(run, 3)
                counters = device.work.counters.copy_to_host()
                lines.append(
                    {
                        "k": k,
                        "mismatches": mismatches,
                        "table": length,
                        "few_rows": few,
                        "kmers_a_second": count / seconds,
                        "batches": len(batches),
                        # Above 1 a list was too short: less was searched, and it is no result.
                        "fullest_list": float(counters.max() / device.work.elements),
                        "counters": [int(c) for c in counters if c],
                    }
                )
        device.plan = plan
    search_schemes_cuda.FEW_ROWS = few_rows
    device.tables.pop(14, None)
    return lines


def measure_backtracking(device: DeviceIndex, count: int) -> list[dict]:
    lines = []
    for k, mismatches in ((20, 1), (30, 2)):
        words = simulated_kmers(device, count, k, 10, True)
        device.work.counters.copy_to_device(np.zeros(device.work.counters.size, np.uint32))
        items = make_items(words, k)
        seconds = kernel_seconds(
            lambda items=items, k=k, m=mismatches: find_cuda.search_backtracking(
                device, items, 2 * count, 1, k, m
            ),
            1,
        )
        lines.append({"k": k, "mismatches": mismatches, "kmers_a_second": count / seconds})
    return lines


def measure_whole_runs(
    index: FMIndex, threads: int, kmers: dict, mode: str, datasets: dict, max_hits: int
) -> list[dict]:
    """From host k-mers to host positions, with hits located as `mode` says."""
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
        right = is_right(expected, device, checked, k, options, threads)
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
                "right": right,
                **outcome,
            }
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
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
        "gpu": str(cuda.get_current_device().name),
        "bwarp": bwarp.__version__,
        "python": platform.python_version(),
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
        except Exception:
            traceback.print_exc()
            result[name] = None
        print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)
    with arguments.output.open("a") as file:
        file.write(json.dumps(result) + "\n")
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
