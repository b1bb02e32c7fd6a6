"""The histogram filter on the CPU: one candidate after the other, in threads."""

import numba
import numpy as np

from bwarp.filtering.candidates import Candidates, Filtered, check_kmer_length
from bwarp.filtering.histogram_bound import base_bound
from bwarp.runtime.threads import for_each_range

__all__ = ["filter_candidates"]


def filter_candidates(
    read_words, read_starts, reference_words, candidates: Candidates, kmer_length, threads
) -> Filtered:
    """Find the candidates that provably have no alignment within their allowed edits.

    The proofs stand in `histogram_bound`.

    Parameters
    ----------
    read_words : ndarray, dtype=uint64
        The reads, end to end and packed (see `bwarp.sequence.pack`).
    read_starts : ndarray, shape=(n_reads + 1,), dtype=int64
        Where each read begins in the packed bases.
    reference_words : ndarray, dtype=uint64
        The packed genome.
    candidates : Candidates
    kmer_length : int
        Length of the k-mers to count, 1 to 5; 0 for the bound by bases alone.
    threads : int
    """
    check_kmer_length(kmer_length)
    by_bases = np.zeros(candidates.reads.size, np.int32)
    by_kmers = np.zeros(candidates.reads.size, np.int32)
    for_each_range(
        lambda first, last: _bound_range(
            read_words, read_starts, reference_words, candidates.reads, candidates.strands,
            candidates.starts, candidates.stops, candidates.max_edits, kmer_length, first, last,
            by_bases, by_kmers,
        ),
        candidates.reads.size,
        threads,
    )  # fmt: skip
    return Filtered.of(by_bases, by_kmers, candidates.max_edits)


@numba.njit(cache=True, nogil=True)
def _bound_range(
    read_words, read_starts, reference_words, reads, strands, starts, stops, max_edits,
    kmer_length, first, last, by_bases, by_kmers,
):  # fmt: skip
    table = np.zeros(4**kmer_length, np.int32)
    for i in range(first, last):
        read_start, read_stop = read_starts[reads[i]], read_starts[reads[i] + 1]
        by_bases[i] = base_bound(
            read_words, read_start, read_stop, strands[i] == 1, reference_words, starts[i],
            stops[i], np.int64(max_edits[i]),
        )  # fmt: skip
        if kmer_length > 0 and by_bases[i] <= max_edits[i]:
            in_excess = _kmer_excess(
                read_words, read_start, read_stop, strands[i] == 1, reference_words, starts[i],
                stops[i], kmer_length, table,
            )  # fmt: skip
            by_kmers[i] = (in_excess + kmer_length - 1) // kmer_length


@numba.njit(cache=True, nogil=True)
def _base_at(words, at):
    at = np.uint64(at)
    return (words[at >> np.uint64(5)] >> (np.uint64(62) - (at & np.uint64(31)) * np.uint64(2))) & (
        np.uint64(3)
    )


@numba.njit(cache=True, nogil=True)
def _kmer_excess(
    read_words, read_start, read_stop, reverse, reference_words, start, stop, length, table
):
    """How many of the read's k-mers the window lacks, or has less often.

    K-mers roll on by one base, which comes in at the low end, or, for the other strand, its
    complement at the high end.
    """
    table[:] = 0
    mask = np.uint64(table.size - 1)
    top = np.uint64(2 * length - 2)
    kmer = np.uint64(0)
    for at in range(start, stop):
        kmer = ((kmer << np.uint64(2)) | _base_at(reference_words, at)) & mask
        if at - start >= length - 1:
            table[kmer] += 1
    in_excess = 0
    kmer = np.uint64(0)
    for at in range(read_start, read_stop):
        base = _base_at(read_words, at)
        if reverse:
            kmer = (kmer >> np.uint64(2)) | ((np.uint64(3) - base) << top)
        else:
            kmer = ((kmer << np.uint64(2)) | base) & mask
        if at - read_start >= length - 1:
            table[kmer] -= 1
            in_excess += table[kmer] < 0
    return in_excess
