"""Search a genome for all sites of guides, stretch by stretch and in order."""

from collections.abc import Iterator

import numpy as np

from bwarp.offtargets.guides import Guides, Pam
from bwarp.offtargets.hits import SiteHits, SiteOptions, joined_hits, taken_hits
from bwarp.offtargets.search import each_once, in_order_of_sites, search_of
from bwarp.reference import Reference, make_reference

#: The maximum distance of the start of a site from the start of its PAM.
_FARTHEST = 64


def find_sites(
    reference: Reference,
    guides: Guides,
    pam: Pam,
    options: SiteOptions,
    threads: int = 1,
    backend: str = "cpu",
    stretch: int | None = None,
) -> Iterator[tuple[int, SiteHits]]:
    """Find all sites of guides, as defined in `bwarp.offtargets`.

    PAMs of several lengths are searched length by length; a site found with two of them is listed
    once.

    Parameters
    ----------
    stretch : int, optional
        Positions searched at a time, a multiple of 64; by default `stretch_to_search`.

    Yields
    ------
    done : int
        Positions of the genome searched so far.
    hits : SiteHits
        Hits sorted by start, guide, length, strand and rank. Later hits do not begin before these.
    """
    searches = [search_of(reference, guides, one, options) for one in pam.by_length()]
    ordered = in_order_of_sites if len(searches) == 1 else each_once
    # Together they take no more memory than one.
    stretch = -(-(stretch or stretch_to_search(backend)) // (64 * len(searches))) * 64
    end = searches[0].end
    found = zip(
        *(_engine(backend).search_stretches(search, threads, stretch) for search in searches),
        strict=True,
    )
    waiting = None
    for first, parts in zip(range(0, end, stretch), found, strict=True):
        done = min(first + stretch, end)
        hits = parts[0] if len(parts) == 1 else each_once(joined_hits(parts))
        if waiting is not None:
            # Later hits begin after all waiting ones.
            border = int(np.searchsorted(hits.starts, first + _FARTHEST))
            head = joined_hits([waiting, taken_hits(hits, slice(0, border))])
            rest = taken_hits(hits, slice(border, None))
            hits = joined_hits([ordered(head), rest])
        n_final = hits.count
        if done < end:
            n_final = int(np.searchsorted(hits.starts, done - _FARTHEST))
        waiting = taken_hits(hits, slice(n_final, None))
        yield min(done, reference.n_bases), taken_hits(hits, slice(0, n_final))


def stretch_to_search(backend: str) -> int:
    """Return the number of positions to search at a time.

    Raises
    ------
    GpuMemoryError
        If the GPU has too little memory for even a few.
    """
    return _engine(backend).stretch_to_search()


def search_one_site(guides: Guides, pam: Pam, options: SiteOptions, backend: str) -> int:
    """Search a genome that is a single site of the first guide; return the number of hits.

    This loads all kernels of a search on a GPU, for example while the real genome is read.
    """
    n_hits = 0
    for one in pam.by_length():
        # The lowest bit of a letter is one of its bases.
        beside = np.bitwise_count((one.allowed[0] & -one.allowed[0]) - np.uint8(1))
        guide = guides.codes[0, : guides.lengths[0]]
        site = np.concatenate([guide, beside] if pam.side == 3 else [beside, guide])
        reference = make_reference(("site",), np.array([0, site.size]), site)
        for _, hits in find_sites(reference, guides, one, options, 1, backend, 64):
            n_hits += hits.count
    return n_hits


def _engine(backend: str):
    if backend == "cuda":
        from bwarp.offtargets import find_cuda

        return find_cuda
    from bwarp.offtargets import find_cpu

    return find_cpu
