"""Hits as rows for people: alignments as text, PAMs, cuts and scores.

Alignments and PAMs are read from 5' to 3' on the site's strand, as guides are written. In a site a
small letter is a mismatch; ``-`` is a bulge's base that the other one has.
"""

from dataclasses import dataclass

import numpy as np

from bwarp.offtargets.guides import Guides
from bwarp.offtargets.hits import SiteHits
from bwarp.offtargets.pam import Pam
from bwarp.offtargets.scores.cas9 import SCORED_LENGTH, cfd_scores, has_scores, mit_scores
from bwarp.offtargets.sites.alignments import BULGES_EACH, LONGEST_GUIDE
from bwarp.reference import Reference
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.timeline import on_timeline

__all__ = ["NO_CUT", "SEED_LENGTH", "SiteRows", "describe"]

#: Bases next to the PAM in which mismatches are also counted by themselves.
SEED_LENGTH = 12

NO_CUT = -1

#: Bases between the PAM and the cut of its strand: Cas9, and Cas12a with its PAM at the 5' end.
_CUT_FROM_PAM = {3: 3, 5: 18}

_WIDEST = LONGEST_GUIDE + BULGES_EACH
_SMALL, _GAP = 32, ord("-")
_LETTERS = np.frombuffer(b"ACGT", np.uint8)


@dataclass(frozen=True)
class SiteRows:
    """What is written of hits, in their order.

    Attributes
    ----------
    hits : SiteHits
    contigs, starts, ends, cuts : ndarray, shape=(n,), dtype=int64
        Within the contig; the cut is before that base, or `NO_CUT`.
    guide_text, site_text : ndarray, shape=(n, 42), dtype=uint8
        As aligned, as far as `widths` (dtype int64).
    pam_numbers : ndarray, shape=(n,), dtype=int64
        Which of the PAMs asked for it is, the first that it may be.
    pams : ndarray, shape=(n, length of the longest PAM), dtype=uint8
        As text, as far as `pam_lengths` (dtype int64).
    seed_mismatches : ndarray, shape=(n,), dtype=uint8
    cfd, mit : ndarray, shape=(n,), dtype=float64
        NaN for no score.
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
    """Read the sites of hits out of the genome, and align and score them."""
    n = hits.count
    lengths = hits.lengths.astype(np.int64)
    stops = hits.starts + lengths
    forward = hits.strands == 0
    # Where the protospacer's 5' and the PAM lie, on the site's strand.
    pam_after = forward if pam.side == 3 else ~forward
    pam_numbers, pam_codes = _first_pams(reference, pam, hits.starts, stops, pam_after, forward)
    sites = _codes(reference.packed, hits.starts, int(lengths.max(initial=0)), forward, lengths)
    guide_codes = guides.codes
    guide_text = np.empty((n, _WIDEST), np.uint8)
    site_text = np.empty((n, _WIDEST), np.uint8)
    widths = np.empty(n, np.int64)
    seeds = np.empty(n, np.uint8)
    _write_alignments(
        hits.guides, hits.gaps, guide_codes, guides.lengths, sites, lengths, pam.side == 3,
        _LETTERS, guide_text, site_text, widths, seeds,
    )  # fmt: skip
    cfd, mit = np.full(n, np.nan), np.full(n, np.nan)
    scored = has_scores(guides, pam)[hits.guides] & (hits.gaps == np.uint32(0xFFFFFFFF))
    if scored.any():
        its_guides = guide_codes[hits.guides[scored], :SCORED_LENGTH]
        its_sites, its_pams = sites[scored, :SCORED_LENGTH], pam_codes[scored]
        cfd[scored] = cfd_scores(its_guides, its_sites, its_pams)
        mit[scored] = mit_scores(its_guides, its_sites, its_pams)
    contigs = reference.contig_of(hits.starts)
    begins = reference.contig_starts[contigs]
    cuts = np.full(n, NO_CUT, np.int64)
    if pam.length:
        far = _CUT_FROM_PAM[pam.side]
        cuts = np.where(pam_after, stops - far, hits.starts + far) - begins
    return SiteRows(
        hits=hits,
        contigs=contigs,
        starts=hits.starts - begins,
        ends=stops - begins,
        cuts=cuts,
        guide_text=guide_text,
        site_text=site_text,
        widths=widths,
        pam_numbers=pam_numbers,
        pams=_LETTERS[pam_codes],
        pam_lengths=pam.lengths[pam_numbers],
        seed_mismatches=seeds,
        cfd=cfd,
        mit=mit,
    )


def _codes(
    packed: np.ndarray, starts: np.ndarray, n: int, forward: np.ndarray, lengths: np.ndarray
) -> np.ndarray:
    """The codes of so many bases, on the strand of each; what follows in its row, of `n`, is 0."""
    codes = np.zeros((len(starts), n), np.uint8)
    _read_codes(packed, starts, forward, lengths, codes)
    return codes


@compiled
def _read_codes(packed, starts, forward, lengths, codes):
    for row in range(starts.size):
        last = lengths[row] - 1
        for i in range(lengths[row]):
            position = starts[row] + (i if forward[row] else last - i)
            word = packed[position >> 5]
            code = np.uint8(word >> np.uint64(62 - 2 * (position & 31)) & np.uint64(3))
            codes[row, i] = code if forward[row] else 3 - code


def _first_pams(reference, pam: Pam, starts, stops, pam_after, forward) -> tuple:
    """The number of the first PAM that stands at every site, and its codes."""
    segment_starts = reference.segment_genome.astype(np.int64)
    segment_stops = segment_starts + np.diff(reference.segment_text) - 1
    segment = np.searchsorted(segment_starts, starts, side="right") - 1
    room = np.where(pam_after, segment_stops[segment] - stops, starts - segment_starts[segment])
    numbers, codes = np.full(starts.size, -1), np.zeros((starts.size, pam.length), np.uint8)
    for number, one in enumerate(pam.one_by_one()):
        rows = np.flatnonzero((numbers < 0) & (room >= one.length))
        at = np.where(pam_after[rows], stops[rows], starts[rows] - one.length)
        lengths = np.full(rows.size, one.length)
        bases = _codes(reference.packed, at, one.length, forward[rows], lengths)
        fits = (one.allowed >> bases & 1).all(axis=1)
        numbers[rows[fits]], codes[rows[fits], : one.length] = number, bases[fits]
    return numbers, codes


@compiled
def _write_alignments(
    guide_numbers, gaps, guides, guide_lengths, sites, site_lengths, pam_is_last, letters,
    guide_text, site_text, widths, seeds,
):  # fmt: skip
    """Write every alignment from the PAM on, and turn it where the PAM is at the 3' end."""
    for row in range(guide_numbers.size):
        guide = guide_numbers[row]
        length, n_bases = guide_lengths[guide], site_lengths[row]
        left = np.int64(gaps[row])
        i = j = width = seed = 0
        while i < length:
            code = left >> 24
            if code == 2 * i:
                guide_text[row, width] = _GAP
                site_text[row, width] = letters[sites[row, n_bases - 1 - j if pam_is_last else j]]
                j += 1
                left = (left << 8 | 255) & 0xFFFFFFFF
            else:
                base = guides[guide, length - 1 - i if pam_is_last else i]
                guide_text[row, width] = letters[base]
                if code == 2 * i + 1:
                    site_text[row, width] = _GAP
                    left = (left << 8 | 255) & 0xFFFFFFFF
                else:
                    other = sites[row, n_bases - 1 - j if pam_is_last else j]
                    differ = other != base
                    site_text[row, width] = letters[other] + (_SMALL if differ else 0)
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
