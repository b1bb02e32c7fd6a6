"""PAMs: IUPAC patterns on one side of the protospacer, as sets of bases for the scan."""

from dataclasses import dataclass

import numpy as np

from bwarp.errors import UsageError
from bwarp.options.finding import LONGEST_PAM

__all__ = ["LONGEST_PAM", "Pam", "parse_pam"]

#: The bases that a letter allows: bit 0 for A, 1 for C, 2 for G, 3 for T.
_ALLOWED = {
    "A": 1, "C": 2, "G": 4, "T": 8, "U": 8, "R": 5, "Y": 10, "S": 6, "W": 9, "K": 12, "M": 3,
    "B": 14, "D": 13, "H": 11, "V": 7, "N": 15,
}  # fmt: skip


@dataclass(frozen=True)
class Pam:
    """PAMs, any of which may stand at a site.

    Attributes
    ----------
    texts : tuple of str
        As typed, in upper case; none where no PAM is asked for.
    side : int
        3 or 5: the end of the protospacer that they are at.
    lengths : ndarray, shape=(n,), dtype=int64
    allowed : ndarray, shape=(n, length), dtype=uint8
        The bases of every letter, a bit each; those of a shorter PAM lie beside the protospacer,
        and beyond them any base is allowed.
    """

    texts: tuple[str, ...]
    side: int
    lengths: np.ndarray
    allowed: np.ndarray

    @property
    def length(self) -> int:
        """That of the longest."""
        return self.allowed.shape[1]

    @property
    def name(self) -> str:
        """The PAMs as typed."""
        return ",".join(self.texts)

    @property
    def chance(self) -> float:
        """At most the share of random sequences that have one of the PAMs at their end."""
        return float(sum(np.prod(np.bitwise_count(one) / 4) for one in self.allowed))

    def length_in(self, sequence: str) -> int:
        """The bases of the first PAM that stands at its end of a sequence; 0 if none does.

        A letter of the sequence must not allow more bases than that of the PAM.
        """
        for text in self.texts:
            end = sequence[-len(text) :] if self.side == 3 else sequence[: len(text)]
            if len(end) == len(text) and all(
                letter in _ALLOWED and _ALLOWED[letter] | _ALLOWED[wanted] == _ALLOWED[wanted]
                for letter, wanted in zip(end, text, strict=True)
            ):
                return len(text)
        return 0

    def by_length(self) -> list["Pam"]:
        """The PAMs of each length by themselves."""
        return [
            self._some(np.flatnonzero(self.lengths == length)) for length in np.unique(self.lengths)
        ]

    def one_by_one(self) -> list["Pam"]:
        """Every PAM by itself."""
        return [self._some(np.array([number])) for number in range(len(self.lengths))]

    def _some(self, numbers: np.ndarray) -> "Pam":
        length = int(self.lengths[numbers[0]])
        first = 0 if self.side == 3 else self.length - length
        texts = tuple(self.texts[number] for number in numbers if self.texts)
        allowed = self.allowed[numbers, first : first + length]
        return Pam(texts, self.side, self.lengths[numbers], allowed)

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
        For what is no IUPAC letter, and for PAMs that are too long.
    """
    if text.lower() == "none":
        return Pam((), side, np.zeros(1, np.int64), np.zeros((1, 0), np.uint8))
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
    lengths = np.array([len(pam) for pam in texts], np.int64)
    allowed = np.full((len(texts), lengths.max()), _ALLOWED["N"], np.uint8)
    for row, pam in zip(allowed, texts, strict=True):
        letters = [_ALLOWED[letter] for letter in pam]
        row[slice(len(pam)) if side == 3 else slice(row.size - len(pam), None)] = letters
    return Pam(texts, side, lengths, allowed)
