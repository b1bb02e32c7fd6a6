"""Records from a simulated GPU, merged with those of the host, against the CPU's."""

from functools import partial

import numpy as np
import pytest

from tests.helpers.oracles.mapping_oracle import codes_in, index_and_genome
from tests.mapping.test_pipeline_cuda_emulated import chunks_of
from tests.mapping.test_seeding_rounds_cuda_emulated import (
    PARAMETERS,
    hostile_contigs,
    hostile_pairs,
)

pytest.importorskip("numba_cuda", reason="needs numba-cuda: pip install -e '.[gpu-cu13]'")

from dataclasses import replace

from bwarp.bam.duplicates import tags_with_room
from bwarp.bam.fields import RG
from bwarp.gpu import available_memory
from bwarp.io.names import Names
from bwarp.mapping import first_pairs, insert_size, pipeline_cuda
from bwarp.mapping.engine import load
from bwarp.mapping.parameters import ALL, END_TO_END
from bwarp.mapping.pipeline import EncodedChunk, Encoder, chunk_records
from bwarp.reads.read_files import as_orphans
from bwarp.records.alignment_records import ReadArrays, mapped_tables, selected_rows
from bwarp.records.bam_records_cpu import bam_records, quality_sums, sam_records
from bwarp.records.comment_tags import comment_tags
from bwarp.records.output_options import RecordForm, in_regions, joined_regions
from bwarp.records.paf_records import paf_lines
from bwarp.records.statistics import add_counts, counts_of, empty_statistics
from tests.helpers.gpu.emulated_mapping import pretend
from tests.mapping.test_pipeline_cuda_emulated import CudaAPIError, attempt_here


def named(chunks, rng):
    """Return the chunks with names, qualities and comments; those of mates have another text."""
    for chunk in chunks:
        text = rng.integers(65, 91, 9 * chunk.n_templates).astype(np.uint8)
        starts = 9 * np.arange(chunk.n_templates)
        lengths = rng.integers(1, 10, chunk.n_templates)
        qualities = rng.integers(33, 74, chunk.codes.size).astype(np.uint8)
        names = np.column_stack([starts, starts + lengths])
        tags = [b"BC:Z:ACGT"[:size] + b"\tXI:i:7" for size in rng.integers(5, 10, chunk.n_reads)]
        comments = [b"" if rng.random() < 0.3 else tag for tag in tags]
        ends = np.cumsum([len(comment) for comment in comments])
        spans = np.column_stack([ends - [len(comment) for comment in comments], ends])
        comment_text = np.frombuffer(b"".join(comments), np.uint8)
        spans[0::2] += text.size
        if chunk.ends == 1:
            spans[1::2] += text.size
        yield replace(
            chunk,
            text=np.concatenate([text, comment_text]),
            names=names,
            qualities=qualities,
            comments=spans,
            mate_text=comment_text if chunk.ends == 2 else None,
        )


def encode(genome, form, done) -> EncodedChunk:
    records = chunk_records(genome, done, eqx=form.eqx)
    if form.regions is not None:
        records = selected_rows(records, in_regions(records, done.chunk.ends, form.regions))
    reads = ReadArrays.of(done.chunk, done.both)
    sums = quality_sums(done.chunk) if form.mate_scores else None
    further = form.tags(done.chunk) if form.tags else None
    tables = mapped_tables(genome, form.contigs, reads, records, form.group, further, sums)
    encoded = {"bam": bam_records, "sam": sam_records, "paf": lambda rows: [paf_lines(rows)]}
    return EncodedChunk(encoded[form.format](tables), counts_of(done, genome), records.reads)


def binary_tags(chunk):
    return comment_tags(chunk, (RG,)).binary


def text_tags(chunk):
    return comment_tags(chunk, (RG,)).text


def paf_tags(chunk):
    return comment_tags(chunk, (RG,), is_paf=True).text


def room_for_tags(chunk):
    return tags_with_room(np.empty(0, np.uint8), np.zeros(chunk.n_reads + 1, np.int64))


FORMATS = {None: "bam", room_for_tags: "bam", binary_tags: "bam", text_tags: "sam", paf_tags: "paf"}


def encoder_of(genome, names, mate_scores=False, tags=None, **more) -> Encoder:
    form = RecordForm(names, b"group", mate_scores, False, tags, format=FORMATS[tags], **more)
    return Encoder(partial(encode, genome, form), form)


def written(encoded) -> tuple[bytes, list, dict]:
    """Return the bytes of all records, their keys, and the counts."""
    data, keys, counts = b"", [], empty_statistics()
    for one in encoded:
        add_counts(counts, one.counts)
        for part in one.records:
            assert part.starts[-1] == part.data.size
            data += part.data.tobytes()
            keys += part.keys.tolist()
    counts["depths"] = counts["depths"].tolist()
    return data, keys, counts


def recorded_marks(monkeypatch) -> list[int]:
    """Record whether the GPU leaves each read that it is given to the host."""
    marked, finish_reads = [], pipeline_cuda.finish_reads

    def finish(*found):
        plain = finish_reads(*found)
        marked.extend(plain.marks.tolist())
        return plain

    monkeypatch.setattr(pipeline_cuda, "finish_reads", finish)
    return marked


@pytest.fixture
def contigs_and_reads(monkeypatch):
    rng = np.random.default_rng(7)
    index, genome = index_and_genome(hostile_contigs(rng))
    reads = hostile_pairs(rng, codes_in(genome), 14)
    monkeypatch.setattr(first_pairs, "FIRST_PAIRS", 6)
    monkeypatch.setattr(insert_size, "LEAST_PAIRS", 1)
    return index, genome, reads


@pytest.mark.parametrize(
    ("ends", "threads", "gpus", "mate_scores"),
    [(2, 2, 1, False), (1, 1, 1, True), (2, 3, 2, True)],
)
def test_records_and_counts_are_those_of_the_cpu(
    monkeypatch, contigs_and_reads, ends, threads, gpus, mate_scores
):
    index, genome, reads = contigs_and_reads
    names = Names.of([f"contig{i}" for i in range(len(genome.contig_starts) - 1)])
    encoder = encoder_of(genome, names, mate_scores, binary_tags if threads == 3 else None)
    make = lambda: named(chunks_of(reads, ends, 5), np.random.default_rng(1))  # noqa: E731
    expected = written(load(index, PARAMETERS).map(make(), encoder))
    pretend(monkeypatch, gpus)
    marked = recorded_marks(monkeypatch)
    monkeypatch.setattr(pipeline_cuda, "FEW_MARKED", 2)
    got = load(index, PARAMETERS, "cuda", threads, gpus).map(make(), encoder)
    assert written(got) == expected
    assert len(marked) == len(reads)
    assert 0 < sum(marked) < len(reads) / 2
    assert expected[2]["supplementary"] > 0


def test_chunks_that_do_not_fit_are_finished_in_parts(monkeypatch, contigs_and_reads):
    index, genome, reads = contigs_and_reads
    names = Names.of([f"contig{i}" for i in range(len(genome.contig_starts) - 1)])
    encoder = encoder_of(genome, names)
    make = lambda: named(chunks_of(reads, 2, 5), np.random.default_rng(1))  # noqa: E731
    expected = written(load(index, PARAMETERS).map(make(), encoder))
    pretend(monkeypatch)
    monkeypatch.setattr(available_memory, "attempt", attempt_here)
    finish_reads = pipeline_cuda.finish_reads
    sizes = []

    def finish(device, scored, *others):
        sizes.append(scored.reads.n_reads)
        if scored.reads.n_reads > 4:
            raise CudaAPIError("Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY")
        return finish_reads(device, scored, *others)

    monkeypatch.setattr(pipeline_cuda, "finish_reads", finish)
    got = load(index, PARAMETERS, "cuda").map(make(), encoder)
    assert written(got) == expected
    assert sizes[0] == 20
    assert max(sizes[3:]) <= 4


def without_qualities(chunks):
    return (replace(chunk, qualities=None) for chunk in chunks)


def with_orphans(chunks):
    """Remove one end of a pair in the second of every three chunks."""
    for number, chunk in enumerate(chunks):
        if number % 3 == 1:
            orphans = np.zeros(chunk.n_templates, bool)
            orphans[1] = True
            read = chunk.offsets[3:5]
            offsets = chunk.offsets.copy()
            offsets[4:] -= read[1] - read[0]
            kept = np.r_[: read[0], read[1] : chunk.codes.size]
            comments = chunk.comments.copy()
            comments[3] = 0
            chunk = replace(
                chunk,
                comments=comments,
                orphans=orphans,
                offsets=offsets,
                codes=chunk.codes[kept],
                qualities=chunk.qualities[kept],
            )
        yield chunk


@pytest.mark.parametrize(
    ("change", "parameters"),
    [
        ("FASTA, then FASTQ", PARAMETERS),
        ("FASTQ, then FASTA", PARAMETERS),
        ("orphans", PARAMETERS),
        ("a number is missing", PARAMETERS),
        (None, replace(PARAMETERS, mode=END_TO_END)),
        (None, replace(PARAMETERS, hic=True)),
        (None, replace(PARAMETERS, secondary_records=ALL)),
        (None, replace(PARAMETERS, secondary_records=1)),
        (None, replace(PARAMETERS, alt=(1,))),
        ("orphans", replace(PARAMETERS, alt=(2,), secondary_records=ALL)),
        ("only orphans", PARAMETERS),
        ("no comments", PARAMETERS),
    ],
)
def test_reads_of_all_kinds(monkeypatch, contigs_and_reads, change, parameters):
    index, genome, reads = contigs_and_reads
    names = Names.of([f"contig{i}" for i in range(len(genome.contig_starts) - 1)])
    of_change = {
        "orphans": text_tags, "a number is missing": paf_tags, "no comments": room_for_tags
    }  # fmt: skip
    tags = of_change.get(change, binary_tags)
    encoder = encoder_of(genome, names, tags=tags, reads_comments=tags is not room_for_tags)

    def make():
        chunks = list(named(chunks_of(reads, 2, 4), np.random.default_rng(1)))
        match change:
            case "FASTA, then FASTQ":
                chunks[:2] = without_qualities(chunks[:2])
            case "FASTQ, then FASTA":
                chunks[2:] = without_qualities(chunks[2:])
            case "no comments":
                chunks = [replace(chunk, comments=None) for chunk in chunks]
            case "orphans":
                chunks = list(with_orphans(chunks))
            case "only orphans":
                single = named(chunks_of(reads, 1, 3), np.random.default_rng(2))
                more = [as_orphans(chunk) for chunk in single][:4]
                n_pairs = len(reads) // 2
                chunks += [
                    replace(one, first_template=one.first_template + n_pairs) for one in more
                ]
            case "a number is missing":
                chunks[2:] = [
                    replace(one, first_template=one.first_template + 5) for one in chunks[2:]
                ]
        return iter(chunks)

    expected = written(load(index, parameters).map(make(), encoder))
    pretend(monkeypatch)
    marked = recorded_marks(monkeypatch)
    got = load(index, parameters, "cuda", 2).map(make(), encoder)
    assert written(got) == expected
    assert len(marked) == len(reads) + (24 if change == "only orphans" else 0)
    assert sum(marked) < len(reads)


@pytest.mark.parametrize(
    ("ends", "tags", "change"),
    [(1, text_tags, list), (2, binary_tags, with_orphans), (2, paf_tags, list)],
)
def test_cigars_with_mismatches_and_regions(monkeypatch, contigs_and_reads, ends, tags, change):
    index, genome, reads = contigs_and_reads
    names = Names.of([f"contig{i}" for i in range(len(genome.contig_starts) - 1)])
    middle = int(genome.contig_starts[-1]) // 2
    regions = joined_regions([(0, 40), (middle - 300, middle), (middle + 200, middle + 201)])
    encoder = encoder_of(genome, names, tags=tags, eqx=True, regions=regions)
    # Groups have at most two chunks.
    monkeypatch.setattr(pipeline_cuda, "MOST_BASES_OF_GROUP", 2 * 4 * ends * 70)

    def make():
        return change(iter(list(named(chunks_of(reads, ends, 4), np.random.default_rng(1)))))

    expected = written(load(index, PARAMETERS).map(iter(make()), encoder))
    pretend(monkeypatch)
    marked = recorded_marks(monkeypatch)
    got = load(index, PARAMETERS, "cuda", 2).map(iter(make()), encoder)
    assert written(got) == expected
    assert 0 < len(expected[1]) < len(reads)
    assert sum(marked) < len(reads)
