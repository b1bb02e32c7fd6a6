"""Find the products of primer pairs: binding sites, pairs of sites, and their output tables."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

import numpy as np

from bwarp.errors import UsageError
from bwarp.index.chunks import PreparedChunks
from bwarp.index.fm_index import FMIndex
from bwarp.io.atomic_output import atomic_files
from bwarp.primers.pairs import DIRECTIONS, PrimerPairs
from bwarp.reference import Reference, codes_between
from bwarp.seeding.find import find_sites
from bwarp.seeding.hits import SeedHits, SeedOptions
from bwarp.seeding.queries import batches_with_variants
from bwarp.seeding.seed_tables import sibling
from bwarp.sequence import decode, reverse_complement

#: Pairs searched at a time.
PAIRS_AT_ONCE = 512

_FORWARD, _REVERSE = 0, 1


@dataclass(frozen=True)
class ProductOptions:
    """Limits of products: options of `bwarp primers` (`bwarp.options.finding`).

    Raises
    ------
    UsageError
        If the minimum length is greater than the maximum.
    """

    mismatches: int = 2
    last: int = 15
    min_product: int = 1
    max_product: int = 4000
    with_itself: bool = False

    def __post_init__(self):
        if self.min_product > self.max_product:
            raise UsageError(
                f"--min-product {self.min_product} is greater than --max-product {self.max_product}"
            )


@dataclass(frozen=True)
class Products:
    """Products sorted by pair, start, end and left primer.

    Attributes
    ----------
    pairs : ndarray, shape=(n,), dtype=int64
    starts, ends : ndarray, shape=(n,), dtype=int64
        In the genome.
    left, right : ndarray, shape=(n,), dtype=uint8
        The primers: 0 forward, 1 reverse.
    left_mismatches, right_mismatches : ndarray, shape=(n,), dtype=uint8
    """

    pairs: np.ndarray
    starts: np.ndarray
    ends: np.ndarray
    left: np.ndarray
    right: np.ndarray
    left_mismatches: np.ndarray
    right_mismatches: np.ndarray

    @property
    def count(self) -> int:
        return len(self.pairs)


@dataclass(frozen=True)
class _Sites:
    """Binding sites on one strand, sorted by primer and position."""

    primers: np.ndarray
    positions: np.ndarray
    mismatches: np.ndarray


def find_products(
    index: FMIndex | PreparedChunks,
    reference: Reference,
    pairs: PrimerPairs,
    options: ProductOptions,
    backend: str,
    threads: int = 1,
) -> Iterator[tuple[Products, np.ndarray]]:
    """Find all products of pairs, several pairs at a time.

    Parameters
    ----------
    index : FMIndex or PreparedChunks
        As prepared by `bwarp.seeding.find.prepare`.

    Yields
    ------
    products : Products
    n_sites : ndarray, shape=(2 * pairs, ), dtype=int64
        The number of binding sites of each primer of these pairs.
    """
    for first in range(0, pairs.count, PAIRS_AT_ONCE):
        part = pairs.part(first, first + PAIRS_AT_ONCE)
        plus, minus = _binding_sites(index, reference, part, options, backend, threads)
        n_sites = sum(
            np.bincount(sites.primers, minlength=2 * part.count) for sites in (plus, minus)
        )
        products = _products(part, plus, minus, reference, options)
        yield Products(products.pairs + first, *list(vars(products).values())[1:]), n_sites


def _binding_sites(index, reference, pairs, options, backend, threads) -> list[_Sites]:
    """Return the sites of primers on the forward and the reverse strand."""
    seeds = SeedOptions(options.mismatches, max_hits=0)
    allowed = pairs.last_bases(options.last)
    found = []
    for kmers in batches_with_variants(pairs.sequences()):

        def is_site(hits: SeedHits, kmers=kmers) -> np.ndarray:
            """Return whether no base at the 3' end is a mismatch."""
            return _ends_match(
                reference, allowed[kmers.queries[hits.kmers]], hits.positions.astype(np.int64),
                kmers.lengths[hits.kmers].astype(np.int64), hits.strands == 0,
            )  # fmt: skip

        for one in find_sites(index, kmers, seeds, backend, threads, is_site):
            for hits in one.hits:
                primers = kmers.queries[hits.kmers]
                found.append((primers, hits.positions, hits.mismatches, hits.strands))
    nothing = [np.empty(0, dtype) for dtype in (np.int64, np.uint32, np.uint8, np.uint8)]
    columns = [np.concatenate(column) for column in zip(nothing, *found, strict=True)]
    primers, positions, mismatches, strands = columns
    of_strands = []
    for strand in range(2):
        rows = np.flatnonzero(strands == strand)
        order = rows[np.lexsort((positions[rows], primers[rows]))]
        of_strands.append(
            _Sites(primers[order], positions[order].astype(np.int64), mismatches[order])
        )
    return of_strands


def _ends_match(reference, allowed, positions, lengths, forward) -> np.ndarray:
    """Return whether the last bases of every site are allowed, starting at the 3' end."""
    from_end = np.arange(allowed.shape[1])
    last = np.where(forward, positions + lengths - 1, positions)[:, None]
    at = np.where(forward[:, None], last - from_end, last + from_end)
    # For shorter primers, bases next to the site are read as well; all of them are allowed.
    at = np.clip(at, 0, reference.n_bases - 1)
    shift = (62 - 2 * (at & 31)).astype(np.uint64)
    codes = (reference.packed[at >> 5] >> shift & np.uint64(3)).astype(np.uint8)
    codes = np.where(forward[:, None], codes, 3 - codes)
    return (allowed >> codes & 1).all(axis=1)


def _products(pairs, plus: _Sites, minus: _Sites, reference, options) -> Products:
    lengths = pairs.lengths
    parts = []
    for pair in range(pairs.count):
        for left in (_FORWARD, _REVERSE):
            for right in (_FORWARD, _REVERSE):
                if left == right and not options.with_itself:
                    continue
                parts.append(_facing(pair, left, right, plus, minus, lengths, reference, options))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.lexsort((columns[3], columns[2], columns[1], columns[0]))
    return Products(*(column[order] for column in columns))


def _facing(pair, left, right, plus, minus, lengths, reference, options) -> tuple:
    """Return the columns of the products of a left and a right primer of a pair."""
    begin, end = np.searchsorted(plus.primers, [2 * pair + left, 2 * pair + left + 1])
    first, last = np.searchsorted(minus.primers, [2 * pair + right, 2 * pair + right + 1])
    starts = plus.positions[begin:end]
    ends = minus.positions[first:last] + lengths[2 * pair + right]
    least = max(options.min_product, int(lengths[2 * pair : 2 * pair + 2][[left, right]].max()))
    contigs = reference.contig_of(starts)
    # Up to the end of the contig.
    most = np.minimum(starts + options.max_product, reference.contig_starts[contigs + 1])
    low = np.searchsorted(ends, starts + least)
    high = np.maximum(np.searchsorted(ends, most, side="right"), low)
    lefts = np.repeat(np.arange(starts.size), high - low)
    before = np.cumsum(high - low) - (high - low)
    rights = np.arange(lefts.size) - np.repeat(before - low, high - low)
    return (
        np.full(lefts.size, pair, np.int64),
        starts[lefts],
        ends[rights],
        np.full(lefts.size, left, np.uint8),
        np.full(lefts.size, right, np.uint8),
        plus.mismatches[begin:end][lefts],
        minus.mismatches[first:last][rights],
    )


# Output: products as TSV, BED or FASTA, and OUT.pairs.tsv with the result of every pair.


ENDINGS = {".tsv": "tsv", ".bed": "bed", ".fa": "fasta", ".fasta": "fasta"}
PRODUCTS_HEADER = (
    "pair\tcontig\tstart\tend\tlength\tstrand\tleft\tright\tleft_mismatches\tright_mismatches\n"
)
_PAIRS_HEADER = "pair\tforward\treverse\tforward_sites\treverse_sites\tproducts\n"


def layout_of(path: str | os.PathLike) -> str:
    """Return the layout for the extension of an output file."""
    name = str(path).removesuffix(".gz")
    for ending, layout in ENDINGS.items():
        if name.endswith(ending):
            return layout
    if name == "-":
        return "tsv"
    raise UsageError(f"{path}: the output must end in .tsv, .bed or .fa, or one with .gz")


def product_tables_at(path: str | os.PathLike) -> list[str | os.PathLike]:
    """Return the files that a run with this output writes, the products last."""
    return [path] if str(path) == "-" else [sibling(path, "pairs"), path]


class ProductTables:
    """Open tables of products and of pairs.

    Attributes
    ----------
    n_products, n_pairs : int
        Products so far, and pairs that have some.
    """

    def __init__(self, file: IO, of_pairs: IO | None, layout: str, pairs, reference):
        self.n_products = self.n_pairs = 0
        self._file, self._of_pairs, self._layout = file, of_pairs, layout
        self._pairs: PrimerPairs = pairs
        self._reference: Reference = reference
        self._done = 0
        if layout == "tsv":
            file.write(PRODUCTS_HEADER)
        if of_pairs is not None:
            of_pairs.write(_PAIRS_HEADER)

    def add(self, products: Products, n_sites: np.ndarray) -> None:
        """Write the products of the next pairs, with the numbers of sites of their primers."""
        self._file.write("".join(self._lines(products)))
        n_pairs = n_sites.size // 2
        counts = np.bincount(products.pairs - self._done, minlength=n_pairs)
        if self._of_pairs is not None:
            for i in range(n_pairs):
                pair = self._done + i
                cells = (
                    self._pairs.names[pair], *self._pairs.primers[2 * pair : 2 * pair + 2],
                    *n_sites[2 * i : 2 * i + 2], counts[i],
                )  # fmt: skip
                self._of_pairs.write("\t".join(map(str, cells)) + "\n")
        self._done += n_pairs
        self.n_products += products.count
        self.n_pairs += int(np.count_nonzero(counts))

    def _lines(self, products: Products) -> Iterator[str]:
        contigs = self._reference.contig_of(products.starts)
        begins = self._reference.contig_starts[contigs]
        for contig, begin, pair, start, end, left, right, m_left, m_right in zip(
            contigs.tolist(), begins.tolist(),
            *(column.tolist() for column in vars(products).values()), strict=True,
        ):  # fmt: skip
            name, on = self._pairs.names[pair], self._reference.names[contig]
            # If both are the same primer, either strand is valid.
            strand = "-" if left > right else "+"
            first, last = start - begin, end - begin
            if self._layout == "tsv":
                yield (
                    f"{name}\t{on}\t{first}\t{last}\t{end - start}\t{strand}\t{DIRECTIONS[left]}\t"
                    f"{DIRECTIONS[right]}\t{m_left}\t{m_right}\n"
                )
            elif self._layout == "bed":
                yield f"{on}\t{first}\t{last}\t{name}\t{m_left + m_right}\t{strand}\n"
            else:
                codes = codes_between(self._reference, start, end)
                if strand == "-":
                    codes = reverse_complement(codes)
                yield f">{name}:{on}:{first}-{last}:{strand} {end - start} bases, "
                yield f"{DIRECTIONS[left]} and {DIRECTIONS[right]} primer\n"
                yield decode(codes).decode() + "\n"


@contextmanager
def open_product_tables(
    path: str | os.PathLike, pairs: PrimerPairs, reference: Reference
) -> Iterator[ProductTables]:
    """Open the tables; they appear, the products last, if the block ends without an error.

    Standard output (``-``) has no table of pairs.
    """
    with atomic_files(product_tables_at(path), "w") as (*siblings, file):
        (of_pairs,) = siblings or [None]
        yield ProductTables(file, of_pairs, layout_of(path), pairs, reference)
