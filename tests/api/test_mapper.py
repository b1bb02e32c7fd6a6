"""bwarp.Mapper: reads in memory and in files get the same records as from the program."""

import numpy as np
import pysam
import pytest

import bwarp
from bwarp.errors import InputError, UsageError
from bwarp.sequence import decode, reverse_complement
from tests.helpers.oracles.mapping_oracle import codes_in, index_and_genome, random_bases


@pytest.fixture(scope="module")
def mapper():
    rng = np.random.default_rng(1)
    contigs = [random_bases(rng, 3000), random_bases(rng, 2000)]
    return bwarp.Mapper(index_and_genome(contigs)[0], threads=1)


def piece(mapper, start, length, turned=False) -> str:
    codes = codes_in(mapper.genome)[start : start + length]
    return decode(reverse_complement(codes) if turned else codes).decode()


def test_single_reads(mapper):
    split = piece(mapper, 200, 80) + piece(mapper, 3500, 60, turned=True)
    reads = [piece(mapper, 100, 100), piece(mapper, 3250, 90, True).encode(), "ACGT" * 9, split]
    records = mapper.map(reads)
    assert records.reads.tolist() == [0, 1, 2, 3, 3]
    assert records.flags.tolist() == [0, 16, 4, 0, 16 + 2048]
    assert records.positions.tolist() == [100, 250, -1, 200, 500]
    assert records.cigars.tolist() == ["100M", "90M", "*", "80M60S", "60M80H"]
    names = mapper.index.reference.names
    assert records.contigs.tolist() == [names[0], names[1], "", names[0], names[1]]
    assert records.scores.tolist() == [100, 90, 0, 80, 60]
    assert records.mapping_qualities[:3].tolist() == [60, 60, 0]
    assert {values.size for values in vars(records).values()} == {5}


def test_pairs(mapper):
    starts = np.arange(40) * 30
    reads = [piece(mapper, start, 80) for start in starts]
    mates = [piece(mapper, start + 220 + start % 7, 80, True) for start in starts]
    records = mapper.map(reads, mates)
    assert records.reads.tolist() == list(range(80))
    assert {int(flag) for flag in records.flags} == {99, 147}
    assert records.positions[0::2].tolist() == starts.tolist()
    assert records.template_lengths[0::2].tolist() == [300 + int(start) % 7 for start in starts]
    given = bwarp.Mapper(mapper.index, insert_size=(300.0, 10.0), match=2).map(reads[:1], mates[:1])
    assert given.flags.tolist() == [99, 147]
    assert given.scores.tolist() == [160, 160]


def test_nothing_and_refusals(mapper):
    assert mapper.map([]).reads.size == 0
    assert mapper.map([""]).flags.tolist() == [4]
    with pytest.raises(InputError) as error:
        mapper.map(["ACGT"], [])
    assert str(error.value) == "1 read but 0 mates: give one mate per read"
    with pytest.raises(InputError) as error:
        mapper.map(["A" * 10_000], ["A" * 10_001])
    assert str(error.value) == (
        "mates[0] has 10,001 bases, but the maximum is 10,000: use a mapper for long reads, "
        "such as minimap2"
    )
    with pytest.raises(UsageError, match="mismatch 4 is not a whole number"):
        bwarp.Mapper(mapper.index, mismatch=4)
    with pytest.raises(UsageError, match="^mode 'x' is not one of local, end-to-end$"):
        bwarp.Mapper(mapper.index, mode="x")
    with pytest.raises(
        InputError, match=r"^reads\[1\]: 'E' at position 2 is not a valid sequence letter"
    ):
        mapper.map(["ACGT", "ACE"], ["ACGT", "ACGT"])
    with pytest.raises(UsageError, match="^reads 'ACGT' is not an existing file: use "):
        mapper.map("ACGT")


def test_representation_of_lines(mapper):
    reads = {"right": piece(mapper, 100, 100), "split": piece(mapper, 200, 80), "none": "ACGT" * 9}
    reads["split"] += piece(mapper, 3500, 60, turned=True)
    records = mapper.map(reads)
    assert len(records) == 4
    assert repr(records) == "<4 records of 3 reads, 2 mapped>"
    assert records.names.tolist() == ["right", "split", "split", "none"]
    table = records.to_pandas()
    assert table.columns.tolist() == [
        "read", "name", "flag", "contig", "position", "mapping_quality", "cigar", "score",
        "suboptimal_score", "template_length",
    ]  # fmt: skip
    assert table.position.tolist() == records.positions.tolist()
    assert table.name.tolist() == records.names.tolist()
    assert {str(dtype) for dtype in table.dtypes} == {"str", "int64"}
    assert mapper.map([]).to_pandas().shape == (0, 10)
    assert repr(mapper) == "<bwarp.Mapper to 2 contigs on cpu>"


def test_reads_come_in_chunks(mapper, monkeypatch):
    reads = [piece(mapper, start, 60) for start in range(0, 900, 30)]
    mates = [piece(mapper, start + 200, 60, True) for start in range(0, 900, 30)]
    single, pairs = mapper.map(reads), mapper.map(reads, mates)
    monkeypatch.setattr("bwarp.mapping.engine.READS_A_CHUNK", 8)
    for before, now in ((single, mapper.map(reads)), (pairs, mapper.map(reads, mates))):
        for name, values in vars(before).items():
            assert np.array_equal(values, getattr(now, name)), name


def test_reads_in_files(mapper, tmp_path):
    reads = {f"r{start}": piece(mapper, start, 60) for start in range(0, 900, 30)}
    mates = {name: piece(mapper, int(name[1:]) + 200, 60, True) for name in reads}
    for name, records in (("1.fa", reads), ("2.fa", mates)):
        (tmp_path / name).write_text("".join(f">{n} x\n{s}\n" for n, s in records.items()))
    one, two = str(tmp_path / "1.fa"), tmp_path / "2.fa"
    for in_file, in_memory in (
        (mapper.map(one), mapper.map(reads)),
        (mapper.map(one, two), mapper.map(reads, mates)),
    ):
        for name, values in vars(in_memory).items():
            assert np.array_equal(values, getattr(in_file, name)), name
    with pytest.raises(UsageError) as error:
        mapper.map(one, list(mates.values()))
    assert str(error.value) == "reads and mates must both be files, or both be in memory"


def test_the_same_lines_as_the_program(mapper, run_program, tmp_path):
    rng = np.random.default_rng(2)
    names = mapper.index.reference.names
    bounds = mapper.genome.contig_starts
    with open(tmp_path / "genome.fa", "w") as file:
        for i, name in enumerate(names):
            file.write(f">{name}\n{piece(mapper, bounds[i], bounds[i + 1] - bounds[i])}\n")
    reads = []
    for start in rng.integers(0, 4900, 60):
        read = list(piece(mapper, start, 100))
        read[30] = "A"
        reads.append("".join(read))
    with open(tmp_path / "reads.fa", "w") as file:
        file.write("".join(f">{i}\n{read}\n" for i, read in enumerate(reads)))
    for command in (
        ("index_reference.py", "genome.fa", "-o", "index"),
        ("map_reads.py", "--index", "index", "-1", "reads.fa", "-o", "out.sam"),
    ):
        done = run_program(*command, "--backend", "cpu", cwd=tmp_path)
        assert done.rc == 0, done.stderr
    records = bwarp.Mapper(tmp_path / "index").map(reads)
    with pysam.AlignmentFile(tmp_path / "out.sam") as file:
        found = [
            (int(r.query_name), r.flag, r.reference_start, r.cigarstring or "*", r.mapping_quality)
            for r in file
        ]
    mine = zip(
        records.reads, records.flags, records.positions, records.cigars, records.mapping_qualities,
        strict=True,
    )  # fmt: skip
    assert found == [tuple(row) for row in mine]


def test_the_form_of_records(mapper):
    copies = piece(mapper, 100, 120) * 2
    index = index_and_genome([copies.encode() + piece(mapper, 2000, 400).encode()])[0]
    read = piece(mapper, 110, 100)
    read = read[:50] + "ACGT"["CGTA".index(read[50])] + read[51:]
    given = bwarp.Mapper(index, threads=1, all=True, max_secondary=3, soft_clip=True, eqx=True)
    records = given.map([read])
    assert (records.flags & 0x900).tolist() == [0, 256]
    assert sorted(records.positions.tolist()) == [10, 130]
    assert records.cigars.tolist() == ["50=1X49=", "50=1X49="]
    assert str(records) == "<2 records of 1 read, 1 mapped>" == repr(records)
    split = given.map([piece(mapper, 2000, 80) + piece(mapper, 2200, 60)])
    assert split.cigars.tolist() == ["80=60S", "80S60="]
    with pytest.raises(UsageError, match="^max_secondary 0 is not a whole number from 1 to"):
        bwarp.Mapper(index, all=True, max_secondary=0)
    with pytest.raises(UsageError, match="^--max-secondary requires --all"):
        bwarp.Mapper(index, max_secondary=3)
