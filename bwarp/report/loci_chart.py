"""Draw how many loci the reads of allmap have, and the edits of the best one."""

from itertools import zip_longest

from bwarp.allmap.find import Certificate
from bwarp.counted import counted
from bwarp.report.charts import COLOURS, GREY, Bar, bar_chart
from bwarp.report.page import section

#: Loci with at least this many edits share a colour.
_MANY_EDITS = 5


def loci_chart(certificate: Certificate) -> str:
    """Return the section of a page with a bar for each number of loci."""
    strata = certificate.reads_by_loci
    rows = [list(row) for row in zip_longest(*strata, fillvalue=0)]
    single = 100 * sum(rows[0] if rows else []) / (certificate.reads or 1)
    few = [
        counted(edits, "edit") + " or more" * (edits == _MANY_EDITS)
        for edits in range(min(len(strata), _MANY_EDITS + 1))
    ]
    bars = [Bar("no locus", [0] * len(few) + [certificate.without], f"{certificate.without:,}")]
    for power, row in enumerate(rows):
        counts = [*row[:_MANY_EDITS], *([sum(row[_MANY_EDITS:])] if len(few) > _MANY_EDITS else [])]
        bars.append(Bar(_numbers(power), [*counts, 0], f"{sum(row):,}"))
    return section(
        "Loci per read",
        bar_chart(bars, dict(zip([*few, "no locus"], [*COLOURS[: len(few)], GREY], strict=True))),
        f"{single:.2f} % of {counted(certificate.reads, 'read')} have a single locus.",
        "Reads by their number of loci, or of pairs for reads in proper pairs; the colours are the "
        "edits of the best one. Reads over the limit of loci are included.",
    )


def _numbers(power: int) -> str:
    """Return the numbers of loci of a bar: 1, 2, 3 to 4, 5 to 8, and so on."""
    if power < 2:
        return counted(power + 1, "locus")
    return f"{2 ** (power - 1) + 1:,} to {counted(2**power, 'locus')}"
