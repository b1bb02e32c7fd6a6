"""Times of the GPU kernels for seeds, compared with the throughput of GPU memory."""

from itertools import pairwise

import numpy as np
from frame.gpu_timing import kernel_seconds

from bwarp.gpu.cuda import cuda, uint32, uint64
from bwarp.gpu.ptx import load_uint32x4
from bwarp.index.device_index_cuda import DeviceIndex
from bwarp.index.rank_cuda import block_of, rank_both
from bwarp.seeding import exact_cuda, find_cuda, search_schemes_cuda
from bwarp.seeding.exact_cuda import base_of, first_base, make_items
from bwarp.sequence import kmer_at
from parts.genome_on_gpu import THREADS, blocks
from parts.seed_data_on_gpu import simulated_kmers

#: The maximum number of hits of a k-mer in the paper.
PAPERS_LIMIT = 128

__all__ = ["measure_backtracking", "measure_exact", "measure_schemes", "sector_ceiling"]


@cuda.jit
def read_sectors(words, n_sectors, times, sums):
    """Read random sectors with two 16-byte loads, as a rank does, from known addresses."""
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
def count_sectors(bwt, strings, items, few, sectors):
    """Count the sectors that `exact_cuda.search_items` reads.

    These are sectors of the table, of blocks, and for a single row, of the suffix array and of the
    text.
    """
    item = cuda.grid(1)
    if item >= items.count:
        return
    left = items.k - strings.length
    string = kmer_at(items.words, first_base(items, item) + uint64(left), strings.length)
    first, _, rows, _ = load_uint32x4(strings.rows, uint64(4) * uint64(string))
    read = uint32(1)
    while rows > few and left > 0:
        left -= 1
        code = base_of(items, item, left)
        last = uint32(first + rows)
        read += 1 if block_of(bwt.groups, first) == block_of(bwt.groups, last) else 2
        start, stop = rank_both(bwt, code, first, last)
        first = uint32(bwt.first_rows[code] + start)
        rows = uint32(stop - start)
    if rows == 1 and few:
        # 128 bases of text are a sector, read in words of 32.
        read += 1 if left == 0 else 2
    cuda.atomic.add(sectors, 0, uint64(read))


def measure_exact(device: DeviceIndex, count: int) -> list[dict]:
    """Time exact search, kernel only: k-mers that occur, on one strand; then on both."""
    lines = []
    rows = [cuda.device_array(2 * count, np.uint32) for _ in range(2)]
    plan, text = device.plan, device.text
    for k in (11, 15, 20, 24, 30):
        words = simulated_kmers(device, count, k, 0, False)
        both = make_items(words, k)
        kmers = cuda.to_device(np.append(words.reshape(-1), np.uint64(0)))
        one_strand = both._replace(words=kmers, count=count)
        for length in (13, 14, 15):
            for few in (0, 1):
                if length > plan.string_length or length > k:
                    continue
                device.plan = type(plan)(**(vars(plan) | {"string_length": length}))
                device.text = text if few else None
                sectors = cuda.to_device(np.zeros(1, np.uint64))
                count_sectors[blocks(count), THREADS](
                    device.forward, device.table(length), one_strand, few, sectors
                )
                seconds = kernel_seconds(
                    lambda items=one_strand: exact_cuda.exact_intervals(device, items, *rows)
                )
                found = int((rows[1][:count].copy_to_host() > 0).sum())
                seconds_both = kernel_seconds(
                    lambda items=both: exact_cuda.exact_intervals(device, items, *rows)
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
    """Time the search with mismatches, kernels only, on both strands."""
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

                def run(mismatches=mismatches, batches=batches, zeros=zeros):
                    for items in batches:
                        device.work.counters.copy_to_device(zeros)
                        search_schemes_cuda.search_schemes(device, items, mismatches)

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
                        # Above 1, a list was too short, so the search is incomplete and gives no
                        # result.
                        "fullest_list": float(counters.max() / device.work.elements),
                        "counters": [int(c) for c in counters if c],
                    }
                )
        device.plan = plan
    search_schemes_cuda.FEW_ROWS = few_rows
    device.tables.pop(14, None)
    return lines


def measure_backtracking(device: DeviceIndex, count: int) -> list[dict]:
    """Time the paper's search with mismatches, which stops at the limit, kernel only."""
    lines = []
    for k, mismatches in ((20, 1), (30, 2)):
        words = simulated_kmers(device, count, k, 10, True)
        device.work.counters.copy_to_device(np.zeros(device.work.counters.size, np.uint32))
        items = make_items(words, k)
        seconds = kernel_seconds(
            lambda items=items, m=mismatches: find_cuda.search_backtracking(
                device, items, m, PAPERS_LIMIT
            ),
            1,
        )
        lines.append({"k": k, "mismatches": mismatches, "kmers_a_second": count / seconds})
    return lines
