"""The columns of `--genomes`: the genomes with a site, and how it differs from the reference."""

from typing import NamedTuple

import numpy as np

from bwarp.offtargets.alternative_sites import Sought
from bwarp.offtargets.genome_sites import LIFTED, REFERENCE, UNLIFTED, position_numbers
from bwarp.offtargets.site_rows import SiteRows, reference_at
from bwarp.offtargets.variant_columns import decimals, effect_of

#: Columns that follow those of a search without genomes.
GENOME_COLUMNS = (
    "origin", "coordinates", "genomes", "genome_names", "frequency", "aligned", "pam_change",
    "reference_cfd", "reference_mit", "cfd_change", "mit_change", "effect", "lost",
)  # fmt: skip

#: Stands for the names of all genomes, and for the reference among the names of genomes.
ALL, THE_REFERENCE = "all", "reference"

_NONE = -1


class Compared(NamedTuple):
    """Sites compared with others in the same position.

    Attributes
    ----------
    lost : ndarray, shape=(n,), dtype=int64
        The genomes without a site of the guide in this position.
    reference_edits : ndarray, shape=(n,), dtype=int64
        The edits of the site of the reference in this position; -1 if there is none.
    """

    lost: np.ndarray
    reference_edits: np.ndarray


def compared(sites: np.ndarray, n_genomes: int) -> Compared:
    """Compare all sites of some guides."""
    numbers = position_numbers(sites)
    order = np.argsort(numbers, kind="stable")
    begins = np.flatnonzero(np.diff(numbers[order], prepend=-1))
    there = sites["genomes"]
    if begins.size:
        there = np.bitwise_or.reduceat(there[order], begins, axis=0)
    lost = n_genomes - np.bitwise_count(there).sum(axis=1, dtype=np.int64)
    edits = np.full(begins.size, _NONE)
    best = (sites["kind"] == REFERENCE) & (sites["rank"] == 0)
    edits[numbers[best]] = _edits(sites[best])
    edits = edits[numbers]
    # Sites without a position are not together.
    edits[sites["kind"] == UNLIFTED] = _NONE
    return Compared(lost[numbers], edits)


def genome_columns(
    rows: SiteRows,
    sites: np.ndarray,
    comparison: Compared,
    names: tuple[str, ...],
    owners: list[str],
    sought: Sought,
) -> list[str]:
    """Return the text of `GENOME_COLUMNS` for some sites.

    Parameters
    ----------
    rows : SiteRows
        The same sites; their contigs are numbers in `owners`.
    names : tuple of str
        The genomes.
    owners : list of str
        The genome of each contig.
    """
    genomes = _Genomes(names)
    bits = [row.tobytes() for row in sites["genomes"]]
    texts = [""] * sites.size
    aligned, lost = sites["aligned"].tolist(), comparison.lost.tolist()
    for row in np.flatnonzero(sites["kind"] == REFERENCE).tolist():
        effect = "loss" if lost[row] else ""
        texts[row] = (
            f"reference\t{THE_REFERENCE}\t{genomes[bits[row]]}\t{aligned[row]}\t\t\t\t\t\t{effect}"
            f"\t{lost[row]}"
        )
    others = np.flatnonzero(sites["kind"] != REFERENCE)
    there = _reference_there(sites[others], sought)
    is_lifted, contigs = (sites["kind"] == LIFTED).tolist(), rows.contigs.tolist()
    edits, before = _edits(sites).tolist(), comparison.reference_edits.tolist()
    for i, row in enumerate(others.tolist()):
        scores = (rows.cfd[row], rows.mit[row])
        first = (np.nan, np.nan) if np.isnan(scores[0]) else (there.cfd[i], there.mit[i])
        changes = [score - old for score, old in zip(scores, first, strict=True)]
        pam_change = effect = ""
        if is_lifted[row]:
            pam_change = "" if there.has_pam[i] or not sought.pam.length else "made"
            known = None if before[row] == _NONE else before[row]
            effect = effect_of(edits[row], changes[0], known)
        texts[row] = "\t".join([
            "alternative", owners[contigs[row]], genomes[bits[row]], "", pam_change,
            *map(decimals, first), *map(decimals, changes), effect, "",
        ])  # fmt: skip
    return texts


class _Genomes(dict):
    """The number, names and share of genomes, by their bits."""

    def __init__(self, names: tuple[str, ...]):
        self._names = names

    def __missing__(self, bits: bytes) -> str:
        flags = np.unpackbits(np.frombuffer(bits, np.uint8), bitorder="little")
        there = np.flatnonzero(flags).tolist()
        n = len(self._names)
        names = ALL if len(there) == n else ",".join(self._names[i] for i in there)
        self[bits] = text = f"{len(there)}\t{names}\t{decimals(len(there) / n)}"
        return text


def _edits(sites: np.ndarray) -> np.ndarray:
    return sites["mismatches"].astype(np.int64) + sites["dna_bulges"] + sites["rna_bulges"]


def _reference_there(sites: np.ndarray, sought: Sought):
    """Describe the reference at sites; there is nothing at sites without a position."""
    reference = sought.reference
    is_lifted = sites["kind"] == LIFTED
    begins = reference.contig_starts[np.where(is_lifted, sites["contig"], 0)]
    borders = np.where(is_lifted, begins + sites["border"], 0)
    there = reference_at(
        borders, sites["guide"], sites["strand"], sought.guides, sought.pam, reference
    )
    there.cfd[~is_lifted] = there.mit[~is_lifted] = np.nan
    return there
