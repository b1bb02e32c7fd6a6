"""The statistics of mapped reads under the names of `samtools stats`, which other programs read."""

from collections.abc import Mapping

__all__ = ["samtools_stats"]

#: MultiQC knows a file of samtools stats by its second line.
_HEAD = (
    "# The summary numbers of samtools stats, which bwarp has counted while it mapped.\n"
    "# MultiQC looks for: This file was produced by samtools stats\n"
)


def samtools_stats(statistics: Mapping) -> str:
    """The section SN of samtools stats, as far as it was counted.

    Parameters
    ----------
    statistics : mapping
        As `bwarp.mapping.output.statistics` makes them.
    """
    counts = statistics
    bases = counts["aligned_bases"] + counts["inserted_bases"]
    numbers = {
        "raw total sequences": counts["reads"],
        "filtered sequences": 0,
        "sequences": counts["reads"],
        "reads mapped": counts["mapped"],
        "reads mapped and paired": counts["both_mapped"],
        "reads unmapped": counts["unmapped"],
        "reads properly paired": counts["properly_paired"],
        "reads paired": counts["paired"],
        "reads MQ0": counts["mapping_qualities"][0],
        "reads QC failed": 0,
        "supplementary alignments": counts["supplementary"],
        "total length": counts["bases"],
        "bases mapped (cigar)": bases,
        "mismatches": counts["edits"],
        "error rate": f"{counts['edits'] / bases if bases else 0:.6e}",
    }
    if counts["duplicates"] is not None:
        numbers["reads duplicated"] = counts["duplicates"]
    return _HEAD + "".join(f"SN\t{name}:\t{number}\n" for name, number in numbers.items())
