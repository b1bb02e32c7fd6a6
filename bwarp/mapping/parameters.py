"""What a user may choose of mapping, and the scores: those of bwa mem."""

from dataclasses import dataclass

__all__ = ["MappingParameters"]


@dataclass(frozen=True)
class MappingParameters:
    """How reads are mapped.

    Attributes
    ----------
    seed_length, seed_step : int
        Exact seeds of this length are looked for every `seed_step` bases of a read.
    dense_length, dense_step : int
        The same for the second round, of reads that the first one left without a good place.
    hits_a_read : int
        Seeds are located from the rarest on until a read has this many hits.
    candidates_a_read : int
        The most places of a read that are aligned, those with most seeds first.
    largest_gap : int
        Seeds on diagonals this far apart may belong to one alignment.
    match, mismatch, gap_open, gap_extend, clip : int
        Scores; a gap of n bases costs gap_open + n * gap_extend, a clipped end `clip`.
    least_score : int
        An alignment below this is not reported.
    """

    seed_length: int = 20
    seed_step: int = 20
    dense_length: int = 16
    dense_step: int = 4
    hits_a_read: int = 64
    candidates_a_read: int = 16
    largest_gap: int = 30
    match: int = 1
    mismatch: int = -4
    gap_open: int = 6
    gap_extend: int = 1
    clip: int = 5
    least_score: int = 30
