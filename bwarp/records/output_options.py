"""Options of the output of mapping: file, header, read group, CRAM reference and regions."""

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bwarp.bam.compression_engine import ON_HOST, Compression
from bwarp.bam.fields import UNMAPPED
from bwarp.bam.header import BamHeader, files_of_reads, program_record
from bwarp.checks.check_files import CheckFiles
from bwarp.errors import InputError, UsageError
from bwarp.io.fastx import read_sequences
from bwarp.io.names import Names
from bwarp.mapping.parameters import ALL, MappingParameters
from bwarp.reads.read_chunks import ReadChunk
from bwarp.records.alignment_records import AlignmentRecords
from bwarp.reference import Reference, codes_between
from bwarp.runtime.chunks import in_order
from bwarp.runtime.timeline import on_timeline

_TAG = re.compile("[A-Za-z][A-Za-z0-9]:.+")


class RecordForm(NamedTuple):
    """Data that a GPU needs to write records.

    Attributes
    ----------
    contigs : Names
    group : bytes
        The ID of the read group; empty for none.
    mate_scores : bool
        Whether records have the quality sum of the mate (ms).
    stay_there : bool
        Whether the records stay on the GPU, where they are sorted.
    tags : function of ReadChunk, or None
        Returns the further tags of reads in the format of the records, uint8, and their offsets;
        None if there are none.
    reads_comments : bool
        Whether `tags` reads the comments of the reads.
    format : str
        bam, sam or paf.
    eqx : bool
        Whether CIGARs have = and X instead of M.
    regions : ndarray, shape=(n, 2), dtype=int64, or None
        Only reads that overlap these (`joined_regions`), and their mates, have records.
    """

    contigs: Names
    group: bytes
    mate_scores: bool
    stay_there: bool
    tags: Callable[[ReadChunk], tuple[np.ndarray, np.ndarray]] | None = None
    reads_comments: bool = True
    format: str = "bam"
    eqx: bool = False
    regions: np.ndarray | None = None

    @property
    def with_comments(self) -> bool:
        """Whether records need the comments of the reads."""
        return self.tags is not None and self.reads_comments


@dataclass(frozen=True)
class AlignmentOutput:
    """The output of a run: options of `bwarp map` (`bwarp.options.mapping`), and further fields.

    Attributes
    ----------
    path : str
        The ending selects the format; - is SAM to standard output.
    sort_bytes : int
        Memory for sorting records; more are written to disk, next to the output.
    paired : bool
        Whether there are pairs among the reads, which the @PG record states.
    read_group : str or None
        The @RG record of the header, or several, one per line.
    read_group_id : bytes
        The read group of all reads; empty for none, or if each read names its own.
    regions_file, reference_file : str or None
        The options `--regions` and `--reference`.
    check_files : CheckFiles or None
        Files of --qc.
    compression : Compression
        Compression of BAM.
    gpu_sort_bytes : int
        GPU memory to sort records written on the GPU; 0 for none.
    """

    path: str
    sort_bytes: int
    paired: bool = False
    sort: bool = False
    mark_duplicates: bool = False
    barcode_tag: str | None = None
    optical_distance: int | None = None
    duplicate_metrics: str | None = None
    duplicate_tags: bool = False
    read_group: str | None = None
    read_group_id: bytes = b""
    comments: bool = False
    soft_clip: bool = False
    eqx: bool = False
    regions_file: str | None = None
    reference_file: str | None = None
    cram_version: str | None = None
    check_files: CheckFiles | None = None
    compression: Compression = ON_HOST
    gpu_sort_bytes: int = 0


def have_tags(output: AlignmentOutput) -> bool:
    """Return whether reads have tags that are copied: comments, or their read groups."""
    return output.comments or bool(output.read_group and not output.read_group_id)


def is_paf(output: AlignmentOutput) -> bool:
    return output.path.endswith((".paf", ".paf.gz"))


def stays_on_gpu(output: AlignmentOutput) -> bool:
    """Return whether records written by a GPU are also sorted there.

    The GPU then compresses BAM; for SAM and CRAM the host downloads the sorted records.
    """
    return output.sort and output.gpu_sort_bytes > 0


def mapping_program(parameters: MappingParameters, output: AlignmentOutput) -> str:
    """Return the @PG record of mapped reads, with every option that affects the records."""
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
            "optical-distance": output.optical_distance if output.duplicate_tags else None,
            "duplicate-tags": output.duplicate_tags,
            "comments": output.comments,
        },
    )


def default_sort_bytes(threads: int) -> int:
    """Return half a gigabyte per thread, but at most a quarter of the machine's memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min(threads << 29, memory // 4)


def parse_read_group(typed: str | None) -> tuple[str | None, bytes]:
    """Return the @RG record of a read group and its ID; a typed \\t is a tab.

    Raises
    ------
    UsageError
        If it is not a single header line with an ID and with each tag once.
    """
    if typed is None:
        return None, b""
    # bwa also converts a typed line feed.
    line = typed.replace("\\t", "\t").replace("\\n", "\n")
    fields = line.removeprefix("@RG\t").split("\t")
    tags = dict(
        field.split(":", 1) for field in fields if _TAG.fullmatch(field) and field.isprintable()
    )
    group = tags.get("ID", "")
    if not line.startswith("@RG\t") or len(tags) < len(fields) or not group or not group.isascii():
        raise UsageError(
            f"read group {typed!r} is not a line such as '@RG\\tID:1\\tSM:sample': it must be "
            "plain text, with an ID and each tag at most once"
        )
    return line, group.encode()


# --------------------------------------------------------------------------------------------------
# The reference of a CRAM file.
#
# The writer reads sequences from files named by their checksums, readers from the FASTA that the
# header names.


_LETTERS = np.frombuffer(b"ACGTN", np.uint8)

#: Upper case of IUPAC letters.
_UPPER_CASE = np.full(256, 255, np.uint8)
for _letter in b"ABCDGHKMNRSTUVWY":
    _UPPER_CASE[_letter] = _UPPER_CASE[_letter + 32] = _letter


def is_readable_by_samtools(fasta: str) -> bool:
    """Return whether samtools can look up sequences in a FASTA file: plain text or BGZF."""
    if not os.path.isfile(fasta) or not os.path.abspath(fasta).isprintable():
        return False
    with open(fasta, "rb") as file:
        start = file.read(14)
    return start[:1] == b">" or (start[:4] == b"\x1f\x8b\x08\x04" and start[12:14] == b"BC")


def naming_reference(header: BamHeader, fasta: str | None) -> BamHeader:
    """Add the path of the FASTA file to every @SQ record, as UR, if samtools can read the file.

    samtools reads the sequences from this path. Nothing else in a header that bwarp writes contains
    a path.
    """
    if fasta is None or not is_readable_by_samtools(fasta):
        return header
    path = b"\tUR:" + os.fsencode(os.path.abspath(fasta))
    lines = header.text.splitlines()
    named = (line + path if line.startswith(b"@SQ\t") else line for line in lines)
    return replace(header, text=b"".join(line + b"\n" for line in named))


#: Letters of a contig that are in memory at a time.
_LETTERS_A_BLOCK = 1 << 22

#: Maximum number of contigs of a FASTA file in memory.
_MOST_CONTIGS = 4


@on_timeline("write the sequences of contigs")
def write_sequences(
    reference: Reference, fasta: str | None, folder: Path, threads: int = 1
) -> None:
    """Write the letters of every contig to ``folder/MD5``.

    Parameters
    ----------
    reference : Reference
    fasta : str, optional
        Source of the letters; without it, all must be A, C, G, T or N.
    folder : Path
    threads : int
        Number of contigs that are written at the same time.

    Raises
    ------
    InputError
        If there are other letters, or the FASTA is another reference.
    """
    if fasta is None:
        sequences = _from_packed(reference)
    else:
        sequences, threads = _from_fasta(fasta), min(threads, _MOST_CONTIGS)
    waiting = dict(zip(reference.names, reference.md5, strict=True))

    def write(sequence: tuple[str, str, Iterable[np.ndarray]]) -> None:
        name, checksum, parts = sequence
        found = hashlib.md5(usedforsecurity=False)
        with open(folder / checksum, "wb") as file:
            for letters in parts:
                found.update(letters)
                file.write(letters)
        if found.hexdigest() != checksum:
            raise _other_letters(name, fasta)

    wanted = (
        (name, checksum, parts)
        for name, parts in sequences
        if (checksum := waiting.pop(name, None)) is not None
    )
    for _ in in_order(write, wanted, threads, waiting=0):
        pass
    for name in waiting:
        raise InputError(
            f"{fasta}: contig {name!r} of the index is missing: give the FASTA file that was "
            "indexed"
        )


def _other_letters(name: str, fasta: str | None) -> InputError:
    if fasta is None:
        return InputError(
            f"contig {name!r} has letters other than A, C, G, T and N, which the index does not "
            "keep: use --reference with the FASTA file that was indexed"
        )
    return InputError(
        f"{fasta}: contig {name!r} differs from that of the index: give the FASTA file that was "
        "indexed"
    )


def _from_packed(reference: Reference) -> Iterator[tuple[str, Iterable[np.ndarray]]]:
    for name, start, stop in zip(
        reference.names, reference.contig_starts, reference.contig_starts[1:], strict=False
    ):
        yield name, _blocks_of(reference, start, stop)


def _blocks_of(reference: Reference, start: int, stop: int) -> Iterator[np.ndarray]:
    for at in range(start, stop, _LETTERS_A_BLOCK):
        yield _LETTERS[codes_between(reference, at, min(at + _LETTERS_A_BLOCK, stop))]


def _from_fasta(fasta: str) -> Iterator[tuple[str, Iterable[np.ndarray]]]:
    for batch in read_sequences(fasta, _UPPER_CASE):
        for number, name in enumerate(batch.names()):
            yield name, [batch.codes[batch.offsets[number] : batch.offsets[number + 1]]]


# --------------------------------------------------------------------------------------------------
# Selection of records that overlap given regions of the genome.
#
# A read and its mate stay together: all their records are kept if one of them overlaps a region, so
# that flags and positions of mates refer to records in the file.


def joined_regions(regions: Sequence[tuple[int, int]]) -> np.ndarray:
    """Sort regions and join those that overlap or touch; shape=(n, 2), dtype=int64."""
    table = np.array(sorted(regions), np.int64).reshape(-1, 2)
    reached = np.maximum.accumulate(table[:, 1])
    begins = np.append(True, table[1:, 0] > reached[:-1])
    ends = np.append(begins[1:], True)
    return np.column_stack([table[begins, 0], reached[ends]])


def in_regions(records: AlignmentRecords, ends: int, regions: np.ndarray) -> np.ndarray:
    """Return per row whether a record of the read or of its mate overlaps a region.

    Parameters
    ----------
    ends : int
        Reads per template.
    regions : ndarray, shape=(n, 2), dtype=int64
        Result of `joined_regions`.
    """
    is_mapped = records.flags & UNMAPPED == 0
    after = np.searchsorted(regions[:, 1], records.positions, side="right")
    starts = np.append(regions[:, 0], np.iinfo(np.int64).max)
    overlaps = is_mapped & (starts[after] < records.positions + records.spans)
    templates = records.reads // ends
    kept = np.zeros(records.first_rows.size, bool)
    kept[templates[overlaps]] = True
    return kept[templates]


# --------------------------------------------------------------------------------------------------
# The platform unit (PU) of a read group, flow cell and lane, from the name of a read.
#
# @A00123:45:HXXXXDSXX:2:1101:1000:2000      HXXXXDSXX.2      Illumina and Element
# @V350012345L1C001R00100000001              V350012345.1     MGI and DNBSEQ


#: Text in a read group whose platform unit is to be taken from the reads.
AUTO = "PU:auto"

_NAMES = (
    re.compile(r"[^:]+:[0-9]+:(?P<cell>[A-Za-z0-9-]+):(?P<lane>[0-9]+):[0-9]+:[0-9]+:[0-9]+(:.*)?"),
    re.compile(r"(?P<cell>[A-Z]+[0-9]+)L(?P<lane>[0-9])C[0-9]{3}R[0-9]+.*"),
)


def platform_unit(name: str) -> str | None:
    """Return flow cell and lane from a read's name, separated by a point, or None."""
    found = next(filter(None, (pattern.fullmatch(name) for pattern in _NAMES)), None)
    return found and f"{found['cell']}.{found['lane']}"


def with_platform_unit(
    read_group: str, chunks: Iterator[ReadChunk]
) -> tuple[str, Iterator[ReadChunk]]:
    """Return a read group with the platform unit of the first read, and the same chunks.

    Without reads the group has no platform unit.

    Raises
    ------
    InputError
        If the name of the read does not contain a platform unit.
    """
    fields = read_group.split("\t")
    first = next(chunks, None)
    if first is None:
        return "\t".join(field for field in fields if field != AUTO), chunks
    unit = platform_unit(first.name(0))
    if unit is None:
        raise InputError(
            f"read {first.name(0)!r}: the name does not contain flow cell and lane, as those of "
            "Illumina, Element and MGI do: write the platform unit instead of auto"
        )
    group = "\t".join(f"PU:{unit}" if field == AUTO else field for field in fields)
    return group, chain([first], chunks)
