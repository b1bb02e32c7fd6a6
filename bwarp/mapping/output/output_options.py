"""What a run of mapping writes, as a user chooses it."""

import os
import re
from dataclasses import dataclass
from typing import NamedTuple

from bwarp.errors import UsageError
from bwarp.io.bam.compression import ON_HOST, Compression
from bwarp.io.names import Names
from bwarp.io.program_record import files_of_reads, program_record
from bwarp.mapping.parameters import ALL, MappingParameters

__all__ = [
    "AlignmentOutput",
    "RecordForm",
    "default_sort_bytes",
    "mapping_program",
    "may_write_on_gpu",
    "parse_read_group",
    "stays_on_gpu",
]

_TAG = re.compile("[A-Za-z][A-Za-z0-9]:.+")


class RecordForm(NamedTuple):
    """What a GPU needs to write BAM records itself.

    Attributes
    ----------
    contigs : Names
    group : bytes
        The ID of the read group; empty for none.
    stay_there : bool
        The records stay on the GPU, where they are sorted.
    """

    contigs: Names
    group: bytes
    stay_there: bool


@dataclass(frozen=True)
class AlignmentOutput:
    """What a run writes.

    Attributes
    ----------
    path : str
        Its ending says the form; - is SAM to standard output.
    sort_bytes : int
        Records kept in memory while they are sorted; more go to disk, beside the output.
    paired : bool
        There are pairs among the reads, which the @PG record tells.
    sort : bool
        By position; a BAM or CRAM gets an index.
    mark_duplicates : bool
        Of sorted pairs and reads that are alike, flag all but the best, as samtools markdup does.
    barcode_tag : str or None
        Duplicates have the same value of this tag as well.
    read_group : str or None
        The @RG record of the header, or several, a line each.
    read_group_id : bytes
        The group that every read names; empty for none, and where the comments name the groups.
    comments : bool
        Keep the comments of the reads' headers as tags.
    soft_clip : bool
        Clips of supplementary and secondary records are soft, too.
    eqx : bool
        CIGARs have = and X in place of M.
    regions_file : str or None
        BED: of reads that overlap none of its regions nothing is written.
    reference_file : str or None
        FASTA of the reference, for CRAM, which names it; the index does not keep IUPAC letters
        other than N.
    cram_version : str or None
        Of CRAM; None for the default.
    compression : Compression
        Of BAM.
    gpu_sort_bytes : int
        Memory of the GPU for records that it has written, which are sorted there; 0 for none.
    """

    path: str
    sort_bytes: int
    paired: bool = False
    sort: bool = False
    mark_duplicates: bool = False
    barcode_tag: str | None = None
    read_group: str | None = None
    read_group_id: bytes = b""
    comments: bool = False
    soft_clip: bool = False
    eqx: bool = False
    regions_file: str | None = None
    reference_file: str | None = None
    cram_version: str | None = None
    compression: Compression = ON_HOST
    gpu_sort_bytes: int = 0


def may_write_on_gpu(output: AlignmentOutput) -> bool:
    """Whether a GPU may write the records: those of BAM, in their usual form, of all reads.

    SAM and CRAM that are sorted are made of records of BAM.
    """
    return (output.sort or output.path.endswith(".bam")) and not (
        output.comments or output.eqx or output.mark_duplicates or output.regions_file is not None
    )


def stays_on_gpu(output: AlignmentOutput) -> bool:
    """Whether records that a GPU has written are sorted and compressed there."""
    return (
        may_write_on_gpu(output)
        and output.sort
        and output.path.endswith(".bam")
        and output.gpu_sort_bytes > 0
    )


def mapping_program(parameters: MappingParameters, output: AlignmentOutput) -> str:
    """The @PG record of mapped reads: every option that decides what is written of a read."""
    most = parameters.secondary_records
    size = parameters.insert_size and ",".join(f"{part:.15g}" for part in parameters.insert_size)
    return program_record(
        "map",
        files_of_reads(output.paired),
        {
            "mode": parameters.mode,
            "match": parameters.match,
            "mismatch": parameters.mismatch,
            "gap-open": parameters.gap_open,
            "gap-extend": parameters.gap_extend,
            "clip": parameters.clip,
            "min-score": parameters.least_score,
            "insert-size": size,
            "orientation": parameters.orientation,
            "hic": parameters.hic,
            "all": most > 0,
            "max-secondary": most if 0 < most < ALL else None,
            "soft-clip": output.soft_clip,
            "eqx": output.eqx,
            "regions": None if output.regions_file is None else "REGIONS.bed",
            "sort": output.sort,
            "mark-duplicates": output.mark_duplicates,
            "barcode-tag": output.barcode_tag,
            "comments": output.comments,
        },
    )


def default_sort_bytes(threads: int) -> int:
    """Half a gigabyte a thread, but no more than a quarter of the machine's memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(threads << 29, memory // 4)


def parse_read_group(typed: str | None) -> tuple[str | None, bytes]:
    """The @RG record of a read group and its ID; a typed \\t is a tab.

    Raises
    ------
    UsageError
        For anything that is not one header line, with each tag once and an ID among them.
    """
    if typed is None:
        return None, b""
    # A typed line feed is one to bwa.
    line = typed.replace("\\t", "\t").replace("\\n", "\n")
    fields = line.removeprefix("@RG\t").split("\t")
    tags = dict(
        field.split(":", 1) for field in fields if _TAG.fullmatch(field) and field.isprintable()
    )
    group = tags.get("ID", "")
    if not line.startswith("@RG\t") or len(tags) < len(fields) or not group or not group.isascii():
        raise UsageError(
            f"read group {typed!r} is not one line like '@RG\\tID:1\\tSM:sample': it needs an ID, "
            "each tag once, and plain text"
        )
    return line, group.encode()
