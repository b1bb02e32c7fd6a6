"""Read and write the files between the steps of allmap: one file per step, batch and round.

    batch_reads          reads         bases, qualities and names
    seed_reads           seeds         parts; a sampled SA row and the steps to it per hit
    locate_seeds         hits          their positions instead
    filter_candidates    candidates    those hits that may have a locus
    extend_candidates    loci

    estimate_allmap_insert_size   a text, JSON: one for all batches of pairs

A file starts with a chunk of reads, followed by a frame `searched`: the reads that the round
searches, their edits, and the mismatches of their parts. Frames of hits follow, each with as many
items as are processed at a time; the last step replaces hits by loci. Counters (`COUNTS`) are
carried along. The first line holds the limits of the search and the genome of the index; in a file
of seeds also p, because another job may sample the index anew before they are located.

Values used as indices by compiled code are checked on reading, because files may come from
elsewhere.
"""

from collections.abc import Iterator
from dataclasses import asdict
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from bwarp.allmap.candidates_cpu import blocks_of
from bwarp.allmap.find_cpu import Segments
from bwarp.allmap.options import LocusOptions
from bwarp.allmap.parts_cpu import Items, PartHits, items_of, some_items
from bwarp.allmap.rounds import FoundRound
from bwarp.allmap.verify_cpu import COUNTS
from bwarp.errors import InputError, UsageError
from bwarp.index.fm_index import FMIndex
from bwarp.io.chunk_files import ChunkFileReader, Column
from bwarp.mapping.extension_cpu import both_strands
from bwarp.options.finding import MOST_MISMATCHES
from bwarp.options.mapping import ALL, MOST_EDITS
from bwarp.reads.read_chunks import ReadChunk
from bwarp.reads.stored_reads import chunk_tag, stored_reads
from bwarp.reference import Reference
from bwarp.runtime.compiled_code import compiled

_COUNTED = Column(np.int64, (len(COUNTS),), most=1 << 48)

#: A part of a chunk file: its kind and its arrays.
Frame = tuple[str, dict[str, np.ndarray]]


class SearchedChunk(NamedTuple):
    """A chunk of reads and what a round searches in it.

    Attributes
    ----------
    reads : ndarray, dtype=int64
        The numbers of the reads searched.
    blocks : ndarray, dtype=uint64
        Blocks of all reads on both strands.
    items : Items
        Items of the reads searched.
    """

    reads: np.ndarray
    blocks: np.ndarray
    items: Items


def stored_options(options: LocusOptions) -> dict:
    """Return the search limits for the first line of a file; the filter is a separate step."""
    return {name: value for name, value in asdict(options).items() if name != "use_filter"}


def options_of_file(reader: ChunkFileReader) -> LocusOptions:
    """Return the search limits recorded in a file."""
    limits = reader.holds.get("options")
    try:
        options = LocusOptions(**limits)
        whole = all(
            type(value) in (int, *others) and least <= value <= most
            for value, least, most, *others in (
                (options.edits, 0, MOST_EDITS),
                (0 if options.percent is None else options.percent, 0, 50, float),
                (0 if options.gaps is None else options.gaps, 0, MOST_EDITS),
                (options.strata, ALL, 1 << 31),
                (0 if options.mismatches is None else options.mismatches, 0, MOST_MISMATCHES),
            )
        )
    except (TypeError, UsageError):
        whole = False
    if not whole or stored_options(options) != limits:
        raise InputError(f"{reader.path}: written by another version of bwarp: make it again")
    return options


def check_all_loci(reader: ChunkFileReader) -> None:
    """For pairs, reject loci from a search for those near the best of each end."""
    if options_of_file(reader).strata != ALL:
        raise UsageError(
            f"--loci {reader.path}: proper pairs require all loci of their ends: use bwarp "
            "seed-reads --report all"
        )


def frame_of_searched(
    chunk: ReadChunk, reads: np.ndarray, edits: np.ndarray, mismatches: np.ndarray
) -> Frame:
    """Describe which reads of a chunk a round searches, and how."""
    arrays = {"chunk": chunk_tag(chunk), "reads": reads, "edits": edits, "mismatches": mismatches}
    return "searched", arrays


def frame_of_hits(first: int, hits: PartHits, counts: np.ndarray, **of_hits: np.ndarray) -> Frame:
    """Pack the hits of items from `first` on: positions, or sampled SA rows and steps to them."""
    return "hits", {"first": np.array([first]), "counts": counts, **hits._asdict(), **of_hits}


def rows_of_frame(
    reader: ChunkFileReader, arrays: dict[str, np.ndarray], index: FMIndex
) -> tuple[np.ndarray, np.ndarray]:
    """Return the sampled SA rows of a frame of hits and the steps to them, removing both from the
    frame.
    """
    most = index.forward.n_rows - 1
    reader.check(arrays, sampled=Column(np.uint32, most=most))
    reader.check(arrays, steps=Column(np.uint32, arrays["sampled"].shape, most=most))
    return arrays.pop("sampled"), arrays.pop("steps")


def hits_of_frame(
    reader: ChunkFileReader,
    arrays: dict[str, np.ndarray],
    searched: SearchedChunk,
    reference: Reference,
) -> tuple[int, Items, PartHits, np.ndarray, np.ndarray]:
    """Unpack a frame of hits: first item, items, parts, positions and counts.

    Raises
    ------
    InputError
        For hits that are not of parts of these reads, or not within segments of the reference.
    """
    n_items = len(searched.items.begins)
    reader.check(
        arrays,
        first=Column(np.int64, (1,), most=n_items),
        counts=_COUNTED,
        starts=Column(np.int32),
        positions=Column(np.uint32, most=reference.text_length - 1),
    )
    n_parts = arrays["starts"].size
    reader.check(
        arrays,
        ends=Column(np.int32, (n_parts,)),
        part_offsets=Column.of_offsets(n_parts),
        offsets=Column.of_offsets(arrays["positions"].size, n_parts + 1),
    )
    first = int(arrays["first"][0])
    hits = PartHits(*(arrays[name] for name in PartHits._fields))
    parts_of_items = np.diff(hits.part_offsets)
    if first + parts_of_items.size > n_items or parts_of_items.max(initial=0) > MOST_EDITS + 1:
        raise reader.unlike("part_offsets: more items or parts than searched")
    items = some_items(searched.items, slice(first, first + parts_of_items.size))
    lengths = np.repeat(items.lengths, parts_of_items)
    if ((hits.starts < 0) | (hits.starts >= hits.ends) | (hits.ends > lengths)).any():
        raise reader.unlike("starts and ends: outside the reads")
    positions = arrays["positions"]
    outside = _first_outside(
        hits.starts, hits.ends, hits.offsets, positions, reference.segment_text
    )
    if outside >= 0:
        raise reader.unlike(f"positions: no part of a read lies at {positions[outside]}")
    return first, items, hits, positions, arrays["counts"]


@compiled
def _first_outside(starts, ends, offsets, positions, segment_text):
    """Return the first hit that is not within a segment, or -1; positions are in the text."""
    segment = 0
    for part in range(starts.size):
        for hit in range(offsets[part], offsets[part + 1]):
            position = np.int64(positions[hit])
            if position < segment_text[segment] or position >= segment_text[segment + 1]:
                segment = np.searchsorted(segment_text, position, side="right") - 1
            # The last letter of a segment is a separator.
            if position + ends[part] - starts[part] >= segment_text[segment + 1]:
                return hit
    return -1


def frame_of_loci(rows: np.ndarray, counts: np.ndarray) -> Frame:
    """Pack loci: rows of item (2 i or 2 i + 1 for read i of the chunk), start, end, distance."""
    return "loci", {"rows": rows, "counts": counts}


def searched_chunks(
    reads: ChunkFileReader, reader: ChunkFileReader, options: LocusOptions
) -> Iterator[tuple[SearchedChunk, Frame]]:
    """Yield the frames of a file, each with its chunk of reads."""
    chunks = stored_reads(reads)
    searched = None
    for kind, arrays in reader:
        if kind == "searched":
            chunk = _checked(next(chunks, None), arrays, reads, reader, options)
            items = items_of(
                chunk.offsets,
                arrays["reads"],
                arrays["edits"],
                options.gaps_of(arrays["edits"]),
                arrays["mismatches"],
            )
            blocks = blocks_of(both_strands(chunk.codes, chunk.offsets))
            searched = SearchedChunk(arrays["reads"], blocks, items)
        elif kind != "hits" or searched is None:
            raise _not_its_turn(reader, kind)
        yield searched, (kind, arrays)
    _checked(next(chunks, None), None, reads, reader, options)


def found_rounds(
    reads: ChunkFileReader, readers: list[ChunkFileReader], reference: Reference
) -> Iterator[tuple[ReadChunk, list[FoundRound], np.ndarray]]:
    """Yield the chunks of a file of reads, the results of each round on them, and the summed
    counters.
    """
    limits = [options_of_file(reader) for reader in readers]
    segments = Segments.of(reference)
    for chunk, *rounds in zip_longest(stored_reads(reads), *map(_by_chunk, readers)):
        found, counts = [], np.zeros(len(COUNTS), np.int64)
        for reader, options, of_round in zip(readers, limits, rounds, strict=True):
            searched, loci = of_round or (None, [])
            _checked(chunk, searched, reads, reader, options)
            if chunk is not None:
                for arrays in loci:
                    reader.check(arrays, rows=Column(np.int64, (None, 4)), counts=_COUNTED)
                    counts += arrays["counts"]
                rows = np.concatenate(
                    [np.empty((0, 4), np.int64), *(arrays["rows"] for arrays in loci)]
                )
                found.append(FoundRound(searched["reads"], searched["edits"], rows))
                _check_loci(reader, found[-1], np.diff(chunk.offsets), options, segments)
        yield chunk, found, counts


def _check_loci(
    reader: ChunkFileReader,
    found: FoundRound,
    lengths: np.ndarray,
    options: LocusOptions,
    segments: Segments,
) -> None:
    """Reject loci of reads not searched, outside segments or limits, or out of order."""
    items, starts, ends, distances = found.rows.T
    reader.check({"items": items}, items=Column(np.int64, most=2 * len(lengths) - 1))
    edits = np.full(len(lengths), -1)
    edits[found.reads] = found.edits
    most, reads = edits[items >> 1], items >> 1
    segment = np.searchsorted(segments.starts, starts, side="right") - 1
    longer = np.abs(ends - starts - lengths[reads])
    within = (segment >= 0) & (starts < ends) & (ends <= segments.ends[segment])
    within &= (longer <= options.gaps_of(most)) & (distances >= 0) & (distances <= most)
    in_order = np.diff(items) > 0
    in_order |= (np.diff(items) == 0) & (np.diff(starts) >= 0)
    if not within.all():
        row = found.rows[np.argmin(within)].tolist()
        raise reader.unlike(f"rows: {row} is no locus of a read that was searched")
    if not in_order.all():
        raise reader.unlike("rows: not sorted by read and start")


def _by_chunk(reader: ChunkFileReader) -> Iterator[tuple[dict, list[dict]]]:
    searched, loci = None, []
    for kind, arrays in reader:
        if kind == "loci" and searched is not None:
            loci.append(arrays)
            continue
        if kind != "searched":
            raise _not_its_turn(reader, kind)
        if searched is not None:
            yield searched, loci
        searched, loci = arrays, []
    if searched is not None:
        yield searched, loci


def _not_its_turn(reader: ChunkFileReader, kind: str) -> InputError:
    return reader.unlike(f"a chunk of {kind} where none can be")


def _checked(
    chunk: ReadChunk | None,
    searched: dict[str, np.ndarray] | None,
    reads: ChunkFileReader,
    reader: ChunkFileReader,
    options: LocusOptions,
) -> ReadChunk | None:
    """Return the chunk of reads that a frame belongs to; None at the end of both files."""
    if (chunk is None) != (searched is None) or (
        chunk is not None and not np.array_equal(searched.get("chunk"), chunk_tag(chunk))
    ):
        raise InputError(
            f"{reader.path}: these {reader.holds['holds']} are not from the reads in {reads.path}: "
            "give the file of reads that was searched"
        )
    if chunk is not None:
        _check_searched(reader, searched, np.diff(chunk.offsets), options)
    return chunk


def _check_searched(
    reader: ChunkFileReader,
    arrays: dict[str, np.ndarray],
    lengths: np.ndarray,
    options: LocusOptions,
) -> None:
    """Reject reads that a round cannot have searched: each part must have a base."""
    reader.check(arrays, reads=Column(np.int64, most=len(lengths) - 1))
    reads = arrays["reads"]
    reader.check(
        arrays,
        edits=Column(np.int64, reads.shape, most=MOST_EDITS),
        mismatches=Column(np.int64, reads.shape, most=MOST_MISMATCHES),
    )
    most = options.edits_of(lengths)[reads]
    if (np.diff(reads) <= 0).any() or (lengths[reads] <= most).any():
        raise reader.unlike("reads: not in ascending order, or too short to be searched")
    if (arrays["edits"] > most).any():
        raise reader.unlike("edits: more than allowed")
