"""Align queries with the windows that a scan flags, on both strands: one alignment per locus.

The reverse complement of a query has its counts in reverse order (A C G T is T G C A), so a scan
for a query and its reverse complement finds windows of both strands. A window is aligned on the
strand that flagged it:

    reference   ........[===window===]........         as long as the query
                     [==|============|==]              extended by D bases on both sides
    query               ------------>                  all of it, anywhere in there

D is the maximum distance of a hit. An alignment with at most D / 2 edits is never missed if a
window fits at its start: each edit adds at most 2 to the distance of that window, so the window is
a hit; and the alignment ends at most D / 2 bases after it.

Neighbouring windows see the same locus, all or part of it. A window that cuts off the left of a
locus finds a worse alignment with the same end, and one that cuts off the right finds a worse
alignment with the same start. Therefore, of all alignments of a query on a strand with the same
end, only the best is kept, and then only the best of those with the same start. Only alignments
kept by the first step are traced.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from types import ModuleType
from typing import NamedTuple

import numpy as np

from bwarp.alignment.pair_text import cigar_texts
from bwarp.alignment.pairs import EQUAL, PairBatch, Sequences, sums_of_cigars
from bwarp.alignment.scoring import FITTING, Scoring, nucleotide_scoring
from bwarp.composition.histogram import largest_distance
from bwarp.composition.hit_text import rows_of_block
from bwarp.composition.references import HitBlock, References
from bwarp.composition.scan import Scan
from bwarp.errors import UsageError
from bwarp.runtime.threads import bounded_ranges
from bwarp.sequence import reverse_complement

#: Bases of extended windows that are aligned at once.
_BASES_AT_ONCE = 1 << 24


class AlignmentRules(NamedTuple):
    """How windows are aligned, and which alignments are reported.

    Attributes
    ----------
    scoring : Scoring
    min_score : int
    top : int or None
        The maximum number of alignments per query.
    """

    scoring: Scoring
    min_score: int
    top: int | None


def alignment_rules(
    align: bool,
    *,
    min_score: int | None = None,
    top: int | None = None,
    match: int | None = None,
    mismatch: int | None = None,
    gap_open: int | None = None,
    gap_extend: int | None = None,
) -> AlignmentRules | None:
    """Return the rules for the options of bwarp scan, or None without `align`.

    Raises
    ------
    UsageError
        If another option is given without `align`.
    """
    scores = {"match": match, "mismatch": mismatch, "gap_open": gap_open, "gap_extend": gap_extend}
    if align:
        defaults = {"match": 1, "mismatch": -4, "gap_open": 6, "gap_extend": 1}
        chosen = defaults | {name: score for name, score in scores.items() if score is not None}
        least = 1 if min_score is None else min_score
        return AlignmentRules(nucleotide_scoring(**chosen), least, top)
    for name, value in {"min_score": min_score, "top": top, **scores}.items():
        if value is not None:
            raise UsageError(f"--{name.replace('_', '-')} requires --align")
    return None


# Queries and their reverse complements: query q is number 2 * q, its reverse complement 2 * q + 1.


def both_strands(counts: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the base counts and the lengths of both strands of each query.

    Parameters
    ----------
    counts : ndarray, shape=(n, 4), dtype=uint16
    lengths : ndarray, shape=(n,), dtype=int64
    """
    return np.stack([counts, counts[:, ::-1]], axis=1).reshape(-1, 4), np.repeat(lengths, 2)


def strand_sequences(codes: np.ndarray, offsets: np.ndarray) -> Sequences:
    """Return both strands of each query.

    Parameters
    ----------
    codes : ndarray, shape=(total,), dtype=uint8
    offsets : ndarray, shape=(n + 1,), dtype=int64
    """
    # The reverse complement of all queries has those of the queries, the last one first.
    starts = np.stack([offsets[:-1], 2 * codes.size - offsets[1:]], axis=1)
    lengths = np.repeat(np.diff(offsets), 2).astype(np.int32)
    return Sequences(
        np.concatenate([codes, reverse_complement(codes)]), starts.reshape(-1), lengths
    )


class WindowAlignments(NamedTuple):
    """Alignments of whole queries, the best of a query first.

    Attributes
    ----------
    queries : ndarray, shape=(n,), dtype=int64
    reverse : ndarray, shape=(n,), dtype=bool
        Whether the reverse complement of the query is aligned.
    references : ndarray, shape=(n,), dtype=int64
    starts, ends : ndarray, shape=(n,), dtype=int64
        0-based, half-open, in the reference.
    scores : ndarray, shape=(n,), dtype=int32
    edits : ndarray, shape=(n,), dtype=int32
        Mismatches plus lengths of gaps.
    matches, columns : ndarray, shape=(n,), dtype=int64
        Equal bases, and bases including those in gaps.
    cigars : ndarray, shape=(n,), dtype=object
        Text with the operations =, X, I and D.
    """

    queries: np.ndarray
    reverse: np.ndarray
    references: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    scores: np.ndarray
    edits: np.ndarray
    matches: np.ndarray
    columns: np.ndarray
    cigars: np.ndarray


class _Found(NamedTuple):
    """Scores and ends (in the concatenated references) of alignments with extended windows, ordered
    by query; `queries` has the numbers of strands.
    """

    queries: np.ndarray
    scores: np.ndarray
    ends: np.ndarray
    window_starts: np.ndarray
    window_lengths: np.ndarray

    def rows(self, chosen) -> "_Found":
        return _Found(*(column[chosen] for column in self))


@dataclass(frozen=True)
class WindowAligner:
    """Align the hits of a scan of `strand_sequences`.

    Attributes
    ----------
    engine : module
        `pair_ends_cpu` or `pair_ends_cuda`.
    codes : array of uint8
        The concatenated references, where the engine works.
    references : References
    queries : Sequences
        Both strands of the queries; the codes are where the engine works.
    similarity : Fraction
        Of the scan, which determines the extension of windows.
    rules : AlignmentRules
    threads : int
    """

    engine: ModuleType
    codes: object
    references: References
    queries: Sequences
    similarity: Fraction
    rules: AlignmentRules
    threads: int

    def align(self, blocks: Iterable[HitBlock]) -> Iterator[WindowAlignments]:
        """Yield the alignments of the hits in some blocks, in the order of their queries."""
        for found in _whole_queries(map(self._find_ends, blocks)):
            yield self._trace(found)

    def _find_ends(self, block: HitBlock) -> _Found:
        """Find where alignments end; keep the best of each end."""
        margin = largest_distance(self.similarity, block.length)
        most = max(1, _BASES_AT_ONCE // (block.length + 2 * margin))
        parts = [_nothing()]
        for rows in rows_of_block(block, self.references.starts, most):
            first, last = (self.references.starts[rows.references + i] for i in (0, 1))
            positions = first + rows.positions
            starts = np.maximum(positions - margin, first)
            lengths = np.minimum(positions + block.length + margin, last) - starts
            pairs = self._pairs(rows.queries, starts, lengths)
            ends = self.engine.pair_ends(pairs, self.rules.scoring, FITTING, self.threads)
            found = _Found(
                rows.queries.astype(np.int64), ends.scores, starts + ends.reference_ends, starts,
                lengths,
            )  # fmt: skip
            parts.append(_best_of_ends(found.rows(ends.scores >= self.rules.min_score)))
        return _best_of_ends(_joined(parts))

    def _trace(self, found: _Found) -> WindowAlignments:
        """Trace alignments of whole queries; keep the best of each start, sorted."""
        bounds = np.concatenate([[0], np.cumsum(found.window_lengths)])
        parts = [
            self._traced(found.rows(slice(first, last)))
            for first, last in bounded_ranges(bounds, _BASES_AT_ONCE)
        ]
        starts, edits, matches, columns, cigars = map(np.concatenate, zip(*parts, strict=True))
        best = _best_of_positions(found.queries, starts, found.scores, found.ends)
        queries, reverse = found.queries >> 1, found.queries & 1
        keys = (reverse, starts, -found.scores, queries)
        order = best[np.lexsort([key[best] for key in keys])]
        if self.rules.top is not None:
            sorted_queries = queries[order]
            rank = np.arange(order.size) - np.searchsorted(sorted_queries, sorted_queries)
            order = order[rank < self.rules.top]
        references = np.searchsorted(self.references.starts, found.window_starts, side="right") - 1
        first_bases = self.references.starts[references]
        every = WindowAlignments(
            queries, reverse.astype(bool), references, starts - first_bases,
            found.ends - first_bases, found.scores, edits, matches, columns, cigars,
        )  # fmt: skip
        return WindowAlignments(*(column[order] for column in every))

    def _traced(self, found: _Found) -> tuple[np.ndarray, ...]:
        """Return starts, edits, matches, columns and CIGARs of alignments."""
        pairs = self._pairs(found.queries, found.window_starts, found.window_lengths)
        done = self.engine.pair_alignments(pairs, self.rules.scoring, FITTING, self.threads)
        columns = (done.cigar >> 4).astype(np.int64)
        equal = np.where(done.cigar & 15 == EQUAL, columns, 0)
        return (
            found.window_starts + done.reference_starts,
            done.edit_distances,
            *(sums_of_cigars(values, done.cigar_offsets) for values in (equal, columns)),
            np.array(cigar_texts(done.cigar_offsets, done.cigar), object),
        )

    def _pairs(self, queries: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> PairBatch:
        codes, query_starts, query_lengths = (
            self.queries.codes, self.queries.starts, self.queries.lengths,
        )  # fmt: skip
        return PairBatch(
            Sequences(codes, query_starts[queries], query_lengths[queries]),
            Sequences(self.codes, starts, lengths.astype(np.int32)),
        )


def window_aligner(scan: Scan, queries: Sequences, rules: AlignmentRules) -> WindowAligner:
    """Return the aligner of a scan; a GPU gets the references (1 byte per base) and the queries."""
    codes, query_codes = scan.references.codes, queries.codes
    if scan.backend == "cuda":
        from bwarp.alignment import pair_ends_cuda as engine
        from bwarp.gpu.cuda import cuda

        # Empty arrays cannot be copied; without bases there are no windows either.
        if codes.size and query_codes.size:
            codes, query_codes = cuda.to_device(codes), cuda.to_device(query_codes)
    else:
        from bwarp.alignment import pair_ends_cpu as engine
    on_engine = Sequences(query_codes, queries.starts, queries.lengths)
    return WindowAligner(
        engine, codes, scan.references, on_engine, scan.similarity, rules, scan.threads
    )


def _nothing() -> _Found:
    return _Found(*(np.empty(0, dtype) for dtype in (np.int64, np.int32, *3 * [np.int64])))


def _joined(parts: Iterable[_Found]) -> _Found:
    return _Found(*map(np.concatenate, zip(*parts, strict=True)))


def _best_of_ends(found: _Found) -> _Found:
    return found.rows(
        _best_of_positions(found.queries, found.ends, found.scores, found.window_starts)
    )


def _best_of_positions(
    queries: np.ndarray, positions: np.ndarray, scores: np.ndarray, ties: np.ndarray
) -> np.ndarray:
    """Return the row with the best score per query and position, by query and position.

    Ties are broken by the smallest value in `ties`.
    """
    order = np.lexsort((ties, -scores, positions, queries))
    is_first = np.ones(order.size, bool)
    is_first[1:] = (np.diff(queries[order]) != 0) | (np.diff(positions[order]) != 0)
    return order[is_first]


def _whole_queries(tables: Iterable[_Found]) -> Iterator[_Found]:
    """Join the two strands of a query if they are in different tables; leave out empty tables."""
    held = _nothing()
    for table in tables:
        if not table.queries.size:
            continue
        if held.queries.size and held.queries[0] >> 1 != table.queries[0] >> 1:
            yield held
            held = _nothing()
        whole = _joined([held, table])
        last = int(np.searchsorted(whole.queries, whole.queries[-1] >> 1 << 1))
        if last:
            yield whole.rows(slice(0, last))
        held = whole.rows(slice(last, None))
    if held.queries.size:
        yield held
