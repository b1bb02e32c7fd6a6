#!/usr/bin/env python3
"""Time whole programs on one GPU, from files to files, beside other GPU programs.

    python benchmarks/programs_gpu.py -o benchmarks/results/programs_gpu.jsonl
    python benchmarks/programs_gpu.py --queries queries.fa --database swissprot.fa.gz --copies 25

Parts:
    search   protein queries against a database, ten hits each: from FASTA, and prepared, beside
             CUDASW++4, which only takes a prepared database
    short    the same for one query at a time, of the lengths in --lengths
    pairs    reads of 150 bases against about 210, semi-global with CIGARs, to TSV, beside GASAL2,
             which computes them and writes nothing
    global   reads of 150 bases against their origins, end to end by WFA's costs (mismatch 4, gaps
             6 + 2 n), beside WFA-GPU

Peers take part if they are on PATH. Programs are run in turn, after one run that is not counted.
Without --queries and --database, files in ../shared/data are used; if these are missing, sequences
are simulated. One JSON object per line is appended to --output; `own_tcups` is what a peer says of
its search alone.
"""

import gzip
import re
import statistics
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np
from frame.environment import gpu_name
from frame.options import SHARED, add_folder, new_parser, read_options, skip_without_gpu
from frame.peers import found
from frame.results import Results
from frame.simulated import make_proteins, run_script
from frame.timing import in_turn, run_program

QUERIES = SHARED / "protein_queries_cudasw" / "queries.fasta"
DATABASE = SHARED / "protein_swissprot" / "swissprot_25th.fasta.gz"

RESIDUES = np.frombuffer(b"ARNDCQEGHILKMFPSTWYV", np.uint8)
BASES = np.frombuffer(b"ACGT", np.uint8)

PARTS = ["search", "short", "pairs", "global"]


def main():
    parser = new_parser(__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--queries", type=Path, help="proteins, FASTA")
    parser.add_argument("--database", type=Path, help="proteins, FASTA, plain or gzipped")
    parser.add_argument("--copies", type=int, default=25, help="of the database")
    parser.add_argument("--lengths", type=int, nargs="+", default=[144, 375, 1000])
    parser.add_argument("--pairs", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=3)
    add_folder(parser)
    options = read_options(parser, "programs_gpu.jsonl", copies=1, pairs=1000, rounds=1)
    skip_without_gpu()
    results = Results(options.output, gpu=gpu_name())
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        folder = Path(folder)
        if {"search", "short"} & set(options.parts):
            time_searches(options, folder, results)
        if "pairs" in options.parts:
            time_pairs(options, folder, results)
        if "global" in options.parts:
            time_global(options, folder, results)


def time_searches(options, folder: Path, results: Results) -> None:
    queries, database = proteins(options, folder)
    prepared, theirs = folder / "prepared", folder / "cudasw4"
    peer = found("cudasw4") and found("cudasw4-makedb")
    theirs.mkdir()
    made = {"bwarp": partial(run_script, "index_database", database, "-o", prepared)}
    if peer:
        made["cudasw4"] = partial(run_program, ["cudasw4-makedb", database, theirs / "db"])
    report(results, in_turn(made, 1), part="search", what="prepare the database")
    sets = [("search", queries, f"{len(records(queries))} queries")] * ("search" in options.parts)
    if "short" in options.parts:
        sets += [("short", path, name) for path, name in single(queries, options.lengths, folder)]
    for part, path, name in sets:
        jobs = {
            f"bwarp, {form}": partial(
                run_script, "search_database", "--queries", path, "--database", source,
                "-o", folder / "hits.tsv", "--backend", "cuda",
            )
            for form, source in (("FASTA", database), ("prepared", prepared))
        }  # fmt: skip
        said: list[float] = []
        if peer:
            jobs["cudasw4, prepared"] = partial(cudasw4, path, theirs / "db", said)
        timed_in_turn(results, jobs, options.rounds, part=part, what=name)
        if said:
            results.add(part=part, what=name, program="cudasw4, prepared", own_tcups=max(said))


def cudasw4(queries: Path, database: Path, said: list[float]):
    """Run CUDASW++4, and append the TCUPS that it prints for all queries."""
    with tempfile.NamedTemporaryFile() as output:
        command = ["cudasw4", "--query", queries, "--db", database, "--top", 10, "--dpx"]
        used = run_program([*command, "--verbose"], stdout=output)
        text = Path(output.name).read_text(errors="replace")
    rates = re.findall(r"([\d.e+]+) GCUPS", text)
    said.extend(round(float(rate) / 1000, 2) for rate in rates[-1:])
    return used


def time_pairs(options, folder: Path, results: Results) -> None:
    rng = np.random.default_rng(120)
    first, second = folder / "reads.fa", folder / "windows.fa"
    write_pairs(rng, options.pairs, (152, 277), first, second)
    jobs = {
        "bwarp": partial(
            run_script, "align_pairs", "--queries", first, "--references", second,
            "-o", folder / "pairs.tsv", "--backend", "cuda",
        )
    }  # fmt: skip
    if found("gasal2"):
        command = ["gasal2", "-y", "semi_global", "-t", "-n", 4, first, second]
        jobs["gasal2"] = partial(run_program, command)
    timed_in_turn(results, jobs, options.rounds, part="pairs", what=f"{options.pairs:,} pairs")


def time_global(options, folder: Path, results: Results) -> None:
    rng = np.random.default_rng(121)
    first, second = folder / "ends.fa", folder / "origins.fa"
    write_pairs(rng, options.pairs, (150, 150), first, second)
    costs = ["-A", 0, "-B", 4, "-O", 6, "-E", 2]
    jobs = {
        "bwarp": partial(
            run_script, "align_pairs", "--mode", "global", *costs, "--queries", first,
            "--references", second, "-o", folder / "global.tsv", "--backend", "cuda",
        )
    }  # fmt: skip
    if found("wfa.affine.gpu"):
        command = ["wfa.affine.gpu", "-Q", first, "-T", second, "-g", "4,6,2", "-x"]
        command += ["-b", min(options.pairs, 100_000), "-o", folder / "wfa.txt"]
        jobs["wfa.affine.gpu"] = partial(run_program, command)
    timed_in_turn(results, jobs, options.rounds, part="global", what=f"{options.pairs:,} pairs")


def timed_in_turn(results: Results, jobs: dict, rounds: int, **line) -> None:
    for job in jobs.values():
        job()
    report(results, in_turn(jobs, rounds), **line)


def report(results: Results, used: dict[str, list], **line) -> None:
    """Add a line per program: the median of the wall seconds, and all of them."""
    for program, runs in used.items():
        walls = [run.wall for run in runs]
        results.add(
            **line, program=program, seconds=round(statistics.median(walls), 2), runs=walls,
            processor_seconds=round(statistics.median(run.processor for run in runs), 2),
            memory_mb=round(max(run.peak for run in runs) / 2**20),
        )  # fmt: skip


# --------------------------------------------------------------------------------------------------
# Sequences.


def proteins(options, folder: Path) -> tuple[Path, Path]:
    """Write the queries and the database, each as plain FASTA."""
    if bool(options.queries) != bool(options.database):
        sys.exit("give --queries and --database, or none of them")
    paths = (options.queries, options.database)
    if paths == (None, None) and not options.small and QUERIES.exists() and DATABASE.exists():
        paths = (QUERIES, DATABASE)
    queries, database = folder / "queries.fa", folder / "database.fa"
    if paths == (None, None):
        print("no proteins are here: random ones are taken", file=sys.stderr)
        rng = np.random.default_rng(110)
        write_fasta(queries, [rng.integers(0, 20, length) for length in options.lengths], RESIDUES)
        n_residues = 20_000 if options.small else 7_500_000
        write_fasta(folder / "once.fa", make_proteins(n_residues, 112), RESIDUES)
        paths = queries, folder / "once.fa"
    queries.write_bytes(plain(paths[0]))
    database.write_bytes(plain(paths[1]) * options.copies)
    return queries, database


def plain(path: Path) -> bytes:
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def records(path: Path) -> list[str]:
    return path.read_text().split(">")[1:]


def single(queries: Path, lengths: list[int], folder: Path) -> list[tuple[Path, str]]:
    """Write the first query of each length to a file of its own."""
    written = []
    for length in lengths:
        for record in records(queries):
            if len("".join(record.split("\n")[1:])) == length:
                path = folder / f"query_{length}.fa"
                path.write_text(">" + record)
                written.append((path, f"a query of {length}"))
                break
        else:
            print(f"no query has {length} residues", file=sys.stderr)
    return written


def write_pairs(rng, count: int, lengths: tuple[int, int], first: Path, second: Path) -> None:
    """Write reads of 150 bases with 2 % errors, and the longer sequences they come from."""
    sizes = rng.integers(*lengths, count, endpoint=True)
    references = [rng.integers(0, 4, size) for size in sizes]
    reads = []
    for reference in references:
        start = int(rng.integers(0, reference.size - 149))
        read = reference[start : start + 150].copy()
        changed = rng.random(150) < 0.02
        read[changed] = rng.integers(0, 4, int(changed.sum()))
        reads.append(read)
    write_fasta(first, reads, BASES)
    write_fasta(second, references, BASES)


def write_fasta(path: Path, sequences: list[np.ndarray], letters: np.ndarray) -> None:
    with open(path, "wb") as file:
        for number, codes in enumerate(sequences):
            file.write(b">%d\n%s\n" % (number, letters[codes].tobytes()))


if __name__ == "__main__":
    main()
