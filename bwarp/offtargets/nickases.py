"""Pair guides as nickases: on opposite strands, with their PAMs at the outer ends.

    left   3' <-- PAM | protospacer 5'
                                       | offset |
    right                              5' protospacer | PAM --> 3'

The offset is the number of bases between the 5' ends of the two guides; it is negative if they
overlap.
"""

import numpy as np

from bwarp.offtargets.cas9_scores import WHOLE
from bwarp.offtargets.guide_design import Columns
from bwarp.offtargets.guide_list import GuideList
from bwarp.reference import Reference


def paired_guides(
    guides: GuideList, reference: Reference, min_offset: int, max_offset: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the left and right guides of all pairs with PAMs at 3' ends.

    Pairs are sorted by left guide, then by right guide.
    """
    left = np.flatnonzero(guides.strands == 1)
    right = np.flatnonzero(guides.strands == 0)
    ends, starts = guides.stops[left], guides.starts[right]
    firsts = np.searchsorted(starts, ends + min_offset)
    counts = np.searchsorted(starts, ends + max_offset, side="right") - firsts
    lefts = np.repeat(left, counts)
    within = np.arange(lefts.size) - np.repeat(np.cumsum(counts) - counts, counts)
    rights = right[np.repeat(firsts, counts) + within]
    contigs = reference.contig_of(guides.starts)
    same = contigs[lefts] == contigs[rights]
    return lefts[same], rights[same]


def nickase_columns(columns: Columns, lefts: np.ndarray, rights: np.ndarray) -> Columns:
    """Return the columns of a table of pairs, the best pair first.

    Pairs are sorted like guides: by CFD specificity, with the worst alleles if there are variants.

    Parameters
    ----------
    columns : dict
        Columns of the table of guides, in the order of the list (`GuideDesign.columns`).
    lefts, rights : ndarray, shape=(n_pairs,), dtype=int64
        From `paired_guides`.
    """
    starts, ends = np.array(columns["start"], int), np.array(columns["end"], int)
    found = {}
    for prefix in ("", "worst_") if "worst_cfd_specificity" in columns else ("",):
        for name, (whole,) in zip(("cfd", "mit"), WHOLE.tolist(), strict=True):
            column = f"{prefix}{name}_specificity"
            found[column] = _together(np.array(columns[column], float), lefts, rights, whole)
    by = found.get("worst_cfd_specificity", found["cfd_specificity"])
    order = np.argsort(-np.round(np.nan_to_num(by), 6), kind="stable")
    lefts, rights = lefts[order], rights[order]
    return {
        "left": [columns["guide"][i] for i in lefts],
        "right": [columns["guide"][i] for i in rights],
        "contig": [columns["contig"][i] for i in lefts],
        "start": starts[lefts].tolist(),
        "end": ends[rights].tolist(),
        "offset": (starts[rights] - ends[lefts]).tolist(),
        **{name: values[order].tolist() for name, values in found.items()},
    }


def _together(
    specificities: np.ndarray, lefts: np.ndarray, rights: np.ndarray, whole: float
) -> np.ndarray:
    """Return the specificity for the off-targets of both guides."""
    # The sum of the scores of the off-targets of each guide.
    scores = whole * whole / specificities - whole
    return whole * whole / (whole + scores[lefts] + scores[rights])
