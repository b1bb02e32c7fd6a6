"""Genomes with the repeats of AT-rich parasites, which `bwarp simulate-genome` does not write.

    background        independent bases with the given GC content
    gene families     genes of 1 to 5 kb in 4 to 40 copies on both strands, up to 15 % diverged
                      from their ancestor, so 70 to 99 % identical to one another
    low complexity    stretches of 30 to 300 bases, mostly of one or two bases
    tandem repeats    arrays of 2 to 40 copies of a unit of 2 to 200 bases, 0 to 20 % diverged
    short periods     stretches of 60 to 200 bases of a unit of 1 to 6 bases, 0 to 20 % diverged:
                      about as long as a read, of which few bases then show its origin

Each layer is written over the previous ones.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from bwarp.sequence import decode
from bwarp.simulation.counter_random import stream_key
from bwarp.simulation.genome import Copies, Units, random_bases, write_copies

__all__ = ["RepeatGenome", "write_genome"]

#: Bases of the longest array of a tandem repeat.
LONGEST_ARRAY = 3000


class RepeatGenome(NamedTuple):
    """Length and GC content of a genome, and the fractions of its layers."""

    length: int
    gc: float
    families: float
    low_complexity: float
    tandem: float
    short_periods: float = 0


def write_genome(fasta: Path, genome: RepeatGenome, seed: int) -> None:
    """Write a simulated genome as FASTA; the same seed gives the same file."""
    rng = np.random.default_rng(seed)
    codes = np.empty(genome.length, np.uint8)
    random_bases(codes, stream_key(seed, 0), genome.gc)
    for number, (layer, share) in enumerate((
        (_families, genome.families),
        (_low_complexity, genome.low_complexity),
        (_tandem_repeats, genome.tandem),
        (_short_periods, genome.short_periods),
    ), 1):  # fmt: skip
        units, copies = layer(rng, genome, int(share * genome.length))
        write_copies(codes, units, copies, stream_key(seed, number))
    contigs = np.array_split(codes, 3)
    with open(fasta, "wb") as file:
        for number, contig in enumerate(contigs, 1):
            file.write(b">chr%d\n%s\n" % (number, decode(contig)))


def _units(parts: list[np.ndarray]) -> Units:
    lengths = [part.size for part in parts]
    return Units(np.concatenate([*parts, np.empty(0, np.uint8)]), np.cumsum([0, *lengths]))


def _copies(rng, genome, units, lengths, divergences, reverse) -> Copies:
    """Place whole copies of units anywhere in the genome."""
    n = len(lengths)
    lengths, units = np.array(lengths, np.int64), np.array(units, np.int64)
    starts = rng.integers(0, genome.length - lengths.max(initial=0), n)
    flags = rng.random(n) < 0.5 if reverse else np.zeros(n, bool)
    return Copies(starts, lengths, units, np.zeros(n, np.int64), flags, np.array(divergences))


def _bases(rng, gc: float, n: int) -> np.ndarray:
    return rng.choice(4, n, p=[(1 - gc) / 2, gc / 2, gc / 2, (1 - gc) / 2]).astype(np.uint8)


def _families(rng, genome, bases):
    parts, units, lengths, divergences = [], [], [], []
    while sum(lengths) < bases:
        gene = _bases(rng, genome.gc, int(rng.integers(1000, 5000)))
        n = int(rng.integers(4, 41))
        oldest = rng.uniform(0.005, 0.15)
        units += [len(parts)] * n
        lengths += [gene.size] * n
        divergences += list(oldest * rng.uniform(0.3, 1, n))
        parts.append(gene)
    return _units(parts), _copies(rng, genome, units, lengths, divergences, True)


def _low_complexity(rng, genome, bases):
    parts = []
    while sum(part.size for part in parts) < bases:
        n = int(rng.integers(30, 301))
        letters = rng.permutation([0, 3]) if rng.random() < 0.8 else rng.permutation(4)
        rare = rng.uniform(0, 0.1)
        second = rng.choice([0, rng.uniform(0, 0.5)])
        shares = [1 - rare - second, second, rare] if len(letters) > 2 else [1 - second, second]
        part = rng.choice(letters[: len(shares)], n, p=shares)
        parts.append(part.astype(np.uint8))
    n = len(parts)
    lengths = [part.size for part in parts]
    return _units(parts), _copies(rng, genome, range(n), lengths, np.zeros(n), False)


def _tandem_repeats(rng, genome, bases):
    parts, lengths, divergences = [], [], []
    while sum(lengths) < bases:
        period = int(np.exp(rng.uniform(np.log(2), np.log(201))))
        parts.append(_bases(rng, genome.gc, period))
        n = np.exp(rng.uniform(np.log(2), np.log(40)))
        lengths.append(max(20, min(int(n * period), LONGEST_ARRAY)))
        divergences.append(rng.choice([0, rng.uniform(0, 0.2)]))
    units = range(len(parts))
    return _units(parts), _copies(rng, genome, units, lengths, divergences, False)


def _short_periods(rng, genome, bases):
    parts = [_bases(rng, genome.gc, int(rng.integers(1, 7))) for _ in range(bases // 130)]
    n = len(parts)
    lengths, divergences = rng.integers(60, 201, n), rng.uniform(0, 0.2, n)
    return _units(parts), _copies(rng, genome, range(n), lengths, divergences, False)
