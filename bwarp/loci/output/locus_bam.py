"""A sorted BAM of loci, with its index, and the tables of reads that have none there."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import numpy as np

from bwarp.io.atomic_output import atomic_files, private_folder
from bwarp.io.bam.compression import ON_HOST, WHEN_MAPPED, Compression
from bwarp.io.bam.external_sort import RecordSorter
from bwarp.io.bam.sorted_file_and_duplicates import sorted_file
from bwarp.io.names import Names
from bwarp.loci.find import Certificate, FoundChunk
from bwarp.loci.output.locus_records import locus_records
from bwarp.loci.output.locus_tables import SIBLING_HEADERS, SIBLINGS, over_lines, skipped_lines
from bwarp.mapping.output.alignment_file import bam_header, put_in_place
from bwarp.mapping.output.sam_records import sam_header
from bwarp.reference import Reference
from bwarp.seeding.output.seed_tables import sibling

__all__ = ["CERTIFICATE", "BamOptions", "certificate_line", "open_bam"]

#: How the header's line of counts begins.
CERTIFICATE = b"@CO\tbwarp allmap: "

#: Counts that do not depend on how loci were found.
_REPORTED = ("reads", "aligned", "over", "without", "skipped", "loci", "loci_over")


def certificate_line(certificate: Certificate) -> bytes:
    """What the header says of how the loci were found."""
    counts = asdict(certificate)
    names = [*_REPORTED, "pairs"] if certificate.highest_insert_size else _REPORTED
    reported = " ".join(f"{name}={counts[name]}" for name in names)
    return CERTIFICATE + f"{reported}\n".encode()


@dataclass(frozen=True)
class BamOptions:
    """What stands in the header and in every record, and how records are sorted.

    Attributes
    ----------
    program : str
        The @PG record.
    read_group : str or None
        The @RG record.
    read_group_id : bytes
    sort_bytes : int
        Records kept in memory while they are sorted.
    in_tag : bool
        Name all but the primary locus of a read in its tag XA.
    compression : Compression
    """

    program: str
    read_group: str | None
    read_group_id: bytes
    sort_bytes: int
    in_tag: bool = False
    compression: Compression = ON_HOST


@contextmanager
def open_bam(
    path: str | os.PathLike,
    options: BamOptions,
    reference: Reference,
    genome: np.ndarray,
    certificate: Certificate,
    threads: int,
) -> Iterator[tuple[Callable, Callable]]:
    """What makes records of a chunk, and what takes them: chunks in their order.

    The certificate, as it is at the end of the block, is reported in the header.
    """
    text = sam_header(reference, options.program, options.read_group, "SO:coordinate")
    with (
        atomic_files([sibling(path, kind) for kind in SIBLINGS]) as others,
        private_folder(path) as folder,
    ):
        for other, header in zip(others, SIBLING_HEADERS, strict=True):
            other.write(header)
        made = folder.absolute() / "out.bam"
        starts = bam_header(text, reference).contig_starts
        contigs = Names.of(reference.names)
        compression = options.compression

        def encode(found: FoundChunk) -> list:
            records = locus_records(
                found, genome, reference.contig_starts, options.read_group_id, contigs,
                options.in_tag,
            )  # fmt: skip
            return [over_lines(found), skipped_lines(found), records]

        def write(parts: list) -> None:
            *tables, records = parts
            for other, lines in zip(others, tables, strict=True):
                other.write(lines)
            sorter.add(records)

        with RecordSorter(folder, starts, options.sort_bytes, threads, compression) as sorter:
            yield encode, write
            compression.begin(WHEN_MAPPED)
            header = bam_header(text + certificate_line(certificate), reference)
            with sorted_file(made, header, threads, os.fspath(path), compression) as writer:
                sorter.finish(writer)
        put_in_place(made, os.path.realpath(path))
