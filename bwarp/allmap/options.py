"""Search limits of allmap, its results, and the rule that cuts reads into parts."""

from dataclasses import dataclass

import numpy as np

from bwarp.alignment.scoring import Scoring, nucleotide_scoring
from bwarp.errors import UsageError
from bwarp.mapping.parameters import mapping_parameters
from bwarp.options.mapping import ALL, ALLMAP, MOST_EDITS


@dataclass(frozen=True)
class Extension:
    """Scoring of the alignment of reads at their loci.

    Attributes
    ----------
    local : bool
        Whether the ends of reads may be clipped.
    scoring : Scoring
    """

    local: bool
    scoring: Scoring

    @property
    def arguments(self) -> dict[str, str | int]:
        """The arguments for which `extension_of` returns an equal extension."""
        scoring = self.scoring
        match, mismatch = scoring.match_mismatch
        return {
            "name": "local" if self.local else "semiglobal",
            "match": match,
            "mismatch": mismatch,
            "gap_open": scoring.gap_open,
            "gap_extend": scoring.gap_extend,
        }


def extension_of(
    name: str = "edits",
    match: int | None = None,
    mismatch: int | None = None,
    gap_open: int | None = None,
    gap_extend: int | None = None,
) -> Extension | None:
    """Return how reads are aligned at their loci; None for the fewest edits.

    Scores that are not given default to those of `map`.

    Raises
    ------
    UsageError
        If the scores are invalid or do not apply.
    """
    ALLMAP["extension"].check(name)
    scores = {"mismatch": mismatch, "gap_open": gap_open, "gap_extend": gap_extend}
    if name == "edits":
        given = [name for name, score in {"match": match, **scores}.items() if score is not None]
        if given:
            raise UsageError(
                f"{given[0].replace('_', '-')} requires the extension semiglobal or local"
            )
        return None
    # A cost of clipped ends must not affect the bounds, so there is none.
    used = mapping_parameters(match, clip=0, **scores)
    scoring = nucleotide_scoring(used.match, used.mismatch, used.gap_open, used.gap_extend)
    return Extension(name == "local", scoring)


@dataclass(frozen=True)
class LocusOptions:
    """Limits of the search for loci: options of `bwarp allmap` (`bwarp.options.mapping`).

    Attributes
    ----------
    edits, percent : int, float or None
        The option `--edits`: a number, or a percentage of the length of the read.
    gaps, mismatches : int or None
        The options `--gaps` and `--seed-mismatches`; None for auto.
    strata : int
        The option `--report`: up to this many more edits than the read's best; `ALL` for all.
    """

    edits: int = 0
    percent: float | None = None
    gaps: int | None = None
    strata: int = ALL
    mismatches: int | None = None
    filter: str = "auto"

    def __post_init__(self):
        if self.percent is None and not 0 <= self.edits <= MOST_EDITS:
            raise UsageError(f"--edits {self.edits} is out of range: use 0 to {MOST_EDITS}")
        if self.percent is not None and not 0 <= self.percent <= 50:
            raise UsageError(f"--edits {self.percent:g}% is out of range: use 0% to 50%")
        if self.gaps is not None and self.percent is None and self.gaps > self.edits:
            raise UsageError(
                f"--gaps {self.gaps} is greater than --edits {self.edits}: each base of a gap is "
                f"an edit: use 0 to {self.edits}"
            )
        ALLMAP["seed_mismatches"].check(self.mismatches)
        ALLMAP["filter"].check(self.filter)

    @property
    def may_search_mismatches(self) -> bool:
        """Return whether parts of some reads may be searched with mismatches."""
        if self.mismatches is not None:
            return self.mismatches > 0
        # None are allowed if every edit may be a gap; see `parts_cpu.best_mismatches`.
        return self.gaps is not None and (self.percent is not None or self.gaps < self.edits)

    def edits_of(self, lengths: np.ndarray) -> np.ndarray:
        """Return the maximum edits of a locus of each read, dtype int64."""
        if self.percent is None:
            return np.full(len(lengths), self.edits, np.int64)
        # In integers: 3 % of 100 is 3, which floating-point 0.03 need not give.
        thousandths = round(self.percent * 1000)
        return np.minimum(lengths * thousandths // 100_000, MOST_EDITS)

    def gaps_of(self, edits: np.ndarray) -> np.ndarray:
        """Return the maximum number of gap letters of a locus of each read, dtype int64."""
        return edits.copy() if self.gaps is None else np.minimum(edits, self.gaps)


@dataclass(frozen=True)
class FoundLoci:
    """Loci ordered by read, strand and start.

    Attributes
    ----------
    reads : ndarray, shape=(n,), dtype=int64
    strands : ndarray, shape=(n,), dtype=uint8
        1 where the reverse complement of the read aligns.
    starts, ends : ndarray, shape=(n,), dtype=int64
        In the genome.
    distances : ndarray, shape=(n,), dtype=int32
    searched : ndarray, shape=(n_reads,), dtype=int32
        The edits up to which every locus of each read is known; -1 for a read that was not
        searched.
    """

    reads: np.ndarray
    strands: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    distances: np.ndarray
    searched: np.ndarray


# How many parts of a read must be searched, and with how many mismatches, to miss no alignment.
#
# **The rule.** An alignment with at most e edits, of which at most G are gap letters (inserted or
# deleted bases), is found if the read is cut, anywhere, into
#
#     p = G + (e - G) // (m + 1) + 1
#
# parts, and each part is searched without gaps and with at most m mismatches.
#
# Proof. A gap letter touches at most one part: an inserted base belongs to one, a deleted base lies
# in one or between two. With g <= G gap letters, at least p - g parts have none. If each of these
# had m + 1 or more mismatches, there would be (p - g) (m + 1) > e - g mismatches in total. So one
# part has at most m mismatches and no gap.
#
# If every edit may be a gap (G = e), this gives e + 1 parts for any m, so parts without mismatches
# are best. Without gaps (G = 0), it is e // (m + 1) + 1.


def parts_needed(edits, gaps, mismatches):
    """Return the number of parts into which a read is cut; takes numbers or arrays."""
    return gaps + (edits - gaps) // (mismatches + 1) + 1
