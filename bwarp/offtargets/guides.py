"""Read guides from FASTA, tables or plain lines, and encode guides and PAMs."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bwarp.counted import counted
from bwarp.errors import InputError, UsageError
from bwarp.io.compressed_files import read_blocks
from bwarp.options.finding import LONGEST_GUIDE, LONGEST_PAM, SHORTEST_GUIDE
from bwarp.sequence import CODE_OF_BYTE

# PAMs: IUPAC patterns at one side of the protospacer, as sets of bases.


#: The bases that a letter allows: bit 0 for A, 1 for C, 2 for G, 3 for T.
_ALLOWED = {
    "A": 1, "C": 2, "G": 4, "T": 8, "U": 8, "R": 5, "Y": 10, "S": 6, "W": 9, "K": 12, "M": 3,
    "B": 14, "D": 13, "H": 11, "V": 7, "N": 15,
}  # fmt: skip


@dataclass(frozen=True)
class Pam:
    """PAMs, any one of which makes a site.

    Attributes
    ----------
    texts : tuple of str
        As typed, in upper case; empty if no PAM is required.
    side : int
        3 or 5: the end of the protospacer next to the PAM.
    lengths : ndarray, shape=(n,), dtype=int64
    allowed : ndarray, shape=(n, length), dtype=uint8
        The bases allowed by every letter, a bit each; a shorter PAM is placed next to the
        protospacer, and any base is allowed beyond it.
    """

    texts: tuple[str, ...]
    side: int
    lengths: np.ndarray
    allowed: np.ndarray

    @property
    def length(self) -> int:
        """The length of the longest PAM."""
        return self.allowed.shape[1]

    @property
    def name(self) -> str:
        """The PAMs as typed."""
        return ",".join(self.texts)

    @property
    def chance(self) -> float:
        """An upper bound of the share of random sequences with one of the PAMs at their end."""
        return float(sum(np.prod(np.bitwise_count(one) / 4) for one in self.allowed))

    def length_in(self, sequence: str) -> int:
        """Return the length of the first PAM that matches at its end of a sequence; 0 if none does.

        A letter of the sequence must not allow more bases than the letter of the PAM.
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
        """Return the PAMs grouped by length."""
        return [
            self._some(np.flatnonzero(self.lengths == length)) for length in np.unique(self.lengths)
        ]

    def one_by_one(self) -> list["Pam"]:
        """Return each PAM separately."""
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
    """Parse comma-separated PAMs; ``none`` for no PAM.

    Raises
    ------
    UsageError
        If a letter is not IUPAC, or a PAM is too long.
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
            raise UsageError(f"--pam {text}: a PAM must have 1 to {LONGEST_PAM} bases, or be none")
    lengths = np.array([len(pam) for pam in texts], np.int64)
    allowed = np.full((len(texts), lengths.max()), _ALLOWED["N"], np.uint8)
    for row, pam in zip(allowed, texts, strict=True):
        letters = [_ALLOWED[letter] for letter in pam]
        row[slice(len(pam)) if side == 3 else slice(row.size - len(pam), None)] = letters
    return Pam(texts, side, lengths, allowed)


#: No warning is given about guides that all carry a PAM if its chance is above this.
_LIKELY = 0.1

#: First cells of header lines.
_HEADS = ("guide", "guides", "name", "id", "guideid", "guide_id", "sequence", "guide_sequence")


@dataclass(frozen=True)
class Guides:
    """Guides without their PAMs, 15 to 40 bases each.

    Attributes
    ----------
    names : tuple of str
    sequences : tuple of str
        In upper case, from 5' to 3', T for U.
    longest : int
        The maximum length of a guide; in a part, that of all guides.
    """

    names: tuple[str, ...]
    sequences: tuple[str, ...]
    longest: int

    @property
    def count(self) -> int:
        return len(self.names)

    def part(self, number: int, parts: int) -> "Guides":
        """Return part `number`, from 1, of `parts` with about the same number of guides."""
        part = slice((number - 1) * self.count // parts, number * self.count // parts)
        return Guides(self.names[part], self.sequences[part], self.longest)

    @cached_property
    def lengths(self) -> np.ndarray:
        """shape=(count,), dtype=int64."""
        return np.array([len(sequence) for sequence in self.sequences], np.int64)

    @cached_property
    def codes(self) -> np.ndarray:
        """Codes of every guide from 5' to 3', shape=(count, 40), dtype=uint8."""
        codes = np.zeros((self.count, LONGEST_GUIDE), np.uint8)
        for row, sequence in zip(codes, self.sequences, strict=True):
            bases = CODE_OF_BYTE[np.frombuffer(sequence.encode(), np.uint8)]
            row[: bases.size] = bases
        return codes

    def codes_from_pam(self, side: int) -> np.ndarray:
        """Return codes of every guide from the PAM end on, shape=(count, 40), dtype=uint8."""
        if side == 5:
            return self.codes
        at = self.lengths[:, None] - 1 - np.arange(LONGEST_GUIDE)
        turned = np.take_along_axis(self.codes, np.maximum(at, 0), axis=1)
        return np.where(at >= 0, turned, np.uint8(0))


def guides_of(
    names: Sequence[str],
    sequences: Sequence[str],
    where: str = "guides",
    pam: Pam | None = None,
) -> Guides:
    """Make guides from names and sequences.

    Parameters
    ----------
    where : str
        Begins error messages.
    pam : Pam, optional
        Every sequence carries one of these PAMs, which is cut off.

    Raises
    ------
    InputError
        If a guide is too short or too long, has letters other than A, C, G, T and U, has the name
        of another one, or lacks a required PAM.
    """
    taken = []
    seen = set()
    for name, sequence in zip(names, sequences, strict=True):
        if pam is not None:
            sequence = _without_pam(sequence, pam, f"{where}, guide {name}")
        bases = sequence.upper().replace("U", "T")
        for at, letter in enumerate(bases):
            if letter not in "ACGT":
                raise InputError(
                    f"{where}, guide {name}: {sequence[at]!r} at position {at + 1} is not A, C, G "
                    "or T: give the PAM with --pam, not in the guide"
                )
        if not SHORTEST_GUIDE <= len(bases) <= LONGEST_GUIDE:
            raise InputError(
                f"{where}, guide {name} has {counted(len(bases), 'base')}: guides must have "
                f"{SHORTEST_GUIDE} to {LONGEST_GUIDE}"
            )
        if name in seen:
            raise InputError(f"{where}: two guides are named {name}: rename one")
        seen.add(name)
        taken.append(bases)
    return Guides(tuple(names), tuple(taken), max(map(len, taken), default=0))


def _without_pam(sequence: str, pam: Pam, where: str) -> str:
    length = pam.length_in(sequence.upper())
    if not length:
        raise InputError(
            f"{where} does not {'end' if pam.side == 3 else 'begin'} with the PAM {pam.name}: "
            "correct the guide or --pam, or omit --guides-have-pam"
        )
    return sequence[:-length] if pam.side == 3 else sequence[length:]


def pam_left_on(guides: Guides, pam: Pam, option: str) -> str | None:
    """Return a warning if all guides carry a PAM, unless that is likely by chance.

    `option` is the option that cuts PAMs off.
    """
    by_chance = pam.chance**guides.count > _LIKELY
    if by_chance or not all(pam.length_in(sequence) for sequence in guides.sequences):
        return None
    return (
        f"every guide {'ends' if pam.side == 3 else 'begins'} with the PAM {pam.name}, which is "
        f"searched for next to the guide: if the guides include their PAM, use {option}"
    )


def read_guides(path: str | os.PathLike, pam: Pam | None = None) -> Guides:
    """Read guides from FASTA, from lines of a name and a sequence, or from lines of a sequence
    only.

    Cells of a line are separated by blanks, tabs or commas; lines that begin with ``#`` and a
    header line are skipped. A guide without a name is named by its sequence.

    Raises
    ------
    InputError
        As for `guides_of`, which also explains `pam`, and if a file has no guides or other
        contents.
    """
    text = b"".join(read_blocks(path)).decode("utf-8", "replace")
    lines = [line.strip() for line in text.splitlines()]
    names, sequences = _of_fasta(path, lines) if text.startswith(">") else _of_lines(path, lines)
    if not names:
        raise InputError(f"{path}: no guides: write FASTA, or one sequence per line")
    return guides_of(names, sequences, str(path), pam)


def _of_fasta(path, lines: list[str]) -> tuple[list[str], list[str]]:
    names, sequences = [], []
    for number, line in enumerate(lines, 1):
        if line.startswith(">"):
            words = line[1:].split(maxsplit=1)
            if not words:
                raise InputError(f"{path}, line {number}: a guide without a name: write >name")
            names.append(words[0])
            sequences.append("")
        elif line:
            sequences[-1] += line
    return names, sequences


def _of_lines(path, lines: list[str]) -> tuple[list[str], list[str]]:
    names, sequences = [], []
    for number, line in enumerate(lines, 1):
        cells = line.replace(",", " ").split()
        if not cells or line.startswith("#"):
            continue
        if not names and cells[0].lower() in _HEADS:
            continue
        if len(cells) > 2:
            raise InputError(
                f"{path}, line {number}: found {counted(len(cells), 'column')}: write a name and a "
                "sequence, or only a sequence"
            )
        names.append(cells[0])
        sequences.append(cells[-1])
    return names, sequences
