"""Parameters of mapping; the default scores are those of bwa mem."""

from dataclasses import dataclass, replace

import numpy as np

from bwarp.errors import UsageError
from bwarp.options.common import MOST_SCORE
from bwarp.options.mapping import MAP, MODES

#: Records of secondary hits without a limit.
ALL = 1 << 30

#: A given insert size, and its standard deviation, is no larger than this.
MOST_INSERT_SIZE = 100_000

#: What counts in matches.
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

#: Reads with fewer bases than this have hits that few mismatches hide from seeds.
SHORT_READ = 60

#: A read's ends may be clipped, or not.
LOCAL, END_TO_END = MODES


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
    first, second, long, more_hits, short : SeedRound
        The seeding rounds, in their order (seeding_rounds.py).
    assembly : SeedRound
        How reads are searched once more that have hits on ALT contigs alone.
    part : SeedRound
        How the ends are searched that the best hits clip (split_reads.py).
    resolved_margin : int
        A best score this much above that of any locus without located seeds resolves a read.
    poor_score : float
        A best score below this share of the read's length is poor; see `good_scores`.
    rescue_margin : int
        Mates are looked for near hits that score at most this much below the read's best one.
    candidates_a_read : int
        The most candidates of a read that are scored, those with most seeds first.
    hopeless_margin : int
        A hit this far below the best one is not aligned with gaps if its seeds show none.
    largest_gap : int
        Seeds on diagonals this far apart may belong to one alignment.
    match, mismatch, gap_open, gap_extend, clip : int
        Scores; a gap of n bases costs gap_open + n * gap_extend, a clipped end `clip`.
    long_gap, longest_gap : int
        A gap of more bases than `long_gap` costs no more than one of so many; a clipped end is
        looked for across one of up to `longest_gap`.
    mode : str
        `LOCAL` or `END_TO_END`.
    least_score : int
        An alignment below this is not reported.
    least_mate_score : int
        The same for the mate of a read, where both make a pair.
    most_secondary : int
        Secondary hits of a read are reported (XA) if they are no more than this.
    most_secondary_alt : int
        The same where one of them is on an ALT contig.
    secondary_share : float
        What they score at least, as a share of the read's best score.
    secondary_records : int
        Secondary hits get records, at most so many a read, and no XA; 0: none does.
    insert_size : (float, float) or None
        Mean and standard deviation of pairs; None: estimated from the first pairs.
    orientation : str or None
        FR, RF, FF or RR; None: the commonest of the first pairs.
    estimated_insert_size : InsertSize or None
        What was estimated from the first pairs of a unit that is mapped in parts.
    alt : tuple of int
        Numbers of the ALT contigs.
    hic : bool
        The ends of pairs are two ends of a ligation: each is mapped by itself, and the 5' part of
        a split read is its primary one.
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
        """The most that a gap costs."""
        return self.gap_open + self.long_gap * self.gap_extend

    @property
    def least_loss(self) -> int:
        """What an alignment loses at least by one difference."""
        return min(self.match - self.mismatch, self.gap_open + self.gap_extend)

    @property
    def most_loss(self) -> int:
        """What one mismatch or gap of one base costs at most: hits as close are near-optimal."""
        return max(self.match - self.mismatch, self.gap_open + self.gap_extend)


def secondary_records(all: bool, max_secondary: int | None) -> int:
    """The most records of secondary hits of a read."""
    if max_secondary is not None and not all:
        raise UsageError("--max-secondary is for secondary records: give --all, or leave it out")
    return (max_secondary or ALL) if all else 0


def mapping_parameters(match: int | None = None, **given) -> MappingParameters:
    """Parameters with some of them given; None stands for the default.

    The defaults are meant for a match of 1 and grow with it, as bwa's do.

    Raises
    ------
    UsageError
        For a value that cannot be used.
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
            f"mismatch is {scaled['mismatch']}: a mismatch scores from -{MOST_SCORE} to -1"
        )
    _check("min_score", scaled["least_score"])
    scaled["least_mate_score"] = min(scaled["least_mate_score"], scaled["least_score"])
    if given.get("hic") and (given.get("insert_size") or given.get("orientation")):
        raise UsageError(
            "--hic maps the ends of pairs one by one: leave --insert-size and --orientation out"
        )
    if given.get("insert_size"):
        mean, standard_deviation = given["insert_size"]
        if not (1 <= mean <= MOST_INSERT_SIZE and 0 < standard_deviation <= MOST_INSERT_SIZE):
            raise UsageError(
                f"insert size {mean:g},{standard_deviation:g}: give mean and standard deviation, "
                f"from 1 to {MOST_INSERT_SIZE:,}"
            )
    return MappingParameters(match=match, **scaled)


def of_ends(parameters: MappingParameters, ends: int) -> MappingParameters:
    """The parameters that hits are scored with: those of pairs (2 ends) are believed with fewer
    bases, for they may lie where their mates say. One by itself is not reported."""
    return replace(parameters, least_score=parameters.least_mate_score) if ends == 2 else parameters


def good_scores(longest: int, parameters: MappingParameters) -> np.ndarray:
    """The least best score that is good enough not to search a read with short seeds.

    It is a share of the read's length, and more than a hit may score that has a mismatch in every
    seed of the second round: of a short read, which hides more of them, by a mismatch.

    Returns
    -------
    scores : ndarray, shape=(longest + 1,), dtype=int64
        For reads of 0, 1, ... bases.
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
        raise UsageError(f"{name} is {value}: write a whole number from {least} to {most}")
