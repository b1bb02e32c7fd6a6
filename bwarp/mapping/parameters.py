"""Parameters of mapping; the default scores are those of bwa mem."""

from dataclasses import dataclass, replace

import numpy as np

from bwarp.errors import UsageError
from bwarp.options.mapping import MAP, MODES
from bwarp.options.scores import MOST_SCORE

#: Unlimited number of records of secondary hits.
ALL = 1 << 30

#: Maximum of a given insert size and of its standard deviation.
MOST_INSERT_SIZE = 100_000

#: Parameters that scale with the score of a match.
_IN_MATCHES = (
    "poor_score",
    "rescue_margin",
    "hopeless_margin",
    "resolved_margin",
    "mismatch",
    "gap_open",
    "gap_extend",
    "clip",
    "least_score",
    "least_mate_score",
)

#: In reads shorter than this, few mismatches can hide hits from seeds.
SHORT_READ = 60

#: Alignment modes: ends of reads may be clipped, or not.
LOCAL, END_TO_END = MODES


@dataclass(frozen=True)
class SeedRound:
    """Parameters of one search with seeds.

    Attributes
    ----------
    length : int
        Length of a seed.
    step : int
        A read of n bases has n // step seeds (at least one, with starts at least one base apart),
        evenly spaced from its first base to its last.
    hits : int
        Maximum number of hits per read: its rarest seeds are located completely while they fit.
    least_hits : int
        A read with fewer hits gets evenly spaced hits of its next seed, up to `hits`.
    """

    length: int
    step: int
    hits: int
    least_hits: int


@dataclass(frozen=True)
class MappingParameters:
    """Parameters of mapping: options of `bwarp map` (`bwarp.options.mapping`), and further fields.

    Attributes
    ----------
    first, second, long, more_hits, short : SeedRound
        The seeding rounds in order (seeding_rounds.py).
    assembly : SeedRound
        The additional search of reads with hits only on ALT contigs.
    part : SeedRound
        The search of ends that the best hits clip (split_reads.py).
    resolved_margin : int
        A best score this much above that of any locus without located seeds resolves a read.
    poor_score : float
        A best score below this fraction of the read's length is poor; see `good_scores`.
    rescue_margin : int
        Mates are searched near hits that score at most this much below the read's best.
    candidates_a_read : int
        Maximum number of scored candidates per read, those with most seeds first.
    hopeless_margin : int
        A hit this far below the best one is not aligned with gaps if its seeds show none.
    largest_gap : int
        Seeds on diagonals this far apart may belong to one alignment.
    long_gap, longest_gap : int
        A gap of more bases than `long_gap` costs no more than one of `long_gap`; a clipped end is
        searched across a gap of up to `longest_gap`.
    least_score, least_mate_score : int
        The option `--min-score`, and the minimum score of the mate of a read in a pair.
    most_secondary, most_secondary_alt : int
        Secondary hits are reported (XA) if their number does not exceed this; the second limit
        applies if one of them is on an ALT contig.
    secondary_share : float
        Their minimum score, as a fraction of the read's best score.
    secondary_records : int
        Maximum number of secondary records per read, instead of XA; 0: none.
    estimated_insert_size : InsertSize or None
        The estimate from the first pairs of a unit mapped in parts.
    alt : tuple of int
        Numbers of the ALT contigs.
    """

    first: SeedRound = SeedRound(length=24, step=30, hits=16, least_hits=0)
    resolved_margin: int = 10
    second: SeedRound = SeedRound(length=20, step=20, hits=128, least_hits=0)
    long: SeedRound = SeedRound(length=32, step=8, hits=256, least_hits=128)
    more_hits: SeedRound = SeedRound(length=24, step=4, hits=2048, least_hits=0)
    short: SeedRound = SeedRound(length=16, step=4, hits=64, least_hits=32)
    assembly: SeedRound = SeedRound(length=19, step=2, hits=64, least_hits=0)
    part: SeedRound = SeedRound(length=19, step=3, hits=512, least_hits=0)
    poor_score: float = 0.7
    rescue_margin: int = 17
    candidates_a_read: int = 32
    hopeless_margin: int = 45
    largest_gap: int = 30
    match: int = 1
    mismatch: int = -4
    gap_open: int = 6
    gap_extend: int = 1
    long_gap: int = 20
    longest_gap: int = 100
    clip: int = 5
    mode: str = LOCAL
    least_score: int = 30
    least_mate_score: int = 19
    most_secondary: int = 5
    most_secondary_alt: int = 200
    secondary_share: float = 0.8
    secondary_records: int = 0
    insert_size: tuple[float, float] | None = None
    orientation: str | None = None
    estimated_insert_size: tuple | None = None
    alt: tuple[int, ...] = ()
    hic: bool = False

    @property
    def long_gap_cost(self) -> int:
        """Return the maximum cost of a gap."""
        return self.gap_open + self.long_gap * self.gap_extend

    @property
    def least_loss(self) -> int:
        """Return the minimum loss of score by one difference."""
        return min(self.match - self.mismatch, self.gap_open + self.gap_extend)

    @property
    def most_loss(self) -> int:
        """Return the maximum loss by a mismatch or 1-base gap: hits within it are near-optimal."""
        return max(self.match - self.mismatch, self.gap_open + self.gap_extend)


def secondary_records(all: bool, max_secondary: int | None) -> int:
    """Return the maximum number of secondary records per read."""
    if max_secondary is not None and not all:
        raise UsageError("--max-secondary requires --all")
    return (max_secondary or ALL) if all else 0


def mapping_parameters(match: int | None = None, **given) -> MappingParameters:
    """Return parameters with some of them given; None stands for the default.

    The defaults are for a match score of 1 and scale with it, as in bwa.

    Raises
    ------
    UsageError
        If a value is invalid.
    """
    given = {name: value for name, value in given.items() if value is not None}
    match = 1 if match is None else match
    _check("match", match)
    defaults = MappingParameters()
    scaled = {name: getattr(defaults, name) * match for name in _IN_MATCHES} | given
    for name in ("gap_open", "gap_extend", "clip"):
        _check(name, scaled[name])
    if not -MOST_SCORE <= scaled["mismatch"] <= -1:
        raise UsageError(
            f"mismatch is {scaled['mismatch']}: the score of a mismatch must be from -{MOST_SCORE} "
            "to -1"
        )
    _check("min_score", scaled["least_score"])
    scaled["least_mate_score"] = min(scaled["least_mate_score"], scaled["least_score"])
    if given.get("hic") and (given.get("insert_size") or given.get("orientation")):
        raise UsageError("--hic cannot be combined with --insert-size or --orientation")
    if given.get("insert_size"):
        try:
            mean, standard_deviation = map(float, given["insert_size"])
        except (TypeError, ValueError):
            raise UsageError(
                f"insert size {given['insert_size']!r} is not a mean and a standard deviation: "
                "give two numbers"
            ) from None
        if not (1 <= mean <= MOST_INSERT_SIZE and 0 < standard_deviation <= MOST_INSERT_SIZE):
            raise UsageError(
                f"insert size {mean:g},{standard_deviation:g}: mean and standard deviation must be "
                f"from 1 to {MOST_INSERT_SIZE:,}"
            )
    return MappingParameters(match=match, **scaled)


def of_ends(parameters: MappingParameters, ends: int) -> MappingParameters:
    """Return the parameters to score hits: hits of pairs (2 ends) need fewer bases, because they
    may be where their mates predict. Unpaired ends need `least_score`."""
    return replace(parameters, least_score=parameters.least_mate_score) if ends == 2 else parameters


def good_scores(longest: int, parameters: MappingParameters) -> np.ndarray:
    """Return the minimum best score for which a read is not searched with short seeds.

    It is a fraction of the read's length, and more than the score of a hit with a mismatch in every
    seed of the second round; for short reads, which hide more hits, by one mismatch.

    Returns
    -------
    scores : ndarray, shape=(longest + 1,), dtype=int64
        Scores for reads of 0, 1, ... bases.
    """
    lengths = np.arange(longest + 1)
    good = np.ceil(parameters.poor_score * lengths).astype(np.int64)
    loss = parameters.match - parameters.mismatch
    hidden = parameters.match * lengths - loss * (lengths // parameters.second.length)
    return np.maximum(good, hidden + 1 + np.where(lengths < SHORT_READ, loss, 0))


def _check(name: str, value: int) -> None:
    least, most = MAP[name].value[:2]
    if not least <= value <= most:
        name = name.replace("_", "-")
        raise UsageError(f"{name} is {value}: use a whole number from {least} to {most}")
