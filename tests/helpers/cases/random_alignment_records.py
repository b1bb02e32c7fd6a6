"""Chunks of random reads with random alignments: paired or single, split, with secondary hits."""

import numpy as np

from bwarp.io.names import Names
from bwarp.mapping.extension_cpu import Genome, both_strands
from bwarp.mapping.final_alignments import MappedReads
from bwarp.mapping.primary_hits_cpu import PrimarySelection
from bwarp.reads.read_chunks import ReadChunk
from bwarp.records.alignment_records import (
    ReadAlignments,
    SecondaryHits,
    SecondaryRecords,
    Supplementary,
)
from tests.helpers.oracles.mapping_oracle import codes_in, genome_with

CONTIGS = {"chr1": 3000, "none": 0, "HLA:A*01=2": 500, "a_long_name|of/a_contig": 900}


def random_genome(rng) -> tuple[Genome, Names]:
    lengths = list(CONTIGS.values())
    starts = np.concatenate([[0], np.cumsum(lengths)])
    codes = rng.choice(5, starts[-1], p=[0.24, 0.24, 0.24, 0.24, 0.04]).astype(np.uint8)
    return genome_with(codes, starts), Names.of(list(CONTIGS))


def random_chunk(
    rng, n_templates: int, ends: int, has_qualities: bool = True, orphan_share: float = 0
) -> ReadChunk:
    lengths = rng.integers(0, 200, n_templates * ends)
    lengths[rng.random(lengths.size) < 0.1] = 0
    orphans = None
    if orphan_share:
        orphans = rng.random(n_templates) < orphan_share
        orphans[-1] = True
        lengths[1::2][orphans] = 0
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    codes = rng.choice(5, offsets[-1], p=[0.24, 0.24, 0.24, 0.24, 0.04]).astype(np.uint8)
    qualities = rng.integers(33, 127, offsets[-1]).astype(np.uint8) if has_qualities else None
    name_lengths = rng.choice([1, 7, 40, 254], n_templates)
    name_ends = np.cumsum(name_lengths)
    text = rng.integers(65, 91, name_ends[-1]).astype(np.uint8)
    names = np.column_stack([name_ends - name_lengths, name_ends])
    return ReadChunk(codes, offsets, qualities, text, names, ends, 0, orphans=orphans)


def random_alignments(rng, genome: Genome, chunk: ReadChunk, both, reads) -> MappedReads:
    """Return random alignments of reads; the genome is changed to match most of their bases."""
    rows, cigar, offsets = [], [], [0]
    bases = codes_in(genome)
    for read in reads:
        length = chunk.offsets[read + 1] - chunk.offsets[read]
        strand = rng.integers(2)
        start, end = np.sort(rng.choice(length + 1, 2, replace=False))
        start, end = (0, length) if rng.random() < 0.4 else (start, end)
        operations = _random_cigar(rng, end - start)
        span = sum(n for operation, n in operations if operation != 1)
        contig = rng.choice(np.flatnonzero(np.diff(genome.contig_starts) >= span))
        first, last = genome.contig_starts[contig : contig + 2]
        position = rng.choice([first, last - span, rng.integers(first, last - span + 1)])
        rows.append((position, strand, start, end, rng.integers(1, 300)))
        cigar += [n << 4 | operation for operation, n in operations]
        offsets.append(len(cigar))
        at, target = chunk.offsets[read] + strand * (both.size // 2) + start, position
        for operation, n in operations:
            if operation == 0:
                alike = rng.random(n) < 0.9
                bases[target : target + n][alike] = both[at : at + n][alike]
            at += n * (operation != 2)
            target += n * (operation != 1)
    genome.blocks[:] = genome_with(bases, genome.contig_starts).blocks
    table = np.array(rows, np.int64).reshape(-1, 5)
    return MappedReads(
        table[:, 0].copy(), table[:, 1].astype(np.uint8), table[:, 2].astype(np.int32),
        table[:, 3].astype(np.int32), table[:, 4].astype(np.int32),
        np.array(offsets), np.array(cigar, np.uint32),
    )  # fmt: skip


def _random_cigar(rng, length: int) -> list[tuple[int, int]]:
    if length < 10:
        return [(0, int(length))]
    one, two = np.sort(rng.choice(np.arange(2, length - 2), 2, replace=False))
    kind = rng.integers(4)
    if kind == 0:
        return [(0, int(length))]
    if kind == 1:
        return [(0, int(one)), (2, int(rng.integers(1, 40))), (0, int(length - one))]
    if kind == 2:
        return [(0, int(one)), (1, int(two - one)), (0, int(length - two))]
    return [(0, int(one)), (1, int(two - one)), (2, 3), (0, int(length - two))]


def random_mapped(rng, genome: Genome, chunk: ReadChunk):
    """Return arguments of `alignment_records`, and the reads with their reverse complements."""
    both = both_strands(chunk.codes, chunk.offsets)
    lengths = np.diff(chunk.offsets)
    mapped = np.flatnonzero((lengths > 0) & (rng.random(chunk.n_reads) < 0.8))
    found = random_alignments(rng, genome, chunk, both, mapped)
    whole = {}
    for name in ("positions", "strands", "read_starts", "read_ends", "scores"):
        values = getattr(found, name)
        whole[name] = np.full(chunk.n_reads, -1 if name == "positions" else 0, values.dtype)
        whole[name][mapped] = values
    counts = np.zeros(chunk.n_reads, np.int64)
    counts[mapped] = np.diff(found.cigar_offsets)
    alignments = MappedReads(
        **whole, cigar_offsets=np.concatenate([[0], np.cumsum(counts)]), cigar=found.cigar
    )
    primary = PrimarySelection(
        np.where(np.isin(np.arange(chunk.n_reads), mapped), 0, -1),
        rng.integers(0, 61, chunk.n_reads).astype(np.uint8),
        rng.integers(0, 300, chunk.n_reads).astype(np.int32),
        rng.random(chunk.n_reads) < 0.5,
    )
    split = np.sort(rng.choice(mapped, mapped.size // 3))
    supplementary = Supplementary(
        split,
        random_alignments(rng, genome, chunk, both, split),
        rng.integers(0, 61, split.size).astype(np.uint8),
        rng.integers(0, 300, split.size).astype(np.int32),
        rng.random(split.size) < 0.3,
        np.full(split.size, -1),
    )
    # Some are listed by supplementary records.
    lines = rng.choice(split.size, split.size // 2)
    other = np.concatenate([np.sort(rng.choice(mapped, mapped.size // 2)), split[lines]])
    secondary = SecondaryHits(
        other,
        random_alignments(rng, genome, chunk, both, other),
        np.concatenate([np.full(other.size - lines.size, -1), lines]),
    )
    better_scores = np.zeros(chunk.n_reads, np.int64)
    some = mapped[::7]
    better_scores[some] = alignments.scores[some] + rng.integers(1, 50, some.size)
    other = np.sort(rng.choice(mapped, mapped.size // 4))
    recorded = SecondaryRecords(other, random_alignments(rng, genome, chunk, both, other))
    return both, ReadAlignments(
        alignments, primary, supplementary, secondary, better_scores, recorded
    )
