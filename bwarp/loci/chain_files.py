"""What the programs of the chain hand on, a file a step, for a batch of reads and a round.

    batch_reads          reads         bases, qualities and names
    seed_reads           seeds         parts; of every hit a sampled SA row and the steps to it
    locate_seeds         hits          their positions instead
    filter_candidates    candidates    those hits that may have a locus
    extend_candidates    loci

    estimate_allmap_insert_size   a text, JSON: one for all batches of pairs

Behind the reads there is, for each chunk of them, a frame `searched`: which reads the round
searches, with how many edits, and with how many mismatches their parts. Frames of some items'
hits follow, as many as are worked on at a time, and in the end their loci instead. What was counted
(`COUNTS`) is carried on. The limits of the search and the index stand in the first line.
"""

from collections.abc import Iterator
from dataclasses import asdict
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from bwarp.errors import InputError, UsageError
from bwarp.io.chunk_files import ChunkFileReader
from bwarp.loci.options import ALL, LocusOptions
from bwarp.loci.rounds import FoundRound
from bwarp.loci.searching.parts import Items, PartHits, items_of
from bwarp.loci.verifying.loci_cpu import COUNTS
from bwarp.loci.verifying.read_blocks import blocks_of
from bwarp.mapping.extension.extension_cpu import both_strands
from bwarp.mapping.reads.read_chunks import ReadChunk
from bwarp.mapping.reads.stored_reads import chunk_tag, stored_reads

__all__ = [
    "Frame",
    "SearchedChunk",
    "check_all_loci",
    "found_rounds",
    "frame_of_hits",
    "frame_of_loci",
    "frame_of_searched",
    "hits_of_frame",
    "options_of_file",
    "searched_chunks",
    "stored_options",
]

#: A part of a chunk file: its kind and its arrays.
Frame = tuple[str, dict[str, np.ndarray]]


class SearchedChunk(NamedTuple):
    """A chunk of reads, and what a round searches of it.

    Attributes
    ----------
    reads : ndarray, dtype=int64
        The numbers of those that are searched.
    blocks : ndarray, dtype=uint64
        All reads on both strands.
    items : Items
        Of those that are searched.
    """

    reads: np.ndarray
    blocks: np.ndarray
    items: Items


def stored_options(options: LocusOptions) -> dict:
    """The limits of a search for the first line of a file; the filter is a step of its own."""
    return {name: value for name, value in asdict(options).items() if name != "use_filter"}


def options_of_file(reader: ChunkFileReader) -> LocusOptions:
    """The limits of the search that a file is from."""
    try:
        return LocusOptions(**reader.holds["options"])
    except (KeyError, TypeError):
        raise InputError(
            f"{reader.path}: was written by another version of bwarp: make it again"
        ) from None


def check_all_loci(reader: ChunkFileReader) -> None:
    """Refuse, for pairs, the loci of a search for those near the best of each end."""
    if options_of_file(reader).strata != ALL:
        raise UsageError(
            f"--loci {reader.path}: proper pairs may have any locus of their ends: use "
            "seed_reads.py --report all"
        )


def frame_of_searched(
    chunk: ReadChunk, reads: np.ndarray, edits: np.ndarray, mismatches: np.ndarray
) -> Frame:
    """Which reads of a chunk a round searches, and how."""
    arrays = {"chunk": chunk_tag(chunk), "reads": reads, "edits": edits, "mismatches": mismatches}
    return "searched", arrays


def frame_of_hits(first: int, hits: PartHits, counts: np.ndarray, **of_hits: np.ndarray) -> Frame:
    """The hits of items from `first` on: their positions, or how to come to these."""
    return "hits", {"first": np.array([first]), "counts": counts, **hits._asdict(), **of_hits}


def hits_of_frame(arrays: dict[str, np.ndarray]) -> tuple[int, PartHits, np.ndarray]:
    """The first item of a frame of hits, its parts, and its counts."""
    hits = PartHits(*(arrays[name] for name in PartHits._fields))
    return int(arrays["first"][0]), hits, arrays["counts"]


def frame_of_loci(rows: np.ndarray, counts: np.ndarray) -> Frame:
    """Loci: rows of item (2 i and 2 i + 1 for read i of the chunk), start, end and distance."""
    return "loci", {"rows": rows, "counts": counts}


def searched_chunks(
    reads: ChunkFileReader, reader: ChunkFileReader, options: LocusOptions
) -> Iterator[tuple[SearchedChunk, Frame]]:
    """The frames of a file, each with the chunk of reads that it is of."""
    chunks = stored_reads(reads)
    searched = None
    for kind, arrays in reader:
        if kind == "searched":
            chunk = _checked(next(chunks, None), arrays, reads, reader)
            items = items_of(
                chunk.offsets,
                arrays["reads"],
                arrays["edits"],
                options.gaps_of(arrays["edits"]),
                arrays["mismatches"],
            )
            blocks = blocks_of(both_strands(chunk.codes, chunk.offsets))
            searched = SearchedChunk(arrays["reads"], blocks, items)
        yield searched, (kind, arrays)
    _checked(next(chunks, None), None, reads, reader)


def found_rounds(
    reads: ChunkFileReader, readers: list[ChunkFileReader]
) -> Iterator[tuple[ReadChunk, list[FoundRound], np.ndarray]]:
    """The chunks of a file of reads, what each round has found of them, and all its counts."""
    for chunk, *rounds in zip_longest(stored_reads(reads), *map(_by_chunk, readers)):
        found, counts = [], np.zeros(len(COUNTS), np.int64)
        for reader, of_round in zip(readers, rounds, strict=True):
            searched, loci = of_round or (None, [])
            _checked(chunk, searched, reads, reader)
            if chunk is not None:
                rows = np.concatenate(
                    [np.empty((0, 4), np.int64), *(arrays["rows"] for arrays in loci)]
                )
                found.append(FoundRound(searched["reads"], searched["edits"], rows))
                counts += sum(arrays["counts"] for arrays in loci)
        yield chunk, found, counts


def _by_chunk(reader: ChunkFileReader) -> Iterator[tuple[dict, list[dict]]]:
    searched, loci = None, []
    for kind, arrays in reader:
        if kind != "searched":
            loci.append(arrays)
            continue
        if searched is not None:
            yield searched, loci
        searched, loci = arrays, []
    if searched is not None:
        yield searched, loci


def _checked(chunk, searched, reads: ChunkFileReader, reader: ChunkFileReader):
    """A chunk of reads, which a frame must be of; none at the end of both files."""
    if (chunk is None) != (searched is None) or (
        chunk is not None and not np.array_equal(searched["chunk"], chunk_tag(chunk))
    ):
        raise InputError(
            f"{reader.path}: these {reader.holds['holds']} are of other reads than those of "
            f"{reads.path}: give the file of reads that was searched"
        )
    return chunk
