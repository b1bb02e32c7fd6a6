"""Hits as sites: those of a degenerate query's variants once each, and those beside a PAM alone.

What counts is known only after hits were located, so the limit of hits is applied here.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from bwarp.index.fm_index import FMIndex
from bwarp.offtargets.pam import Pam
from bwarp.reference import Reference
from bwarp.seeding.columns import joined, taken
from bwarp.seeding.find import count_seeds, find_in_passes
from bwarp.seeding.hits import FoundSeeds, SeedHits, SeedOptions, over_limit
from bwarp.seeding.kmers import KmerBatch

__all__ = ["count_sites", "find_sites", "is_beside_pam"]


def find_sites(
    index: FMIndex,
    kmers: KmerBatch,
    options: SeedOptions,
    backend: str,
    threads: int = 1,
    is_site: Callable[[SeedHits], np.ndarray] | None = None,
) -> Iterator[FoundSeeds]:
    """As `bwarp.seeding.find.find_in_passes`, of which it takes all but the last argument.

    Parameters
    ----------
    kmers : KmerBatch
        With `variants` or without.
    is_site : function, optional
        Which hits count, a bool each.
    """
    if kmers.variants is None and is_site is None:
        yield from find_in_passes(index, kmers, options, backend, threads)
        return
    searched = kmers if kmers.variants is None else kmers.variants
    numbers = np.arange(kmers.count) if kmers.variants is None else searched.queries
    without_limit = replace(options, max_hits=0)
    found = find_in_passes(index, searched, without_limit, backend, threads)
    for hits in _by_kmer(found, numbers, is_site):
        sites = _once_each(hits)
        counts = np.bincount(sites.kmers)
        over = over_limit(counts, options.max_hits)
        listed = taken(sites, ~np.isin(sites.kmers, over))
        yield FoundSeeds(
            over.astype(np.uint32), counts[over], iter([listed] if listed.count else [])
        )


def count_sites(
    index: FMIndex,
    kmers: KmerBatch,
    options: SeedOptions,
    backend: str,
    threads: int = 1,
    is_site: Callable[[SeedHits], np.ndarray] | None = None,
) -> np.ndarray:
    """How many sites every k-mer has, whatever the limit; shape=(kmers.count,), dtype=int64."""
    if kmers.variants is None and is_site is None:
        return count_seeds(index, kmers, options, backend, threads)
    counts = np.zeros(kmers.count, np.int64)
    without_limit = replace(options, max_hits=0)
    for found in find_sites(index, kmers, without_limit, backend, threads, is_site):
        for hits in found.hits:
            counts += np.bincount(hits.kmers, minlength=kmers.count)
    return counts


def _by_kmer(
    found: Iterator[FoundSeeds], numbers: np.ndarray, is_site: Callable | None
) -> Iterator[SeedHits]:
    """The hits that count under new numbers, those of one in one part."""
    waiting: list[SeedHits] = []
    for one in found:
        for hits in one.hits:
            hits = replace(hits, kmers=numbers[hits.kmers].astype(np.uint32))
            if is_site is not None:
                hits = taken(hits, is_site(hits))
            if hits.count == 0:
                continue
            last = hits.kmers[-1]
            begun = int(np.searchsorted(hits.kmers, last))
            if begun or (waiting and waiting[-1].kmers[-1] != last):
                yield joined([*waiting, taken(hits, slice(0, begun))])
                waiting = []
            waiting.append(taken(hits, slice(begun, None)))
    if waiting:
        yield joined(waiting)


def _once_each(hits: SeedHits) -> SeedHits:
    """Every site once, with its fewest mismatches; in the order of k-mers, strands, positions."""
    order = np.lexsort((hits.mismatches, hits.positions, hits.strands, hits.kmers))
    hits = taken(hits, order)
    new = np.ones(hits.count, bool)
    new[1:] = (
        (np.diff(hits.kmers.astype(np.int64)) != 0)
        | (np.diff(hits.strands.astype(np.int64)) != 0)
        | (np.diff(hits.positions.astype(np.int64)) != 0)
    )
    return taken(hits, new)


def is_beside_pam(
    reference: Reference, pam: Pam, kmers: KmerBatch
) -> Callable[[SeedHits], np.ndarray]:
    """A function that says which hits of k-mers have a PAM beside them, a bool each."""
    starts = reference.segment_genome.astype(np.int64)
    stops = starts + np.diff(reference.segment_text) - 1
    by_length = pam.by_length()

    def is_beside(pam: Pam, hits: SeedHits) -> np.ndarray:
        positions = hits.positions.astype(np.int64)
        lengths = kmers.lengths[hits.kmers].astype(np.int64)
        forward = hits.strands == 0
        behind = forward == (pam.side == 3)
        at = np.where(behind, positions + lengths, positions - pam.length)
        segment = np.searchsorted(stops, positions, side="right")
        inside = (at >= starts[segment]) & (at + pam.length <= stops[segment])
        # What lies elsewhere is looked at as well, wherever that is.
        bases = np.clip(at[:, None] + np.arange(pam.length), 0, reference.n_bases - 1)
        shift = (62 - 2 * (bases & 31)).astype(np.uint64)
        codes = (reference.packed[bases >> 5] >> shift & np.uint64(3)).astype(np.uint8)
        fits = [
            (allowed[None] >> codes[:, None] & 1).all(axis=2).any(axis=1)
            for allowed in (pam.allowed, pam.on_other_strand())
        ]
        return inside & np.where(forward, *fits)

    return lambda hits: np.any([is_beside(one, hits) for one in by_length], axis=0)
