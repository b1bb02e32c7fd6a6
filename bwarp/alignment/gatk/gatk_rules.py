"""GATK's pairwise alignment: its parameter sets, overhang strategies and result, for both engines.

Both engines give what GATK's SmithWatermanJavaAligner gives, base for base. Sequences are
upper-case bases as bytes (not codes): GATK compares bytes, so N matches N.

With ref of n bases along the rows and alt of m along the columns (GATK's own orientation):

    strategies SOFTCLIP and IGNORE: where alt occurs in ref, the right-most occurrence is the
      answer (offset, mM), without any scoring
    borders:  H = 0, but for INDEL and LEADING_INDEL H(0,j) = open + (j-1) extend, H(i,0) alike
    a gap of length k scores open + (k-1) extend (both negative); a tie between opening and
      extending extends; H is not floored at 0, only at -100,000,000
    H(i,j):   the diagonal if it is >= both gaps; else the insertion (alt bases, left) if it is
      >= the deletion; else the deletion (ref bases, up); gaps remember their run length
    the end:  INDEL: (n, m). Else the last column's best, the largest i of equals; and, unless
      LEADING_INDEL, then along the last row j = 1 .. m: better, or equal with |n-j| < |i-j'| of
      the best so far (i, j')
    traceback: jumps over whole runs until ref or alt is used up; SOFTCLIP clips what is left
      of alt at either end (S), IGNORE counts it into the M run there (so that the offset may be
      negative), INDEL and LEADING_INDEL write D or I for what is left at the start
"""

from dataclasses import dataclass

import numpy as np

from bwarp.errors import UsageError
from bwarp.options.aligning import PAIRS
from bwarp.sequence import IUPAC

__all__ = [
    "GATK_PARAMETERS",
    "LETTER_OF_BYTE",
    "OVERHANGS",
    "GatkAlignments",
    "GatkParameters",
    "check_overhang",
]


def _letter_table() -> np.ndarray:
    table = np.full(256, 255, np.uint8)
    for letter in IUPAC:
        table[letter] = table[letter + 32] = letter
    table.setflags(write=False)
    return table


#: uint8[256]: the upper-case letter of every IUPAC nucleotide letter, 255 for other bytes.
LETTER_OF_BYTE = _letter_table()

#: Overhang strategies by the names that programs take.
OVERHANGS = PAIRS["overhang"].value.words


@dataclass(frozen=True)
class GatkParameters:
    """GATK's SWParameters: a gap of length k scores gap_open + (k - 1) * gap_extend."""

    match: int
    mismatch: int
    gap_open: int
    gap_extend: int

    def __post_init__(self):
        if self.match <= 0 or self.mismatch >= 0 or self.gap_extend >= 0:
            raise UsageError(
                f"match {self.match}, mismatch {self.mismatch}, gap-extend {self.gap_extend}: "
                "in GATK's mode a match scores above 0, the others below"
            )
        if self.gap_open > self.gap_extend:
            raise UsageError(
                f"gap-open {self.gap_open} is less of a penalty than gap-extend "
                f"{self.gap_extend}: in GATK's mode it is what the first base of a gap scores"
            )


#: The four sets of GATK, with the names its source gives them.
GATK_PARAMETERS = {
    "original-default": GatkParameters(3, -1, -4, -3),
    "standard-ngs": GatkParameters(25, -50, -110, -6),
    "new-sw-parameters": GatkParameters(200, -150, -260, -11),
    "alignment-to-best-haplotype": GatkParameters(10, -15, -30, -5),
}


@dataclass(frozen=True)
class GatkAlignments:
    """Where each alternate lies in its reference, and its CIGAR of M, I, D and S.

    Attributes
    ----------
    scores : ndarray, shape=(count,), dtype=int32
        H of the end cell; for an exact occurrence, its length times match.
    offsets : ndarray, shape=(count,), dtype=int32
        0-based start in the reference; negative only with overhang "ignore".
    cigar_offsets : ndarray, shape=(count + 1,), dtype=int64
    cigar : ndarray, dtype=uint32
    """

    scores: np.ndarray
    offsets: np.ndarray
    cigar_offsets: np.ndarray
    cigar: np.ndarray


def check_overhang(overhang: str) -> None:
    """Refuse what is no overhang strategy."""
    PAIRS["overhang"].check(overhang)
