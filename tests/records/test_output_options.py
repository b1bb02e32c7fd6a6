"""Read groups are header lines that samtools reads; the header has the command line."""

import hashlib
import os
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pysam
import pytest

from bwarp import __version__
from bwarp.errors import UsageError
from bwarp.mapping.parameters import END_TO_END, mapping_parameters
from bwarp.records import output_options
from bwarp.records.output_options import (
    AlignmentOutput,
    mapping_program,
    parse_read_group,
    stays_on_gpu,
    write_sequences,
)
from bwarp.reference import make_reference

OUTPUT = AlignmentOutput("/home/me/o.bam", 1 << 20, read_group="@RG\tID:1", read_group_id=b"1")


@pytest.mark.parametrize(
    ("typed", "group"),
    [
        (r"@RG\tID:1\tSM:sample", "1"),
        ("@RG\tSM:s\tID:a group", "a group"),
        (r"@RG\tID:a:b\tDS:caf" + "\u00e9" + r"\tPL:ILLUMINA\tb1:x", "a:b"),
        (r"@RG\tID:C:\data", r"C:\data"),
    ],
)
def test_samtools_reads_the_group(tmp_path, typed, group):
    line, name = parse_read_group(typed)
    assert name == group.encode()
    path = tmp_path / "r.sam"
    path.write_bytes(
        b"@HD\tVN:1.6\n%b\nr\t4\t*\t0\t0\t*\t*\t0\t0\tA\t*\tRG:Z:%b\n" % (line.encode(), name)
    )
    with pysam.AlignmentFile(path, check_sq=False) as file:
        (found,) = file.header.to_dict()["RG"]
        assert found == dict(tag.split(":", 1) for tag in line.split("\t")[1:])
        assert next(file).get_tag("RG") == found["ID"] == group


def test_no_group():
    assert parse_read_group(None) == (None, b"")


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "ID:1",
        "@RG",
        r"@RG\tSM:s",
        r"@RG\tID:",
        r"@RG\tID:\tSM:s",
        r"@RG ID:1\tSM:s",
        r"@RG\tID:1\tID:2",
        r"@RG\tID:1\tSM:s\tSM:t",
        r"@RG\tID:1\nSM:s",
        "@RG\tID:1\n@CO\tmore",
        "@RG\tID:1\tSM:s\n",
        "@RG\tID:1\tSM:s\r",
        "@RG\tID:1\tSM:a\x00b",
        "@RG\tID:1\tSM:a\x7f",
        r"@RG\tID:1\t",
        r"@RG\tID:1\tsample",
        r"@RG\tID:1\tS:s",
        r"@RG\tID:1\t SM:s",
        "@RG\tID:caf\u00e9",
        os.fsdecode(b"@RG\tID:caf\xe9"),
        os.fsdecode(b"@RG\tID:1\tSM:caf\xe9"),
    ],
)
def test_not_a_read_group(typed):
    with pytest.raises(UsageError) as error:
        parse_read_group(typed)
    assert str(error.value) == (
        rf"read group {typed!r} is not a line such as '@RG\tID:1\tSM:sample': it must be plain "
        "text, with an ID and each tag at most once"
    )
    assert str(error.value).isprintable()


def test_the_command_line_has_all_options_that_affect_records():
    parameters = mapping_parameters(
        2, mode=END_TO_END, mismatch=-3, insert_size=(400.0, 60.25), orientation="RF",
        secondary_records=3,
    )  # fmt: skip
    output = replace(
        OUTPUT, paired=True, sort=True, mark_duplicates=True, comments=True, soft_clip=True,
        eqx=True, regions_file="/home/me/r.bed", duplicate_tags=True, optical_distance=2500,
    )  # fmt: skip
    assert mapping_program(parameters, output) == (
        f"@PG\tID:bwarp\tPN:bwarp\tVN:{__version__}\tCL:bwarp map --index INDEX -1 R1.fq -2 "
        "R2.fq -o OUT.bam --mode end-to-end --match 2 --mismatch -3 --gap-open 12 --gap-extend 2 "
        "--clip 10 --min-score 60 --insert-size 400,60.25 --orientation RF --all --max-secondary 3 "
        "--soft-clip --eqx --regions REGIONS.bed --sort "
        "--mark-duplicates --optical-distance 2500 --duplicate-tags --comments"
    )


def test_the_command_line_has_no_options_of_the_machine():
    parameters = mapping_parameters()
    elsewhere = replace(
        OUTPUT, path="o.sam", read_group=None, read_group_id=b"", reference_file="r.fa",
        sort_bytes=5,
    )  # fmt: skip
    assert mapping_program(parameters, OUTPUT) == mapping_program(parameters, elsewhere)
    typed = mapping_parameters(1, mismatch=-4, gap_open=6, clip=5, least_score=30)
    assert mapping_program(typed, OUTPUT) == mapping_program(parameters, OUTPUT)


@pytest.mark.parametrize(
    ("path", "changes", "stays"),
    [
        ("o.bam", {"sort": True}, True),
        ("o.bam", {"sort": True, "soft_clip": True, "comments": True, "eqx": True}, True),
        ("o.bam", {"sort": True, "mark_duplicates": True, "regions_file": "r.bed"}, True),
        ("o.bam", {"sort": True, "gpu_sort_bytes": 0}, False),
        ("o.bam", {}, False),
        ("o.sam", {"sort": True}, True),
        ("o.cram", {"sort": True}, True),
        ("o.cram", {"sort": True, "gpu_sort_bytes": 0}, False),
        ("o.sam", {}, False),
        ("-", {}, False),
        ("o.paf.gz", {}, False),
    ],
)
def test_outputs_that_a_gpu_sorts(path, changes, stays):
    output = replace(OUTPUT, path=path, **{"gpu_sort_bytes": 1 << 30} | changes)
    assert stays_on_gpu(output) == stays


@pytest.mark.parametrize("threads", [1, 5])
@pytest.mark.parametrize("from_fasta", [False, True])
def test_letters_of_contigs_are_in_files(tmp_path, monkeypatch, threads, from_fasta):
    """Contigs of several blocks, two of which are equal."""
    monkeypatch.setattr(output_options, "_LETTERS_A_BLOCK", 7)
    codes = np.random.default_rng(3).integers(0, 5, 300).astype(np.uint8)
    codes[100:150] = codes[50:100]
    starts = np.array([0, 50, 100, 150, 157, 158, 300])
    letters = [bytes(b"ACGTN"[code] for code in codes[a:b]) for a, b in pairwise(starts)]
    sums = [hashlib.md5(text).hexdigest() for text in letters]
    names = [f"c{number}" for number in range(len(letters))]
    reference = make_reference(names, starts, codes, sums)
    fasta = None
    if from_fasta:
        fasta = str(tmp_path / "g.fa")
        with open(fasta, "wb") as file:
            for name, text in zip(names, letters, strict=True):
                file.write(b">%b\n%b\n" % (name.encode(), text.lower()))
    folder = tmp_path / "letters"
    folder.mkdir()
    write_sequences(reference, fasta, folder, threads)
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert found == dict(zip(sums, letters, strict=True))
