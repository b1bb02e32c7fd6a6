"""Read alignments of a genome to the reference, PAF or chains, and lift its sites.

    genome      ...ACGTACGT--ACGTTTACGT...      a block: bases of both, one to one
    reference   ...ACGTACGTGGACG---ACGT...      between blocks: bases of one, or of both

The best alignment that has all of a site gives its position in the reference: the one with the most
equal bases (PAF) or the highest score (chain); of several, the one that begins first. The first and
the last base must be in blocks, or be inserted bases, which are at the position of the insertion.
Bases of the genome opposite other bases of the reference between blocks have no position.
"""

import heapq
import os
import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from bwarp.counted import counted
from bwarp.errors import InputError
from bwarp.io.compressed_files import read_blocks
from bwarp.reference import Reference


class GenomeAlignments(NamedTuple):
    """Alignments of a genome to the reference, in positions of both.

    Attributes
    ----------
    starts, stops : ndarray, shape=(n,), dtype=int64
        The part of the genome that each alignment spans.
    is_reverse : ndarray, shape=(n,), dtype=bool
    scores : ndarray, shape=(n,), dtype=int64
    layers : list of ndarray
        Numbers of alignments that do not overlap in the genome, by start; each in one layer.
    keys : ndarray, shape=(n_blocks,), dtype=int64
        The alignment and the start in the genome of each block, in order; see `_key`.
    block_starts, reference_starts, sizes : ndarray, shape=(n_blocks,), dtype=int64
    span_starts, span_reach : ndarray, shape=(n,), dtype=int64
        The parts of the reference by start, and the largest stop so far.
    skipped : int
        Alignments that are not used because a contig is unknown.
    """

    starts: np.ndarray
    stops: np.ndarray
    is_reverse: np.ndarray
    scores: np.ndarray
    layers: list[np.ndarray]
    keys: np.ndarray
    block_starts: np.ndarray
    reference_starts: np.ndarray
    sizes: np.ndarray
    span_starts: np.ndarray
    span_reach: np.ndarray
    skipped: int


class LiftedParts(NamedTuple):
    """Positions in the reference, -1 for sites without one, and whether the strand changes."""

    starts: np.ndarray
    ends: np.ndarray
    is_reverse: np.ndarray


def lift(alignments: GenomeAlignments, starts: np.ndarray, ends: np.ndarray) -> LiftedParts:
    """Return where parts of a genome are in the reference.

    Parameters
    ----------
    starts, ends : ndarray, shape=(n,), dtype=int64
        Positions in the genome; no part may be empty.
    """
    best = np.full(starts.size, -1)
    scores = np.full(starts.size, np.iinfo(np.int64).min)
    for layer in alignments.layers:
        at = np.searchsorted(alignments.starts[layer], starts, side="right") - 1
        number = layer[np.maximum(at, 0)]
        score = alignments.scores[number]
        better = (score > scores) | ((score == scores) & (number < best))
        rows = np.flatnonzero((at >= 0) & (ends <= alignments.stops[number]) & better)
        best[rows], scores[rows] = number[rows], score[rows]
    rows = np.flatnonzero(best >= 0)
    numbers = best[rows]
    is_reverse = alignments.is_reverse[numbers]
    first = _of_base(alignments, numbers, starts[rows])
    last = _of_base(alignments, numbers, ends[rows] - 1)
    here = (first[0] >= 0) & (last[0] >= 0)
    parts = LiftedParts(*np.full((2, starts.size), -1), np.zeros(starts.size, bool))
    parts.starts[rows] = np.where(here, np.where(is_reverse, last[0], first[0]), -1)
    parts.ends[rows] = np.where(here, np.where(is_reverse, first[1], last[1]), -1)
    parts.is_reverse[rows] = here & is_reverse
    return parts


def is_aligned(alignments: GenomeAlignments, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return whether an alignment spans each part of the reference, dtype bool."""
    at = np.searchsorted(alignments.span_starts, starts, side="right") - 1
    reach = np.append(alignments.span_reach, -1)
    return ends <= reach[at]


def _of_base(
    alignments: GenomeAlignments, numbers: np.ndarray, positions: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return start and end of a base in the reference: equal for an inserted base, -1 for none."""
    keys = alignments.keys
    block = np.searchsorted(keys, _key(numbers, positions), side="right") - 1
    within = positions - alignments.block_starts[block]
    size, start = alignments.sizes[block], alignments.reference_starts[block]
    is_reverse = alignments.is_reverse[numbers]
    inside = within < size
    base = np.where(is_reverse, start + size - 1 - within, start + within)
    # Blocks begin and end every alignment, so that a base beyond a block is before another one.
    after = np.minimum(block + 1, keys.size - 1)
    next_start = alignments.reference_starts[after]
    ends = np.where(is_reverse, next_start + alignments.sizes[after], start + size)
    inserted = ends == np.where(is_reverse, start, next_start)
    point = np.where(inserted, ends, -1)
    return np.where(inside, base, point), np.where(inside, base + 1, point)


def _key(numbers: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """Return numbers that have the order of alignments, and of positions in each."""
    return numbers << 33 | positions


class _Aligned(NamedTuple):
    """An alignment as in the file: the parts of both contigs, and their blocks from one end on.

    Offsets of reversed parts are from their ends.
    """

    genome: tuple[str, int, int, int]
    reference: tuple[str, int, int, int]
    flipped: tuple[bool, bool]
    score: int
    offsets: tuple[np.ndarray, np.ndarray]
    sizes: np.ndarray


def read_alignments(
    path: str | os.PathLike, genome: Reference, reference: Reference
) -> GenomeAlignments:
    """Read PAF or chain files, plain or compressed.

    In PAF, the genome is the query, and the tag cg has the CIGAR (``minimap2 -c reference.fa
    genome.fa``); secondary alignments are skipped. Chains convert positions of the genome to
    positions of the reference, as for liftOver.

    Raises
    ------
    InputError
        If the file is something else, is damaged, or belongs to other genomes.
    """
    lines = enumerate(_lines(path), 1)
    first = next(((n, line) for n, line in lines if line and not line.startswith(b"#")), None)
    if first is None:
        raise InputError(f"{path}: no alignments: give PAF or a chain file")
    parsed = _chains if first[1].startswith(b"chain") else _paf
    contigs = [{name: i for i, name in enumerate(one.names)} for one in (genome, reference)]
    found, skipped = [], 0
    missing = None
    for number, one in parsed(path, _from(first, lines)):
        unknown = [
            (part[0], what)
            for part, names, what in zip(
                (one.genome, one.reference), contigs, ("genome", "reference"), strict=True
            )
            if part[0] not in names
        ]
        if unknown:
            missing = missing or unknown[0]
            skipped += 1
            continue
        starts = [
            _checked(f"{path}, line {number}", part, whole, names[part[0]], what)
            for part, whole, names, what in zip(
                (one.genome, one.reference), (genome, reference), contigs,
                ("genome", "reference"), strict=True,
            )
        ]  # fmt: skip
        if one.sizes.size:
            found.append(_in_positions(one, starts))
    if not found and missing:
        raise InputError(
            f"{path}: no alignment is between contigs of the genome and the reference: the "
            f"{missing[1]} has no {missing[0]}"
        )
    return _joined(found, skipped)


def _from(first: tuple[int, bytes], rest: Iterable) -> Iterator[tuple[int, bytes]]:
    yield first
    yield from rest


def _lines(path) -> Iterator[bytes]:
    rest = b""
    for block in read_blocks(path):
        *whole, rest = (rest + bytes(block)).split(b"\n")
        yield from whole
    yield rest


def _checked(where: str, part, whole: Reference, contig: int, what: str) -> int:
    """Return the position of the contig of a part, if it has the stated length."""
    name, length, _, _ = part
    begin, end = whole.contig_starts[contig : contig + 2].tolist()
    if end - begin != length:
        raise InputError(
            f"{where}: {name} of the {what} has {counted(length, 'base')} here, but really "
            f"{end - begin:,}: give alignments in the order of genomes, from the genome to the "
            "reference"
        )
    return begin


class _Positions(NamedTuple):
    """Blocks of an alignment by their starts in the genome."""

    blocks: np.ndarray
    score: int
    is_reverse: bool


def _in_positions(one: _Aligned, begins: list[int]) -> _Positions:
    starts = []
    for part, flipped, offsets, begin in zip(
        (one.genome, one.reference), one.flipped, one.offsets, begins, strict=True
    ):
        _, _, start, stop = part
        starts.append(begin + (stop - offsets - one.sizes if flipped else start + offsets))
    blocks = np.stack([*starts, one.sizes])
    return _Positions(blocks[:, np.argsort(blocks[0])], one.score, one.flipped[0] != one.flipped[1])


def _joined(found: list[_Positions], skipped: int) -> GenomeAlignments:
    found.sort(key=lambda one: int(one.blocks[0, 0]))
    n = len(found)
    blocks = np.concatenate([np.empty((3, 0), np.int64), *(one.blocks for one in found)], axis=1)
    spans = np.array(
        [(one.blocks[0, 0], one.blocks[0, -1] + one.blocks[2, -1],
          one.blocks[1].min(), (one.blocks[1] + one.blocks[2]).max()) for one in found], np.int64,
    ).reshape(n, 4)  # fmt: skip
    numbers = np.repeat(np.arange(n), [one.blocks.shape[1] for one in found])
    by_reference = np.argsort(spans[:, 2], kind="stable")
    reach = spans[by_reference, 3]
    return GenomeAlignments(
        spans[:, 0],
        spans[:, 1],
        np.array([one.is_reverse for one in found], bool),
        np.array([one.score for one in found], np.int64),
        _layers(spans[:, 0].tolist(), spans[:, 1].tolist()),
        _key(numbers, blocks[0]),
        *blocks,
        spans[by_reference, 2],
        np.maximum.accumulate(reach) if n else reach,
        skipped,
    )


def _layers(starts: list[int], stops: list[int]) -> list[np.ndarray]:
    """Divide parts, sorted by start, into as few layers without overlaps as possible."""
    layers: list[list[int]] = []
    ends: list[tuple[int, int]] = []
    for number, (start, stop) in enumerate(zip(starts, stops, strict=True)):
        layer = len(layers)
        if ends and ends[0][0] <= start:
            _, layer = heapq.heappop(ends)
        else:
            layers.append([])
        layers[layer].append(number)
        heapq.heappush(ends, (stop, layer))
    return [np.array(layer, np.int64) for layer in layers]


# PAF: 12 columns and tags; cg:Z has the CIGAR.


def _paf(path, lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, _Aligned]]:
    for number, line in lines:
        cells = line.rstrip(b"\r").split(b"\t")
        if cells == [b""] or b"tp:A:S" in cells[12:]:
            continue
        where = f"{path}, line {number}"
        try:
            query, target = (
                (cells[i].decode("utf-8", "replace"), *map(int, cells[j : j + 3]))
                for i, j in ((0, 1), (5, 6))
            )
            is_reverse = {b"+": False, b"-": True}[cells[4]]
            score = int(cells[9])
        except (ValueError, IndexError, KeyError):
            raise InputError(
                f"{where}: neither PAF nor a chain: columns 1 to 10 must be those of PAF"
            ) from None
        cigar = next((cell[5:] for cell in cells[12:] if cell.startswith(b"cg:Z:")), None)
        if cigar is None:
            raise InputError(f"{where}: there is no CIGAR (tag cg): use minimap2 -c")
        offsets, sizes = _blocks_of_cigar(where, cigar, query, target)
        yield number, _Aligned(query, target, (is_reverse, False), score, offsets, sizes)


def _blocks_of_cigar(where: str, cigar: bytes, query, target) -> tuple:
    if not re.fullmatch(rb"(\d+[MIDN=X])+", cigar):
        raise InputError(f"{where}: the CIGAR has letters other than M, I, D, N, = and X")
    letters = np.frombuffer(re.sub(rb"\d+", b"", cigar), np.uint8)
    lengths = np.array(list(map(int, re.split(rb"[MIDN=X]", cigar)[:-1])), np.int64)
    is_pair, is_inserted = np.isin(letters, list(b"M=X")), letters == ord("I")
    ends = [np.cumsum(np.where(is_pair | also, lengths, 0)) for also in (is_inserted, ~is_inserted)]
    _check_ends(where, "CIGAR", query, target, ends)
    first = is_pair & ~np.append(False, is_pair[:-1])
    last = is_pair & ~np.append(is_pair[1:], False)
    offsets = tuple(one[first] - lengths[first] for one in ends)
    sizes = ends[0][last] - offsets[0]
    return tuple(one[sizes > 0] for one in offsets), sizes[sizes > 0]


def _check_ends(where: str, what: str, genome, reference, ends) -> None:
    """Raise an error if blocks end elsewhere than the parts they belong to."""
    for (name, length, start, stop), reached in zip((genome, reference), ends, strict=True):
        n_bases = int(reached[-1])
        if not 0 <= start <= stop <= length:
            raise InputError(
                f"{where}: {start} to {stop} is not a part of {name}, which has "
                f"{counted(length, 'base')}"
            )
        if n_bases != stop - start:
            raise InputError(
                f"{where}: the {what} has {counted(n_bases, 'base')} of {name}, but the other "
                f"columns say {stop - start}: the file is damaged"
            )


# Chains: a header, lines of block size and gaps in both sequences, and the size of the last block.


def _chains(path, lines: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, _Aligned]]:
    header: tuple[int, tuple] | None = None
    gaps: list[list[int]] = []
    for number, line in lines:
        words = line.split()
        if not words or line.startswith(b"#"):
            continue
        where = f"{path}, line {number}"
        if words[0] == b"chain":
            if header:
                raise InputError(f"{where}: the chain before has no last block")
            header = number, _chain_header(where, words)
            continue
        try:
            row = list(map(int, words))
            if header is None or len(row) not in (1, 3) or min(row) < 0:
                raise ValueError
        except ValueError:
            raise InputError(
                f"{where}: not a line of a chain: write a block size, or a size and two gaps"
            ) from None
        gaps.append([*row, 0, 0][:3])
        if len(row) == 1:
            before, (genome, reference, is_reverse, score) = header
            sizes, *between = np.array(gaps, np.int64).T
            ends = [np.cumsum(sizes + gap) for gap in between]
            _check_ends(f"{path}, line {before}", "chain", genome, reference, ends)
            offsets = tuple(end - sizes - gap for end, gap in zip(ends, between, strict=True))
            kept = sizes > 0
            yield before, _Aligned(
                genome, reference, (False, is_reverse), score,
                (offsets[0][kept], offsets[1][kept]), sizes[kept],
            )  # fmt: skip
            header, gaps = None, []
    if header:
        raise InputError(
            f"{path}, line {header[0]}: the chain has no last block: the file is truncated"
        )


def _chain_header(where: str, words: list[bytes]) -> tuple:
    try:
        score = int(float(words[1]))
        parts = []
        for at in (2, 7):
            length, start, stop = int(words[at + 1]), int(words[at + 3]), int(words[at + 4])
            is_reverse = {b"+": False, b"-": True}[words[at + 2]]
            if is_reverse:
                start, stop = length - stop, length - start
            parts.append((words[at].decode("utf-8", "replace"), length, start, stop))
        if words[4] != b"+":
            raise ValueError
    except (ValueError, IndexError, KeyError):
        raise InputError(
            f"{where}: not the header of a chain: it must be chain, score, and name, size, strand, "
            "start and end of both sequences"
        ) from None
    return *parts, is_reverse, score
