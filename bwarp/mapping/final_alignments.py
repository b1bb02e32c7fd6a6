"""The whole alignment of every chosen place: where it begins, its CIGAR, what it differs in."""

from dataclasses import dataclass

import numba
import numpy as np

from bwarp.alignment.pairs import MATCH, Alignments, PairBatch
from bwarp.alignment.pairs_cpu import pair_alignments
from bwarp.alignment.scheme import FITTING, LOCAL
from bwarp.mapping.extension_cpu import Genome, Places, scoring_of, window_sequences
from bwarp.mapping.parameters import MappingParameters

__all__ = ["MappedReads", "align_chosen"]


@dataclass(frozen=True)
class MappedReads:
    """An alignment for every read; reads without one have position -1 and no CIGAR.

    Attributes
    ----------
    positions : ndarray, shape=(n_reads,), dtype=int64
        Genome position of the first aligned base.
    strands : ndarray, shape=(n_reads,), dtype=uint8
    read_starts, read_ends : ndarray, shape=(n_reads,), dtype=int32
        The aligned bases of the read on its strand; the others are clipped.
    scores : ndarray, shape=(n_reads,), dtype=int32
    cigar_offsets : ndarray, shape=(n_reads + 1,), dtype=int64
    cigar : ndarray, dtype=uint32
        M, I and D of the aligned bases, ``length << 4 | operation``.
    """

    positions: np.ndarray
    strands: np.ndarray
    read_starts: np.ndarray
    read_ends: np.ndarray
    scores: np.ndarray
    cigar_offsets: np.ndarray
    cigar: np.ndarray


def align_chosen(
    genome: Genome,
    both: np.ndarray,
    offsets: np.ndarray,
    places: Places,
    chosen: np.ndarray,
    parameters: MappingParameters,
    threads: int = 1,
) -> MappedReads:
    """Align every read at its chosen place (-1: none)."""
    n_reads = len(offsets) - 1
    mapped = chosen >= 0
    place = chosen[mapped]
    table = np.zeros((n_reads, 5), np.int64)
    table[:, 0] = -1
    table[mapped] = np.column_stack(
        [
            places.starts[place],
            places.strands[place],
            places.read_starts[place],
            places.read_ends[place],
            places.scores[place],
        ]
    )
    gapped = np.flatnonzero(mapped)[~places.gapless[place]]
    n_operations = mapped.astype(np.int64)
    if gapped.size:
        local, whole, use_whole = _align_gapped(
            genome, both, offsets, places, gapped, chosen[gapped], parameters, threads
        )
        for alignments, which in ((local, ~use_whole), (whole, use_whole)):
            rows = gapped[which]
            table[rows, 0] = places.window_starts[chosen[rows]] + alignments.reference_starts[which]
            table[rows, 2] = alignments.query_starts[which]
            table[rows, 3] = alignments.query_ends[which]
            table[rows, 4] = alignments.scores[which]
        _count_merged(local.cigar_offsets, local.cigar, ~use_whole, gapped, n_operations)
        _count_merged(whole.cigar_offsets, whole.cigar, use_whole, gapped, n_operations)
    cigar_offsets = np.concatenate([[0], np.cumsum(n_operations)])
    cigar = np.zeros(cigar_offsets[-1], np.uint32)
    single = np.flatnonzero(mapped & ~np.isin(np.arange(n_reads), gapped))
    cigar[cigar_offsets[single]] = (table[single, 3] - table[single, 2]) << 4 | MATCH
    if gapped.size:
        _merge(local.cigar_offsets, local.cigar, ~use_whole, gapped, cigar_offsets, cigar)
        _merge(whole.cigar_offsets, whole.cigar, use_whole, gapped, cigar_offsets, cigar)
    return MappedReads(
        positions=table[:, 0].copy(),
        strands=table[:, 1].astype(np.uint8),
        read_starts=table[:, 2].astype(np.int32),
        read_ends=table[:, 3].astype(np.int32),
        scores=table[:, 4].astype(np.int32),
        cigar_offsets=cigar_offsets,
        cigar=cigar,
    )


def _align_gapped(
    genome, both, offsets, places, reads, place, parameters, threads
) -> tuple[Alignments, Alignments, np.ndarray]:
    """Local alignments, end-to-end ones, and where the latter win: clipping has its price."""
    queries, windows = window_sequences(
        genome, both, offsets, reads, places.strands[place],
        places.window_starts[place], places.window_ends[place],
    )  # fmt: skip
    pairs, scoring = PairBatch(queries, windows), scoring_of(parameters)
    local = pair_alignments(pairs, scoring, LOCAL, threads)
    whole = pair_alignments(pairs, scoring, FITTING, threads)
    clips = (local.query_starts > 0).astype(np.int32) + (local.query_ends < queries.lengths)
    return local, whole, whole.scores >= local.scores - parameters.clip * clips


@numba.njit(cache=True, nogil=True)
def _count_merged(offsets, cigar, wanted, reads, counts):
    """How many operations remain where = and X become M."""
    for i in range(reads.size):
        if not wanted[i]:
            continue
        last = np.uint32(255)
        n = 0
        for at in range(offsets[i], offsets[i + 1]):
            operation = cigar[at] & np.uint32(15)
            operation = np.uint32(MATCH) if operation > 6 else operation
            n += operation != last
            last = operation
        counts[reads[i]] = n


@numba.njit(cache=True, nogil=True)
def _merge(offsets, cigar, wanted, reads, merged_offsets, merged):
    for i in range(reads.size):
        if not wanted[i]:
            continue
        place = merged_offsets[reads[i]] - 1
        last = np.uint32(255)
        for at in range(offsets[i], offsets[i + 1]):
            operation = cigar[at] & np.uint32(15)
            operation = np.uint32(MATCH) if operation > 6 else operation
            if operation != last:
                place += 1
                merged[place] = operation
            merged[place] += cigar[at] >> np.uint32(4) << np.uint32(4)
            last = operation
