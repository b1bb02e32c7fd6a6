"""Search all queries against a database, and align their best hits."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from bwarp.alignment.pairs import Alignments, Ends, PairBatch, Sequences
from bwarp.alignment.scoring import LOCAL, Scoring, matrix_scoring, nucleotide_scoring
from bwarp.database_search.database import Database
from bwarp.database_search.evalue import KarlinAltschul, bit_scores, evalues
from bwarp.errors import UsageError
from bwarp.options.aligning import SEARCH
from bwarp.runtime.compiled_code import read_only
from bwarp.runtime.threads import joined_stretches

#: Targets per block; the maximum scores of blocks bound the scores of the best targets.
BLOCK = 64


@dataclass(frozen=True)
class Hits:
    """The best hits of queries, grouped by query, best first.

    Attributes
    ----------
    queries, targets : ndarray, shape=(count,), dtype=int64
        The number of the query, and of the sequence in the arrays of the database.
    scores : ndarray, shape=(count,), dtype=int32
    """

    queries: np.ndarray
    targets: np.ndarray
    scores: np.ndarray


def top_hits(scores: np.ndarray, order: np.ndarray, top: int, least: int) -> np.ndarray:
    """Return the best targets of one query: highest score first, then file order.

    Parameters
    ----------
    scores : ndarray, shape=(count,), dtype=int32
    order : ndarray, shape=(count,), dtype=int64
        `order` of the database.
    top, least : int
        The maximum number of targets, and the minimum score.

    Returns
    -------
    targets : ndarray, dtype=int64
    """
    blocks = scores.size // BLOCK
    if blocks > top:
        # Each of the `top` best blocks has a target with at least the score of the worst of them.
        highest = scores[: blocks * BLOCK].reshape(blocks, BLOCK).max(axis=1)
        least = max(least, int(np.partition(highest, -top)[-top]))
    candidates = np.flatnonzero(scores >= least)
    # Combine score and file position into one number, for a single partial sort.
    keys = (-scores[candidates].astype(np.int64) << 32) + order[candidates]
    if candidates.size > top:
        best = np.argpartition(keys, top - 1)[:top]
        candidates, keys = candidates[best], keys[best]
    return candidates[np.argsort(keys, kind="stable")]


def hit_pairs(hits: Hits, queries: list[np.ndarray], database: Database) -> PairBatch:
    """Return the pairs of query and target of all hits, with the residues of each target once."""
    lengths = np.array([query.size for query in queries], np.int64)
    starts = np.cumsum(lengths) - lengths
    # The residues of a batch are copied to the GPU: take only those of hits.
    targets, numbers = np.unique(hits.targets, return_inverse=True)
    target_lengths = (database.offsets[targets + 1] - database.offsets[targets]).astype(np.int64)
    edges = np.zeros(targets.size + 1, np.int64)
    np.cumsum(target_lengths, out=edges[1:])
    return PairBatch(
        Sequences(
            np.concatenate([*queries, np.empty(0, np.uint8)]),
            starts[hits.queries],
            lengths[hits.queries].astype(np.int32),
        ),
        Sequences(
            joined_stretches(read_only(database.codes), database.offsets[targets], edges),
            edges[numbers],
            target_lengths[numbers].astype(np.int32),
        ),
    )


def significance(
    parameters: KarlinAltschul, hits: Hits, queries: list[np.ndarray], database: Database
) -> tuple[np.ndarray, np.ndarray]:
    """Return E-values and bit scores of the hits, both float64."""
    expected = np.empty(hits.scores.size)
    for query in np.unique(hits.queries):
        mine = hits.queries == query
        expected[mine] = evalues(
            parameters, hits.scores[mine], queries[query].size, int(database.offsets[-1]),
            database.count,
        )  # fmt: skip
    return expected, bit_scores(parameters, hits.scores)


#: The default matrix.
MATRIX = "BLOSUM62"


def search_scoring(
    matrix: str | None,
    match: int | None,
    mismatch: int | None,
    gap_open: int,
    gap_extend: int,
) -> Scoring:
    """Return the scores of a search: a matrix, or match and mismatch for nucleotides."""
    if match is None:
        if mismatch is not None:
            raise UsageError("--mismatch requires --match: use both, or --matrix")
        return matrix_scoring(matrix or MATRIX, gap_open, gap_extend)
    if matrix:
        raise UsageError("--matrix cannot be combined with --match or --mismatch")
    return nucleotide_scoring(match, -3 if mismatch is None else mismatch, gap_open, gap_extend)


def check_algorithm(algorithm: str, backend: str) -> None:
    """Raise an error if an algorithm is not available for a backend, ``"cpu"`` or ``"cuda"``."""
    SEARCH["algorithm"].check(algorithm)
    if algorithm == "prefix-scan" and backend == "cpu":
        raise UsageError(
            "algorithm prefix-scan requires a GPU, but the backend is cpu: use --algorithm profile"
        )


def scores_function(algorithm: str, backend: str, gpus: int = 1) -> Callable:
    """Return the function that computes the scores of queries; all compute the same.

    Parameters
    ----------
    algorithm : str
        ``"profile"`` or ``"prefix-scan"``.
    backend : str
        ``"cpu"`` or ``"cuda"``.
    gpus : int
        The number of GPUs that share the database; ``"prefix-scan"`` uses one.
    """
    check_algorithm(algorithm, backend)
    if algorithm == "prefix-scan":
        from bwarp.database_search.prefix_scan_cuda import search_scores
    elif backend == "cuda":
        from bwarp.database_search.search_cuda import search_scores

        return partial(search_scores, gpus=gpus)
    else:
        from bwarp.database_search.search_cpu import search_scores
    return search_scores


def find_best_hits(
    queries: list[np.ndarray],
    database: Database,
    scoring: Scoring,
    top: int,
    min_score: int,
    search_scores: Callable,
    threads: int = 1,
    report: Callable[[int], None] = lambda queries: None,
) -> Hits:
    """Find the best hits of every query, best first.

    Parameters
    ----------
    queries : list of ndarray, dtype=uint8
        In the codes of `scoring`.
    top, min_score : int
        The maximum number of hits per query, and the minimum score.
    search_scores : function
        From `scores_function`.
    report : function of int
        Called with the number of queries done.
    """
    found = [(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int32))]
    for query, scores in enumerate(search_scores(queries, database, scoring, threads)):
        targets = top_hits(scores, database.order, top, min_score)
        found.append((np.full(targets.size, query), targets, scores[targets]))
        report(query + 1)
    return Hits(*(np.concatenate(column) for column in zip(*found, strict=True)))


def end_hits(pairs: PairBatch, scoring: Scoring, backend: str, threads: int = 1) -> Ends:
    """Find the ends of the local alignments of hits."""
    if backend == "cuda":
        from bwarp.alignment.pair_ends_cuda import pair_ends
    else:
        from bwarp.alignment.pair_ends_cpu import pair_ends
    return pair_ends(pairs, scoring, LOCAL, threads)


def align_hits(pairs: PairBatch, scoring: Scoring, backend: str, threads: int = 1) -> Alignments:
    """Compute the whole local alignments of hits."""
    if backend == "cuda":
        from bwarp.alignment.pair_ends_cuda import pair_alignments
    else:
        from bwarp.alignment.pair_ends_cpu import pair_alignments
    return pair_alignments(pairs, scoring, LOCAL, threads)
