"""The distance between the ends of pairs, estimated once from a run's first pairs, as bwa does."""

from dataclasses import dataclass

import numpy as np

from bwarp.mapping.extension_cpu import Places

__all__ = ["FIRST_PAIRS", "InsertSize", "clear_distances", "insert_size_of", "template_ends"]

#: How many pairs of a run the estimate is made from, whatever the chunks they come in.
FIRST_PAIRS = 1 << 15

#: Fewer confident pairs than this say nothing.
LEAST_PAIRS = 25

#: Pairs farther apart are of two places.
LARGEST = 10_000


@dataclass(frozen=True)
class InsertSize:
    """Outer distance of pairs whose ends point at each other.

    Attributes
    ----------
    mean, deviation : float
    lowest, highest : int
        A pair whose distance is within is a proper pair. 0 and 0 where nothing is known.
    """

    mean: float
    deviation: float
    lowest: int
    highest: int


def clear_distances(
    places: Places, lengths: np.ndarray, contig_starts: np.ndarray, most_pairs: int
) -> np.ndarray:
    """Distances of the pairs of which both ends have one clearly best place and face each other.

    Only the first `most_pairs` pairs are looked at.

    Parameters
    ----------
    places : Places
        Of reads that are pairs: 2 i and 2 i + 1 are the ends of template i.
    lengths : ndarray, shape=(n_reads,), dtype=int64
    contig_starts : ndarray, shape=(n_contigs + 1,), dtype=int64

    Returns
    -------
    distances : ndarray, dtype=int64
        From the one read's first base to the other's, both included.
    """
    firsts, counts = places.offsets[:-1], np.diff(places.offsets)
    clear = counts > 0
    several = np.flatnonzero(counts > 1)
    second = places.scores[firsts[several] + 1]
    clear[several] = second <= 0.8 * places.scores[firsts[several]]
    templates = np.flatnonzero((clear[0::2] & clear[1::2])[:most_pairs])
    one, two = firsts[2 * templates], firsts[2 * templates + 1]
    starts, ends = template_ends(places, lengths)
    facing = places.strands[one] != places.strands[two]
    left = np.where(places.strands[one] == 0, one, two)
    right = np.where(places.strands[one] == 0, two, one)
    distances = ends[right] - starts[left]
    contig = np.searchsorted(contig_starts, places.starts[one], side="right")
    facing &= contig == np.searchsorted(contig_starts, places.starts[two], side="right")
    return distances[facing & (distances > 0) & (distances < LARGEST)]


def insert_size_of(distances: np.ndarray) -> InsertSize:
    """Mean, deviation and limits from distances of clear pairs, outliers left out as bwa does."""
    if distances.size < LEAST_PAIRS:
        return InsertSize(0.0, 0.0, 0, 0)
    sizes = np.sort(distances)
    low, high = sizes[sizes.size // 4], sizes[sizes.size * 3 // 4]
    inside = sizes[(sizes >= low - 2 * (high - low)) & (sizes <= high + 2 * (high - low))]
    mean, deviation = float(inside.mean()), max(float(inside.std()), 1.0)
    lowest = min(low - 3 * (high - low), round(mean - 4 * deviation))
    highest = max(high + 3 * (high - low), round(mean + 4 * deviation))
    return InsertSize(mean, deviation, max(1, int(lowest)), int(highest))


def template_ends(places: Places, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each place's whole read would begin and end, clipped bases included."""
    starts = places.starts - places.read_starts
    return starts, places.ends + lengths[places.reads] - places.read_ends
