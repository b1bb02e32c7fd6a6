"""Parameters of an index, defaults that depend on its size, and the sizes of its parts."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bwarp.index.chunks import ChunkedIndex
from bwarp.index.fm_index import FMIndex
from bwarp.options.mapping import INDEX
from bwarp.reference import Reference


@dataclass(frozen=True)
class IndexParameters:
    """`occ_rate` is q of the paper, `sa_rate` its p; `prefix_length` 0 means no prefix table."""

    occ_rate: int
    sa_rate: int
    prefix_length: int


def choose_parameters(
    text_length: int,
    occ_rate: int = INDEX["occ_rate"].default,
    sa_rate: int = INDEX["sa_rate"].default,
    prefix_length: int | str | None = None,
) -> IndexParameters:
    """Check the given parameters; choose the prefix length by the text length if it is not given.

    The default is the longest table of at most about two bytes per base, up to 13: it saves the
    most random reads per search and still fits the cache of a GPU.
    """
    INDEX["occ_rate"].check(occ_rate)
    INDEX["sa_rate"].check(sa_rate)
    prefix_length = INDEX["prefix_length"].check(prefix_length)
    if prefix_length is None:
        prefix_length = 4
        while prefix_length < 13 and 8 * 4 ** (prefix_length + 1) <= 2.2 * text_length:
            prefix_length += 1
    return IndexParameters(occ_rate, sa_rate, prefix_length)


# The size of an index: bytes of each part, next to those from the formulas of the paper.


@dataclass(frozen=True)
class PartSize:
    """Bytes of a part; `formula` is the paper's, None for parts that the paper lacks."""

    name: str
    size: int
    formula: int | None
    on_gpu: str


def part_sizes(index: FMIndex) -> list[PartSize]:
    """Return the parts of an index with their sizes.

    The formulas are those of Liu & Schmidt for a text G of n bases and numbers of ceil(log2 n)
    bits: 4 n ceil(log2 n) / q + 2 n bits for ROcc and B of one direction, n ceil(log2 n) / p for
    RSA.
    """
    n = index.forward.n_rows
    bits = max(1, (n - 1).bit_length())
    one_direction = round((4 * n * bits / index.occ_rate + 2 * n) / 8)
    suffixes = round(n * bits / index.sa_rate / 8)
    bwts = [PartSize("forward BWT", _bwt_bytes(index.forward), one_direction, "yes")]
    if index.has_reverse:
        bwts.append(PartSize("reverse BWT", _bwt_bytes(index.reverse), one_direction, "yes"))
    return [
        *bwts,
        PartSize("suffix array", index.suffix_array.nbytes, suffixes, "to locate there"),
        PartSize("prefix table", index.prefix_table.nbytes, None, "yes"),
        PartSize("packed genome", _genome_bytes(index.reference), None, "yes"),
    ]


def size_table(index: FMIndex | ChunkedIndex) -> str:
    """Return a readable table: parameters, and the bytes and the paper's formula for each part.

    The parts of an index in chunks are those of all chunks together.
    """
    indexes = index.indexes if isinstance(index, ChunkedIndex) else [index]
    n = sum(one.forward.n_rows for one in indexes)
    reference = index.reference
    parts = [_sum_of(same) for same in zip(*map(part_sizes, indexes), strict=True)]
    if isinstance(index, ChunkedIndex):
        genome = parts.pop()
        parts.append(replace(genome, size=genome.size + _genome_bytes(reference)))
    total = PartSize(
        "total", sum(part.size for part in parts), sum(part.formula or 0 for part in parts), ""
    )
    lines = [
        f"contigs {len(reference.names):,}   bases {reference.n_bases:,}   "
        f"segments {reference.n_segments:,}   rows {n:,}"
        + (f"   chunks {len(indexes):,}" if isinstance(index, ChunkedIndex) else ""),
        f"occ_rate (q) {indexes[0].occ_rate}   sa_rate (p) {indexes[0].sa_rate}   "
        f"prefix_length {indexes[0].prefix_length}",
        "",
        f"{'part':<18}{'bytes':>16}{'a base':>9}{'paper':>16}   on a GPU",
    ]
    for part in [*parts, total]:
        paper = "-" if part.formula is None else f"{part.formula:,}"
        lines.append(
            f"{part.name:<18}{part.size:>16,}{part.size / n:>9.3f}{paper:>16}   {part.on_gpu}"
            .rstrip()
        )  # fmt: skip
    return "\n".join(lines)


def parse_size_table(table: str) -> list[PartSize]:
    """Return the parts in the output of `size_table`, without their total."""
    rows = re.findall(r"^([A-Za-z ]{18}) +([\d,]+) +[\d.]+ +([\d,]+|-)(.*)$", table, re.MULTILINE)
    return [
        PartSize(name.strip(), _number(size), _number(formula), on_gpu.strip())
        for name, size, formula, on_gpu in rows
        if name.strip() != "total"
    ]


def _number(text: str) -> int | None:
    return None if text == "-" else int(text.replace(",", ""))


def _sum_of(parts: Sequence[PartSize]) -> PartSize:
    """Return the sum of the same part of several indexes."""
    formula = sum(part.formula or 0 for part in parts)
    return replace(
        parts[0],
        size=sum(part.size for part in parts),
        formula=None if parts[0].formula is None else formula,
    )


def _genome_bytes(reference: Reference) -> int:
    return reference.packed.nbytes + reference.segment_genome.nbytes + 8 * reference.n_segments


def _bwt_bytes(bwt) -> int:
    return bwt.blocks.nbytes + bwt.separator_rows.nbytes
