"""The stages of mapping: chunks come back from chunk files, and mapped is as in one run."""

from dataclasses import asdict, replace
from functools import partial

import numpy as np
import pytest

from bwarp.errors import InputError
from bwarp.io.chunk_files import open_chunk_file, write_chunk_file
from bwarp.mapping import pipeline
from bwarp.mapping.output.chunk_writer import write_mapped
from bwarp.mapping.output.output_options import AlignmentOutput
from bwarp.mapping.parameters import END_TO_END, MappingParameters, mapping_parameters
from bwarp.mapping.pipeline import finish_chunks, map_chunks, score_chunk
from bwarp.mapping.reads.read_chunks import ReadChunk
from bwarp.mapping.seeds.candidates_cpu import find_candidates, locate_candidates
from bwarp.mapping.seeds.seed_selection_cpu import search_seeds
from bwarp.mapping.staged_files import (
    read_parameters,
    stored_candidates,
    stored_hits,
    stored_reads,
    stored_rows,
    write_candidates,
    write_hits,
    write_reads,
    write_rows,
)
from bwarp.sequence import encode
from tests.helpers.oracles.mapping_oracle import (
    codes_in,
    flat,
    index_and_genome,
    opposite,
    random_bases,
)

PARAMETERS = MappingParameters()


@pytest.fixture(scope="module")
def repeats():
    """A word that is everywhere, older copies of a longer one, a tandem, and ambiguous bases."""
    rng = np.random.default_rng(1)
    unit, word = random_bases(rng, 400), random_bases(rng, 36)
    contigs = [random_bases(rng, 4000) + unit, b"", random_bases(rng, 60)]
    contigs.append(b"".join(random_bases(rng, 11) + word for _ in range(300)) + b"NNNN" + unit)
    older = encode(unit)
    older[::17] = (older[::17] + 1) % 4
    contigs.append(b"".join(b"ACGT"[code : code + 1] for code in older) + b"AC" * 60)
    return index_and_genome(contigs)


def chunks_of(genome, ends: int, n: int, size: int) -> list[ReadChunk]:
    """Chunks of `size` templates out of `n`: reads with errors, of N, random, short and empty."""
    bases = codes_in(genome)
    rng = np.random.default_rng(ends)
    reads = []
    for i in range(n):
        start = int(rng.integers(0, bases.size - 300))
        for at in (start, start + 120 + i % 40)[:ends]:
            read = bases[at : at + 100].copy()
            changed = rng.random(100) < rng.choice([0, 0.02, 0.12])
            read[changed] = rng.integers(0, 5, changed.sum())
            if rng.random() < 0.2:
                read = np.delete(read, [40, 41])
            reads.append(opposite(read) if at > start else read)
    reads[0], reads[3], reads[5] = reads[0][:20], np.empty(0, np.uint8), np.full(50, 4, np.uint8)
    chunks = []
    for first in range(0, n, size):
        part = reads[first * ends : (first + size) * ends]
        codes, offsets = flat(part)
        texts = [
            [f"r{first + i} c:{end}:{i}".encode() for i in range(len(part) // ends)]
            for end in range(2)
        ]
        bounds = [np.cumsum([0, *map(len, text)]) for text in texts]
        spans = [np.column_stack([bound[:-1], bound[1:]]) for bound in bounds]
        blanks = [np.array([part.index(b" ") for part in text]) for text in texts]
        names = np.column_stack([spans[0][:, 0], spans[0][:, 0] + blanks[0]])
        comments = [
            np.column_stack([span[:, 0] + blank + 1, span[:, 1]])
            for span, blank in zip(spans, blanks, strict=True)
        ][:ends]
        chunks.append(
            ReadChunk(
                codes,
                offsets,
                rng.integers(33, 74, codes.size).astype(np.uint8),
                np.frombuffer(b"".join(texts[0]), np.uint8),
                names,
                ends,
                first,
                np.stack(comments, axis=1).reshape(-1, 2),
                np.frombuffer(b"".join(texts[1]), np.uint8) if ends == 2 else None,
            )
        )
    return chunks


def comment(chunk, read) -> bytes:
    second = read % 2 and chunk.mate_text is not None
    start, stop = chunk.comments[read]
    return (chunk.mate_text if second else chunk.text)[start:stop].tobytes()


@pytest.mark.parametrize("ends", [1, 2])
def test_reads_come_back(tmp_path, repeats, ends):
    chunks = chunks_of(repeats[1], ends, 30, 13)
    chunks.append(replace(chunks[0], qualities=None, comments=None))
    with write_chunk_file(tmp_path / "reads", holds="reads") as writer:
        for chunk in chunks:
            write_reads(writer, chunk)
    with open_chunk_file(tmp_path / "reads", "reads") as reader:
        found = list(stored_reads(reader))
    for got, chunk in zip(found, chunks, strict=True):
        assert got.codes.tolist() == chunk.codes.tolist()
        assert got.offsets.tolist() == chunk.offsets.tolist()
        assert got.offsets.dtype == np.int64
        if chunk.comments is None:
            assert got.qualities is got.comments is None
            continue
        assert got.qualities.tolist() == chunk.qualities.tolist()
        assert (got.ends, got.first_template) == (ends, chunk.first_template)
        names = [chunk.name(i) for i in range(chunk.n_templates)]
        assert [got.name(i) for i in range(got.n_templates)] == names
        comments = [comment(chunk, read) for read in range(chunk.n_reads)]
        assert [comment(got, read) for read in range(got.n_reads)] == comments
        assert comments[-1].startswith(b"c:%d:" % (ends - 1))


def test_seeds_searched_before_they_are_located(monkeypatch, repeats):
    index, genome = repeats
    (chunk,) = chunks_of(genome, 2, 60, 60)
    reads = np.arange(chunk.n_reads)
    for seeds in (PARAMETERS.first, PARAMETERS.short):
        expected = find_candidates(index, chunk.codes, chunk.offsets, reads, seeds, PARAMETERS)
        assert expected.unlocated.any()
        for block in (7, 2048):
            for module in ("seed_selection_cpu", "candidates_cpu"):
                monkeypatch.setattr(f"bwarp.mapping.seeds.{module}.BLOCK", block)
            rows = search_seeds(index, chunk.codes, chunk.offsets, seeds)
            found = locate_candidates(index, chunk.offsets, rows, seeds, PARAMETERS)
            for name, values in expected._asdict().items():
                assert getattr(found, name).tolist() == values.tolist(), name
    nothing = search_seeds(index, np.empty(0, np.uint8), np.zeros(1, np.int64), PARAMETERS.first)
    none = locate_candidates(index, np.zeros(1, np.int64), nothing, PARAMETERS.first, PARAMETERS)
    assert none.offsets.tolist() == [0]


def staged(index, genome, chunks, parameters, folder, then=pipeline.itself):
    """What five programs do in a row."""
    carried = {"parameters": asdict(parameters)}
    with write_chunk_file(folder / "reads", holds="reads") as writer:
        for chunk in chunks:
            write_reads(writer, chunk)
    with (
        open_chunk_file(folder / "reads", "reads") as reader,
        write_chunk_file(folder / "rows", holds="seed rows", **carried) as writer,
    ):
        for chunk in stored_reads(reader):
            rows = search_seeds(index, chunk.codes, chunk.offsets, parameters.first)
            write_rows(writer, chunk, rows)
    with (
        open_chunk_file(folder / "rows", "seed rows") as reader,
        write_chunk_file(folder / "candidates", holds="candidates", **carried) as writer,
    ):
        for tag, offsets, rows in stored_rows(reader):
            found = locate_candidates(index, offsets, rows, parameters.first, parameters)
            write_candidates(writer, tag, found)
    with (
        open_chunk_file(folder / "reads", "reads") as reads,
        open_chunk_file(folder / "candidates", "candidates") as reader,
        write_chunk_file(folder / "scored hits", holds="scored hits", **carried) as writer,
    ):
        for chunk, candidates in stored_candidates(reads, reader):
            write_hits(writer, score_chunk(index, genome, chunk, candidates, parameters))
    with (
        open_chunk_file(folder / "reads", "reads") as reads,
        open_chunk_file(folder / "scored hits", "scored hits") as reader,
    ):
        assert read_parameters(reader) == parameters
        yield from finish_chunks(genome, stored_hits(reads, reader), parameters, 2, then)


@pytest.mark.parametrize(
    ("ends", "parameters"),
    [
        (1, PARAMETERS),
        (2, PARAMETERS),
        (2, mapping_parameters(2, mode=END_TO_END, insert_size=(220.5, 20.0), orientation="FR")),
    ],
)
def test_staged_is_as_in_one(monkeypatch, tmp_path, repeats, ends, parameters):
    index, genome = repeats
    rounds = []

    def noted(*arguments):
        rounds.append(arguments[4])
        return find_candidates(*arguments)

    monkeypatch.setattr(pipeline, "find_candidates", noted)
    # Three chunks have passed before the insert size is known.
    monkeypatch.setattr(pipeline, "FIRST_PAIRS", 90)

    def written(mapped, name) -> tuple[bytes, dict]:
        path = str(tmp_path / name)
        output = AlignmentOutput(path, False, False, None, b"", False, None, 1 << 20)
        counts = write_mapped(output, parameters, index.reference, genome, mapped, lambda *_: None)
        return (tmp_path / name).read_bytes(), counts

    chunks = chunks_of(genome, ends, 200, 35)
    in_one = written(partial(map_chunks, index, genome, iter(chunks), parameters), "one.sam")
    p = parameters
    all_rounds = (p.first, p.second, p.long, p.more_hits, p.short)
    assert set(rounds) == set(all_rounds)
    in_stages = partial(staged, index, genome, chunks, parameters, tmp_path)
    assert written(in_stages, "staged.sam") == in_one
    assert in_one[1]["reads"] == 200 * ends > in_one[1]["mapped"] > 150 * ends
    assert (in_one[1]["insert_size"] is not None) == (ends == 2)


def test_files_that_do_not_belong_together(tmp_path, repeats):
    index, genome = repeats
    chunks = chunks_of(genome, 1, 40, 20)
    list(staged(index, genome, chunks, PARAMETERS, tmp_path))
    other = replace(chunks[1], codes=chunks[1].codes ^ 1)
    for given in ([chunks[0], other], chunks[:1], [*chunks, chunks[0]], chunks[::-1]):
        with write_chunk_file(tmp_path / "others", holds="reads") as writer:
            for chunk in given:
                write_reads(writer, chunk)
        for kind, stored in (("candidates", stored_candidates), ("scored hits", stored_hits)):
            with (
                open_chunk_file(tmp_path / "others", "reads") as reads,
                open_chunk_file(tmp_path / kind, kind) as reader,
                pytest.raises(InputError) as caught,
            ):
                list(stored(reads, reader))
            assert str(caught.value) == (
                f"{tmp_path}/{kind}: these {kind} are of other reads than those of "
                f"{tmp_path}/others: give the file of reads that was searched"
            )


def test_parameters_of_another_version(tmp_path):
    known = asdict(PARAMETERS)
    for stored in (None, [1], known | {"new": 1}, known | {"first": {"length": 3}}):
        with write_chunk_file(tmp_path / "a", holds="scored hits", parameters=stored):
            pass
        with (
            open_chunk_file(tmp_path / "a", "scored hits") as reader,
            pytest.raises(InputError) as caught,
        ):
            read_parameters(reader)
        assert str(caught.value) == (
            f"{tmp_path}/a: was written by another version of bwarp: make it again"
        )
