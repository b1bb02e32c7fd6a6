"""bwarp.find_products: the products of primer pairs, as bwarp primers finds them."""

import os
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from bwarp.api.engine import prepared, threads_or_all
from bwarp.api.index import Index, arrays_of
from bwarp.api.sequences import given_sequences, is_file
from bwarp.api.tables import frame, named
from bwarp.errors import InputError
from bwarp.options.finding import PRIMERS
from bwarp.primers import products
from bwarp.primers.pairs import DIRECTIONS, PrimerPairs, pairs_of, read_pairs
from bwarp.primers.products import PRODUCTS_HEADER, ProductOptions, Products
from bwarp.reference import Reference
from bwarp.seeding.find import prepare
from bwarp.seeding.hits import SeedOptions

#: A file of pairs, or pairs in memory.
Pairs = str | os.PathLike | Iterable | Mapping

PRODUCTS = PRODUCTS_HEADER.split()


def find_products(
    index: Index | str | os.PathLike,
    pairs: Pairs,
    *,
    mismatches: int = 2,
    last: int = 15,
    min_product: int = 1,
    max_product: int = 4000,
    with_itself: bool = False,
    backend: str = "auto",
    threads: int | None = None,
) -> pd.DataFrame:
    """Find every product of primer pairs in a genome (in-silico PCR).

    Parameters
    ----------
    index : Index, or the folder of one
        With the reverse BWT if there may be mismatches.
    pairs : path, or pairs in memory
        A table as for bwarp primers, or a forward and a reverse primer per pair, from 5' to 3':
        the pairs of a list are named 0, 1, ...; those of a dict by its keys.
    mismatches : int, default: 2
        Maximum number of mismatches per primer, 0 to 4.
    last : int, default: 15
        Number of bases at the 3' end of a primer that must match.
    min_product, max_product : int, default: 1 and 4000
        Minimum and maximum length of a product, with both primers.
    with_itself : bool, default: False
        Also find products of the forward or the reverse primer with itself.
    backend : {"auto", "cpu", "cuda"}
        Engine to use.
    threads : int, optional
        Number of threads; by default all that this process may use.

    Returns
    -------
    products : DataFrame
        Columns pair, contig, start, end, length, strand, left, right, left_mismatches and
        right_mismatches: the rows of OUT.tsv of bwarp primers, in the same order.

    Raises
    ------
    InputError
        If a primer is too short or too long, has other letters than those of IUPAC, or stands for
        too many sequences, or if the index lacks the reverse BWT.
    """
    limits = ProductOptions(
        PRIMERS["mismatches"].check(mismatches),
        PRIMERS["last"].check(last),
        PRIMERS["min_product"].check(min_product),
        PRIMERS["max_product"].check(max_product),
        with_itself,
    )
    threads = threads_or_all(threads)
    given = _pairs_of(pairs)
    stored = arrays_of(index)
    seeds = SeedOptions(limits.mismatches, max_hits=0)
    engine, ready = prepared(backend, lambda engine: prepare(stored, seeds, engine))
    reference = stored.reference
    found = products.find_products(ready, reference, given, limits, engine, threads)
    return frame(PRODUCTS, (_columns(part, given, reference) for part, _ in found))


def _pairs_of(given: Pairs) -> PrimerPairs:
    if is_file(given, "pairs"):
        return read_pairs(given)
    names: list[str] = []
    primers: list[str] = []
    for item in given_sequences(given, "pairs"):
        match item.sequence:
            case [str(forward), str(reverse)]:
                names.append(str(item.key))
                primers += forward, reverse
            case _:
                raise InputError(f"{item.where} is not a pair of str: give (forward, reverse)")
    return pairs_of(names, primers, "pairs")


def _columns(found: Products, pairs: PrimerPairs, reference: Reference) -> tuple:
    contigs = reference.contig_of(found.starts)
    begins = reference.contig_starts[contigs]
    return (
        named(pairs.names, found.pairs),
        named(reference.names, contigs),
        found.starts - begins,
        found.ends - begins,
        found.ends - found.starts,
        np.where(found.left > found.right, "-", "+"),
        named(DIRECTIONS, found.left),
        named(DIRECTIONS, found.right),
        found.left_mismatches,
        found.right_mismatches,
    )
