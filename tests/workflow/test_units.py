"""All kinds of units in a sample sheet: several files, single reads, BAM; their read groups."""

import pysam
import pytest

LETTERS = 100
SHEET = """\
# as a spreadsheet writes it
sample;unit;fq1;fq2;fq_single;interleaved;library;platform_unit;center;;
s;several;"a1.fq; b1.fq";"a2.fq;b2.fq";c.fq;;lib 1;FC.1;here;;
s;mixed;mixed.fq;;;yes;;auto;;;
s;bam;r.bam;;;;;;;;
"""


@pytest.fixture(scope="module")
def copy(make_copy):
    """Make a copy with mapped reads of several kinds."""
    copy = make_copy(forks=True)
    genome = (copy / "small.fa").read_text().split("\n")[1]

    def read(name, at):
        return f"@{name}\n{genome[at : at + LETTERS]}\n+\n{'I' * LETTERS}\n"

    cell = "A1:2:HXX:3:1101:5:"
    for name, reads in {
        "a1": [("a", 1000)], "a2": [("a", 2000)], "b1": [("b", 3000)], "b2": [("b", 4000)],
        "c": [("c", 5000)], "mixed": [(f"{cell}1", 6000), (f"{cell}1", 7000), (f"{cell}2", 8000)],
    }.items():  # fmt: skip
        (copy / f"{name}.fq").write_text("".join(read(*one) for one in reads))
    fields = ("r", "4", *"*00**00", genome[9000 : 9000 + LETTERS], "I" * LETTERS, "RX:Z:ACGT")
    (copy / "r.sam").write_text("@HD\tVN:1.6\n" + "\t".join(fields) + "\n")
    pysam.view("-b", "-o", f"{copy / 'r.bam'}", f"{copy / 'r.sam'}", catch_stdout=False)
    (copy / "units.csv").write_bytes(SHEET.replace("\n", "\r\n").encode("utf-8-sig"))
    (copy / "mine.yaml").write_text("reference: small.fa\nsamples: units.csv\n")
    copy.said = copy.snakemake("map", "-p", "--configfile", "mine.yaml")
    return copy


def test_every_read_is_mapped(copy):
    with pysam.AlignmentFile(copy / "results/map/s.bam") as file:
        groups = {group.pop("ID"): group for group in file.header.to_dict()["RG"]}
        found = {(r.query_name, r.reference_start, r.get_tag("RG")): r for r in file}
    cell = "A1:2:HXX:3:1101:5:"
    assert list(found) == [
        ("a", 1000, "s.several"), ("a", 2000, "s.several"), ("b", 3000, "s.several"),
        ("b", 4000, "s.several"), ("c", 5000, "s.several"), (f"{cell}1", 6000, "s.mixed"),
        (f"{cell}1", 7000, "s.mixed"), (f"{cell}2", 8000, "s.mixed"), ("r", 9000, "s.bam"),
    ]  # fmt: skip
    assert found["r", 9000, "s.bam"].get_tag("RX") == "ACGT"
    assert groups == {
        "s.several": {"SM": "s", "PL": "ILLUMINA", "LB": "lib 1", "PU": "FC.1", "CN": "here"},
        "s.mixed": {"SM": "s", "PL": "ILLUMINA", "PU": "HXX.3"},
        "s.bam": {"SM": "s", "PL": "ILLUMINA"},
    }


def test_the_commands(copy):
    assert " -1 a1.fq b1.fq -2 a2.fq b2.fq --single c.fq " in copy.said
    assert " -1 mixed.fq --interleaved " in copy.said


def test_nothing_is_left_to_do(copy):
    assert "Nothing to be done" in copy.snakemake("map", "--configfile", "mine.yaml")


def test_cram_and_umis(copy):
    lines = (copy / "r.sam").read_text().splitlines(keepends=True)
    others = [lines[1].replace("r\t4", f"{i}\t4").replace("ACGT\n", f"{i}{i}\n") for i in "AAC"]
    others = [line.replace("A\t4", f"A{i}\t4") for i, line in enumerate(others)]
    (copy / "umis.sam").write_text("".join([lines[0], *others]))
    pysam.view("-b", "-o", f"{copy / 'umis.bam'}", f"{copy / 'umis.sam'}", catch_stdout=False)
    (copy / "umis.csv").write_text("sample,fq1\nu,umis.bam\n")
    (copy / "cram.yaml").write_text(
        "reference: small.fa\nsamples: umis.csv\n"
        "map: {output: cram, cram_version: 3.1, mark_duplicates: true, barcode_tag: RX, "
        "duplicate_tags: true}\n"
    )
    copy.snakemake("map", "--configfile", "cram.yaml")
    assert not (copy / "results/map/u.bam").exists()
    assert (copy / "results/map/u.cram.crai").exists()
    assert (copy / "results/map/u.cram").read_bytes()[:6] == b"CRAM\3\1"
    # Its header has the location of the reference.
    with pysam.AlignmentFile(copy / "results/map/u.cram") as file:
        records = list(file)
    found = {r.query_name: (r.is_duplicate, r.reference_start) for r in records}
    assert [dict(r.tags).get("DT") for r in records if r.is_duplicate] == ["LB"]
    assert {start for _, start in found.values()} == {9000}
    assert sorted(name[0] for name, (marked, _) in found.items() if marked) == ["A"]
    assert "Nothing to be done" in copy.snakemake("map", "--configfile", "cram.yaml")


def test_allmap_finds_pairs_in_one_file(copy):
    lines = (copy / "mixed.fq").read_text().splitlines(keepends=True)[:8]
    (copy / "pair.fq").write_text("".join(lines))
    records = [
        "\t".join(["p", str(flag), *"*00**00", letters.strip(), "I" * LETTERS]) + "\n"
        for flag, letters in zip((77, 141), lines[1::4], strict=True)
    ]
    (copy / "p.sam").write_text("@HD\tVN:1.6\n" + "".join(records))
    pysam.view("-b", "-o", f"{copy / 'p.bam'}", f"{copy / 'p.sam'}", catch_stdout=False)
    (copy / "pairs.csv").write_text("sample,unit,fq1,interleaved\np,1,pair.fq,yes\np,2,p.bam,\n")
    (copy / "loci.yaml").write_text(
        "reference: small.fa\nsamples: pairs.csv\n"
        "allmap: {edits: 1, insert_size: '1100,50', orientation: FF}\n"
    )
    copy.snakemake("allmap", "--configfile", "loci.yaml")
    with pysam.AlignmentFile(copy / "results/allmap/p.bam") as file:
        found = [(r.is_proper_pair, r.reference_start, r.get_tag("RG")) for r in file]
    expected = [(True, at, f"p.{unit}") for at in (6000, 7000) for unit in (1, 2)]
    assert sorted(found) == sorted(expected)


def test_a_new_unit_maps_only_that_unit_if_units_are_kept(copy):
    """The result is that of a run with both units."""
    lines = ["sample\tunit\tfq1", "k\tlane1\ta1.fq", "k\tlane2\tb1.fq", "k\tlane3\tc.fq"]
    (copy / "kept.yaml").write_text(
        "reference: small.fa\nsamples: kept.tsv\nmap: {keep_units: true}\n"
    )
    target = ("results/map/k.bam", "--configfile", "kept.yaml")
    (copy / "kept.tsv").write_text("\n".join(lines[:3]) + "\n")
    assert sorted(copy.planned(*target)) == ["map_reads", "map_reads", "merge_alignments"]
    copy.snakemake(*target)
    (copy / "kept.tsv").write_text("\n".join(lines) + "\n")
    assert sorted(copy.planned(*target)) == ["map_reads", "merge_alignments"]
    copy.snakemake(*target)
    written = (copy / "results/map/k.bam").read_bytes()
    assert copy.planned(*target) == []
    # In another format, they are only merged.
    cram = ("results/map/k.cram", *target[1:], "--config", "map={output: cram}")
    assert copy.planned(*cram) == ["merge_alignments"]
    # Without a unit, nothing is mapped.
    (copy / "kept.tsv").write_text("\n".join(lines[:3]) + "\n")
    assert copy.planned(*target) == ["merge_alignments"]
    (copy / "kept.tsv").write_text("\n".join(lines) + "\n")
    (copy / "kept.yaml").write_text("reference: small.fa\nsamples: kept.tsv\n")
    copy.snakemake(*target, "--forceall")
    assert (copy / "results/map/k.bam").read_bytes() == written
    assert not (copy / "results/map/units/k/lane1.bam").exists()
