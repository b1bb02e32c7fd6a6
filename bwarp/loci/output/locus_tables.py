"""The tables of a search for loci: the loci, and two siblings.

    OUT.tsv           the loci, or OUT.paf, either also .gz
    OUT.over.tsv      reads with more loci than the limit, or proper pairs, and how many they have
    OUT.skipped.tsv   reads that were not searched, and why

All appear when all are complete.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from bwarp.errors import UsageError
from bwarp.io.atomic_output import atomic_files
from bwarp.io.names import Names
from bwarp.loci.find import FoundChunk
from bwarp.loci.output.locus_text import PAF, TSV, loci_header, locus_lines
from bwarp.reference import Reference
from bwarp.seeding.output.seed_tables import sibling

__all__ = [
    "FORMATS",
    "SIBLINGS",
    "SIBLING_HEADERS",
    "format_of",
    "open_tables",
    "over_lines",
    "skipped_lines",
]

FORMATS = ("tsv", "tsv.gz", "paf", "paf.gz", "bam")

SIBLINGS = ("over", "skipped")
SIBLING_HEADERS = (b"query\tloci\n", b"query\treason\n")


def format_of(path: str | os.PathLike) -> str:
    """``tsv``, ``paf`` or ``bam``, by the ending of a file's name; standard output is TSV."""
    if str(path) == "-":
        return "tsv"
    name = Path(path).name
    for ending in FORMATS:
        if name.endswith("." + ending):
            return ending.removesuffix(".gz")
    raise UsageError(f"{path}: name the output .bam, .tsv or .paf (.tsv.gz and .paf.gz too)")


def over_lines(found: FoundChunk) -> bytes:
    names = [_name(found, read) for read in found.over]
    counts = found.n_loci[found.over].tolist()
    return b"".join(b"%b\t%d\n" % pair for pair in zip(names, counts, strict=True))


def skipped_lines(found: FoundChunk) -> bytes:
    reads = np.flatnonzero(found.loci.searched < 0)
    return b"".join(b"%b\tno longer than the edits allowed\n" % _name(found, i) for i in reads)


def _name(found: FoundChunk, read: int) -> bytes:
    chunk = found.chunk
    start, stop = chunk.names[read // chunk.ends]
    end = b"/%d" % (read % 2 + 1) if chunk.ends == 2 else b""
    return chunk.text[start:stop].tobytes() + end


@contextmanager
def open_tables(
    path: str | os.PathLike, reference: Reference, paired: bool = False, scored: bool = False
) -> Iterator[tuple[Callable, Callable]]:
    """What makes text of a chunk, and what writes the text: chunks in their order.

    Standard output (``-``) has no siblings.
    """
    contigs = Names.of(reference.names)
    layout = PAF if format_of(path) == "paf" else TSV
    siblings = [] if str(path) == "-" else [sibling(path, kind) for kind in SIBLINGS]
    with atomic_files([*siblings, path]) as (*others, file):
        for other, header in zip(others, SIBLING_HEADERS, strict=False):
            other.write(header)
        if layout == TSV:
            file.write(loci_header(scored, paired))

        def encode(found: FoundChunk) -> list:
            text = locus_lines(
                layout, found.chunk, reference.contig_starts, contigs, found.loci,
                found.alignments, found.pairs, scored,
            )  # fmt: skip
            return [over_lines(found), skipped_lines(found), text]

        def write(texts: list) -> None:
            for to, text in zip([*others, file], texts[-1 - len(others) :], strict=True):
                to.write(text)

        yield encode, write
