"""Mapped units merged to CRAM; duplicates with the same UMI."""

import pysam
import pytest

from tests.helpers.programs.mapped_reads import contigs_of, records


@pytest.fixture(scope="module")
def units(run_program, folder, tmp_path_factory):
    """Return two mapped units with the same reads, and one of several UMIs."""
    out = tmp_path_factory.mktemp("units")
    letters = contigs_of(folder / "genome.fa")["chr2"]
    starts = range(1000, 9000, 400)
    for unit in (1, 2):
        text = "".join(
            f"@u{unit}.{number}\tRX:Z:{'ACGT' if unit == 1 or number % 2 else 'TTTT'}\n"
            f"{letters[start : start + 100]}\n+\n{chr(60 + unit) * 100}\n"
            for number, start in enumerate(starts)
        )
        (out / f"{unit}.fq").write_text(text)
        done = run_program(
            "map_reads.py", "--index", folder / "index", "-1", f"{unit}.fq", "-o", f"{unit}.bam",
            "--sort", "--mark-duplicates", "--barcode-tag", "RX", "--comments", "--stats",
            f"{unit}.stats.json", "--backend", "cpu", "-R", rf"@RG\tID:{unit}\tSM:s", cwd=out,
        )  # fmt: skip
        assert done.rc == 0, done.stderr
        assert done.stderr == "20 reads, 20 mapped, 0 duplicates\n"
    return out


def merge(run_program, units, *arguments):
    return run_program("merge_alignments.py", "1.bam", "2.bam", *arguments, cwd=units)


@pytest.mark.parametrize(("options", "count"), [((), 20), (("--barcode-tag", "RX"), 10)])
def test_duplicates_have_one_umi(run_program, units, tmp_path, options, count):
    out = tmp_path / "s.bam"
    done = merge(run_program, units, "-o", out, "--mark-duplicates", *options)
    assert done.stderr == f"{out}: 2 units merged, {count} duplicates\n"
    marked = {r.query_name for r in records(out) if r.is_duplicate}
    step = 2 if options else 1
    assert marked == {f"u1.{number}" for number in range(step - 1, 20, step)}


@pytest.mark.parametrize("options", [(), ("--mark-duplicates", "--barcode-tag", "RX")])
def test_cram_has_the_records_of_bam(run_program, units, folder, tmp_path, options):
    bam, cram = tmp_path / "s.bam", tmp_path / "s.cram"
    assert merge(run_program, units, "-o", bam, *options).rc == 0
    reference = ("--reference", folder / "genome.fa")
    done = merge(run_program, units, "-o", cram, "--index", folder / "index", *reference, *options)
    assert done.rc == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "s.bam", "s.bam.bai", "s.cram", "s.cram.crai", "s.stats.json"
    ]  # fmt: skip
    assert done.stderr.count("\n") == 1
    first, last = pysam.AlignmentFile(cram, check_sq=False).header.to_dict()["PG"]
    assert (first["ID"], last["ID"], last["PP"]) == ("bwarp", "bwarp.1", "bwarp")
    assert last["CL"] == " ".join(["bwarp merge UNIT.bam -o OUT.bam", *options])
    assert cram.read_bytes()[:6] == b"CRAM\3\0"
    assert pysam.view("-H", str(cram)).count(f"\tUR:{folder}/genome.fa\n") > 1
    newer = tmp_path / "newer.cram"
    index = ("--index", folder / "index")
    done = merge(run_program, units, "-o", newer, *index, *options, "--cram-version", "3.1")
    assert done.stderr.splitlines()[0] == (
        f"warning: {newer}: the header does not contain the path of the reference, which readers "
        "then need (samtools view -T REF.fa): use --reference REF.fa, plain or bgzip"
    )
    assert newer.read_bytes()[:6] == b"CRAM\3\1"
    assert "UR:" not in pysam.view("-H", str(newer))
    text = [
        pysam.view("-h", "--no-PG", "-T", str(folder / "genome.fa"), str(path))
        for path in (bam, cram, newer)
    ]
    text[1] = text[1].replace(f"\tUR:{folder}/genome.fa", "")
    # CRAM stores NM, MD and RG separately from other tags.
    of_bam, *of_cram = (
        [(line.split("\t")[:11], sorted(line.split("\t")[11:])) for line in lines.splitlines()]
        for lines in text
    )
    assert of_cram == [of_bam, of_bam]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-o", "s.sam"), "s.sam: the output must end in .bam or .cram"),
        (("-o", "s.cram"), "s.cram: CRAM output requires --index"),
        (
            ("-o", "s.bam", "--index", "index"),
            "s.bam: --index, --reference and --cram-version require CRAM output",
        ),
        (
            ("-o", "s.bam", "--barcode-tag", "RX"),
            "--barcode-tag requires --mark-duplicates",
        ),
        (
            ("-o", "s.bam", "--optical-distance", 0),
            "--optical-distance requires --mark-duplicates",
        ),
        (
            ("-o", "s.bam", "--mark-duplicates", "--optical-distance", 50),
            "--optical-distance requires --duplicate-metrics or --duplicate-tags",
        ),
        (
            ("-o", "s.bam", "--duplicate-tags"),
            "--duplicate-tags requires --mark-duplicates",
        ),
        (
            ("-o", "s.bam", "--duplicate-metrics", "m.txt"),
            "--duplicate-metrics requires --mark-duplicates",
        ),
        (
            ("-o", "s.bam", "--mark-duplicates", "--duplicate-metrics", "s.bam"),
            "s.bam: the name is used by another file of this run: choose another output",
        ),
        (
            ("-o", "s.bam", "--mark-duplicates", "--barcode-tag", "RXX"),
            "argument --barcode-tag: 'RXX' is not the name of a tag such as RX (see "
            "merge_alignments.py --help)",
        ),
    ],
)
def test_refusals(run_program, units, arguments, message):
    done = merge(run_program, units, *arguments)
    assert (done.rc, done.stderr) == (2, f"merge_alignments.py: error: {message}\n")
