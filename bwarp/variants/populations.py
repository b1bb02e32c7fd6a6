"""Populations of samples, as groups of haplotypes."""

import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bwarp.counted import counted
from bwarp.errors import InputError
from bwarp.io.compressed_files import read_blocks


class Populations(NamedTuple):
    """The haplotypes of each population.

    Attributes
    ----------
    names : tuple of str
    haplotypes : ndarray, shape=(n, n_words), dtype=uint64
        A bit per haplotype.
    """

    names: tuple[str, ...]
    haplotypes: np.ndarray

    def counts_of(self, haplotypes: np.ndarray) -> np.ndarray:
        """Return how many of some haplotypes are in each population."""
        return np.bitwise_count(self.haplotypes & haplotypes).sum(axis=1, dtype=np.int64)


def read_populations(path: str | os.PathLike) -> dict[str, list[str]]:
    """Read lines of a sample and a population; return the populations of each sample.

    A sample may be in several populations, on a line each. Lines that begin with ``#`` are skipped.

    Raises
    ------
    InputError
        For malformed lines.
    """
    found: dict[str, list[str]] = {}
    text = b"".join(read_blocks(path)).decode("utf-8", "replace")
    for number, line in enumerate(text.splitlines(), 1):
        cells = line.split()
        if not cells or line.startswith("#"):
            continue
        if len(cells) != 2 or set(cells[1]) & set(";="):
            raise InputError(
                f"{path}, line {number}: found {counted(len(cells), 'column')}: write a sample and "
                "a population without ; and ="
            )
        found.setdefault(cells[0], []).append(cells[1])
    return found


def populations_of(samples: Sequence[str], of_sample: dict[str, list[str]]) -> Populations:
    """Return the populations of the samples of a file, in the order of the table."""
    names = tuple(dict.fromkeys(name for some in of_sample.values() for name in some))
    bits = np.zeros((len(names), -(-max(2 * len(samples), 1) // 64) * 64), np.uint8)
    for number, sample in enumerate(samples):
        for name in of_sample.get(sample, ()):
            bits[names.index(name), 2 * number : 2 * number + 2] = 1
    return Populations(names, np.packbits(bits, axis=1, bitorder="little").view(np.uint64))
