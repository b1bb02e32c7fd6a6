"""Features of a genome, from BED or GFF, and those that overlap a stretch."""

import os
import re
from typing import NamedTuple

import numpy as np

from bwarp.errors import InputError
from bwarp.io.file_blocks import read_blocks
from bwarp.io.names import Names
from bwarp.reference import Reference
from bwarp.runtime.compiled_code import compiled, read_only

__all__ = ["Features", "overlapping", "read_features"]

#: What a feature of GFF or GTF is called by, the first that it has.
_NAME_KEYS = ("Name", "gene_name", "gene", "ID", "gene_id")


class Features(NamedTuple):
    """Features by start, in positions of the genome.

    Attributes
    ----------
    starts, stops : ndarray, shape=(n,), dtype=int64
    reach : ndarray, shape=(n,), dtype=int64
        The largest stop of a feature and those before it.
    names : Names
    """

    starts: np.ndarray
    stops: np.ndarray
    reach: np.ndarray
    names: Names


def read_features(path: str | os.PathLike, reference: Reference) -> Features:
    """Features from BED (a name in the fourth column), GFF3 or GTF, plain or compressed.

    Features on contigs that the reference lacks are left out.

    Raises
    ------
    InputError
        For a line that is neither BED nor GFF, and where no feature is on a contig of the
        reference.
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
            f"{path}: no feature lies on a contig of the index: its first is on {contig}, and the "
            f"index has {reference.names[0]}"
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
    """Contig, start, stop and name of a line; GFF has nine columns and counts from 1."""
    is_gff = len(cells) >= 8 and not (cells[1].isdigit() and cells[2].isdigit())
    at = 3 if is_gff else 1
    try:
        start, stop = int(cells[at]) - is_gff, int(cells[at + 1])
        if not 0 <= start <= stop:
            raise ValueError
    except (ValueError, IndexError):
        raise InputError(
            f"{path}, line {number}: is neither BED nor GFF: columns {at + 1} and {at + 2} must be "
            "a start and an end"
        ) from None
    name = cells[3] if len(cells) > 3 else "."
    if is_gff:
        name = _gff_name(cells[8] if len(cells) > 8 else "") or cells[2]
    # Names stand one after another with ; between.
    return cells[0], start, stop, name.replace(";", ",") or "."


def _gff_name(attributes: str) -> str | None:
    found = dict(re.findall(r'(\w+)[= ]"?([^";]+)"?', attributes))
    return next((found[key] for key in _NAME_KEYS if key in found), None)


@compiled
def overlapping(starts, stops, reach, first, last):
    """From which feature to which those may lie that overlap a stretch; not all of them do."""
    end = np.searchsorted(starts, last)
    begin = end
    while begin > 0 and reach[begin - 1] > first:
        begin -= 1
    return begin, end
