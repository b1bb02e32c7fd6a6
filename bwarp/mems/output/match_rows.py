"""Lines of text, one a match, written by threads: what all formats have in common."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from bwarp.io.fastx import SequenceBatch
from bwarp.io.names import Names, query_names
from bwarp.mems.matches import Matches, take_matches
from bwarp.mems.packed_extension import segment_of
from bwarp.mems.query_text import REVERSE
from bwarp.reference import Reference
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.threads import for_each_range

__all__ = ["RANGE", "Named", "match_rows", "names_for", "row_of"]

#: Matches a thread takes on at a time.
RANGE = 1 << 15


class Named(NamedTuple):
    """Names and lengths that rows are written with: of queries, and of contigs.

    Attributes
    ----------
    queries, contigs : Names
    query_lengths : ndarray, shape=(n_queries,), dtype=int64
    strands : ndarray, dtype=int64
        Those that were searched.
    contig_starts : ndarray, shape=(n_contigs + 1,), dtype=int64
    """

    queries: Names
    contigs: Names
    query_lengths: np.ndarray
    strands: np.ndarray
    contig_starts: np.ndarray


def names_for(
    batch: SequenceBatch, reference: Reference, contigs: Names, strands: tuple[int, ...]
) -> Named:
    """Names for the matches of a batch of queries; `contigs` is what stands for each contig."""
    return Named(
        query_names(batch),
        contigs,
        np.diff(batch.offsets),
        np.array(strands),
        reference.contig_starts,
    )


def match_rows(
    write_rows: Callable, room: int, blocks: Iterator[Matches], named: Named, threads: int
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
    room += named.queries.longest + named.contigs.longest
    for matches in blocks:

        def write(first: int, last: int, matches=matches):
            lines = np.empty((last - first) * room, np.uint8)
            return lines[: write_rows(take_matches(matches, slice(first, last)), named, lines)]

        yield from for_each_range(write, matches.n, threads, smallest=RANGE)


@compiled
def row_of(matches, named, i):
    """Query, its start and length on the forward strand, whether the strand is the reverse one,
    contig and position in it."""
    query = np.int64(matches.queries[i])
    record = query // named.strands.size
    reverse = named.strands[query % named.strands.size] == REVERSE
    length = np.int64(matches.lengths[i])
    start = np.int64(matches.query_starts[i])
    if reverse:
        start = named.query_lengths[record] - start - length
    contig = np.int64(segment_of(named.contig_starts, np.uint64(matches.reference_starts[i])))
    position = np.int64(matches.reference_starts[i]) - named.contig_starts[contig]
    return record, start, length, reverse, contig, position
