"""Find the sites of guides that variants make or change.

    edits -> windows -> hits in windows -> edits and haplotypes of each -> `AlternativeSites`

An edit is in a site if the site has bases of it, or bases on both sides of a deletion; the PAM
belongs to the site. A site with the same bases as the reference at its PAM is not an alternative,
for example if bases are inserted in a repeat at its far end.

Which alignment of a site is the best, and which PAM is the first, may depend on bases beyond it: as
far as the longest alignment and the longest PAM reach. A haplotype has a site of a window if it has
all edits of the window in this range, and no others. The same site may then be in several windows.
"""

from typing import NamedTuple

import numpy as np

from bwarp.offtargets.find import find_sites
from bwarp.offtargets.guides import Guides, Pam
from bwarp.offtargets.hits import SiteHits, SiteOptions, joined_hits, taken_hits
from bwarp.offtargets.site_rows import SiteRows, describe
from bwarp.reference import Reference, interval_at
from bwarp.runtime.compiled_code import compiled
from bwarp.variants.edits import LONGEST_EDIT, Edits, overlap
from bwarp.variants.files import bases_of
from bwarp.variants.lines import Bases
from bwarp.variants.windows import Limits, Windows, alternative_genome, list_windows

_NONE = np.uint64(0)


class Origins(NamedTuple):
    """Where sites of windows are in the genome, and their edits and haplotypes.

    Attributes
    ----------
    exists : ndarray, shape=(n,), dtype=bool
        Whether a haplotype has the site.
    firsts, lasts : ndarray, shape=(n,), dtype=int64
        The range of its edits in the entries of `Windows`.
    starts, ends, borders : ndarray, shape=(n,), dtype=int64
        The protospacer, and its end next to the PAM, in positions of the genome.
    same : ndarray, shape=(n,), dtype=bool
        Whether the reference has the same bases there.
    free : ndarray, shape=(n,), dtype=bool
    haplotypes : ndarray, shape=(n,), dtype=int64
    carriers : ndarray, shape=(n, n_words), dtype=uint64
    """

    exists: np.ndarray
    firsts: np.ndarray
    lasts: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    borders: np.ndarray
    same: np.ndarray
    free: np.ndarray
    haplotypes: np.ndarray
    carriers: np.ndarray


class AlternativeSites(NamedTuple):
    """Sites in windows, each once.

    Attributes
    ----------
    rows : SiteRows
        In coordinates of the windows.
    origins : Origins
    windows : Windows
    """

    rows: SiteRows
    origins: Origins
    windows: Windows


class Sought(NamedTuple):
    """What is searched, and how."""

    reference: Reference
    guides: Guides
    pam: Pam
    options: SiteOptions
    threads: int = 1
    backend: str = "cpu"
    combinations: int = 1024

    @property
    def reach(self) -> int:
        """The maximum number of bases of a site with its PAM."""
        return int(self.guides.lengths.max()) + self.options.dna_bulge + self.pam.length


def find_alternative_sites(
    edits: Edits, contig: int, n_haplotypes: int, sought: Sought
) -> AlternativeSites:
    """Find the sites that the edits of a stretch of a contig make or change."""
    reference = sought.reference
    genome = bases_of(reference)
    begin, end = reference.contig_starts[contig : contig + 2].tolist()
    limits = Limits(sought.reach, sought.combinations, begin, end)
    windows = list_windows(edits, genome, limits)
    genome_of_windows = alternative_genome(windows)
    found = find_sites(
        genome_of_windows, sought.guides, sought.pam, sought.options, sought.threads,
        sought.backend,
    )  # fmt: skip
    hits = joined_hits([hits for _, hits in found]) if windows.count else _no_hits()
    rows = describe(hits, sought.guides, sought.pam, genome_of_windows)
    origins = _origins(rows, edits, windows, genome, n_haplotypes, sought)
    kept, origins = _each_once(rows, origins, windows, n_haplotypes)
    return AlternativeSites(taken_rows(rows, kept), origins, windows)


def pam_follows(strands: np.ndarray, side: int) -> np.ndarray:
    """Return whether the PAM is after the protospacer on the forward strand."""
    return (strands == 0) == (side == 3)


def taken_rows(rows: SiteRows, which) -> SiteRows:
    """Select rows by mask, numbers or slice."""
    columns = {name: column[which] for name, column in vars(rows).items() if name != "hits"}
    return SiteRows(hits=taken_hits(rows.hits, which), **columns)


def taken_origins(origins: Origins, which) -> Origins:
    """Select rows by mask, numbers or slice."""
    return Origins(*(column[which] for column in origins))


def all_haplotypes(n_haplotypes: int) -> np.ndarray:
    """Return a bit per haplotype, dtype uint64; without genotypes, one for any haplotype."""
    n_bits = max(n_haplotypes, 1)
    words = np.full(-(-n_bits // 64), ~np.uint64(0))
    if n_bits & 63:
        words[-1] = (1 << (n_bits & 63)) - 1
    return words


def _no_hits() -> SiteHits:
    types = (np.int32, np.int64, *[np.uint8] * 5, np.uint32, np.uint32)
    return SiteHits(*(np.empty(0, dtype) for dtype in types))


def _origins(rows, edits: Edits, windows: Windows, genome: Bases, n_haplotypes, sought) -> Origins:
    n = rows.hits.count
    everyone = all_haplotypes(n_haplotypes)
    carriers = edits.carriers
    if carriers.shape[1] == 0:
        carriers = np.zeros((edits.count, 1), np.uint64)
    origins = Origins(
        np.zeros(n, bool), *np.zeros((5, n), np.int64), *np.zeros((2, n), bool),
        np.zeros(n, np.int64), np.zeros((n, everyone.size), np.uint64),
    )  # fmt: skip
    lefts, rights = with_pams(rows.starts, rows.ends, rows.pam_lengths, rows.hits, sought)
    sites = _Sites(
        rows.contigs, rows.starts, rows.ends, lefts, rights,
        *farthest(rows.starts, rows.ends, rows.hits, sought),
        pam_follows(rows.hits.strands, sought.pam.side),
    )  # fmt: skip
    _trace(sites, edits._replace(carriers=carriers), windows, genome, everyone, origins)
    return origins


def with_pams(starts, ends, pam_lengths, hits: SiteHits, sought: Sought) -> tuple:
    """Return starts and ends of sites with their PAMs."""
    follows = pam_follows(hits.strands, sought.pam.side)
    return starts - np.where(follows, 0, pam_lengths), ends + np.where(follows, pam_lengths, 0)


def farthest(starts, ends, hits: SiteHits, sought: Sought) -> tuple:
    """Return starts and ends of the bases that decide which site a guide has next to a border."""
    follows = pam_follows(hits.strands, sought.pam.side)
    longest = sought.guides.lengths[hits.guides] + sought.options.dna_bulge
    pam = sought.pam.length
    return (
        np.where(follows, ends - longest, starts - pam),
        np.where(follows, ends + pam, starts + longest),
    )


def _each_once(
    rows: SiteRows, origins: Origins, windows: Windows, n_haplotypes: int
) -> tuple[np.ndarray, Origins]:
    """Join the sites that several windows have; return their rows, and their origins."""
    there = np.flatnonzero(origins.exists)
    hits = rows.hits
    firsts, counts = origins.firsts[there], (origins.lasts - origins.firsts)[there]
    edits = [
        np.where(i < counts, windows.edits[np.minimum(firsts + i, windows.edits.size - 1)], -1)
        for i in range(int(counts.max(initial=0)))
    ]
    keys = [
        *edits,
        *(
            column[there]
            for column in (
                hits.gaps, origins.starts, origins.ends, origins.borders, hits.strands, hits.guides,
            )
        ),
    ]  # fmt: skip
    # The sequences of sites without edits, or with the same ones, are the same.
    order = np.lexsort([hits.ranks[there], *keys])
    new = np.ones(order.size, bool)
    if order.size:
        new[1:] = np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0)
    begins = np.flatnonzero(new)
    kept = there[order[begins]]
    one_each = taken_origins(origins, kept)
    carriers = origins.carriers[there[order]]
    if begins.size:
        carriers = np.bitwise_or.reduceat(carriers, begins, axis=0)
    haplotypes = np.bitwise_count(carriers).sum(axis=1, dtype=np.int64)
    if not n_haplotypes:
        haplotypes[:] = 0
    return kept, one_each._replace(carriers=carriers, haplotypes=haplotypes)


class _Sites(NamedTuple):
    """Protospacers in windows, also with their PAMs, and all bases that decide about them."""

    windows: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    lefts: np.ndarray
    rights: np.ndarray
    far_lefts: np.ndarray
    far_rights: np.ndarray
    pam_follows: np.ndarray


@compiled
def _trace(sites, edits, windows, genome, everyone, origins):
    """Write the origins of sites."""
    for row in range(sites.windows.size):
        window = sites.windows[row]
        first, after = windows.firsts[window], windows.firsts[window + 1]
        far_left, far_right = sites.far_lefts[row], sites.far_rights[row]
        far = _entries_in(edits, windows, (first, after), far_left, far_right)
        # The site must contain the anchor; other windows have the other sites.
        if far[0] != first or far[1] == first:
            continue
        origin = windows.origins[window]
        carriers = origins.carriers[row]
        for word in range(everyone.size):
            carriers[word] = everyone[word]
        for entry in range(first, far[1]):
            edit = windows.edits[entry]
            if not edits.free[edit]:
                for word in range(everyone.size):
                    carriers[word] &= edits.carriers[edit, word]
        _without_others(edits, windows, (first, far[1], origin, far_left, far_right), carriers)
        held = _NONE
        for word in range(everyone.size):
            held |= carriers[word]
        if held == _NONE:
            continue
        start, end, left, right = (
            sites.starts[row], sites.ends[row], sites.lefts[row], sites.rights[row],
        )  # fmt: skip
        begin, stop = _entries_in(edits, windows, (first, after), left, right)
        lifted = _lift_start(edits, windows, first, after, origin, start)
        lifted_end = _lift_end(edits, windows, first, after, origin, end)
        border = lifted_end if sites.pam_follows[row] else lifted
        before = end - left if sites.pam_follows[row] else start - left
        origins.exists[row] = True
        origins.firsts[row], origins.lasts[row] = begin, stop
        origins.starts[row], origins.ends[row], origins.borders[row] = lifted, lifted_end, border
        at = windows.begins[window] + left
        origins.same[row] = begin == stop or _same_bases(
            genome, border - before, windows.codes, at, right - left
        )
        for entry in range(begin, stop):
            origins.free[row] = origins.free[row] or edits.free[windows.edits[entry]]


@compiled
def _entries_in(edits, windows, entries, left, right):
    """Return the range of entries of a window whose edits are between two offsets of it."""
    begin, stop = entries
    while begin < stop and (windows.offsets[begin] + _length(edits, windows.edits[begin]) <= left):
        begin += 1
    while stop > begin and windows.offsets[stop - 1] >= right:
        stop -= 1
    return begin, stop


@compiled
def _length(edits, edit):
    return edits.bounds[edit, 1] - edits.bounds[edit, 0]


@compiled
def _without_others(edits, windows, site, carriers):
    """Remove the haplotypes with any other edit in a site, from `left` to `right` of its window."""
    first, last, origin, left, right = site
    end = edits.stops[windows.edits[last - 1]] + right
    other = np.searchsorted(edits.starts, origin - LONGEST_EDIT)
    while other < edits.starts.size and edits.starts[other] <= end:
        in_the_way = False
        known = False
        # Where it would begin in the window, after the edits of the site before it.
        offset = edits.starts[other] - origin
        for entry in range(first, last):
            edit = windows.edits[entry]
            known = known or edit == other
            in_the_way = in_the_way or overlap(
                edits.starts[edit], edits.stops[edit], edits.starts[other], edits.stops[other]
            )
            if edit < other:
                offset = (
                    windows.offsets[entry] + _length(edits, edit)
                    + edits.starts[other] - edits.stops[edit]
                )  # fmt: skip
        removed = edits.stops[other] - edits.starts[other]
        in_the_way = in_the_way or (offset < right and offset + removed > left)
        if in_the_way and not known and not edits.free[other]:
            for word in range(carriers.size):
                carriers[word] &= ~edits.carriers[other, word]
        other += 1


@compiled
def _entry_at(windows, first, after, offset):
    """Return the last entry whose bases begin at an offset of the window or before, or -1."""
    found = -1
    for entry in range(first, after):
        if windows.offsets[entry] <= offset:
            found = entry
    return found


@compiled
def _lift_start(edits, windows, first, after, origin, offset):
    """Return where in the genome the base at an offset of a window begins."""
    entry = _entry_at(windows, first, after, offset)
    if entry < 0:
        return origin + offset
    edit = windows.edits[entry]
    within = offset - windows.offsets[entry]
    length = _length(edits, edit)
    if within < length:
        return min(edits.starts[edit] + within, edits.stops[edit])
    return edits.stops[edit] + within - length


@compiled
def _lift_end(edits, windows, first, after, origin, offset):
    """Return where in the genome the base before an offset of a window ends."""
    entry = _entry_at(windows, first, after, offset - 1)
    if entry < 0:
        return origin + offset
    edit = windows.edits[entry]
    within = offset - windows.offsets[entry]
    length = _length(edits, edit)
    if within <= length:
        return min(edits.starts[edit] + within, edits.stops[edit])
    return edits.stops[edit] + within - length


@compiled
def _same_bases(genome, start, codes, at, length):
    """Return whether the genome has the same bases from `start` on."""
    segment = interval_at(genome.segment_starts, start)
    if segment < 0 or start + length > genome.segment_stops[segment]:
        return False
    for i in range(length):
        word = genome.packed[(start + i) >> 5]
        base = np.uint8(word >> np.uint64(62 - 2 * ((start + i) & 31)) & np.uint64(3))
        if base != codes[at + i]:
            return False
    return True
