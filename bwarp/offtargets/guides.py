"""Guides: their names and bases, read from FASTA, tables or plain lines, and as bit planes."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bwarp.counted import counted
from bwarp.errors import InputError
from bwarp.io.file_blocks import read_blocks
from bwarp.offtargets.pam import Pam
from bwarp.options.finding import LONGEST_GUIDE, SHORTEST_GUIDE
from bwarp.sequence import CODE_OF_BYTE

__all__ = ["Guides", "guides_of", "pam_left_on", "read_guides"]

#: Guides that all carry a PAM with a chance above this are no reason to warn.
_LIKELY = 0.1

#: First cells of lines that are heads of tables.
_HEADS = ("guide", "guides", "name", "id", "guideid", "guide_id", "sequence", "guide_sequence")


@dataclass(frozen=True)
class Guides:
    """Guides without their PAMs, 15 to 40 bases each.

    Attributes
    ----------
    names : tuple of str
    sequences : tuple of str
        In upper case, from 5' to 3', T for U.
    """

    names: tuple[str, ...]
    sequences: tuple[str, ...]

    @property
    def count(self) -> int:
        return len(self.names)

    @cached_property
    def lengths(self) -> np.ndarray:
        """shape=(count,), dtype=int64."""
        return np.array([len(sequence) for sequence in self.sequences], np.int64)

    @cached_property
    def codes(self) -> np.ndarray:
        """Of every guide from 5' to 3', shape=(count, 40), dtype=uint8."""
        codes = np.zeros((self.count, LONGEST_GUIDE), np.uint8)
        for row, sequence in zip(codes, self.sequences, strict=True):
            bases = CODE_OF_BYTE[np.frombuffer(sequence.encode(), np.uint8)]
            row[: bases.size] = bases
        return codes

    def codes_from_pam(self, side: int) -> np.ndarray:
        """Codes of every guide from the end that the PAM is at, shape=(count, 40), dtype=uint8."""
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
    """Guides of names and sequences.

    Parameters
    ----------
    where : str
        Begins the messages of errors.
    pam : Pam, optional
        The PAMs of which every sequence carries one, which is cut off.

    Raises
    ------
    InputError
        For a guide that is too short or long, has other letters than A, C, G, T and U, has the
        name of another one, or does not carry a PAM though it should.
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
                    f"{where}, guide {name}: {sequence[at]!r} at position {at + 1}: guides are of "
                    "A, C, G and T; the PAM, which may have IUPAC letters, is given by --pam"
                )
        if not SHORTEST_GUIDE <= len(bases) <= LONGEST_GUIDE:
            raise InputError(
                f"{where}, guide {name} has {counted(len(bases), 'base')}: {SHORTEST_GUIDE} to "
                f"{LONGEST_GUIDE} can be searched"
            )
        if name in seen:
            raise InputError(f"{where}: two guides have the name {name}: every one needs its own")
        seen.add(name)
        taken.append(bases)
    return Guides(tuple(names), tuple(taken))


def _without_pam(sequence: str, pam: Pam, where: str) -> str:
    length = pam.length_in(sequence.upper())
    if not length:
        raise InputError(
            f"{where} does not {'end' if pam.side == 3 else 'begin'} with the PAM {pam.name}: "
            "correct the guide or --pam, or leave out --guides-have-pam"
        )
    return sequence[:-length] if pam.side == 3 else sequence[length:]


def pam_left_on(guides: Guides, pam: Pam, option: str) -> str | None:
    """What to say where all guides carry a PAM, unless that is likely by chance.

    `option` is what cuts PAMs off.
    """
    by_chance = pam.chance**guides.count > _LIKELY
    if by_chance or not all(pam.length_in(sequence) for sequence in guides.sequences):
        return None
    return (
        f"every guide {'ends' if pam.side == 3 else 'begins'} with the PAM {pam.name}, which is "
        f"searched for beside the guide: if the guides were exported with their PAM, give {option}"
    )


def read_guides(path: str | os.PathLike, pam: Pam | None = None) -> Guides:
    """Guides from FASTA, from lines of a name and a sequence, or from lines of a sequence alone.

    Lines have blanks, tabs or commas between cells; a line that begins with ``#`` and the head of
    a table are left out. A guide without a name is called by its sequence.

    Raises
    ------
    InputError
        As `guides_of`, which also says what `pam` is, and for a file that holds no guide or
        something else.
    """
    text = b"".join(read_blocks(path)).decode("utf-8", "replace")
    lines = [line.strip() for line in text.splitlines()]
    names, sequences = _of_fasta(path, lines) if text.startswith(">") else _of_lines(path, lines)
    if not names:
        raise InputError(f"{path}: holds no guides: write FASTA, or one sequence a line")
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
                f"{path}, line {number}: has {counted(len(cells), 'cell')}: write a name and a "
                "sequence, or a "
                "sequence alone"
            )
        names.append(cells[0])
        sequences.append(cells[-1])
    return names, sequences
