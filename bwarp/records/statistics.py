"""Statistics of mapped reads as counts that can be summed over chunks and units."""

import json
import os
import re
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from bwarp.alignment.pairs import DELETION, INSERTION, MATCH
from bwarp.counted import counted
from bwarp.errors import InputError
from bwarp.mapping.extension_cpu import Genome
from bwarp.mapping.final_alignments import MappedReads
from bwarp.mapping.insert_size import InsertSize
from bwarp.mapping.pipeline import MappedChunk
from bwarp.options.common import ORIENTATIONS
from bwarp.reads.base_bits_cpu import differing, prefetch_bases
from bwarp.runtime.compiled_code import compiled
from bwarp.runtime.simd import population_count

# --------------------------------------------------------------------------------------------------
# Counts of aligned, inserted and edited bases, and the depth.
#
# The depth is sampled at evenly spaced positions of the reference. That suffices for a histogram,
# and yields counts that can be summed and stay small.
#
# depth_step 4     ACGTACGTACGTACGT       depths 1 2 1 0
#                  |   ----|---
#                  ------- |


#: Maximum number of positions with a depth: the fraction of bases at a depth is known to 0.5 %.
DEPTH_POSITIONS = 10_000


#: Number of alignments by which the genome is prefetched ahead.
_AHEAD = 12


class BaseCounts(NamedTuple):
    """Counts of bases in alignments.

    Attributes
    ----------
    aligned : int
        Bases of reads aligned to bases of the reference.
    inserted : int
    edits : int
        Mismatched, inserted and deleted bases: the sum of the tags NM.
    spans : ndarray, shape=(n,), dtype=int64
        Number of reference bases that each alignment spans; 0 for none.
    """

    aligned: int
    inserted: int
    edits: int
    spans: np.ndarray


def depth_step(reference_bases: int) -> int:
    """Return the distance between positions with a depth; the first position is the first base."""
    return max(1, -(-reference_bases // DEPTH_POSITIONS))


def count_bases(
    genome: Genome,
    offsets: np.ndarray,
    both: np.ndarray,
    reads: np.ndarray,
    alignments: MappedReads,
    depths: np.ndarray,
) -> BaseCounts:
    """Count the bases of alignments, and add to the depths of positions.

    Parameters
    ----------
    offsets : ndarray, shape=(n_reads + 1,), dtype=int64
    both : ndarray, shape=(2 * n_bases,), dtype=uint8
        The reads, then their reverse complements.
    reads : ndarray, shape=(n,), dtype=int64
        The read of each alignment.
    depths : ndarray, dtype=int64
        Depths of every `depth_step`-th position.
    """
    reverse = alignments.strands.astype(np.int64) * (both.size // 2)
    starts = offsets[reads] + reverse + alignments.read_starts
    step = depth_step(int(genome.contig_starts[-1]))
    spans = np.zeros(starts.size, np.int64)
    aligned, inserted, edits = _count(genome.blocks, both, starts, alignments, step, depths, spans)
    return BaseCounts(aligned, inserted, edits, spans)


@compiled(counted=False)
def _count(blocks, both, starts, alignments, step, depths, spans):
    positions, _, _, _, _, offsets, cigar = alignments
    aligned, inserted, edits = np.int64(0), np.int64(0), np.int64(0)
    for row in range(starts.size):
        if row + _AHEAD < starts.size and positions[row + _AHEAD] >= 0:
            prefetch_bases(blocks, positions[row + _AHEAD])
        position, read = positions[row], starts[row]
        if position < 0:
            continue
        for at in range(offsets[row], offsets[row + 1]):
            length, operation = np.int64(cigar[at] >> 4), cigar[at] & 15
            if operation == MATCH:
                aligned += length
                for begin in range(0, length, 64):
                    n = min(np.int64(64), length - begin)
                    bits = differing(blocks, position + begin, both, read + begin, n)
                    edits += np.int64(population_count(bits))
                site = (position + step - 1) // step
                while site * step < position + length:
                    depths[site] += 1
                    site += 1
                read += length
                position += length
            elif operation == INSERTION:
                inserted += length
                edits += length
                read += length
            elif operation == DELETION:
                edits += length
                position += length
        spans[row] = position - positions[row]
    return aligned, inserted, edits


#: Bases per bin of `insert_sizes`, and number of bins; the last bin contains all larger sizes.
INSERT_BIN, INSERT_BINS = 10, 201

#: Below this fraction of mapped reads, the reads may be from another species.
FEW_MAPPED = 0.2

#: Counts that are not sums over chunks or units.
_NO_SUMS = ("duplicates", "insert_size", "reference_bases", "depths")

STAGES = (
    "reads",
    "seeds searched",
    "hits located",
    "candidates",
    "hits scored",
    "hits with gaps",
    "reads mapped",
    "reads of quality 30",
)


def empty_statistics() -> dict:
    """Return the counts of no reads.

    `mapping_qualities` has the number of reads per quality from 0 to 60, and `insert_sizes` the
    number of proper pairs per `INSERT_BIN` bases from the first base of a pair to its last.
    `stages` has counts after each stage, in order. `paired` counts reads in pairs; `duplicates` is
    None if duplicates were not searched. `aligned_bases`, `inserted_bases`, `edits` and the sampled
    depths, `depths`, cover primary and supplementary records; `depths` is empty before the
    reference is known.
    """
    return {
        "reads": 0,
        "bases": 0,
        "mapped": 0,
        "unmapped": 0,
        "paired": 0,
        "properly_paired": 0,
        "both_mapped": 0,
        "duplicates": None,
        "insert_size": None,
        "split_reads": 0,
        "supplementary": 0,
        "aligned_bases": 0,
        "inserted_bases": 0,
        "edits": 0,
        "reference_bases": 0,
        "mapping_qualities": [0] * 61,
        "insert_sizes": [0] * INSERT_BINS,
        "stages": dict.fromkeys(STAGES, 0),
        "depths": [],
    }


def counts_of(done: MappedChunk, genome: Genome) -> dict:
    """Return the counts of a chunk's reads."""
    chunk, mapped, primary = done.chunk, done.mapped, done.primary
    is_mapped = mapped.positions >= 0
    n_mapped = int(np.count_nonzero(is_mapped))
    n_reads = chunk.n_reads - chunk.n_orphans
    paired = n_reads - chunk.n_orphans if chunk.ends == 2 else 0
    both = is_mapped[::2] & is_mapped[1::2] if paired else np.empty(0)
    of_bases, spans = _bases(done, genome)
    counts = empty_statistics() | {
        "reads": n_reads,
        "bases": int(chunk.offsets[-1]),
        "mapped": n_mapped,
        "unmapped": n_reads - n_mapped,
        "paired": paired,
        "both_mapped": 2 * int(np.count_nonzero(both)),
        "properly_paired": int(np.count_nonzero(primary.proper)),
        "mapping_qualities": np.bincount(primary.qualities[is_mapped], minlength=61).tolist(),
        "stages": _stages(done, n_mapped),
        **of_bases,
    }
    counts["insert_size"] = size_counts(done.insert)
    if paired:
        counts["insert_sizes"] = _insert_sizes(mapped.positions, spans, primary.proper).tolist()
    return counts


def size_counts(insert: InsertSize) -> dict | None:
    """Return the entry of the insert size, or None if it is unknown."""
    if not insert.highest:
        return None
    return {
        "mean": round(insert.mean, 3),
        "standard_deviation": round(insert.standard_deviation, 3),
        "lowest": insert.lowest,
        "highest": insert.highest,
        "orientation": ORIENTATIONS[insert.orientation],
    }


def _bases(done: MappedChunk, genome: Genome) -> tuple[dict, np.ndarray]:
    """Count bases of primary and supplementary records; also return the spans of primary ones."""
    chunk, split = done.chunk, done.supplementary
    n_bases = int(genome.contig_starts[-1])
    depths = np.zeros(-(-n_bases // depth_step(n_bases)), np.int64)
    primary, others = (
        count_bases(genome, chunk.offsets, done.both, reads, alignments, depths)
        for reads, alignments in (
            (np.arange(chunk.n_reads), done.mapped),
            (split.reads, split.alignments),
        )
    )
    counts = {
        "split_reads": int(np.unique(split.reads).size),
        "supplementary": int(split.reads.size),
        "aligned_bases": primary.aligned + others.aligned,
        "inserted_bases": primary.inserted + others.inserted,
        "edits": primary.edits + others.edits,
        "reference_bases": n_bases,
        "depths": depths,
    }
    return counts, primary.spans


def add_counts(statistics: dict, counts: dict) -> None:
    """Add the counts of a chunk to those of its run, in place."""
    sums = {key: statistics[key] for key in statistics if key not in _NO_SUMS}
    _add(sums, counts)
    statistics |= sums
    # It is the same for the run; a chunk of single reads has none.
    statistics["insert_size"] = statistics["insert_size"] or counts["insert_size"]
    statistics["reference_bases"] = counts["reference_bases"]
    statistics["depths"] = _depths([statistics, counts])


def _stages(done: MappedChunk, n_mapped: int) -> dict[str, int]:
    gapped = np.count_nonzero(~done.hits.gapless)
    confident = np.count_nonzero((done.primary.qualities >= 30) & (done.mapped.positions >= 0))
    scored = done.hits.gapless.size
    n_reads = done.chunk.n_reads - done.chunk.n_orphans
    counts = (n_reads, *done.searched, scored, gapped, n_mapped, confident)
    return dict(zip(STAGES, map(int, counts), strict=True))


def _add(counts: dict, more: dict) -> None:
    """Add counts, elementwise for lists and dictionaries."""
    for key, value in counts.items():
        if isinstance(value, dict):
            _add(value, more[key])
        elif isinstance(value, list):
            counts[key] = [old + new for old, new in zip(value, more[key], strict=True)]
        else:
            counts[key] = value + more[key]


def _depths(parts: Iterable[dict]) -> np.ndarray:
    """Return the sums of depths, which are empty if nothing was mapped."""
    some = [counts["depths"] for counts in parts if len(counts["depths"])]
    return sum(map(np.asarray, some), np.int64(0)) if some else np.empty(0, np.int64)


def _insert_sizes(positions: np.ndarray, spans: np.ndarray, proper: np.ndarray) -> np.ndarray:
    """Return the number of proper pairs per bin of insert sizes."""
    starts = positions.reshape(-1, 2)[proper[::2]]
    stops = starts + spans.reshape(-1, 2)[proper[::2]]
    # By columns, because a reduction along an axis of two takes ten times as long.
    sizes = np.maximum(stops[:, 0], stops[:, 1]) - np.minimum(starts[:, 0], starts[:, 1])
    bins = np.minimum(sizes // INSERT_BIN, INSERT_BINS - 1)
    return np.bincount(bins, minlength=INSERT_BINS)


def statistics_sentence(statistics: dict) -> str:
    """Return the counts as a sentence, with pairs and duplicates if they apply."""
    parts = [counted(statistics["reads"], "read"), f"{statistics['mapped']:,} mapped"]
    if statistics["paired"]:
        parts.append(f"{statistics['properly_paired']:,} properly paired")
    if statistics["duplicates"] is not None:
        parts.append(counted(statistics["duplicates"], "duplicate"))
    return ", ".join(parts)


def few_mapped(reads: int, mapped: int) -> str | None:
    """Return a warning if so few reads are mapped that they may be from another genome, or None."""
    if mapped >= FEW_MAPPED * reads:
        return None
    share = 100 * mapped / reads
    return (
        f"only {mapped:,} of {counted(reads, 'read')} ({share:.1f} %) are mapped: check that the "
        "reads are from this reference"
    )


def statistics_text(statistics: dict) -> str:
    """Return the counts as JSON, with each list on one line."""
    text = json.dumps(statistics, indent=1, default=np.ndarray.tolist)
    return (
        re.sub(r"\[[^][{}]*\]", lambda found: "[" + " ".join(found[0][1:-1].split()) + "]", text)
        + "\n"
    )


def read_statistics(path: str | os.PathLike) -> dict:
    """Read the counts that `bwarp map --stats` wrote.

    Raises
    ------
    InputError
        If the file is something else.
    """
    with open(path, "rb") as file:
        content = file.read()
    try:
        statistics = json.loads(content)
        whole = all(_alike(statistics[key], like) for key, like in empty_statistics().items())
    except (ValueError, TypeError, KeyError):
        whole = False
    if not whole:
        raise InputError(f"{path}: not statistics of bwarp map: map these reads again")
    return statistics


def _alike(value, like) -> bool:
    """Return whether a value has the type and keys of another; insert sizes may be None."""
    if isinstance(like, list):
        whole = not like or len(value) == len(like)
        return whole and all(type(count) is int for count in value)
    if isinstance(like, dict):
        return list(value) == list(like) and all(type(value[name]) is int for name in like)
    return type(value) is int or like is None


def statistics_of_parts(parts: list[dict]) -> dict:
    """Return the counts of a unit mapped in parts, before its duplicates are searched."""
    if len(parts) == 1:
        return parts[0]
    unit = empty_statistics()
    for counts in parts:
        add_counts(unit, counts)
    return unit


def merged_statistics(units: dict[str, dict], duplicates: int | None) -> dict:
    """Return the sums of the units' counts, and under `units` the counts of each unit.

    Insert sizes are given per unit, and depths, which are many, only for the sum.

    `duplicates` is the number found among all units, or None if only those within units are marked.
    """
    merged = {key: none for key, none in empty_statistics().items() if key not in _NO_SUMS}
    for statistics in units.values():
        _add(merged, statistics)
    reference_bases = max(statistics["reference_bases"] for statistics in units.values())
    of_units = [statistics["duplicates"] for statistics in units.values()]
    if duplicates is None and None not in of_units:
        duplicates = sum(of_units)
    merged |= {
        "duplicates": duplicates,
        "reference_bases": reference_bases,
        "depths": _depths(units.values()),
    }
    alone = {
        name: {key: value for key, value in statistics.items() if key != "depths"}
        for name, statistics in units.items()
    }
    return merged | {"units": alone}
