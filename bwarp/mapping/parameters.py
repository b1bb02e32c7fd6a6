"""What a user may choose of mapping, and the scores: those of bwa mem."""

from dataclasses import dataclass

__all__ = ["END_TO_END", "LOCAL", "MappingParameters"]

#: A read's ends may be clipped, or not.
LOCAL, END_TO_END = "local", "end-to-end"


@dataclass(frozen=True)
class MappingParameters:
    """How reads are mapped.

    Attributes
    ----------
    seed_length, seed_step : int
        Exact seeds of this length are looked for every `seed_step` bases of a read.
    long_length, long_step, long_hits : int
        The same for reads with hits left out: longer words are rarer in repeats.
    dense_length, dense_step : int
        The same for reads that are still without a good place.
    poor_score : float
        A best score below this share of the read's length is not a good place.
    rescue_margin : int
        Mates are looked for near the places of a read that score no less below its best one.
    hits_a_read : int
        Seeds are located from the rarest on until a read has this many hits.
    candidates_a_read : int
        The most places of a read that are aligned, those with most seeds first.
    hopeless_margin : int
        A place this far below the best one is not aligned with gaps if its seeds show none.
    largest_gap : int
        Seeds on diagonals this far apart may belong to one alignment.
    match, mismatch, gap_open, gap_extend, clip : int
        Scores; a gap of n bases costs gap_open + n * gap_extend, a clipped end `clip`.
    mode : str
        `LOCAL` or `END_TO_END`.
    least_score : int
        An alignment below this is not reported.
    least_mate_score : int
        The same for the mate of a read, where both make a pair.
    alternatives : int
        Other places of a read are named (XA) if they are no more than this.
    alternative_share : float
        What they score at least, as a share of the read's best place.
    """

    seed_length: int = 20
    seed_step: int = 20
    long_length: int = 32
    long_step: int = 8
    long_hits: int = 256
    dense_length: int = 16
    dense_step: int = 4
    poor_score: float = 0.7
    rescue_margin: int = 17
    hits_a_read: int = 64
    candidates_a_read: int = 16
    hopeless_margin: int = 70
    largest_gap: int = 30
    match: int = 1
    mismatch: int = -4
    gap_open: int = 6
    gap_extend: int = 1
    clip: int = 5
    mode: str = LOCAL
    least_score: int = 30
    least_mate_score: int = 19
    alternatives: int = 5
    alternative_share: float = 0.8
