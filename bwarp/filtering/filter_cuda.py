"""The histogram filter on a GPU: letters by one thread a candidate, words by one warp.

Words are counted in shared memory, a table a warp; the window's words go up, the read's come
down, and whoever takes a word that is not there has found one in excess:

    table of a warp     AAAA AAAC AAAG ...     4**q counts, 1 kB for q = 4
    window's words       +1        +2
    read's words         -1   -1   -1          the second is in excess, whatever the order
"""

import numpy as np
from numba import cuda, int32, int64, types

from bwarp.filtering.candidates import Candidates, Filtered, check_word_length
from bwarp.filtering.histogram_bound import LONGEST_WORD, letter_bound, oriented_word

__all__ = ["KERNEL_SIGNATURES", "filter_candidates"]

_THREADS = 128
_WARP = 32
_WARPS = _THREADS // _WARP
_TABLE = 4**LONGEST_WORD
_TABLES = _WARPS * _TABLE
_ALL = 0xFFFFFFFF


def filter_candidates(
    read_words, read_starts, reference_words, candidates: Candidates, word_length, threads
) -> Filtered:
    """Find the candidates that provably have no alignment within their allowed edits.

    See `filter_cpu.filter_candidates`. Arrays may lie on the device already.
    """
    check_word_length(word_length)
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
    by_letters = cuda.device_array(n_candidates, np.int32)
    bound_by_letters[-(-n_candidates // _THREADS), _THREADS](*sequences, *of_candidates, by_letters)
    by_words = cuda.to_device(np.zeros(n_candidates, np.int32))
    if word_length:
        bound_by_words[-(-n_candidates // _WARPS), _THREADS](
            *sequences, *of_candidates, word_length, by_letters, by_words
        )
    return Filtered.of(by_letters.copy_to_host(), by_words.copy_to_host(), candidates.max_edits)


def _on_device(array):
    return array if cuda.is_cuda_array(array) else cuda.to_device(array)


@cuda.jit(cache=True)
def bound_by_letters(
    read_words, read_starts, reference_words, reads, strands, starts, stops, max_edits, by_letters
):
    """The letter bound; one thread a candidate.

    Reads the window and the read three times, 8 bytes for 32 letters.
    """
    i = cuda.grid(1)
    if i < reads.size:
        read = reads[i]
        by_letters[i] = letter_bound(
            read_words, read_starts[read], read_starts[read + 1], strands[i] == 1,
            reference_words, starts[i], stops[i], int64(max_edits[i]),
        )  # fmt: skip


@cuda.jit(cache=True)
def bound_by_words(
    read_words, read_starts, reference_words, reads, strands, starts, stops, max_edits,
    word_length, by_letters, by_words,
):  # fmt: skip
    """The word bound of the candidates that letters left over; one warp a candidate."""
    tables = cuda.shared.array(_TABLES, int32)
    warp = cuda.threadIdx.x // _WARP
    lane = cuda.threadIdx.x % _WARP
    i = cuda.blockIdx.x * _WARPS + warp
    table = warp * _TABLE
    # The whole warp leaves, or none of it.
    if i >= reads.size or by_letters[i] > max_edits[i]:
        return
    for entry in range(lane, 1 << (2 * word_length), _WARP):
        tables[table + entry] = int32(0)
    cuda.syncwarp()
    for at in range(starts[i] + lane, stops[i] - word_length + 1, _WARP):
        word = oriented_word(reference_words, at, word_length, False)
        cuda.atomic.add(tables, int64(table + word), int32(1))
    cuda.syncwarp()
    in_excess = int32(0)
    read = reads[i]
    reverse = strands[i] == 1
    for at in range(read_starts[read] + lane, read_starts[read + 1] - word_length + 1, _WARP):
        word = oriented_word(read_words, at, word_length, reverse)
        if cuda.atomic.add(tables, int64(table + word), int32(-1)) <= 0:
            in_excess = int32(in_excess + int32(1))
    for distance in (16, 8, 4, 2, 1):
        in_excess = int32(in_excess + cuda.shfl_down_sync(_ALL, in_excess, distance))
    if lane == 0:
        by_words[i] = int32((in_excess + word_length - 1) // word_length)


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
    bound_by_letters: (*_ARGUMENTS, types.int32[::1]),
    bound_by_words: (*_ARGUMENTS, types.int64, types.int32[::1], types.int32[::1]),
}
