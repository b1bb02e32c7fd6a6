"""Read regions of a genome from BED."""

import os
import re

from bwarp.counted import counted
from bwarp.errors import InputError
from bwarp.io.compressed_files import read_blocks
from bwarp.reference import Reference


def read_regions(path: str | os.PathLike, reference: Reference) -> list[tuple[int, int]]:
    """Return the regions in a BED file as positions of the genome.

    Raises
    ------
    InputError
        If a line is not BED, or the reference lacks its contig or bases.
    """
    contigs = {name: i for i, name in enumerate(reference.names)}
    regions = []
    text = b"".join(read_blocks(path)).decode("utf-8", "replace")
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or re.match(r"#|track\b|browser\b", line):
            continue
        cells = line.split("\t")
        if len(cells) < 3 or not all(re.fullmatch("[0-9]{1,18}", cell) for cell in cells[1:3]):
            raise InputError(
                f"{path}, line {number}: not BED: write contig, start and end, separated by tabs"
            )
        name, start, stop = cells[0], int(cells[1]), int(cells[2])
        if name not in contigs:
            raise InputError(
                f"{path}, line {number}: no contig {name} in the reference: its first contig is "
                f"{reference.names[0]}"
            )
        begin, end = reference.contig_starts[contigs[name] : contigs[name] + 2].tolist()
        if not start < stop <= end - begin:
            raise InputError(
                f"{path}, line {number}: {name} has {counted(end - begin, 'base')}: the start must "
                f"be less than the end, and the end at most {end - begin:,}"
            )
        regions.append((begin + start, begin + stop))
    if not regions:
        raise InputError(f"{path}: no regions: write contig, start and end, separated by tabs")
    return regions
