"""Tables of pairs and of their results on the GPU, in the form that alignment kernels take."""

from typing import NamedTuple

from bwarp.gpu.cuda import int32, int64, uint8, uint32


class SequenceArrays(NamedTuple):
    """Sequences of one side, as in `bwarp.alignment.pairs.Sequences`."""

    codes: uint8[::1]
    starts: int64[::1]
    lengths: int32[::1]


class PairArrays(NamedTuple):
    """Pair i is query i with reference i."""

    queries: SequenceArrays
    references: SequenceArrays


class EndArrays(NamedTuple):
    """The score and the end cell of each pair."""

    scores: int32[::1]
    query_ends: int32[::1]
    reference_ends: int32[::1]


class Cells(NamedTuple):
    """Where alignments end, their bands, and the lengths of those on a single diagonal (band 0)."""

    query_ends: int32[::1]
    reference_ends: int32[::1]
    bands: int32[::1]
    diagonals: int32[::1]


class Directions(NamedTuple):
    """Directions as `int32_kernel_cuda` stores them, and where those of each slot start."""

    words: uint32[::1]
    starts: uint32[::1]


class Traced(NamedTuple):
    """The number of runs of each alignment, its edit distance and its first cell."""

    run_counts: uint32[::1]
    edit_distances: int32[::1]
    first_rows: int32[::1]
    first_columns: int32[::1]


class Cigars(NamedTuple):
    """Runs of alignments, and where those of each begin or end."""

    offsets: uint32[::1]
    runs: uint32[::1]
