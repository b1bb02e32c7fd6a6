"""A simulated genome: contigs of uneven length with the repeats and gaps of a real one.

It is painted in layers, each over the one before:

    background       independent bases of the GC content asked for
    interspersed     transposon families and microsatellites, not overlapping
    duplications     segments of 1 to 64 kb copied to elsewhere in the genome, 0-2 % diverged
    satellites       one array a contig of 171-base monomers in higher-order units
    gaps             runs of N: both telomeres, one beside the satellite array, and smaller ones
    IUPAC letters    single ambiguous bases

A later layer hides some of an earlier one, so that fractions hold for what was painted, before.
"""

from dataclasses import dataclass

import numpy as np

from bwarp.counted import counted
from bwarp.errors import UsageError
from bwarp.sequence import AMBIGUOUS
from bwarp.simulation.counter_random import check_share, draws, index_draws, stream_key, unit_draws
from bwarp.simulation.repeats import (
    FAMILY_KINDS,
    N_MOTIFS,
    SATELLITE_UNITS,
    Copies,
    Units,
    plan_interspersed,
    random_bases,
    repeat_units,
    write_copies,
)

__all__ = ["Genome", "GenomeParameters", "simulate_genome"]

#: Of the bases in tandem repeats, the part that is satellite arrays; the rest is microsatellites.
SATELLITE_SHARE = 0.7
SATELLITE_DIVERGENCE = 0.01
OLDEST_DUPLICATION = 0.02
#: Of the bases in gaps: the share of each telomere and of the gap beside the satellite array.
TELOMERE_SHARE = 0.1
CENTROMERE_SHARE = 0.5
LONGEST_TELOMERE = 10_000

IUPAC_LETTERS = b"RYSWKM"


@dataclass(frozen=True)
class GenomeParameters:
    """What a simulated genome is like.

    Attributes
    ----------
    length, contigs : int
        Bases in all, and how many contigs share them; the first is five times the last.
    seed : int
        The same seed and parameters give the same genome.
    gc : float
        The part of the background that is G or C.
    repeat_fraction, tandem_fraction, duplication_fraction, n_fraction : float
        The parts of the genome that are transposons, tandem repeats (microsatellites and
        satellite arrays), segmental duplications, and runs of N.
    iupac_letters : int
        How many single bases become ambiguous letters such as R and Y, but for those that fall on
        one another or on N.
    """

    length: int
    contigs: int = 1
    seed: int = 1
    gc: float = 0.41
    repeat_fraction: float = 0.45
    tandem_fraction: float = 0.04
    duplication_fraction: float = 0.04
    n_fraction: float = 0.02
    iupac_letters: int = 0

    def __post_init__(self):
        if self.contigs < 1:
            raise UsageError(f"contigs {self.contigs}: a genome has at least 1 contig")
        if self.length < self.contigs:
            raise UsageError(
                f"length {self.length} is too short for {counted(self.contigs, 'contig')}: "
                "every contig needs at least one base"
            )
        parts = ("repeat_fraction", "tandem_fraction", "duplication_fraction", "n_fraction")
        for name in ("gc", *parts):
            check_share(name.replace("_", " "), getattr(self, name))
        in_all = sum(getattr(self, name) for name in parts)
        if round(in_all, 9) > 1:
            raise UsageError(
                f"the repeat, tandem, duplication and n fractions come to {in_all:g} of the "
                "genome: they must not pass 1"
            )
        if not 0 <= self.iupac_letters <= self.length:
            raise UsageError(
                f"iupac letters {self.iupac_letters} is not from 0 to the genome's length"
            )


@dataclass(frozen=True)
class Genome:
    """A simulated genome.

    Attributes
    ----------
    names : tuple of str
        ``chr1``, ``chr2``, ...
    codes : ndarray, shape=(n_bases,), dtype=uint8
        The contigs end to end, 4 where ambiguous.
    offsets : ndarray, shape=(n_contigs + 1,), dtype=int64
        Contig i is ``codes[offsets[i]:offsets[i + 1]]``.
    repeats : ndarray, shape=(n, 2), dtype=int64
        Where the interspersed repeats and satellite arrays begin and end, sorted.
    iupac_positions : ndarray, shape=(m,), dtype=int64
        Where single ambiguous letters stand, sorted.
    iupac_letters : ndarray, shape=(m,), dtype=uint8
        Those letters, ASCII.
    """

    names: tuple[str, ...]
    codes: np.ndarray
    offsets: np.ndarray
    repeats: np.ndarray
    iupac_positions: np.ndarray
    iupac_letters: np.ndarray


def simulate_genome(parameters: GenomeParameters, threads: int = 1) -> Genome:
    """Simulate a genome; it depends on the parameters alone, not on the number of threads.

    Takes a byte a base, and about 60 bytes for each of its transposons and microsatellites.
    """
    p = parameters
    offsets = _contig_offsets(p.length, p.contigs)
    codes = np.empty(p.length, np.uint8)
    random_bases(codes, stream_key(p.seed, 0), p.gc, threads)
    units = repeat_units(stream_key(p.seed, 1), p.gc)

    tandem_bases = p.length * p.tandem_fraction
    interspersed = plan_interspersed(
        stream_key(p.seed, 2),
        p.length,
        p.length * p.repeat_fraction,
        tandem_bases * (1 - SATELLITE_SHARE),
    )
    write_copies(codes, units, interspersed, stream_key(p.seed, 3), threads)
    duplicated_bases = int(p.length * p.duplication_fraction)
    _paint_duplications(codes, offsets, duplicated_bases, stream_key(p.seed, 4))
    satellites = _plan_satellites(offsets, p.tandem_fraction * SATELLITE_SHARE)
    write_copies(codes, units, satellites, stream_key(p.seed, 5), threads)
    _paint_gaps(codes, offsets, satellites, p.n_fraction, stream_key(p.seed, 6))

    starts = np.concatenate([interspersed.starts, satellites.starts])
    lengths = np.concatenate([interspersed.lengths, satellites.lengths])
    repeats = np.stack([starts, starts + lengths], axis=1)[np.argsort(starts, kind="stable")]
    positions = np.unique(index_draws(stream_key(p.seed, 7), p.iupac_letters, p.length))
    positions = positions[codes[positions] != AMBIGUOUS]
    codes[positions] = AMBIGUOUS
    letters = np.frombuffer(IUPAC_LETTERS, np.uint8)
    return Genome(
        names=tuple(f"chr{i + 1}" for i in range(p.contigs)),
        codes=codes,
        offsets=offsets,
        repeats=repeats,
        iupac_positions=positions,
        iupac_letters=letters[index_draws(stream_key(p.seed, 8), positions.size, letters.size)],
    )


def _contig_offsets(length: int, contigs: int) -> np.ndarray:
    """Contigs that shrink evenly from the first to the last, a fifth of it, none empty."""
    weights = np.linspace(5.0, 1.0, contigs)
    shares = np.concatenate([[0.0], np.cumsum(weights) / weights.sum()])
    return np.int64(np.round(shares * (length - contigs))) + np.arange(contigs + 1)


def _plan_satellites(offsets: np.ndarray, fraction: float) -> Copies:
    """One array around two fifths of every contig that has room for two monomers or more."""
    contig_lengths = np.diff(offsets)
    lengths = np.int64(np.round(contig_lengths * fraction))
    contig = np.flatnonzero(lengths >= 342)
    lengths = lengths[contig]
    n = contig.size
    return Copies(
        starts=offsets[contig] + np.int64((contig_lengths[contig] - lengths) * 0.4),
        lengths=lengths,
        units=_first_satellite_unit() + contig % SATELLITE_UNITS,
        phases=np.zeros(n, np.int64),
        reverse=np.zeros(n, bool),
        divergences=np.full(n, SATELLITE_DIVERGENCE),
    )


def _paint_duplications(codes, offsets, bases: int, key: np.uint64) -> None:
    """Copy segments one after another, each from the genome as the ones before it left it."""
    n = max(1, bases // 1000)
    octaves = index_draws(stream_key(key, 0), n, 6)
    lengths = np.int64(1000 * 2.0**octaves * (1 + unit_draws(stream_key(key, 1), n)))
    lengths = lengths[np.cumsum(lengths) <= bases]
    n = lengths.size
    sources = index_draws(stream_key(key, 2), n, codes.size)
    targets = index_draws(stream_key(key, 3), n, codes.size)
    reverse = draws(stream_key(key, 4), n) & np.uint64(1) == 1
    divergences = OLDEST_DUPLICATION * unit_draws(stream_key(key, 5), n)
    source_ends = offsets[np.searchsorted(offsets, sources, side="right")]
    target_ends = offsets[np.searchsorted(offsets, targets, side="right")]
    lengths = np.minimum(lengths, np.minimum(source_ends - sources, target_ends - targets))
    for i in range(n):
        segment = codes[sources[i] : sources[i] + lengths[i]].copy()
        one, none = slice(i, i + 1), np.zeros(1, np.int64)
        copy = Copies(targets[one], lengths[one], none, none, reverse[one], divergences[one])
        unit = Units(segment, np.array([0, segment.size]))
        write_copies(codes, unit, copy, stream_key(key, 6, i))


def _paint_gaps(codes, offsets, satellites: Copies, fraction: float, key: np.uint64) -> None:
    contigs = np.searchsorted(offsets, satellites.starts, side="right") - 1
    satellite_ends = dict(zip(contigs, satellites.starts + satellites.lengths, strict=True))
    for contig in range(offsets.size - 1):
        start, stop = int(offsets[contig]), int(offsets[contig + 1])
        bases = round((stop - start) * fraction)
        telomere = min(LONGEST_TELOMERE, int(bases * TELOMERE_SHARE))
        centromere = int(bases * CENTROMERE_SHARE)
        codes[start : start + telomere] = AMBIGUOUS
        codes[stop - telomere : stop] = AMBIGUOUS
        middle = int(satellite_ends.get(contig, (start + stop - centromere) // 2))
        codes[middle : min(middle + centromere, stop)] = AMBIGUOUS
        rest = bases - 2 * telomere - centromere
        lengths = 100 << index_draws(stream_key(key, 0, contig), rest // 100, 10)
        lengths = np.minimum(lengths, max(100, rest // 8))
        lengths = lengths[np.cumsum(lengths) <= rest]
        gaps = start + index_draws(stream_key(key, 1, contig), lengths.size, stop - start)
        for gap, length in zip(gaps.tolist(), lengths.tolist(), strict=True):
            codes[gap : min(gap + length, stop)] = AMBIGUOUS


def _first_satellite_unit() -> int:
    return sum(kind.families for kind in FAMILY_KINDS) + N_MOTIFS
