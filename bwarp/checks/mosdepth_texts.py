"""Histograms of depths as the texts of mosdepth: distributions, summary, and means of regions.

The numbers and their format are those of mosdepth 0.3.14 without further options, except that a
mean of a region is the quotient of two integers, where mosdepth adds up quotients.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from bwarp.bam.header import BamHeader, contig_name
from bwarp.checks.checker import CheckedRecords
from bwarp.io.bed_regions import Region

#: Higher depths count as slightly less than this in distributions.
_MOST_DEPTH, _HIGHER = 400_000, 399_990

#: Depths up to this are listed even if no base has them.
_ALWAYS = 300

#: The minimum share of bases that is listed.
_LEAST_SHARE = 8e-5


def summary(header: BamHeader, checked: CheckedRecords, with_regions: bool) -> str:
    """Return the text of PREFIX.mosdepth.summary.txt."""
    lines = ["chrom\tlength\tbases\tmean\tmin\tmax"]
    total, of_regions = np.zeros((2, 1), np.int64)
    for name, contig in _with_records(header, checked):
        lines.append(_summary_line(name, contig.bases))
        total = _added(total, contig.bases)
        if with_regions:
            lines.append(_summary_line(f"{name}_region", contig.of_regions))
            of_regions = _added(of_regions, contig.of_regions)
    lines.append(_summary_line("total", total))
    if with_regions:
        lines.append(_summary_line("total_region", of_regions))
    return "".join(f"{line}\n" for line in lines)


def distribution(header: BamHeader, checked: CheckedRecords, of_regions: bool) -> str:
    """Return the text of PREFIX.mosdepth.global.dist.txt, or of PREFIX.mosdepth.region.dist.txt."""
    lines: list[str] = []
    total = np.zeros(1, np.int64)
    for name, contig in _with_records(header, checked):
        bases = _limited(contig.of_regions if of_regions else contig.bases)
        lines += _shares(name, bases)
        total = _added(total, bases)
    lines += _shares("total", total)
    return "".join(lines)


def region_means(header: BamHeader, regions: Sequence[Region], sums: np.ndarray) -> str:
    """Return the text of PREFIX.regions.bed.gz."""
    starts = header.contig_starts
    begins = np.array([region.start for region in regions], np.int64)
    contigs = np.searchsorted(starts, begins, side="right") - 1
    lines = []
    # Contigs in the order of the header; mosdepth does not order regions with the same start.
    for number in np.argsort(begins, kind="stable").tolist():
        region, contig = regions[number], int(contigs[number])
        start, stop = region.start - int(starts[contig]), region.stop - int(starts[contig])
        name = f"\t{region.name}" if region.name else ""
        mean = int(sums[number]) / (stop - start)
        lines.append(f"{contig_name(header.names[contig])}\t{start}\t{stop}{name}\t{mean:.2f}\n")
    return "".join(lines)


def _with_records(header: BamHeader, checked: CheckedRecords) -> Iterator[tuple]:
    """Yield the name and the histograms of every contig that has records."""
    records = checked.counts.contigs.sum(axis=1)
    for number, name in enumerate(header.names):
        if records[number]:
            yield contig_name(name), checked.depths[number]


def _added(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    if one.size < other.size:
        one, other = other, one
    total = one.copy()
    total[: other.size] += other
    return total


def _limited(bases: np.ndarray) -> np.ndarray:
    if bases.size <= _MOST_DEPTH + 1:
        return bases
    limited = bases[: _MOST_DEPTH + 1].copy()
    limited[_HIGHER] += bases[_MOST_DEPTH + 1 :].sum()
    return limited


def _summary_line(name: str, bases: np.ndarray) -> str:
    length = int(bases.sum())
    total = sum(depth * count for depth, count in _found(bases))
    mean = total / length if length else 0
    depths = np.flatnonzero(bases)
    least, most = (int(depths[0]), int(depths[-1])) if depths.size else (0, 0)
    return f"{name}\t{length}\t{total}\t{mean:.2f}\t{least}\t{most}"


def _found(bases: np.ndarray) -> Iterator[tuple[int, int]]:
    depths = np.flatnonzero(bases)
    return zip(depths.tolist(), bases[depths].tolist(), strict=True)


def _shares(name: str, bases: np.ndarray) -> Iterator[str]:
    """Yield the share of the bases with at least each depth, from the maximum depth."""
    total = int(bases.sum())
    if not total:
        return
    share = 0.0
    counts = bases.tolist()
    for depth in range(len(counts) - 1, -1, -1):
        if depth > _ALWAYS and not counts[depth]:
            continue
        share += counts[depth] / total
        if share >= _LEAST_SHARE:
            yield f"{name}\t{depth}\t{share:.2f}\n"
