"""Read pairs of primers from lines of a name, a forward and a reverse primer."""

import os
from dataclasses import dataclass

import numpy as np

from bwarp.counted import counted
from bwarp.errors import InputError
from bwarp.io.compressed_files import read_blocks
from bwarp.io.fastx import SequenceBatch
from bwarp.options.finding import LONGEST_KMER, SHORTEST_KMER
from bwarp.seeding.kmers import MOST_VARIANTS
from bwarp.seeding.queries import CODE_OF_LETTER, bases_of_codes

#: First cells of header lines.
_HEADS = ("name", "pair", "id", "primer")

#: The two primers of a pair.
DIRECTIONS = ("forward", "reverse")


@dataclass(frozen=True)
class PrimerPairs:
    """Pairs of primers; pair i has the forward primer 2 i and the reverse primer 2 i + 1.

    Attributes
    ----------
    names : tuple of str
        Names of the pairs.
    primers : tuple of str
        From 5' to 3', in upper case, T for U.
    """

    names: tuple[str, ...]
    primers: tuple[str, ...]

    @property
    def count(self) -> int:
        return len(self.names)

    @property
    def lengths(self) -> np.ndarray:
        """Lengths of the primers, dtype=int64."""
        return np.array([len(primer) for primer in self.primers], np.int64)

    def part(self, first: int, last: int) -> "PrimerPairs":
        """Return the pairs from number `first` up to, but excluding, `last`."""
        return PrimerPairs(self.names[first:last], self.primers[2 * first : 2 * last])

    def sequences(self) -> SequenceBatch:
        """Return primers as queries, with codes of `CODE_OF_LETTER`."""
        offsets = np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)
        return SequenceBatch(
            codes=CODE_OF_LETTER[np.frombuffer("".join(self.primers).encode(), np.uint8)],
            offsets=offsets,
            qualities=None,
            text=np.empty(0, np.uint8),
            headers=np.zeros((len(self.primers), 2), np.int64),
            first_record=0,
        )

    def last_bases(self, count: int) -> np.ndarray:
        """Return the bases allowed by the last letters, a bit each, shape=(n_primers, count),
        dtype=uint8.

        Letter 0 is at the 3' end; beyond the start of a shorter primer, all bases are allowed.
        """
        allowed = np.full((len(self.primers), count), 15, np.uint8)
        for row, primer in zip(allowed, self.primers, strict=True):
            codes = CODE_OF_LETTER[np.frombuffer(primer.encode(), np.uint8)][::-1][:count]
            row[: codes.size] = bases_of_codes(codes)
        return allowed


def read_pairs(path: str | os.PathLike) -> PrimerPairs:
    """Read pairs from lines of a name, a forward and a reverse primer, separated by white
    space or commas.

    Skips lines that begin with ``#`` and the header of a table.

    Raises
    ------
    InputError
        As for `pairs_of`, and for malformed lines.
    """
    names, primers = [], []
    text = b"".join(read_blocks(path)).decode("utf-8", "replace")
    for number, line in enumerate(text.splitlines(), 1):
        cells = line.replace(",", " ").split()
        if not cells or line.startswith("#") or (not names and cells[0].lower() in _HEADS):
            continue
        if len(cells) != 3:
            raise InputError(
                f"{path}, line {number}: found {counted(len(cells), 'column')}: write a name, a "
                "forward and a reverse primer"
            )
        names.append(cells[0])
        primers += cells[1:]
    if not names:
        raise InputError(f"{path}: no primer pairs: write a name and two primers per line")
    return pairs_of(names, primers, str(path))


def pairs_of(names: list[str], primers: list[str], where: str) -> PrimerPairs:
    """Make pairs of primers from names and a list of primers, two per name.

    Raises
    ------
    InputError
        If a primer is too short or too long, stands for too many sequences, or has invalid letters,
        or if two pairs have the same name. `where` begins the message.
    """
    seen = set()
    for name in names:
        if name in seen:
            raise InputError(f"{where}: two pairs are named {name}: rename one")
        seen.add(name)
    taken = []
    for number, primer in enumerate(primers):
        what = f"{where}, pair {names[number // 2]}, {DIRECTIONS[number % 2]} primer"
        letters = primer.upper().encode("latin-1", "replace").replace(b"U", b"T")
        codes = CODE_OF_LETTER[np.frombuffer(letters, np.uint8)]
        for at in np.flatnonzero(codes == 255)[:1]:
            raise InputError(
                f"{what}: {primer[at]!r} at position {at + 1} is not a nucleotide letter (IUPAC)"
            )
        if not SHORTEST_KMER <= codes.size <= LONGEST_KMER:
            raise InputError(
                f"{what} has {counted(codes.size, 'base')}: primers must have {SHORTEST_KMER} to "
                f"{LONGEST_KMER}"
            )
        counts = np.bitwise_count(bases_of_codes(codes)).astype(np.float64)
        if np.log2(counts).sum() > np.log2(MOST_VARIANTS):
            raise InputError(
                f"{what} represents more than {MOST_VARIANTS} sequences: use fewer ambiguous "
                "letters"
            )
        taken.append(letters.decode())
    return PrimerPairs(tuple(names), tuple(taken))
