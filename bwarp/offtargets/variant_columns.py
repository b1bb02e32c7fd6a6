"""The columns of `--variants`: the variants, frequencies and effects of sites, as text."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bwarp.offtargets.alternative_sites import (
    AlternativeSites,
    Sought,
    borders_of,
    farthest,
    pam_follows,
    with_pams,
)
from bwarp.offtargets.hits import SiteHits
from bwarp.offtargets.site_rows import pam_lengths_of, reference_at
from bwarp.reference import Reference, codes_between
from bwarp.runtime.compiled_code import compiled
from bwarp.variants.edits import LONGEST_EDIT, Edits
from bwarp.variants.files import Stretch
from bwarp.variants.populations import Populations

#: Columns that follow those of a search without variants.
VARIANT_COLUMNS = (
    "origin", "variants", "variant_ids", "phase", "frequency", "populations", "haplotypes",
    "pam_change", "reference_cfd", "reference_mit", "cfd_change", "mit_change", "effect", "lost",
)  # fmt: skip


class Allele(NamedTuple):
    """An ALT allele as in the file: its name, ID, frequency, and frequencies of populations."""

    name: str
    identifier: str
    frequency: float | None
    populations: dict[str, float]


class Alleles:
    """The alleles of a stretch, parsed when they are first needed."""

    def __init__(self, stretch: Stretch):
        self._stretch = stretch
        self._parsed: dict[int, Allele] = {}

    def __getitem__(self, edit: int) -> Allele:
        if edit not in self._parsed:
            edits = self._stretch.edits
            text = self._stretch.texts[edits.records[edit]].decode("utf-8", "replace")
            share = None
            if edits.counts[edit] >= 0:
                share = int(edits.counts[edit]) / count_of(edits.present[edits.ploidies[edit]])
            self._parsed[edit] = parsed_allele(text, int(edits.alleles[edit]), share)
        return self._parsed[edit]


def count_of(haplotypes: np.ndarray) -> int:
    """Return the number of haplotypes, which are bits."""
    return int(np.bitwise_count(haplotypes).sum())


def parsed_allele(text: str, number: int, share: float | None) -> Allele:
    """Parse an allele; without AF and AC/AN, its frequency is its share of the haplotypes."""
    contig, position, identifier, ref, alts, _, _, *info = text.split("\t")
    values: dict[str, float] = {}
    totals: dict[str, float] = {}
    for item in (info[0] if info else "").split(";"):
        key, _, value = item.partition("=")
        if not re.search(r"^A[FCN]([_-]|$)|_A[FCN]$", key):
            continue
        cells = value.split(",")
        try:
            if re.search(r"^AN|_AN$", key):
                totals[key] = float(cells[0])
            elif number <= len(cells):
                values[key] = float(cells[number - 1])
        except ValueError:
            continue
    frequency = values.get("AF")
    if frequency is None and totals.get("AN") and "AC" in values:
        frequency = values["AC"] / totals["AN"]
    if frequency is None:
        frequency = share
    populations = {
        re.sub("^AF[_-]|_AF$", "", key): value
        for key, value in values.items()
        if re.search("^AF[_-]|_AF$", key)
    }
    name = f"{contig}:{position}:{ref}:{alts.split(',')[number - 1]}"
    return Allele(name, identifier, frequency, populations)


class Keys(NamedTuple):
    """By guide, strand and border: haplotypes with the site, and edits that occur in it alone."""

    haplotypes: dict[tuple[int, int, int], np.ndarray]
    alone: dict[tuple[int, int, int], set[int]]


def keys_of(found: AlternativeSites, which: np.ndarray) -> Keys:
    """Sum up sites, each by its best alignment."""
    hits, origins = found.rows.hits, found.origins
    haplotypes: dict[tuple[int, int, int], np.ndarray] = {}
    alone: dict[tuple[int, int, int], set[int]] = {}
    for row in np.flatnonzero(which & (hits.ranks == 0)).tolist():
        key = (int(hits.guides[row]), int(hits.strands[row]), int(origins.borders[row]))
        carriers = origins.carriers[row]
        haplotypes[key] = haplotypes[key] | carriers if key in haplotypes else carriers
        first, last = origins.edits[row].tolist()
        if last - first == 1:
            alone.setdefault(key, set()).add(int(found.edits[first]))
    return Keys(haplotypes, alone)


def _by_population(populations: Populations, shares: np.ndarray) -> str:
    """Return the text of a share per population; NaN for populations without haplotypes."""
    return ";".join(
        f"{name}={share:g}"
        for name, share in zip(populations.names, shares.tolist(), strict=True)
        if not np.isnan(share)
    )


def _shares(populations: Populations, haplotypes: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Return the share of each population that is in `haplotypes`."""
    totals = populations.counts_of(present)
    return np.where(totals, populations.counts_of(haplotypes) / np.maximum(totals, 1), np.nan)


def _shares_of_alleles(
    populations: Populations, edits: Edits, entries: Sequence[int]
) -> np.ndarray:
    """Return the minimum frequency of some alleles in each population; NaN if one is unknown."""
    if (edits.counts[entries] < 0).any():
        return np.full(len(populations.names), np.nan)
    return np.min(
        [
            _shares(populations, edits.carriers[edit], edits.present[edits.ploidies[edit]])
            for edit in entries
        ],
        axis=0,
    )


def decimals(value: float | None) -> str:
    return "" if value is None or np.isnan(value) else f"{value:.6f}"


def _of_alleles(alleles: Sequence[Allele]) -> tuple[str, str, float | None, str]:
    """Return names, IDs, and the minimum frequencies, in total and by population."""
    known = [one.frequency for one in alleles if one.frequency is not None]
    shared = set.intersection(*(set(one.populations) for one in alleles)) if alleles else set()
    populations = ";".join(
        f"{key}={min(one.populations[key] for one in alleles):g}"
        for key in (alleles[0].populations if alleles else ())
        if key in shared
    )
    frequency = min(known) if alleles and len(known) == len(alleles) else None
    names = ",".join(one.name for one in alleles)
    return names, ",".join(one.identifier for one in alleles), frequency, populations


def alternative_columns(
    found: AlternativeSites,
    rows: np.ndarray,
    stretch: Stretch,
    reference_hits: dict[tuple[int, int, int], int],
    populations: Populations | None,
    sought: Sought,
) -> list[str]:
    """Return the text of `VARIANT_COLUMNS` for rows of alternative sites.

    Parameters
    ----------
    reference_hits : dict
        Edits of the sites of the reference by guide, strand and border.
    populations : Populations or None
        Those to count; None without genotypes.
    """
    alleles = Alleles(stretch)
    hits, origins = found.rows.hits, found.origins
    present = stretch.edits.present_at(origins.borders)
    there = reference_at(
        origins.borders[rows], hits.guides[rows], hits.strands[rows], sought.guides, sought.pam,
        sought.reference,
    )  # fmt: skip
    texts = []
    for i, row in enumerate(rows.tolist()):
        first, last = origins.edits[row].tolist()
        entries = found.edits[first:last].tolist()
        names, identifiers, frequency, by_population = _of_alleles([alleles[e] for e in entries])
        free = bool(origins.free[row])
        count = ""
        if populations is not None and populations.names:
            shares = (
                _shares_of_alleles(populations, stretch.edits, entries) if free
                else _shares(populations, origins.carriers[row], present[row])
            )  # fmt: skip
            by_population = _by_population(populations, shares)
        if populations is not None and not free:
            n_carriers = count_of(origins.carriers[row])
            count, frequency = str(n_carriers), n_carriers / count_of(present[row])
        scores = (found.rows.cfd[row], found.rows.mit[row])
        before = (there.cfd[i], there.mit[i])
        if np.isnan(scores[0]):
            before = (np.nan, np.nan)
        changes = [after - old for after, old in zip(scores, before, strict=True)]
        key = (int(hits.guides[row]), int(hits.strands[row]), int(origins.borders[row]))
        edits = int(hits.mismatches[row]) + int(hits.dna_bulges[row]) + int(hits.rna_bulges[row])
        texts.append("\t".join([
            "alternative", names, identifiers, "unphased" if free else "phased",
            decimals(frequency), by_population, count,
            "" if there.has_pam[i] or not sought.pam.length else "made",
            *map(decimals, before), *map(decimals, changes),
            effect_of(edits, changes[0], reference_hits.get(key)), "",
        ]))  # fmt: skip
    return texts


def effect_of(edits: int, change: float, before: int | None) -> str:
    """Return whether a site is better or worse for the guide than that of the reference."""
    if before is None or edits < before:
        return "gain"
    if edits > before:
        return "loss"
    if np.isnan(change) or change == 0:
        return "equal"
    return "gain" if change > 0 else "loss"


class Touched(NamedTuple):
    """Edits in sites of the reference: those of site i are ``edits[firsts[i]:firsts[i + 1]]``.

    `intact` has the haplotypes without any phased edit in the bases that decide about a site.
    """

    firsts: np.ndarray
    edits: np.ndarray
    intact: np.ndarray


def touched_sites(hits: SiteHits, edits: Edits, sought: Sought) -> Touched:
    """Find the edits that occur in sites of the reference, including their PAMs."""
    pams = pam_lengths_of(hits, sought.pam, sought.reference)
    ends = hits.starts + hits.lengths
    sites = with_pams(hits.starts, ends, pams, hits, sought)
    far = farthest(hits.starts, ends, hits, sought)
    occurs = edits.free | (edits.carriers != 0).any(axis=1)
    counts = np.zeros(hits.count + 1, np.int64)
    intact = edits.present_at(borders_of(hits, sought))
    spans = (edits.starts, edits.stops, occurs)
    _without_edits(far, spans, edits.free, edits.carriers, intact)
    _count_touched(sites, spans, counts)
    firsts = np.cumsum(counts)
    listed = np.empty(firsts[-1], np.int64)
    _list_touched(sites, spans, firsts, listed)
    return Touched(firsts, listed, intact)


@compiled
def _is_in(left, right, start, stop):
    """Return whether an edit changes the bases from `left` to `right`."""
    return start < right and stop > left


@compiled
def _without_edits(sites, spans, free, carriers, intact):
    """Leave only the haplotypes without any phased edit in each site."""
    lefts, rights = sites
    starts, stops, _ = spans
    for row in range(lefts.size):
        edit = np.searchsorted(starts, lefts[row] - LONGEST_EDIT)
        while edit < starts.size and starts[edit] < rights[row]:
            if not free[edit] and _is_in(lefts[row], rights[row], starts[edit], stops[edit]):
                for word in range(intact.shape[1]):
                    intact[row, word] &= ~carriers[edit, word]
            edit += 1


@compiled
def _count_touched(sites, spans, counts):
    """Add the number of edits in site i to ``counts[i + 1]``."""
    lefts, rights = sites
    starts, stops, occurs = spans
    for row in range(lefts.size):
        edit = np.searchsorted(starts, lefts[row] - LONGEST_EDIT)
        while edit < starts.size and starts[edit] < rights[row]:
            if occurs[edit] and _is_in(lefts[row], rights[row], starts[edit], stops[edit]):
                counts[row + 1] += 1
            edit += 1


@compiled
def _list_touched(sites, spans, firsts, listed):
    lefts, rights = sites
    starts, stops, occurs = spans
    for row in range(lefts.size):
        at = firsts[row]
        edit = np.searchsorted(starts, lefts[row] - LONGEST_EDIT)
        while edit < starts.size and starts[edit] < rights[row]:
            if occurs[edit] and _is_in(lefts[row], rights[row], starts[edit], stops[edit]):
                listed[at] = edit
                at += 1
            edit += 1


def unchanged_columns(
    populations: Populations | None = None, present: np.ndarray | None = None
) -> str:
    """Return the text of `VARIANT_COLUMNS` for a site of the reference without variants.

    Without genotypes, there are no haplotypes.
    """
    cells = ["", "", "", ""]
    if populations is not None and present is not None:
        by_population = _by_population(populations, _shares(populations, present, present))
        cells = ["1.000000", by_population, str(count_of(present)), "0"]
    frequency, by_population, count, lost = cells
    return "\t".join(["reference", *[""] * 3, frequency, by_population, count, *[""] * 6, lost])


def reference_columns(
    hits: SiteHits,
    touched: Touched,
    stretch: Stretch,
    keys: tuple[Keys, Keys],
    populations: Populations | None,
    sought: Sought,
) -> list[str | None]:
    """Return the text of `VARIANT_COLUMNS` for sites of the reference; None without variants.

    Parameters
    ----------
    keys : tuple of Keys
        Of alternative sites, and of sites in windows with the bases of the reference.
    populations : Populations or None
        Those to count; None without genotypes.
    """
    alleles = Alleles(stretch)
    different, same = keys
    after = pam_follows(hits.strands, sought.pam.side)
    borders = borders_of(hits, sought)
    present = stretch.edits.present_at(borders)
    nobody = np.zeros(present.shape[1], np.uint64)
    texts: list[str | None] = [None] * hits.count
    for row in np.flatnonzero(np.diff(touched.firsts)).tolist():
        entries = touched.edits[touched.firsts[row] : touched.firsts[row + 1]].tolist()
        its = [alleles[e] for e in entries]
        names, identifiers, _, _ = _of_alleles(its)
        free = bool(stretch.edits.free[entries].any())
        key = (int(hits.guides[row]), int(hits.strands[row]), int(borders[row]))
        kept = different.alone.get(key, set()) | same.alone.get(key, set())
        is_lost = any(e not in kept for e in entries if stretch.edits.free[e])
        by_population = count = lost = ""
        most = max((one.frequency for one in its if one.frequency is not None), default=None)
        frequency = "" if most is None else decimals(1 - most)
        if populations is not None and not free:
            intact = touched.intact[row] | same.haplotypes.get(key, nobody)
            n_intact = count_of(intact)
            n_lost = count_of(present[row] & ~intact & ~different.haplotypes.get(key, nobody))
            frequency = decimals(n_intact / count_of(present[row]))
            count, lost = str(n_intact), str(n_lost)
            by_population = _by_population(populations, _shares(populations, intact, present[row]))
            is_lost = n_lost > 0
        without_pam = any(
            _loses_pam(stretch.edits, e, key[2], bool(after[row]), sought) for e in entries
        )
        texts[row] = "\t".join([
            "reference", names, identifiers, "unphased" if free else "phased", frequency,
            by_population, count, "lost" if without_pam else "", *[""] * 4,
            "loss" if is_lost else "", lost,
        ])  # fmt: skip
    return texts


def _loses_pam(edits: Edits, edit: int, border: int, follows: bool, sought: Sought) -> bool:
    """Return whether a site of the reference has no PAM if it has only this edit."""
    length = sought.pam.length
    start, stop = int(edits.starts[edit]), int(edits.stops[edit])
    if (follows and stop <= border) or (not follows and start >= border) or not length:
        return False
    bases = edits.bases[edits.bounds[edit, 0] : edits.bounds[edit, 1]]
    reference = sought.reference
    contig = int(reference.contig_of(np.array([max(border - 1, 0)]))[0])
    begin, end = reference.contig_starts[contig : contig + 2].tolist()
    if follows:
        left = _bases(reference, border, max(start, border), end)
        text = np.concatenate([left, bases, _bases(reference, stop, stop + length, end)])
    else:
        right = _bases(reference, min(stop, border), border, end)
        text = np.concatenate([_bases(reference, max(start - length, begin), start, end), bases])
        text = np.concatenate([text, right])
    forward = follows == (sought.pam.side == 3)
    if not forward:
        text = np.where(text < 4, 3 - text, 4)[::-1]
    for one in sought.pam.one_by_one():
        there = text[: one.length] if sought.pam.side == 3 else text[text.size - one.length :]
        if there.size == one.length and (one.allowed >> there & 1).all() and (there < 4).all():
            return False
    return True


def _bases(reference: Reference, start: int, stop: int, end: int) -> np.ndarray:
    return codes_between(reference, min(start, end), min(stop, end))
