"""Time database search against parasail, and Chang & Chen's workload, and verify the scores.

    python benchmarks/search.py --queries queries.fasta --database swissprot.fasta.gz
    python benchmarks/search.py --parts chang
    python benchmarks/search.py --backend cuda --repeat 30 --queries ... --database ...
    python benchmarks/search.py --parts tiles --query-lengths 144,375,1000 --residues 187.7e6

Parts:
    proteins   each query against the database with BLOSUM62, gaps 10 + n, on one core (or
               --threads, or the GPU), and parasail's fastest striped profile on every --every-th
               sequence in the same run; the scores must be equal. The cost of calling parasail from
               Python is subtracted from its time
    tiles      on a GPU: queries of --query-lengths against simulated proteins, alone and with
               another of the same length, by every tile that takes little more work than the best
               one; the kernels alone, the search of a database on the GPU, and with its copy
    chang      a query of 128 against 100 sequences of 128 to 8192 (Chang & Chen, Table III; linear
               gaps of 4), next to the published times of a Tesla C1060

Without --queries and --database, files in ../shared/data are used; if these are missing, sequences
are simulated. One JSON object per line is appended to --output.
"""

import statistics
import sys
import time

import numpy as np
from frame.options import SHARED, new_parser, read_options
from frame.peers import found
from frame.results import Results
from frame.simulated import make_proteins
from frame.timing import median_seconds, timed

from bwarp.alignment.scoring import matrix_scoring
from bwarp.database_search.database import Database, read_database, sorted_database

QUERIES = SHARED / "protein_queries_cudasw" / "queries.fasta"
DATABASE = SHARED / "protein_swissprot" / "swissprot_25th.fasta.gz"

#: Table III: length of the 100 sequences, then milliseconds of CUDASW++'s first and second
#: kernel, of one CPU thread, and of the authors' method.
CHANG_TABLE_3 = {
    128: (9.09, 6.18, 69.69, 1.65),
    256: (12.80, 6.67, 135.71, 2.71),
    512: (20.36, 10.00, 233.25, 4.93),
    1024: (34.14, 16.86, 482.53, 9.66),
    2048: (65.35, 25.70, 872.98, 19.14),
    4096: (126.00, 44.80, 2244.11, 38.26),
    8192: (246.88, 85.70, 4680.05, 76.13),
}


def engine(backend):
    if backend == "cuda":
        from bwarp.database_search.search_cuda import search_scores
    else:
        from bwarp.database_search.search_cpu import search_scores
    return search_scores


def queries_and_database(options, scoring) -> tuple[Database, Database]:
    """Return the given files, those in ../shared/data, or random proteins."""
    if bool(options.queries) != bool(options.database):
        raise SystemExit("give --queries and --database, or none of them")
    paths = (options.queries, options.database)
    if paths == (None, None) and not options.small and QUERIES.exists() and DATABASE.exists():
        paths = (QUERIES, DATABASE)
    if paths != (None, None):
        queries, database = (read_database(path, scoring.code_of_byte) for path in paths)
        return queries, database
    print("no proteins are here: random ones are taken", file=sys.stderr)
    rng = np.random.default_rng(110)
    queries = [rng.integers(0, 20, length).astype(np.uint8) for length in (144, 375, 1000)]
    proteins = make_proteins(options.residues, 112)
    return (
        sorted_database(queries, [f"random_{query.size}" for query in queries]),
        sorted_database(proteins, [f"p{i}" for i in range(len(proteins))]),
    )


def repeated(database, times):
    """Return the database repeated `times` times."""
    if times == 1:
        return database
    sequences = [database.sequence(i) for i in range(database.count)] * times
    return sorted_database(sequences, database.names.listed(range(database.count)) * times)


def proteins(options, results):
    scoring = matrix_scoring("BLOSUM62", 10, 1)
    search_scores = engine(options.backend)
    queries, database = queries_and_database(options, scoring)
    database = repeated(database, options.repeat)
    residues = int(database.offsets[-1])
    sample = np.arange(0, database.count, options.every * options.repeat)
    texts = peer_texts(scoring, database, sample)
    every = [queries.sequence(i) for i in range(queries.count)]
    for name, query in zip(queries.names.listed(range(queries.count)), every, strict=True):
        seconds, (scores,) = timed(
            lambda query=query: list(search_scores([query], database, scoring, options.threads)),
            options.runs,
        )
        ours = query.size * residues / statistics.median(seconds) / 1e9
        beside = {}
        if found("parasail"):
            peer, peer_gcups = parasail_profile(scoring, query, texts, scores[sample])
            beside = {
                "parasail": peer,
                "parasail_gcups": round(peer_gcups, 2),
                "times_parasail": round(ours / peer_gcups, 1),
            }
        results.add(
            part="proteins", query=name, length=query.size, residues=residues, gcups=round(ours, 2),
            **beside,
        )  # fmt: skip
    seconds = median_seconds(
        lambda: list(search_scores(every, database, scoring, options.threads)), options.runs
    )
    cells = sum(query.size for query in every) * residues
    results.add(part="proteins", query="all", length=sum(q.size for q in every), residues=residues,
               gcups=round(cells / seconds / 1e9, 2))  # fmt: skip


def tiles(options, results):
    from frame.gpu_timing import KernelClock

    from bwarp.database_search import search_cuda

    scoring = matrix_scoring("BLOSUM62", 11, 1)
    rng = np.random.default_rng(113)
    proteins = make_proteins(options.residues, 114)
    database = sorted_database(proteins, [""] * len(proteins))
    residues = int(database.offsets[-1])
    loaded = search_cuda.DatabaseOnGpus(database, options.threads)
    chosen = search_cuda.TILES

    def report(queries, seconds, **what):
        cells = sum(query.size for query in queries) * residues
        results.add(part="tiles", queries=len(queries), length=queries[0].size, residues=residues,
                    tcups=round(cells / seconds / 1e12, 3), **what)  # fmt: skip

    for length in options.query_lengths:
        query = rng.integers(0, 20, length).astype(np.uint8)
        for queries in ([query], [query, query[::-1].copy()]):
            expected = list(loaded.search_scores(queries, scoring))
            targets = 2 // len(queries)
            for tile in worth_timing(search_cuda, length, targets):
                search_cuda.TILES = chosen | {targets: (tile,)}
                found = list(loaded.search_scores(queries, scoring))
                if not np.array_equal(found, expected):
                    raise SystemExit(f"scores differ with {tile}")
                seconds = []
                for _ in range(options.runs):
                    with KernelClock() as clock:
                        list(loaded.search_scores(queries, scoring))
                    seconds.append(clock.total)
                report(queries, statistics.median(seconds), what="kernels", **tile._asdict())
            search_cuda.TILES = chosen
            seconds = median_seconds(
                lambda queries=queries: list(loaded.search_scores(queries, scoring)), options.runs
            )
            report(queries, seconds, what="search")
            seconds = median_seconds(
                lambda queries=queries: list(
                    search_cuda.search_scores(queries, database, scoring, options.threads)
                ),
                options.runs,
            )
            report(queries, seconds, what="copy and search")


def worth_timing(search_cuda, length, targets):
    """Return the tiles that take up to a third more work than the best."""
    work = {tile: search_cuda._work(tile, length) for tile in search_cuda.TILES[targets]}
    return [tile for tile in work if 3 * work[tile] <= 4 * min(work.values())]


def peer_texts(scoring, database: Database, sample):
    letters = np.frombuffer(scoring.letters, np.uint8)
    return [letters[database.sequence(i)].tobytes().decode() for i in sample]


def parasail_profile(scoring, query, texts, expected):
    """Compare scores; return the name and net GCUPS of parasail's fastest striped profile."""
    import parasail

    matrix = parasail.matrix_create(scoring.letters.decode(), 1, 0)
    for row in range(len(scoring.letters)):
        for column in range(len(scoring.letters)):
            matrix[row, column] = int(scoring.matrix[row, column])
    letters = np.frombuffer(scoring.letters, np.uint8)
    query_text = letters[query].tobytes().decode()
    best = ("", 0.0)
    for width in ("16", "sat"):
        function = getattr(parasail, f"sw_striped_profile_{width}")
        profile = getattr(parasail, f"profile_create_{width}")(query_text, matrix)
        short = getattr(parasail, f"profile_create_{width}")("A", matrix)
        start = time.perf_counter()
        scores = [function(profile, text, 11, 1).score for text in texts]
        middle = time.perf_counter()
        for _ in texts:
            function(short, "A", 11, 1)
        calls = time.perf_counter() - middle
        if not np.array_equal(scores, expected):
            raise SystemExit("scores differ from parasail's")
        gcups = query.size * sum(map(len, texts)) / (middle - start - calls) / 1e9
        best = max(best, (f"striped_profile_{width}", gcups), key=lambda entry: entry[1])
    return best


def chang(options, results):
    rng = np.random.default_rng(111)
    scoring = matrix_scoring("BLOSUM62", 0, 4)
    search_scores = engine(options.backend)
    query = rng.integers(0, 20, 128, dtype=np.uint8)
    for length, published in CHANG_TABLE_3.items():
        sequences = list(rng.integers(0, 20, (100, length), dtype=np.uint8))
        database = sorted_database(sequences, [""] * 100)
        seconds = median_seconds(
            lambda database=database: list(
                search_scores([query], database, scoring, options.threads)
            ),
            9,
        )
        first, second, cpu, method = published
        ours = 1e3 * seconds
        results.add(
            part="chang", length=length, milliseconds=round(ours, 3),
            gcups=round(12.8 * length / ours / 1e3, 2), published_method=method,
            published_cudasw_kernels=[first, second], published_cpu=cpu,
            times_published=round(method / ours, 1),
        )  # fmt: skip


PARTS = {"proteins": proteins, "tiles": tiles, "chang": chang}


def main():
    parser = new_parser(__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=["proteins", "chang"])
    parser.add_argument("--backend", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--queries", help="FASTA")
    parser.add_argument("--database", help="FASTA")
    parser.add_argument(
        "--residues", type=lambda text: int(float(text)), default=8_000_000,
        help="of the simulated database",
    )  # fmt: skip
    parser.add_argument(
        "--query-lengths", type=lambda text: [int(word) for word in text.split(",")],
        default=[144, 375, 1000], help="of the queries of tiles",
    )  # fmt: skip
    parser.add_argument("--repeat", type=int, default=1, help="the database so many times over")
    parser.add_argument("--every", type=int, default=20, help="parasail takes every n-th sequence")
    parser.add_argument("--runs", type=int, default=3)
    options = read_options(parser, "search_cpu.jsonl", parts=["proteins"], residues=20_000, runs=1)
    results = Results(
        options.output,
        benchmark="search",
        backend=options.backend,
        threads=options.threads,
    )
    for part in options.parts:
        PARTS[part](options, results)


if __name__ == "__main__":
    main()
