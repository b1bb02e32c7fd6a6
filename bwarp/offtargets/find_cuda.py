"""Search for sites on a GPU, one stretch of the genome at a time, for any size of GPU memory.

    host     words of the stretch -> GPU
    GPU      planes | list of sites | pairs of a site and a guide that may fit | aligned pairs
    host     pairs -> rows, in threads, while the GPU searches the next stretch

Sites are listed twice, once per reading direction. Lists have space for the hits of most stretches.
If one is too short, it is enlarged; if memory does not allow that, sites or guides are split in
half and searched one half after the other.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import numpy as np

from bwarp.gpu.available_memory import free_memory, require_memory
from bwarp.gpu.cuda import cuda
from bwarp.gpu.device_arrays import columns, number_at
from bwarp.gpu.launch import launch
from bwarp.gpu.transfers import to_gpu, to_host
from bwarp.offtargets import pam_sites_cuda
from bwarp.offtargets import pam_sites_cuda as alignments_cuda
from bwarp.offtargets.find_cpu import all_alignments, guide_planes
from bwarp.offtargets.hits import SiteHits
from bwarp.offtargets.pam_sites_cpu import BACKWARD, FORWARD, MARGIN
from bwarp.offtargets.pam_sites_cuda import (
    AlignedPairs,
    GuidePlanes,
    PamRules,
    Segments,
    Sites,
    Stretch,
    align_pairs,
    list_sites,
)
from bwarp.offtargets.search import ROW, Search, hits_of_rows
from bwarp.offtargets.site_filter_cuda import (
    BLOCK_SITES,
    FEW_BASES,
    GUIDES_A_BLOCK,
    THREADS,
    GuidesToFilter,
    SitesToFilter,
    filter_kernel,
)
from bwarp.reads.base_bits_cuda import blocks_of_packed
from bwarp.runtime.chunks import in_order
from bwarp.runtime.timeline import on_timeline

#: The maximum and minimum number of positions searched at a time: multiples of 64.
MOST_POSITIONS = 1 << 27
FEWEST_POSITIONS = 1 << 20

#: Bytes per position if every one is a site: words, planes, and the border and bases of a site.
_BYTES_A_POSITION = 6

#: The initial capacity of lists of pairs, and the bytes of a pair in all lists.
PAIRS = 1 << 22
_BYTES_A_PAIR = 8 + 17

#: Bytes of 32 bases in a word of the packed genome, and in a block of planes.
_WORD = 32


def stretch_to_search() -> int:
    """Return the number of positions to search at a time, which fit into half of GPU memory."""
    free = free_memory()
    positions = MOST_POSITIONS
    while positions > FEWEST_POSITIONS and 2 * _BYTES_A_POSITION * positions > free:
        positions >>= 1
    require_memory(_BYTES_A_POSITION * positions + _BYTES_A_PAIR * PAIRS, "the search")
    return positions


def search_stretches(search: Search, threads: int, stretch: int) -> Iterator[SiteHits]:
    """Yield the hits of every stretch of the genome, in order; see `find_cpu`."""
    engine = _Engine(search, threads)
    found = (
        engine.search(first, min(first + stretch, search.end))
        for first in range(0, search.end, stretch)
    )
    return in_order(partial(_hits_of_parts, search), found, threads)


@dataclass(frozen=True)
class _Pairs:
    """Aligned pairs of a site and a guide, on the host."""

    direction: int
    origin: int
    columns: AlignedPairs


@on_timeline("sort hits")
def _hits_of_parts(search: Search, parts: list[_Pairs]) -> SiteHits:
    rows = [_rows(search, part) for part in parts]
    return hits_of_rows(np.concatenate([np.empty(0, ROW), *rows]), search)


def _rows(search: Search, pairs: _Pairs) -> np.ndarray:
    """Return the pairs that have an alignment, dtype `ROW`."""
    found = pairs.columns
    fits = np.flatnonzero(found.edits & 255 != 255)
    borders = found.borders[fits] + np.int64(pairs.origin)
    guides, edits = found.guides[fits], found.edits[fits]
    if search.options.all_alignments:
        return all_alignments(search, pairs.direction, borders, guides, found.rooms[fits])
    rows = np.zeros(fits.size, ROW)
    rows["border"] = borders
    rows["guide"] = guides
    rows["gaps"] = found.gaps[fits]
    rows["direction"] = pairs.direction
    rows["mismatches"] = edits
    rows["dna"] = edits >> 8
    rows["rna"] = edits >> 16
    return rows


class _Engine:
    """A search on the GPU: its permanent data, and lists that grow as needed."""

    def __init__(self, search: Search, threads: int):
        self._search, self._threads = search, threads
        options = search.options
        self._n_bases = int(search.lengths.max()) + options.dna_bulge
        limits = options.mismatches, options.dna_bulge, options.rna_bulge
        self._fit_sites = filter_kernel(*limits, self._n_bases <= FEW_BASES)
        self._segments = Segments(
            *map(cuda.to_device, (search.segment_starts, search.segment_stops))
        )
        self._lengths = cuda.to_device(search.lengths)
        self._planes = [
            GuidePlanes(*map(cuda.to_device, guide_planes(codes)), self._lengths)
            for codes in search.codes
        ]
        self._guides = [cuda.to_device(_two_bits_a_base(codes)) for codes in search.codes]
        # Without a PAM there is no base to read, but GPU arrays cannot be empty.
        self._pams = [
            PamRules(
                cuda.to_device(np.append(np.ascontiguousarray(allowed).ravel(), np.uint8(15))),
                *allowed.shape,
                direction == FORWARD,
                search.least,
            )
            for direction, allowed in enumerate(search.allowed)
        ]
        self._n_listed = cuda.device_array(1, np.uint32)
        self._n_fitting = cuda.device_array(1, np.uint64)
        self._sites = None
        self._make_room_for_pairs(PAIRS)

    def _make_room_for_pairs(self, count: int) -> None:
        self._found = None
        self._found = cuda.device_array(count, np.uint64)

    @on_timeline("search a stretch on the GPU")
    def search(self, first: int, last: int) -> list[_Pairs]:
        """Return the pairs of sites whose PAM begins from `first` up to, but excluding, `last`."""
        origin = first - MARGIN
        n_bases = last + MARGIN - origin
        (words,) = to_gpu([self._words(origin, n_bases)], self._threads)
        blocks = blocks_of_packed(words, n_bases, np.empty((0, 2), np.int64))
        parts = []
        for direction in (BACKWARD, FORWARD):
            n_sites = self._list_sites(Stretch(blocks, origin), first, last, direction)
            n_guides = self._search.lengths.size
            for n_found in self._fitting(blocks, direction, (0, n_sites), (0, n_guides)):
                parts.append(self._align(blocks, direction, origin, n_found))
        return parts

    def _words(self, origin: int, n_bases: int) -> np.ndarray:
        """Return the packed bases of a stretch; positions outside the genome are A."""
        packed = self._search.packed
        begin, end = origin // _WORD, -(-(origin + n_bases) // _WORD)
        inside = packed[max(begin, 0) : min(end, packed.size)]
        if inside.size == end - begin:
            return inside
        words = np.zeros(end - begin, np.uint64)
        at = max(-begin, 0)
        words[at : at + inside.size] = inside
        return words

    def _list_sites(self, stretch: Stretch, first: int, last: int, direction: int) -> int:
        positions = last - first
        if self._sites is None:
            # A PAM of two bases occurs at every 16th position, on both strands together.
            self._make_room_for_sites(max(positions >> 3, BLOCK_SITES))
        while True:
            self._n_listed.copy_to_device(np.zeros(1, np.uint32))
            list_sites[launch(-(-positions // _WORD), pam_sites_cuda.THREADS)](
                stretch, first, last, self._segments, self._pams[direction], self._sites,
                self._n_listed,
            )  # fmt: skip
            count = number_at(self._n_listed, 0)
            if count <= self._sites.borders.size:
                return count
            self._make_room_for_sites(min(count + count // 8, positions))

    def _make_room_for_sites(self, count: int) -> None:
        self._sites = None
        self._sites = columns(Sites, count)

    def _fitting(self, blocks, direction: int, sites: tuple, guides: tuple) -> Iterator[int]:
        """List the pairs that may fit, all at once or in parts; yield their current number."""
        n_sites, n_guides = sites[1] - sites[0], guides[1] - guides[0]
        if n_sites == 0:
            return
        n_blocks = -(-n_sites // BLOCK_SITES) * -(-n_guides // GUIDES_A_BLOCK)
        self._n_fitting.copy_to_device(np.zeros(1, np.uint64))
        self._fit_sites[n_blocks, THREADS](
            blocks,
            SitesToFilter(self._sites.borders, *sites, direction == BACKWARD, self._n_bases),
            GuidesToFilter(self._guides[direction], self._lengths, *guides),
            self._found,
            self._n_fitting,
        )
        count = number_at(self._n_fitting, 0)
        if count <= self._found.size:
            if count:
                yield count
            return
        more = count + count // 8
        if more * _BYTES_A_PAIR < free_memory() // 2:
            self._make_room_for_pairs(more)
            yield from self._fitting(blocks, direction, sites, guides)
            return
        if n_sites > BLOCK_SITES or n_guides == 1:
            halves = [(half, guides) for half in _halves(*sites)]
        else:
            halves = [(sites, half) for half in _halves(*guides)]
        for half in halves:
            yield from self._fitting(blocks, direction, *half)

    def _align(self, blocks, direction: int, origin: int, n_found: int) -> _Pairs:
        pairs = columns(AlignedPairs, n_found)
        align_pairs[launch(n_found, alignments_cuda.THREADS)](
            blocks, self._sites, direction == BACKWARD, self._planes[direction],
            self._search.options, self._found, n_found, pairs,
        )  # fmt: skip
        return _Pairs(direction, origin, AlignedPairs(*to_host(pairs, self._threads)))


def _halves(first: int, last: int) -> tuple:
    middle = (first + last) // 2
    return (first, middle), (middle, last)


def _two_bits_a_base(codes: np.ndarray) -> np.ndarray:
    """Return two words per guide, the first with 32 bases, base 0 in the lowest bits."""
    words = np.zeros((len(codes), 2), np.uint64)
    for i in range(codes.shape[1]):
        words[:, i // _WORD] |= codes[:, i].astype(np.uint64) << np.uint64(2 * (i % _WORD))
    return words.ravel()
