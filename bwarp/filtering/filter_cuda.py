"""The histogram filter on a GPU: bases by one thread a candidate, k-mers by one warp.

K-mers are counted in shared memory, a table a warp; the window's count up, the read's count down,
and a thread that takes a k-mer that is not there has found one in excess:

    table of a warp     AAAA AAAC AAAG ...     4**q counts, 1 kB for q = 4
    window's k-mers      +1        +2
    read's k-mers        -1   -1   -1          the second is in excess, whatever the order
"""

import numpy as np
from numba import cuda, int32, int64, types

from bwarp.filtering.candidates import Candidates, Filtered, check_kmer_length
from bwarp.filtering.histogram_bound import LONGEST_KMER, base_bound, oriented_kmer
from bwarp.gpu.launch import WARP, launch

__all__ = ["KERNEL_SIGNATURES", "filter_candidates"]

_THREADS = 128
_WARPS = _THREADS // WARP
_TABLE = 4**LONGEST_KMER
_TABLES = _WARPS * _TABLE
_ALL = 0xFFFFFFFF


def filter_candidates(
    read_words, read_starts, reference_words, candidates: Candidates, kmer_length, threads
) -> Filtered:
    """Find the candidates that provably have no alignment within their allowed edits.

    See `filter_cpu.filter_candidates`. Arrays may lie on the device already.
    """
    check_kmer_length(kmer_length)
    n_candidates = candidates.reads.size
    if n_candidates == 0:
        none = np.zeros(0, np.int32)
        return Filtered.of(none, none, none)
    of_candidates = [
        cuda.to_device(array)
        for array in (
            candidates.reads, candidates.strands, candidates.starts, candidates.stops,
            candidates.max_edits,
        )
    ]  # fmt: skip
    sequences = [_on_device(array) for array in (read_words, read_starts, reference_words)]
    by_bases = cuda.device_array(n_candidates, np.int32)
    bound_by_bases[launch(n_candidates, _THREADS)](*sequences, *of_candidates, by_bases)
    by_kmers = cuda.to_device(np.zeros(n_candidates, np.int32))
    if kmer_length:
        bound_by_kmers[launch(n_candidates * WARP, _THREADS)](
            *sequences, *of_candidates, kmer_length, by_bases, by_kmers
        )
    return Filtered.of(by_bases.copy_to_host(), by_kmers.copy_to_host(), candidates.max_edits)


def _on_device(array):
    return array if cuda.is_cuda_array(array) else cuda.to_device(array)


@cuda.jit(cache=True)
def bound_by_bases(
    read_words, read_starts, reference_words, reads, strands, starts, stops, max_edits, by_bases
):
    """The bound by bases; one thread a candidate.

    Reads the window and the read three times, 8 bytes for 32 bases.
    """
    i = cuda.grid(1)
    if i < reads.size:
        read = reads[i]
        by_bases[i] = base_bound(
            read_words, read_starts[read], read_starts[read + 1], strands[i] == 1,
            reference_words, starts[i], stops[i], int64(max_edits[i]),
        )  # fmt: skip


@cuda.jit(cache=True)
def bound_by_kmers(
    read_words, read_starts, reference_words, reads, strands, starts, stops, max_edits,
    kmer_length, by_bases, by_kmers,
):  # fmt: skip
    """The bound by k-mers of the candidates that bases left over; one warp a candidate."""
    tables = cuda.shared.array(_TABLES, int32)
    warp = cuda.threadIdx.x // WARP
    lane = cuda.threadIdx.x % WARP
    i = cuda.blockIdx.x * _WARPS + warp
    table = warp * _TABLE
    # The whole warp leaves, or none of it.
    if i >= reads.size or by_bases[i] > max_edits[i]:
        return
    for entry in range(lane, 1 << (2 * kmer_length), WARP):
        tables[table + entry] = int32(0)
    cuda.syncwarp()
    for at in range(starts[i] + lane, stops[i] - kmer_length + 1, WARP):
        kmer = oriented_kmer(reference_words, at, kmer_length, False)
        cuda.atomic.add(tables, int64(table + kmer), int32(1))
    cuda.syncwarp()
    in_excess = int32(0)
    read = reads[i]
    reverse = strands[i] == 1
    for at in range(read_starts[read] + lane, read_starts[read + 1] - kmer_length + 1, WARP):
        kmer = oriented_kmer(read_words, at, kmer_length, reverse)
        if cuda.atomic.add(tables, int64(table + kmer), int32(-1)) <= 0:
            in_excess = int32(in_excess + int32(1))
    for distance in (16, 8, 4, 2, 1):
        in_excess = int32(in_excess + cuda.shfl_down_sync(_ALL, in_excess, distance))
    if lane == 0:
        by_kmers[i] = int32((in_excess + kmer_length - 1) // kmer_length)


_ARGUMENTS = (
    types.uint64[::1],
    types.int64[::1],
    types.uint64[::1],
    types.int64[::1],
    types.uint8[::1],
    types.int64[::1],
    types.int64[::1],
    types.int32[::1],
)

KERNEL_SIGNATURES = {
    bound_by_bases: (*_ARGUMENTS, types.int32[::1]),
    bound_by_kmers: (*_ARGUMENTS, types.int64, types.int32[::1], types.int32[::1]),
}
