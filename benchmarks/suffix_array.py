"""Time and prove the suffix array on the GPU, and the index built from it, at genome size.

    python benchmarks/suffix_array.py --sizes 100_000_000 1_000_000_000 3_100_000_000

For every size a genome with human-like repeats is made on the card, its suffix array is sorted
there (median of --repeats), and the whole array is checked: it is a permutation, and every row is
smaller than the next (by first letter, then by the rank of the rest); a million random
neighbours are also compared letter by letter. One more sort runs while the card's used memory is
polled. With --index the whole index is built from a text on the host to arrays on the host. The
Burrows-Wheeler blocks are checked by LF steps at random rows. One JSON line a size.
"""

import argparse
import json
import platform
import statistics
import threading
import time

import numpy as np
from numba import cuda
from options import read_options, skip_without_gpu

import bwarp
from bwarp.index.building.build_cuda import build_bwts
from bwarp.index.building.suffix_array_cuda import suffix_array_bytes, suffix_array_on_device
from bwarp.index.parameters import choose_parameters
from bwarp.index.rank_cpu import lf_step

THREADS = 256
CONTIGS = 24
COMPARED_LETTERS = 100_000


def blocks(threads: int) -> int:
    return -(-threads // THREADS)


# --- A genome with human-like repeats ------------------------------------------------------------


@cuda.jit(device=True)
def random_bits(seed, i):
    """64 random bits for every pair of numbers (splitmix64)."""
    x = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(i)
    x = (x + np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = (x ^ (x >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    return x ^ (x >> np.uint64(32))


@cuda.jit(cache=True)
def random_letters(seed, text):
    i = cuda.grid(1)
    if i < text.size:
        text[i] = 1 + np.int64(random_bits(seed, i) & np.uint64(3))


@cuda.jit(cache=True)
def plant_copies(text, source, length, places, changed_per_mille, seed):
    """Copies of text[source:source + length] at `places`, some letters replaced at random."""
    i = cuda.grid(1)
    if i < places.size * length:
        copy = i // length
        offset = i - copy * length
        at = places[copy] + offset
        bits = random_bits(seed, i)
        letter = text[source + offset]
        if np.int64((bits >> np.uint64(8)) % np.uint64(1000)) < changed_per_mille:
            letter = np.uint8(1 + np.int64(bits & np.uint64(3)))
        if not source <= at < source + length:
            text[at] = letter


@cuda.jit(cache=True)
def put_separators(text, contigs):
    i = cuda.grid(1)
    if i < contigs:
        text[(i + 1) * text.size // contigs - 1] = 0


def simulated_genome(n: int, seed: int = 1):
    """A device text of n letters: 10 % short and 20 % long dispersed repeats of all ages, 1.6 %
    segmental duplications, a satellite array, contigs of equal length."""
    rng = np.random.default_rng(seed)
    text = cuda.device_array(n, np.uint8)
    random_letters[blocks(n), THREADS](seed, text)
    scale = n / 3.1e9

    def plant(length, copies, changed_per_mille):
        # Places on a grid: copies of one family do not lie on each other, so the result does not
        # depend on the order of writes. The original is the first of them.
        places = rng.choice(n // length, max(2, round(copies * scale)), replace=False) * length
        source, others = int(places[0]), cuda.to_device(places[1:].astype(np.int64))
        plant_copies[blocks(others.size * length), THREADS](
            text, source, length, others, changed_per_mille, int(rng.integers(1 << 30))
        )

    for _ in range(20):
        plant(300, 50_000, int(rng.integers(30, 200)))
    for _ in range(40):
        plant(6000, 2500, int(rng.integers(10, 250)))
    for _ in range(round(1000 * scale) + 1):
        plant(min(50_000, n // 40), 0, int(rng.choice([0, 1, 10, 20])))
    start, unit = n // 3, 171
    places = start + unit * np.arange(1, max(2, round(3_000_000 * scale / unit)))
    plant_copies[blocks(places.size * unit), THREADS](
        text, start, unit, cuda.to_device(places), 0, 0
    )
    put_separators[1, THREADS](text, CONTIGS)
    return text


# --- Proof ---------------------------------------------------------------------------------------


@cuda.jit(cache=True)
def invert(suffixes, ranks):
    i = cuda.grid(1)
    if i < suffixes.size:
        ranks[suffixes[i]] = i


@cuda.jit(cache=True)
def count_wrong(text, suffixes, ranks, wrong):
    """Rows that are not the inverse of the ranks, or not larger than the row before."""
    i = cuda.grid(1)
    if i < suffixes.size:
        bad = ranks[suffixes[i]] != i
        if i > 0:
            a, b = np.int64(suffixes[i - 1]), np.int64(suffixes[i])
            if text[a] != text[b]:
                bad = bad or text[a] > text[b]
            elif a + 1 < text.size:
                bad = bad or b + 1 == text.size or ranks[a + 1] > ranks[b + 1]
        if bad:
            cuda.atomic.add(wrong, 0, 1)


@cuda.jit(cache=True)
def compare_neighbours(text, suffixes, rows, outcome):
    """Letter by letter: outcome 0 in order, 1 not, 2 equal for too long to tell."""
    i = cuda.grid(1)
    if i < rows.size:
        a, b = np.int64(suffixes[rows[i] - 1]), np.int64(suffixes[rows[i]])
        outcome[i] = 2
        for k in range(COMPARED_LETTERS):
            if a + k == text.size or b + k == text.size or text[a + k] != text[b + k]:
                in_order = a + k == text.size or (b + k < text.size and text[a + k] < text[b + k])
                outcome[i] = 0 if in_order else 1
                break


def prove(text, suffixes) -> dict:
    n = text.size
    ranks = cuda.device_array(n, np.uint32)
    invert[blocks(n), THREADS](suffixes, ranks)
    wrong = cuda.to_device(np.zeros(1, np.int64))
    count_wrong[blocks(n), THREADS](text, suffixes, ranks, wrong)
    rows = np.random.default_rng(0).integers(1, n, 1_000_000)
    outcome = cuda.device_array(rows.size, np.uint8)
    compare_neighbours[blocks(rows.size), THREADS](text, suffixes, cuda.to_device(rows), outcome)
    outcome = np.bincount(outcome.copy_to_host(), minlength=3)
    return {
        "wrong_rows": int(wrong[0]),
        "random_neighbours": rows.size,
        "random_neighbours_out_of_order": int(outcome[1]),
        f"random_neighbours_equal_for_{COMPARED_LETTERS}_letters": int(outcome[2]),
    }


def prove_bwt(text, suffixes, bwt, samples: int = 100_000) -> int:
    """How many of some random rows have an LF step that is not the row of the suffix one longer."""
    ranks = cuda.device_array(text.size, np.uint32)
    invert[blocks(text.size), THREADS](suffixes, ranks)
    rows = np.random.default_rng(5).integers(0, text.size, samples)
    picked = cuda.device_array(samples, np.uint32)
    rank_of_longer[blocks(samples), THREADS](suffixes, ranks, cuda.to_device(rows), picked)
    steps = [
        lf_step(
            bwt.words,
            bwt.separator_rows,
            bwt.groups,
            bwt.first_rows,
            bwt.text_start,
            row,
        )
        for row in rows
    ]
    return int((np.array(steps) != picked.copy_to_host()).sum())


@cuda.jit(cache=True)
def rank_of_longer(suffixes, ranks, rows, picked):
    i = cuda.grid(1)
    if i < rows.size:
        position = np.int64(suffixes[rows[i]])
        picked[i] = ranks[position - 1 if position else ranks.size - 1]


# --- Time and memory -----------------------------------------------------------------------------


def flush() -> None:
    cuda.synchronize()
    cuda.current_context().memory_manager.deallocations.clear()


def used_memory() -> int:
    memory = cuda.current_context().get_memory_info()
    return memory.total - memory.free


def peak_memory(work) -> int:
    """The most device memory that is seen in use while `work` runs."""
    seen, done = [], threading.Event()

    def poll():
        while not done.is_set():
            seen.append(used_memory())
            time.sleep(0.002)

    poller = threading.Thread(target=poll)
    poller.start()
    work()
    done.set()
    poller.join()
    return max(seen)


def seconds(work) -> float:
    flush()
    start = time.perf_counter()
    result = work()
    cuda.synchronize()
    taken = time.perf_counter() - start
    del result
    flush()
    return taken


def measure(n: int, repeats: int, with_index: bool) -> dict:
    flush()
    idle = used_memory()
    text = simulated_genome(n)
    times = [seconds(lambda: suffix_array_on_device(text)) for _ in range(repeats)]
    peak = peak_memory(lambda: suffix_array_on_device(text)) - idle
    flush()
    suffixes = suffix_array_on_device(text)
    flush()
    line = {
        "letters": n,
        "seconds": [round(t, 4) for t in times],
        "median_seconds": round(statistics.median(times), 4),
        "peak_bytes": peak,
        "planned_bytes": suffix_array_bytes(n),
        **prove(text, suffixes),
    }
    if with_index:
        flush()
        host_text = text.copy_to_host()
        parameters = choose_parameters(n)
        start = time.perf_counter()
        forward = build_bwts(host_text, parameters)[0]
        line["index_seconds"] = round(time.perf_counter() - start, 3)
        line["index_parameters"] = vars(parameters)
        flush()
        line["wrong_lf_steps"] = prove_bwt(text, suffixes, forward)
    return line


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000_000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--index", action="store_true", help="also build the whole index")
    arguments = read_options(parser, "suffix_array.jsonl", sizes=[1_000_000], repeats=1)
    skip_without_gpu()

    start = time.perf_counter()
    suffix_array_on_device(simulated_genome(1_000_000))
    cuda.synchronize()
    machine = {
        "benchmark": "suffix_array",
        "gpu": str(cuda.get_current_device().name),
        "bwarp": bwarp.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "first_call_seconds": round(time.perf_counter() - start, 2),
    }
    for n in arguments.sizes:
        line = json.dumps(machine | measure(n, arguments.repeats, arguments.index))
        print(line, flush=True)
        with arguments.output.open("a") as file:
            file.write(line + "\n")


if __name__ == "__main__":
    main()
