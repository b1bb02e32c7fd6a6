"""Counts of records as the texts of samtools flagstat, idxstats and stats.

The numbers and their format are those of samtools 1.24, including its float32 divisions. Its
sections CHK, GCD and those of barcodes are left out.
"""

import math
from collections.abc import Iterator, Sequence

import numpy as np

from bwarp.bam.header import BamHeader, contig_name
from bwarp.checks import record_counts as rows
from bwarp.checks.checker import CheckedRecords
from bwarp.checks.record_counts import FIRST_READ, LAST_READ, OTHER_READ, Counts

# --------------------------------------------------------------------------------------------------
# flagstat and idxstats.


#: Lines of flagstat: the name, the row of the count, and that of the total of a percentage.
_FLAGSTAT = (
    ("in total (QC-passed reads + QC-failed reads)", rows.READS, None),
    ("primary", rows.PRIMARY, None),
    ("secondary", rows.NOT_PRIMARY, None),
    ("supplementary", rows.SPLIT, None),
    ("duplicates", rows.COPIES, None),
    ("primary duplicates", rows.PRIMARY_COPIES, None),
    ("mapped", rows.MAPPED, rows.READS),
    ("primary mapped", rows.PRIMARY_MAPPED, rows.PRIMARY),
    ("paired in sequencing", rows.IN_PAIRS, None),
    ("read1", rows.FIRST_READS, None),
    ("read2", rows.LAST_READS, None),
    ("properly paired", rows.PROPER_PAIRS, rows.IN_PAIRS),
    ("with itself and mate mapped", rows.BOTH_MAPPED, None),
    ("singletons", rows.SINGLETONS, rows.IN_PAIRS),
    ("with mate mapped to a different chr", rows.OTHER_CONTIG, None),
    ("with mate mapped to a different chr (mapQ>=5)", rows.SURELY_OTHER_CONTIG, None),
)


def flagstat(counts: Counts) -> str:
    """Return the text of samtools flagstat."""
    passed, failed = counts.flags.tolist()
    lines = []
    for name, row, total in _FLAGSTAT:
        shares = ""
        if total is not None:
            shares = f" ({_percent(passed, row, total)} : {_percent(failed, row, total)})"
        lines.append(f"{passed[row]} + {failed[row]} {name}{shares}\n")
    return "".join(lines)


def _percent(flags: list[int], row: int, total: int) -> str:
    if not flags[total]:
        return "N/A"
    return f"{float(_ratio(flags[row], flags[total])) * 100:.2f}%"


def _ratio(one: int, other: int) -> np.float32:
    """Return a quotient as C computes it for a float and an integer; 0 for a divisor of 0."""
    return np.float32(one) / np.float32(other) if other else np.float32(0)


def idxstats(header: BamHeader, counts: Counts) -> str:
    """Return the text of samtools idxstats."""
    contigs = [*zip(header.names, header.lengths, strict=True), (b"*", 0)]
    return "".join(
        f"{contig_name(name)}\t{length}\t{mapped}\t{unmapped}\n"
        for (name, length), (mapped, unmapped) in zip(contigs, counts.contigs.tolist(), strict=True)
    )


# --------------------------------------------------------------------------------------------------
# stats.


#: MultiQC recognises samtools stats by the second line.
_HEAD = (
    "# These are the numbers of samtools stats, counted by bwarp while it wrote the file.\n"
    "# MultiQC looks for: This file was produced by samtools stats\n"
)

#: Share of the pairs, those with the smallest insert sizes, over which insert sizes are averaged.
_MAIN_BULK = np.float32(0.99)

#: Maximum depth with a row of its own in the section COV.
_MOST_COVERAGE = 1000


def stats(checked: CheckedRecords) -> str:
    """Return the text of samtools stats."""
    return _HEAD + "".join(f"{line}\n" for line in _stats_lines(checked))


def _stats_lines(checked: CheckedRecords) -> Iterator[str]:
    counts = checked.counts
    sizes = counts.insert_sizes // 2
    bulk, average, standard_deviation = _insert_size_average(sizes)
    longest = [_longest(checked, read) for read in (FIRST_READ, LAST_READ, OTHER_READ)]
    yield _title("Summary Numbers", "SN")
    yield from _summary(checked, sizes, average, standard_deviation, longest)
    yield from _quality_lines(counts, longest)
    for name, section, read in (("first", "GCF", FIRST_READ), ("last", "GCL", LAST_READ)):
        yield _title(f"GC Content of {name} fragments", section)
        yield from _gc_lines(section, counts.gc[read])
    yield from _base_lines(counts)
    yield _title(
        "Insert sizes", "IS",
        "insert size, pairs total, inward oriented pairs, outward oriented pairs, other pairs",
    )  # fmt: skip
    for size in range(bulk):
        inward, outward, other = sizes[:, size].tolist()
        yield f"IS\t{size}\t{inward + outward + other}\t{inward}\t{outward}\t{other}"
    yield from _length_lines(checked)
    yield _title(
        "Mapping qualities for reads !(UNMAP|SECOND|SUPPL|QCFAIL|DUP)", "MAPQ", "mapq, count"
    )
    for quality, count in enumerate(counts.mapping_qualities.tolist()):
        if count:
            yield f"MAPQ\t{quality}\t{count}"
    yield from _indel_lines(counts)
    yield _title("Coverage distribution", "COV")
    yield from _coverage_lines(checked.coverage)


def _title(name: str, section: str, columns: str = "") -> str:
    columns = f" The columns are: {columns}" if columns else ""
    return f"# {name}. Use `grep ^{section} | cut -f 2-` to extract this part.{columns}"


def _insert_size_average(sizes: np.ndarray) -> tuple[int, float, float]:
    """Return the number of rows of the main bulk of pairs, their mean and standard deviation."""
    totals = sizes.sum(axis=0).tolist()
    count, rows_of_bulk, bulk, total = sum(totals), 0, 0, 0
    for size, pairs in enumerate(totals):
        if pairs:
            rows_of_bulk = size + 1
        bulk += pairs
        total += size * pairs
        if count and bulk / count > _MAIN_BULK:
            rows_of_bulk, count = size + 1, bulk
            break
    average = total / (count or 1)
    variance = 0.0
    for size in range(1, rows_of_bulk):
        variance += totals[size] * (size - average) * (size - average) / (count or 1)
    return rows_of_bulk, average, math.sqrt(variance)


def _longest(checked: CheckedRecords, read: int) -> int:
    """Return the maximum length of reads of a kind, including hard-clipped bases."""
    return max((item >> 3 for item in checked.lengths if item >> 1 & 3 == read), default=0)


def _summary(
    checked: CheckedRecords, sizes: np.ndarray, average: float, standard_deviation: float,
    longest: Sequence[int],
) -> Iterator[str]:  # fmt: skip
    counts = checked.counts
    numbers = counts.numbers.tolist()
    fragments = numbers[rows.FIRST_FRAGMENTS : rows.OTHER_FRAGMENTS + 1]
    lengths = numbers[rows.FIRST_LENGTH : rows.OTHER_LENGTH + 1]
    reads, length = sum(fragments), sum(lengths)
    edits, aligned = numbers[rows.EDITS], numbers[rows.ALIGNED_BASES]
    of_pairs = counts.qualities[:OTHER_READ].sum(axis=(0, 2))
    qualities = int(of_pairs @ np.arange(256))
    inward, outward, other = sizes.sum(axis=1).tolist()
    for name, value, note in (
        ("raw total sequences", reads, "excluding supplementary and secondary reads"),
        ("filtered sequences", 0, ""),
        ("sequences", reads, ""),
        ("is sorted", 1, "sorted by coordinate"),
        ("1st fragments", fragments[FIRST_READ], ""),
        ("last fragments", fragments[LAST_READ], ""),
        ("reads mapped", numbers[rows.MAPPED_PAIRED] + numbers[rows.MAPPED_SINGLE], ""),
        (
            "reads mapped and paired", numbers[rows.MAPPED_PAIRED],
            "paired-end technology bit set + both mates mapped",
        ),
        ("reads unmapped", numbers[rows.UNMAPPED_READS], ""),
        ("reads properly paired", numbers[rows.PROPERLY_PAIRED], "proper-pair bit set"),
        ("reads paired", numbers[rows.PAIRED_READS], "paired-end technology bit set"),
        ("reads duplicated", numbers[rows.DUPLICATES], "PCR or optical duplicate bit set"),
        ("reads MQ0", numbers[rows.QUALITY_0], "mapped and MQ=0"),
        ("reads QC failed", numbers[rows.FAILED], ""),
        ("non-primary alignments", numbers[rows.SECONDARY_RECORDS], ""),
        ("supplementary alignments", numbers[rows.SUPPLEMENTARY_RECORDS], ""),
        ("total length", length, "ignores clipping"),
        ("total first fragment length", lengths[FIRST_READ], "ignores clipping"),
        ("total last fragment length", lengths[LAST_READ], "ignores clipping"),
        ("bases mapped", numbers[rows.MAPPED_LENGTH], "ignores clipping"),
        ("bases mapped (cigar)", aligned, "more accurate"),
        ("bases trimmed", 0, ""),
        ("bases duplicated", numbers[rows.DUPLICATE_LENGTH], ""),
        ("mismatches", edits, "from NM fields"),
        ("error rate", f"{_ratio(edits, aligned):e}", "mismatches / bases mapped (cigar)"),
        ("average length", f"{_ratio(length, reads):.0f}", ""),
        (
            "average first fragment length",
            f"{_ratio(lengths[FIRST_READ], fragments[FIRST_READ]):.0f}", "",
        ),
        (
            "average last fragment length",
            f"{_ratio(lengths[LAST_READ], fragments[LAST_READ]):.0f}", "",
        ),
        ("maximum length", max(longest), ""),
        ("maximum first fragment length", longest[FIRST_READ], ""),
        ("maximum last fragment length", longest[LAST_READ], ""),
        ("average quality", f"{qualities / length if length else 0:.1f}", ""),
        ("insert size average", f"{average:.1f}", ""),
        ("insert size standard deviation", f"{standard_deviation:.1f}", ""),
        ("inward oriented pairs", inward, ""),
        ("outward oriented pairs", outward, ""),
        ("pairs with other orientation", other, ""),
        ("pairs on different chromosomes", numbers[rows.DIFFERENT_CONTIGS] // 2, ""),
        (
            "percentage of properly paired reads (%)",
            f"{_ratio(100 * numbers[rows.PROPERLY_PAIRED], reads):.1f}", "",
        ),
    ):  # fmt: skip
        yield f"SN\t{name}:\t{value}" + (f"\t# {note}" if note else "")


def _quality_lines(counts: Counts, longest: Sequence[int]) -> Iterator[str]:
    found = np.flatnonzero(counts.qualities[:OTHER_READ].any(axis=(0, 2)))
    columns = min(int(found[-1]) if found.size else 0, 254) + 2
    for name, section, read in (("First", "FFQ", FIRST_READ), ("Last", "LFQ", LAST_READ)):
        yield _title(f"{name} Fragment Qualities", section)
        yield (
            "# Columns correspond to qualities and rows to cycles. First column is the cycle "
            "number."
        )
        table = counts.qualities[read, :columns].T
        for cycle in range(longest[read]):
            # Hard-clipped bases have no quality.
            row = table[cycle].tolist() if cycle < len(table) else [0] * columns
            yield "\t".join(map(str, [section, cycle + 1, *row]))


def _gc_lines(section: str, reads: np.ndarray) -> Iterator[str]:
    before = 0
    for share, count in enumerate(reads.tolist()):
        if count != reads[before]:
            percent = (share + before) * 0.5 * 100 / (reads.size - 1)
            yield f"{section}\t{percent:.2f}\t{reads[before]}"
            before = share


#: Codes of A, C, G, T and N in BAM.
_ACGT, _N = [1, 2, 4, 8], 15


def _base_lines(counts: Counts) -> Iterator[str]:
    of_pairs = counts.bases[: 2 * OTHER_READ].reshape(2, 2, -1, 16)
    forward, reverse = of_pairs.sum(axis=0)
    note = "A,C,G,T base counts as a percentage of all A/C/G/T bases [%]"
    more = "; and N and O counts as a percentage of all A/C/G/T bases [%]"
    yield _title("ACGT content per cycle", "GCC", f"cycle; {note}{more}")
    yield from _share_lines("GCC", forward + reverse)
    yield _title("ACGT content per cycle, read oriented", "GCT", f"cycle; {note}")
    oriented = np.zeros_like(forward)
    oriented[:, _ACGT] = forward[:, _ACGT] + reverse[:, _ACGT[::-1]]
    yield from _share_lines("GCT", oriented, others=False)
    for name, table in zip(("first", "last"), of_pairs.sum(axis=1), strict=True):
        shares, totals = f"{name[0].upper()}BC", f"{name[0].upper()}TC"
        fragments = f"for {name} fragments"
        yield _title(f"ACGT content per cycle {fragments}", shares, f"cycle; {note}{more}")
        yield from _share_lines(shares, table)
        yield _title(f"ACGT raw counters {fragments}", totals, "A,C,G,T,N base counters")
        sums = table.sum(axis=0)[[*_ACGT, _N]].tolist()
        yield "\t".join([totals, *map(str, sums)])


def _share_lines(section: str, table: np.ndarray, others: bool = True) -> Iterator[str]:
    """Yield the percentages of A, C, G and T per cycle, and of N and other letters."""
    for cycle, row in enumerate(table.tolist(), 1):
        bases = [row[code] for code in _ACGT]
        total = sum(bases)
        if total:
            if others:
                bases += [row[_N], sum(row) - total - row[_N]]
            shares = (f"{100.0 * count / total:.2f}" for count in bases)
            yield "\t".join([section, str(cycle), *shares])


def _length_lines(checked: CheckedRecords) -> Iterator[str]:
    for name, section, reads in (
        ("", "RL", (FIRST_READ, LAST_READ, OTHER_READ)),
        (" - first fragments", "FRL", (FIRST_READ,)),
        (" - last fragments", "LRL", (LAST_READ,)),
    ):
        yield _title(f"Read lengths{name}", section, "read length, count")
        found: dict[int, int] = {}
        for item, count in checked.lengths.items():
            if item & 1 and item >> 1 & 3 in reads:
                found[item >> 3] = found.get(item >> 3, 0) + count
        for length in sorted(found):
            yield f"{section}\t{length}\t{found[length]}"


def _indel_lines(counts: Counts) -> Iterator[str]:
    yield _title("Indel distribution", "ID", "length, number of insertions, number of deletions")
    for length, (insertions, deletions) in enumerate(counts.indels.T.tolist()):
        if insertions or deletions:
            yield f"ID\t{length}\t{insertions}\t{deletions}"
    yield _title(
        "Indels per cycle", "IC",
        "cycle, number of insertions (fwd), .. (rev) , number of deletions (fwd), .. (rev)",
    )  # fmt: skip
    of_pairs = counts.indel_cycles[:, :OTHER_READ].reshape(4, -1)
    for cycle, numbers in enumerate(of_pairs.T.tolist(), 1):
        if any(numbers):
            yield "\t".join(map(str, ["IC", cycle, *numbers]))


def _coverage_lines(coverage: np.ndarray) -> Iterator[str]:
    for depth, count in enumerate(coverage[1 : _MOST_COVERAGE + 1].tolist(), 1):
        if count:
            yield f"COV\t[{depth}-{depth}]\t{depth}\t{count}"
    more = int(coverage[_MOST_COVERAGE + 1 :].sum())
    if more:
        yield f"COV\t[{_MOST_COVERAGE}<]\t{_MOST_COVERAGE}\t{more}"
