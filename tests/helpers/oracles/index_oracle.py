"""The expected content of an index, by sorting all suffixes; and difficult references."""

import numpy as np

from bwarp.index.build import build_index
from bwarp.index.fm_index import FMIndex
from bwarp.index.parameters import IndexParameters
from bwarp.reference import Reference, make_reference
from bwarp.sequence import encode


def reference_of(contigs: list[bytes]) -> Reference:
    """Return a reference of contigs given as text."""
    starts = np.concatenate([[0], np.cumsum([len(contig) for contig in contigs])])
    names = tuple(f"contig{i}" for i in range(len(contigs)))
    return make_reference(names, starts, encode(b"".join(contigs)))


def index_of(
    contigs, occ_rate=64, sa_rate=4, prefix_length=3, threads=1, with_reverse=True
) -> FMIndex:
    """Return the index of contigs given as text, built on the CPU."""
    parameters = IndexParameters(occ_rate, sa_rate, prefix_length)
    reference = reference_of(contigs)
    return build_index(reference, parameters, "cpu", threads, with_reverse=with_reverse)


def turned(text: np.ndarray) -> np.ndarray:
    """Return a reversed text, with its last separator still last."""
    return np.append(text[-2::-1], np.uint8(0))


class SortedSuffixes:
    """The sorted suffixes of a text, and the parts of an index, in plain Python."""

    def __init__(self, text: np.ndarray):
        bases = text.tobytes()
        self.n = len(bases)
        self.text = bases
        self.suffix_array = sorted(range(self.n), key=lambda start: bases[start:])
        self.row_of = {position: row for row, position in enumerate(self.suffix_array)}
        #: The base before each row's suffix, 4 for a separator.
        self.bases = [(bases[position - 1] - 1) % 5 for position in self.suffix_array]

    def rank(self, code: int, row: int) -> int:
        return self.bases[:row].count(code)

    def lf(self, row: int) -> int:
        """Return the row of the suffix one base longer; for the whole text, its last suffix."""
        return self.row_of[(self.suffix_array[row] - 1) % self.n]

    def rows_of(self, pattern: list[int]) -> tuple[int, int]:
        """Return the first row and number of rows that begin with the pattern; (0, 0) for none."""
        wanted = bytes(code + 1 for code in pattern)
        rows = [
            row
            for row, start in enumerate(self.suffix_array)
            if self.text.startswith(wanted, start)
        ]
        return (rows[0], len(rows)) if rows else (0, 0)

    def blocks(self, occ_rate: int) -> np.ndarray:
        """Return the blocks shown in `bwarp.index.fm_index`, made word by word."""
        blocks = np.zeros((self.n // occ_rate + 1, 4 + occ_rate // 16), np.uint32)
        for number, block in enumerate(blocks):
            first = number * occ_rate
            for word, code in enumerate((1, 2, 3)):
                block[word] = self.rank(code, first)
            here = self.bases[first : first + occ_rate]
            block[3] = 2 * self.rank(4, first) + (4 in here)
            for i, code in enumerate(here):
                block[4 + 2 * (i // 32)] |= (code & 1) << i % 32
                block[5 + 2 * (i // 32)] |= (code >> 1 & 1) << i % 32
        return blocks


def _contigs_with_gaps() -> list[bytes]:
    rng = np.random.default_rng(4)
    alphabet = np.frombuffer(b"ACGTN", np.uint8)
    return [rng.choice(alphabet, n, p=[0.24] * 4 + [0.04]).tobytes() for n in (170, 0, 1, 90, 33)]


def _random(n: int, seed: int = 5) -> bytes:
    return np.random.default_rng(seed).choice(np.frombuffer(b"ACGT", np.uint8), n).tobytes()


#: Contigs of a few hundred bases with difficult features.
HOSTILE = {
    "one base": [b"G"],
    "one base a contig": [b"A", b"C", b"A", b"A", b"T", b"G", b"T"] * 9,
    "200 contigs": [_random(n % 5 + 1, n) for n in range(200)],
    "all A": [b"A" * 300],
    "all T": [b"T" * 300],
    "A in gaps": [b"N" * 40, b"AANAANNAAA" * 9, b"N", b"A" * 33 + b"N" * 5],
    "tandem repeats": [b"ACGGT" * 40 + b"T", b"CA" * 60],
    "the same contig often": [_random(70)] * 5,
    "with gaps": _contigs_with_gaps(),
    "random": [_random(400)],
}

#: Texts that end near the ends of blocks: n bases and a separator.
AROUND_A_BLOCK = {
    f"{n + 1} rows": [_random(n)] for n in (30, 31, 32, 63, 64, 65, 95, 127, 191, 192)
}
