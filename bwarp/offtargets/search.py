"""The input of both engines of the off-target search, and the conversion of their results."""

from dataclasses import dataclass

import numpy as np

from bwarp.offtargets.guides import Guides, Pam
from bwarp.offtargets.hits import SiteHits, SiteOptions, taken_hits
from bwarp.offtargets.pam_sites_cpu import BACKWARD, FORWARD
from bwarp.reference import Reference

#: The data of an alignment before it becomes a row of a table.
ROW = np.dtype(
    [
        ("border", np.int64), ("guide", np.int32), ("gaps", np.uint32), ("rank", np.uint32),
        ("direction", np.uint8), ("mismatches", np.uint8), ("dna", np.uint8), ("rna", np.uint8),
    ]
)  # fmt: skip


@dataclass(frozen=True)
class Search:
    """Guides and PAMs by reading direction of sites, and the genome.

    Attributes
    ----------
    packed : ndarray, dtype=uint64
        The genome, from `bwarp.sequence.pack`.
    segment_starts, segment_stops : ndarray, dtype=int64
        The segments of the genome, in order.
    end : int
        The last possible start of a PAM, plus one; an empty PAM may start after the last base.
    allowed : tuple of ndarray, shape=(n, length), dtype=uint8
        The PAMs before a border for backward sites, and for forward sites.
    codes : tuple of ndarray, shape=(n_guides, LONGEST_GUIDE), dtype=uint8
        Codes of the guides from the PAM on, in the reading direction of backward and of forward
        sites.
    lengths : ndarray, shape=(n_guides,), dtype=int64
    as_written : int
        The reading direction of sites on the forward strand.
    options : SiteOptions
    """

    packed: np.ndarray
    segment_starts: np.ndarray
    segment_stops: np.ndarray
    end: int
    allowed: tuple[np.ndarray, np.ndarray]
    codes: tuple[np.ndarray, np.ndarray]
    lengths: np.ndarray
    as_written: int
    options: SiteOptions

    @property
    def least(self) -> int:
        """The minimum number of bases of a protospacer."""
        return int(self.lengths.min()) - self.options.rna_bulge


def search_of(reference: Reference, guides: Guides, pam: Pam, options: SiteOptions) -> Search:
    """Prepare the search for sites next to PAMs of one length."""
    codes = guides.codes_from_pam(pam.side)
    # Sites on the strand for which the PAM is written are read backwards if it is at the 3' end.
    as_written = BACKWARD if pam.side == 3 else FORWARD
    allowed, read_as = [None, None], [None, None]
    allowed[as_written], allowed[1 - as_written] = pam.allowed, pam.on_other_strand()
    read_as[as_written], read_as[1 - as_written] = codes, 3 - codes
    starts = reference.segment_genome.astype(np.int64)
    return Search(
        packed=reference.packed,
        segment_starts=starts,
        segment_stops=starts + np.diff(reference.segment_text) - 1,
        end=reference.n_bases + 1,
        allowed=tuple(allowed),
        codes=tuple(read_as),
        lengths=guides.lengths,
        as_written=as_written,
        options=options,
    )


def hits_of_rows(rows: np.ndarray, search: Search) -> SiteHits:
    """Convert rows (dtype `ROW`) to hits, by start, guide, length, strand and rank.

    The alignments of a site are consecutive and in order.
    """
    wide = search.lengths[rows["guide"]] + rows["dna"] - rows["rna"]
    hits = SiteHits(
        guides=rows["guide"].copy(),
        starts=np.where(rows["direction"] == BACKWARD, rows["border"] - wide, rows["border"]),
        lengths=wide.astype(np.uint8),
        strands=(rows["direction"] != search.as_written).astype(np.uint8),
        mismatches=rows["mismatches"].copy(),
        dna_bulges=rows["dna"].copy(),
        rna_bulges=rows["rna"].copy(),
        gaps=rows["gaps"].copy(),
        ranks=rows["rank"].copy(),
    )
    return in_order_of_sites(hits)


def in_order_of_sites(hits: SiteHits) -> SiteHits:
    """Sort hits by start, guide, length, strand and rank; those of one site are already sorted."""
    if hits.count == 0:
        return hits
    # Starts are within 2**28 bases, which is more than is searched at a time.
    key = (hits.starts - hits.starts.min()) << 35
    key |= hits.guides.astype(np.int64) << 7 | hits.lengths.astype(np.int64) << 1
    return taken_hits(hits, np.argsort(key | hits.strands, kind="stable"))


def each_once(hits: SiteHits) -> SiteHits:
    """Sort hits likewise and remove duplicates: two PAMs may give the same site."""
    columns = (hits.ranks, hits.strands, hits.lengths, hits.guides, hits.starts)
    hits = taken_hits(hits, np.lexsort(columns))
    new = np.ones(hits.count, bool)
    if hits.count:
        columns = (hits.ranks, hits.strands, hits.lengths, hits.guides, hits.starts)
        new[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return taken_hits(hits, new)
