"""Time whole programs on a GPU beside other programs for GPUs, in turns, on the same files.

    python benchmarks/gpu_peers.py -o benchmarks/results/gpu_peers.jsonl
    python benchmarks/gpu_peers.py --parts search --queries queries.fa --database proteins.fa

Parts:
    search  the 10 best hits of proteins in a database of --residues: bwarp search on FASTA and on a
            prepared database, and CUDASW++4 on its own, with and without DPX instructions, BLOSUM62
            and gaps of 10 + n. Preparing the databases is timed, too
    pairs   --pairs pairs of 150 bases against 152 to 277 (local) and 150 (global), with
            CIGARs: bwarp pairs, GASAL2, and for global alignments WFA-GPU. GASAL2 runs with 4
            threads and with all threads without output, and with 4 threads with output

Without --queries and --database, files in ../shared/data are used; if these are missing, proteins
are simulated. A smaller database is repeated: in each copy, the share --changed of the residues is
replaced by random ones of the database. The first round, which may compile, is not counted. The
scores are compared: a line of another program has the number of scores that differ from bwarp's,
and the speed that the program prints itself. One JSON object per program and run is appended to
--output.

The programs must be on the PATH. Some print no version: make the command a link to a file whose
name ends in it, such as gasal2 to gasal2-106d94e.
"""

import csv
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np
from frame.options import SHARED, add_folder, add_threads, new_parser, read_options
from frame.peers import found, version_of
from frame.results import results_of_backend
from frame.simulated import make_proteins
from frame.timing import in_turn, run_program
from parts import gpu_peers
from parts.alignment_pairs import write_pairs

from bwarp.alignment.scoring import matrix_scoring
from bwarp.database_search.database import Database, read_database, sorted_database

QUERIES = SHARED / "protein_queries_cudasw" / "queries.fasta"
DATABASE = SHARED / "protein_swissprot" / "swissprot_25th.fasta.gz"
TOP = 10
#: Amino acids with a code; CUDASW++4 does not tell the other letters apart.
AMINO_ACIDS = 20
#: The modes of pairs: the file of references; scores of a match and costs of a mismatch, of a gap
#: and of each of its bases.
MODES = {"local": ("r.fa", (1, 4, 6, 1)), "global": ("middle.fa", (0, 4, 6, 2))}


def proteins_in(path: Path | None, residues: int, seed: int, scoring) -> Database:
    """Return the proteins of a file; simulated ones without a file."""
    if path:
        return read_database(path, scoring.code_of_byte)
    proteins = make_proteins(residues, seed)
    return sorted_database(proteins, [f"p{seed}_{i}" for i in range(len(proteins))])


def write_proteins(path: Path, proteins: Database, copies: int, changed: float, scoring) -> int:
    """Write copies of proteins as FASTA, all but the first changed; return their residues."""
    rng = np.random.default_rng(115)
    letters = np.frombuffer(scoring.letters, np.uint8)
    names = proteins.names.listed(range(proteins.count))
    usual = proteins.codes[proteins.codes < AMINO_ACIDS]
    with path.open("wb") as file:
        for copy in range(copies):
            codes = np.array(proteins.codes)
            replaced = codes >= AMINO_ACIDS
            if copy:
                replaced |= rng.random(codes.size, dtype=np.float32) < changed
            codes[replaced] = rng.choice(usual, int(replaced.sum()))
            text = letters[codes].tobytes()
            for name, begin, end in zip(
                names, proteins.offsets[:-1], proteins.offsets[1:], strict=True
            ):
                file.write(b">%s.%d\n%s\n" % (name.encode(), copy, text[begin:end]))
    return copies * proteins.codes.size


def bwarp_command(program: str, options, *arguments) -> list:
    engine = ["--backend", options.backend, "--threads", options.threads, "--quiet"]
    return [sys.executable, "-m", "bwarp", program, *engine, *arguments]


def column_of(path: Path, key: str, value: str) -> dict[str, list[int]]:
    """Return the integers of one column of a table, listed by another column."""
    listed: dict[str, list[int]] = {}
    with path.open(newline="") as file:
        for row in csv.DictReader(file, delimiter="\t"):
            listed.setdefault(row[key], []).append(int(row[value]))
    return listed


def differing(ours, theirs) -> int:
    """Return how many scores differ, or are only in one of two lists."""
    unequal = sum(a != b for a, b in zip(ours, theirs, strict=False))
    return unequal + abs(len(ours) - len(theirs))


def timed_runs(commands: dict, folder: Path, rounds: int) -> dict:
    """Run every command in turns; return all its uses but the first, and its last output."""

    def run(command):
        with (folder / "said").open("wb") as file:
            used = run_program(command, stdout=file, cwd=folder)
        return used, (folder / "said").read_text()

    runs = in_turn({key: lambda one=one: run(one) for key, one in commands.items()}, 1 + rounds)
    return {key: ([used for used, _ in rest], rest[-1][1]) for key, (_, *rest) in runs.items()}


def search(options, results):
    scoring = matrix_scoring("BLOSUM62", 10, 1)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        queries = proteins_in(options.queries, 5000, 116, scoring)
        database = proteins_in(options.database, options.residues, 117, scoring)
        copies = max(1, round(options.residues / database.codes.size))
        write_proteins(folder / "q.fa", queries, 1, 0, scoring)
        residues = write_proteins(folder / "d.fa", database, copies, options.changed, scoring)

        def searched(database, table):
            costs = "--gap-open", 10, "--gap-extend", 1, "--top", TOP
            files = "--queries", "q.fa", "--database", database, "-o", table
            return bwarp_command("search", options, *files, *costs)

        # In this order, which every other round turns: a database is there from the first round on.
        commands = {
            ("bwarp", "preparing"): bwarp_command(
                "search-index", options, "d.fa", "-o", "d.search"
            ),
            ("bwarp", "FASTA"): searched("d.fa", "fasta.tsv"),
            ("bwarp", "prepared"): searched("d.search", "prepared.tsv"),
        }
        if found("cudasw4"):
            (folder / "cudasw4").mkdir()
            files = "q.fa", "cudasw4/d"
            commands |= {
                ("cudasw4", "preparing"): ["cudasw4-makedb", "d.fa", "cudasw4/d"],
                ("cudasw4", "prepared"): gpu_peers.cudasw4(*files, "half2.tsv", TOP),
                ("cudasw4", "prepared, DPX"): gpu_peers.cudasw4(*files, "dpx.tsv", TOP, "--dpx"),
            }
        runs = timed_runs(commands, folder, options.rounds)
        ours = column_of(folder / "fasta.tsv", "query", "score")
        tables = {"prepared": folder / "half2.tsv", "prepared, DPX": folder / "dpx.tsv"}
        for (program, what), (used, said) in runs.items():
            more = {}
            if program == "cudasw4" and what in tables:
                theirs = gpu_peers.cudasw4_scores(tables[what].read_text())
                each, total = gpu_peers.cudasw4_gcups(said)
                different = sum(differing(ours[one], theirs.get(one, [])) for one in ours)
                more = {"different": different, "own_gcups": total, "own_gcups_each": each}
            report(results, options, used, program=program, part="search", what=what,
                   queries=queries.count, query_residues=int(queries.codes.size),
                   residues=residues, **more)  # fmt: skip


def pairs(options, results):
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        write_pairs(folder, options.pairs)
        for mode, (references, costs) in MODES.items():
            pairs_of_mode(options, results, folder, mode, references, costs)


def pairs_of_mode(options, results, folder, mode, references, costs):
    match, mismatch, gap, base = costs
    files = "--queries", "q.fa", "--references", references
    scores = "--match", match, "--mismatch", -mismatch, "--gap-open", gap, "--gap-extend", base
    command = bwarp_command("pairs", options, *files, *scores, "--mode", mode, "-o", "out.tsv")
    commands = {("bwarp", "TSV"): command}
    if found("gasal2"):
        for what, threads, more in (
            ("no output, 4 threads", 4, ()),
            ("no output, all threads", options.threads, ()),
            ("its text", 4, ("-p",)),
        ):
            command = gpu_peers.gasal2(mode, costs, threads, ("q.fa", references), *more)
            commands["gasal2", what] = command
    if mode == "global" and found("wfa.affine.gpu"):
        commands["wfa.affine.gpu", "its text"] = gpu_peers.wfa_gpu(
            costs, ("q.fa", references), "wfa.txt"
        )
    runs = timed_runs(commands, folder, options.rounds)
    ours = column_of(folder / "out.tsv", "query", "score")
    listed = [score for (score,) in ours.values()]
    for (program, what), (used, said) in runs.items():
        more = {}
        if program == "gasal2":
            more["own_seconds"] = gpu_peers.gasal2_seconds(used[-1].said)
            if what == "its text":
                theirs = gpu_peers.gasal2_scores(said)
                more["different"] = differing(listed, [theirs.get(query) for query in ours])
        elif program == "wfa.affine.gpu":
            theirs = gpu_peers.wfa_gpu_scores((folder / "wfa.txt").read_text())
            more = {
                "own_seconds": gpu_peers.wfa_gpu_seconds(said),
                "different": differing(listed, theirs),
            }
        report(results, options, used, program=program, part="pairs", what=f"{mode}, {what}",
               pairs=options.pairs, **more)  # fmt: skip


def report(results, options, used, program, **line):
    if program == "bwarp":
        about = {"backend": options.backend, "threads": options.threads}
    else:
        about = {"version": version_of(program)}
    results.add(
        program=program, **about, **line,
        seconds=statistics.median(one.wall for one in used),
        seconds_each=[one.wall for one in used],
        processor_seconds=statistics.median(one.processor for one in used),
        memory_mb=max(one.peak for one in used) >> 20,
    )  # fmt: skip


PARTS = {"search": search, "pairs": pairs}


def main():
    parser = new_parser(__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cuda", help="of bwarp")
    add_threads(parser)
    add_folder(parser)
    parser.add_argument("--queries", type=Path, help="FASTA")
    parser.add_argument("--database", type=Path, help="FASTA")
    parser.add_argument("--residues", type=lambda text: int(float(text)), default=187_700_000)
    parser.add_argument("--changed", type=float, default=0.3, help="share of residues in a copy")
    parser.add_argument("--pairs", type=int, default=500_000)
    parser.add_argument("--rounds", type=int, default=5, help="number of timed runs")
    options = read_options(parser, "gpu_peers.jsonl", residues=20_000, pairs=300, rounds=1)
    if not options.small and QUERIES.exists() and DATABASE.exists():
        options.queries = options.queries or QUERIES
        options.database = options.database or DATABASE
    results = results_of_backend(options.output, options.backend)
    for part in options.parts:
        PARTS[part](options, results)


if __name__ == "__main__":
    main()
