"""What the kernels that write records of plain reads read: tables on the GPU, and their types.

RecordConstants     genome, contigs, read group       the same for all chunks
ReadTables          bases, names, qualities, hits     of the reads of a chunk
SecondaryOfReads    hits that XA names                of these reads, too
HostRecords         records that the host has made    of those that are not plain
RecordNumbers       where both stand                  among the records of all
"""

from typing import NamedTuple

import numpy as np

from bwarp.gpu.cuda import cuda, int32, int64, uint8, uint32
from bwarp.mapping.extension.extension_cuda import DeviceGenome
from bwarp.mapping.output.final_alignments_cuda import DeviceAlignments
from bwarp.mapping.pairing.primary_hits_cuda import DevicePrimary
from bwarp.mapping.reads.device_reads_cuda import DeviceReads
from bwarp.runtime.ranges import offsets_of

__all__ = [
    "HostRecords",
    "ReadTables",
    "ReadTexts",
    "RecordConstants",
    "RecordNumbers",
    "SecondaryOfReads",
    "array_on_gpu",
    "read_tables",
    "record_constants",
    "record_numbers",
]


class RecordConstants(NamedTuple):
    """What the records of all chunks have in common, on the GPU.

    Attributes
    ----------
    genome : device array, dtype=uint32
        Blocks of bases.
    contig_starts : device array, shape=(n_contigs + 1,), dtype=int64
    contig_numbers : device array, shape=(n_contigs,), dtype=int64
        In the header, which has no contigs without bases.
    contig_text : device array, dtype=uint8
    contig_bounds : device array, shape=(2 * n_contigs,), dtype=int64
        Where the name of each contig begins and ends in the text.
    group : device array, dtype=uint8
        The read group; empty for none.
    """

    genome: uint32[::1]
    contig_starts: int64[::1]
    contig_numbers: int64[::1]
    contig_text: uint8[::1]
    contig_bounds: int64[::1]
    group: uint8[::1]


class ReadTexts(NamedTuple):
    """The names and qualities of reads, on the GPU.

    Attributes
    ----------
    names : device array, dtype=uint8
        Of the templates, one after another.
    name_offsets : device array, shape=(n_templates + 1,), dtype=int64
    qualities : device array, dtype=uint8
        As in FASTQ, where the bases are; empty for none.
    """

    names: uint8[::1]
    name_offsets: int64[::1]
    qualities: uint8[::1]


class ReadTables(NamedTuple):
    """What the kernels read of each read: arrays of `DeviceReads`, `ReadTexts`, `DevicePrimary`."""

    codes: uint8[::1]
    blocks: uint32[::1]
    offsets: int64[::1]
    names: uint8[::1]
    name_offsets: int64[::1]
    qualities: uint8[::1]
    hits: int32[::1]
    mapping_qualities: uint8[::1]
    suboptimal: int32[::1]
    proper: uint8[::1]


class SecondaryOfReads(NamedTuple):
    """Secondary hits that the records of reads name: XA.

    Attributes
    ----------
    offsets : device array, shape=(n_reads + 1,), dtype=uint32
    alignments : DeviceAlignments
        A row a hit.
    """

    offsets: object
    alignments: DeviceAlignments


class HostRecords(NamedTuple):
    """Records that the host has made.

    Attributes
    ----------
    data : ndarray, dtype=uint8
    starts : ndarray, shape=(n + 1,), dtype=int64
    keys : ndarray, shape=(n,), dtype=uint64
    reads : ndarray, shape=(n,), dtype=int64
        The number of each record's read; they do not fall.
    """

    data: np.ndarray
    starts: np.ndarray
    keys: np.ndarray
    reads: np.ndarray


class RecordNumbers(NamedTuple):
    """Where records stand among all of some reads.

    Attributes
    ----------
    firsts : ndarray, shape=(n_reads + 1,), dtype=uint32
        The number of each read's first record.
    of_host : ndarray, shape=(n,), dtype=int64
        The numbers of the records that the host has made.
    """

    firsts: np.ndarray
    of_host: np.ndarray


def record_numbers(by_host: HostRecords, marks: np.ndarray) -> RecordNumbers:
    """Of the records of the host, and one of every read that is not marked."""
    of_host_before = offsets_of(by_host.reads, marks.size)
    plain_before = np.concatenate([[0], np.cumsum(marks == 0)])
    firsts = (of_host_before + plain_before).astype(np.uint32)
    return RecordNumbers(firsts, np.arange(by_host.reads.size) + plain_before[by_host.reads])


def record_constants(
    genome: DeviceGenome, names: tuple[np.ndarray, np.ndarray], group: bytes
) -> RecordConstants:
    """Of `bwarp.io.names.Names` of the contigs, and the ID of the read group."""
    text, bounds = names
    contig_starts = genome.contig_starts.copy_to_host()
    return RecordConstants(
        genome.blocks,
        genome.contig_starts,
        cuda.to_device(np.cumsum(np.diff(contig_starts) > 0) - 1),
        cuda.to_device(np.array(text)),
        cuda.to_device(np.ascontiguousarray(bounds).reshape(-1)),
        array_on_gpu(np.frombuffer(group, np.uint8).copy()),
    )


def read_tables(reads: DeviceReads, texts: ReadTexts, primary: DevicePrimary) -> ReadTables:
    return ReadTables(
        reads.both, reads.blocks, reads.offsets, *texts, primary.hits, primary.qualities,
        primary.suboptimal, primary.proper,
    )  # fmt: skip


def array_on_gpu(values: np.ndarray):
    """On the GPU; an empty one, too."""
    there = cuda.device_array(max(1, values.size), values.dtype)
    if values.size:
        there[: values.size].copy_to_device(values)
    return there[: values.size]
