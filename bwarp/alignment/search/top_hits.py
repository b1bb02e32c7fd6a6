"""The best hits of a database search, and their lines."""

from dataclasses import dataclass

import numpy as np

from bwarp.alignment.pairs import (
    DELETION,
    EQUAL,
    INSERTION,
    Alignments,
    PairBatch,
    Sequences,
    sums_of_cigars,
)
from bwarp.alignment.search.database import Database
from bwarp.alignment.search.evalue import KarlinAltschul, bit_scores, evalues

__all__ = [
    "COLUMNS",
    "SIGNIFICANCE",
    "Hits",
    "blast_lines",
    "hit_lines",
    "hit_pairs",
    "significance",
    "top_hits",
]

#: The columns of the table, and those of E-values.
COLUMNS = ("query", "target", "score", "query_end", "target_end")
SIGNIFICANCE = ("evalue", "bits")


@dataclass(frozen=True)
class Hits:
    """The best hits of some queries, query after query, best first.

    Attributes
    ----------
    queries, targets : ndarray, shape=(count,), dtype=int64
        Number of the query, and of the sequence in the database's arrays.
    scores : ndarray, shape=(count,), dtype=int32
    """

    queries: np.ndarray
    targets: np.ndarray
    scores: np.ndarray


def top_hits(scores: np.ndarray, order: np.ndarray, top: int, least: int) -> np.ndarray:
    """The best targets of one query: highest score first, then first in the file.

    Parameters
    ----------
    scores : ndarray, shape=(count,), dtype=int32
    order : ndarray, shape=(count,), dtype=int64
        The database's `order`.
    top, least : int
        At most so many, and none below this score.

    Returns
    -------
    targets : ndarray, dtype=int64
    """
    # Score and position in the file as one number, for a single partial sort.
    keys = (-scores.astype(np.int64) << 32) + order
    candidates = np.flatnonzero(scores >= least)
    if candidates.size > top:
        candidates = candidates[np.argpartition(keys[candidates], top - 1)[:top]]
    return candidates[np.argsort(keys[candidates], kind="stable")]


def hit_pairs(hits: Hits, queries: list[np.ndarray], database: Database) -> PairBatch:
    """Each hit's query with its target, as views."""
    lengths = np.array([query.size for query in queries], np.int64)
    starts = np.cumsum(lengths) - lengths
    return PairBatch(
        Sequences(
            np.concatenate([*queries, np.empty(0, np.uint8)]),
            starts[hits.queries],
            lengths[hits.queries].astype(np.int32),
        ),
        Sequences(
            database.codes,
            database.offsets[hits.targets],
            np.diff(database.offsets)[hits.targets].astype(np.int32),
        ),
    )


def significance(
    parameters: KarlinAltschul, hits: Hits, queries: list[np.ndarray], database: Database
) -> tuple[np.ndarray, np.ndarray]:
    """E-values and bit scores of the hits, float64 both."""
    expected = np.empty(hits.scores.size)
    for query in np.unique(hits.queries):
        mine = hits.queries == query
        expected[mine] = evalues(
            parameters, hits.scores[mine], queries[query].size, int(database.offsets[-1]),
            database.count,
        )  # fmt: skip
    return expected, bit_scores(parameters, hits.scores)


def hit_lines(query_names: list[str], target_names: list[str], columns: list[np.ndarray]) -> str:
    """Lines of query, target and the columns; floats with three significant digits."""
    texts = [
        [f"{v:.3g}" for v in column.tolist()]
        if column.dtype.kind == "f"
        else [str(v) for v in column.tolist()]
        for column in columns
    ]
    rows = zip(query_names, target_names, *texts, strict=True)
    return "".join(["\t".join(row) + "\n" for row in rows])


def blast_lines(
    query_names: list[str],
    target_names: list[str],
    alignments: Alignments,
    expected: np.ndarray,
    bits: np.ndarray,
) -> str:
    """BLAST's tabular form: identity, length, mismatches, gaps, ends from 1, E-value, bits."""
    lengths = (alignments.cigar >> 4).astype(np.int64)
    operations = alignments.cigar & 15
    gaps = (operations == DELETION) | (operations == INSERTION)
    columns, identical, gap_residues, openings = (
        sums_of_cigars(values, alignments.cigar_offsets)
        for values in (lengths, lengths * (operations == EQUAL), lengths * gaps, gaps)
    )
    mismatches = columns - identical - gap_residues
    lines = []
    for i, (query, target) in enumerate(zip(query_names, target_names, strict=True)):
        identity = 100 * identical[i] / columns[i]
        lines.append(
            f"{query}\t{target}\t{identity:.3f}\t{columns[i]}\t{mismatches[i]}\t{openings[i]}\t"
            f"{alignments.query_starts[i] + 1}\t{alignments.query_ends[i]}\t"
            f"{alignments.reference_starts[i] + 1}\t{alignments.reference_ends[i]}\t"
            f"{blast_evalue(float(expected[i]))}\t{bits[i]:.1f}\n"
        )
    return "".join(lines)


def blast_evalue(value: float) -> str:
    """An E-value as BLAST writes it in tables."""
    if value < 1e-180:
        return "0.0"
    if value < 0.0009:
        return f"{value:.2e}"
    if value < 10:
        return f"{value:.3f}" if value < 1 else f"{value:.1f}"
    return f"{value:.0f}"
