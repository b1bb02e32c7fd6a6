"""Records from GPU kernels in plain Python equal those from the CPU."""

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from bwarp.bam.sorted_blocks_cuda import records_on_host
from bwarp.gpu.cuda import cuda
from bwarp.gpu.transfers import PinnedBuffer
from bwarp.mapping.extension_cuda import DeviceGenome
from bwarp.mapping.final_alignments_cuda import DeviceAlignments
from bwarp.mapping.primary_hits_cuda import DevicePrimary
from bwarp.reads.base_bits_cuda import base_blocks
from bwarp.reads.device_reads_cuda import both_strands
from bwarp.records.alignment_records import ReadAlignments, ReadArrays, mapped_tables
from bwarp.records.bam_records_cpu import bam_records, quality_sums, sam_records
from bwarp.records.bam_records_cuda import (
    HostRecords,
    PlainTables,
    ReadTexts,
    SecondaryOfReads,
    array_on_gpu,
    encode_bam,
    plain_records,
    read_tables,
    record_constants,
    record_numbers,
)
from bwarp.records.bam_records_cuda import quality_sums as sums_on_gpu
from bwarp.records.paf_records import paf_lines
from bwarp.records.paf_records_cuda import encode_paf
from bwarp.records.record_layout import alignment_records
from bwarp.records.sam_records_cuda import encode_sam
from bwarp.runtime.threads import joined_stretches
from tests.helpers.cases.random_alignment_records import (
    random_chunk,
    random_genome,
    random_mapped,
)
from tests.helpers.gpu.emulated_mapping import pretend
from tests.helpers.oracles.mapping_oracle import codes_in


def on_gpu(alignments) -> DeviceAlignments:
    columns = alignments._asdict() | {"cigar_offsets": alignments.cigar_offsets.astype(np.uint32)}
    return DeviceAlignments(*map(array_on_gpu, columns.values()))


def by_read(secondary, n_reads: int, is_plain) -> SecondaryOfReads:
    """Return the secondary hits listed in primary records of plain reads, in order of reads."""
    rows = np.flatnonzero((secondary.named_by < 0) & is_plain[secondary.reads])
    rows = rows[np.argsort(secondary.reads[rows], kind="stable")]
    found = secondary.alignments
    counts = np.diff(found.cigar_offsets)[rows]
    pieces = [
        found.cigar[found.cigar_offsets[row] :][:n] for row, n in zip(rows, counts, strict=True)
    ]
    taken = type(found)(
        *(column[rows] for column in found[:5]), np.concatenate([[0], np.cumsum(counts)]),
        np.concatenate([*pieces, np.empty(0, np.uint32)]),
    )  # fmt: skip
    offsets = np.searchsorted(secondary.reads[rows], np.arange(n_reads + 1))
    return SecondaryOfReads(cuda.to_device(offsets.astype(np.uint32)), on_gpu(taken))


FORMS = {
    "bam": (bam_records, encode_bam),
    "sam": (sam_records, encode_sam),
    "paf": (lambda tables: [paf_lines(tables)], encode_paf),
}


def random_tags(rng, n_reads: int) -> tuple[np.ndarray, np.ndarray]:
    """Return bytes that stand for further tags, none for some reads."""
    sizes = rng.integers(0, 12, n_reads) * rng.integers(0, 2, n_reads)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    return rng.integers(0, 256, offsets[-1]).astype(np.uint8), offsets


@pytest.mark.parametrize(
    ("ends", "has_qualities", "group", "mate_scores", "has_tags", "form"),
    [
        (2, True, b"a group", False, True, "bam"),
        (2, True, b"a group", True, False, "sam"),
        (2, False, b"", True, True, "sam"),
        (1, False, b"", False, True, "bam"),
        (1, True, b"1", True, False, "sam"),
        (2, True, b"", False, True, "paf"),
    ],
)
def test_records_are_those_of_the_cpu(
    monkeypatch, ends, has_qualities, group, mate_scores, has_tags, form
):
    rng = np.random.default_rng(20 * ends + has_qualities)
    genome, names = random_genome(rng)
    chunk = random_chunk(rng, 40 // ends, ends, has_qualities)
    chunk.names[3, 1] = chunk.names[3, 0]
    both, (mapped, primary, supplementary, secondary, _, _) = random_mapped(rng, genome, chunk)
    mapped.scores[:3] = (70_000, 300, -5)
    primary.suboptimal[:3] = (-200, -70_000, 255)
    is_plain = ~np.isin(np.arange(chunk.n_reads), supplementary.reads)
    is_plain[rng.integers(0, chunk.n_reads, 3)] = False
    if ends == 2:
        is_plain = np.repeat(is_plain[::2] & is_plain[1::2], 2)
    alignments = ReadAlignments(mapped, primary, supplementary, secondary)
    records = alignment_records(genome.contig_starts, chunk, alignments)
    reads = ReadArrays.of(chunk, both)
    sums = quality_sums(chunk) if mate_scores else None
    further = random_tags(rng, chunk.n_reads) if has_tags else None
    tables = mapped_tables(genome, names, reads, records, group, further, sums)
    write, encode = FORMS[form]
    [expected] = write(tables)
    has_scores = any(name in expected.data.tobytes() for name in (b"msC", b"msS", b"ms:i:"))
    assert has_scores == (mate_scores and ends == 2)
    assert 0 < np.count_nonzero(is_plain) < chunk.n_reads

    of_host = np.flatnonzero(~is_plain[records.reads])
    sizes = np.diff(expected.starts)[of_host]
    by_host = HostRecords(
        joined_stretches(
            expected.data, expected.starts[of_host], np.concatenate([[0], np.cumsum(sizes)])
        ),
        np.concatenate([[0], np.cumsum(sizes)]),
        expected.keys[of_host],
        records.reads[of_host],
    )
    pretend(monkeypatch)
    there = DeviceGenome(
        base_blocks(cuda.to_device(codes_in(genome))),
        cuda.to_device(genome.contig_starts),
        int(genome.contig_starts[-1]),
    )
    lengths = chunk.names[:, 1] - chunk.names[:, 0]
    name_offsets = np.concatenate([[0], np.cumsum(lengths)])
    qualities = np.empty(0, np.uint8) if chunk.qualities is None else chunk.qualities
    texts = ReadTexts(
        array_on_gpu(joined_stretches(chunk.text, chunk.names[:, 0], name_offsets)),
        cuda.to_device(name_offsets),
        array_on_gpu(qualities),
        *map(array_on_gpu, further or (np.empty(0, np.uint8), np.empty(0, np.int64))),
    )
    hits = np.where(mapped.positions < 0, -1, 0).astype(np.int32)
    selected = (hits, primary.qualities, primary.suboptimal, primary.proper.view(np.uint8))
    marks = (~is_plain).astype(np.uint8)
    reads = both_strands(chunk.codes, chunk.offsets)
    numbers = record_numbers(by_host, marks)
    of_reads = read_tables(reads, texts, DevicePrimary(*map(cuda.to_device, selected)))
    tables = PlainTables(
        record_constants(there, names, group),
        of_reads,
        on_gpu(mapped),
        by_read(secondary, chunk.n_reads, is_plain),
        cuda.to_device(marks),
        ends,
        cuda.to_device(numbers.firsts),
        sums_on_gpu(of_reads, mate_scores),
        array_on_gpu(np.empty(0, np.uint8)),
    )
    got, _edits = plain_records(tables, by_host, numbers, encode)
    got = records_on_host(got, PinnedBuffer())
    assert got.data.tobytes() == expected.data.tobytes()
    assert np.array_equal(got.starts, expected.starts)
    assert np.array_equal(got.keys, expected.keys)
