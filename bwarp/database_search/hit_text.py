"""Write hits as a table, and their alignments in BLAST's tabular format (m8)."""

import numpy as np

from bwarp.alignment.pairs import DELETION, EQUAL, INSERTION, Alignments, sums_of_cigars

#: The columns of the table, and those with E-values.
COLUMNS = ("query", "target", "score", "query_end", "target_end")
SIGNIFICANCE = ("evalue", "bits")


def hit_lines(query_names: list[str], target_names: list[str], columns: list[np.ndarray]) -> str:
    """Format lines of query, target and the columns; floats have three significant digits."""
    texts = [
        [f"{v:.3g}" for v in column.tolist()]
        if column.dtype.kind == "f"
        else [str(v) for v in column.tolist()]
        for column in columns
    ]
    rows = zip(query_names, target_names, *texts, strict=True)
    return "".join(["\t".join(row) + "\n" for row in rows])


def blast_lines(
    query_names: list[str],
    target_names: list[str],
    alignments: Alignments,
    expected: np.ndarray,
    bits: np.ndarray,
) -> str:
    """Format BLAST's tabular output: identity, length, mismatches, gaps, 1-based ends, E-value,
    bits.
    """
    lengths = (alignments.cigar >> 4).astype(np.int64)
    operations = alignments.cigar & 15
    gaps = (operations == DELETION) | (operations == INSERTION)
    columns, identical, gap_residues, openings = (
        sums_of_cigars(values, alignments.cigar_offsets)
        for values in (lengths, lengths * (operations == EQUAL), lengths * gaps, gaps)
    )
    mismatches = columns - identical - gap_residues
    lines = []
    for i, (query, target) in enumerate(zip(query_names, target_names, strict=True)):
        identity = 100 * identical[i] / columns[i]
        lines.append(
            f"{query}\t{target}\t{identity:.3f}\t{columns[i]}\t{mismatches[i]}\t{openings[i]}\t"
            f"{alignments.query_starts[i] + 1}\t{alignments.query_ends[i]}\t"
            f"{alignments.reference_starts[i] + 1}\t{alignments.reference_ends[i]}\t"
            f"{blast_evalue(float(expected[i]))}\t{bits[i]:.1f}\n"
        )
    return "".join(lines)


def blast_evalue(value: float) -> str:
    """Format an E-value as in BLAST tables."""
    if value < 1e-180:
        return "0.0"
    if value < 0.0009:
        return f"{value:.2e}"
    if value < 10:
        return f"{value:.3f}" if value < 1 else f"{value:.1f}"
    return f"{value:.0f}"
