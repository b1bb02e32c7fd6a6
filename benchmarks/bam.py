#!/usr/bin/env python3
"""Time SAM text, BAM records, sorted BAM and CRAM with their indexes; and samtools.

    python benchmarks/bam.py -o benchmarks/results/bam_cpu.jsonl

Pairs of 2 x 150 are simulated on a random genome, with one substitution per 200 bases and four
quality values, as from recent sequencers. Wall and CPU seconds of each step are medians over
several turns; samtools sorts and indexes the same records in the same run. Each result is one JSON
line.
"""

import hashlib
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from frame.options import add_threads, new_parser, read_options
from frame.peers import found
from frame.results import overwrite

from bwarp.bam.external_sort import RecordSorter
from bwarp.bam.header import BamHeader
from bwarp.bam.sorted_file import bam_file, sorted_file
from bwarp.io.names import Names
from bwarp.mapping.extension_cpu import Genome, both_strands, genome_of
from bwarp.mapping.final_alignments import MappedReads
from bwarp.mapping.primary_hits_cpu import PrimarySelection
from bwarp.options.mapping import CRAM_VERSIONS
from bwarp.reads.base_bits_cpu import copy_bases
from bwarp.reads.read_chunks import ReadChunk
from bwarp.records.alignment_records import ReadAlignments, ReadArrays, mapped_tables
from bwarp.records.bam_records_cpu import bam_records, sam_records
from bwarp.records.output_options import write_sequences
from bwarp.records.record_layout import alignment_records
from bwarp.reference import Reference, make_reference
from bwarp.sequence import decode

LENGTH = 150
READS_A_CHUNK = 1 << 16
CONTIGS = 24
GROUP = b"sample.lane1"


def parse_options():
    parser = new_parser(__doc__)
    parser.add_argument("--reads", type=int, default=500_000)
    parser.add_argument("--bases", type=int, default=100_000_000, help="of the genome")
    add_threads(parser)
    parser.add_argument("--repeats", type=int, default=3)
    return read_options(parser, "bam_cpu.jsonl", reads=2000, bases=1_000_000, repeats=1)


def measure(options):
    reference, names, header = simulated_genome(options.bases)
    genome = genome_of(reference)
    rng = np.random.default_rng(1)
    tables = []
    for first in range(0, options.reads, READS_A_CHUNK):
        n_pairs = min(READS_A_CHUNK, options.reads - first) // 2
        chunk, both, *mapped = simulated_pairs(rng, genome, n_pairs, first // 2)
        records = alignment_records(genome.contig_starts, chunk, ReadAlignments(*mapped))
        tables.append(mapped_tables(genome, names, ReadArrays.of(chunk, both), records, GROUP))
    with tempfile.TemporaryDirectory() as work:
        # The first turn compiles if necessary.
        turns = [
            one_turn(Path(work), options, reference, header, tables)
            for _ in range(options.repeats + 1)
        ]
        turns = turns[1:]
    for step in turns[0]:
        wall, processor = (statistics.median(turn[step][i] for turn in turns) for i in (0, 1))
        yield {
            "step": step,
            "records": options.reads,
            "threads": options.threads,
            "wall_seconds": round(wall, 3),
            "processor_seconds": round(processor, 3),
            "million_records_a_second": round(options.reads / wall / 1e6, 2),
            "megabytes": round(turns[0][step][2] / 1e6, 1),
        }


def simulated_genome(bases: int) -> tuple[Reference, Names, BamHeader]:
    rng = np.random.default_rng(20)
    starts = np.linspace(0, bases, CONTIGS + 1).astype(np.int64)
    names = [f"chr{number + 1}".encode() for number in range(CONTIGS)]
    codes = rng.integers(0, 4, bases).astype(np.uint8)
    sums = [
        hashlib.md5(decode(codes[start:stop]), usedforsecurity=False).hexdigest()
        for start, stop in pairwise(starts)
    ]
    text = b"@HD\tVN:1.6\tSO:coordinate\n" + b"".join(
        b"@SQ\tSN:%b\tLN:%d\tM5:%b\n" % (name, length, checksum.encode())
        for name, length, checksum in zip(names, np.diff(starts), sums, strict=True)
    )
    header = BamHeader(text, tuple(names), tuple(np.diff(starts).tolist()))
    texts = [name.decode() for name in names]
    return make_reference(texts, starts, codes, sums), Names.of(texts), header


def simulated_pairs(rng, genome: Genome, n_pairs: int, first: int):
    """Return a chunk, its reads on both strands, and alignments at their origins."""
    n_reads = 2 * n_pairs
    contigs = rng.integers(0, CONTIGS, n_pairs)
    lengths = np.diff(genome.contig_starts)[contigs]
    sizes = rng.normal(400, 50, n_pairs).astype(np.int64).clip(LENGTH, 800)
    lefts = genome.contig_starts[contigs] + (rng.random(n_pairs) * (lengths - 800)).astype(np.int64)
    positions = np.column_stack([lefts, lefts + sizes - LENGTH]).reshape(-1)
    strands = np.tile(np.array([0, 1], np.uint8), n_pairs)
    codes, _ = copy_bases(genome.blocks, positions, np.full(n_reads, LENGTH, np.int32))
    codes = codes[: n_reads * LENGTH].reshape(-1, LENGTH)
    changed = rng.random(codes.shape) < 0.005
    codes[changed] = (codes[changed] + 1) % 4
    scores = LENGTH - 5 * np.count_nonzero(changed, axis=1)
    codes[1::2] = 3 - codes[1::2, ::-1]
    offsets = np.arange(n_reads + 1) * LENGTH
    qualities = rng.choice(np.frombuffer(b"FFFFFFFFFFFFF:,#", np.uint8), (n_reads, LENGTH))
    names = [
        b"A00123:45:HXXXXXXXX:1:%d:%d:%d" % (1101 + i % 500, 1000 + 7 * i % 30_000, i)
        for i in range(first, first + n_pairs)
    ]
    ends = np.cumsum([0, *map(len, names)])
    chunk = ReadChunk(
        codes.reshape(-1), offsets, qualities.reshape(-1),
        np.frombuffer(b"".join(names), np.uint8), np.column_stack([ends[:-1], ends[1:]]), 2, first,
    )  # fmt: skip
    mapped = MappedReads(
        positions, strands, np.zeros(n_reads, np.int32), np.full(n_reads, LENGTH, np.int32),
        scores.astype(np.int32), np.arange(n_reads + 1), np.full(n_reads, LENGTH << 4, np.uint32),
    )  # fmt: skip
    primary = PrimarySelection(
        np.zeros(n_reads, np.int64), np.full(n_reads, 60, np.uint8), np.zeros(n_reads, np.int32),
        np.ones(n_reads, bool),
    )  # fmt: skip
    return chunk, both_strands(chunk.codes, offsets), mapped, primary


def one_turn(work: Path, options, reference, header, tables) -> dict:
    """Return wall and CPU seconds and bytes of each step."""
    measured = {}

    def add(step, run):
        before, start = used(), time.perf_counter()
        result, size = run()
        measured[step] = (time.perf_counter() - start, used() - before, size)
        return result

    def sam():
        return None, sum(
            part.data.size for table in tables for part in sam_records(table, options.threads)
        )

    def encode():
        parts = [part for table in tables for part in bam_records(table, options.threads)]
        return parts, sum(part.data.size for part in parts)

    def unsorted():
        with open(work / "in.bam", "wb") as file, bam_file(file, header, options.threads) as out:
            for part in parts:
                out.write(part.data, part.starts)
        return None, (work / "in.bam").stat().st_size

    def in_order(most_bytes, ending="bam", version=CRAM_VERSIONS[0]):
        folder = work / "runs"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        made = folder / f"out.{ending}"
        if ending == "cram":
            write_sequences(reference, None, folder, options.threads)
        with RecordSorter(folder, header.contig_starts, most_bytes, options.threads) as sorter:
            for part in parts:
                sorter.add(part)
            with sorted_file(
                made, header, options.threads, str(made), cram_version=version
            ) as writer:
                sorter.finish(writer)
        return None, made.stat().st_size

    def samtools(*arguments):
        subprocess.run(["samtools", *arguments, "-@", str(options.threads)], check=True)
        return None, (work / "theirs.bam").stat().st_size

    add("SAM lines", sam)
    parts = add("BAM records", encode)
    add("unsorted BAM of records", unsorted)
    total = sum(part.data.size for part in parts)
    # The first sorted run takes two thirds of the memory.
    add("sorted, indexed BAM of records", lambda: in_order(2 * total))
    add("the same with memory for an eighth", lambda: in_order(total // 8))
    for version in CRAM_VERSIONS:
        add(
            f"sorted, indexed CRAM {version} of records",
            partial(in_order, 2 * total, "cram", version),
        )
    if found("samtools"):
        output = ["-o", str(work / "theirs.bam"), str(work / "in.bam")]
        add("samtools sort -l 1", lambda: samtools("sort", "-l", "1", *output))
        add("samtools index", lambda: samtools("index", str(work / "theirs.bam")))
    return measured


def used() -> float:
    """Return the CPU seconds of this process and of those it has waited for."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


if __name__ == "__main__":
    options = parse_options()
    overwrite(options.output, measure(options))
