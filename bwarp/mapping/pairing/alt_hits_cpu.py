"""Hits on ALT contigs, by bwa's rules: they take nothing from hits on the primary assembly.

    chr6     |====================>          the primary record; its quality is that of chr6 alone
    alt 1    |====================>          scores more: a supplementary record, and pa on chr6's
    alt 2    |================>              scores less than alt 1: named in the XA of alt 1

A read that aligns to the primary assembly has its primary record, quality and split parts from the
hits there alone. All its hits are then ranked together, best first, of equals those of the primary
assembly first. A hit that shares its bases with no better one leads; any other belongs to the first
leader that it shares bases with, and is named in that one's XA. Leaders on ALT contigs get records.
"""

from dataclasses import dataclass

import numpy as np

from bwarp.mapping.extension.scored_hits_cpu import ScoredHits
from bwarp.mapping.pairing.primary_and_mapq_cpu import (
    read_span,
    same_bases,
    single_end_mapq,
    suboptimal_of,
)
from bwarp.mapping.parameters import MappingParameters
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.uncounted import uncounted

__all__ = [
    "AltHits",
    "alt_hits",
    "assembly_rows",
    "on_alt_contigs",
    "unlocated_on_assembly",
]


@dataclass(frozen=True)
class AltHits:
    """What becomes of the hits of reads that have some on ALT contigs.

    Attributes
    ----------
    lines : ndarray, shape=(n,), dtype=int64
        Hits that get records, in the order of the reads.
    qualities : ndarray, shape=(n,), dtype=uint8
    suboptimal : ndarray, shape=(n,), dtype=int32
    secondary : ndarray, shape=(m,), dtype=int64
        Hits that are named in an XA.
    named_by : ndarray, shape=(m,), dtype=int64
        The number of the line whose record names it, or -1 for the read's primary record.
    better_scores : ndarray, shape=(n_reads,), dtype=int64
        Of the leader on an ALT contig that a read's primary hit belongs to; 0 where there is none.
    """

    lines: np.ndarray
    qualities: np.ndarray
    suboptimal: np.ndarray
    secondary: np.ndarray
    named_by: np.ndarray
    better_scores: np.ndarray


def on_alt_contigs(hits: ScoredHits, contig_starts: np.ndarray, alt: tuple[int, ...]) -> np.ndarray:
    """Whether each hit (bool) lies on one of the ALT contigs."""
    is_alt = np.zeros(len(contig_starts), bool)
    is_alt[list(alt)] = True
    # The end of a hit is known, its start may not be.
    return is_alt[np.searchsorted(contig_starts, hits.ends - 1, side="right") - 1]


def assembly_rows(hits: ScoredHits, on_alt: np.ndarray, least_score: int) -> np.ndarray:
    """The hits that compete for the primary records: all but those on ALT contigs, which only count
    for reads that align nowhere else. dtype int64.
    """
    has_other = np.zeros(len(hits.offsets) - 1, bool)
    has_other[hits.reads[~on_alt & (hits.scores >= least_score)]] = True
    return np.flatnonzero(~(on_alt & has_other[hits.reads]))


def unlocated_on_assembly(
    hits: ScoredHits, on_alt: np.ndarray, unlocated: np.ndarray
) -> np.ndarray:
    """What an unlocated hit on the primary assembly is likely to score (Candidates.unlocated).

    Where most hits of a read that were located are on ALT contigs, the others are taken to be, too.
    """
    n_alt = np.bincount(hits.reads[on_alt], minlength=len(unlocated))
    return np.where(2 * n_alt > np.diff(hits.offsets), 0, unlocated).astype(unlocated.dtype)


def alt_hits(
    hits: ScoredHits,
    on_alt: np.ndarray,
    lengths: np.ndarray,
    primary: np.ndarray,
    parameters: MappingParameters,
) -> AltHits:
    """Which hits of reads with hits on ALT contigs get records, and which are named in XA.

    Parameters
    ----------
    hits : ScoredHits
        All hits of the reads.
    on_alt : ndarray, dtype=bool
        Whether each lies on an ALT contig.
    primary : ndarray, shape=(n_reads,), dtype=int64
        The primary hit of every read, or -1.
    """
    n_reads = len(hits.offsets) - 1
    has_alt = np.bincount(hits.reads[on_alt], minlength=n_reads) > 0
    reads = np.flatnonzero(has_alt & (primary >= 0))
    counts = np.diff(hits.offsets)[reads]
    most = int(counts.sum())
    lines, secondary, named_by = (np.empty(most, np.int64) for _ in range(3))
    qualities, suboptimal = np.empty(most, np.uint8), np.empty(most, np.int32)
    better_scores = np.zeros(n_reads, np.int64)
    order, leaders = (np.empty(counts.max(initial=0), np.int64) for _ in range(2))
    n_lines, n_secondary = _rank_together(
        hits, on_alt, lengths, primary, reads, parameters.least_score, parameters.match,
        parameters.mismatch, parameters.most_loss, parameters.secondary_share,
        parameters.most_secondary, parameters.most_secondary_alt, order, leaders, lines, qualities,
        suboptimal, secondary, named_by, better_scores,
    )  # fmt: skip
    return AltHits(
        lines[:n_lines], qualities[:n_lines], suboptimal[:n_lines], secondary[:n_secondary],
        named_by[:n_secondary], better_scores,
    )  # fmt: skip


@compiled
def _rank_together(
    hits, on_alt, lengths, primary, reads, least, match, mismatch, margin, share, most, most_alt,
    order, leaders, lines, qualities, suboptimal, secondary, named_by, better_scores,
):  # fmt: skip
    hits = uncounted(hits)
    n_lines, n_secondary = 0, 0
    for read in reads:
        length, chosen = lengths[read], primary[read]
        first = hits.offsets[read]
        n = hits.offsets[read + 1] - first
        # Insertion sort: they are in order but for equals.
        for i in range(n):
            j = i
            if not on_alt[first + i]:
                while (
                    j > 0
                    and on_alt[order[j - 1]]
                    and hits.scores[order[j - 1]] == hits.scores[first + i]
                ):
                    order[j] = order[j - 1]
                    j -= 1
            order[j] = first + i
        for at in range(n):
            i = order[at]
            leader = i
            span = read_span(hits, i, length)
            for before in range(at):
                other = order[before]
                if leaders[other - first] == other and same_bases(
                    span, read_span(hits, other, length)
                ):
                    leader = other
                    break
            leaders[i - first] = leader
        leader = leaders[chosen - first]
        if on_alt[leader] and not on_alt[chosen]:
            better_scores[read] = hits.scores[leader]
        elif leader != chosen:
            # Of hits of one kind the primary one leads, though the other may score more.
            for i in range(n):
                if leaders[i] == leader:
                    leaders[i] = chosen
        first_line = n_lines
        for at in range(n):
            i = order[at]
            if on_alt[chosen] or not on_alt[i] or leaders[i - first] != i:
                continue
            if hits.scores[i] < least:
                continue
            lines[n_lines] = i
            # Both ends of parts may be clipped: there is no penalty for that.
            suboptimal[n_lines], other_score, near = suboptimal_of(hits, read, i, length, 0, margin)
            aligned = hits.ends[i] - hits.starts[i]
            qualities[n_lines] = single_end_mapq(
                hits.scores[i], other_score, near, aligned, 0, match, mismatch
            )
            n_lines += 1
        for line in range(first_line - 1, n_lines):
            owner = chosen if line < first_line else lines[line]
            begin = n_secondary
            limit = most
            for kind in (False, True):
                for at in range(n):
                    i = order[at]
                    if on_alt[i] != kind or i == owner or leaders[i - first] != owner:
                        continue
                    if hits.scores[i] < share * hits.scores[owner]:
                        continue
                    limit = most_alt if kind else limit
                    secondary[n_secondary] = i
                    named_by[n_secondary] = line if line >= first_line else -1
                    n_secondary += 1
            if n_secondary - begin > limit:
                n_secondary = begin
    return n_lines, n_secondary
