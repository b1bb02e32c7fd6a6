"""Time the composition scan with the sizes of Breland et al., and verify it.

    python benchmarks/scan.py --parts paper whole --check
    python benchmarks/scan.py --parts kernel paper streams whole --backend cuda

The paper compared 61,120 queries of 15 to 169 bases with 608 references of 21 to 700,395 bases in 4
m 25 s on a GTX 480 and 24 m 39 s on one core. It does not give the total length of the references;
here the lengths are evenly spaced on a log scale between these limits, 39 million bases in total,
and the lengths of the queries on a linear scale. Sequences are random, so all hits are by chance.

Parts:
    paper    comparisons per second, counting hits at S = 0.95, with each algorithm, on one core, on
             all cores, or on the GPU; on the CPU only every n-th length
    kernel   the GPU kernel of the algorithm `tiles` alone, timed by events
    streams  the paper's Figure 5: its method on the GPU, by number of streams
    whole    the program from FASTA to a table on disk
    mirbase  mature micro-RNAs against hairpins, and against a genome (--mirbase, --genome)

One JSON object per line is appended to --output.
"""

import itertools
import statistics
import tempfile
from fractions import Fraction
from pathlib import Path

import numpy as np
from frame.environment import gpu_name
from frame.options import SHARED, new_parser, read_options
from frame.results import Results
from frame.simulated import script
from frame.timing import run_program, timed

from bwarp.composition.histogram import count_bases, group_queries
from bwarp.composition.references import References, gather_references, window_count
from bwarp.composition.scan import Scan, count_hits, scan_best
from bwarp.io.fastx import read_sequences
from bwarp.runtime.backend import choose_backend
from bwarp.runtime.threads import available_threads
from bwarp.sequence import decode

N_QUERIES, SHORTEST_QUERY, LONGEST_QUERY = 61_120, 15, 169
N_REFERENCES, SHORTEST_REFERENCE, LONGEST_REFERENCE = 608, 21, 700_395
PAPER_GPU_SECONDS, PAPER_CPU_SECONDS = 4 * 60 + 25, 24 * 60 + 39
SIMILARITY = Fraction("0.95")


def paper_shape(n_references, seed=11):
    """Return references, and codes and offsets of queries."""
    rng = np.random.default_rng(seed)
    spread = rng.uniform(np.log(SHORTEST_REFERENCE), np.log(LONGEST_REFERENCE), n_references)
    lengths = np.exp(spread).astype(np.int64)
    lengths[:2] = SHORTEST_REFERENCE, LONGEST_REFERENCE
    references = References(
        [f"reference{i}" for i in range(n_references)],
        rng.integers(0, 4, lengths.sum()).astype(np.uint8),
        np.concatenate([[0], np.cumsum(lengths)]),
    )
    lengths = rng.integers(SHORTEST_QUERY, LONGEST_QUERY + 1, N_QUERIES)
    codes = rng.integers(0, 4, lengths.sum()).astype(np.uint8)
    return references, codes, np.concatenate([[0], np.cumsum(lengths)])


def groups_of(codes, offsets):
    return group_queries(count_bases(codes, offsets), np.diff(offsets))


def comparisons(references, groups):
    return sum(len(group.queries) * window_count(references, group.length) for group in groups)


def total_hits(groups, hits):
    return sum(int(h[g.group_of_query].sum()) for g, h in zip(groups, hits, strict=True))


def add(results: Results, part: str, seconds: list[float], **values) -> None:
    results.add(
        part=part,
        **values,
        seconds=round(statistics.median(seconds), 4),
        all_seconds=[round(second, 4) for second in seconds],
    )


def rates(n_comparisons, seconds):
    return {
        "comparisons": n_comparisons,
        "giga_comparisons_a_second": round(n_comparisons / statistics.median(seconds) / 1e9, 2),
    }


def paper(options, results, references, groups):
    sampled = {
        "classes": max(1, options.every // 5),
        "tiles": options.every,
        "gather": 4 * options.every,
    }
    cores = (1, available_threads()) if options.backend == "cpu" else (available_threads(),)
    for algorithm, every in sampled.items():
        some = groups[:: every if options.backend == "cpu" or algorithm == "gather" else 1]
        for threads in cores:
            scan = Scan(references, SIMILARITY, algorithm, options.backend, threads)
            seconds, hits = timed(lambda scan=scan, some=some: count_hits(scan, some), 2)
            add(
                results, "paper", seconds, algorithm=algorithm, backend=options.backend,
                threads=threads, lengths=len(some), hits=total_hits(some, hits),
                **rates(comparisons(references, some), seconds),
            )  # fmt: skip
    if options.check:
        some = groups[:: 2 * options.every]
        answers = [
            count_hits(Scan(references, SIMILARITY, algorithm, backend, available_threads()), some)
            for algorithm in sampled
            for backend in {"cpu", options.backend}
        ]
        for answer in answers:
            assert all((a == b).all() for a, b in zip(answer, answers[0], strict=True))
        print(f"{len(answers)} ways count the same hits")


def best(options, results, references, groups):
    """Time the search for the ten best windows per query; compare both engines if there are two."""
    scan = Scan(references, SIMILARITY, "auto", options.backend, available_threads())
    seconds, blocks = timed(lambda: list(scan_best(scan, groups, 10)), 2)
    add(results, "best", seconds, backend=options.backend, wanted=10)
    if options.check and options.backend == "cuda":
        scan = Scan(references, SIMILARITY, "classes", "cpu", available_threads())
        for found, expected in zip(blocks, scan_best(scan, groups, 10), strict=True):
            assert (found.edges == expected.edges).all()
            assert (found.positions == expected.positions).all()
            assert (found.distances == expected.distances).all()
        print("best hits are those of the CPU")


def kernel(results, references, groups):
    from bwarp.composition import tiles_cuda
    from bwarp.composition.histogram import largest_distance
    from bwarp.composition.scan import TileScan
    from bwarp.gpu.cuda import cuda

    placed = tiles_cuda.prepare_references(references, np.uint8)
    for group in groups[:: max(1, len(groups) // 4)]:
        tile = TileScan(tiles_cuda, placed, references.codes.size, group.length, 1)
        windows = tile._tile_windows(0, references.codes.size)
        limit = largest_distance(SIMILARITY, group.length)
        largest = np.full(len(group.counts), limit, np.int32)
        queries = tiles_cuda.queries_on_gpu(group.counts, largest)
        block, n_blocks = tiles_cuda._blocks(len(largest))
        n_tiles = -(-references.codes.size // windows)
        hits = cuda.device_array(len(largest) * n_tiles, np.int32)
        tiles = tiles_cuda.Tiles(0, references.codes.size, windows)
        arguments = placed, np.uint32(group.length), queries, tiles, hits
        seconds = []
        for _ in range(7):
            begin, end = cuda.event(), cuda.event()
            begin.record()
            tiles_cuda.count_tiles[n_blocks * n_tiles, block](*arguments)
            end.record()
            end.synchronize()
            seconds.append(cuda.event_elapsed_time(begin, end) / 1000)
        met = len(largest) * window_count(references, group.length)
        add(
            results, "kernel", seconds[2:], length=group.length, queries=len(largest), block=block,
            tera_comparisons_a_second=round(met / statistics.median(seconds[2:]) / 1e12, 3),
        )  # fmt: skip


def streams(results, references, groups):
    from bwarp.composition import gather_cuda
    from bwarp.composition.histogram import largest_distance
    from bwarp.composition.tiles_cpu import TileQueries

    placed = gather_cuda.prepare_references(references, np.uint32)
    group = groups[len(groups) // 2]
    largest = np.full(len(group.counts), largest_distance(SIMILARITY, group.length), np.int32)
    queries = TileQueries(group.length, group.counts, largest, 0, references.codes.size, 1 << 20)
    for n_streams in (1, 2, 4, 8, 16, 22, 32, 64, 100):
        seconds, _ = timed(
            lambda n=n_streams: gather_cuda.count_tile_hits(placed, queries, 1, n), 2
        )
        met = len(largest) * window_count(references, group.length)
        add(
            results, "streams", seconds, streams=n_streams,
            giga_comparisons_a_second=round(met / statistics.median(seconds) / 1e9, 1),
        )  # fmt: skip


def whole(options, results, references, codes, offsets):
    """Time the program, from FASTA files to a table on disk."""
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        with open(folder / "r.fa", "wb") as file:
            for name, a, b in zip(
                references.names, references.starts, references.starts[1:], strict=False
            ):
                file.write(b">%s\n%s\n" % (name.encode(), decode(references.codes[a:b])))
        with open(folder / "q.fa", "wb") as file:
            for i, (a, b) in enumerate(itertools.pairwise(offsets)):
                file.write(b">query%d\n%s\n" % (i, decode(codes[a:b])))
        for what in (["--count-only"], ["--best", "10"]):
            command = script(
                "scan_composition", "--reference", folder / "r.fa", "--queries", folder / "q.fa",
                "-o", folder / "out.tsv", "--similarity", "0.95", "--backend", options.backend,
                *what,
            )  # fmt: skip
            seconds, _ = timed(lambda command=command: run_program(command), 3)
            size = (folder / "out.tsv").stat().st_size
            add(results, "whole", seconds, options=" ".join(what), bytes=size)


def mirbase(options, results):
    folder = Path(options.mirbase)
    matures = gather_references(read_sequences(folder / "mature.fa.gz"))
    groups = groups_of(matures.codes, matures.starts)
    against = {"hairpins": folder / "hairpin.fa.gz"}
    if options.genome:
        against["genome"] = Path(options.genome)
    for name, path in against.items():
        references = gather_references(read_sequences(path))
        cores = (1, available_threads()) if options.backend == "cpu" else (available_threads(),)
        for threads in cores:
            scan = Scan(references, SIMILARITY, "auto", options.backend, threads)
            seconds, hits = timed(lambda scan=scan: count_hits(scan, groups), 2)
            add(
                results, "mirbase", seconds, against=name, threads=threads,
                hits=total_hits(groups, hits), **rates(comparisons(references, groups), seconds),
            )  # fmt: skip


def parse_options():
    parser = new_parser(__doc__)
    parts = ("paper", "best", "kernel", "streams", "whole", "mirbase")
    parser.add_argument("--parts", nargs="+", choices=parts, default=["paper", "best", "whole"])
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--check", action="store_true", help="prove the answers as well")
    parser.add_argument("--every", type=int, default=10, help="do every n-th length where slow")
    parser.add_argument("--references", type=int, default=N_REFERENCES, help="how many")
    parser.add_argument("--mirbase", default=SHARED / "smallrna_mirbase")
    parser.add_argument("--genome", default=None, help="FASTA file to scan for micro-RNAs")
    return read_options(parser, "scan_cpu.jsonl", parts=["paper"], every=5000, references=9)


def main():
    options = parse_options()
    choose_backend(options.backend)
    results = Results(
        options.output,
        benchmark="scan",
        numpy=np.__version__,
        **({"gpu": gpu_name()} if options.backend == "cuda" else {}),
    )
    references, codes, offsets = paper_shape(options.references)
    groups = groups_of(codes, offsets)
    n_comparisons = comparisons(references, groups)
    print(
        f"{references.codes.size:,} bases, {n_comparisons:,} comparisons; in the paper's times "
        f"{n_comparisons / PAPER_CPU_SECONDS / 1e9:.2f} G/s on its CPU, "
        f"{n_comparisons / PAPER_GPU_SECONDS / 1e9:.2f} G/s on its GPU"
    )
    parts = {
        "kernel": lambda: kernel(results, references, groups),
        "paper": lambda: paper(options, results, references, groups),
        "best": lambda: best(options, results, references, groups),
        "streams": lambda: streams(results, references, groups),
        "whole": lambda: whole(options, results, references, codes, offsets),
        "mirbase": lambda: mirbase(options, results),
    }
    for name, part in parts.items():
        if name in options.parts:
            part()


if __name__ == "__main__":
    main()
