#!/usr/bin/env python3
"""Time seeds as Liu & Schmidt did, against bowtie, and by parameters of the index.

    python benchmarks/seeds.py                                   20 Mb simulated, the CPU
    python benchmarks/seeds.py --simulate-bases 3_100_000_000 --backend cuda --one-core-kmers 20000
    python benchmarks/seeds.py --index chr20.index --parts peer --bowtie-index chr20
    python benchmarks/seeds.py --index chr20.index --parts sweep --plot docs/seeds-sweep.svg

Parts:
    tables   the paper's five data sets, k-mers of simulated reads: Table I (the whole run, from
             k-mers to positions, both in memory), Table II (the search alone) and Figure 5
             (searching on the GPU, locating on the CPU), next to the paper's own columns
    peer     find_seeds.py and bowtie -v M -a, from FASTA to a table, in turn
    sweep    k-mers per second and the bytes of the index by occ_rate (the paper's q) and prefix
             length, positions per second by sa_rate (the paper's p)

Each time is the median of --repeats runs, after a first run that is not counted. The tables are for
a million k-mers; with more or fewer (--kmers, --one-core-kmers, --all-cores-kmers) times are scaled
linearly to a million and marked by ~. One JSON object per line is appended to --output.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from frame.environment import gpu_name
from frame.options import add_threads, new_parser, read_options
from frame.peers import found, version_of
from frame.results import Results
from frame.simulated import script
from frame.timing import in_turn, median_seconds, run_program
from parts.seed_kmers import kmers_of_reads, packed
from parts.seed_sweep import sweep

import bwarp
from bwarp.counted import counted
from bwarp.index.build import build_index
from bwarp.index.fm_index import FMIndex
from bwarp.index.parameters import choose_parameters
from bwarp.index.store import load_index, save_index
from bwarp.reference import codes_of, make_reference
from bwarp.seeding.find import find_in_passes, prepare
from bwarp.seeding.hits import SeedOptions
from bwarp.seeding.kmers import KmerBatch
from bwarp.sequence import decode
from bwarp.simulation.genome import GenomeParameters, simulate_genome

#: The paper's data sets: length and mismatches.
DATA_SETS = {"S11": (11, 0), "S15": (15, 0), "S20": (20, 1), "S24": (24, 1), "S30": (30, 2)}

#: Its seconds for a million k-mers: one core, four cores, GPU.
PAPER_WHOLE = {
    "S11": (60.7, 17.2, 10.6),
    "S15": (122.4, 36.1, 12.4),
    "S20": (179.8, 59.1, 17.6),
    "S24": (129.1, 44.3, 15.8),
    "S30": (1094.0, 311.2, 80.9),
}
PAPER_SEARCH = {
    "S11": (5.8, 3.4, 6.8),
    "S15": (7.3, 4.1, 7.2),
    "S20": (139.8, 47.6, 14.9),
    "S24": (107.6, 37.9, 13.4),
    "S30": (1067.6, 309.5, 78.6),
}

A_MILLION = 1_000_000
ONE_CORE, ALL_CORES, GPU, HYBRID = "1 core", "all cores", "GPU", "GPU, located on the CPU"


def parse_options():
    parser = new_parser(__doc__)
    parts = ("tables", "peer", "sweep")
    parser.add_argument("--parts", nargs="+", choices=parts, default=["tables", "peer"])
    parser.add_argument("--index", help="folder of an index (default: of a simulated genome)")
    parser.add_argument("--simulate-bases", type=int, default=20_000_000, metavar="N")
    parser.add_argument("--kmers", type=int, default=A_MILLION, help="of every data set")
    parser.add_argument("--one-core-kmers", type=int, help="on one core (default: all)")
    parser.add_argument("--all-cores-kmers", type=int, help="on all cores (default: all)")
    parser.add_argument("--data-sets", nargs="+", choices=DATA_SETS, default=list(DATA_SETS))
    parser.add_argument("--max-hits", type=int, default=128, help="0 for no limit")
    parser.add_argument("--algorithm", choices=("schemes", "backtracking"), default="schemes")
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    add_threads(parser)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--bowtie-index", help="its base name (default: built here)")
    parser.add_argument("--peer-kmers", type=int, default=200_000)
    parser.add_argument("--plot", type=Path, help="draw the sweep into this SVG file")
    return read_options(
        parser, "seeds_cpu.jsonl", simulate_bases=500_000, kmers=1000, peer_kmers=1000, repeats=1
    )


# --- The reference and the k-mers ----------------------------------------------------------------


def make_index(options) -> FMIndex:
    if options.index:
        return load_index(options.index)
    start = time.perf_counter()
    genome = simulate_genome(GenomeParameters(options.simulate_bases, contigs=24), options.threads)
    reference = make_reference(genome.names, genome.offsets, genome.codes, threads=options.threads)
    parameters = choose_parameters(reference.text_length)
    index = build_index(reference, parameters, options.backend, options.threads, with_reverse=True)
    taken = time.perf_counter() - start
    print(f"{reference.n_bases:,} bases simulated and indexed in {taken:.1f} s", file=sys.stderr)
    return index


def first_kmers(kmers: KmerBatch, n: int | None) -> KmerBatch:
    return KmerBatch(
        kmers.words[:n], kmers.lengths[:n], kmers.queries[:n], kmers.starts[:n], kmers.skipped
    )


# --- The paper's tables --------------------------------------------------------------------------


def tables(options, results: Results, index: FMIndex) -> None:
    codes, offsets = codes_of(index.reference), index.reference.contig_starts
    engines = {
        ONE_CORE: ("cpu", "cpu", 1, options.one_core_kmers),
        ALL_CORES: ("cpu", "cpu", options.threads, options.all_cores_kmers),
    }
    if options.backend == "cuda":
        engines[GPU] = ("cuda", "auto", options.threads, None)
        engines[HYBRID] = ("cuda", "hybrid", options.threads, None)
    whole, search = {}, {}
    for name in options.data_sets:
        k, mismatches = DATA_SETS[name]
        kmers = packed(kmers_of_reads(codes, offsets, k, options.kmers, options.threads))
        for engine, (backend, located, threads, n) in engines.items():
            seeds = SeedOptions(mismatches, options.max_hits, options.algorithm, located)
            part = first_kmers(kmers, n)
            times = time_engine(index, part, seeds, backend, threads, options.repeats)
            results.add(data_set=name, engine=engine, threads=threads, **vars(seeds), **times)
            scale, mark = A_MILLION / part.count, "~" if part.count != A_MILLION else ""
            whole[name, engine] = (mark, scale * times["whole_seconds"])
            search[name, engine] = (mark, scale * times["search_seconds"])
    columns = [ONE_CORE, ALL_CORES, GPU][: len(engines)]
    print(f"\nA million k-mers, at most {options.max_hits or 'any number of'} hits each")
    print_table("Table I: whole run, seconds", whole, columns, PAPER_WHOLE)
    print_table("Table II: search alone, seconds", search, columns, PAPER_SEARCH)
    if HYBRID in engines:
        print_figure_5(whole, options.data_sets)


def time_engine(index, kmers, seeds, backend, threads, repeats) -> dict:
    """Return the seconds of the whole run and of the search alone, and the hits."""
    ready = prepare(index, seeds, backend)
    counts = {}

    def search():
        for found in find_in_passes(ready, kmers, seeds, backend, threads):
            counts["over"] += found.over_kmers.size

    def whole():
        counts.update(over=0, hits=0)
        for found in find_in_passes(ready, kmers, seeds, backend, threads):
            counts["over"] += found.over_kmers.size
            counts["hits"] += sum(hits.count for hits in found.hits)

    whole_seconds = median_seconds(whole, repeats)
    found = dict(counts)
    return {
        "kmers": kmers.count,
        "whole_seconds": round(whole_seconds, 5),
        "search_seconds": round(median_seconds(search, repeats), 5),
        **found,
        **({"plan": str(ready.plan)} if backend == "cuda" else {}),
    }


def print_table(title, seconds, columns, paper) -> None:
    print(f"\n{title}\n")
    print(f"{'':8}{'bwarp':>{13 * len(columns)}}{'the paper':>26}{'its GPU /':>14}")
    heads = [*columns, "1 core", "4 cores", "GPU", columns[-1]]
    widths = [13] * len(columns) + [10, 8, 8, 14]
    print(f"{'':8}" + "".join(f"{h:>{w}}" for h, w in zip(heads, widths, strict=True)))
    for name in dict.fromkeys(name for name, _ in seconds):
        ours = [seconds[name, column] for column in columns]
        cells = [f"{mark}{value:.4g}" for mark, value in ours]
        cells += [f"{value:g}" for value in paper[name]] + [f"{paper[name][2] / ours[-1][1]:.1f}"]
        print(f"{name:8}" + "".join(f"{c:>{w}}" for c, w in zip(cells, widths, strict=True)))


def print_figure_5(whole, names) -> None:
    print("\nFigure 5: speedup of the GPU, located on the CPU, over the CPU\n")
    print(f"{'':8}{ONE_CORE:>13}{ALL_CORES:>13}")
    for name in names:
        ratios = [whole[name, e][1] / whole[name, HYBRID][1] for e in (ONE_CORE, ALL_CORES)]
        print(f"{name:8}" + "".join(f"{ratio:13.1f}" for ratio in ratios))


# --- Against bowtie ------------------------------------------------------------------------------


def peer(options, results: Results, index: FMIndex) -> None:
    if not found("bowtie"):
        return
    codes, offsets = codes_of(index.reference), index.reference.contig_starts
    with tempfile.TemporaryDirectory() as work:
        folder = options.index or Path(work, "index")
        if not options.index:
            save_index(index, folder, options.threads)
        base = options.bowtie_index or build_for_bowtie(index, codes, Path(work), options.threads)
        for name in options.data_sets:
            k, mismatches = DATA_SETS[name]
            kmers = kmers_of_reads(codes, offsets, k, options.peer_kmers, options.threads)
            compare(options, results, name, kmers, mismatches, folder, base, Path(work))


def build_for_bowtie(index, codes, work: Path, threads: int) -> str:
    fasta = work / "reference.fa"
    starts = index.reference.contig_starts
    with fasta.open("wb") as file:
        for i, name in enumerate(index.reference.names):
            file.write(f">{name}\n".encode() + decode(codes[starts[i] : starts[i + 1]]) + b"\n")
    command = ["bowtie-build", "-q", "--threads", str(threads), fasta, work / "reference"]
    subprocess.run(command, check=True)
    return str(work / "reference")


def compare(options, results, name, kmers, mismatches, index, base, work: Path) -> None:
    n, k = kmers.shape
    queries, threads = work / "queries.fa", str(options.threads)
    queries.write_bytes(b"".join(b">q%d\n%s\n" % (i, decode(kmers[i])) for i in range(n)))
    ours, theirs = work / "hits.tsv", work / "hits.txt"
    search = ["--mismatches", mismatches, "--max-hits", 0]
    engine = ["--threads", threads, "--backend", options.backend]
    commands = {
        "bwarp": script("find_seeds", "--index", index, "--queries", queries, "-o", ours)
        + [*search, *engine],
        "bowtie": ["bowtie", "-v", mismatches, "-a", "-p", threads, "--suppress", "5,6,7"]
        + ["-f", base, queries, theirs],
    }
    jobs = {program: partial(run_program, command) for program, command in commands.items()}
    runs = {program: used[1:] for program, used in in_turn(jobs, options.repeats + 1).items()}
    hits = {program: count_lines(path) for program, path in (("bwarp", ours), ("bowtie", theirs))}
    hits["bwarp"] -= 1
    if len(set(hits.values())) > 1:
        raise SystemExit(f"{name}: the hits differ: {hits}")
    versions = {"bwarp": bwarp.__version__, "bowtie": version_of("bowtie")}
    medians = {
        program: [statistics.median(column) for column in zip(*measured, strict=True)]
        for program, measured in runs.items()
    }
    for program, (seconds, processor_seconds, peak) in medians.items():
        results.add(
            what=f"{n:,} {k}-mers, {counted(mismatches, 'mismatch')}, all {hits[program]:,} hits",
            program=program,
            version=versions[program],
            threads=options.threads,
            seconds=seconds,
            processor_seconds=processor_seconds,
            peak_mb=round(peak / 1e6, 1),
            all_seconds=[run.wall for run in runs[program]],
        )
    wall, processor = (medians["bowtie"][i] / medians["bwarp"][i] for i in (0, 1))
    print(
        f"{name}: {hits['bwarp']:,} hits; bowtie takes {wall:.2f} times as long, "
        f"{processor:.2f} times in processor time"
    )


def count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(lambda: file.read(1 << 24), b""))


def main() -> None:
    options = parse_options()
    index = make_index(options)
    about = {
        "benchmark": "seeds",
        "reference": Path(options.index).name if options.index else "simulated",
        "bases": index.reference.n_bases,
        "occ_rate": index.occ_rate,
        "sa_rate": index.sa_rate,
        "prefix_length": index.prefix_length,
        **({"gpu": gpu_name()} if options.backend == "cuda" else {}),
    }
    results = Results(options.output, **about)
    parts = {"tables": tables, "peer": peer, "sweep": sweep}
    for part in options.parts:
        parts[part](options, results, index)


if __name__ == "__main__":
    main()
