"""Pair guides as nickases: on opposite strands, with their PAMs at the outer ends.

    left   3' <-- PAM | protospacer 5'
                                       | offset |
    right                              5' protospacer | PAM --> 3'

The offset is the number of bases between the 5' ends of the two guides; it is negative if they
overlap.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from bwarp.offtargets.cas9_scores import WHOLE

#: More than the positions of a contig.
_CONTIG = 1 << 40


def nickase_pairs(
    guides: Mapping[str, Sequence], min_offset: int, max_offset: int
) -> dict[str, list]:
    """Return the columns of a table of pairs, the best pair first.

    The best have the highest CFD specificity, with the worst alleles if there are variants; ties
    are in the order of contig, left and right guide.

    Parameters
    ----------
    guides : mapping
        Columns of a table of guides with PAMs at their 3' ends, in any order (`GuideDesign`).
    min_offset, max_offset : int
    """
    names, starts, ends, strands = (
        np.array(guides[name]) for name in ("guide", "start", "end", "strand")
    )
    contig_names, contigs = np.unique(guides["contig"], return_inverse=True)
    begins = contigs * _CONTIG
    order = np.argsort(begins + starts, kind="stable")
    left, right = order[strands[order] == "-"], order[strands[order] == "+"]
    reached = (begins + starts)[right]
    firsts = np.searchsorted(reached, (begins + ends)[left] + min_offset)
    counts = np.searchsorted(reached, (begins + ends)[left] + max_offset, side="right") - firsts
    lefts = np.repeat(left, counts)
    within = np.arange(lefts.size) - np.repeat(np.cumsum(counts) - counts, counts)
    rights = right[np.repeat(firsts, counts) + within]
    found = {}
    for prefix in ("", "worst_") if "worst_cfd_specificity" in guides else ("",):
        for name, whole in zip(("cfd", "mit"), WHOLE.ravel().tolist(), strict=True):
            column = f"{prefix}{name}_specificity"
            specificities = np.array(guides[column], float)
            # The sum of the scores of the off-targets of each guide.
            scores = whole * whole / specificities - whole
            found[column] = whole * whole / (whole + scores[lefts] + scores[rights])
    by = found.get("worst_cfd_specificity", found["cfd_specificity"])
    best = np.argsort(-np.round(np.nan_to_num(by), 6), kind="stable")
    lefts, rights = lefts[best], rights[best]
    return {
        "left": names[lefts].tolist(),
        "right": names[rights].tolist(),
        "contig": contig_names[contigs[lefts]].tolist(),
        "start": starts[lefts].tolist(),
        "end": ends[rights].tolist(),
        "offset": (starts[rights] - ends[lefts]).tolist(),
        **{name: values[best].tolist() for name, values in found.items()},
    }
