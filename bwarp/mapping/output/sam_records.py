"""SAM of mapped reads: the header, and records as text."""

import numpy as np

from bwarp.errors import InputError
from bwarp.io.bam.sam_names import is_contig_name
from bwarp.io.names import Names
from bwarp.mapping.extension.extension_cpu import Genome
from bwarp.mapping.output.alignment_records import AlignmentRecords
from bwarp.mapping.output.comment_tags import ReadTags
from bwarp.mapping.output.record_writer import written_records
from bwarp.mapping.reads.read_chunks import ReadChunk
from bwarp.reference import Reference

__all__ = ["sam_header", "sam_records"]


def sam_header(reference: Reference, program: str, read_group: str | None, order: str) -> bytes:
    """@HD, @SQ with lengths and checksums (ALT contigs with AH), @RG and @PG.

    `program` is the @PG record; `order` is what @HD says of it, such as ``SO:coordinate``.

    Raises
    ------
    InputError
        If a contig has a name that SAM does not allow.
    """
    for name in reference.names:
        if not is_contig_name(name):
            raise InputError(
                f"contig {name!r}: SAM allows no such name (printable ASCII, no comma, quote or "
                "bracket, not * or = at the start): rename it in the reference and index again"
            )
    lines = [f"@HD\tVN:1.6\t{order}"]
    lengths, alt = np.diff(reference.contig_starts), set(reference.alt)
    for number, (name, length, md5) in enumerate(
        zip(reference.names, lengths, reference.md5, strict=True)
    ):
        # SAM has no empty sequences; no read maps to one.
        if length:
            # AH: an alternate locus, of which one does not matter here.
            locus = "\tAH:*" if number in alt else ""
            lines.append(f"@SQ\tSN:{name}\tLN:{length}{locus}\tM5:{md5}")
    if read_group:
        lines.append(read_group)
    lines.append(program)
    return ("\n".join(lines) + "\n").encode()


def sam_records(
    genome: Genome,
    contigs: Names,
    chunk: ReadChunk,
    both: np.ndarray,
    records: AlignmentRecords,
    read_group: bytes,
    tags: ReadTags,
    threads: int = 1,
) -> list[np.ndarray]:
    """The records in order, as arrays of bytes to write one after another."""
    none = np.empty(0, np.int64)
    parts = written_records(
        genome, contigs, chunk, both, records, read_group, none, (tags.text, tags.text_offsets),
        none, False, threads,
    )  # fmt: skip
    return [text for text, _ in parts]
