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
from bwarp.offtargets.hits import SiteHits, SiteOptions, joined_hits, no_hits, taken_hits
from bwarp.offtargets.site_rows import SiteRows, describe
from bwarp.reference import Reference, interval_at
from bwarp.runtime.compiled_code import compiled
from bwarp.variants.edits import LONGEST_EDIT, overlap, taken_pieces
from bwarp.variants.files import Stretch, bases_of, context_of
from bwarp.variants.lines import Bases
from bwarp.variants.windows import Limits, Windows, alternative_genome, list_windows

_NONE = np.uint64(0)


class Origins(NamedTuple):
    """Where sites of windows are in the genome, and their edits and haplotypes.

    Attributes
    ----------
    exists : ndarray, shape=(n,), dtype=bool
        Whether a haplotype has the site, and the site is in the stretch.
    edits : ndarray, shape=(n, 2), dtype=int64
        The range of its edits in the entries of `Windows`, or in `AlternativeSites.edits`.
    starts, ends, borders : ndarray, shape=(n,), dtype=int64
        The protospacer, and its end next to the PAM, in positions of the genome.
    same : ndarray, shape=(n,), dtype=bool
        Whether the reference has the same bases there.
    free : ndarray, shape=(n,), dtype=bool
    carriers : ndarray, shape=(n, n_words), dtype=uint64
        The haplotypes that have the site.
    """

    exists: np.ndarray
    edits: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    borders: np.ndarray
    same: np.ndarray
    free: np.ndarray
    carriers: np.ndarray


class AlternativeSites(NamedTuple):
    """Sites in windows, each once.

    Attributes
    ----------
    rows : SiteRows
        In coordinates of the windows.
    origins : Origins
    edits : ndarray, dtype=int64
        The edits of all sites.
    limited : ndarray, shape=(n, 2), dtype=int64
        As in `Windows`.
    """

    rows: SiteRows
    origins: Origins
    edits: np.ndarray
    limited: np.ndarray


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
        """The maximum number of bases of a site with its PAM, for the guides of all parts."""
        return self.guides.longest + self.options.dna_bulge + self.pam.length


def find_alternative_sites(stretch: Stretch, sought: Sought) -> AlternativeSites:
    """Find the sites that the edits of a stretch of a contig make or change."""
    edits, reference = stretch.edits, sought.reference
    genome = bases_of(reference)
    contig = reference.names.index(stretch.contig)
    limits = Limits(
        sought.reach, sought.combinations, *reference.contig_starts[contig : contig + 2].tolist()
    )
    context = context_of(sought.reach)
    anchors = np.searchsorted(edits.starts, [stretch.begin - context, stretch.end + context])
    parts, n_edits = [], 0
    for windows in list_windows(edits, genome, limits, *anchors.tolist()):
        part = _sites_of_windows(windows, stretch, genome, sought)
        parts.append(part._replace(origins=part.origins._replace(
            edits=part.origins.edits + n_edits
        )))  # fmt: skip
        n_edits += part.edits.size
    columns = zip(*(part.origins for part in parts), strict=True)
    return _each_once(AlternativeSites(
        joined_rows([part.rows for part in parts]),
        Origins(*map(np.concatenate, columns)),
        np.concatenate([part.edits for part in parts]),
        np.concatenate([part.limited for part in parts]),
    ))  # fmt: skip


def _sites_of_windows(
    windows: Windows, stretch: Stretch, genome: Bases, sought: Sought
) -> AlternativeSites:
    """Find the sites in windows."""
    genome_of_windows = alternative_genome(windows)
    found = find_sites(
        genome_of_windows, sought.guides, sought.pam, sought.options, sought.threads,
        sought.backend,
    )  # fmt: skip
    hits = joined_hits([hits for _, hits in found]) if windows.count else no_hits()
    rows = describe(hits, sought.guides, sought.pam, genome_of_windows)
    origins = _origins(rows, stretch, windows, genome, sought)
    there = np.flatnonzero(origins.exists)
    origins = taken_origins(origins, there)
    edits, bounds = taken_pieces(windows.edits, origins.edits)
    limited = windows.limited[stretch.contains(stretch.edits.starts[windows.limited[:, 0]])]
    return AlternativeSites(taken_rows(rows, there), origins._replace(edits=bounds), edits, limited)


def pam_follows(strands: np.ndarray, side: int) -> np.ndarray:
    """Return whether the PAM is after the protospacer on the forward strand."""
    return (strands == 0) == (side == 3)


def borders_of(hits: SiteHits, sought: Sought) -> np.ndarray:
    """Return the ends of sites next to the PAM."""
    follows = pam_follows(hits.strands, sought.pam.side)
    return np.where(follows, hits.starts + hits.lengths, hits.starts)


def taken_rows(rows: SiteRows, which) -> SiteRows:
    """Select rows by mask, numbers or slice."""
    columns = {name: column[which] for name, column in vars(rows).items() if name != "hits"}
    return SiteRows(hits=taken_hits(rows.hits, which), **columns)


def taken_origins(origins: Origins, which) -> Origins:
    """Select rows by mask, numbers or slice."""
    return Origins(*(column[which] for column in origins))


def joined_rows(parts: list[SiteRows]) -> SiteRows:
    """Concatenate rows."""
    columns = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in vars(parts[0]) if name != "hits"
    }  # fmt: skip
    return SiteRows(hits=joined_hits([part.hits for part in parts]), **columns)


def _origins(
    rows: SiteRows, stretch: Stretch, windows: Windows, genome: Bases, sought: Sought
) -> Origins:
    n, edits = rows.hits.count, stretch.edits
    origins = Origins(
        np.zeros(n, bool), np.zeros((n, 2), np.int64), *np.zeros((3, n), np.int64),
        *np.zeros((2, n), bool), np.zeros((n, edits.carriers.shape[1]), np.uint64),
    )  # fmt: skip
    lefts, rights = with_pams(rows.starts, rows.ends, rows.pam_lengths, rows.hits, sought)
    sites = _Sites(
        rows.contigs, rows.starts, rows.ends, lefts, rights,
        *farthest(rows.starts, rows.ends, rows.hits, sought),
        pam_follows(rows.hits.strands, sought.pam.side),
    )  # fmt: skip
    _trace(sites, edits, windows, genome, (stretch.begin, stretch.end), origins)
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


def _each_once(found: AlternativeSites) -> AlternativeSites:
    """Join the sites that several windows have."""
    hits, origins = found.rows.hits, found.origins
    firsts, counts = origins.edits[:, 0], origins.edits[:, 1] - origins.edits[:, 0]
    edits = [
        np.where(i < counts, found.edits[np.minimum(firsts + i, found.edits.size - 1)], -1)
        for i in range(int(counts.max(initial=0)))
    ]
    keys = [
        *edits, hits.gaps, origins.starts, origins.ends, origins.borders, hits.strands,
        hits.guides,
    ]  # fmt: skip
    # The sequences of sites without edits, or with the same ones, are the same.
    order = np.lexsort([hits.ranks, *keys])
    new = np.ones(order.size, bool)
    if order.size:
        new[1:] = np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0)
    begins = np.flatnonzero(new)
    kept = order[begins]
    carriers = origins.carriers[order]
    if begins.size:
        carriers = np.bitwise_or.reduceat(carriers, begins, axis=0)
    return found._replace(
        rows=taken_rows(found.rows, kept),
        origins=taken_origins(origins, kept)._replace(carriers=carriers),
    )


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
def _trace(sites, edits, windows, genome, stretch, origins):
    """Write the origins of sites whose border is in a stretch."""
    for row in range(sites.windows.size):
        window = sites.windows[row]
        first, after = windows.firsts[window], windows.firsts[window + 1]
        far_left, far_right = sites.far_lefts[row], sites.far_rights[row]
        far = _entries_in(edits, windows, (first, after), far_left, far_right)
        # The site must contain the anchor; other windows have the other sites.
        if far[0] != first or far[1] == first:
            continue
        origin = windows.origins[window]
        start, end, left, right = (
            sites.starts[row], sites.ends[row], sites.lefts[row], sites.rights[row],
        )  # fmt: skip
        lifted = _lift_start(edits, windows, first, after, origin, start)
        lifted_end = _lift_end(edits, windows, first, after, origin, end)
        border = lifted_end if sites.pam_follows[row] else lifted
        if border < stretch[0] or border >= stretch[1]:
            continue
        last = max(np.searchsorted(edits.starts, border, side="right") - 1, 0)
        carriers = origins.carriers[row]
        carriers[:] = edits.present[edits.ploidies[last]]
        for entry in range(first, far[1]):
            edit = windows.edits[entry]
            if not edits.free[edit]:
                for word in range(carriers.size):
                    carriers[word] &= edits.carriers[edit, word]
        _without_others(edits, windows, (first, far[1], origin, far_left, far_right), carriers)
        held = _NONE
        for word in range(carriers.size):
            held |= carriers[word]
        if held == _NONE:
            continue
        begin, stop = _entries_in(edits, windows, (first, after), left, right)
        before = end - left if sites.pam_follows[row] else start - left
        origins.exists[row] = True
        origins.edits[row, 0], origins.edits[row, 1] = begin, stop
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
