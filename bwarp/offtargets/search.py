"""A search for off-targets as both engines take it, and what they find, before it is a table."""

from dataclasses import dataclass

import numpy as np

from bwarp.offtargets.guides import Guides, Pam
from bwarp.offtargets.hits import SiteHits, SiteOptions, taken_hits
from bwarp.offtargets.pam_sites_cpu import BACKWARD, FORWARD
from bwarp.reference import Reference

#: What is known of an alignment, before it is a row of a table.
ROW = np.dtype(
    [
        ("border", np.int64), ("guide", np.int32), ("gaps", np.uint32), ("rank", np.uint32),
        ("direction", np.uint8), ("mismatches", np.uint8), ("dna", np.uint8), ("rna", np.uint8),
    ]
)  # fmt: skip


@dataclass(frozen=True)
class Search:
    """Guides and PAMs, by the direction in which sites are read, and the genome.

    Attributes
    ----------
    packed : ndarray, dtype=uint64
        The genome, as `bwarp.sequence.pack` makes it.
    segment_starts, segment_stops : ndarray, dtype=int64
        Where its segments lie, in order.
    end : int
        Where the last PAM may begin, and one more: of length 0 it may stand behind the last base.
    allowed : tuple of ndarray, shape=(n, length), dtype=uint8
        The PAMs before a border that is read backwards from, and before one read forwards from.
    codes : tuple of ndarray, shape=(n_guides, LONGEST_GUIDE), dtype=uint8
        Of the guides from the PAM on, as backward and as forward sites are read.
    lengths : ndarray, shape=(n_guides,), dtype=int64
    as_written : int
        The direction of sites on the forward strand.
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
        """Bases that a protospacer has at least."""
        return int(self.lengths.min()) - self.options.rna_bulge


def search_of(reference: Reference, guides: Guides, pam: Pam, options: SiteOptions) -> Search:
    """The search for sites beside PAMs of one length."""
    codes = guides.codes_from_pam(pam.side)
    # Sites on the strand that the PAM is written for are read backwards if it is at the 3' end.
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
    """Rows (dtype `ROW`) as hits, by start, guide, length, strand and rank.

    The alignments of a site follow each other in their order.
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
    """Hits by start, guide, length, strand and rank; those of one site are so already."""
    if hits.count == 0:
        return hits
    # Starts lie within 2**28 bases, which is more than is searched at a time.
    key = (hits.starts - hits.starts.min()) << 35
    key |= hits.guides.astype(np.int64) << 7 | hits.lengths.astype(np.int64) << 1
    return taken_hits(hits, np.argsort(key | hits.strands, kind="stable"))


def each_once(hits: SiteHits) -> SiteHits:
    """Hits by start, guide, length, strand and rank, each once: two PAMs may lead to a site."""
    columns = (hits.ranks, hits.strands, hits.lengths, hits.guides, hits.starts)
    hits = taken_hits(hits, np.lexsort(columns))
    new = np.ones(hits.count, bool)
    if hits.count:
        columns = (hits.ranks, hits.strands, hits.lengths, hits.guides, hits.starts)
        new[1:] = np.any([column[1:] != column[:-1] for column in columns], axis=0)
    return taken_hits(hits, new)
