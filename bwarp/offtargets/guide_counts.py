"""Count the sites of every guide by bulges and mismatches, and sort hits by guide.

The counts of sites have no limit; each site counts once, by its best alignment.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bwarp.offtargets.cas9_scores import WHOLE, has_scores, specificity
from bwarp.offtargets.guides import Guides, Pam
from bwarp.offtargets.hits import SiteHits, SiteOptions, joined_hits, no_hits, taken_hits
from bwarp.offtargets.site_rows import SiteRows
from bwarp.runtime.threads import bounded_ranges, run_together
from bwarp.runtime.timeline import on_timeline

#: Kinds of sites by bulges: none, DNA, RNA, both.
_KINDS = ("", "_dna", "_rna", "_both")


class CountedSites(NamedTuple):
    """Counts of some sites.

    Attributes
    ----------
    first_cell : int
        The first cell of `GuideCounts.sites`, one after another, that has a count.
    sites : ndarray, shape=(n_cells,), dtype=int64
        Counts of consecutive cells.
    scored : list of tuple of ndarray
        For CFD and MIT: guide and score of every site that has one, and whether it has no mismatch.
    """

    first_cell: int
    sites: np.ndarray
    scored: list[tuple[np.ndarray, np.ndarray, np.ndarray]]


class GuideCounts:
    """The sites of every guide so far.

    Attributes
    ----------
    sites : ndarray, shape=(n_guides, 4, mismatches + 1), dtype=int64
        Sites by bulges (none, DNA, RNA, both) and mismatches.
    """

    def __init__(self, guides: Guides, pam: Pam, options: SiteOptions):
        self._guides = guides
        self._has_scores = has_scores(guides, pam)
        self._kinds = [
            kind
            for kind in range(4)
            if not ((kind & 1 and not options.dna_bulge) or (kind & 2 and not options.rna_bulge))
        ]
        self.sites = np.zeros((guides.count, 4, options.mismatches + 1), np.int64)
        self._sums = np.zeros((2, guides.count))
        self._perfect = np.zeros((2, guides.count))

    def of(self, rows: SiteRows) -> CountedSites:
        """Count sites; only the best alignment of each is used. Any thread may call this."""
        hits = rows.hits
        best = hits.ranks == 0
        kinds = (hits.dna_bulges > 0) + 2 * (hits.rna_bulges > 0)
        _, n_kinds, levels = self.sites.shape
        cells = (hits.guides.astype(np.int64) * n_kinds + kinds) * levels + hits.mismatches
        cells = cells[best]
        first = int(cells.min(initial=self.sites.size))
        scored = []
        for values in (rows.cfd, rows.mit):
            counted = np.flatnonzero(best & ~np.isnan(values))
            scored.append((hits.guides[counted], values[counted], hits.mismatches[counted] == 0))
        return CountedSites(first, np.bincount(cells - first), scored)

    def add(self, counted: CountedSites) -> None:
        """Add counted sites that follow all earlier ones."""
        cells = slice(counted.first_cell, counted.first_cell + counted.sites.size)
        self.sites.reshape(-1)[cells] += counted.sites
        for score, (guides, values, perfect) in enumerate(counted.scored):
            np.add.at(self._sums[score], guides, values)
            np.maximum.at(self._perfect[score], guides[perfect], values[perfect])

    @property
    def columns(self) -> list[str]:
        """Names of the columns of `counts`."""
        levels = self.sites.shape[2]
        return [f"n{m}{_KINDS[kind]}" for kind in self._kinds for m in range(levels)]

    def counts(self) -> np.ndarray:
        """Return the sites of each guide by class, shape=(n_guides, n_columns), dtype=int64."""
        return self.sites[:, self._kinds].reshape(-1, len(self.columns))

    def specificities(self, added: np.ndarray | float = 0.0) -> np.ndarray:
        """Return the CFD and MIT specificity of each guide; NaN where they are not defined.

        Parameters
        ----------
        added : ndarray, shape=(2, n_guides), dtype=float64, optional
            Scores to add to those of the sites.

        Returns
        -------
        specificities : ndarray, shape=(2, n_guides), dtype=float64
        """
        found = specificity(self._sums + added, self._perfect, WHOLE)
        return np.where(self._has_scores, found, np.nan)

    def table(self) -> str:
        """Return a table of guides, header first."""
        head = ["guide", "sequence", *self.columns, "sites", "cfd_specificity", "mit_specificity"]
        lines = ["\t".join([*head, "complete"])]
        for name, sequence, counts, scores in zip(
            self._guides.names, self._guides.sequences, self.counts().tolist(),
            self.specificities().T, strict=True,
        ):  # fmt: skip
            cells = [name, sequence, *counts, sum(counts), *map(decimals, scores)]
            # No site was left out, because there is no limit.
            lines.append("\t".join(map(str, [*cells, "yes"])))
        return "\n".join(lines) + "\n"


def decimals(value: float) -> str:
    """Return six decimals; nothing for NaN."""
    return "" if np.isnan(value) else f"{value:.6f}"


# Hits arrive by position and are returned by guide, from memory or, if many, from files.
#
# search     stretch 1: guides 0 2 2 5    stretch 2: guides 0 1 5 ...
# run        guide 0 | 1 | 2 2 | 5 5      sorted, written to a file once it is large
# result     guide 0 of every run, then guide 1 of every run, ...
#
# At the end, threads sort the hits in memory, each thread one run.


#: Hits kept in memory before they are written to a file: 24 bytes each, twice while sorted.
HITS_IN_MEMORY = 1 << 23

#: The minimum number of hits that a thread sorts.
HITS_A_RUN = 1 << 17

#: Hits returned at a time.
HITS_AT_ONCE = 1 << 15


class HitsByGuide:
    """Collect hits by position, and return them by guide and position.

    Parameters
    ----------
    n_guides : int
    folder : Path
        An existing folder for temporary files.
    in_memory : int
        Hits kept in memory.
    threads : int
        Threads that sort hits in memory.
    """

    def __init__(
        self, n_guides: int, folder: Path, in_memory: int = HITS_IN_MEMORY, threads: int = 1
    ):
        self._n_guides = n_guides
        self._folder = folder
        self._in_memory = in_memory
        self._threads = threads
        self._waiting: list[SiteHits] = []
        self._n_waiting = 0
        self._runs: list[tuple[SiteHits, np.ndarray]] = []

    def add(self, hits: SiteHits) -> None:
        """Add hits that follow all earlier ones."""
        if hits.count == 0:
            return
        self._waiting.append(hits)
        self._n_waiting += hits.count
        if self._n_waiting >= self._in_memory:
            run, edges = self._sorted_run(self._waiting)
            self._runs.append((self._on_disk(run), edges))
            self._waiting, self._n_waiting = [], 0

    def __iter__(self) -> Iterator[list[SiteHits]]:
        """Yield all hits by guide, in lists of parts with a bounded number of hits."""
        self._sort_waiting()
        edges = np.array([edges for _, edges in self._runs]).reshape(-1, self._n_guides + 1)
        # By guide, then by run.
        n_hits = np.diff(edges).T
        guides, numbers = np.nonzero(n_hits)
        starts = edges[numbers, guides]
        stops = starts + n_hits[guides, numbers]
        parts, n_hits = [], 0
        columns = (numbers.tolist(), starts.tolist(), stops.tolist())
        for number, first, last in zip(*columns, strict=True):
            run, _ = self._runs[number]
            for start in range(first, last, HITS_AT_ONCE):
                stop = min(start + HITS_AT_ONCE, last)
                parts.append(taken_hits(run, slice(start, stop)))
                n_hits += stop - start
                if n_hits >= HITS_AT_ONCE:
                    yield parts
                    parts, n_hits = [], 0
        if parts:
            yield parts

    def edges(self) -> np.ndarray:
        """Return the number of hits of all guides before each one, dtype int64."""
        self._sort_waiting()
        return sum((edges for _, edges in self._runs), np.zeros(self._n_guides + 1, np.int64))

    def of_guides(self, first: int, last: int) -> SiteHits:
        """Return all hits of the guides from `first` to before `last`, sorted by guide."""
        parts = [taken_hits(run, slice(edges[first], edges[last])) for run, edges in self._runs]
        hits = joined_hits([no_hits(), *parts])
        return taken_hits(hits, np.argsort(hits.guides, kind="stable"))

    def _sort_waiting(self) -> None:
        """Sort the hits in memory, as a run per thread if they are many."""
        offsets = np.cumsum([0, *(hits.count for hits in self._waiting)])
        most = max(HITS_A_RUN, -(-self._n_waiting // self._threads))
        runs = [self._waiting[first:last] for first, last in bounded_ranges(offsets, most)]
        if runs:
            self._runs += run_together(
                [partial(self._sorted_run, one) for one in runs], self._threads
            )
        self._waiting, self._n_waiting = [], 0

    @on_timeline("sort sites")
    def _sorted_run(self, parts: list[SiteHits]) -> tuple[SiteHits, np.ndarray]:
        hits = joined_hits(parts)
        # Numbers of up to 16 bits are sorted by radix, in a tenth of the time.
        guides = hits.guides.astype(np.min_scalar_type(self._n_guides))
        hits = taken_hits(hits, np.argsort(guides, kind="stable"))
        return hits, np.searchsorted(hits.guides, np.arange(self._n_guides + 1))

    def _on_disk(self, hits: SiteHits) -> SiteHits:
        columns = []
        for name, column in vars(hits).items():
            path = self._folder / f"{len(self._runs)}.{name}.npy"
            np.save(path, column)
            columns.append(np.load(path, mmap_mode="r"))
        return SiteHits(*columns)
