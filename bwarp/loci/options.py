"""What loci are looked for, and what is found."""

from dataclasses import dataclass
from math import comb

import numpy as np

from bwarp.alignment.scoring import Scoring, nucleotide_scoring
from bwarp.errors import UsageError
from bwarp.mapping.parameters import mapping_parameters
from bwarp.options.finding import MOST_MISMATCHES
from bwarp.options.mapping import ALL, ALLMAP, MOST_EDITS


@dataclass(frozen=True)
class Extension:
    """How reads are aligned at their loci by scores.

    Attributes
    ----------
    local : bool
        Whether ends of reads may be clipped.
    scoring : Scoring
    """

    local: bool
    scoring: Scoring


def extension_of(
    name: str = "edits",
    match: int | None = None,
    mismatch: int | None = None,
    gap_open: int | None = None,
    gap_extend: int | None = None,
) -> Extension | None:
    """How reads are aligned at their loci; None for the fewest edits.

    Scores that are not given are those of `map`.

    Raises
    ------
    UsageError
        For scores that cannot be used, or are not for this.
    """
    ALLMAP["extension"].check(name)
    scores = {"mismatch": mismatch, "gap_open": gap_open, "gap_extend": gap_extend}
    if name == "edits":
        given = [name for name, score in {"match": match, **scores}.items() if score is not None]
        if given:
            raise UsageError(
                f"{given[0].replace('_', '-')} is a score: it is for the extension semiglobal or "
                "local: leave it out, or choose one of these"
            )
        return None
    # There is no cost of a clipped end, which is to be in no bounds.
    used = mapping_parameters(match, clip=0, **scores)
    scoring = nucleotide_scoring(used.match, used.mismatch, used.gap_open, used.gap_extend)
    return Extension(name == "local", scoring)


@dataclass(frozen=True)
class LocusOptions:
    """What loci are looked for.

    Attributes
    ----------
    edits : int
        The most edits of a locus: mismatches, inserted and deleted bases.
    percent : float or None
        The most edits as a share of a read's length instead, rounded down.
    gaps : int or None
        The most gap letters among them; None for as many as edits.
    strata : int
        Loci with so many edits more than the read's best locus; 0 for the best alone, `ALL` for
        every one.
    mismatches : int or None
        Those that a part is searched with; None for what is fastest. Results are the same.
    use_filter : bool
        Whether candidates are dropped by a bound before they are verified. Results are the same.
    """

    edits: int = 0
    percent: float | None = None
    gaps: int | None = None
    strata: int = ALL
    mismatches: int | None = None
    use_filter: bool = True

    def __post_init__(self):
        if self.percent is None and not 0 <= self.edits <= MOST_EDITS:
            raise UsageError(f"--edits {self.edits} cannot be searched: use 0 to {MOST_EDITS}")
        if self.percent is not None and not 0 <= self.percent <= 50:
            raise UsageError(f"--edits {self.percent:g}% cannot be searched: use 0% to 50%")
        if self.gaps is not None and self.percent is None and self.gaps > self.edits:
            raise UsageError(
                f"--gaps {self.gaps} is more than --edits {self.edits}: every gap letter is an "
                f"edit: use 0 to {self.edits}"
            )
        ALLMAP["seed_mismatches"].check(self.mismatches)

    def edits_of(self, lengths: np.ndarray) -> np.ndarray:
        """The most edits of a locus of each read, dtype int64."""
        if self.percent is None:
            return np.full(len(lengths), self.edits, np.int64)
        # In whole numbers: 3 % of 100 is 3, whatever the machine makes of 0.03.
        thousandths = round(self.percent * 1000)
        return np.minimum(lengths * thousandths // 100_000, MOST_EDITS)

    def gaps_of(self, edits: np.ndarray) -> np.ndarray:
        """The most gap letters of a locus of each read, dtype int64."""
        return edits.copy() if self.gaps is None else np.minimum(edits, self.gaps)


@dataclass(frozen=True)
class FoundLoci:
    """Loci in the order of their reads, strands and starts.

    Attributes
    ----------
    reads : ndarray, shape=(n,), dtype=int64
    strands : ndarray, shape=(n,), dtype=uint8
        1 where it is the read's reverse complement that lies there.
    starts, ends : ndarray, shape=(n,), dtype=int64
        In the genome.
    distances : ndarray, shape=(n,), dtype=int32
    searched : ndarray, shape=(n_reads,), dtype=int32
        Up to how many edits every locus of each read is known; -1 for a read that was not searched.
    """

    reads: np.ndarray
    strands: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    distances: np.ndarray
    searched: np.ndarray


# --------------------------------------------------------------------------------------------------
# How many parts of a read must be searched, and with how many mismatches, to miss no alignment.
#
# **The rule.** An alignment with at most e edits, of which at most G are gap letters (bases
# inserted
# or deleted), is found if the read is cut, anywhere, into
#
#     p = G + (e - G) // (m + 1) + 1
#
# parts, and each is searched without gaps and with at most m mismatches.
#
# Proof. A gap letter touches one part at most: an inserted base belongs to one, a deleted base
# lies
# in one or between two. With g <= G gap letters at least p - g parts have none. Had each of these
# m + 1 mismatches or more, they would be (p - g) (m + 1) > e - g. So one has m at most, and no
# gap.
#
# With gaps in every edit (G = e) that is e + 1 parts, whatever m is: then parts without
# mismatches
# are best. Without gaps (G = 0) it is e // (m + 1) + 1.


# What a step takes, in units of a part searched without mismatches; measured on human reads.
_HIT_COST = 0.15
_SEARCH_COST = (1.0, 15.0, 60.0, 250.0, 1000.0)


def parts_needed(edits, gaps, mismatches):
    """Parts into which a read is cut: of numbers, or of arrays of them."""
    return gaps + (edits - gaps) // (mismatches + 1) + 1


def best_mismatches(length: int, edits: int, gaps: int, text_length: int) -> int:
    """Mismatches of a part with which a read of this length is searched soonest, on random text."""
    if gaps == edits:
        return 0
    costs = []
    for mismatches in range(min(MOST_MISMATCHES, edits) + 1):
        parts = parts_needed(edits, gaps, mismatches)
        k = min(length // parts, 64)
        variants = sum(comb(k, i) * 3**i for i in range(mismatches + 1))
        hits = text_length * variants / 4.0**k
        costs.append(parts * (_SEARCH_COST[mismatches] + hits * _HIT_COST))
    return costs.index(min(costs))
