"""PAMs: IUPAC patterns on one side of the protospacer, as sets of bases for the scan."""

from dataclasses import dataclass

import numpy as np

from bwarp.errors import UsageError

__all__ = ["LONGEST_PAM", "SIDES", "Pam", "parse_pam"]

#: More is no PAM; and what is read of the genome around a site has a fixed size.
LONGEST_PAM = 16

#: The end of the protospacer that the PAM is at.
SIDES = (3, 5)

#: The bases that a letter allows: bit 0 for A, 1 for C, 2 for G, 3 for T.
_ALLOWED = {
    "A": 1, "C": 2, "G": 4, "T": 8, "U": 8, "R": 5, "Y": 10, "S": 6, "W": 9, "K": 12, "M": 3,
    "B": 14, "D": 13, "H": 11, "V": 7, "N": 15,
}  # fmt: skip


@dataclass(frozen=True)
class Pam:
    """PAMs of one length, any of which may stand at a site.

    Attributes
    ----------
    texts : tuple of str
        As typed, in upper case; none where no PAM is asked for.
    side : int
        3 or 5: the end of the protospacer that they are at.
    allowed : ndarray, shape=(n, length), dtype=uint8
        The bases of every letter, a bit each.
    """

    texts: tuple[str, ...]
    side: int
    allowed: np.ndarray

    @property
    def length(self) -> int:
        return self.allowed.shape[1]

    def on_other_strand(self) -> np.ndarray:
        """`allowed` of the reverse complements."""
        swapped = self.allowed[:, ::-1]
        bits = [(swapped >> bit & 1) << (3 - bit) for bit in range(4)]
        return np.ascontiguousarray(bits[0] | bits[1] | bits[2] | bits[3])


def parse_pam(text: str, side: int = 3) -> Pam:
    """PAMs with commas between them; ``none`` for no PAM.

    Raises
    ------
    UsageError
        For what is no IUPAC letter, and for PAMs of several lengths.
    """
    if text.lower() == "none":
        return Pam((), side, np.zeros((1, 0), np.uint8))
    texts = tuple(dict.fromkeys(text.upper().split(",")))
    for pam in texts:
        for letter in pam:
            if letter not in _ALLOWED:
                raise UsageError(
                    f"--pam {text}: {letter!r} is not a nucleotide letter (IUPAC): write PAMs such "
                    "as NGG or NGG,NAG, or none"
                )
        if not 1 <= len(pam) <= LONGEST_PAM:
            raise UsageError(f"--pam {text}: a PAM has 1 to {LONGEST_PAM} bases, or is none")
        if len(pam) != len(texts[0]):
            raise UsageError(
                f"--pam {text}: PAMs of one search have one length: pad the shorter with N, or "
                "search for each length by itself"
            )
    allowed = np.array([[_ALLOWED[letter] for letter in pam] for pam in texts], np.uint8)
    return Pam(texts, side, allowed)
