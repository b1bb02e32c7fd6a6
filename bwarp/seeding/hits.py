"""Hits: where k-mers lie, and which k-mers have too many to list."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bwarp.errors import UsageError
from bwarp.options.finding import SEEDS
from bwarp.seeding.columns import joined, taken

__all__ = [
    "FoundSeeds",
    "SeedHits",
    "SeedOptions",
    "check_options",
    "merge_hits",
    "over_limit",
]


@dataclass(frozen=True)
class SeedOptions:
    """What is searched for.

    Attributes
    ----------
    mismatches : int
        The most substitutions, at any position, from 0 to 4.
    max_hits : int
        A k-mer with more hits on both strands together is counted but not located; 0: no limit.
    algorithm : str
        How inexact matches are found: ``"schemes"``, or the paper's ``"backtracking"``.
    locate : str
        Where SA rows become positions: ``"cpu"``, ``"gpu"``, the paper's ``"hybrid"`` (LF steps on
        the GPU, look-ups on the CPU), or ``"auto"``.
    """

    mismatches: int = 0
    max_hits: int = 128
    algorithm: str = "schemes"
    locate: str = "auto"


@dataclass(frozen=True)
class SeedHits:
    """Hits in the order of their k-mers, strands and positions.

    Attributes
    ----------
    kmers : ndarray, shape=(n,), dtype=uint32
        The number of the k-mer in its batch.
    strands : ndarray, shape=(n,), dtype=uint8
        0: the k-mer itself lies there; 1: its reverse complement.
    positions : ndarray, shape=(n,), dtype=uint32
        Genome position of the hit's leftmost base.
    mismatches : ndarray, shape=(n,), dtype=uint8
    """

    kmers: np.ndarray
    strands: np.ndarray
    positions: np.ndarray
    mismatches: np.ndarray

    @property
    def count(self) -> int:
        return len(self.kmers)


@dataclass(frozen=True)
class FoundSeeds:
    """The outcome of a search of k-mers of one length.

    Attributes
    ----------
    over_kmers : ndarray, dtype=uint32
        The k-mers over the limit, in order.
    over_counts : ndarray, dtype=int64
        How many hits each of them has.
    hits : iterator of SeedHits
        All hits of the others, a part at a time: they may be far too many to hold at once.
    """

    over_kmers: np.ndarray
    over_counts: np.ndarray
    hits: Iterator[SeedHits]


def check_options(options: SeedOptions, backend: str) -> None:
    """Refuse what cannot be searched for with a backend, ``"cpu"`` or ``"cuda"``."""
    for name in ("mismatches", "max_hits", "algorithm", "locate"):
        SEEDS[name].check(getattr(options, name))
    if backend == "cpu" and options.locate in ("gpu", "hybrid"):
        raise UsageError(
            f"locate {options.locate} needs a GPU, and the backend is cpu: use --locate cpu"
        )


def over_limit(counts: np.ndarray, max_hits: int) -> np.ndarray:
    """The numbers of the k-mers with more hits than the limit, if there is one, dtype int64."""
    return np.flatnonzero(counts > max_hits) if max_hits else np.empty(0, np.int64)


def merge_hits(streams: list[Iterator[SeedHits]]) -> Iterator[SeedHits]:
    """The hits of searches of different k-mers, each in order, as one stream in order.

    Holds one part of every stream at a time.
    """
    streams = list(streams)
    heads = [_next_part(stream) for stream in streams]
    while any(head is not None for head in heads):
        # Nothing of the k-mers up to this one can be in a part still to come.
        last = min(int(head.kmers[-1]) for head in heads if head is not None)
        ready = []
        for i, head in enumerate(heads):
            if head is None:
                continue
            cut = int(np.searchsorted(head.kmers, last, side="right"))
            ready.append(taken(head, slice(0, cut)))
            whole = cut == head.count
            heads[i] = _next_part(streams[i]) if whole else taken(head, slice(cut, None))
        merged = joined(ready)
        yield taken(merged, np.argsort(merged.kmers, kind="stable"))


def _next_part(stream: Iterator[SeedHits]) -> SeedHits | None:
    return next((part for part in stream if part.count), None)
