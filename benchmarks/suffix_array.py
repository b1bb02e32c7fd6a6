"""Time and verify the suffix array on the GPU, and the index built from it, at genome size.

    python benchmarks/suffix_array.py --sizes 100_000_000 1_000_000_000 3_100_000_000

For each size, a genome with human-like repeats is simulated on the GPU. Its suffix array is sorted
there in parts, with long repeats sorted on the host (median of --repeats). The whole array is
checked: it is a permutation, and each row is smaller than the next (by first base, then by the rank
of the rest); a million random neighbours are also compared base by base. Another sort runs while
the GPU's memory use is polled. With --index the whole index is built from a reference on the host
to arrays on the host. The Burrows-Wheeler blocks are checked by LF steps at random rows. There is
one JSON line per size.
"""

import statistics
import threading
import time

import numpy as np
from frame.environment import gpu_name
from frame.options import new_parser, read_options, skip_without_gpu
from frame.results import Results
from parts.genome_on_gpu import THREADS, blocks, simulated_genome
from parts.seed_data_on_gpu import reference_of_text

from bwarp.gpu.available_memory import free_memory
from bwarp.gpu.cuda import cuda
from bwarp.index.build import suffixes_at_once
from bwarp.index.build_cuda import build_forward
from bwarp.index.packed_text_cpu import PackedText, pack_text
from bwarp.index.parameters import choose_parameters
from bwarp.index.rank import lf_step
from bwarp.index.suffix_array_cpu import sample_suffixes
from bwarp.index.suffix_array_cuda import suffixes_in_parts
from bwarp.runtime.threads import available_threads

COMPARED_BASES = 100_000


def suffix_array(text: PackedText, codes, most: int | None = None):
    """Sort all suffixes on the GPU, in parts as large as memory allows."""
    suffixes, threads = cuda.device_array(text.size, np.uint32), available_threads()
    # The plan includes the text, which is already on the GPU.
    most = most or suffixes_at_once(text.size, 0, 0, free_memory() + text.size)
    for part in suffixes_in_parts(
        text, codes, lambda: sample_suffixes(text, threads), most, threads
    ):
        stop = part.first + part.suffixes.size
        suffixes[part.first : stop].copy_to_device(part.suffixes)
    return suffixes


# --- Proof ---------------------------------------------------------------------------------------


@cuda.jit(cache=True)
def invert(suffixes, ranks):
    i = cuda.grid(1)
    if i < suffixes.size:
        ranks[suffixes[i]] = i


@cuda.jit(cache=True)
def count_misplaced(text, suffixes, ranks, misplaced):
    """Count rows that are not the inverse of the ranks, or not larger than the preceding row."""
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
            cuda.atomic.add(misplaced, 0, 1)


@cuda.jit(cache=True)
def compare_neighbours(text, suffixes, rows, outcome):
    """Compare base by base; outcome 0: in order, 1: not in order, 2: equal up to the limit."""
    i = cuda.grid(1)
    if i < rows.size:
        a, b = np.int64(suffixes[rows[i] - 1]), np.int64(suffixes[rows[i]])
        outcome[i] = 2
        for k in range(COMPARED_BASES):
            if a + k == text.size or b + k == text.size or text[a + k] != text[b + k]:
                in_order = a + k == text.size or (b + k < text.size and text[a + k] < text[b + k])
                outcome[i] = 0 if in_order else 1
                break


def prove(text, suffixes) -> dict:
    n = text.size
    ranks = cuda.device_array(n, np.uint32)
    invert[blocks(n), THREADS](suffixes, ranks)
    misplaced = cuda.to_device(np.zeros(1, np.int64))
    count_misplaced[blocks(n), THREADS](text, suffixes, ranks, misplaced)
    rows = np.random.default_rng(0).integers(1, n, 1_000_000)
    outcome = cuda.device_array(rows.size, np.uint8)
    compare_neighbours[blocks(rows.size), THREADS](text, suffixes, cuda.to_device(rows), outcome)
    outcome = np.bincount(outcome.copy_to_host(), minlength=3)
    return {
        "wrong_rows": int(misplaced[0]),
        "random_neighbours": rows.size,
        "random_neighbours_out_of_order": int(outcome[1]),
        f"random_neighbours_equal_for_{COMPARED_BASES}_letters": int(outcome[2]),
    }


def prove_bwt(text, suffixes, bwt, samples: int = 100_000) -> int:
    """Count random rows whose LF step is not the row of the suffix that is one base longer."""
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
    """Return the peak device memory in use while `work` runs."""
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


def measure(n: int, repeats: int, most: int | None, with_index: bool) -> dict:
    flush()
    idle = used_memory()
    text = simulated_genome(n)
    reference = reference_of_text(text.copy_to_host(), available_threads())
    packed = pack_text(reference, available_threads())
    times = [seconds(lambda: suffix_array(packed, text, most)) for _ in range(repeats)]
    peak = peak_memory(lambda: suffix_array(packed, text, most)) - idle
    flush()
    suffixes = suffix_array(packed, text, most)
    flush()
    line = {
        "letters": n,
        "seconds": [round(t, 4) for t in times],
        "median_seconds": round(statistics.median(times), 4),
        "peak_bytes": peak,
        "suffixes_at_once": most,
        **prove(text, suffixes),
    }
    if with_index:
        flush()
        parameters = choose_parameters(n)
        start = time.perf_counter()
        forward = build_forward(reference, parameters, available_threads())[0]
        line["index_seconds"] = round(time.perf_counter() - start, 3)
        line["index_parameters"] = vars(parameters)
        flush()
        line["wrong_lf_steps"] = prove_bwt(text, suffixes, forward)
    return line


def main() -> None:
    parser = new_parser(__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[100_000_000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--at-once", type=int, help="suffixes of a part (default: all that fit)")
    parser.add_argument("--index", action="store_true", help="also build the whole index")
    arguments = read_options(parser, "suffix_array.jsonl", sizes=[1_000_000], repeats=1)
    skip_without_gpu()

    start = time.perf_counter()
    measure(1_000_000, 1, None, False)
    results = Results(
        arguments.output,
        benchmark="suffix_array",
        gpu=gpu_name(),
        numpy=np.__version__,
        first_call_seconds=round(time.perf_counter() - start, 2),
    )
    for n in arguments.sizes:
        results.add(**measure(n, arguments.repeats, arguments.at_once, arguments.index))


if __name__ == "__main__":
    main()
