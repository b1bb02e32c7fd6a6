"""Describe hits for output: alignments as text, PAMs, cuts, scores and overlapping features.

Alignments and PAMs are written from 5' to 3' on the strand of the site, like guides. In a site, a
lower-case letter is a mismatch; in a guide or a site, ``-`` stands for a bulge base of the other.
"""

import os
import re
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bwarp.errors import InputError
from bwarp.io.compressed_files import read_blocks
from bwarp.io.names import Names
from bwarp.offtargets.cas9_scores import SCORED_LENGTH, cfd_scores, has_scores, mit_scores
from bwarp.offtargets.guides import Guides, Pam
from bwarp.offtargets.hits import SiteHits
from bwarp.options.finding import BULGES_EACH, LONGEST_GUIDE, LONGEST_PAM
from bwarp.reference import Reference, interval_at
from bwarp.runtime.compiled_code import compiled, read_only
from bwarp.runtime.timeline import on_timeline
from bwarp.sequence import pack

#: Bases next to the PAM in which mismatches are also counted separately.
SEED_LENGTH = 12

NO_CUT = -1

#: Bases between the PAM and the cut of its strand: Cas9, and Cas12a with its PAM at the 5' end.
_CUT_FROM_PAM = {3: 3, 5: 18}

#: Bytes per row of aligned text: whole vectors of any processor.
ROW_BYTES = 64

#: Bases in two words, which any site with its PAM fits in.
SITE_BASES = 64
assert LONGEST_GUIDE + BULGES_EACH + LONGEST_PAM <= SITE_BASES
assert LONGEST_GUIDE + BULGES_EACH <= ROW_BYTES
_SMALL, _GAP = 32, ord("-")
_LETTERS = np.frombuffer(b"ACGT", np.uint8)


class AlignedText(NamedTuple):
    """Hits as text, as in `SiteRows`."""

    guide_text: np.ndarray
    site_text: np.ndarray
    widths: np.ndarray
    seed_mismatches: np.ndarray


@dataclass(frozen=True)
class SiteRows:
    """Output columns of hits, in order.

    Attributes
    ----------
    hits : SiteHits
    contigs, starts, ends, cuts : ndarray, shape=(n,), dtype=int64
        Within the contig; the cut is before that base, or `NO_CUT`.
    guide_text, site_text : ndarray, shape=(n, `ROW_BYTES`), dtype=uint8
        As aligned, up to `widths` (dtype int64).
    pam_numbers : ndarray, shape=(n,), dtype=int64
        The index of the first requested PAM that matches.
    pams : ndarray, shape=(n, length of the longest PAM), dtype=uint8
        As text, up to `pam_lengths` (dtype int64).
    seed_mismatches : ndarray, shape=(n,), dtype=uint8
    cfd, mit : ndarray, shape=(n,), dtype=float64
        NaN if there is no score.
    """

    hits: SiteHits
    contigs: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    cuts: np.ndarray
    guide_text: np.ndarray
    site_text: np.ndarray
    widths: np.ndarray
    pam_numbers: np.ndarray
    pams: np.ndarray
    pam_lengths: np.ndarray
    seed_mismatches: np.ndarray
    cfd: np.ndarray
    mit: np.ndarray


@on_timeline("describe sites")
def describe(hits: SiteHits, guides: Guides, pam: Pam, reference: Reference) -> SiteRows:
    """Read the sites of hits from the genome, and align and score them."""
    n = hits.count
    lengths = hits.lengths.astype(np.int64)
    stops = hits.starts + lengths
    forward = hits.strands == 0
    # The 5' end of the protospacer and the PAM, on the strand of the site.
    pam_after = forward if pam.side == 3 else ~forward
    pam_numbers, pam_codes = _first_pams(reference, pam, hits.starts, stops, pam_after, forward)
    sites = _codes(reference.packed, hits.starts, int(lengths.max(initial=0)), forward, lengths)
    guide_codes = guides.codes
    text = AlignedText(
        *np.empty((2, n, ROW_BYTES), np.uint8), np.empty(n, np.int64), np.empty(n, np.uint8)
    )
    _write_alignments(
        hits.guides, hits.gaps, guide_codes, guides.lengths, sites, lengths, pam.side == 3, text
    )
    cfd, mit = np.full(n, np.nan), np.full(n, np.nan)
    scored = has_scores(guides, pam)[hits.guides] & (hits.gaps == np.uint32(0xFFFFFFFF))
    if scored.any():
        its_guides = guide_codes[hits.guides[scored], :SCORED_LENGTH]
        its_sites, its_pams = sites[scored, :SCORED_LENGTH], pam_codes[scored]
        cfd[scored] = cfd_scores(its_guides, its_sites, its_pams)
        mit[scored] = mit_scores(its_guides, its_sites, its_pams)
    contigs = reference.contig_of(hits.starts)
    begins = reference.contig_starts[contigs]
    borders = np.where(pam_after, stops, hits.starts) - begins
    return SiteRows(
        hits=hits,
        contigs=contigs,
        starts=hits.starts - begins,
        ends=stops - begins,
        cuts=cut_of(borders, pam_after, pam),
        **text._asdict(),
        pam_numbers=pam_numbers,
        pams=_LETTERS[pam_codes],
        pam_lengths=pam.lengths[pam_numbers],
        cfd=cfd,
        mit=mit,
    )


def cut_of(borders: np.ndarray, pam_after: np.ndarray, pam: Pam) -> np.ndarray:
    """Return where sites are cut, given their ends next to the PAM; `NO_CUT` without a PAM.

    Returns
    -------
    cuts : ndarray, shape=(n,), dtype=int64
    """
    if not pam.length:
        return np.full(borders.size, NO_CUT, np.int64)
    far = _CUT_FROM_PAM[pam.side]
    return borders + np.where(pam_after, -far, far)


class ReferenceSites(NamedTuple):
    """The reference at borders of sites: whether a PAM is there, and scores without bulges."""

    has_pam: np.ndarray
    cfd: np.ndarray
    mit: np.ndarray


def reference_at(
    borders: np.ndarray,
    guide_numbers: np.ndarray,
    strands: np.ndarray,
    guides: Guides,
    pam: Pam,
    reference: Reference,
) -> ReferenceSites:
    """Describe the bases of the reference next to borders between PAMs and protospacers.

    Returns
    -------
    sites : ReferenceSites
        Arrays of shape=(n,); scores are NaN where they are not defined, or at ambiguous bases.
    """
    n = len(borders)
    forward = strands == 0
    pam_after = forward if pam.side == 3 else ~forward
    numbers, _ = _first_pams(reference, pam, borders, borders, pam_after, forward)
    cfd, mit = np.full(n, np.nan), np.full(n, np.nan)
    starts = borders - np.where(pam_after, SCORED_LENGTH, pam.length)
    whole = SCORED_LENGTH + pam.length
    segment_starts = reference.segment_genome.astype(np.int64)
    segment = np.searchsorted(segment_starts, starts, side="right") - 1
    stops = segment_starts + np.diff(reference.segment_text) - 1
    rows = np.flatnonzero(
        (segment >= 0) & (starts + whole <= stops[segment]) & has_scores(guides, pam)[guide_numbers]
    )
    if rows.size:
        lengths = np.full(rows.size, whole)
        bases = _codes(reference.packed, starts[rows], whole, forward[rows], lengths)
        its = guides.codes[guide_numbers[rows], :SCORED_LENGTH]
        sites, pams = bases[:, :SCORED_LENGTH], bases[:, SCORED_LENGTH:]
        cfd[rows], mit[rows] = cfd_scores(its, sites, pams), mit_scores(its, sites, pams)
    return ReferenceSites(numbers >= 0, cfd, mit)


def pam_lengths_of(hits: SiteHits, pam: Pam, reference: Reference) -> np.ndarray:
    """Return the length of the first PAM that matches at each site, dtype int64."""
    if (pam.lengths == pam.length).all():
        return np.full(hits.count, pam.length)
    forward = hits.strands == 0
    pam_after = forward if pam.side == 3 else ~forward
    stops = hits.starts + hits.lengths
    numbers, _ = _first_pams(reference, pam, hits.starts, stops, pam_after, forward)
    return pam.lengths[numbers]


def site_words(hits: SiteHits, pam_lengths: np.ndarray, pam: Pam, packed: np.ndarray) -> np.ndarray:
    """Return the bases of sites with their PAMs, from 5' to 3', packed.

    Returns
    -------
    words : ndarray, shape=(n, 2), dtype=uint64
        From `bwarp.sequence.pack`; unused bases are 0.
    """
    forward = hits.strands == 0
    pam_after = forward if pam.side == 3 else ~forward
    lefts = hits.starts - np.where(pam_after, 0, pam_lengths)
    codes = _codes(packed, lefts, SITE_BASES, forward, hits.lengths + pam_lengths)
    return pack(codes.reshape(-1))[: 2 * hits.count].reshape(-1, 2)


def _codes(
    packed: np.ndarray, starts: np.ndarray, n: int, forward: np.ndarray, lengths: np.ndarray
) -> np.ndarray:
    """Return codes on the strand of each site in rows of `n`, padded with 0."""
    codes = np.zeros((len(starts), n), np.uint8)
    _read_codes(packed, starts, forward, lengths, codes)
    return codes


@compiled
def _read_codes(packed, starts, forward, lengths, codes):
    two = np.uint64(2)
    for row in range(starts.size):
        # The bases not yet read of a word are in its highest bits.
        following = starts[row] >> 5
        word, left = np.uint64(0), 0
        for i in range(lengths[row]):
            if left == 0:
                skipped = starts[row] & 31 if i == 0 else 0
                word = packed[following] << np.uint64(2 * skipped)
                left = 32 - skipped
                following += 1
            code = np.uint8(word >> np.uint64(62))
            word <<= two
            left -= 1
            if forward[row]:
                codes[row, i] = code
            else:
                codes[row, lengths[row] - 1 - i] = 3 - code


class _Segments(NamedTuple):
    starts: np.ndarray
    stops: np.ndarray


class _AllowedBases(NamedTuple):
    """PAMs: `Pam.allowed` from the 5' end, padded with zeros at the 3' end, and their lengths."""

    allowed: np.ndarray
    lengths: np.ndarray


def _first_pams(reference, pam: Pam, starts, stops, pam_after, forward) -> tuple:
    """Return the index of the first PAM that matches at every site, and its codes."""
    segment_starts = reference.segment_genome.astype(np.int64)
    segment_stops = segment_starts + np.diff(reference.segment_text) - 1
    allowed = np.zeros_like(pam.allowed)
    for number, one in enumerate(pam.one_by_one()):
        allowed[number, : one.length] = one.allowed[0]
    numbers, codes = np.full(starts.size, -1), np.zeros((starts.size, pam.length), np.uint8)
    _match_pams(
        reference.packed, _Segments(segment_starts, segment_stops),
        _AllowedBases(allowed, pam.lengths), starts, stops, (pam_after, forward), numbers, codes,
    )  # fmt: skip
    return numbers, codes


@compiled
def _match_pams(packed, segments, pams, starts, stops, sides, numbers, codes):
    """Write the index of the first PAM that matches at every site, and its codes."""
    pam_after, forward = sides
    for row in range(starts.size):
        segment = interval_at(segments.starts, starts[row])
        room = starts[row] - segments.starts[segment]
        if pam_after[row]:
            room = segments.stops[segment] - stops[row]
        for number in range(pams.lengths.size):
            length = pams.lengths[number]
            if room < length:
                continue
            at = stops[row] if pam_after[row] else starts[row] - length
            fits = True
            for i in range(length):
                position = at + (i if forward[row] else length - 1 - i)
                word = packed[position >> 5]
                code = np.uint8(word >> np.uint64(62 - 2 * (position & 31)) & np.uint64(3))
                codes[row, i] = code if forward[row] else 3 - code
                fits &= pams.allowed[number, i] >> codes[row, i] & 1 != 0
            if fits:
                numbers[row] = number
                break
            codes[row, :length] = 0


@compiled
def _write_alignments(
    guide_numbers, gaps, guides, guide_lengths, sites, site_lengths, pam_is_last, text
):
    """Write every alignment from the PAM on, and reverse it if the PAM is at the 3' end."""
    guide_text, site_text, widths, seeds = text
    for row in range(guide_numbers.size):
        guide = guide_numbers[row]
        length, n_bases = guide_lengths[guide], site_lengths[row]
        left = np.int64(gaps[row])
        i = j = width = seed = 0
        while i < length:
            code = left >> 24
            if code == 2 * i:
                guide_text[row, width] = _GAP
                site_text[row, width] = _LETTERS[sites[row, n_bases - 1 - j if pam_is_last else j]]
                j += 1
                left = (left << 8 | 255) & 0xFFFFFFFF
            else:
                base = guides[guide, length - 1 - i if pam_is_last else i]
                guide_text[row, width] = _LETTERS[base]
                if code == 2 * i + 1:
                    site_text[row, width] = _GAP
                    left = (left << 8 | 255) & 0xFFFFFFFF
                else:
                    other = sites[row, n_bases - 1 - j if pam_is_last else j]
                    differ = other != base
                    site_text[row, width] = _LETTERS[other] + (_SMALL if differ else 0)
                    if differ and i < SEED_LENGTH:
                        seed += 1
                    j += 1
                i += 1
            width += 1
        widths[row] = width
        seeds[row] = seed
        if pam_is_last:
            for at in range(width // 2):
                end = width - 1 - at
                guide_text[row, at], guide_text[row, end] = (
                    guide_text[row, end],
                    guide_text[row, at],
                )
                site_text[row, at], site_text[row, end] = site_text[row, end], site_text[row, at]


# Features of a genome, from BED or GFF, and their overlaps with a stretch.


#: Attributes that name a feature of GFF or GTF, by priority.
_NAME_KEYS = ("Name", "gene_name", "gene", "ID", "gene_id")


class Features(NamedTuple):
    """Features by start, in positions of the genome.

    Attributes
    ----------
    starts, stops : ndarray, shape=(n,), dtype=int64
    reach : ndarray, shape=(n,), dtype=int64
        The largest stop of a feature and all before it.
    names : Names
    """

    starts: np.ndarray
    stops: np.ndarray
    reach: np.ndarray
    names: Names


def read_features(path: str | os.PathLike, reference: Reference) -> Features:
    """Read features from BED (with a name in the fourth column), GFF3 or GTF, plain or compressed.

    Features on contigs that the reference lacks are skipped.

    Raises
    ------
    InputError
        If a line is neither BED nor GFF, or no feature is on a contig of the reference.
    """
    contigs = {name: i for i, name in enumerate(reference.names)}
    starts, stops, names = [], [], []
    n_lines = 0
    text = b"".join(read_blocks(path)).decode("utf-8", "replace")
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("##FASTA"):
            break
        if not line.strip() or re.match(r"#|track\b|browser\b", line):
            continue
        contig, start, stop, name = _parsed(path, number, line.split("\t"))
        n_lines += 1
        if contig not in contigs:
            continue
        begin, end = reference.contig_starts[contigs[contig] : contigs[contig] + 2].tolist()
        starts.append(min(begin + start, end))
        stops.append(min(begin + stop, end))
        names.append(name)
    if n_lines and not names:
        raise InputError(
            f"{path}: no feature lies on a contig of the index: the first feature is on {contig}, "
            f"but the first contig is {reference.names[0]}"
        )
    return _features(starts, stops, names)


def _features(starts: list[int], stops: list[int], names: list[str]) -> Features:
    starts, stops = np.array(starts, np.int64), np.array(stops, np.int64)
    order = np.lexsort((stops, starts))
    stops = stops[order]
    named = Names.of([names[i] for i in order])
    reach = np.maximum.accumulate(stops) if stops.size else stops
    return Features(starts[order], stops, reach, Names(read_only(named.text), named.bounds))


def _parsed(path, number: int, cells: list[str]) -> tuple[str, int, int, str]:
    """Return contig, start, stop and name of a line; GFF has nine columns and is 1-based."""
    is_gff = len(cells) >= 8 and not (cells[1].isdigit() and cells[2].isdigit())
    at = 3 if is_gff else 1
    try:
        start, stop = int(cells[at]) - is_gff, int(cells[at + 1])
        if not 0 <= start <= stop:
            raise ValueError
    except (ValueError, IndexError):
        raise InputError(
            f"{path}, line {number}: neither BED nor GFF: columns {at + 1} and {at + 2} must be a "
            "start and an end"
        ) from None
    name = cells[3] if len(cells) > 3 else "."
    if is_gff:
        name = _gff_name(cells[8] if len(cells) > 8 else "") or cells[2]
    # Names are joined by ; .
    return cells[0], start, stop, name.replace(";", ",") or "."


def _gff_name(attributes: str) -> str | None:
    found = dict(re.findall(r'(\w+)[= ]"?([^";]+)"?', attributes))
    return next((found[key] for key in _NAME_KEYS if key in found), None)


@compiled
def overlapping(starts, stops, reach, first, last):
    """Return the range of features that may overlap a stretch; not all of them need to."""
    end = np.searchsorted(starts, last)
    begin = end
    while begin > 0 and reach[begin - 1] > first:
        begin -= 1
    return begin, end
