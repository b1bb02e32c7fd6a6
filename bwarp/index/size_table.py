"""What an index takes: each part's bytes, beside what the paper's formulas give."""

from bwarp.index.fm_index import FMIndex

__all__ = ["size_table"]


def size_table(index: FMIndex) -> str:
    """A table for people: parameters, bytes of every part, the paper's formula, what a GPU takes.

    The formulas are Liu & Schmidt's, for a text G of n bases with numbers of ceil(log2 n) bits:
    4 n ceil(log2 n) / q + 2 n bits for ROcc and B of one direction, n ceil(log2 n) / p for RSA.
    """
    n = index.forward.n_rows
    bits = max(1, (n - 1).bit_length())
    one_direction = round((4 * n * bits / index.occ_rate + 2 * n) / 8)
    reference = index.reference
    rows = [
        ("forward transform", _transform_bytes(index.forward), one_direction, "yes"),
        ("reverse transform", _transform_bytes(index.reverse), one_direction, "yes"),
        (
            "suffix array",
            index.suffix_array.nbytes,
            round(n * bits / index.sa_rate / 8),
            "to locate there",
        ),
        ("prefix table", index.prefix_table.nbytes, None, "yes"),
        (
            "packed genome",
            reference.packed.nbytes + reference.segment_genome.nbytes + 8 * reference.n_segments,
            None,
            "yes",
        ),
    ]
    total = ("total", sum(row[1] for row in rows), sum(row[2] or 0 for row in rows), "")
    lines = [
        f"contigs {len(reference.names):,}   bases {reference.n_bases:,}   "
        f"segments {reference.n_segments:,}   rows {n:,}",
        f"occ_rate (q) {index.occ_rate}   sa_rate (p) {index.sa_rate}   "
        f"prefix_length {index.prefix_length}",
        "",
        f"{'part':<18}{'bytes':>16}{'a base':>9}{'paper':>16}   on a GPU",
    ]
    for name, size, formula, on_gpu in [*rows, total]:
        paper = f"{formula:,}" if formula is not None else "-"
        lines.append(f"{name:<18}{size:>16,}{size / n:>9.3f}{paper:>16}   {on_gpu}".rstrip())
    return "\n".join(lines)


def _transform_bytes(transform) -> int:
    return transform.blocks.nbytes + transform.separator_rows.nbytes
