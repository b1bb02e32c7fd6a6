"""Orientation and insert size of pairs, estimated once per run as in bwa, or given.

The first base of a read is its 5' end, on either strand. The insert size of a pair is the distance
from the first base of read 1 to that of read 2, in the direction in which read 1 is read:

    FR  1 ====>           <==== 2     other strand, ahead     the usual one
    RF  <==== 1           2 ====>     other strand, behind    mate pairs
    FF  1 ====>           2 ====>     same strand, ahead
    RR  2 ====>           1 ====>     same strand, behind
"""

import json
import math
import os
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bwarp.errors import InputError
from bwarp.mapping.parameters import MappingParameters
from bwarp.mapping.scored_hits_cpu import ScoredHits
from bwarp.options.common import ORIENTATIONS
from bwarp.runtime.compiled_code import compiled

#: Minimum number of unambiguous pairs for an estimate.
LEAST_PAIRS = 25

#: Maximum insert size: ends farther apart are not from one template.
LARGEST = 10_000

#: Scores of pairs are in fractions, so that the more likely insert size breaks ties.
SCORE_UNITS = 256


class InsertSize(NamedTuple):
    """Orientation and insert size of the pairs of a run.

    Attributes
    ----------
    mean, standard_deviation : float
    lowest, highest : int
        Bounds of the insert size of proper pairs; both 0 if unknown.
    orientation : int
        Index in `ORIENTATIONS`.
    """

    mean: float
    standard_deviation: float
    lowest: int
    highest: int
    orientation: int = 0


def unambiguous_insert_sizes(
    hits: ScoredHits, lengths: np.ndarray, contig_starts: np.ndarray, most_pairs: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return insert sizes and orientations of pairs with one clearly best hit for both ends.

    Only the first `most_pairs` pairs are considered.

    Parameters
    ----------
    hits : ScoredHits
        Hits of paired reads: 2 i and 2 i + 1 are the ends of template i.
    lengths : ndarray, shape=(n_reads,), dtype=int64
    contig_starts : ndarray, shape=(n_contigs + 1,), dtype=int64

    Returns
    -------
    insert_sizes, orientations : ndarray, dtype=int64
    """
    firsts, counts = hits.offsets[:-1], np.diff(hits.offsets)
    clear = counts > 0
    several = np.flatnonzero(counts > 1)
    second = hits.scores[firsts[several] + 1]
    clear[several] = second <= 0.8 * hits.scores[firsts[several]]
    templates = np.flatnonzero((clear[0::2] & clear[1::2])[:most_pairs])
    one, two = firsts[2 * templates], firsts[2 * templates + 1]
    starts = hits.starts - hits.read_starts
    ends = hits.ends + lengths[hits.reads] - hits.read_ends
    five_primes = np.where(hits.strands == 0, starts, ends)
    return sizes_of_pairs(one, two, hits.strands, hits.starts, five_primes, contig_starts)


def sizes_of_pairs(
    one: np.ndarray,
    two: np.ndarray,
    strands: np.ndarray,
    starts: np.ndarray,
    five_primes: np.ndarray,
    contig_starts: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return insert sizes, below `LARGEST`, and orientations of pairs of hits on the same contig.

    Parameters
    ----------
    one, two : ndarray, shape=(n_pairs,), dtype=int64
        The hits of both ends, as indices of the following arrays.
    strands, starts, five_primes : ndarray, shape=(n_hits,)
        `five_primes` are the positions of the first bases of the reads.
    """
    ahead = (five_primes[two] - five_primes[one]) * np.where(strands[one] == 0, 1, -1)
    orientations = 2 * (strands[one] == strands[two]) + (ahead < 0)
    sizes = np.abs(ahead)
    contigs = np.searchsorted(contig_starts, starts[[one, two]], side="right")
    counted = (contigs[0] == contigs[1]) & (sizes > 0) & (sizes < LARGEST)
    return sizes[counted], orientations[counted]


def insert_size_of(
    insert_sizes: np.ndarray, orientations: np.ndarray, orientation: str | None = None
) -> InsertSize:
    """Estimate from unambiguous pairs of the most common orientation, or of the given one.

    Outliers are excluded as in bwa.
    """
    if orientation is None:
        number = int(np.bincount(orientations, minlength=len(ORIENTATIONS)).argmax())
    else:
        number = ORIENTATIONS.index(orientation)
    sizes = np.sort(insert_sizes[orientations == number])
    if sizes.size < LEAST_PAIRS:
        return InsertSize(0.0, 0.0, 0, 0, number)
    low, high = sizes[sizes.size // 4], sizes[sizes.size * 3 // 4]
    inside = sizes[(sizes >= low - 2 * (high - low)) & (sizes <= high + 2 * (high - low))]
    mean, sd = float(inside.mean()), max(float(inside.std()), 1.0)
    lowest = min(low - 3 * (high - low), round(mean - 4 * sd))
    highest = max(high + 3 * (high - low), round(mean + 4 * sd))
    return InsertSize(mean, sd, max(1, int(lowest)), int(highest), number)


def insert_size_of_parts(
    parts: Iterable[tuple[np.ndarray, np.ndarray]], orientation: str | None
) -> InsertSize:
    """Do what `insert_size_of` does, with insert sizes and orientations in parts."""
    nothing = (np.empty(0, np.int64), np.empty(0, np.int64))
    return insert_size_of(*map(np.concatenate, zip(nothing, *parts, strict=True)), orientation)


def given_insert_size(parameters: MappingParameters) -> InsertSize | None:
    """Return the insert size given by the user or estimated earlier, or None.

    Proper pairs are within four standard deviations of a given mean. Hi-C reads have no proper
    pairs.
    """
    if parameters.hic:
        return InsertSize(0.0, 0.0, 0, 0)
    if parameters.insert_size is None:
        return parameters.estimated_insert_size
    mean, sd = map(float, parameters.insert_size)
    lowest, highest = (max(1, round(mean + 4 * sign * sd)) for sign in (-1, 1))
    number = ORIENTATIONS.index(parameters.orientation or "FR")
    return InsertSize(mean, sd, lowest, highest, number)


@lru_cache(maxsize=1)
def insert_size_scores(insert: InsertSize, match: int) -> np.ndarray:
    """Return the score that each insert size, from `lowest` to `highest`, adds to a pair.

    As in bwa, it is the base-4 logarithm of the probability of a size at least as far from the
    mean.

    Returns
    -------
    scores : ndarray, shape=(highest - lowest + 1,), dtype=int64
        In units of 1 / `SCORE_UNITS`.
    """
    scores = []
    for size in range(insert.lowest, insert.highest + 1):
        far = abs(size - insert.mean) / insert.standard_deviation
        # Beyond 37 standard deviations erfc is 0.
        likely = math.log(max(2.0 * math.erfc(far * math.sqrt(0.5)), 1e-300)) / math.log(4.0)
        scores.append(round(likely * match * SCORE_UNITS))
    return np.array(scores, np.int64)


@compiled(inline="always")
def mate_lies(orientation, is_second, strand):
    """Return the strand of the mate, and whether it starts to the right (1) or left (-1)."""
    same = orientation >> 1
    side = -1 if orientation & 1 else 1
    # Seen from read 2, a mate on the same strand lies in the opposite direction.
    if same and is_second:
        side = -side
    return (strand if same else 1 - strand), (side if strand == 0 else -side)


@compiled(inline="always")
def five_prime(strand, start, end, read_start, read_end, length):
    """Return the position of a read's first base, clipped or not; both engines use it."""
    return end + length - read_end if strand else start - read_start


@compiled(inline="always")
def mate_window(orientation, is_second, strand, first_base, lowest, highest, mate_length):
    """Return the strand of the mate of a hit, and its lowest diagonal in a proper pair.

    The highest diagonal is ``highest - lowest`` more. Both engines use it.
    """
    mate_strand, side = mate_lies(orientation, is_second, strand)
    low = first_base + lowest if side > 0 else first_base - highest
    return mate_strand, low - mate_length if mate_strand else low


# --------------------------------------------------------------------------------------------------
# The insert size of a unit in a JSON file: estimated once, for all jobs that map parts of it.


def insert_size_text(insert: InsertSize) -> str:
    """Return an insert size as JSON, with the name of its orientation."""
    named = insert._asdict() | {"orientation": ORIENTATIONS[insert.orientation]}
    return json.dumps(named, indent=1) + "\n"


def read_insert_size(path: str | os.PathLike) -> InsertSize:
    """Read a file that `insert_size_text` was written to.

    Raises
    ------
    InputError
        If the file is something else.
    """
    kinds = {"mean": float, "standard_deviation": float, "lowest": int, "highest": int}
    try:
        named = json.loads(Path(path).read_bytes())
        orientation = ORIENTATIONS.index(named.pop("orientation"))
        insert = InsertSize(**named, orientation=orientation)
        whole = {name: type(value) for name, value in named.items()} == kinds
        whole &= all(0 <= value < 1 << 31 for value in named.values())
        whole &= insert.lowest <= insert.highest
        # Either all values are known, or none.
        whole &= insert.standard_deviation >= (insert.highest > 0)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        whole = False
    if not whole:
        raise InputError(
            f"{path}: not an insert size of bwarp map-insert-size or bwarp allmap-insert-size: "
            "make it again"
        )
    return insert
