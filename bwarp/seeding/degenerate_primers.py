"""Degenerate primers: which plain sequences IUPAC letters stand for."""

import itertools
import math
from collections.abc import Iterator

import numpy as np

__all__ = ["LETTER_OF_BYTE", "count_forms", "forms"]

#: The bases that a letter stands for.
_MEANT = {
    "A": "A", "C": "C", "G": "G", "T": "T", "R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT",
    "M": "AC", "B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT",
}  # fmt: skip


def _letter_table() -> np.ndarray:
    table = np.full(256, 255, np.uint8)
    for letter in _MEANT:
        table[ord(letter)] = table[ord(letter.lower())] = ord(letter)
    table[ord("U")] = table[ord("u")] = ord("T")
    table.setflags(write=False)
    return table


#: uint8[256]: every IUPAC letter in upper case, U as T; 255 for any other byte.
LETTER_OF_BYTE = _letter_table()


def count_forms(letters: str) -> int:
    """How many plain sequences upper-case IUPAC letters stand for."""
    return math.prod(len(_MEANT[letter]) for letter in letters)


def forms(letters: str) -> Iterator[tuple[str, str]]:
    """Every plain sequence, in the order of the alphabet, after what the ambiguous letters became.

    >>> list(forms("ARN"))[:2]
    [('AA', 'AAA'), ('AC', 'AAC')]
    """
    ambiguous = [i for i, letter in enumerate(letters) if len(_MEANT[letter]) > 1]
    for chosen in itertools.product(*(_MEANT[letter] for letter in letters)):
        yield "".join(chosen[i] for i in ambiguous), "".join(chosen)
