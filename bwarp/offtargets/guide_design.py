"""Rank guides that were listed from a genome by their off-targets.

    hits in the reference -------------> `GuideDesign.add` ---------.
    sites of a search with variants ---> `GuideDesign.add_tables` --+-> columns, best guide first

The target of a guide is the site that it was listed from; its other sites are off-targets.
"""

from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from bwarp.io.bed_regions import overlap_any
from bwarp.offtargets.alternative_sites import Sought, pam_follows
from bwarp.offtargets.guide_counts import CountedSites, GuideCounts, decimals
from bwarp.offtargets.guide_list import GuideList
from bwarp.offtargets.guides import Guides, Pam
from bwarp.offtargets.hits import SiteHits, SiteOptions, taken_hits
from bwarp.offtargets.site_rows import Features, SiteRows, describe
from bwarp.offtargets.variant_columns import VARIANT_COLUMNS
from bwarp.offtargets.variant_tables import VariantTables
from bwarp.reference import Reference
from bwarp.runtime.threads import run_together

#: Sites described at a time.
_SITES_AT_ONCE = 1 << 15

#: Columns of the table of sites that the table of guides has for the target.
_OF_TARGET = ("variants", "frequency", "pam_change", "effect", "lost")

#: Columns of a table; all have the same length. Numbers without a value are None or NaN.
Columns = dict[str, list]


def sought_guides(
    listed: GuideList, reference: Reference, pam: Pam, limits: SiteOptions, *more
) -> Sought:
    """Return the search for the sites of listed guides; `more` are further fields of `Sought`."""
    names, sequences = tuple(listed.names(reference)), tuple(listed.sequences())
    guides = Guides(names, sequences, listed.codes.shape[1])
    return Sought(reference, guides, pam, limits, *more)


class _Sites(NamedTuple):
    """Sites of a search with variants, shape=(n,) each; scores are 0 where they are not defined."""

    numbers: np.ndarray
    guides: np.ndarray
    keys: np.ndarray
    is_alternative: np.ndarray
    is_gain: np.ndarray
    edits: np.ndarray
    cfd: np.ndarray
    mit: np.ndarray


class GuideDesign:
    """The sites of listed guides so far.

    Parameters
    ----------
    listed : GuideList
    sought : Sought
        From `sought_guides`.
    features : Features, optional
        The off-targets that overlap them are counted.
    """

    def __init__(self, listed: GuideList, sought: Sought, features: Features | None = None):
        self._listed, self._sought = listed, sought
        self._counts = GuideCounts(sought.guides, sought.pam, sought.options)
        self._features = None
        if features is not None:
            self._features = features.starts, np.sort(features.stops)
        self._annotated = np.zeros(listed.count, np.int64)
        follows = pam_follows(listed.strands, sought.pam.side)
        borders = np.where(follows, listed.stops, listed.starts)
        self._targets = _keys(np.arange(listed.count), borders, listed.strands)
        #: Scores that variants add to those of the reference, and their columns.
        self._added = np.zeros((2, listed.count))
        self._of_variants: Columns = {}

    def add(self, hits: SiteHits) -> None:
        """Add sites of the reference that follow all earlier ones in the genome."""
        sought = self._sought

        def counted(part: slice) -> tuple[CountedSites, np.ndarray]:
            its = taken_hits(hits, part)
            return self._counted(describe(its, sought.guides, sought.pam, sought.reference))

        parts = [partial(counted, part) for part in _parts(hits.count)]
        for one in run_together(parts, sought.threads):
            self._add_counted(*one)

    def add_tables(self, tables: VariantTables) -> None:
        """Add all sites of a search with variants."""
        order = tables.order()
        blocks = [self._block(tables, order[part]) for part in _parts(order.size)]
        if blocks:
            sites = _Sites(*(np.concatenate(column) for column in zip(*blocks, strict=True)))
            self._note_changes(sites, tables)

    def columns(self) -> Columns:
        """Return the columns of the table of guides, in the order of the list."""
        listed, reference, counts = self._listed, self._sought.reference, self._counts
        contigs = reference.contig_of(listed.starts)
        begins = reference.contig_starts[contigs]
        gc = 100 * np.isin(listed.codes, [1, 2]).mean(axis=1)
        by_class = counts.counts()
        columns = {
            "guide": list(self._sought.guides.names),
            "sequence": list(self._sought.guides.sequences),
            "pam": listed.pam_texts(),
            "contig": [reference.names[contig] for contig in contigs.tolist()],
            "start": (listed.starts - begins).tolist(),
            "end": (listed.stops - begins).tolist(),
            "strand": ["+-"[strand] for strand in listed.strands.tolist()],
            "gc": np.rint(gc).astype(int).tolist(),
            "tttt": ["yes" if "TTTT" in one else "no" for one in self._sought.guides.sequences],
            **dict(zip(counts.columns, by_class.T.tolist(), strict=True)),
            "sites": by_class.sum(axis=1).tolist(),
            **_specificities(counts, 0.0, ""),
        }
        if self._features is not None:
            columns["annotated_sites"] = self._annotated.tolist()
        return columns | self._of_variants

    def ranks(self) -> np.ndarray:
        """Return the numbers of the guides from the best to the worst.

        The best have the highest CFD specificity, with the worst alleles if there are variants,
        then the fewest sites of the first class that differs; ties are in the order of the list.
        """
        cfd = np.round(np.nan_to_num(self._counts.specificities(self._added)[0]), 6)
        counts = self._counts.counts()
        return np.lexsort((*counts.T[::-1], -cfd))

    def _counted(self, rows: SiteRows) -> tuple[CountedSites, np.ndarray]:
        """Count sites of the reference, and of each guide the off-targets in features."""
        hits, n = rows.hits, self._listed.count
        annotated = np.zeros(n, np.int64)
        if self._features is not None:
            is_in = overlap_any(*self._features, hits.starts, hits.starts + hits.lengths)
            is_in &= self._keys_of(rows) != self._targets[hits.guides]
            annotated = np.bincount(hits.guides[is_in], minlength=n)
        return self._counts.of(rows), annotated

    def _add_counted(self, counted: CountedSites, annotated: np.ndarray) -> None:
        self._counts.add(counted)
        self._annotated += annotated

    def _keys_of(self, rows: SiteRows) -> np.ndarray:
        follows = pam_follows(rows.hits.strands, self._sought.pam.side)
        borders = np.where(follows, rows.ends, rows.starts)
        borders += self._sought.reference.contig_starts[rows.contigs]
        return _keys(rows.hits.guides, borders, rows.hits.strands)

    def _block(self, tables: VariantTables, numbers: np.ndarray) -> _Sites:
        """Count the sites of the reference in a block of rows, and return all of its sites."""
        known, rows, texts = tables.block(numbers)
        self._add_counted(*self._counted(known))
        hits = rows.hits
        cells = [text.split("\t") for text in texts.listed(range(numbers.size))]
        origin, effect = map(VARIANT_COLUMNS.index, ("origin", "effect"))
        return _Sites(
            numbers,
            hits.guides,
            self._keys_of(rows),
            np.array([one[origin] == "alternative" for one in cells]),
            np.array([one[effect] == "gain" for one in cells]),
            hits.mismatches.astype(np.int64) + hits.dna_bulges + hits.rna_bulges,
            np.nan_to_num(rows.cfd),
            np.nan_to_num(rows.mit),
        )

    def _note_changes(self, sites: _Sites, tables: VariantTables) -> None:
        n = self._listed.count
        is_target = sites.keys == self._targets[sites.guides]
        its_own = is_target & ~sites.is_alternative
        targets = np.full(n, -1)
        targets[sites.guides[its_own]] = sites.numbers[its_own]
        gains = np.flatnonzero(sites.is_alternative & sites.is_gain & ~is_target)
        self._added = np.stack(
            [_rises(sites, scores, ~is_target, n) for scores in (sites.cfd, sites.mit)]
        )
        self._of_variants = {
            **_target_columns(tables, targets),
            **_specificities(self._counts, self._added, "worst_"),
            "gains": np.bincount(sites.guides[gains], minlength=n).tolist(),
            **self._worst_columns(tables, sites, gains),
        }

    def _worst_columns(self, tables: VariantTables, sites: _Sites, gains: np.ndarray) -> Columns:
        """Return the columns of the gain of each guide with the highest score, or fewest edits."""
        order = gains[np.lexsort((sites.edits[gains], -sites.cfd[gains], sites.guides[gains]))]
        guides, first = np.unique(sites.guides[order], return_index=True)
        _, rows, texts = tables.block(sites.numbers[order[first]])
        columns: Columns = {
            "worst_site": [""] * self._listed.count,
            "worst_position": [""] * self._listed.count,
            "worst_cfd": [np.nan] * self._listed.count,
            "worst_mit": [np.nan] * self._listed.count,
            "worst_variants": [""] * self._listed.count,
            "worst_frequency": [np.nan] * self._listed.count,
        }
        names = self._sought.reference.names
        for i, guide in enumerate(guides.tolist()):
            cells = dict(zip(VARIANT_COLUMNS, texts.name(i).split("\t"), strict=True))
            columns["worst_site"][guide] = (
                rows.site_text[i, : rows.widths[i]].tobytes().decode("ascii")
            )
            columns["worst_position"][guide] = (
                f"{names[rows.contigs[i]]}:{rows.starts[i]}-{rows.ends[i]}:"
                f"{'+-'[rows.hits.strands[i]]}"
            )
            columns["worst_cfd"][guide] = float(rows.cfd[i])
            columns["worst_mit"][guide] = float(rows.mit[i])
            columns["worst_variants"][guide] = cells["variants"]
            columns["worst_frequency"][guide] = float(cells["frequency"] or "nan")
        return columns


def table_text(columns: Columns, order: np.ndarray) -> bytes:
    """Return a table with rows in this order, header first."""
    rows = zip(*columns.values(), strict=True)
    cells = [[_cell(value) for value in row] for row in rows]
    lines = [list(columns), *(cells[number] for number in order.tolist())]
    return "".join("\t".join(line) + "\n" for line in lines).encode()


def _cell(value) -> str:
    if value is None:
        return ""
    return decimals(value) if isinstance(value, float) else str(value)


def _parts(count: int) -> Iterator[slice]:
    for first in range(0, count, _SITES_AT_ONCE):
        yield slice(first, min(first + _SITES_AT_ONCE, count))


def _keys(guides: np.ndarray, borders: np.ndarray, strands: np.ndarray) -> np.ndarray:
    """Return a number for each guide, strand and end of the site next to the PAM."""
    return guides.astype(np.int64) << 34 | borders << 1 | strands


def _specificities(counts: GuideCounts, added, prefix: str) -> Columns:
    cfd, mit = counts.specificities(added).tolist()
    return {f"{prefix}cfd_specificity": cfd, f"{prefix}mit_specificity": mit}


def _rises(sites: _Sites, scores: np.ndarray, wanted: np.ndarray, n_guides: int) -> np.ndarray:
    """Return by how much the sum of scores of each guide rises if each site has its worst allele.

    Parameters
    ----------
    wanted : ndarray, shape=(n_sites,), dtype=bool
        The sites to sum up.
    """
    rows = np.flatnonzero(wanted)
    rows = rows[np.argsort(sites.keys[rows], kind="stable")]
    firsts = np.flatnonzero(np.diff(sites.keys[rows], prepend=-1))
    if firsts.size == 0:
        return np.zeros(n_guides)
    worst = np.maximum.reduceat(scores[rows], firsts)
    before = np.maximum.reduceat(np.where(sites.is_alternative[rows], 0, scores[rows]), firsts)
    return np.bincount(sites.guides[rows[firsts]], worst - before, n_guides)


def _target_columns(tables: VariantTables, numbers: np.ndarray) -> Columns:
    _, _, texts = tables.block(numbers)
    cells = [
        dict(zip(VARIANT_COLUMNS, text.split("\t"), strict=True))
        for text in texts.listed(range(numbers.size))
    ]
    columns: Columns = {f"target_{name}": [one[name] for one in cells] for name in _OF_TARGET}
    for name, number in (("target_frequency", float), ("target_lost", int)):
        columns[name] = [number(cell) if cell else None for cell in columns[name]]
    return columns
