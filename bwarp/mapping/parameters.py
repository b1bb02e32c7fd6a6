"""What a user may choose of mapping, and the scores: those of bwa mem."""

from dataclasses import dataclass

__all__ = ["END_TO_END", "LOCAL", "MappingParameters", "SeedRound"]

#: A read's ends may be clipped, or not.
LOCAL, END_TO_END = "local", "end-to-end"


@dataclass(frozen=True)
class SeedRound:
    """How reads are searched once.

    Attributes
    ----------
    length : int
        Bases of a seed.
    step : int
        A read of n bases has n // step seeds (one at least, and none closer than a base), spread
        evenly from its first base to its last.
    hits : int
        The most hits of a read: its rarest seeds are located, each in full, while they fit.
    least_hits : int
        A read with fewer hits than this gets some of its next seed, evenly spread, up to `hits`.
    """

    length: int
    step: int
    hits: int
    least_hits: int


@dataclass(frozen=True)
class MappingParameters:
    """How reads are mapped.

    Attributes
    ----------
    first : SeedRound
        Of all reads.
    settled_margin : int
        A read whose best place scores this much more than a place without seeds could is settled.
    second : SeedRound
        Of the others, which begin anew.
    long : SeedRound
        Of reads that are not settled and have hits left out: longer seeds are rarer in repeats.
    dense : SeedRound
        Of reads that are still without a good place.
    poor_score : float
        A best score below this share of the read's length is not a good place.
    rescue_margin : int
        Mates are looked for near the places of a read that score no less below its best one.
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

    first: SeedRound = SeedRound(length=24, step=30, hits=16, least_hits=0)
    settled_margin: int = 10
    second: SeedRound = SeedRound(length=20, step=20, hits=128, least_hits=0)
    long: SeedRound = SeedRound(length=32, step=8, hits=256, least_hits=128)
    dense: SeedRound = SeedRound(length=16, step=4, hits=64, least_hits=32)
    poor_score: float = 0.7
    rescue_margin: int = 17
    candidates_a_read: int = 32
    hopeless_margin: int = 45
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
