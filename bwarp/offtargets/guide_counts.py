"""Count the sites of every guide by bulges and mismatches, and sort hits by guide.

The counts of sites have no limit; each site counts once, by its best alignment.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from bwarp.offtargets.cas9_scores import has_scores, specificity
from bwarp.offtargets.guides import Guides, Pam
from bwarp.offtargets.hits import SiteHits, SiteOptions, joined_hits, taken_hits
from bwarp.offtargets.site_rows import SiteRows

#: Kinds of sites by bulges: none, DNA, RNA, both.
_KINDS = ("", "_dna", "_rna", "_both")


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

    def add(self, rows: SiteRows) -> None:
        """Count sites; only the best alignment of each is used."""
        hits = rows.hits
        kinds = (hits.dna_bulges > 0) + 2 * (hits.rna_bulges > 0)
        best = hits.ranks == 0
        np.add.at(self.sites, (hits.guides[best], kinds[best], hits.mismatches[best]), 1)
        for score, values in enumerate((rows.cfd, rows.mit)):
            counted = best & ~np.isnan(values)
            guides, values = hits.guides[counted], values[counted]
            np.add.at(self._sums[score], guides, values)
            perfect = hits.mismatches[counted] == 0
            np.maximum.at(self._perfect[score], guides[perfect], values[perfect])

    def table(self) -> str:
        """Return a table of guides, header first."""
        levels = self.sites.shape[2]
        columns = [f"n{m}{_KINDS[kind]}" for kind in self._kinds for m in range(levels)]
        head = ["guide", "sequence", *columns, "sites", "cfd_specificity", "mit_specificity"]
        lines = ["\t".join([*head, "complete"])]
        for guide in range(self._guides.count):
            counts = self.sites[guide, self._kinds].ravel().tolist()
            scores = ["", ""]
            if self._has_scores[guide]:
                scores = [
                    f"{specificity(self._sums[i, guide], self._perfect[i, guide], whole):.6f}"
                    for i, whole in enumerate((1.0, 100.0))
                ]
            cells = [self._guides.names[guide], self._guides.sequences[guide], *counts]
            # No site was left out, because there is no limit.
            lines.append("\t".join(map(str, [*cells, sum(counts), *scores, "yes"])))
        return "\n".join(lines) + "\n"


# Hits arrive by position and are returned by guide, from memory or, if many, from files.
#
# search     stretch 1: guides 0 2 2 5    stretch 2: guides 0 1 5 ...
# run        guide 0 | 1 | 2 2 | 5 5      sorted, written to a file once it is large
# result     guide 0 of every run, then guide 1 of every run, ...


#: Hits kept in memory before they are written to a file: 24 bytes each, twice while sorted.
HITS_IN_MEMORY = 1 << 23

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
    """

    def __init__(self, n_guides: int, folder: Path, in_memory: int = HITS_IN_MEMORY):
        self._n_guides = n_guides
        self._folder = folder
        self._in_memory = in_memory
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
            run, edges = self._sorted_run()
            self._runs.append((self._on_disk(run), edges))

    def __iter__(self) -> Iterator[SiteHits]:
        """Yield all hits by guide, in parts of a bounded size."""
        if self._waiting:
            self._runs.append(self._sorted_run())
        parts, n_hits = [], 0
        for guide in range(self._n_guides):
            for run, edges in self._runs:
                for start in range(edges[guide], edges[guide + 1], HITS_AT_ONCE):
                    stop = min(start + HITS_AT_ONCE, edges[guide + 1])
                    parts.append(taken_hits(run, slice(start, stop)))
                    n_hits += stop - start
                    if n_hits >= HITS_AT_ONCE:
                        yield joined_hits(parts)
                        parts, n_hits = [], 0
        if parts:
            yield joined_hits(parts)

    def _sorted_run(self) -> tuple[SiteHits, np.ndarray]:
        hits = joined_hits(self._waiting)
        self._waiting, self._n_waiting = [], 0
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
