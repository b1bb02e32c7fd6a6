"""Lines of text, one a match, written by threads: what a table and PAF have in common."""

from collections.abc import Callable, Iterator

import numpy as np

from bwarp.io.fastx import SequenceBatch
from bwarp.mems.matches import Matches
from bwarp.mems.output.labels import Labels, query_names
from bwarp.reference import Reference
from bwarp.runtime.threads import for_each_range

__all__ = ["RANGE", "match_rows"]

#: Matches a thread takes on at a time.
RANGE = 1 << 15


def match_rows(
    write_rows: Callable,
    room: int,
    blocks: Iterator[Matches],
    batch: SequenceBatch,
    reference: Reference,
    contigs: Labels,
    strands: tuple[int, ...],
    threads: int,
) -> Iterator[np.ndarray]:
    """The lines of a batch's matches, in order.

    Parameters
    ----------
    write_rows : function
        Writes the lines of some matches into its last argument, and returns how many bytes.
    room : int
        The most bytes of a line beside the names of its query and contig.

    Yields
    ------
    lines : ndarray, dtype=uint8
        To be written one after the other.
    """
    names = query_names(batch)
    query_lengths = np.diff(batch.offsets)
    room += names.longest + contigs.longest
    for matches in blocks:

        def write(first: int, last: int, matches=matches):
            lines = np.empty((last - first) * room, np.uint8)
            used = write_rows(
                matches.queries[first:last],
                matches.query_starts[first:last],
                matches.reference_starts[first:last],
                matches.lengths[first:last],
                names.text,
                names.edges,
                query_lengths,
                np.array(strands),
                contigs.text,
                contigs.edges,
                reference.contig_starts,
                lines,
            )
            return lines[:used]

        yield from for_each_range(write, len(matches), threads, smallest=RANGE)
