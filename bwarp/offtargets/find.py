"""Search a genome for all sites of guides, stretch by stretch, in order."""

from collections.abc import Iterator

import numpy as np

from bwarp.offtargets.find_cpu import search_stretch
from bwarp.offtargets.guides import Guides
from bwarp.offtargets.hits import SiteHits, SiteOptions, joined_hits, taken_hits
from bwarp.offtargets.pam import Pam
from bwarp.offtargets.pam_sites_cpu import BACKWARD, FORWARD
from bwarp.reference import Reference
from bwarp.runtime.threads import in_order

__all__ = ["STRETCH", "find_sites"]

#: Positions that are searched at a time; a multiple of 64.
STRETCH = 1 << 18

#: Starts of sites are as far from where their PAM begins at most.
_FARTHEST = 64


def find_sites(
    reference: Reference,
    guides: Guides,
    pam: Pam,
    options: SiteOptions,
    threads: int = 1,
    stretch: int = STRETCH,
) -> Iterator[tuple[int, SiteHits]]:
    """All sites of guides, as `bwarp.offtargets` defines them.

    Yields
    ------
    done : int
        Positions of the genome that have been searched.
    hits : SiteHits
        By start, guide, length, strand and rank. What follows does not begin before these.
    """
    codes = guides.codes_from_pam(pam.side)
    lengths = guides.lengths
    # Sites on the strand that the PAM is written for are read backwards if it is at the 3' end.
    as_written = BACKWARD if pam.side == 3 else FORWARD
    allowed, read_as = [None, None], [None, None]
    allowed[as_written], allowed[1 - as_written] = pam.allowed, pam.on_other_strand()
    read_as[as_written], read_as[1 - as_written] = codes, 3 - codes
    starts = reference.segment_genome.astype(np.int64)
    stops = starts + np.diff(reference.segment_text) - 1
    end = reference.n_bases + 1

    def search(first: int) -> SiteHits:
        last = min(first + stretch, end)
        meet = slice(
            int(np.searchsorted(stops, first)), int(np.searchsorted(starts, last, side="right"))
        )
        rows = search_stretch(
            reference.packed, starts[meet], stops[meet], first, last, tuple(allowed),
            tuple(read_as), lengths, options,
        )  # fmt: skip
        return _as_hits(rows, lengths, as_written)

    waiting = None
    firsts = range(0, end, stretch)
    for first, hits in zip(firsts, in_order(search, iter(firsts), threads), strict=True):
        done = min(first + stretch, end)
        hits = _in_order(hits if waiting is None else joined_hits([waiting, hits]))
        n_final = hits.count
        if done < end:
            n_final = int(np.searchsorted(hits.starts, done - _FARTHEST))
        waiting = taken_hits(hits, slice(n_final, None))
        yield min(done, reference.n_bases), taken_hits(hits, slice(0, n_final))


def _as_hits(rows: np.ndarray, lengths: np.ndarray, as_written: int) -> SiteHits:
    wide = lengths[rows["guide"]] + rows["dna"] - rows["rna"]
    return SiteHits(
        guides=rows["guide"].copy(),
        starts=np.where(rows["direction"] == BACKWARD, rows["border"] - wide, rows["border"]),
        lengths=wide.astype(np.uint8),
        strands=(rows["direction"] != as_written).astype(np.uint8),
        mismatches=rows["mismatches"].copy(),
        dna_bulges=rows["dna"].copy(),
        rna_bulges=rows["rna"].copy(),
        gaps=rows["gaps"].copy(),
        ranks=rows["rank"].copy(),
    )


def _in_order(hits: SiteHits) -> SiteHits:
    keys = (hits.ranks, hits.strands, hits.lengths, hits.guides, hits.starts)
    return taken_hits(hits, np.lexsort(keys))
