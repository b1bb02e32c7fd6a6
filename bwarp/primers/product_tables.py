"""Products as TSV, BED or FASTA, and OUT.pairs.tsv: what became of every pair."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import numpy as np

from bwarp.errors import UsageError
from bwarp.io.atomic_output import atomic_files
from bwarp.primers.pairs import PrimerPairs
from bwarp.primers.products import Products
from bwarp.reference import Reference, codes_between
from bwarp.seeding.output.seed_tables import sibling
from bwarp.sequence import decode, reverse_complement

__all__ = ["ENDINGS", "ProductTables", "layout_of", "open_product_tables", "product_tables_at"]

ENDINGS = {".tsv": "tsv", ".bed": "bed", ".fa": "fasta", ".fasta": "fasta"}
_HEADER = (
    "pair\tcontig\tstart\tend\tlength\tstrand\tleft\tright\tleft_mismatches\tright_mismatches\n"
)
_PAIRS_HEADER = "pair\tforward\treverse\tforward_sites\treverse_sites\tproducts\n"
_DIRECTIONS = ("forward", "reverse")


def layout_of(path: str | os.PathLike) -> str:
    """The layout that an output's ending names."""
    name = str(path).removesuffix(".gz")
    for ending, layout in ENDINGS.items():
        if name.endswith(ending):
            return layout
    if name == "-":
        return "tsv"
    raise UsageError(f"{path}: the ending says no format: use .tsv, .bed or .fa, or one with .gz")


def product_tables_at(path: str | os.PathLike) -> list[str | os.PathLike]:
    """The files that a run with this output writes, the products last."""
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
            file.write(_HEADER)
        if of_pairs is not None:
            of_pairs.write(_PAIRS_HEADER)

    def add(self, products: Products, n_sites: np.ndarray) -> None:
        """Write the products of the next pairs, whose primers bind at so many sites."""
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
            # Where both are the same primer either strand would do.
            strand = "-" if left > right else "+"
            first, last = start - begin, end - begin
            if self._layout == "tsv":
                yield (
                    f"{name}\t{on}\t{first}\t{last}\t{end - start}\t{strand}\t{_DIRECTIONS[left]}\t"
                    f"{_DIRECTIONS[right]}\t{m_left}\t{m_right}\n"
                )
            elif self._layout == "bed":
                yield f"{on}\t{first}\t{last}\t{name}\t{m_left + m_right}\t{strand}\n"
            else:
                codes = codes_between(self._reference, start, end)
                if strand == "-":
                    codes = reverse_complement(codes)
                yield f">{name}:{on}:{first}-{last}:{strand} {end - start} bases, "
                yield f"{_DIRECTIONS[left]} and {_DIRECTIONS[right]} primer\n"
                yield decode(codes).decode() + "\n"


@contextmanager
def open_product_tables(
    path: str | os.PathLike, pairs: PrimerPairs, reference: Reference
) -> Iterator[ProductTables]:
    """Tables to write; they appear, the products last, when the block ends well.

    Standard output (``-``) has no table of pairs.
    """
    with atomic_files(product_tables_at(path), "w") as (*siblings, file):
        (of_pairs,) = siblings or [None]
        yield ProductTables(file, of_pairs, layout_of(path), pairs, reference)
