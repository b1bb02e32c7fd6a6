"""List all guides in stretches of a genome: protospacers next to a PAM, on both strands."""

import itertools
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bwarp.errors import UsageError
from bwarp.io.bed_regions import overlap_any, read_regions
from bwarp.offtargets.guides import Pam
from bwarp.options.finding import LONGEST_PAM
from bwarp.reference import Reference, codes_between
from bwarp.sequence import decode

#: Bases of a stretch examined at a time.
STRETCH = 1 << 22

_C, _G, _T, _AMBIGUOUS = 1, 2, 3, 4


@dataclass(frozen=True)
class GuideFilter:
    """Filters for guides.

    Attributes
    ----------
    min_gc, max_gc : int
        The percentage of C and G among the bases.
    without_tttt : bool
        Whether to exclude four consecutive T, which end transcription by RNA polymerase III.

    Raises
    ------
    UsageError
        If the minimum percentage is greater than the maximum.
    """

    min_gc: int = 0
    max_gc: int = 100
    without_tttt: bool = False

    def __post_init__(self):
        if self.min_gc > self.max_gc:
            raise UsageError(f"--min-gc {self.min_gc} is greater than --max-gc {self.max_gc}")


@dataclass(frozen=True)
class GuideList:
    """Guides sorted by start and strand.

    Attributes
    ----------
    starts : ndarray, shape=(n,), dtype=int64
        The first base of the protospacer in the genome, on the forward strand.
    strands : ndarray, shape=(n,), dtype=uint8
        0: forward, 1: reverse.
    codes : ndarray, shape=(n, length), dtype=uint8
        Codes of protospacers from 5' to 3'.
    pams : ndarray, shape=(n, LONGEST_PAM), dtype=uint8
        Codes of PAMs, up to `pam_lengths` (dtype int64).
    """

    starts: np.ndarray
    strands: np.ndarray
    codes: np.ndarray
    pams: np.ndarray
    pam_lengths: np.ndarray

    @property
    def count(self) -> int:
        return len(self.starts)

    @property
    def stops(self) -> np.ndarray:
        """The ends of the protospacers, shape=(n,), dtype=int64."""
        return self.starts + self.codes.shape[1]

    def taken(self, which) -> "GuideList":
        """Select guides by mask, numbers or slice."""
        return GuideList(*(column[which] for column in vars(self).values()))

    def names(self, reference: Reference) -> list[str]:
        """Return the positions that name the guides, such as ``chr20:1000-1020:+``."""
        contigs = reference.contig_of(self.starts)
        begins = self.starts - reference.contig_starts[contigs]
        ends = begins + self.codes.shape[1]
        columns = (contigs.tolist(), begins.tolist(), ends.tolist(), self.strands.tolist())
        return [
            f"{reference.names[contig]}:{begin}-{end}:{'+-'[strand]}"
            for contig, begin, end, strand in zip(*columns, strict=True)
        ]

    def sequences(self) -> list[str]:
        """Return the protospacers as text."""
        length = self.codes.shape[1]
        text = decode(np.ascontiguousarray(self.codes).ravel()).decode()
        return [text[i * length : (i + 1) * length] for i in range(self.count)]

    def pam_texts(self) -> list[str]:
        """Return the PAMs as text."""
        width = self.pams.shape[1]
        text = decode(np.ascontiguousarray(self.pams).ravel()).decode()
        return [text[i * width :][:n] for i, n in enumerate(self.pam_lengths.tolist())]


def joined_guides(parts: Sequence[GuideList]) -> GuideList:
    """Concatenate one or more lists."""
    columns = zip(*(vars(part).values() for part in parts), strict=True)
    return GuideList(*(np.concatenate(column) for column in columns))


def guides_outside(guides: GuideList, regions: Sequence[tuple[int, int]], side: int) -> GuideList:
    """Return the guides that, with their PAMs, overlap none of the regions.

    Parameters
    ----------
    regions : sequence of (start, stop)
        Positions of the genome.
    side : int
        3 or 5: the end of the protospacer next to the PAM.
    """
    starts, stops = np.sort(np.array(regions, np.int64).reshape(-1, 2), axis=0).T
    pam_follows = (guides.strands == 0) == (side == 3)
    lefts = guides.starts - np.where(pam_follows, 0, guides.pam_lengths)
    rights = guides.stops + np.where(pam_follows, guides.pam_lengths, 0)
    return guides.taken(~overlap_any(starts, stops, lefts, rights))


def list_guides(
    reference: Reference,
    regions: Sequence[tuple[int, int]],
    pam: Pam,
    length: int,
    wanted: GuideFilter,
) -> Iterator[GuideList]:
    """Yield the guides that lie, with their PAMs, in one of the regions; each once, with its first
    PAM.

    Parameters
    ----------
    regions : sequence of (start, stop)
        Positions of the genome, each within a contig.

    Yields
    ------
    guides : GuideList
        Guides of one contig after another, in the order of the reference.
    """
    ordered = sorted(regions)
    contigs = reference.contig_of(np.array([start for start, _ in ordered], np.int64))
    for contig in np.unique(contigs):
        parts = [
            _guides_between(reference, first, last, one, length, wanted)
            for one in pam.one_by_one()
            for (start, stop), its_contig in zip(ordered, contigs, strict=True)
            if its_contig == contig
            for first, last in _stretches(start, stop, length + one.length)
        ]
        columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
        # Regions may overlap, as do stretches of one, and a guide may have several PAMs.
        _, kept = np.unique(columns[0] * 2 + columns[1], return_index=True)
        yield GuideList(*(column[kept] for column in columns))


def _stretches(start: int, stop: int, width: int) -> Iterator[tuple[int, int]]:
    for first in range(start, max(start + 1, stop - width + 1), STRETCH):
        yield first, min(first + STRETCH + width - 1, stop)


def _guides_between(reference, first, last, pam, length, wanted) -> tuple:
    """Return the columns of a `GuideList` for one PAM, first of one strand, then of the other."""
    codes = codes_between(reference, first, last)
    width = length + pam.length
    columns = [[] for _ in range(5)]
    if codes.size >= width:
        windows = np.lib.stride_tricks.sliding_window_view(codes, width)
        for strand in range(2):
            allowed = pam.on_other_strand() if strand else pam.allowed
            pam_last = (pam.side == 3) != bool(strand)
            at = length if pam_last else 0
            base = 0 if pam_last else pam.length
            fits = np.zeros(len(windows), bool)
            for one in allowed:
                here = np.ones(len(windows), bool)
                for i, bases in enumerate(one):
                    here &= (np.uint8(bases) >> windows[:, at + i] & 1).astype(bool)
                fits |= here
            starts = np.flatnonzero(fits)
            sites = windows[starts]
            starts = starts[(sites < _AMBIGUOUS).all(axis=1)]
            sites = windows[starts]
            if strand:
                sites = 3 - sites[:, ::-1]
                at, base = width - at - pam.length, width - base - length
            guides, pams = sites[:, base : base + length], sites[:, at : at + pam.length]
            kept = _wanted(guides, wanted)
            begin = 0 if pam_last else pam.length
            columns[0].append(first + begin + starts[kept])
            columns[1].append(np.full(int(kept.sum()), strand, np.uint8))
            columns[2].append(guides[kept])
            columns[3].append(_wide(pams[kept]))
            columns[4].append(np.full(int(kept.sum()), pam.length))
    else:
        columns[0].append(np.empty(0, np.int64))
        columns[1].append(np.empty(0, np.uint8))
        columns[2].append(np.empty((0, length), np.uint8))
        columns[3].append(np.empty((0, LONGEST_PAM), np.uint8))
        columns[4].append(np.empty(0, np.int64))
    return tuple(np.concatenate(column) for column in columns)


def _wide(pams: np.ndarray) -> np.ndarray:
    """Pad PAMs to the length of the longest."""
    wide = np.zeros((len(pams), LONGEST_PAM), np.uint8)
    wide[:, : pams.shape[1]] = pams
    return wide


def _wanted(guides: np.ndarray, wanted: GuideFilter) -> np.ndarray:
    gc = ((guides == _C) | (guides == _G)).sum(axis=1)
    length = guides.shape[1]
    kept = (100 * gc >= wanted.min_gc * length) & (100 * gc <= wanted.max_gc * length)
    if wanted.without_tttt:
        is_t = guides == _T
        run = is_t[:, :-3] & is_t[:, 1:-2] & is_t[:, 2:-1] & is_t[:, 3:]
        kept &= ~run.any(axis=1)
    return kept


def chosen_regions(
    texts: Sequence[str], bed: str | os.PathLike | None, reference: Reference
) -> list[tuple[int, int]]:
    """Return regions as positions of the genome; without any, all contigs that have bases.

    Parameters
    ----------
    texts : sequence of str
        Regions for `region_of`.
    bed : path-like, optional
        A BED file of further regions.
    """
    if not texts and bed is None:
        starts = reference.contig_starts.tolist()
        return [(start, stop) for start, stop in itertools.pairwise(starts) if start < stop]
    regions = [region_of(text, reference) for text in texts]
    return regions + (read_regions(bed, reference) if bed is not None else [])


def region_of(text: str, reference: Reference) -> tuple[int, int]:
    """Parse a region such as chr20 or chr20:1,001-2,000, 1-based and inclusive, as in samtools.

    Raises
    ------
    UsageError
        If the reference lacks the contig, or the contig lacks the bases.
    """
    contigs = {name: i for i, name in enumerate(reference.names)}
    name, first, last = text, None, None
    if text not in contigs:
        matched = re.fullmatch(r"(.+):([\d,]+)-([\d,]+)", text)
        if matched:
            name = matched[1]
            first, last = (int(cell.replace(",", "") or 0) for cell in matched.groups()[1:])
    if name not in contigs:
        raise UsageError(
            f"--region {text}: no contig {name} in the reference: write contig or contig:from-to, "
            f"such as {reference.names[0]}"
        )
    begin, end = reference.contig_starts[contigs[name] : contigs[name] + 2].tolist()
    if first is None:
        return begin, end
    if not 1 <= first <= last <= end - begin:
        raise UsageError(
            f"--region {text}: {name} has the bases 1 to {end - begin:,}: write two of them, the "
            f"smaller first, as in {name}:1-{end - begin}"
        )
    return begin + first - 1, begin + last
