"""What a scan compares, gathered from files or from memory, and refused where it cannot be."""

import os
from collections.abc import Iterable, Iterator

import numpy as np

from bwarp.composition.histogram import LONGEST_QUERY, count_bases
from bwarp.composition.references import References, gather_references
from bwarp.composition.scan import LONGEST_REFERENCES
from bwarp.errors import InputError
from bwarp.io.fastx import SequenceBatch
from bwarp.io.fastx_text import not_fasta_error
from bwarp.io.names import refuse_nameless

__all__ = ["scan_queries", "scan_references"]


def scan_references(where: str | os.PathLike, batches: Iterable[SequenceBatch]) -> References:
    """The references of a scan; errors name `where` they are from."""
    references = gather_references(_fasta(where, batches))
    if references.codes.size > LONGEST_REFERENCES:
        raise InputError(
            f"{where}: {references.codes.size:,} bases are more than the {LONGEST_REFERENCES:,} "
            "that one scan can hold: split the file"
        )
    refuse_nameless(where, references.names)
    return references


def _fasta(where: str | os.PathLike, batches: Iterable[SequenceBatch]) -> Iterator[SequenceBatch]:
    for batch in batches:
        if batch.qualities is not None:
            raise not_fasta_error(f"{where}: ")
        yield batch


def scan_queries(
    where: str | os.PathLike, batches: Iterable[SequenceBatch]
) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Names, lengths (int64) and base counts (uint16[n, 4]) of queries, whose bases go."""
    names: list[str] = []
    lengths = [np.zeros(0, np.int64)]
    counts = [np.zeros((0, 4), np.uint16)]
    for batch in batches:
        lengths.append(np.diff(batch.offsets))
        if lengths[-1].max() > LONGEST_QUERY:
            longest = int(lengths[-1].argmax())
            raise InputError(
                f"{where}: query {batch.name(longest)!r} has {lengths[-1][longest]:,} bases; "
                f"{LONGEST_QUERY:,} is the most"
            )
        names += batch.names()
        counts.append(count_bases(batch.codes, batch.offsets))
    refuse_nameless(where, names)
    return names, np.concatenate(lengths), np.concatenate(counts)
