"""Hits of k-mers that come batch after batch, on one engine or on several GPUs."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.io.names import Names
from bwarp.offtargets.pam import Pam
from bwarp.reference import Reference
from bwarp.runtime.turns import in_turns
from bwarp.seeding.hits import FoundSeeds, SeedHits, SeedOptions
from bwarp.seeding.kmers import KmerBatch
from bwarp.seeding.sites import count_sites, find_sites, is_beside_pam

__all__ = ["count_in_batches", "find_in_batches"]

NamedKmers = tuple[KmerBatch, Names]


def find_in_batches(
    indexes: Sequence[FMIndex],
    batches: Iterable[NamedKmers],
    options: SeedOptions,
    backend: str,
    threads: int,
    pam: Pam | None,
    reference: Reference,
) -> Iterator[tuple[NamedKmers, Iterator[FoundSeeds]]]:
    """Every batch with what `bwarp.seeding.sites.find_sites` finds of it, in order.

    Parameters
    ----------
    indexes : sequence
        What `bwarp.runtime.turns.on_each_gpu` has prepared.
    batches : iterable of (KmerBatch, Names)
    pam : Pam, optional
        Only hits beside it count.
    """

    def search(index: FMIndex, batch: NamedKmers) -> Iterator[FoundSeeds | SeedHits]:
        kmers, _ = batch
        is_site = is_beside_pam(reference, pam, kmers) if pam else None
        # Hits are handed on where they are asked for on a GPU: behind what they belong to.
        for found in find_sites(index, kmers, options, backend, threads, is_site):
            yield replace(found, hits=iter(()))
            yield from found.hits

    for batch, results in in_turns(search, indexes, batches):
        yield batch, _with_hits(results)


def count_in_batches(
    indexes: Sequence[FMIndex],
    batches: Iterable[NamedKmers],
    options: SeedOptions,
    backend: str,
    threads: int,
    pam: Pam | None,
    reference: Reference,
) -> Iterator[tuple[NamedKmers, np.ndarray]]:
    """Every batch with how many sites each k-mer has; the parameters of `find_in_batches`."""

    def search(index: FMIndex, batch: NamedKmers) -> Iterator[np.ndarray]:
        kmers, _ = batch
        is_site = is_beside_pam(reference, pam, kmers) if pam else None
        yield count_sites(index, kmers, options, backend, threads, is_site)

    for batch, [counts] in in_turns(search, indexes, batches):
        yield batch, counts


def _with_hits(results: Iterator[FoundSeeds | SeedHits]) -> Iterator[FoundSeeds]:
    """Each with its hits, which are those that follow it."""
    following = deque([next(results, None)])
    while (found := following.popleft()) is not None:
        yield replace(found, hits=_hits_before_next(results, following))


def _hits_before_next(results: Iterator, following: deque) -> Iterator[SeedHits]:
    for one in results:
        if isinstance(one, FoundSeeds):
            following.append(one)
            return
        yield one
    following.append(None)
