"""A whole search: every query against the database, and where its best hits end."""

from collections.abc import Callable
from functools import partial

import numpy as np

from bwarp.alignment.pairs import Alignments, Ends, PairBatch
from bwarp.alignment.scoring import LOCAL, Scoring, matrix_scoring, nucleotide_scoring
from bwarp.alignment.search.database import Database
from bwarp.alignment.search.top_hits import Hits, top_hits
from bwarp.errors import UsageError
from bwarp.options.aligning import SEARCH

__all__ = [
    "MATRIX",
    "align_hits",
    "check_algorithm",
    "end_hits",
    "find_best_hits",
    "search_scoring",
]

#: The matrix where none is named.
MATRIX = "BLOSUM62"


def search_scoring(
    matrix: str | None,
    match: int | None,
    mismatch: int | None,
    gap_open: int,
    gap_extend: int,
) -> Scoring:
    """The scores of a search: a matrix, or match and mismatch for nucleotides."""
    if match is None:
        if mismatch is not None:
            raise UsageError("--mismatch goes with --match: give both, or a --matrix")
        return matrix_scoring(matrix or MATRIX, gap_open, gap_extend)
    if matrix:
        raise UsageError("--matrix takes the place of --match and --mismatch: give one of both")
    return nucleotide_scoring(match, -3 if mismatch is None else mismatch, gap_open, gap_extend)


def check_algorithm(algorithm: str, backend: str) -> None:
    """Refuse what scores cannot be computed by with a backend, ``"cpu"`` or ``"cuda"``."""
    SEARCH["algorithm"].check(algorithm)
    if algorithm == "prefix-scan" and backend == "cpu":
        raise UsageError(
            "algorithm prefix-scan needs a GPU, and the backend is cpu: use --algorithm profile"
        )


def find_best_hits(
    queries: list[np.ndarray],
    database: Database,
    scoring: Scoring,
    top: int,
    min_score: int,
    backend: str,
    threads: int = 1,
    gpus: int = 1,
    algorithm: str = "profile",
    report: Callable[[int], None] = lambda queries: None,
) -> Hits:
    """The best hits of every query, best first.

    Parameters
    ----------
    queries : list of ndarray, dtype=uint8
        In the codes of `scoring`.
    top, min_score : int
        At most so many hits of a query, and none below this score.
    backend : str
        ``"cpu"`` or ``"cuda"``: the hits are the same.
    gpus : int
        Among how many GPUs the database is shared; ``"prefix-scan"`` uses one.
    algorithm : str
        ``"profile"`` or ``"prefix-scan"``: the hits are the same.
    report : function of int
        Called with how many queries are done.
    """
    check_algorithm(algorithm, backend)
    if algorithm == "prefix-scan":
        from bwarp.alignment.search.prefix_scan_cuda import search_scores
    elif backend == "cuda":
        from bwarp.alignment.search.search_cuda import search_scores

        search_scores = partial(search_scores, gpus=gpus)
    else:
        from bwarp.alignment.search.search_cpu import search_scores
    found = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32))]
    for query, scores in enumerate(search_scores(queries, database, scoring, threads)):
        targets = top_hits(scores, database.order, top, min_score)
        found.append((np.full(targets.size, query), targets, scores[targets]))
        report(query + 1)
    return Hits(*(np.concatenate(column) for column in zip(*found, strict=True)))


def end_hits(pairs: PairBatch, scoring: Scoring, backend: str, threads: int = 1) -> Ends:
    """Where the local alignments of hits end."""
    if backend == "cuda":
        from bwarp.alignment.pairwise.pairs_cuda import pair_ends
    else:
        from bwarp.alignment.pairwise.pairs_cpu import pair_ends
    return pair_ends(pairs, scoring, LOCAL, threads)


def align_hits(pairs: PairBatch, scoring: Scoring, backend: str, threads: int = 1) -> Alignments:
    """The whole local alignments of hits."""
    if backend == "cuda":
        from bwarp.alignment.pairwise.pairs_cuda import pair_alignments
    else:
        from bwarp.alignment.pairwise.pairs_cpu import pair_alignments
    return pair_alignments(pairs, scoring, LOCAL, threads)
