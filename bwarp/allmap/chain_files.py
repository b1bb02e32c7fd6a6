"""Read and write the files between the steps of allmap: one file per step, batch and round.

    batch_reads          reads         bases, qualities and names
    seed_reads           seeds         parts; a sampled SA row and the steps to it per hit
    locate_seeds         hits          their positions instead
    filter_candidates    candidates    those hits that may have a locus
    extend_candidates    loci          with the alignments of those that will be written

    estimate_allmap_insert_size   a text, JSON: one for all batches of pairs

A file starts with a chunk of reads, followed by a frame `searched`: the reads that the round
searches, their edits, and the mismatches of their parts. Frames of hits follow, each with as many
items as are processed at a time; the last step replaces hits by loci. Counters (`COUNTS`) are
carried along. The first line holds the limits of the search and the genome of the index. In a file
of seeds, it also holds p, because another job may resample the index before they are located. In a
file of loci, it also holds how reads were aligned, and the maximum number of loci of such reads.

Values used as indices by compiled code are checked on reading, because files may come from
elsewhere.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import zip_longest
from typing import NamedTuple

import numpy as np

from bwarp.alignment.pairs import DELETION, INSERTION, MATCH, SOFT_CLIP
from bwarp.alignment.scoring import SCORE_BOUND
from bwarp.allmap.alignments_cpu import LocusAlignments, joined_alignments
from bwarp.allmap.candidates_cpu import blocks_of, segment_at
from bwarp.allmap.find_cpu import Segments
from bwarp.allmap.options import Extension, FoundLoci, LocusOptions, extension_of
from bwarp.allmap.parts_cpu import Items, PartHits, item_parts, items_of, some_items
from bwarp.allmap.rounds import FoundRound, following_round, last_rounds
from bwarp.allmap.verify_cpu import COUNTS
from bwarp.errors import InputError, UsageError
from bwarp.index.fm_index import FMIndex
from bwarp.io.chunk_files import ChunkFileReader, Column, PackedChunk, packed_chunk
from bwarp.mapping.extension_cpu import both_strands
from bwarp.options.finding import MOST_MISMATCHES
from bwarp.options.mapping import ALL, ALLMAP, MOST_EDITS
from bwarp.reads.read_chunks import ReadChunk
from bwarp.reads.stored_reads import chunk_tag, stored_reads
from bwarp.reference import Reference
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.uncounted import uncounted

#: The maximum number of operations of an alignment: BAM counts them in 16 bits.
MOST_OPERATIONS = (1 << 16) - 1

_COUNTED = Column(np.int64, (len(COUNTS),), most=1 << 48)

#: A chunk that was read: its kind and its arrays.
Frame = tuple[str, dict[str, np.ndarray]]


class StoredRound(NamedTuple):
    """The result of a round on a chunk of reads, and the alignments of its loci.

    Attributes
    ----------
    found : FoundRound
    alignments : LocusAlignments
        Loci that are not written have no operations.
    """

    found: FoundRound
    alignments: LocusAlignments


@dataclass(frozen=True)
class SearchedChunk:
    """A chunk of reads and what a round searches in it.

    Attributes
    ----------
    chunk : ReadChunk
    reads : ndarray, dtype=int64
        The numbers of the reads searched.
    items : Items
        Items of the reads searched.
    """

    chunk: ReadChunk
    reads: np.ndarray
    items: Items

    @property
    def offsets(self) -> np.ndarray:
        return self.chunk.offsets

    @cached_property
    def both(self) -> np.ndarray:
        """All reads on both strands; made in the thread that needs them first."""
        return both_strands(self.chunk.codes, self.chunk.offsets)

    @cached_property
    def blocks(self) -> np.ndarray:
        """Blocks of all reads on both strands."""
        return blocks_of(self.both)


class Aligned(NamedTuple):
    """How the reads in a file of loci were aligned.

    Attributes
    ----------
    extension : Extension or None
        Scores; without them, alignments have the fewest edits.
    max_places : int
        Reads with more loci were not aligned; 0 means no limit.
    """

    extension: Extension | None
    max_places: int = 0


def stored_options(options: LocusOptions) -> dict:
    """Return the search limits for the first line of a file; the filter is a separate step."""
    return {name: value for name, value in asdict(options).items() if name != "filter"}


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


def stored_aligned(aligned: Aligned) -> dict:
    """Return how reads were aligned for the first line of a file of loci."""
    extension = aligned.extension
    arguments = {"name": "edits"} if extension is None else extension.arguments
    return {"extension": arguments, "max_places": aligned.max_places}


def aligned_of_file(reader: ChunkFileReader) -> Aligned:
    """Return how the reads in a file of loci were aligned."""
    arguments, max_places = reader.holds.get("extension"), reader.holds.get("max_places")
    try:
        _, *scores = arguments.values()
        whole = all(type(score) is int for score in (*scores, max_places))
        aligned = Aligned(extension_of(**arguments), max_places)
        ALLMAP["max_places"].check(max_places)
        whole = whole and stored_aligned(aligned)["extension"] == arguments
    except (AttributeError, TypeError, ValueError, UsageError):
        whole = False
    if not whole:
        raise InputError(f"{reader.path}: written by another version of bwarp: make it again")
    return aligned


def check_all_loci(reader: ChunkFileReader) -> None:
    """For pairs, reject loci from a search for those near the best of each end."""
    if options_of_file(reader).strata != ALL:
        raise UsageError(
            f"--loci {reader.path}: proper pairs require all loci of their ends: use bwarp "
            "seed-reads --report all"
        )


def frame_of_searched(
    chunk: ReadChunk, reads: np.ndarray, edits: np.ndarray, mismatches: np.ndarray
) -> PackedChunk:
    """Describe which reads of a chunk a round searches, and how."""
    how = {"chunk": chunk_tag(chunk), "reads": reads, "edits": edits, "mismatches": mismatches}
    return packed_chunk("searched", **how)


def frame_of_hits(
    first: int, hits: PartHits, counts: np.ndarray, **of_hits: np.ndarray
) -> PackedChunk:
    """Pack the hits of items from `first` on: positions, or sampled SA rows and steps to them."""
    arrays = {
        "first": np.array([first]),
        "counts": counts,
        "n_parts": np.diff(hits.part_offsets),
        "starts": hits.starts,
        "ends": hits.ends,
        "n_hits": np.diff(hits.offsets),
    }
    return packed_chunk("hits", **arrays, **of_hits)


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
    segments: Segments,
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
        n_parts=Column(np.int64, most=MOST_EDITS + 1),
        starts=Column(np.int32),
        positions=Column(np.uint32, most=int(segments.text[-1]) - 1),
    )
    first, n_parts = int(arrays["first"][0]), arrays["starts"].size
    last = first + arrays["n_parts"].size
    reader.check(
        arrays,
        ends=Column(np.int32, (n_parts,)),
        n_hits=Column(np.int64, (n_parts,), most=arrays["positions"].size),
    )
    hits = PartHits(
        item_parts(arrays["n_parts"]), arrays["starts"], arrays["ends"],
        item_parts(arrays["n_hits"]),
    )  # fmt: skip
    if last > n_items or hits.part_offsets[-1] != n_parts:
        raise reader.unlike("n_parts: more items or parts than searched")
    if hits.offsets[-1] != arrays["positions"].size:
        raise reader.unlike("n_hits: not the number of positions")
    if first % 2 or last % 2:
        raise reader.unlike("n_parts: without the other strand of a read")
    items = some_items(searched.items, slice(first, last))
    if _has_outside(hits.part_offsets, hits.starts, hits.ends, items.lengths):
        raise reader.unlike("starts and ends: outside the reads")
    positions = arrays["positions"]
    outside = _first_outside(hits.starts, hits.ends, hits.offsets, positions, segments)
    if outside >= 0:
        raise reader.unlike(f"positions: no part of a read lies at {positions[outside]}")
    return first, items, hits, positions, arrays["counts"]


@compiled
def _has_outside(part_offsets, starts, ends, lengths):
    """Return whether a part is empty or not within its item."""
    for item in range(lengths.size):
        for part in range(part_offsets[item], part_offsets[item + 1]):
            if not 0 <= starts[part] < ends[part] <= lengths[item]:
                return True
    return False


@compiled
def _first_outside(starts, ends, offsets, positions, segments):
    """Return the first hit that is not within a segment, or -1; positions are in the text."""
    starts, ends, offsets, positions = uncounted((starts, ends, offsets, positions))
    segment_text, _, _, of_blocks = uncounted(segments)
    for part in range(starts.size):
        for hit in range(offsets[part], offsets[part + 1]):
            position = np.int64(positions[hit])
            segment = segment_at(segment_text, of_blocks, position)
            # The last letter of a segment is a separator.
            if position + ends[part] - starts[part] >= segment_text[segment + 1]:
                return hit
    return -1


def frame_of_loci(
    rows: np.ndarray,
    counts: np.ndarray,
    written: np.ndarray,
    alignments: LocusAlignments,
    extension: Extension | None,
) -> PackedChunk:
    """Pack loci, and alignments of some.

    Parameters
    ----------
    rows : ndarray, shape=(n, 4), dtype=int64
        Item (2 i or 2 i + 1 for read i of the chunk), start, end, distance.
    written : ndarray, shape=(n,), dtype=bool
        The loci that have an alignment; other loci have a CIGAR without operations.
    """
    operations = np.zeros(len(rows) + 1, np.int64)
    operations[1:][written] = np.diff(alignments.offsets)
    arrays = {
        "rows": rows,
        "counts": counts,
        "offsets": np.cumsum(operations),
        "cigar": alignments.cigar,
    }
    if extension is not None:
        # Alignments with the fewest edits cover their loci.
        arrays["aligned"] = np.zeros((len(rows), 4), np.int64)
        arrays["aligned"][written] = np.column_stack(alignments[2:])
    return packed_chunk("loci", **arrays)


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
            searched = SearchedChunk(chunk, arrays["reads"], items)
        elif kind != "hits" or searched is None:
            raise _not_its_turn(reader, kind)
        yield searched, (kind, arrays)
    _checked(next(chunks, None), None, reads, reader, options)


def stored_rounds(
    reads: ChunkFileReader, readers: list[ChunkFileReader], reference: Reference
) -> Iterator[tuple[ReadChunk, list[StoredRound], np.ndarray]]:
    """Yield the chunks of a file of reads, the results of each round on them, and the summed
    counters.
    """
    limits = [options_of_file(reader) for reader in readers]
    extensions = [aligned_of_file(reader).extension for reader in readers]
    segments = Segments.of(reference)
    for chunk, *rounds in zip_longest(stored_reads(reads), *map(_by_chunk, readers)):
        stored, counts = [], np.zeros(len(COUNTS), np.int64)
        for reader, options, extension, of_round in zip(
            readers, limits, extensions, rounds, strict=True
        ):
            searched, frames = of_round or (None, [])
            _checked(chunk, searched, reads, reader, options)
            if chunk is not None:
                for arrays in frames:
                    reader.check(arrays, rows=Column(np.int64, (None, 4)), counts=_COUNTED)
                    counts += arrays["counts"]
                rows = np.concatenate(
                    [np.empty((0, 4), np.int64), *(arrays["rows"] for arrays in frames)]
                )
                found = FoundRound(searched["reads"], searched["edits"], rows)
                lengths = np.diff(chunk.offsets)
                _check_loci(reader, found, lengths, options, segments)
                alignments = joined_alignments([
                    _alignments_of_frame(reader, arrays, lengths, extension) for arrays in frames
                ])  # fmt: skip
                stored.append(StoredRound(found, alignments))
        yield chunk, stored, counts


def _alignments_of_frame(
    reader: ChunkFileReader,
    arrays: dict[str, np.ndarray],
    lengths: np.ndarray,
    extension: Extension | None,
) -> LocusAlignments:
    """Return the alignments of a frame of loci whose rows are valid."""
    rows = arrays["rows"]
    reader.check(arrays, cigar=Column(np.uint32))
    offsets = Column.of_offsets(arrays["cigar"].size, len(rows) + 1)
    reader.check(arrays, offsets=offsets)
    if extension is None:
        _, starts, ends, distances = rows.T
        scores = -distances
    else:
        reader.check(arrays, aligned=Column(np.int64, rows.shape, -SCORE_BOUND, 1 << 33))
        starts, ends, distances, scores = arrays["aligned"].T
    alignments = LocusAlignments(
        arrays["offsets"],
        arrays["cigar"],
        starts.copy(),
        ends.copy(),
        distances.astype(np.int32),
        scores.astype(np.int32),
    )
    invalid = _first_invalid(rows, lengths, alignments, extension is not None)
    if invalid >= 0:
        raise reader.unlike(f"cigar: no alignment of a read at {rows[invalid].tolist()}")
    return alignments


@compiled
def _first_invalid(rows, lengths, alignments, by_score):
    """Return the first locus whose CIGAR is neither empty nor an alignment of the whole read, with
    clipped ends if it is by score, within the locus; -1 if there is none.
    """
    rows, lengths, alignments = uncounted((rows, lengths, alignments))
    offsets, cigar, starts, ends, distances, _ = alignments
    for i in range(len(rows)):
        first, last = offsets[i], offsets[i + 1]
        if first == last:
            continue
        length = lengths[rows[i, 0] >> 1]
        row, column = np.int64(0), starts[i]
        is_valid = last - first <= MOST_OPERATIONS and distances[i] >= 0
        is_valid &= rows[i, 1] <= starts[i] and starts[i] < ends[i] and ends[i] <= rows[i, 2]
        for at in range(first, last):
            operation, size = cigar[at] & np.uint32(15), np.int64(cigar[at] >> np.uint32(4))
            is_valid &= size > 0
            if operation == MATCH:
                row, column = row + size, column + size
            elif operation == DELETION:
                column += size
            elif operation == INSERTION:
                row += size
            else:
                is_valid &= by_score and operation == SOFT_CLIP and at in (first, last - 1)
                row += size
        if not (is_valid and row == length and column == ends[i]):
            return i
    return -1


def alignments_at(
    readers: list[ChunkFileReader], rounds: list[StoredRound], loci: FoundLoci
) -> LocusAlignments:
    """Return the stored alignments at given loci of the same chunk, from the last round of each
    read.

    Raises
    ------
    InputError
        If one of them has no alignment.
    """
    last = last_rounds([one.found for one in rounds], len(loci.searched))[loci.reads]
    wanted = _keys(2 * loci.reads + loci.strands, loci.starts)
    numbers = np.zeros(wanted.size, np.int64)
    before = 0
    for number, one in enumerate(rounds):
        here = np.flatnonzero(last == number)
        keys = _keys(one.found.rows[:, 0], one.found.rows[:, 1])
        numbers[here] = before + np.searchsorted(keys, wanted[here])
        before += keys.size
    stored = joined_alignments([one.alignments for one in rounds])
    sizes = np.diff(stored.offsets)[numbers]
    if not sizes.all():
        missing = int(np.argmin(sizes))
        read = loci.reads[missing]
        raise readers[last[missing]].unlike(f"cigar: no alignment of read {read} at its locus")
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    shifts = np.repeat(stored.offsets[numbers] - offsets[:-1], sizes)
    return LocusAlignments(
        offsets,
        stored.cigar[np.arange(offsets[-1]) + shifts],
        *(column[numbers] for column in stored[2:]),
    )


def _keys(items: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Return numbers in the order of loci."""
    return items << 33 | starts


def check_most_loci(reader: ChunkFileReader, max_places: int, paired: bool) -> None:
    """Reject a file of loci without the alignments of some loci that are to be written."""
    most = aligned_of_file(reader).max_places
    if most and paired:
        raise UsageError(
            f"--loci {reader.path}: proper pairs require the alignments of all loci: use bwarp "
            "extend-candidates without --max-places"
        )
    if most and not 0 < max_places <= most:
        raise UsageError(
            f"--loci {reader.path}: reads with more loci than {most:,} are not aligned: use "
            f"--max-places from 1 to {most}"
        )


def check_rounds(
    readers: list[ChunkFileReader], rounds: list[StoredRound], lengths: np.ndarray
) -> None:
    """Reject rounds after which reads remain to be searched."""
    limits, last = options_of_file(readers[-1]), rounds[-1].found
    if following_round(lengths, limits, last)[0].size:
        raise UsageError(
            f"--loci {readers[-1].path}: reads remain for a second round: search them with bwarp "
            "seed-reads --after, and give the loci of both rounds"
        )


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
