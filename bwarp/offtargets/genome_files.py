"""Read the genomes to search besides the reference, with their alignments to it."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from bwarp.counted import counted
from bwarp.errors import UsageError
from bwarp.index.store import load_index
from bwarp.offtargets.genome_alignments import read_alignments
from bwarp.offtargets.genome_columns import ALL, THE_REFERENCE
from bwarp.offtargets.genome_sites import Genome
from bwarp.reference import Reference, read_reference
from bwarp.runtime.chunks import read_ahead

Paths = Sequence[str | os.PathLike]

_ENDINGS = re.compile(r"\.index$|(\.(fa|fasta|fna))?(\.(gz|bgz|bz2|xz|zst))?$")


def genome_names(genomes: Paths, alignments: Paths) -> tuple[str, ...]:
    """Return the name of each genome: that of its file, without its ending.

    Raises
    ------
    UsageError
        If the names are not different, or the alignments are not as many as the genomes.
    """
    if alignments and len(alignments) != len(genomes):
        raise UsageError(
            f"there are alignments of {counted(len(alignments), 'genome')}, but "
            f"{counted(len(genomes), 'genome')}: give a file for each genome, in the same order"
        )
    names = tuple(_ENDINGS.sub("", Path(genome).name, count=1) for genome in genomes)
    for number, name in enumerate(names):
        if name in names[:number] or name in ("", ALL, THE_REFERENCE) or re.search(r"[,\s]", name):
            raise UsageError(
                f"{genomes[number]}: the genome would be named {name!r}: rename the "
                "file, so that names of genomes differ, have no commas or blanks, and are not "
                f"empty, {ALL} or {THE_REFERENCE}"
            )
    return names


def read_genomes(
    genomes: Paths, alignments: Paths, reference: Reference, threads: int = 1
) -> Iterator[Genome]:
    """Yield genomes, each an index or a FASTA file; read the next while the caller searches."""
    return read_ahead(_genomes(genomes, alignments, reference, threads), most=1)


def _genomes(
    genomes: Paths, alignments: Paths, reference: Reference, threads: int
) -> Iterator[Genome]:
    first_contig = len(reference.names)
    for number, path in enumerate(genomes):
        if os.path.isdir(path):
            bases = load_index(path).reference
            _ = bases.packed  # which is read on first use
        else:
            bases = read_reference(path, threads)
        aligned = read_alignments(alignments[number], bases, reference) if alignments else None
        yield Genome(number, first_contig, bases, aligned)
        first_contig += len(bases.names)
