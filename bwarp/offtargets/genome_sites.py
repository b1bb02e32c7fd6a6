"""Merge the sites that a guide has in several genomes with those of the reference.

    hits of a genome -> sites: bases and position of each -> merged with the sites so far

A site of a genome that alignments lift to the reference is the same as a site in this position, of
the reference or of another genome, if PAM, protospacer and alignment of the guide are the same.
Other sites are compared by these alone: with sites of the reference that the genome is not aligned
to, and with such sites of other genomes. Copies of such a site in a genome are one site.

The position is the border between PAM and protospacer. Gaps of alignments may be anywhere in a
repeat, so a site with the same bases as one of the reference may have its border or its other end
in the same position.
"""

from typing import NamedTuple

import numpy as np

from bwarp.offtargets.alternative_sites import Sought, pam_follows
from bwarp.offtargets.genome_alignments import GenomeAlignments, is_aligned, lift
from bwarp.offtargets.hits import SiteHits
from bwarp.offtargets.site_rows import (
    SITE_BASES,
    SiteRows,
    cut_of,
    describe,
    pam_lengths_of,
    site_words,
)
from bwarp.reference import Reference
from bwarp.runtime.compiled_code import read_only

#: Kinds of sites: of the reference, lifted to the reference, and without a position there.
REFERENCE, LIFTED, UNLIFTED = range(3)


def sites_dtype(n_genomes: int) -> np.dtype:
    """Return the columns of sites.

    `border`, `start` and `end` are positions in `contig`: of the reference, or for sites without a
    position, of the first genome that has the site. `words` are the bases, from `site_words`, and
    `genomes` has a bit per genome with the site. `aligned` counts the genomes that are aligned to a
    site of the reference.
    """
    return np.dtype([
        ("guide", np.int32), ("contig", np.int32), ("border", np.int64), ("start", np.int64),
        ("end", np.int64), ("words", np.uint64, (2,)), ("gaps", np.uint32), ("rank", np.uint32),
        ("aligned", np.int32), ("length", np.uint8), ("pam_length", np.uint8),
        ("strand", np.uint8), ("mismatches", np.uint8), ("dna_bulges", np.uint8),
        ("rna_bulges", np.uint8), ("kind", np.uint8),
        ("genomes", np.uint64, (-(-max(n_genomes, 1) // 64),)),
    ])  # fmt: skip


class Genome(NamedTuple):
    """A genome to search besides the reference.

    Attributes
    ----------
    number : int
        0 for the first genome.
    first_contig : int
        The number of its first contig: contigs of the reference and of earlier genomes precede it.
    bases : Reference
    alignments : GenomeAlignments or None
    """

    number: int
    first_contig: int
    bases: Reference
    alignments: GenomeAlignments | None


def sites_of_reference(hits: SiteHits, sought: Sought, n_genomes: int) -> np.ndarray:
    """Return the sites of hits in the reference, dtype `sites_dtype`."""
    return _sites(hits, sought.reference, sought, n_genomes)


def add_genome(
    known: np.ndarray, hits: SiteHits, genome: Genome, sought: Sought, n_genomes: int
) -> np.ndarray:
    """Merge the sites so far of some guides with all hits of these guides in a genome.

    Parameters
    ----------
    known : ndarray, dtype `sites_dtype`
        Not changed.
    hits : SiteHits
        By guide and position.

    Returns
    -------
    sites : ndarray, dtype `sites_dtype`
        By guide.
    """
    found = _sites(hits, genome.bases, sought, n_genomes)
    found["kind"] = UNLIFTED
    word, bit = genome.number // 64, np.uint64(1 << genome.number % 64)
    found["genomes"][:, word] = bit
    is_reference = known["kind"] == REFERENCE
    reference, others = known[is_reference], known[~is_reference]
    apart = np.ones(reference.size, bool)
    if genome.alignments is not None:
        begins = sought.reference.contig_starts[reference["contig"]]
        starts, ends = reference["start"] + begins, reference["end"] + begins
        apart = ~is_aligned(genome.alignments, starts, ends)
        reference["aligned"] += ~apart
        _lift(found, hits, reference, genome.alignments, sought)
    is_loose = found["kind"] == UNLIFTED
    found["contig"][is_loose] += genome.first_contig
    # Most sites are those of the reference. Only the others are compared with each other.
    everywhere = np.ones(reference.size, bool)
    in_reference = np.zeros(found.size, bool)
    for keys, there, here in (
        (_positions_and_bases, everywhere, ~is_loose),
        (_bases, apart, is_loose),
    ):
        if here.any():
            in_found, equal = _in_both(keys(reference[there]), keys(found[here]))
            reference["genomes"][np.flatnonzero(there)[in_found], word] |= bit
            in_reference[here] = equal
    others = _merged(np.concatenate([others, found[~in_reference]]))
    sites = np.concatenate([reference, others])
    return sites[np.argsort(sites["guide"], kind="stable")]


def order_of_sites(sites: np.ndarray) -> np.ndarray:
    """Return the order in which sites are written: as in a search without genomes, where possible.

    Sites without a position in the reference are last.
    """
    names = ("rank", "kind", "strand", "end", "start", "contig", "guide")
    # Bases break ties, so that the order of the genomes does not.
    words = sites["words"]
    return np.lexsort([words[:, 1], words[:, 0], *(sites[name] for name in names)])


def rows_of_sites(sites: np.ndarray, sought: Sought) -> SiteRows:
    """Describe sites, in positions of their contigs."""
    n = sites.size
    begins = SITE_BASES * np.arange(n)
    pam_lengths = sites["pam_length"].astype(np.int64)
    ends = np.cumsum(sites["length"] + pam_lengths + 1)
    # A genome that consists of the sites.
    genome = Reference(
        names=("sites",),
        contig_starts=np.array([0, SITE_BASES * n]),
        md5=("",),
        segment_genome=begins.astype(np.uint32),
        segment_text=np.append(0, ends),
        packed=read_only(np.append(sites["words"].reshape(-1), np.zeros(2, np.uint64))),
    )
    names = ("mismatches", "dna_bulges", "rna_bulges", "gaps")
    hits = SiteHits(
        guides=sites["guide"].copy(),
        starts=begins + np.where(sought.pam.side == 3, 0, pam_lengths),
        lengths=sites["length"].copy(),
        strands=np.zeros(n, np.uint8),
        ranks=sites["rank"].copy(),
        **{name: sites[name].copy() for name in names},
    )
    rows = describe(hits, sought.guides, sought.pam, genome)
    reference = sought.reference
    is_lifted = sites["kind"] != UNLIFTED
    first = reference.contig_starts[np.where(is_lifted, sites["contig"], 0)]
    # Features are those of the reference: none is beyond its end.
    starts = np.where(is_lifted, first + sites["start"], reference.n_bases)
    lengths = np.minimum(sites["end"] - sites["start"], 255).astype(np.uint8)
    strands = sites["strand"].copy()
    hits = SiteHits(**vars(hits) | {"starts": starts, "lengths": lengths, "strands": strands})
    follows = pam_follows(strands, sought.pam.side)
    return SiteRows(**vars(rows) | {
        "hits": hits,
        "contigs": sites["contig"].astype(np.int64),
        "starts": sites["start"].copy(),
        "ends": sites["end"].copy(),
        "cuts": cut_of(sites["border"], follows, sought.pam),
    })  # fmt: skip


def position_numbers(sites: np.ndarray) -> np.ndarray:
    """Return a number per site, the same for sites of a guide in the same position, dtype int64."""
    return _numbers([*_position_keys(sites), sites["guide"]])


def _sites(hits: SiteHits, genome: Reference, sought: Sought, n_genomes: int) -> np.ndarray:
    """Return sites in positions of their own contigs, of the kind `REFERENCE`, in no genome."""
    sites = np.zeros(hits.count, sites_dtype(n_genomes))
    pam_lengths = pam_lengths_of(hits, sought.pam, genome)
    contigs = genome.contig_of(hits.starts)
    starts = hits.starts - genome.contig_starts[contigs]
    ends = starts + hits.lengths
    columns = {
        "guide": hits.guides, "contig": contigs, "start": starts, "end": ends,
        "border": np.where(pam_follows(hits.strands, sought.pam.side), ends, starts),
        "words": site_words(hits, pam_lengths, sought.pam, genome.packed), "gaps": hits.gaps,
        "rank": hits.ranks, "length": hits.lengths, "pam_length": pam_lengths,
        "strand": hits.strands, "mismatches": hits.mismatches, "dna_bulges": hits.dna_bulges,
        "rna_bulges": hits.rna_bulges,
    }  # fmt: skip
    for name, column in columns.items():
        sites[name] = column
    return sites


def _lift(
    found: np.ndarray,
    hits: SiteHits,
    known: np.ndarray,
    alignments: GenomeAlignments,
    sought: Sought,
) -> None:
    """Change sites of a genome, where possible, to positions of the reference.

    `known` are the sites of the reference.
    """
    parts = lift(alignments, hits.starts, hits.starts + hits.lengths)
    rows = np.flatnonzero(parts.starts >= 0)
    starts, ends = parts.starts[rows], parts.ends[rows]
    strands = hits.strands[rows] ^ parts.is_reverse[rows].astype(np.uint8)
    reference = sought.reference
    # The base before an insertion, which may be at the end of a contig, is aligned.
    contigs = reference.contig_of(ends - 1)
    begins = reference.contig_starts[contigs]
    follows = pam_follows(strands, sought.pam.side)
    there = found[rows]
    there["kind"] = LIFTED
    there["contig"], there["strand"] = contigs, strands
    there["start"], there["end"] = starts - begins, ends - begins
    there["border"] = np.where(follows, there["end"], there["start"])
    # Where the border would be if the other end is not moved.
    length = there["length"].astype(np.int64)
    other = np.where(follows, there["start"] + length, there["end"] - length)
    moved = np.flatnonzero(other != there["border"])
    at_border = there[moved]
    at_other = at_border.copy()
    at_other["border"] = other[moved]
    borders = np.append(at_border["border"], at_other["border"])
    near = _positions_and_bases(known[np.isin(known["border"], borders)])
    is_other = _in_both(_positions_and_bases(at_other), near)[0]
    is_other &= ~_in_both(_positions_and_bases(at_border), near)[0]
    there["border"][moved[is_other]] = at_other["border"][is_other]
    found[rows] = there


def _bases(sites: np.ndarray) -> list[np.ndarray]:
    """Return the columns in which sites with the same bases and alignment are equal."""
    alignment = sites["gaps"].astype(np.int64) << 32 | sites["rank"]
    words = sites["words"]
    return [words[:, 0], words[:, 1], alignment, sites["pam_length"], sites["guide"]]


def _position_keys(sites: np.ndarray) -> list[np.ndarray]:
    """Return the columns in which sites in one position are equal; all without one are."""
    nowhere = sites["kind"] == UNLIFTED
    return [
        np.where(nowhere, -1, sites["contig"]),
        np.where(nowhere, -1, sites["border"] << 1 | sites["strand"]),
    ]


def _positions_and_bases(sites: np.ndarray) -> list[np.ndarray]:
    return [*_position_keys(sites), *_bases(sites)]


def _merged(sites: np.ndarray) -> np.ndarray:
    """Join equal sites; the first of them stands for all."""
    order, new = _equal_rows(_positions_and_bases(sites))
    begins = np.flatnonzero(new)
    firsts = order[begins]
    merged = sites[firsts]
    if begins.size:
        merged["genomes"] = np.bitwise_or.reduceat(sites["genomes"][order], begins, axis=0)
    return merged[np.argsort(firsts)]


def _equal_rows(keys: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return an order in which equal rows are together, and whether each row begins new ones.

    Equal rows stay in their order.
    """
    # One sort by a hash takes a fraction of the time of a sort by every column.
    hashes = np.zeros(keys[0].size, np.uint64)
    for key in keys:
        hashes = (hashes ^ key.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        hashes ^= hashes >> np.uint64(32)
    order = np.argsort(hashes, kind="stable")
    same = np.flatnonzero(np.diff(hashes[order]) == 0)
    if not _are_equal(keys, order[same], order[same + 1]).all():
        # Different rows have the same hash.
        order = np.lexsort(keys)
        same = np.flatnonzero(_are_equal(keys, order[:-1], order[1:]))
    new = np.ones(order.size, bool)
    new[same + 1] = False
    return order, new


def _are_equal(keys: list[np.ndarray], rows: np.ndarray, others: np.ndarray) -> np.ndarray:
    return np.all([key[rows] == key[others] for key in keys], axis=0)


def _numbers(keys: list[np.ndarray]) -> np.ndarray:
    """Return numbers from 0 on that are equal for rows that are equal."""
    order, new = _equal_rows(keys)
    numbers = np.empty(order.size, np.int64)
    numbers[order] = np.cumsum(new) - 1
    return numbers


def _in_both(one: list[np.ndarray], other: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return which rows of each table are also in the other one."""
    numbers = _numbers([np.concatenate(pair) for pair in zip(one, other, strict=True)])
    n = one[0].size
    there = np.zeros((2, numbers.size), bool)
    there[0, numbers[:n]] = True
    there[1, numbers[n:]] = True
    return there[1, numbers[:n]], there[0, numbers[n:]]
