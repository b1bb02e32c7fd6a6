"""What is counted of every guide: sites by kind of bulge and mismatches, and specificities.

The sites of a guide are counted without a limit, each once, by its best alignment.
"""

import numpy as np

from bwarp.offtargets.guides import Guides
from bwarp.offtargets.hits import SiteOptions
from bwarp.offtargets.output.site_rows import SiteRows
from bwarp.offtargets.pam import Pam
from bwarp.offtargets.scores.cas9 import has_scores, specificity

__all__ = ["GuideCounts"]

#: Kinds of sites by their bulges: none, of DNA, of RNA, of both.
_KINDS = ("", "_dna", "_rna", "_both")


class GuideCounts:
    """Sites of every guide so far.

    Attributes
    ----------
    sites : ndarray, shape=(n_guides, 4, mismatches + 1), dtype=int64
        By bulges (none, DNA, RNA, both) and mismatches.
    """

    def __init__(self, guides: Guides, pam: Pam, options: SiteOptions):
        self._guides = guides
        self._has_scores = has_scores(guides, pam)
        self._kinds = [
            kind
            for kind in range(4)
            if not (kind & 1 and not options.dna_bulge or kind & 2 and not options.rna_bulge)
        ]
        self.sites = np.zeros((guides.count, 4, options.mismatches + 1), np.int64)
        self._sums = np.zeros((2, guides.count))
        self._perfect = np.zeros((2, guides.count))

    def add(self, rows: SiteRows) -> None:
        """Count sites; alignments that are not the best of theirs are left out."""
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
        """Lines of guides, header first."""
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
            # No site was left out: there is no limit that could have been reached.
            lines.append("\t".join(map(str, [*cells, sum(counts), *scores, "yes"])))
        return "\n".join(lines) + "\n"
